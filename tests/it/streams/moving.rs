//! The room of a stream is upgraded: what is said goes on in its successor.

use std::time::Duration;

use matrix_elicit::sandbox::RoomOptions;
use serde_json::json;

use super::{
    Talk, are_old, ask_since, assert_tells, digest, has_heard, inviting, item, people, repeated,
    room_of, said, until, upvoted, with_stream, word,
};
use crate::stage::has_joined;
use crate::support::{BotConfig, BotProcess, homeserver, soon};

#[tokio::test]
async fn the_digest_of_an_upgraded_room_goes_on_in_its_successor() {
    let synapse = homeserver().await;
    let people = people(synapse, &["Ada", "Ben", "Cleo"]).await;
    let [ada, ben, cleo] = &people[..] else {
        unreachable!()
    };
    let config = BotConfig::new(synapse).await;
    let options = RoomOptions {
        version: Some("11".to_owned()),
        ..inviting(&config)
    };
    let room = room_of(&people, options).await;
    let mut bot = BotProcess::start(with_stream(config, &room)).await;
    let start = digest(&bot, None).await;
    are_old(&bot, 3).await;
    let asked = ada.send_text(&room, "why do we move?").await.unwrap();
    ben.react(&room, &asked, "👍").await.unwrap();
    let last = ben.send_text(&room, "pin the toolchain").await.unwrap();
    has_heard(&bot, &last).await;

    let next = ada.upgrade(&room, "12").await.unwrap();
    has_joined(&bot, &next).await;
    for person in [ben, cleo] {
        person.join(&next).await.unwrap();
    }
    // In the new room the others may only speak once they are let.
    let same = ada.send_text(&next, "Pin the toolchain!").await.unwrap();
    cleo.react(&next, &same, "👍").await.unwrap();
    let last = ada.send_text(&next, "here we are").await.unwrap();
    has_heard(&bot, &last).await;
    for restarted in [false, true] {
        if restarted {
            bot.kill9();
            bot.start_again().await;
        }
        let window = digest(&bot, Some(until(&start))).await;
        let pin = item("Ben", ben.user_id(), "pin the toolchain", "suggestion");
        let expected = [
            upvoted(repeated(pin, 2), 1),
            upvoted(item("Ada", ada.user_id(), "why do we move?", "question"), 1),
            item("Ada", ada.user_id(), "here we are", "suggestion"),
        ];
        assert_tells(&window, Some(until(&start)), &expected);
    }

    // What is deleted in the old room is gone from the new one's digest, by name of either.
    let redaction = ada.redact(&room, &asked).await.unwrap();
    has_heard(&bot, &redaction).await;
    let window = digest(&bot, Some(until(&start))).await;
    assert_eq!(said(&window), ["pin the toolchain", "here we are"]);
}

/// The bot comes into a stream's room by itself, but whoever made it go has the last word.
#[tokio::test]
async fn a_bot_that_was_made_to_leave_comes_back_only_when_it_is_invited() {
    let talk = Talk::begin_with(homeserver().await, &["Ada"], |config| config.hurried(20)).await;
    let (ada, room) = (&talk.people[0], &talk.room);
    let anybody = json!({"join_rule": "public"});
    ada.set_state(room, "m.room.join_rules", "", &anybody)
        .await
        .unwrap();
    ada.kick(room, talk.bot.user_id()).await.unwrap();
    soon("the bot to say that it is gone", async || {
        let asked = ask_since(&talk.bot, None).await?;
        let why = asked.body["error"]["message"].as_str()?;
        why.contains("not in the room").then_some(())
    })
    .await;
    // It looks after its streams every second in such a hurry.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let members = ada.room_members(room).await.unwrap();
    let bot = (talk.bot.user_id().to_owned(), "leave".to_owned());
    assert!(members.contains(&bot), "{members:?}");

    ada.invite(room, talk.bot.user_id()).await.unwrap();
    let words = word("back");
    has_joined(&talk.bot, room).await;
    assert_tells(&digest(&talk.bot, None).await, None, &[]);
    let said = ada
        .send_text(room, &format!("is it {words}?"))
        .await
        .unwrap();
    has_heard(&talk.bot, &said).await;
    let told = digest(&talk.bot, None).await;
    assert_eq!(told["items"][0]["what"], format!("is it {words}?"));
}
