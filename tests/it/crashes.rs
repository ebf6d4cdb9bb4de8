//! The bot, or the homeserver, is gone at a bad moment: nothing is lost, nothing happens twice.

use std::{fs, path::Path, time::Duration};

use futures_util::{StreamExt as _, stream};
use matrix_elicit::sandbox::SynapseOptions;
use reqwest::StatusCode;
use serde_json::Value;

use crate::relay::{Lag, Relay};
use crate::scene::{
    Corner, Stage, ask_and_show, at_rest, ledger, one_of_each, opened, question, traces,
};
use crate::support::{BotProcess, homeserver, own_homeserver};

/// Pain: lost.
#[tokio::test]
async fn a_question_outlives_an_orderly_restart() {
    let mut stage = Stage::set_up(homeserver().await).await;
    let cards = stage.ask_everywhere().await;
    let (ended, took) = stage.bot.terminate().await;
    assert!(ended.success(), "{ended}; its log:\n{}", stage.bot.log());
    assert!(took < Duration::from_secs(5), "{took:?}");
    stage.bot.start_again().await;
    let answers = stage.say_everywhere("2").await;
    stage.ends_with(cards, answers).await;
}

/// Pain: skipped.
#[tokio::test]
async fn an_answer_typed_while_a_killed_bot_is_down_is_taken_once() {
    let mut stage = Stage::set_up(homeserver().await).await;
    let cards = stage.ask_everywhere().await;
    stage.bot.kill9();
    let answers = stage.say_everywhere("2").await;
    stage.bot.start_again().await;
    stage.ends_with(cards, answers).await;
}

/// Pain: again.
#[tokio::test]
async fn an_answer_is_not_taken_again_when_the_bot_is_killed_right_after_it() {
    let mut stage = Stage::set_up(homeserver().await).await;
    let cards = stage.ask_everywhere().await;
    let answers = stage.say_everywhere("2").await;
    for index in 0..2 {
        let id = format!("question-{index}");
        stage.bot.api().until_answered(&id).await;
    }
    // Tick, edit and webhook are on their way, or not.
    stage.bot.kill9();
    stage.bot.start_again().await;
    stage.ends_with(cards, answers).await;
}

#[tokio::test]
async fn a_card_is_posted_once_when_the_bot_is_killed_right_after_it_was_asked_for() {
    let mut stage = Stage::set_up(homeserver().await).await;
    let asked: Vec<(String, usize)> = stage
        .cards_of_the_past()
        .await
        .iter()
        .enumerate()
        .map(|(index, cards)| (format!("killed-{index}"), cards.len()))
        .collect();
    for ((id, _), corner) in asked.iter().zip(&stage.corners) {
        let api = stage.bot.api();
        let (status, body) = api.ask(&question(&corner.room, id)).await;
        assert_eq!(status, StatusCode::CREATED, "{body:#}");
        stage.bot.kill9();
        stage.bot.start_again().await;
    }
    for ((id, before), corner) in asked.iter().zip(&stage.corners) {
        let open = opened(&stage.bot.api(), id).await;
        corner.who.reads_card(&corner.room, id).await;
        at_rest(&stage.bot).await;
        let left = traces(corner.who.plain(), &corner.room, stage.bot.user_id()).await;
        assert_eq!(left.cards[*before..], [open["event_id"].as_str().unwrap()]);
    }
}

/// The client keeps its own place in the sync before the ledger has taken in what came: here it
/// has read the answers, and the ledger never has.
/// Pain: skipped.
#[tokio::test]
async fn what_the_client_received_but_the_ledger_did_not_take_in_comes_again() {
    let mut stage = Stage::set_up(homeserver().await).await;
    let cards = stage.ask_everywhere().await;
    at_rest(&stage.bot).await;
    stage.bot.kill9();
    let aside = tempfile::tempdir().unwrap();
    let stored = stage.bot.config().folder().join("stored");
    copy_ledger(&stored, aside.path(), false);
    let answers = stage.say_everywhere("2").await;
    stage.bot.start_again().await;
    for index in 0..2 {
        let id = format!("question-{index}");
        stage.bot.api().until_answered(&id).await;
    }
    stage.bot.kill9();
    copy_ledger(aside.path(), &stored, true);
    stage.bot.start_again().await;
    for (index, answer) in answers.iter().enumerate() {
        let id = format!("question-{index}");
        let object = stage.bot.api().until_answered(&id).await;
        assert_eq!(object["answer"]["event_id"], **answer);
        assert_eq!(object["event_id"], *cards[index]);
    }
}

/// Copies the ledger of a bot that is down; `fresh` removes what is in its place first.
fn copy_ledger(from: &Path, to: &Path, fresh: bool) {
    for name in ["ledger.sqlite3", "ledger.sqlite3-wal", "ledger.sqlite3-shm"] {
        let (from, to) = (from.join(name), to.join(name));
        if fresh && to.exists() {
            fs::remove_file(&to).unwrap();
        }
        if from.exists() {
            fs::copy(from, to).unwrap();
        }
    }
}

/// Asks in each room while the homeserver hears and is not heard, ends the bot in that state, and
/// starts it again.
async fn unheard(end: impl AsyncFnOnce(&mut BotProcess)) {
    let synapse = homeserver().await;
    let line = Relay::start(&synapse.url()).await;
    let mut stage = Stage::set_up_over(synapse, line.url()).await;
    let befores = stage.cards_of_the_past().await;
    line.lag(Lag::Unanswered, &["/send/m.room.", "/sync"]);
    for (index, corner) in stage.corners.iter().enumerate() {
        let request = question(&corner.room, &format!("unheard-{index}"));
        let (status, body) = stage.bot.api().ask(&request).await;
        assert_eq!(status, StatusCode::CREATED, "{body:#}");
    }
    line.lagged("/send/m.room.", 2).await;
    end(&mut stage.bot).await;
    line.catch_up().await;
    stage.bot.start_again().await;
    for (index, (corner, mut cards)) in stage.corners.iter().zip(befores).enumerate() {
        let id = format!("unheard-{index}");
        let open = opened(&stage.bot.api(), &id).await;
        at_rest(&stage.bot).await;
        let left = traces(corner.who.plain(), &corner.room, stage.bot.user_id()).await;
        cards.push(open["event_id"].as_str().unwrap().to_owned());
        assert_eq!(left.cards, cards);
        // It was seen to come back: what is said now may be meant for it.
        let answer = corner.who.say(&corner.room, "1").await;
        let object = stage.bot.api().until_answered(&id).await;
        assert_eq!(object["answer"]["event_id"], *answer);
    }
}

#[tokio::test]
async fn what_was_sent_but_never_acknowledged_is_not_sent_again() {
    unheard(async |bot| bot.kill9()).await;
}

#[tokio::test]
async fn an_orderly_end_does_not_wait_for_a_homeserver_that_hangs() {
    unheard(async |bot| {
        let (ended, took) = bot.terminate().await;
        assert!(ended.success(), "{ended}; its log:\n{}", bot.log());
        assert!(took < Duration::from_secs(5), "{took:?}");
    })
    .await;
}

/// Here the homeserver does not recognise the transaction id, as after a day: the card itself
/// must be recognised, inside its encryption.
#[tokio::test]
async fn a_card_that_was_sent_is_found_in_the_room_by_what_it_carries() {
    let mut stage = Stage::set_up(homeserver().await).await;
    let cards = stage.ask_everywhere().await;
    at_rest(&stage.bot).await;
    stage.bot.kill9();
    let set_back =
        "UPDATE outbox SET state = 'pending', event_id = NULL, txn_id = txn_id || '-other';
        DELETE FROM own_events;
        UPDATE elicitations SET state = 'queued', event_id = NULL, visible = 0;
        DELETE FROM deliveries; DELETE FROM events;";
    ledger(&stage.bot).execute_batch(set_back).unwrap();
    stage.bot.start_again().await;
    for (index, card) in cards.iter().enumerate() {
        let id = format!("question-{index}");
        let open = opened(&stage.bot.api(), &id).await;
        assert_eq!(open["event_id"], *card.as_str());
    }
    // It was posted before, so only who points at it can mean it for certain: by a reply.
    let mut answers = Vec::new();
    for (corner, card) in stage.corners.iter().zip(&cards) {
        answers.push(corner.who.reply(&corner.room, card, "2").await);
    }
    for (index, answer) in answers.iter().enumerate() {
        let object = stage
            .bot
            .api()
            .until_answered(&format!("question-{index}"))
            .await;
        assert_eq!(object["answer"]["event_id"], **answer);
    }
    at_rest(&stage.bot).await;
    for (corner, pair) in stage.corners.iter().zip(cards.into_iter().zip(answers)) {
        let left = traces(corner.who.plain(), &corner.room, stage.bot.user_id()).await;
        assert_eq!(left, one_of_each(&[pair]));
    }
}

/// Pain: gap.
#[tokio::test]
async fn of_two_answers_in_a_long_absence_the_older_one_is_taken() {
    let mut stage = Stage::set_up(homeserver().await).await;
    let cards = stage.ask_everywhere().await;
    stage.bot.kill9();
    let answers = stage.say_everywhere("3").await;
    // More than one response holds: the homeserver leaves out what is oldest.
    let chatter = async |corner: &Corner, count: usize| {
        let said = stream::iter(0..count).map(async |number| {
            let body = format!("and another thing, {number}");
            corner.who.say(&corner.room, &body).await
        });
        said.buffer_unordered(20).count().await
    };
    let [plain, encrypted] = &stage.corners;
    tokio::join!(chatter(plain, 500), chatter(encrypted, 150));
    let late = stage.say_everywhere("1").await;
    stage.bot.start_again().await;
    for (index, answer) in answers.iter().enumerate() {
        let object = stage
            .bot
            .api()
            .until_answered(&format!("question-{index}"))
            .await;
        assert_eq!(object["answer"]["event_id"], **answer);
        assert_eq!(object["answer"]["option"]["number"], 3);
        assert_ne!(object["answer"]["event_id"], *late[index]);
    }
    stage.ends_with(cards, answers).await;
}

#[tokio::test]
async fn a_homeserver_that_restarts_in_the_middle_changes_nothing() {
    let (mut synapse, _folder) = own_homeserver(SynapseOptions::default()).await;
    let stage = Stage::set_up(&synapse).await;
    let cards = stage.ask_everywhere().await;
    synapse.stop().await.unwrap();
    // Asking works while the homeserver is away; the card comes when it is back.
    for corner in &stage.corners {
        let request = question(&corner.room, &corner.room);
        let (status, asked) = stage.bot.api().ask(&request).await;
        assert_eq!(status, StatusCode::CREATED, "{asked:#}");
        assert_eq!(asked["state"], "queued");
    }
    synapse.restart().await.unwrap();
    for (index, corner) in stage.corners.iter().enumerate() {
        let answer = corner.who.reply(&corner.room, &cards[index], "2").await;
        let id = format!("question-{index}");
        let object = stage.bot.api().until_answered(&id).await;
        assert_eq!(object["answer"]["event_id"], *answer);
        let open = opened(&stage.bot.api(), &corner.room).await;
        let second = corner.who.reads_card(&corner.room, &corner.room).await;
        assert_eq!(second["event_id"], open["event_id"]);
        let second_answer = corner.who.say(&corner.room, "3").await;
        let object = stage.bot.api().until_answered(&corner.room).await;
        assert_eq!(object["answer"]["event_id"], *second_answer);
        at_rest(&stage.bot).await;
        let card = |event: &Value| event["event_id"].as_str().unwrap().to_owned();
        let left = traces(corner.who.plain(), &corner.room, stage.bot.user_id()).await;
        let expected = one_of_each(&[(cards[index].clone(), answer), (card(&open), second_answer)]);
        assert_eq!(left, expected);
    }
}

/// Pain: again.
#[tokio::test]
async fn a_bot_that_starts_as_a_new_device_reads_on_where_the_ledger_ends() {
    let mut stage = Stage::set_up(homeserver().await).await;
    // Said before there is anything to answer: not an answer, whenever it is read again.
    stage.say_everywhere("1").await;
    let cards = stage.ask_everywhere().await;
    stage.bot.kill9();
    std::fs::remove_dir_all(stage.bot.config().folder().join("stored/matrix")).unwrap();
    let [plain, encrypted] = &stage.corners;
    let answer = plain.who.say(&plain.room, "2").await;
    stage.bot.start_again().await;
    let object = stage.bot.api().until_answered("question-0").await;
    assert_eq!(object["answer"]["event_id"], *answer);
    // What was encrypted for the old device is lost; what is said now is read, and the card is
    // edited by who posted it.
    let request = question(&encrypted.room, "from-the-new-device");
    ask_and_show(&stage.bot, &encrypted.who, &request).await;
    let to_the_old = encrypted.who.reply(&encrypted.room, &cards[1], "3").await;
    let object = stage.bot.api().until_answered("question-1").await;
    assert_eq!(object["answer"]["event_id"], *to_the_old);
    at_rest(&stage.bot).await;
    let left = traces(plain.who.plain(), &plain.room, stage.bot.user_id()).await;
    assert_eq!(left, one_of_each(&[(cards[0].clone(), answer)]));
    let left = traces(encrypted.who.plain(), &encrypted.room, stage.bot.user_id()).await;
    assert_eq!(left.edits.get(&cards[1]), Some(&1));
    assert_eq!(left.cards.len(), 2, "{left:#?}");
}
