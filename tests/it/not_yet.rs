//! Rooms that the bot cannot enter, or may not speak in, as long as the homeserver fails.

use reqwest::StatusCode;

use crate::play::Play;
use crate::scene::{CARD, ask_once_joined, count, opened, question};
use crate::scripted::{Endpoint, Fault, ScriptedServer};
use crate::stage::has_joined;
use crate::support::soon;

/// A question is asked in a room of which nobody tells the bot whether it is encrypted, and the
/// bot has tried to put it up.
async fn in_a_room_of_unknown_encryption() -> Play {
    let server = ScriptedServer::start().await;
    server.fault_always(Endpoint::State, Fault::unavailable());
    let mut play = Play::over(server, |config| config).await;
    play.bot.wait_ready().await;
    let asked = play.bot.api().ask(&question(&play.room, "e1")).await;
    assert_eq!(asked.0, StatusCode::CREATED, "{:#}", asked.1);
    soon("the card to be tried", async || {
        let tried = "SELECT COUNT(*) FROM outbox WHERE state = 'pending' AND attempts > 0";
        (count(&play.bot, tried) == 1).then_some(())
    })
    .await;
    assert_eq!(play.server.asked(Endpoint::Send), 0);
    assert_eq!(play.bot.api().get("e1").await.1["state"], "queued");
    play
}

/// Pain: plaintext.
#[tokio::test]
async fn nothing_is_said_in_a_room_until_it_is_known_whether_it_is_encrypted() {
    let play = in_a_room_of_unknown_encryption().await;
    play.server.heal();
    let card = play.card_of("e1").await;
    let answer = play.says("2");
    play.ends_with("e1", &card, &answer).await;
}

/// Pain: plaintext.
#[tokio::test]
async fn what_waited_in_a_room_that_turns_out_to_be_encrypted_is_encrypted() {
    let play = in_a_room_of_unknown_encryption().await;
    let content = serde_json::json!({"algorithm": "m.megolm.v1.aes-sha2"});
    play.server
        .sets(&play.room, &play.ada, "m.room.encryption", "", &content);
    opened(&play.bot.api(), "e1").await;
    play.rests().await;
    let timeline = play.server.look(|world| world.timeline(&play.room));
    let of_bot = timeline
        .iter()
        .filter(|event| event["sender"] == play.bot.user_id() && event["state_key"].is_null());
    let said: Vec<&str> = of_bot
        .map(|event| {
            assert!(!event.to_string().contains(CARD), "{event:#}");
            event["type"].as_str().unwrap()
        })
        .collect();
    assert_eq!(said, ["m.room.encrypted"]);
}

/// Ada makes a room and asks the bot in.
fn invited(play: &Play) -> String {
    let room = play.server.room(&play.ada, &[]);
    play.server
        .at_once(|world| world.member(&room, &play.ada, play.bot.user_id(), "invite"));
    room
}

async fn failed_to_join(play: &Play, room: &str) {
    let failed = format!("joining {room} failed; next try in ");
    soon("joining to fail", async || {
        play.bot.log().contains(&failed).then_some(())
    })
    .await;
}

/// Pain: invite.
#[tokio::test]
async fn an_invitation_is_followed_by_another_try_when_joining_has_failed() {
    let play = Play::begin().await;
    for _ in 0..2 {
        let fault = Fault::refused(403, "M_FORBIDDEN");
        play.server.fault(Endpoint::Join, fault);
    }
    let room = invited(&play);
    failed_to_join(&play, &room).await;
    has_joined(&play.bot, &room).await;
    assert_eq!(play.server.asked(Endpoint::Join), 3);
    ask_once_joined(&play.bot.api(), &question(&room, "e1")).await;
    opened(&play.bot.api(), "e1").await;
}

/// Pain: invite.
#[tokio::test]
async fn an_invitation_that_could_not_be_followed_is_found_again_by_the_next_start() {
    let mut play = Play::begin().await;
    let fault = Fault::refused(403, "M_FORBIDDEN");
    play.server.fault_always(Endpoint::Join, fault);
    let room = invited(&play);
    failed_to_join(&play, &room).await;
    play.bot.kill9();
    play.server.heal();
    play.bot.start_again().await;
    has_joined(&play.bot, &room).await;
    ask_once_joined(&play.bot.api(), &question(&room, "e1")).await;
    opened(&play.bot.api(), "e1").await;
}
