//! The bot is ended at any moment, over and over, while people and agents talk: nothing is lost,
//! nothing happens twice.

use std::io::Write as _;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use matrix_elicit::crash::POINTS;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::sync::watch;

use crate::scene::{
    Corner, Someone, Stage, at_rest, count, one_of_each, question, rests, told, traces,
};
use crate::support::{Api, BotConfig, BotProcess, SOON, WebhookSink, homeserver, soon};

/// How many times the bot is killed in the test of random moments; as this variable says, if it is
/// there.
const KILLS: usize = 100;
const KILLS_FROM: &str = "MATRIX_ELICIT_TEST_KILLS";
/// How many questions are open at once in each of its rooms.
const AT_ONCE: usize = 3;

/// The API as an agent uses it that knows that the service may be away: it asks again until there
/// is an answer.
async fn insist(
    api: &Api,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> (StatusCode, Value) {
    soon("an answer from the API", async || {
        let mut request = api.request(method.clone(), path);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.ok()?;
        let status = response.status();
        Some((status, response.json().await.ok()?))
    })
    .await
}

/// The object once it is in this state, through any number of restarts.
async fn insist_on(api: &Api, id: &str, state: &str) -> Value {
    let path = format!("/v1/elicitations/{id}");
    soon(&format!("{id} to be {state}"), async || {
        let (_, object) = insist(api, Method::GET, &path, None).await;
        (object["state"] == state).then_some(object)
    })
    .await
}

/// Asks until the question is taken, through any number of restarts; asking again is harmless.
async fn insist_on_asking(api: &Api, request: &Value) {
    soon("the question to be taken", async || {
        let (status, body) = insist(api, Method::POST, "/v1/elicitations", Some(request)).await;
        let taken = status == StatusCode::CREATED || status == StatusCode::OK;
        let not_yet = body["error"]["code"] == "ROOM_NOT_JOINED";
        assert!(taken || not_yet, "{status} {body:#}");
        taken.then_some(())
    })
    .await;
}

/// Asks and answers in one room until told to stop; the cards and their answers.
async fn converse(
    api: Api,
    corner: &Corner,
    name: &str,
    enough: watch::Receiver<bool>,
) -> Vec<(String, String)> {
    let mut done = Vec::new();
    while !*enough.borrow() {
        let ids: Vec<String> = (0..AT_ONCE)
            .map(|ahead| format!("{name}-{}", done.len() + ahead))
            .collect();
        for id in &ids {
            insist_on_asking(&api, &question(&corner.room, id)).await;
        }
        let mut answers = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            let open = insist_on(&api, id, "open").await;
            let card = open["event_id"].as_str().unwrap().to_owned();
            let number = (index + 1).to_string();
            let answer = corner.who.reply(&corner.room, &card, &number).await;
            answers.push((card, answer));
        }
        for (index, (id, (_, answer))) in ids.iter().zip(&answers).enumerate() {
            let answered = insist_on(&api, id, "answered").await;
            assert_eq!(answered["answer"]["event_id"], **answer);
            assert_eq!(answered["answer"]["option"]["number"], index + 1);
        }
        done.extend(answers);
    }
    done
}

/// Talks in both rooms while `disturb` does its worst; then each question must have been asked,
/// answered and told exactly once. How many questions that were.
async fn nothing_is_lost_while(disturb: impl AsyncFnOnce(&mut BotProcess)) -> usize {
    let Stage {
        mut bot,
        sink,
        corners: [plain, secret],
    } = Stage::set_up(homeserver().await).await;
    let (stop, enough) = watch::channel(false);
    let plainly = converse(bot.api(), &plain, "plain", enough.clone());
    let secretly = converse(bot.api(), &secret, "secret", enough);
    let disturbing = async {
        disturb(&mut bot).await;
        stop.send_replace(true);
    };
    let ((), plainly, secretly) = tokio::join!(disturbing, plainly, secretly);
    at_rest(&bot).await;
    let mut expected = Vec::new();
    for (corner, name, done) in [(&plain, "plain", plainly), (&secret, "secret", secretly)] {
        let left = traces(corner.who.plain(), &corner.room, bot.user_id()).await;
        assert_eq!(left, one_of_each(&done), "{name}");
        for number in 0..done.len() {
            for kind in ["elicitation.answered", "elicitation.open"] {
                expected.push((format!("{name}-{number}"), kind.to_owned()));
            }
        }
    }
    expected.sort();
    // One webhook id each, however often it came.
    let told: Vec<(String, String)> = told(&sink)
        .into_iter()
        .map(|(id, kind, _)| (id, kind))
        .collect();
    assert_eq!(told, expected);
    assert_eq!(count(&bot, "SELECT COUNT(*) FROM undecrypted"), 0);
    expected.len() / 2
}

/// Says something that is shown also when the test passes.
fn report(what: &str) {
    let mut shown = std::io::stderr();
    writeln!(shown, "{what}").unwrap();
}

fn some_time(below: u64) -> Duration {
    Duration::from_millis(rand::random_range(0..below))
}

/// Pain: skipped.
#[tokio::test]
async fn kills_at_any_moment_lose_nothing_and_repeat_nothing() {
    let kills = std::env::var(KILLS_FROM).map_or(KILLS, |kills| kills.parse().unwrap());
    let mut while_starting = 0;
    let questions = nothing_is_lost_while(async |bot| {
        let mut killed = 0;
        while killed < kills {
            // Some lives are longer: a slow machine must get somewhere too.
            let life = if killed % 5 == 0 { 3_000 } else { 600 };
            tokio::time::sleep(some_time(life)).await;
            bot.kill9();
            killed += 1;
            // Some starts are not lived to the end.
            if killed % 3 == 2 && killed < kills {
                let started = tokio::time::timeout(some_time(1_500), bot.start_again()).await;
                while_starting += usize::from(started.is_err());
                bot.kill9();
                killed += 1;
            }
            bot.start_again().await;
        }
    })
    .await;
    report(&format!(
        "{questions} questions through {kills} kills, {while_starting} of them while starting"
    ));
    assert!(questions > 0);
}

/// Pain: lost.
#[tokio::test]
async fn orderly_ends_in_the_middle_of_talk_lose_nothing_and_repeat_nothing() {
    nothing_is_lost_while(async |bot| {
        for _ in 0..5 {
            tokio::time::sleep(some_time(600)).await;
            let (ended, took) = bot.terminate().await;
            assert!(ended.success(), "{ended}; its log:\n{}", bot.log());
            assert!(took < Duration::from_secs(5), "{took:?}");
            bot.start_again().await;
        }
    })
    .await;
}

/// The most times that a run passes a point before later times are left to the random kills: how
/// often it syncs is up to the homeserver.
const MOST_TIMES: usize = 12;
/// How many bots die at once.
const SIDE_BY_SIDE: usize = 4;

/// One question from the first login to the last mark, with a bot that dies the `time`th time it
/// passes this point. Whether it did.
async fn a_question_with_a_death_at(point: &'static str, time: usize) -> bool {
    let synapse = homeserver().await;
    let sink = WebhookSink::start().await;
    let config = BotConfig::new(synapse).await.with_webhook(&sink);
    let who = Someone::new(synapse, "ada", false).await;
    let room = who.make_room(&[config.user_id()]).await;
    let mut bot = BotProcess::start_to_die_at(config, format!("{point}#{time}"));
    let api = bot.api();
    let life = async {
        insist_on_asking(&api, &question(&room, "e1")).await;
        let open = insist_on(&api, "e1", "open").await;
        let card = open["event_id"].as_str().unwrap().to_owned();
        let answer = who.reply(&room, &card, "2").await;
        let answered = insist_on(&api, "e1", "answered").await;
        assert_eq!(answered["answer"]["event_id"], *answer, "{point}#{time}");
        assert_eq!(answered["answer"]["option"]["number"], 2);
        assert_eq!(answered["event_id"], *card);
        (card, answer)
    };
    let mut died = 0;
    let pair = {
        tokio::pin!(life);
        loop {
            tokio::select! {
                pair = &mut life => break pair,
                () = tokio::time::sleep(Duration::from_millis(20)) => died += usize::from(bot.revive()),
            }
        }
    };
    let resting = async {
        while !rests(&bot) {
            died += usize::from(bot.revive());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let rested = tokio::time::timeout(SOON, resting).await;
    assert!(rested.is_ok(), "{point}#{time}: something is never sent");
    died += usize::from(bot.revive());
    let left = traces(who.plain(), &room, bot.user_id()).await;
    assert_eq!(left, one_of_each(&[pair]), "{point}#{time}");
    let told: Vec<(String, String)> = told(&sink)
        .into_iter()
        .map(|(id, kind, _)| (id, kind))
        .collect();
    let expected =
        ["elicitation.answered", "elicitation.open"].map(|kind| ("e1".to_owned(), kind.to_owned()));
    assert_eq!(told, expected, "{point}#{time}");
    assert!(
        died <= 1,
        "{point}#{time} died {died} times:\n{}",
        bot.log()
    );
    died == 1
}

/// Walks every point, and every time that one question passes it.
/// Pain: skipped.
#[tokio::test]
async fn a_death_at_any_point_of_a_questions_way_loses_nothing_and_repeats_nothing() {
    let walks = stream::iter(POINTS).map(async |point| {
        let mut times = 0;
        while times < MOST_TIMES && a_question_with_a_death_at(point, times + 1).await {
            times += 1;
        }
        assert!(times > 0, "no question passes {point}");
        times
    });
    let walked: Vec<usize> = walks.buffer_unordered(SIDE_BY_SIDE).collect().await;
    let deaths: usize = walked.iter().sum();
    report(&format!("{deaths} deaths at {} points", POINTS.len()));
}
