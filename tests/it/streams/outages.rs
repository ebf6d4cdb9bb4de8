//! The bot is away, is killed, or cannot hear: nothing of what was said is lost or told twice, and
//! whoever asks meanwhile is told to ask again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use matrix_elicit::sandbox::{Person, SynapseOptions};
use reqwest::StatusCode;
use tokio::sync::Semaphore;

use super::{
    TWENTY, Talk, ask_since, assert_not_yet, assert_tells, digest, has_heard, item, repeated, said,
    supporters, until,
};
use crate::relay::{Lag, Relay};
use crate::scene::ledger;
use crate::support::{BotConfig, BotProcess, SOON, homeserver, own_homeserver, soon};

/// Everybody says each of these once.
async fn all_say(people: &[Person], room: &str, lines: &[&str]) {
    for line in lines {
        let sent = people.iter().map(|person| person.send_text(room, line));
        for outcome in join_all(sent).await {
            outcome.unwrap();
        }
    }
}

const LINES: [&str; 8] = [
    "pin the toolchain",
    "ship it at noon",
    "the docs are out of date",
    "run the tests on arm64",
    "drop the old parser",
    "rename the crate",
    "bump the minor version",
    "write the changelog first",
];

/// Who said what in a room, in the order of the homeserver.
async fn lines_in(reader: &Person, room: &str) -> Vec<(String, String)> {
    let timeline = reader.timeline(room).await.unwrap();
    let lines = timeline.iter().filter_map(|event| {
        let body = event["content"]["body"].as_str()?;
        Some((event["sender"].as_str()?.to_owned(), body.to_owned()))
    });
    lines.collect()
}

/// Who said what in the ledger, in the order in which it was taken in.
fn lines_kept(bot: &BotProcess) -> Vec<(String, String)> {
    let ledger = ledger(bot);
    let sql = "SELECT sender, body FROM lines JOIN texts ON texts.line = lines.seq
               ORDER BY lines.stamp, lines.seq";
    let mut statement = ledger.prepare(sql).unwrap();
    let lines = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    lines.unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn what_was_said_while_the_bot_was_down_is_told_whole_or_not_yet() {
    let synapse = homeserver().await;
    let Talk {
        people,
        room,
        mut bot,
    } = Talk::begin(synapse, &TWENTY).await;
    let before = digest(&bot, None).await;
    let (ended, _) = bot.terminate().await;
    assert!(ended.success());
    // More than one response of the homeserver holds.
    all_say(&people, &room, &LINES).await;
    bot.start_again_unready();
    // Whatever is told is everything.
    let not_yet = AtomicUsize::new(0);
    let first = soon("a digest", async || {
        let asked = ask_since(&bot, Some(until(&before))).await?;
        if asked.status == StatusCode::OK {
            return Some(asked.body);
        }
        assert_not_yet(&asked);
        not_yet.fetch_add(1, Ordering::Relaxed);
        None
    })
    .await;
    // Whoever said a thing first stands for all.
    let expected: Vec<(String, u64)> = LINES.iter().map(|line| ((*line).to_owned(), 20)).collect();
    let mut told: Vec<(String, u64)> = supporters(&first).into_iter().collect();
    told.sort_by_key(|(line, _)| LINES.iter().position(|one| one == line));
    assert_eq!(
        (told, not_yet.into_inner() > 0),
        (expected, true),
        "{first:#}"
    );
    assert_eq!(first["truncated"], false);
    assert_eq!(lines_kept(&bot), lines_in(&people[0], &room).await);
    let next = digest(&bot, Some(until(&first))).await;
    assert_tells(&next, Some(until(&first)), &[]);
}

#[tokio::test]
async fn as_long_as_a_hole_is_not_filled_there_is_no_digest() {
    let synapse = homeserver().await;
    let line = Relay::start(&synapse.url()).await;
    let over_line = |config: BotConfig| config.with("matrix.homeserver", line.url().into());
    let Talk {
        people,
        room,
        mut bot,
    } = Talk::begin_with(synapse, &TWENTY, over_line).await;
    let before = digest(&bot, None).await;
    bot.kill9();
    all_say(&people, &room, &LINES[..6]).await;
    line.lag(Lag::Unanswered, &["/messages"]);
    bot.start_again_unready();
    line.lagged("/messages", 1).await;
    bot.wait_ready().await;
    for since in [None, Some(until(&before))] {
        let asked = ask_since(&bot, since).await.unwrap();
        assert_not_yet(&asked);
        let why = asked.body["error"]["message"].as_str().unwrap();
        assert!(why.contains("while the bot was away"), "{why}");
    }
    // What is heard meanwhile is told after that.
    let last = people[0]
        .send_text(&room, "is anybody there?")
        .await
        .unwrap();
    bot.kill9();
    line.catch_up().await;
    bot.start_again().await;
    has_heard(&bot, &last).await;
    let whole = digest(&bot, Some(until(&before))).await;
    let mut expected = vec!["is anybody there?"];
    expected.splice(0..0, LINES[..6].iter().copied());
    let mut told = said(&whole);
    // A question stands before other things only where as many support it.
    assert_eq!(told.last(), Some(&"is anybody there?"));
    told.sort_by_key(|line| expected.iter().position(|one| one == line));
    assert_eq!(told, expected);
    assert_eq!(lines_kept(&bot), lines_in(&people[0], &room).await);
}

/// How many messages are said in all while the bot is killed, and how many of them may be untold at
/// one time: fewer than a digest holds.
const NOTES: usize = 60;
const UNTOLD: usize = 8;

async fn write_notes(people: &[Person], room: &str, free: &Semaphore) {
    for note in 0..NOTES {
        free.acquire().await.unwrap().forget();
        let words = format!("note {note} is for the release");
        people[note % people.len()]
            .send_text(room, &words)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn kills_in_the_middle_of_talk_lose_nothing_and_tell_nothing_twice() {
    let synapse = homeserver().await;
    let Talk {
        people,
        room,
        mut bot,
    } = Talk::begin(synapse, &TWENTY[..6]).await;
    let free = Semaphore::new(UNTOLD);
    let mut told: Vec<String> = Vec::new();
    let reading = async {
        let first = digest(&bot, None).await;
        let mut since = until(&first).to_owned();
        let mut kills = 0;
        while told.len() < NOTES {
            let window = digest(&bot, Some(&since)).await;
            assert_eq!(
                (&window["since"], &window["truncated"]),
                (&since.as_str().into(), &false.into())
            );
            let new = said(&window);
            free.add_permits(new.len());
            told.extend(new.into_iter().map(str::to_owned));
            since = until(&window).to_owned();
            // While others are on their way.
            if told.len() > 10 * (kills + 1) {
                bot.kill9();
                bot.start_again_unready();
                kills += 1;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        kills
    };
    let reading = tokio::time::timeout(SOON, reading);
    let ((), kills) = tokio::join!(write_notes(&people, &room, &free), reading);
    let kills = kills.expect("everything is told in time");
    let expected: BTreeSet<String> = (0..NOTES)
        .map(|note| format!("note {note} is for the release"))
        .collect();
    let once: BTreeSet<String> = told.iter().cloned().collect();
    assert_eq!((told.len(), once, kills), (NOTES, expected, 5), "{told:#?}");
}

#[tokio::test]
async fn while_the_homeserver_is_down_there_is_no_digest() {
    let (mut synapse, _folder) = own_homeserver(SynapseOptions::default()).await;
    let Talk { people, room, bot } = Talk::begin(&synapse, &["Ada", "Ben"]).await;
    let said = people[0]
        .send_text(&room, "pin the toolchain")
        .await
        .unwrap();
    has_heard(&bot, &said).await;
    let before = digest(&bot, None).await;
    synapse.stop().await.unwrap();
    // Also where nothing would be in it, as soon as the bot knows.
    soon("the bot to know that it is deaf", async || {
        let asked = ask_since(&bot, Some(until(&before))).await?;
        (asked.status != StatusCode::OK).then_some(())
    })
    .await;
    for since in [None, Some(until(&before))] {
        assert_not_yet(&ask_since(&bot, since).await.unwrap());
    }
    synapse.restart().await.unwrap();
    people[1]
        .send_text(&room, "Pin the toolchain!")
        .await
        .unwrap();
    let both = soon("both to be told", async || {
        let window = digest(&bot, None).await;
        (window["items"][0].get("repeated").is_some()).then_some(window)
    })
    .await;
    let expected = item(
        "Ada",
        people[0].user_id(),
        "pin the toolchain",
        "suggestion",
    );
    assert_tells(&both, None, &[repeated(expected, 2)]);
}
