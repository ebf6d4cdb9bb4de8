//! Very many sessions at once, and a person who wants one of them to stop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::row;
use crate::scripted::Endpoint;
use crate::stand::{AGENT, Stand, rate, spread};

/// How many sessions work at the same time while somebody stops another.
const BUSY: usize = 8;
/// How long each of them waits between two activities.
const BREATH: Duration = Duration::from_millis(20);
/// How many begin at the same time.
const AT_ONCE: usize = 64;

pub async fn measure(sessions: usize, stops: usize) {
    let mut stand = Stand::set_up(50).await;
    stand.start().await;
    let began = Instant::now();
    let begun: Vec<(String, String)> = stream::iter(0..sessions)
        .map(async |number| {
            let room = &stand.rooms[number % stand.rooms.len()];
            let request = json!({"room": room, "title": format!("number {number}")});
            let session = stand.post("/v1/sessions", &request).await;
            (
                room.clone(),
                session["id"].as_str().expect("an id").to_owned(),
            )
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    row(
        &format!("{sessions} sessions in 50 rooms: begun"),
        &rate(sessions, began.elapsed()),
    );
    stand.server.until_asked(Endpoint::Send, sessions).await;
    stand.heard().await;

    let (over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let working = async {
        let (_, busy) = begun.split_at(stops);
        stream::iter(0..BUSY)
            .for_each_concurrent(None, async |worker| {
                for (_, id) in busy.iter().skip(worker).step_by(BUSY).cycle() {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let thought = json!({"content": {"type": "thought", "body": "Reading on."}});
                    stand
                        .post(&format!("/v1/sessions/{id}/activities"), &thought)
                        .await;
                    done.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(BREATH).await;
                }
            })
            .await;
    };
    let stopping = async {
        let mut times = Vec::new();
        for (room, id) in &begun[..stops] {
            let session = stand.get(&format!("/v1/sessions/{id}")).await;
            let root = session["thread"].as_str().expect("a root").to_owned();
            let said = Instant::now();
            let relation = json!({"rel_type": "m.thread", "event_id": root});
            let content = json!({"msgtype": "m.text", "body": "!stop", "m.relates_to": relation});
            stand
                .server
                .at_once(|world| world.sends(room, &stand.ada, "m.room.message", None, &content));
            times.push(stand.sink.came(id, "stop").await - said);
        }
        over.store(true, Ordering::Relaxed);
        times
    };
    let began = Instant::now();
    let ((), times) = tokio::join!(working, stopping);
    let activities = rate(done.load(Ordering::Relaxed), began.elapsed());
    row(
        &format!(
            "one of {sessions} sessions is stopped while others work ({activities}): said → at the agent"
        ),
        &spread(times),
    );
    // All of it is about one agent.
    let listed: Value = stand.get("/v1/sessions?status=stopping&limit=200").await;
    let stopped = listed["sessions"].as_array().expect("sessions");
    assert!(stopped.iter().all(|session| session["agent"] == AGENT));
}
