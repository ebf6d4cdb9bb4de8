//! A board asks very much at once.

use std::collections::HashMap;
use std::time::Instant;

use futures_util::{StreamExt as _, stream};
use hmac::{Hmac, Mac as _};
use serde_json::json;
use sha2::Sha256;

use crate::row;
use crate::scripted::Endpoint;
use crate::stand::{Stand, ms, rate, spread};

const BOARD: &str = "brd_bench";
const SECRET: &str = "key-of-the-benchmark-board";
/// How many pushes a board has on their way.
const AT_ONCE: usize = 64;

pub async fn measure(pushes: usize) {
    let mut stand = Stand::set_up_with(1, |config, rooms| {
        config["boards"][BOARD] = json!({
            // Nobody listens there: what is pending cannot be read, and nothing is settled.
            "base_url": "http://127.0.0.1:9",
            "agent_token": "spa_of-the-benchmark-board",
            "push_secrets": [SECRET],
            "room": rooms[0],
            "people": {"bearer": {"@ada:scripted.test": "token-of-ada-on-the-board"}},
        });
    })
    .await;
    stand.start().await;
    let url = stand.address(&format!("/v1/boards/{BOARD}/push"));
    let http = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client");
    // Each is pushed twice, as a board does that heard no answer.
    let bodies: Vec<String> = (0..pushes).map(question).collect();
    let began = Instant::now();
    let push = async |body: &String| {
        let began = Instant::now();
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
        mac.update(body.as_bytes());
        let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
        let request = http.post(&url).body(body.clone());
        let request = request.header("X-Superpipeline-Signature", signature);
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{}", answer.status());
        answer.bytes().await.expect("a body");
        began.elapsed()
    };
    let times: Vec<_> = stream::iter(&bodies)
        .map(push)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let taken = began.elapsed();
    row(
        &format!("{pushes} pushes of a board, {AT_ONCE} at a time: stored and acknowledged"),
        &format!(
            "{} ({}; each: {})",
            rate(pushes, taken),
            ms(taken),
            spread(times)
        ),
    );
    let began_again = Instant::now();
    stream::iter(&bodies)
        .map(push)
        .buffer_unordered(AT_ONCE)
        .for_each(async |_| {})
        .await;
    let again = began_again.elapsed();
    row("the same once more, known already", &rate(pushes, again));
    stand.server.until_asked(Endpoint::Send, pushes).await;
    stand.heard().await;
    row(
        "the same: every card in its room",
        &rate(pushes, began.elapsed()),
    );
    let mut cards: HashMap<String, usize> = HashMap::new();
    stand.server.look(|world| {
        for event in &world.room_by_id(&stand.rooms[0]).timeline {
            let card = &event.content["dev.superpipeline.elicitation"];
            if let Some(id) = card["elicitation_id"].as_str() {
                *cards.entry(id.to_owned()).or_default() += 1;
            }
        }
    });
    assert_eq!(cards.len(), pushes, "every question has a card");
    assert!(cards.values().all(|count| *count == 1), "and each has one");
}

fn question(number: usize) -> String {
    json!({
        "event": "elicitation.pending", "boardId": BOARD, "boardName": "Bench",
        "cardId": format!("crd_{number}"), "cardTitle": "Upgrade the build image",
        "elicitationId": format!("elc_{number}"), "runId": "run_1", "stageKey": "build",
        "agentId": "agt_31d0", "question": "The tests need network access. May I run them?",
        "options": [{"id": "run_them", "label": "Run the tests"}, {"id": "skip", "label": "Skip them"}],
        "ts": "2026-12-01T10:00:00.000Z",
    })
    .to_string()
}
