//! What people say to the bot itself: commands, and answers at the same moment.

use std::time::Duration;

use matrix_elicit::sandbox::{Person, RoomOptions};
use serde_json::{Value, json};

use crate::scene::traces;
use crate::stage::{Stage, body, card_of, has_joined, id, may_i_run_them, people};
use crate::support::{BotConfig, BotProcess, SOON, homeserver};

/// A question that may be declined.
fn declinable() -> Value {
    let mut request = may_i_run_them();
    request["decline"] = json!(true);
    request
}

#[tokio::test]
async fn help_is_given_and_cards_are_listed_by_notice() {
    let stage = Stage::new().await;
    let asked = stage.ben.send_text(&stage.room, "!cards").await.unwrap();
    let notice = stage.notice_to(&asked).await;
    assert_eq!(body(&notice), "No question is open here.");
    let first = stage.ask(may_i_run_them()).await;
    let second = json!({"prompt": "Which colour?", "options": ["Red", "Blue"], "expires_in": "2h"});
    let second = stage.ask(second).await;
    let asked = stage.ben.send_text(&stage.room, "!Cards").await.unwrap();
    let list = stage.notice_to(&asked).await;
    let text = body(&list);
    assert!(
        text.starts_with("Open here:\nq1: The tests need network access. May I run them?\nq2: Which colour? (until "),
        "{text}"
    );
    // A reply to the list may say which one it means.
    let answer = stage
        .ben
        .reply(&stage.room, list["event_id"].as_str().unwrap(), "q2 1")
        .await
        .unwrap();
    let answered = stage.answered(&second).await;
    assert_eq!(answered["answer"]["event_id"], answer);
    let asked = stage.ada.send_text(&stage.room, "!help").await.unwrap();
    let help = stage.notice_to(&asked).await;
    assert!(body(&help).contains("!decline"), "{}", body(&help));
    // A bare number would not say which of the two she meant when she began to type it.
    let label = stage.ada.send_text(&stage.room, "Skip them").await.unwrap();
    assert_eq!(stage.answered(&first).await["answer"]["event_id"], label);
}

/// Pain: cancelled.
#[tokio::test]
async fn a_question_is_declined_by_command_or_by_a_rich_reply() {
    let stage = Stage::with(|config| config.with("matrix.prefix", json!("?"))).await;
    for reply in [false, true] {
        let question = stage.ask(declinable()).await;
        // With another prefix the usual one is somebody else's.
        stage.ben.send_text(&stage.room, "!decline").await.unwrap();
        let message = if reply {
            stage
                .ben
                .reply(&stage.room, card_of(&question), "decline")
                .await
                .unwrap()
        } else {
            stage.ben.send_text(&stage.room, "?decline").await.unwrap()
        };
        let over = stage.api.until(id(&question), &["declined"]).await;
        assert_eq!(over["answer"], Value::Null);
        assert_eq!(over["declined_by"]["user_id"], stage.ben.user_id());
        assert_eq!(over["declined_by"]["event_id"], message);
        stage.ticked(&message).await;
        let edit = stage.edit_of(card_of(&question)).await;
        let text = edit["content"]["m.new_content"]["body"].as_str().unwrap();
        assert!(text.contains("Declined by Ben"), "{text}");
    }
    // Where it is not allowed, it says so, and the question stays open.
    let question = stage.ask(may_i_run_them()).await;
    let message = stage.ben.send_text(&stage.room, "?decline").await.unwrap();
    let notice = stage.notice_to(&message).await;
    assert!(body(&notice).contains("cannot be declined"));
    stage.ben.send_text(&stage.room, "2").await.unwrap();
    let answered = stage.answered(&question).await;
    assert_eq!(answered["answer"]["option"]["number"], 2);
    assert_eq!(answered["declined_by"], Value::Null);
}

/// Pain: loop.
#[tokio::test]
async fn nobody_keeps_the_bot_talking() {
    let stage = Stage::new().await;
    for _ in 0..12 {
        stage.ben.send_text(&stage.room, "!help").await.unwrap();
    }
    let last = stage.ada.send_text(&stage.room, "!help").await.unwrap();
    stage.notice_to(&last).await;
    let said = stage.said_by_bot().await;
    let notices = said.iter().filter(|kind| **kind == "notice").count();
    assert_eq!(notices, 6, "five for Ben and one for Ada: {said:?}");
}

/// Both write before either can see what became of it.
/// Pain: late.
#[tokio::test]
async fn of_two_people_at_the_same_second_one_wins_and_the_other_is_told() {
    let stage = Stage::new().await;
    for round in 0..3 {
        let question = stage.ask(may_i_run_them()).await;
        let (ada, ben) = tokio::join!(
            stage.ada.send_text(&stage.room, "1"),
            stage.ben.send_text(&stage.room, "2"),
        );
        let (ada, ben) = (ada.unwrap(), ben.unwrap());
        let answer = stage.answered(&question).await["answer"].clone();
        let taken = answer["event_id"].as_str().unwrap();
        let other = if taken == ada { &ben } else { &ada };
        stage.ticked(taken).await;
        let notice = stage.notice_to(other).await;
        let winner = answer["answered_by"].as_str().unwrap();
        assert!(body(&notice).contains(winner), "{round}: {}", body(&notice));
        let expected = if taken == ada { 1 } else { 2 };
        assert_eq!(answer["option"]["number"], expected);
        // Not an event to wait for: a number that follows too closely might be meant for this one.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
}

#[tokio::test]
async fn a_command_is_answered_in_the_thread_it_was_given_in() {
    let stage = Stage::new().await;
    let question = stage.ask(declinable()).await;
    let other = stage
        .another_room(RoomOptions {
            invite: vec![stage.ben.user_id().to_owned()],
            ..RoomOptions::default()
        })
        .await;
    stage.ben.join(&other).await.unwrap();
    let root = stage
        .ben
        .send_text(&stage.room, "about that")
        .await
        .unwrap();
    let asked = stage
        .ben
        .in_thread(&stage.room, &root, "!cards")
        .await
        .unwrap();
    let notice = stage.notice_to(&asked).await;
    assert_eq!(notice["content"]["m.relates_to"]["event_id"], root);
    // What is open in one room is nobody's business in another.
    let asked = stage.ben.send_text(&other, "!cards").await.unwrap();
    let bot = stage.bot.user_id();
    let notice = stage
        .ben
        .wait_for(&other, "an answer", crate::support::SOON, |event| {
            event["sender"] == bot
                && event["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == *asked
        })
        .await
        .unwrap();
    assert_eq!(body(&notice), "No question is open here.");
    let message = stage
        .ben
        .in_thread(&stage.room, card_of(&question), "!decline")
        .await
        .unwrap();
    let over = stage.api.until(id(&question), &["declined"]).await;
    assert_eq!(over["declined_by"]["event_id"], message);
}

/// Asks in the room, has Ada answer, and waits for the ✓: what was said before is decided by then.
async fn one_question_more(bot: &BotProcess, ada: &Person, room: &str, label: &str) {
    let request = json!({"room": room, "prompt": "Is everything said?", "options": [label]});
    let asked = bot.api().ask_fine(&request).await;
    bot.api().until_open(id(&asked)).await;
    let message = ada.send_text(room, label).await.unwrap();
    bot.api().until_answered(id(&asked)).await;
    let ticked = |event: &Value| {
        event["sender"] == bot.user_id() && event["content"]["m.relates_to"]["event_id"] == message
    };
    ada.wait_for(room, "the ✓", SOON, ticked).await.unwrap();
}

/// Pain: loop.
#[tokio::test]
async fn two_bots_in_one_room_have_nothing_to_say_to_each_other() {
    let synapse = homeserver().await;
    let (ada, ben) = people().await;
    let configs = [BotConfig::new(synapse).await, BotConfig::new(synapse).await];
    let mut invite = configs
        .each_ref()
        .map(|config| config.user_id().to_owned())
        .to_vec();
    invite.push(ben.user_id().to_owned());
    let options = RoomOptions {
        invite,
        ..RoomOptions::default()
    };
    let room = ada.create_room(&options).await.unwrap();
    ben.join(&room).await.unwrap();
    // The one is not named to the other, as their operators need not know of each other.
    let mut bots = Vec::new();
    for config in configs {
        let bot = BotProcess::start(config).await;
        has_joined(&bot, &room).await;
        bots.push(bot);
    }
    // Everything that makes a bot speak: a card, a reply it does not understand, commands.
    for (bot, label) in bots.iter().zip(["apples", "pears"]) {
        let request = json!({"room": room, "prompt": "Which?", "options": [label, "none of it"]});
        let asked = bot.api().ask_fine(&request).await;
        let open = bot.api().until_open(id(&asked)).await;
        let card = card_of(&open);
        ben.reply(&room, card, "what is that?").await.unwrap();
        ben.send_text(&room, "!help").await.unwrap();
        ben.reply(&room, card, label).await.unwrap();
        bot.api().until_answered(id(&asked)).await;
    }
    for (index, label) in [(0, "one more"), (1, "and another"), (0, "and the last")] {
        one_question_more(&bots[index], &ada, &room, label).await;
    }
    for (bot, questions) in bots.iter().zip([3, 2]) {
        let left = traces(&ada, &room, bot.user_id()).await;
        assert_eq!(left.cards.len(), questions, "{left:#?}");
        assert_eq!(left.edits.values().sum::<usize>(), questions, "{left:#?}");
        assert_eq!(left.ticks.values().sum::<usize>(), questions, "{left:#?}");
        // What was not understood, and help twice.
        assert_eq!(left.notices.len(), 3, "{left:#?}");
    }
}
