//! Who may read a digest, and what a request must look like.

use serde_json::json;

use super::{
    AGENT, Asked, STREAM, Talk, ask, assert_tells, digest, inviting, people, room_of, until,
    with_stream,
};
use crate::support::{Api, BotConfig, BotProcess, homeserver, unique};

/// Status, code and message of what was asked for.
fn said(asked: &Asked) -> (u16, &str, &str) {
    let error = &asked.body["error"];
    (
        asked.status.as_u16(),
        error["code"].as_str().unwrap_or_default(),
        error["message"].as_str().unwrap_or_default(),
    )
}

#[tokio::test]
async fn only_the_agents_of_a_stream_learn_that_there_is_one() {
    let synapse = homeserver().await;
    let people = people(synapse, &["Ada", "Ben"]).await;
    let config = BotConfig::new(synapse).await;
    let room = room_of(&people, inviting(&config)).await;
    let (stranger, other) = (
        unique("token-of-a-stranger"),
        "ags_01JAB2C3D4E5F6G7H8J9K0MNPZ",
    );
    let config = with_stream(config, &room)
        .with_agent("agt_stranger", &stranger)
        .with_path(&["streams", STREAM, "agents"], json!([AGENT]));
    let bot = BotProcess::start(config).await;
    let api = bot.api();
    let own = format!("agent:{STREAM}");
    let told = ready(&api, &own).await;
    assert_tells(&told, None, &[]);

    for (token, status, code) in [
        ("", 401, "UNAUTHORIZED"),
        ("no-token-of-anybody", 401, "UNAUTHORIZED"),
        (&stranger, 404, "ROOM_NOT_FOUND"),
    ] {
        let asked = ask(&api.with_token(token), &own, "").await.unwrap();
        assert_eq!(
            (said(&asked).0, said(&asked).1),
            (status, code),
            "{asked:#?}"
        );
    }
    // A room that there is not is told of in the same words as one that is another's.
    let strange = ask(&api.with_token(&stranger), &own, "").await.unwrap();
    let missing = format!("agent:{other}");
    let missing = ask(&api.with_token(&stranger), &missing, "").await.unwrap();
    assert_eq!(said(&strange).2.replace(STREAM, other), said(&missing).2);
    for name in [
        other,
        STREAM,
        &format!("agent:{}", STREAM.to_lowercase()),
        &format!("chat:{STREAM}"),
        &format!("{own}%20"),
        &room,
    ] {
        let asked = ask(&api, name, "").await.unwrap();
        assert_eq!(
            (said(&asked).0, said(&asked).1),
            (404, "ROOM_NOT_FOUND"),
            "{name}"
        );
    }
}

/// The digest as soon as there is one, for the one agent that there is.
async fn ready(api: &Api, room: &str) -> serde_json::Value {
    crate::support::soon("a digest", async || {
        // It may not ask as often as it is tried here.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let asked = ask(api, room, "").await?;
        (asked.status == reqwest::StatusCode::OK).then_some(asked.body)
    })
    .await
}

#[tokio::test]
async fn a_window_begins_at_one_moment_that_is_not_to_come() {
    let synapse = homeserver().await;
    let Talk { bot, .. } = Talk::begin(synapse, &["Ada", "Ben"]).await;
    let told = digest(&bot, None).await;
    let (api, own) = (bot.api(), format!("agent:{STREAM}"));
    let now = until(&told);
    for query in [
        "?since=yesterday".to_owned(),
        "?since=2026-11-06T10:00:00".to_owned(),
        "?since=2026-11-06T10:00:00+01:00".to_owned(),
        "?since=9999-01-01T00:00:00Z".to_owned(),
        format!("?since={now}&since={now}"),
        format!("?since={now}&sinse="),
    ] {
        let asked = ask(&api, &own, &query).await.unwrap();
        assert_eq!(
            (said(&asked).0, said(&asked).1),
            (400, "INVALID_REQUEST"),
            "{query}: {asked:#?}"
        );
    }
    let empty = ask(&api, &own, "?since=").await.unwrap();
    assert_tells(&empty.body, None, &[]);
    // Another offset is the same moment.
    let shifted = ask(&api, &own, "?since=2026-01-01T01:00:00.5%2B01:00")
        .await
        .unwrap();
    assert_tells(&shifted.body, Some("2026-01-01T00:00:00.500Z"), &[]);
    // More in a minute than one agent may.
    let mut refused = None;
    for _ in 0..60 {
        let asked = ask(&api, &own, "").await.unwrap();
        if asked.status == reqwest::StatusCode::TOO_MANY_REQUESTS {
            refused = Some(asked);
            break;
        }
    }
    let refused = refused.expect("a limit");
    assert_eq!(said(&refused).1, "RATE_LIMITED");
    let seconds: u64 = refused.retry_after.unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    // Nobody else has to wait for that.
    assert_tells(&digest(&bot, None).await, None, &[]);
}
