//! One answer at a time.

use std::time::{Duration, Instant};

use crate::row;
use crate::stand::{Stand, spread};

/// What one answer took.
pub struct Times {
    /// Until the question was taken.
    pub asked: Vec<Duration>,
    /// From the message said to its sync to the agent's webhook in full.
    pub told: Vec<Duration>,
    /// Until the ✓ and the edit were at the homeserver.
    pub shown: Vec<Duration>,
}

pub async fn measure(answers: usize) {
    let mut stand = Stand::set_up(1).await;
    stand.start().await;
    let room = stand.rooms[0].clone();
    let mut alone = Vec::new();
    for _ in 0..answers {
        stand.heard().await;
        let began = Instant::now();
        stand
            .server
            .at_once(|world| world.says(&room, &stand.ada, "2"));
        alone.push(stand.heard().await - began);
    }
    row(
        "one message at a time, nothing asked: sync bytes in → next sync asked for",
        &spread(alone),
    );
    one_by_one(&stand, &room, "warm", answers / 10 + 1).await;
    let times = one_by_one(&stand, &room, "turn", answers).await;
    row(
        "one answer at a time: sync bytes in → webhook bytes out",
        &spread(times.told),
    );
    row(
        "one answer at a time: sync bytes in → ✓ and edit sent",
        &spread(times.shown),
    );
    row(
        "one question at a time: request → 201",
        &spread(times.asked),
    );
}

/// Asks and answers in a room, one after the other.
pub async fn one_by_one(stand: &Stand, room: &str, name: &str, answers: usize) -> Times {
    let mut times = Times {
        asked: Vec::new(),
        told: Vec::new(),
        shown: Vec::new(),
    };
    for turn in 0..answers {
        let id = format!("{name} {turn} in {room}");
        let sends = stand.server.asked(crate::scripted::Endpoint::Send);
        times.asked.push(stand.ask(room, &id).await);
        stand.sink.came(&id, "elicitation.open").await;
        stand.heard().await;
        let card = stand.look(&id).await["event_id"].clone();
        let card = card.as_str().expect("a card");
        let began = Instant::now();
        stand.server.replies(room, &stand.ada, card, "2");
        let came = stand.sink.came(&id, "elicitation.answered").await;
        times.told.push(came - began);
        // The card before, now the two.
        let send = crate::scripted::Endpoint::Send;
        stand.server.until_asked(send, sends + 3).await;
        times.shown.push(began.elapsed());
        stand.heard().await;
    }
    times
}
