//! The room of a stream is upgraded: what is said goes on in its successor.

use matrix_elicit::sandbox::RoomOptions;

use super::{
    are_old, assert_tells, digest, has_heard, inviting, item, people, repeated, room_of, said,
    until, upvoted, with_stream,
};
use crate::stage::has_joined;
use crate::support::{BotConfig, BotProcess, homeserver};

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
