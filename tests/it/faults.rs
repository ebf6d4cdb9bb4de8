//! A homeserver that does wrong: whatever it does, a question has one card in its room, its answer
//! is taken once, and the agent is told once.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::play::{PASSWORD, Play};
use crate::scene::{Traces, ask_once_joined, count, opened, question, traces_in};
use crate::scripted::{Endpoint, Fault, ScriptedServer};
use crate::support::{BotConfig, BotProcess, soon};

#[tokio::test]
async fn a_homeserver_that_does_nothing_wrong_is_no_fault() {
    Play::begin().await.survives(|_| {}).await;
}

#[tokio::test]
async fn a_sync_that_breaks_off_in_the_middle_comes_again() {
    let play = Play::begin().await;
    play.survives(|server| server.fault(Endpoint::Sync, Fault::Cut))
        .await;
}

/// Pain: again.
#[tokio::test]
async fn a_sync_that_comes_twice_to_the_byte_is_taken_once() {
    let play = Play::begin().await;
    let card = play.ask("e1").await;
    let answer = play.says("2");
    play.bot.api().until_answered("e1").await;
    play.server.fault(Endpoint::Sync, Fault::Replay);
    play.server.fault(Endpoint::Sync, Fault::Replay);
    soon("the same answer to two syncs", async || {
        play.server.faults_are_over().then_some(())
    })
    .await;
    play.ends_with("e1", &card, &answer).await;
}

#[tokio::test]
async fn what_comes_under_a_token_that_has_not_moved_is_taken_once() {
    let play = Play::begin().await;
    play.survives(|server| server.fault(Endpoint::Sync, Fault::SameToken))
        .await;
}

#[tokio::test]
async fn events_that_come_in_two_syncs_are_taken_once() {
    let play = Play::begin().await;
    let card = play.ask("e1").await;
    let answer = play.says("2");
    play.bot.api().until_answered("e1").await;
    play.server.fault(Endpoint::Sync, Fault::Overlap);
    // The response that holds the answer once more holds something new too.
    play.says("thank you");
    soon("what was said to come twice", async || {
        play.server.faults_are_over().then_some(())
    })
    .await;
    play.ends_with("e1", &card, &answer).await;
}

#[tokio::test]
async fn a_sync_that_is_no_json_is_asked_for_again() {
    let play = Play::begin().await;
    play.survives(|server| server.fault(Endpoint::Sync, Fault::NoJson))
        .await;
}

#[tokio::test]
async fn a_sync_that_fails_a_few_times_is_repeated() {
    let play = Play::begin().await;
    play.survives(|server| {
        server.fault(Endpoint::Sync, Fault::unavailable());
        server.fault(Endpoint::Sync, Fault::refused(500, "M_UNKNOWN"));
        server.fault(
            Endpoint::Sync,
            Fault::Limited {
                header: Some(1),
                body: None,
            },
        );
    })
    .await;
}

/// Pain: hang.
#[tokio::test]
async fn a_sync_that_hangs_is_given_up_and_asked_for_again() {
    let mut play = Play::prepare(|config| config.hurried(30)).await;
    play.bot.wait_ready().await;
    let card = play.ask("e1").await;
    play.server.fault_always(Endpoint::Sync, Fault::Hang);
    let answer = play.says("2");
    // It cannot hear, and says so.
    let api = play.bot.api();
    soon("the bot not to be ready", async || {
        (!api.is_ready().await).then_some(())
    })
    .await;
    let asked = play.server.asked(Endpoint::Sync);
    play.server.until_asked(Endpoint::Sync, asked + 2).await;
    let (_, object) = api.get("e1").await;
    assert_eq!(object["state"], "open", "{object:#}");
    play.server.heal();
    play.ends_with("e1", &card, &answer).await;
    play.bot.wait_ready().await;
}

#[tokio::test]
async fn a_message_whose_sending_hangs_is_sent_again_and_is_in_the_room_once() {
    let mut play = Play::prepare(|config| config.hurried(30)).await;
    play.bot.wait_ready().await;
    play.server.fault(Endpoint::Send, Fault::Unanswered);
    play.server.fault(Endpoint::Send, Fault::Hang);
    play.survives(|_| {}).await;
}

#[tokio::test]
async fn a_card_whose_acknowledgement_breaks_off_is_in_the_room_once() {
    let play = Play::begin().await;
    play.server.fault(Endpoint::Send, Fault::Cut);
    play.survives(|_| {}).await;
    let again = play.server.asked(Endpoint::Send);
    assert_eq!(again, 4, "card, card again, tick, edit");
}

#[tokio::test]
async fn a_tick_and_an_edit_whose_acknowledgements_break_off_are_in_the_room_once() {
    let play = Play::begin().await;
    play.survives(|server| {
        server.fault(Endpoint::Send, Fault::Cut);
        server.fault(Endpoint::Send, Fault::Cut);
    })
    .await;
}

/// Longer than the bot would wait by itself after one failure; a little less than is asked for.
const ASKED: Duration = Duration::from_millis(2_900);

/// Sends one card to a homeserver that asks for patience; how long after the last refusal it was
/// sent again.
async fn patience_with(limits: Fault) -> Duration {
    let play = Play::begin().await;
    // The client repeats a request once by itself.
    for _ in 0..2 {
        play.server.fault(Endpoint::Send, limits.clone());
    }
    play.bot.api().ask_fine(&question(&play.room, "e1")).await;
    play.server.until_asked(Endpoint::Send, 2).await;
    let began = tokio::time::Instant::now();
    play.server.until_asked(Endpoint::Send, 3).await;
    let waited = began.elapsed();
    let card = play.card_of("e1").await;
    let answer = play.says("2");
    play.ends_with("e1", &card, &answer).await;
    assert!(play.bot.api().is_ready().await);
    waited
}

#[tokio::test]
async fn a_homeserver_that_asks_for_patience_by_its_header_is_given_it() {
    let limits = Fault::Limited {
        header: Some(3),
        body: None,
    };
    assert!(patience_with(limits).await >= ASKED);
}

#[tokio::test]
async fn a_homeserver_that_asks_for_patience_in_its_answer_is_given_it() {
    let limits = Fault::Limited {
        header: None,
        body: Some(3_000),
    };
    assert!(patience_with(limits).await >= ASKED);
}

#[tokio::test]
async fn a_homeserver_that_fails_to_take_a_message_is_asked_again() {
    let play = Play::begin().await;
    play.server.fault(Endpoint::Send, Fault::unavailable());
    play.server
        .fault(Endpoint::Send, Fault::refused(500, "M_UNKNOWN"));
    play.server.fault(Endpoint::Send, Fault::NoJson);
    play.survives(|_| {}).await;
}

/// Pain: power.
#[tokio::test]
async fn a_card_that_is_refused_for_good_is_told_as_undeliverable() {
    let play = Play::begin().await;
    play.server
        .fault(Endpoint::Send, Fault::refused(403, "M_FORBIDDEN"));
    play.bot.api().ask_fine(&question(&play.room, "e1")).await;
    let object = play.bot.api().until("e1", &["undeliverable"]).await;
    assert_eq!(object["event_id"], Value::Null);
    play.rests().await;
    assert_eq!(play.traces(), Traces::default());
    let told = [("e1".to_owned(), "elicitation.undeliverable".to_owned())];
    assert_eq!(play.told(), told);
    assert!(play.bot.api().is_ready().await);
}

/// The older of two answers is in a hole of the timeline, which is read back page by page.
async fn a_hole(disturb: impl FnOnce(&ScriptedServer)) -> (Play, String, String, String) {
    let play = Play::begin().await;
    let card = play.ask("e1").await;
    disturb(&play.server);
    let (older, newer) = play.server.at_once(|world| {
        world.timeline_limit = Some(2);
        world.page_limit = Some(3);
        for number in 0..4 {
            world.says(&play.room, &play.ada, &format!("before, {number}"));
        }
        let older = world.says(&play.room, &play.ada, "3");
        for number in 0..6 {
            world.says(&play.room, &play.ada, &format!("after, {number}"));
        }
        (older, world.says(&play.room, &play.ada, "1"))
    });
    (play, card, older, newer)
}

/// Pain: gap.
#[tokio::test]
async fn of_two_answers_the_one_in_a_hole_is_the_older_and_is_taken() {
    let (play, card, older, _) = a_hole(|_| {}).await;
    play.ends_with("e1", &card, &older).await;
    assert!(play.server.asked(Endpoint::Messages) >= 3);
    assert!(play.bot.api().is_ready().await);
}

/// Pain: gap.
#[tokio::test]
async fn a_hole_that_cannot_be_read_now_is_read_later() {
    let (play, card, older, _) = a_hole(|server| {
        server.fault(Endpoint::Messages, Fault::Cut);
        server.fault(Endpoint::Messages, Fault::unavailable());
        server.fault(Endpoint::Messages, Fault::NoJson);
    })
    .await;
    play.ends_with("e1", &card, &older).await;
    assert!(play.server.faults_are_over());
    assert!(play.bot.api().is_ready().await);
}

#[tokio::test]
async fn behind_a_hole_that_will_never_be_told_the_next_answer_is_taken() {
    let refuse = |server: &ScriptedServer| {
        server.fault(Endpoint::Messages, Fault::refused(403, "M_FORBIDDEN"));
    };
    let (play, card, _, newer) = a_hole(refuse).await;
    play.ends_with("e1", &card, &newer).await;
    assert!(play.bot.api().is_ready().await);
}

/// Pain: gap.
#[tokio::test]
async fn of_two_answers_among_five_hundred_messages_in_an_absence_the_older_is_taken() {
    let mut play = Play::begin().await;
    let card = play.ask("e1").await;
    play.rests().await;
    play.bot.kill9();
    let mut answers = Vec::new();
    for number in 0..500 {
        match number {
            100 => answers.push(play.says("2")),
            300 => answers.push(play.says("3")),
            _ => drop(play.says(&format!("and another thing, {number}"))),
        }
    }
    play.bot.start_again().await;
    play.ends_with("e1", &card, &answers[0]).await;
    assert!(play.bot.api().is_ready().await);
}

#[tokio::test]
async fn what_is_asked_while_the_homeserver_is_away_goes_out_in_order_when_it_is_back() {
    let play = Play::begin().await;
    let other = play.server.room(&play.ada, &[play.bot.user_id()]);
    let first = question(&other, "first");
    ask_once_joined(&play.bot.api(), &first).await;
    opened(&play.bot.api(), "first").await;
    play.rests().await;
    play.server.go_away().await;
    let rooms = [&play.room, &other];
    let id = |room: usize, number: usize| format!("{room}-{number}");
    for number in 0..5 {
        for (index, room) in rooms.iter().enumerate() {
            let (status, asked) = play
                .bot
                .api()
                .ask(&question(room, &id(index, number)))
                .await;
            assert_eq!(status, StatusCode::CREATED, "{asked:#}");
            assert_eq!(asked["state"], "queued");
        }
    }
    // Each of the two rooms has a message that was tried in vain.
    soon("the bot to see that it is alone", async || {
        let tried = "SELECT COUNT(*) FROM outbox WHERE state = 'pending' AND attempts > 0";
        (count(&play.bot, tried) == 2).then_some(())
    })
    .await;
    play.server.come_back().await;
    let mut open = Vec::new();
    for index in 0..2 {
        for number in 0..5 {
            let object = opened(&play.bot.api(), &id(index, number)).await;
            open.push(object["event_id"].as_str().unwrap().to_owned());
        }
    }
    play.rests().await;
    assert_eq!(play.traces().cards, open[..5]);
    let timeline = play.server.look(|world| world.timeline(&other));
    assert_eq!(
        traces_in(&timeline, play.bot.user_id()).cards[1..],
        open[5..]
    );
    assert_eq!(
        play.told().len(),
        11,
        "each is told once: {:?}",
        play.told()
    );
    assert!(play.bot.api().is_ready().await);
}

/// Pain: deaf.
#[tokio::test]
async fn a_session_whose_access_token_has_died_is_refreshed() {
    let play = Play::begin().await;
    play.survives(|server| server.at_once(|world| world.sessions.expire()))
        .await;
    assert_eq!(play.server.asked(Endpoint::Refresh), 1);
    assert_eq!(play.server.asked(Endpoint::Login), 1);
}

/// The homeserver asks for a new login, and meanwhile an answer is said.
async fn a_soft_logout(play: &mut Play, disturb: impl AsyncFnOnce(&mut Play)) {
    let device = device(&play.bot);
    let card = play.ask("e1").await;
    play.server
        .at_once(|world| world.sessions.log_out_all(true));
    let answer = play.says("2");
    disturb(play).await;
    soon("the new session", async || {
        let log = play.bot.log();
        log.contains("starting on the new session").then_some(())
    })
    .await;
    play.bot.wait_ready().await;
    play.ends_with("e1", &card, &answer).await;
    assert_eq!(self::device(&play.bot), device);
    assert!(play.server.faults_are_over());
}

/// Pain: deaf.
#[tokio::test]
async fn a_session_that_is_forgotten_softly_logs_in_again_on_its_device() {
    let mut play = Play::begin().await;
    a_soft_logout(&mut play, async |_| {}).await;
    assert_eq!(play.server.asked(Endpoint::Login), 2);
}

#[tokio::test]
async fn a_session_that_is_forgotten_softly_in_an_absence_logs_in_again_on_its_device() {
    let mut play = Play::begin().await;
    a_soft_logout(&mut play, async |play| {
        play.bot.kill9();
        play.bot.start_again().await;
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_forgotten_softly_waits_for_a_login_that_fails() {
    let mut play = Play::begin().await;
    let patience = Fault::Limited {
        header: None,
        body: Some(10),
    };
    for fault in [Fault::unavailable(), Fault::unavailable(), patience] {
        play.server.fault(Endpoint::Login, fault);
    }
    a_soft_logout(&mut play, async |_| {}).await;
}

/// Pain: deaf.
#[tokio::test]
async fn a_session_that_is_forgotten_for_good_ends_the_bot_and_wipes_nothing() {
    let mut play = Play::begin().await;
    let device = device(&play.bot);
    play.server
        .at_once(|world| world.sessions.log_out_all(false));
    let ended = play.bot.wait_ended().await;
    assert!(!ended.success(), "{ended}");
    let log = play.bot.log();
    assert!(log.contains("to start as a new device"), "{log}");
    assert_eq!(self::device(&play.bot), device, "nothing is wiped");
    assert_eq!(play.server.asked(Endpoint::Login), 1);
}

/// The device of a bot's session.
fn device(bot: &BotProcess) -> Value {
    let path = bot.config().folder().join("stored/matrix/session.json");
    let session = std::fs::read(path).unwrap();
    let session: Value = serde_json::from_slice(&session).unwrap();
    assert!(session["device_id"].is_string(), "{}", session["device_id"]);
    session["device_id"].clone()
}

/// Pain: first-login.
#[tokio::test]
async fn a_login_that_is_refused_ends_the_bot_and_leaves_nothing() {
    let server = ScriptedServer::start().await;
    let wrong = |config: BotConfig| config.with("matrix.password", json!("another"));
    let mut play = Play::over(server, wrong).await;
    let ended = play.bot.wait_ended().await;
    assert!(!ended.success(), "{ended}");
    let log = play.bot.log();
    assert!(
        log.contains("refuses the login of @elicit:scripted.test"),
        "{log}"
    );
    let stored = play.bot.config().folder().join("stored");
    assert!(!stored.join("matrix").exists() && !stored.join("matrix.new").exists());
}

#[tokio::test]
async fn a_first_login_waits_for_a_homeserver_that_fails() {
    let server = ScriptedServer::start().await;
    server.fault(Endpoint::Login, Fault::unavailable());
    server.fault(Endpoint::Login, Fault::unavailable());
    server.fault(Endpoint::Login, Fault::Cut);
    let mut play = Play::over(server, |config| config).await;
    assert!(!play.bot.api().is_ready().await);
    play.bot.wait_ready().await;
    play.survives(|_| {}).await;
}

#[tokio::test]
async fn a_token_of_its_own_is_used_without_a_login() {
    let server = ScriptedServer::start().await;
    let session = server.at_once(|world| {
        let user = world.sessions.account("elicit", PASSWORD);
        world.sessions.open(&user, "BOT", false)
    });
    let with_token = |config: BotConfig| {
        config
            .with("matrix.access_token", session["access_token"].clone())
            .with("matrix.device_id", json!("BOT"))
            .without("matrix.password")
    };
    let mut play = Play::over(server, with_token).await;
    play.bot.wait_ready().await;
    play.survives(|_| {}).await;
    assert_eq!(play.server.asked(Endpoint::Login), 0);
}
