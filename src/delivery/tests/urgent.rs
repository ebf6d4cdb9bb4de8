//! What happens in agents' sessions, and what of it goes ahead.

use super::*;
use crate::desk::{self, Beginning};
use crate::session::{self, Activity, ActivityType, Author, Signal};

/// A person's words, or with a signal what they want; as an agent is told.
fn prompted(session: &str, body: &str, signal: Option<Signal>) -> EventDraft {
    let activity = Activity {
        id: format!("act_{body}"),
        kind: ActivityType::Prompt,
        body: body.to_owned(),
        signal,
        signal_metadata: None,
        author: Some(Author {
            user_id: "@mira:x.org".to_owned(),
            display_name: Some("Mira".to_owned()),
        }),
        event_id: Some("$said".to_owned()),
        ephemeral: false,
        created_at: 0,
    };
    let beginning = Beginning {
        id: session.to_owned(),
        agent: "builder".to_owned(),
        agent_name: "Builder".to_owned(),
        room_id: "!r:x.org".to_owned(),
        title: None,
        user_id: None,
    };
    EventDraft {
        key: Key::new("builder", session),
        event_type: "agent_session.prompted".to_owned(),
        body: session::event("prompted", &desk::begin(beginning, 0), &activity),
        urgent: signal == Some(Signal::Stop),
    }
}

impl Office {
    async fn tell(&self, draft: EventDraft) -> Event {
        let written = self.book.write(move |ledger| {
            let before = ledger.last_event_seq()?;
            ledger.announce(&draft, true, clock::now())?;
            Ok::<_, LedgerError>(ledger.events_after("builder", before, 1)?.remove(0))
        });
        written.await.unwrap()
    }

    async fn says(&self, session: &str, body: &str) -> Event {
        self.tell(prompted(session, body, None)).await
    }

    async fn stops(&self, session: &str, body: &str) -> Event {
        self.tell(prompted(session, body, Some(Signal::Stop))).await
    }
}

fn bodies(calls: &[Call]) -> Vec<String> {
    let body = |call: &Call| {
        let event: Value = serde_json::from_str(&call.body).unwrap();
        let body = event["agent_activity"]["content"]["body"].as_str();
        body.or(event["data"]["word"].as_str()).unwrap().to_owned()
    };
    calls.iter().map(body).collect()
}

fn in_a_minute() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "60")]).into_response()
}

/// A receiver in which as many calls hang as one agent gets at a time, and more wait for them.
async fn busy() -> (Endpoint, Office) {
    let receiver = Endpoint::slow(Duration::from_mins(1));
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    for number in 0..PARALLEL + 4 {
        let question = format!("e{number}");
        office.announce("builder", &question, "wait").await;
    }
    receiver.wait_for(PARALLEL).await;
    (receiver, office)
}

/// The body of a webhook is the event and nothing around it.
#[tokio::test]
async fn what_happens_in_a_session_goes_out_without_an_envelope() {
    let receiver = Endpoint::default();
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    let event = office.stops("s1", "!stop").await;
    let calls = receiver.wait_for(1).await;
    let timestamp = timestamp(0);
    let expected = json!({
        "action": "prompted",
        "agent_session": {
            "id": "s1",
            "status": "active",
            "end_reason": null,
            "agent": "builder",
            "room_id": "!r:x.org",
            "thread": null,
            "title": null,
            "user_id": null,
            "created_at": timestamp,
            "updated_at": timestamp,
            "ended_at": null,
        },
        "agent_activity": {
            "id": "act_!stop",
            "content": { "type": "prompt", "body": "!stop" },
            "signal": "stop",
            "user": { "user_id": "@mira:x.org", "display_name": "Mira" },
            "created_at": timestamp,
        },
    });
    let body: Value = serde_json::from_str(&calls[0].body).unwrap();
    assert_eq!(body, expected);
    // The stream carries the same.
    assert_eq!(calls[0].body, envelope(&event));
    assert_eq!(calls[0].id(), event.id);
    let verifier = Webhook::new(SECRET).unwrap();
    verifier
        .verify(calls[0].body.as_bytes(), &calls[0].headers)
        .unwrap();
    office.counts(0, 0).await;
}

/// "The event goes out ahead of anything else waiting for that agent."
#[tokio::test]
async fn a_stop_goes_ahead_while_as_many_calls_hang_as_there_may_be() {
    let (receiver, office) = busy().await;
    office.stops("s2", "!stop").await;
    let calls = receiver.wait_for(PARALLEL + 1).await;
    assert_eq!(bodies(&calls)[PARALLEL], "!stop");
    // It takes nobody's place: nothing else goes out for it.
    office.stops("s99", "!stop too").await;
    let calls = receiver.wait_for(PARALLEL + 2).await;
    assert_eq!(bodies(&calls)[PARALLEL + 1], "!stop too");
}

#[tokio::test]
async fn an_older_prompt_of_its_session_that_fails_holds_no_stop_up() {
    let receiver = Endpoint::answering([in_a_minute()]);
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    office.says("s1", "first").await;
    receiver.wait_for(1).await;
    office.says("s1", "second").await;
    office.stops("s1", "!stop").await;
    let calls = receiver.wait_for(2).await;
    assert_eq!(bodies(&calls), ["first", "!stop"]);
    office.counts(2, 0).await;
}

#[tokio::test]
async fn a_stop_that_failed_holds_nothing_else_up() {
    let receiver = Endpoint::answering([in_a_minute()]);
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    office.stops("s1", "!stop").await;
    receiver.wait_for(1).await;
    office.says("s1", "well?").await;
    let calls = receiver.wait_for(2).await;
    assert_eq!(bodies(&calls), ["!stop", "well?"]);
    office.counts(1, 0).await;
}

#[tokio::test]
async fn a_stop_that_failed_is_tried_again_in_time_while_others_hang() {
    let (receiver, office) = busy().await;
    let unavailable = status(StatusCode::SERVICE_UNAVAILABLE);
    receiver.answers.lock().unwrap().push_back(unavailable);
    let stop = office.stops("s2", "!stop").await;
    let calls = receiver.wait_for(PARALLEL + 2).await;
    let ids: Vec<String> = calls[PARALLEL..].iter().map(Call::id).collect();
    assert_eq!(ids, [stop.id.clone(), stop.id]);
}

#[tokio::test]
async fn more_stops_than_fit_at_once_all_arrive_once() {
    let receiver = Endpoint::slow(Duration::from_millis(20));
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    let mut expected = Vec::new();
    for number in 0..5 * PARALLEL {
        let stop = office.stops(&format!("s{number}"), "!stop").await;
        expected.push(stop.id);
    }
    office.counts(0, 0).await;
    let mut ids: Vec<String> = receiver.calls().iter().map(Call::id).collect();
    ids.sort();
    expected.sort();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn a_stop_that_was_not_taken_goes_ahead_after_a_start_too() {
    let (receiver, office) = busy().await;
    office.stops("s2", "!stop").await;
    receiver.wait_for(PARALLEL + 1).await;
    let folder = office.crash().await;
    let again = Endpoint::slow(Duration::from_mins(1));
    let url = again.serve().await;
    let _office = Office::start_in(folder, &[("builder", &url)], "").await;
    let calls = again.wait_for(PARALLEL + 1).await;
    assert!(bodies(&calls).contains(&"!stop".to_owned()));
}
