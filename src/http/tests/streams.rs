//! The digest over HTTP.

use super::*;
use crate::clock::Millis;
use crate::desk::{Chat, Heard, Sender, Trust, What};
use crate::service::Batch;

const STREAM: &str = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";
const OPERATOR: &str = "operator-token-89ab";
const DAY: Millis = 24 * 60 * 60 * 1000;

/// An API with a stream that the builder may read, in which Ada said something.
async fn api() -> Api {
    let more = format!(
        r#"
        [http]
        operator_token = "{OPERATOR}"
        [streams.{STREAM}]
        room = "!deploys:x.org"
        agents = ["builder"]
        "#
    );
    let api = Api::with(&more).await;
    let ages = vec![("@ada:x.org".to_owned(), clock::now() - 2 * DAY)];
    api.service.note_ages("!deploys:x.org", ages).await.unwrap();
    api.service.health().synced(clock::now());
    let heard = Heard {
        room_id: "!deploys:x.org".to_owned(),
        event_id: "$1".to_owned(),
        sender: Sender {
            user_id: "@ada:x.org".to_owned(),
            display_name: None,
            joined: true,
            power: 0,
            alone: false,
        },
        sent_at: clock::now(),
        trust: Trust::Plain,
        what: What::Talk,
        chat: Some(Chat::Line {
            body: Some("why is https://ci.example.org/job/7 red?".to_owned()),
            emote: false,
            in_reply_to: None,
            mentions: Vec::new(),
            replaces: None,
        }),
    };
    let batch = Batch {
        heard: vec![heard],
        ..Batch::default()
    };
    api.service.take_in(batch).await.unwrap();
    api
}

async fn call(api: &Api, method: Method, path: &str, token: &str, body: Option<Value>) -> Response {
    let request = api.client.request(method, format!("{}{path}", api.base));
    let request = request.bearer_auth(token);
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    request.send().await.unwrap()
}

async fn get(api: &Api, path: &str, token: &str) -> Response {
    call(api, Method::GET, path, token, None).await
}

fn path(query: &str) -> String {
    format!("/api/v1/rooms/agent:{STREAM}/digest{query}")
}

#[tokio::test]
async fn an_agent_of_the_stream_reads_what_was_said() {
    let api = api().await;
    let response = get(&api, &path("?since="), BUILDER).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["cache-control"], "no-store");
    let digest: Value = response.json().await.unwrap();
    let until = digest["until"].as_str().unwrap().to_owned();
    assert_eq!(
        digest,
        json!({
            "room": format!("agent:{STREAM}"), "since": null, "until": until,
            "chars": digest["chars"], "truncated": false,
            "items": [{
                "who": {"display_name": "<b>Somebody</b>", "handle": "ada"},
                "what": "why is a link to example.org red?",
                "kind": "question", "upvotes": 0,
            }],
        })
    );
    // The next one begins where this one ended, and the contract's own form of a moment is read.
    let next = get(&api, &path(&format!("?since={until}")), BUILDER).await;
    let next: Value = next.json().await.unwrap();
    assert_eq!(
        (&next["since"], &next["items"]),
        (&json!(until), &json!([]))
    );
    // A colon may be written as anything else in a path.
    let quoted = format!("/api/v1/rooms/agent%3A{STREAM}/digest");
    assert_eq!(get(&api, &quoted, BUILDER).await.status(), 200);
}

#[tokio::test]
async fn nobody_else_does_and_is_told_no_more_than_that() {
    let api = api().await;
    let refused = async |path: &str, token: &str| {
        let response = get(&api, path, token).await;
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        (status, body["error"]["code"].as_str().unwrap().to_owned())
    };
    let not_there = (404, "ROOM_NOT_FOUND".to_owned());
    let other = "/api/v1/rooms/agent:ags_01JAB2C3D4E5F6G7H8J9K0MNPR/digest";
    assert_eq!(
        refused(&path(""), "no token").await,
        (401, "UNAUTHORIZED".to_owned())
    );
    assert_eq!(
        refused(&path(""), OPERATOR).await,
        (401, "UNAUTHORIZED".to_owned())
    );
    assert_eq!(refused(&path(""), TESTER).await, not_there);
    assert_eq!(refused(other, BUILDER).await, not_there);
    for malformed in [
        STREAM,
        "agent:ags_1",
        "!deploys:x.org",
        "chat:ags_01JAB2C3D4E5F6G7H8J9K0MNPQ",
    ] {
        let path = format!("/api/v1/rooms/{malformed}/digest");
        assert_eq!(refused(&path, BUILDER).await, not_there, "{malformed}");
    }
    for query in [
        "?since=yesterday",
        "?since=2026-11-06T10:05:00",
        "?since=2026-11-06T10:05:00+01:00",
        "?since=9999-01-01T00:00:00Z",
        "?since=&since=",
        "?until=2026-11-06T10:05:00Z",
    ] {
        let refused = refused(&path(query), BUILDER).await;
        assert_eq!(refused, (400, "INVALID_REQUEST".to_owned()), "{query}");
    }
}

#[tokio::test]
async fn whoever_comes_too_early_or_too_often_is_told_when_to_come_again() {
    let api = api().await;
    api.service.health().sync_failed();
    let response = get(&api, &path(""), BUILDER).await;
    assert_eq!(
        (
            response.status().as_u16(),
            &response.headers()["retry-after"]
        ),
        (503, &"5".parse().unwrap())
    );
    api.service.health().synced(clock::now());
    let mut refused = None;
    for _ in 0..70 {
        let response = get(&api, &path(""), BUILDER).await;
        if response.status() != 200 {
            refused = Some(response);
            break;
        }
    }
    let refused = refused.expect("it is too often");
    assert_eq!(refused.status(), 429);
    let after: u64 = refused.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&after), "{after}");
}

#[tokio::test]
async fn the_operator_reads_the_same_and_keeps_somebody_out() {
    let api = api().await;
    let base = format!("/v1/operator/streams/{STREAM}");
    let digest = get(&api, &format!("{base}/digest"), OPERATOR).await;
    let digest: Value = digest.json().await.unwrap();
    assert_eq!(digest["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        get(&api, &format!("{base}/digest"), BUILDER).await.status(),
        401
    );

    let user = format!("{base}/silenced/@ada:x.org");
    let put = call(
        &api,
        Method::PUT,
        &user,
        OPERATOR,
        Some(json!({"seconds": 3600})),
    )
    .await;
    assert_eq!(put.status(), 200);
    let listed: Value = get(&api, &format!("{base}/silenced"), OPERATOR)
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(listed["silenced"][0]["user_id"], "@ada:x.org");
    assert!(listed["silenced"][0]["until"].is_string());
    let digest: Value = get(&api, &path(""), BUILDER).await.json().await.unwrap();
    assert_eq!(digest["items"], json!([]));

    let gone: Value = call(&api, Method::DELETE, &user, OPERATOR, None)
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(gone, json!({"user_id": "@ada:x.org", "undone": true}));
    let digest: Value = get(&api, &path(""), BUILDER).await.json().await.unwrap();
    assert_eq!(digest["items"].as_array().unwrap().len(), 1);
    let nobody = call(
        &api,
        Method::PUT,
        &format!("{base}/silenced/ada"),
        OPERATOR,
        None,
    )
    .await;
    assert_eq!(nobody.status(), 400);
}
