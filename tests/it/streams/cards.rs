//! Questions in the room of a stream: neither they nor their answers are part of what was said.

use matrix_elicit::sandbox::RoomOptions;
use serde_json::json;

use super::{assert_tells, digest, has_heard, item, until, with_stream};
use crate::stage::{Stage, card_of, has_joined, may_i_run_them, people};
use crate::support::{BotConfig, BotProcess, homeserver};

#[tokio::test]
async fn questions_and_every_kind_of_answer_are_no_part_of_what_was_said() {
    let (ada, ben) = people().await;
    let config = BotConfig::new(homeserver().await).await;
    let options = RoomOptions {
        invite: vec![ben.user_id().to_owned(), config.user_id().to_owned()],
        ..RoomOptions::default()
    };
    let room = ada.create_room(&options).await.unwrap();
    ben.join(&room).await.unwrap();
    let bot = BotProcess::start(with_stream(config, &room)).await;
    has_joined(&bot, &room).await;
    let stage = Stage {
        api: bot.api(),
        bot,
        ada,
        ben,
        room,
    };
    let (ada, ben, bot, room) = (&stage.ada, &stage.ben, &stage.bot, &stage.room);
    let start = digest(bot, None).await;
    super::are_old(bot, 2).await;
    for way in ["number", "id", "label", "rich reply", "thread", "words"] {
        let question = stage.ask(may_i_run_them()).await;
        let card = card_of(&question);
        let answer = match way {
            "number" => ben.send_text(room, "2").await,
            "id" => ben.send_text(room, "run_them").await,
            "label" => ben.send_text(room, "Skip them").await,
            "rich reply" => ben.reply_with_fallback(room, card, "1").await,
            "thread" => ben.in_thread(room, card, "2").await,
            _ => ben.reply(room, card, "the second one").await,
        };
        let answer = answer.unwrap();
        let answered = stage.answered(&question).await;
        assert_eq!(answered["answer"]["event_id"], answer, "{way}");
        stage.ticked(&answer).await;
        // Too late, and an answer all the same.
        ada.reply(room, card, "run the tests").await.unwrap();
        // An answer that is edited is one still.
        ben.edit(room, &answer, "1").await.unwrap();
    }
    let prompt =
        json!({"prompt": "What shall it be called?", "options": ["fine"], "free_text": true});
    let question = stage.ask(prompt).await;
    let answer = ben
        .reply(room, card_of(&question), "something with a K")
        .await
        .unwrap();
    stage.answered(&question).await;
    stage.ticked(&answer).await;
    // What is no option is talk, also about a card.
    ada.reply(room, card_of(&question), "why with a K?")
        .await
        .unwrap();
    let last = ben.send_text(room, "it sounds well").await.unwrap();
    has_heard(bot, &last).await;
    let window = digest(bot, Some(until(&start))).await;
    let expected = [
        item("Ada", ada.user_id(), "why with a K?", "question"),
        item("Ben", ben.user_id(), "it sounds well", "suggestion"),
    ];
    assert_tells(&window, Some(until(&start)), &expected);
}
