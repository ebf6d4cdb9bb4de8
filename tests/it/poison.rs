//! Something malformed in a sync skips itself, and takes nothing with it: the answer that came in
//! the same response is taken, once.

use crate::play::Play;
use crate::scripted::World;

/// An answer comes with something malformed before and after it..
async fn an_answer_among(poison: impl Fn(&mut World, &Play)) {
    let play = Play::begin().await;
    let card = play.ask("e1").await;
    play.rests().await;
    let answer = play.server.at_once(|world| {
        poison(world, &play);
        let answer = world.says(&play.room, &play.ada, "2");
        poison(world, &play);
        answer
    });
    play.ends_with("e1", &card, &answer).await;
    assert!(play.bot.api().is_ready().await);
    // It lives on in peace: the next question goes its way too.
    let card = play.ask("e2").await;
    let answer = play.says("3");
    let object = play.bot.api().until_answered("e2").await;
    assert_eq!(object["event_id"], *card);
    assert_eq!(object["answer"]["event_id"], *answer);
    play.rests().await;
    let left = play.traces();
    assert_eq!(left.cards.len(), 2, "{left:#?}");
    assert_eq!(left.ticks.get(&answer), Some(&1), "{left:#?}");
}

#[tokio::test]
async fn an_event_that_is_no_object_skips_itself() {
    an_answer_among(|world, play| world.inject_event(&play.room, "17")).await;
}

#[tokio::test]
async fn an_event_without_a_type_skips_itself() {
    let event = r#"{"event_id": "$bad1", "sender": "@ada:scripted.test", "origin_server_ts": 1,
        "content": {"msgtype": "m.text", "body": "1"}}"#;
    an_answer_among(|world, play| world.inject_event(&play.room, event)).await;
}

#[tokio::test]
async fn an_event_without_an_id_skips_itself() {
    let event = r#"{"type": "m.room.message", "sender": "@ada:scripted.test",
        "origin_server_ts": 1, "content": {"msgtype": "m.text", "body": "1"}}"#;
    an_answer_among(|world, play| world.inject_event(&play.room, event)).await;
}

#[tokio::test]
async fn an_event_with_fields_of_other_types_skips_itself() {
    let event = r#"{"type": "m.room.message", "event_id": "$bad2", "sender": ["@ada"],
        "origin_server_ts": "now", "content": [], "unsigned": 5}"#;
    an_answer_among(|world, play| world.inject_event(&play.room, event)).await;
}

#[tokio::test]
async fn an_event_of_nobody_skips_itself() {
    let event = r#"{"type": "m.room.message", "event_id": "$bad3", "sender": "nobody",
        "origin_server_ts": -1, "content": {"msgtype": "m.text", "body": "1"}}"#;
    an_answer_among(|world, play| world.inject_event(&play.room, event)).await;
}

#[tokio::test]
async fn malformed_state_in_a_timeline_skips_itself() {
    let event = r#"{"type": "m.room.member", "state_key": "ada", "event_id": "$bad4",
        "sender": "@ada:scripted.test", "origin_server_ts": 1, "content": {"membership": 4}}"#;
    an_answer_among(|world, play| world.inject_event(&play.room, event)).await;
}

#[tokio::test]
async fn malformed_state_skips_itself() {
    let event = r#"{"state_key": 7, "event_id": "$bad5", "content": {}}"#;
    an_answer_among(|world, play| world.inject_state(&play.room, event)).await;
}

#[tokio::test]
async fn account_data_without_a_type_skips_itself() {
    an_answer_among(|world, _| world.inject_account_data(r#"{"content": {}}"#)).await;
}

#[tokio::test]
async fn account_data_of_a_room_that_is_no_object_skips_itself() {
    an_answer_among(|world, play| world.inject_room_account_data(&play.room, "[]")).await;
}

#[tokio::test]
async fn a_message_to_the_device_without_a_sender_skips_itself() {
    let message = r#"{"type": "m.room_key", "content": {"algorithm": 1}}"#;
    an_answer_among(|world, _| world.inject_to_device(message)).await;
}

#[tokio::test]
async fn malformed_encryption_of_a_message_to_the_device_skips_itself() {
    let message = r#"{"type": "m.room.encrypted", "sender": "@ada:scripted.test",
        "content": {"algorithm": "m.olm.v1.curve25519-aes-sha2", "ciphertext": 9}}"#;
    an_answer_among(|world, _| world.inject_to_device(message)).await;
}

#[tokio::test]
async fn what_is_malformed_in_another_room_takes_nothing_with_it() {
    an_answer_among(|world, play| {
        let user = play.bot.user_id();
        let other = world.room(&play.ada, &[user]);
        world.inject_event(&other, "{}");
        world.inject_state(&other, "[]");
    })
    .await;
}
