//! Where nothing of what people say is kept.

use super::{
    STREAM, Talk, answer_to, assert_tells, digest, has_heard, holds_words, inviting, people,
    room_of, said, with_stream, word,
};
use crate::stage::{has_joined, id};
use crate::support::{BotConfig, BotProcess, homeserver, soon};

#[tokio::test]
async fn a_room_that_is_no_stream_leaves_no_word_in_the_ledger() {
    let synapse = homeserver().await;
    let people = people(synapse, &["Ada", "Ben"]).await;
    let [ada, ben] = &people[..] else {
        unreachable!()
    };
    let config = BotConfig::new(synapse).await;
    let stream = room_of(&people, inviting(&config)).await;
    let other = room_of(&people, inviting(&config)).await;
    let bot = BotProcess::start(with_stream(config, &stream)).await;
    has_joined(&bot, &other).await;
    digest(&bot, None).await;
    let (kept, first, edited, beside) =
        (word("walrus"), word("dugong"), word("otter"), word("seal"));
    let talk = ben
        .send_text(&other, &format!("rename it to {first}"))
        .await
        .unwrap();
    ben.edit(&other, &talk, &format!("rename it to {edited}"))
        .await
        .unwrap();
    ada.react(&other, &talk, "👍").await.unwrap();
    // Also while every message may be an answer.
    let request =
        serde_json::json!({"room": other, "prompt": "Which?", "options": ["red", "blue"]});
    let asked = bot.api().ask_fine(&request).await;
    bot.api().until_open(id(&asked)).await;
    ben.send_text(&other, &format!("perhaps {beside}"))
        .await
        .unwrap();
    ben.send_text(&other, "blue").await.unwrap();
    bot.api().until_answered(id(&asked)).await;
    let command = ben.send_text(&other, "!agents").await.unwrap();
    answer_to(&bot, ada, &other, &command).await;
    let line = ada
        .send_text(&stream, &format!("rename it to {kept}"))
        .await
        .unwrap();
    has_heard(&bot, &line).await;
    assert_eq!(holds_words(&bot, &[&first, &edited, &beside]), [""; 0]);
    assert_ne!(holds_words(&bot, &[&kept]), [""; 0]);
}

#[tokio::test]
async fn of_a_stream_that_is_taken_out_of_the_configuration_nothing_is_left_after_a_restart() {
    let synapse = homeserver().await;
    let Talk {
        people,
        room,
        mut bot,
    } = Talk::begin(synapse, &["Ada", "Ben"]).await;
    let (before, after) = (word("walrus"), word("dugong"));
    let line = format!("rename it to {before}");
    let line = people[0].send_text(&room, &line).await.unwrap();
    has_heard(&bot, &line).await;
    assert_eq!(
        said(&digest(&bot, None).await),
        [format!("rename it to {before}")]
    );
    bot.terminate().await;
    let mut streams = serde_json::Value::Null;
    bot.reconfigure(|settings| {
        streams = settings.as_object_mut().unwrap().remove("streams").unwrap();
    });
    bot.start_again().await;
    soon("nothing to be left", async || {
        holds_words(&bot, &[&before]).is_empty().then_some(())
    })
    .await;
    // And nothing is added.
    people[0]
        .send_text(&room, &format!("rename it to {after}"))
        .await
        .unwrap();
    let command = people[0].send_text(&room, "!agents").await.unwrap();
    answer_to(&bot, &people[0], &room, &command).await;
    assert_eq!(holds_words(&bot, &[&before, &after]), [""; 0]);
    // Nor does it come back with the stream.
    bot.terminate().await;
    bot.reconfigure(|settings| settings["streams"] = streams);
    bot.start_again().await;
    assert_tells(&digest(&bot, None).await, None, &[]);
    assert!(bot.config().text().contains(STREAM));
}
