//! Webhooks over real HTTP, with a real ledger behind them.

mod again;
mod urgent;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use standardwebhooks::Webhook;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use super::*;
use crate::clock;
use crate::clock::Millis;
use crate::desk::EventDraft;
use crate::elicitation::Key;
use crate::ledger::{self, LedgerError};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEXT_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// One call as the receiver got it.
#[derive(Clone)]
struct Call {
    at: Instant,
    headers: HeaderMap,
    body: String,
}

impl Call {
    fn id(&self) -> String {
        self.headers["webhook-id"].to_str().unwrap().to_owned()
    }

    fn word(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        body["data"]["word"].as_str().unwrap().to_owned()
    }
}

/// An agent's receiver: answers with what it was told to, in order, then 200 after a delay.
#[derive(Clone, Default)]
struct Endpoint {
    calls: Arc<Mutex<Vec<Call>>>,
    answers: Arc<Mutex<VecDeque<Response>>>,
    delay: Duration,
}

impl Endpoint {
    fn answering(answers: impl IntoIterator<Item = Response>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            ..Self::default()
        }
    }

    fn slow(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::default()
        }
    }

    async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?key=shh", listener.local_addr().unwrap());
        let routes = Router::new().fallback(receive).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        url
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// The calls, once there are so many.
    async fn wait_for(&self, count: usize) -> Vec<Call> {
        let enough = async {
            while self.calls().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let arrived = tokio::time::timeout(Duration::from_secs(5), enough).await;
        assert!(arrived.is_ok(), "{} calls of {count}", self.calls().len());
        self.calls()
    }

    async fn words(&self, count: usize) -> Vec<String> {
        self.wait_for(count).await.iter().map(Call::word).collect()
    }
}

async fn receive(State(receiver): State<Endpoint>, headers: HeaderMap, body: Bytes) -> Response {
    let body = String::from_utf8(body.to_vec()).unwrap();
    receiver.calls.lock().unwrap().push(Call {
        at: Instant::now(),
        headers,
        body,
    });
    let answer = receiver.answers.lock().unwrap().pop_front();
    if let Some(answer) = answer {
        return answer;
    }
    tokio::time::sleep(receiver.delay).await;
    StatusCode::OK.into_response()
}

fn status(status: StatusCode) -> Response {
    status.into_response()
}

/// A running delivery over a ledger.
struct Office {
    folder: TempDir,
    book: Book,
    stop: watch::Sender<bool>,
    running: JoinHandle<Result<(), DeliveryError>>,
}

impl Office {
    /// Starts delivering to agents at these URLs. `extra` is more about each webhook.
    async fn start(agents: &[(&str, &str)], extra: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), agents, extra).await
    }

    async fn start_in(folder: TempDir, agents: &[(&str, &str)], extra: &str) -> Self {
        // A ledger that was just closed is released by its threads a moment later.
        let mut opened = ledger::open(folder.path());
        for _ in 0..200 {
            if !matches!(opened, Err(LedgerError::InUse(_))) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            opened = ledger::open(folder.path());
        }
        let book = opened.unwrap();
        let mut config =
            "[matrix]\nhomeserver = \"https://x.org\"\nuser = \"@elicit:x.org\"\n".to_owned();
        let secret = format!("secret = \"{SECRET}\"");
        let secret = if extra.contains("secret") {
            ""
        } else {
            &secret
        };
        for (agent, url) in agents {
            let webhook = format!("[agents.{agent}.webhook]\nurl = \"{url}\"\n{secret}\n{extra}\n");
            let agent = format!("[agents.{agent}]\ntoken = \"{agent}-token-0123456\"\n");
            config.extend([agent, webhook]);
        }
        let config = toml::from_str(&config).unwrap();
        let (stop, stopping) = watch::channel(false);
        let running = tokio::spawn(run(book.clone(), Arc::new(config), stopping));
        Self {
            folder,
            book,
            stop,
            running,
        }
    }

    /// Tells an agent something about one of its questions; gives back the event.
    async fn announce(&self, agent: &str, id: &str, word: &str) -> Event {
        self.announce_at(agent, id, word, clock::now()).await
    }

    async fn announce_at(&self, agent: &str, id: &str, word: &str, at: Millis) -> Event {
        let draft = EventDraft {
            urgent: false,
            key: Key::new(agent, id),
            event_type: "elicitation.answered".to_owned(),
            body: json!({ "word": word }),
        };
        let agent = agent.to_owned();
        let written = self.book.write(move |ledger| {
            let before = ledger.last_event_seq()?;
            ledger.announce(&draft, true, at)?;
            Ok::<_, LedgerError>(ledger.events_after(&agent, before, 1)?.remove(0))
        });
        written.await.unwrap()
    }

    /// Waits until so many deliveries are pending and so many parked.
    async fn counts(&self, pending: u64, parked: u64) {
        let mut counts = (0, 0);
        for _ in 0..500 {
            let read = self.book.read(|ledger| ledger.delivery_counts()).await;
            counts = Result::<_, LedgerError>::unwrap(read);
            if counts == (pending, parked) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(counts, (pending, parked), "(pending, parked)");
    }

    /// Ends it in an orderly way and gives the ledger's folder.
    async fn stop(self) -> TempDir {
        self.stop.send_replace(true);
        self.running.await.unwrap().unwrap();
        self.folder
    }

    /// Ends it in the middle of whatever it does.
    async fn crash(self) -> TempDir {
        self.running.abort();
        assert!(self.running.await.unwrap_err().is_cancelled());
        self.folder
    }
}

/// Pain: webhook.
#[tokio::test]
async fn an_event_arrives_whole_and_signed_by_every_secret() {
    let receiver = Endpoint::default();
    let secrets = format!("secret = [\"{SECRET}\", \"{NEXT_SECRET}\"]");
    let office = Office::start(&[("builder", &receiver.serve().await)], &secrets).await;
    let event = office.announce("builder", "e1", "yes").await;
    let calls = receiver.wait_for(1).await;
    let expected = json!({
        "type": "elicitation.answered",
        "timestamp": timestamp(event.at),
        "data": { "word": "yes" }
    });
    assert_eq!(
        serde_json::from_str::<Value>(&calls[0].body).unwrap(),
        expected
    );
    assert_eq!(calls[0].body, envelope(&event));
    assert_eq!(calls[0].id(), event.id);
    assert_eq!(calls[0].headers["content-type"], "application/json");
    for secret in [SECRET, NEXT_SECRET] {
        let verifier = Webhook::new(secret).unwrap();
        verifier
            .verify(calls[0].body.as_bytes(), &calls[0].headers)
            .unwrap();
    }
    office.counts(0, 0).await;
    office.stop().await;
    assert_eq!(receiver.calls().len(), 1);
}

#[tokio::test]
async fn a_failure_is_tried_again_under_the_same_id_a_second_later() {
    let receiver = Endpoint::answering([status(StatusCode::SERVICE_UNAVAILABLE)]);
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    let event = office.announce("builder", "e1", "yes").await;
    let calls = receiver.wait_for(2).await;
    assert_eq!([calls[0].id(), calls[1].id()], [event.id.clone(), event.id]);
    assert_eq!(calls[0].body, calls[1].body);
    let waited = calls[1].at - calls[0].at;
    assert!(waited >= Duration::from_millis(990), "{waited:?}");
    office.counts(0, 0).await;
    // The time signed is that of the try.
    let verifier = Webhook::new(SECRET).unwrap();
    verifier
        .verify(calls[1].body.as_bytes(), &calls[1].headers)
        .unwrap();
    assert_ne!(
        calls[0].headers["webhook-timestamp"],
        calls[1].headers["webhook-timestamp"]
    );
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let elsewhere = Endpoint::default();
    let location = elsewhere.serve().await;
    let redirect = (StatusCode::TEMPORARY_REDIRECT, [("location", location)]).into_response();
    let receiver = Endpoint::answering([redirect]);
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    office.announce("builder", "e1", "yes").await;
    receiver.wait_for(2).await;
    office.counts(0, 0).await;
    assert_eq!(elsewhere.calls().len(), 0);
}

#[tokio::test]
async fn a_receiver_that_is_gone_parks_at_once_and_what_waits_goes_on() {
    let receiver = Endpoint::answering([status(StatusCode::GONE)]);
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    office.announce("builder", "e1", "one").await;
    office.counts(0, 1).await;
    office.announce("builder", "e1", "two").await;
    assert_eq!(receiver.words(2).await, ["one", "two"]);
    office.counts(0, 1).await;
}

#[tokio::test]
async fn what_failed_for_too_long_is_parked() {
    let receiver = Endpoint::answering([status(StatusCode::INTERNAL_SERVER_ERROR)]);
    let office = Office::start(
        &[("builder", &receiver.serve().await)],
        "park_after = \"1h\"",
    )
    .await;
    let long_ago = clock::now() - 3_600_000;
    office.announce_at("builder", "e1", "old", long_ago).await;
    office.counts(0, 1).await;
    assert_eq!(receiver.words(1).await, ["old"]);
}

#[tokio::test]
async fn nothing_overtakes_within_one_elicitation_and_nothing_waits_across() {
    let receiver = Endpoint::answering([status(StatusCode::BAD_GATEWAY)]);
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    office.announce("builder", "e1", "first").await;
    receiver.wait_for(1).await;
    office.announce("builder", "e1", "second").await;
    office.announce("builder", "e2", "other").await;
    assert_eq!(
        receiver.words(4).await,
        ["first", "other", "first", "second"]
    );
    office.counts(0, 0).await;
}

#[tokio::test]
async fn a_slow_webhook_delays_no_other_agent_and_gets_few_calls_at_a_time() {
    let slow = Endpoint::slow(Duration::from_mins(1));
    let quick = Endpoint::default();
    let agents = [("slow", slow.serve().await), ("quick", quick.serve().await)];
    let agents = agents.each_ref().map(|(agent, url)| (*agent, url.as_str()));
    let office = Office::start(&agents, "").await;
    for number in 0..PARALLEL + 4 {
        office.announce("slow", &format!("e{number}"), "slow").await;
    }
    slow.wait_for(PARALLEL).await;
    for number in 0..20 {
        office
            .announce("quick", &format!("e{number}"), "quick")
            .await;
    }
    quick.wait_for(20).await;
    assert_eq!(slow.calls().len(), PARALLEL);
    office.counts(PARALLEL as u64 + 4, 0).await;
}

#[tokio::test]
async fn more_than_fit_at_once_all_arrive() {
    let receiver = Endpoint::slow(Duration::from_millis(20));
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    let mut expected = Vec::new();
    for number in 0..40 {
        expected.push(
            office
                .announce("builder", &format!("e{number}"), "yes")
                .await
                .id,
        );
    }
    receiver.wait_for(40).await;
    office.counts(0, 0).await;
    let mut ids: Vec<String> = receiver.calls().iter().map(Call::id).collect();
    ids.sort();
    expected.sort();
    assert_eq!(ids, expected);
}

/// Pain: webhook.
#[tokio::test]
async fn a_crash_between_the_call_and_its_mark_sends_again_under_the_same_id() {
    let receiver = Endpoint::slow(Duration::from_millis(300));
    let url = receiver.serve().await;
    let office = Office::start(&[("builder", &url)], "").await;
    let event = office.announce("builder", "e1", "yes").await;
    receiver.wait_for(1).await;
    let folder = office.crash().await;
    let office = Office::start_in(folder, &[("builder", &url)], "").await;
    let calls = receiver.wait_for(2).await;
    assert_eq!([calls[0].id(), calls[1].id()], [event.id.clone(), event.id]);
    office.counts(0, 0).await;
    let folder = office.stop().await;
    // Once it is marked, no start sends it again.
    let office = Office::start_in(folder, &[("builder", &url)], "").await;
    office.announce("builder", "e2", "more").await;
    assert_eq!(receiver.words(3).await, ["yes", "yes", "more"]);
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_tried_again() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let office = Office::start(&[("builder", &format!("http://{address}/"))], "").await;
    office.announce("builder", "e1", "yes").await;
    let receiver = Endpoint::default();
    let listener = TcpListener::bind(address).await.unwrap();
    let routes = Router::new().fallback(receive).with_state(receiver.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    assert_eq!(receiver.words(1).await, ["yes"]);
    office.counts(0, 0).await;
}

#[tokio::test]
async fn a_stop_lets_the_call_in_hand_finish() {
    let receiver = Endpoint::slow(Duration::from_millis(500));
    let url = receiver.serve().await;
    let office = Office::start(&[("builder", &url)], "").await;
    office.announce("builder", "e1", "yes").await;
    receiver.wait_for(1).await;
    let book = office.book.clone();
    let _folder = office.stop().await;
    let counts: Result<_, LedgerError> = book.read(|ledger| ledger.delivery_counts()).await;
    assert_eq!(counts.unwrap(), (0, 0));
}

#[tokio::test]
async fn without_webhooks_it_waits_for_the_end() {
    let office = Office::start(&[], "").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!office.running.is_finished());
    office.stop().await;
}

#[tokio::test]
async fn whoever_missed_some_notes_looks_for_himself() {
    let event = |agent: &str| Note::Event(agent.to_owned());
    let (notes, mut heard) = broadcast::channel(4);
    notes.send(event("builder")).unwrap();
    assert!(woken(&mut heard, "builder").await);
    // Its own note is among those that were dropped.
    notes.send(event("builder")).unwrap();
    for _ in 0..4 {
        notes.send(event("tester")).unwrap();
    }
    let woke = tokio::time::timeout(Duration::from_secs(1), woken(&mut heard, "builder")).await;
    assert_eq!(woke, Ok(true));
    // What is another's wakes nobody; the end of the ledger is the end.
    let mut heard = notes.subscribe();
    notes.send(Note::Outbox("!r:x.org".to_owned())).unwrap();
    notes.send(event("tester")).unwrap();
    drop(notes);
    assert!(!woken(&mut heard, "builder").await);
}

#[tokio::test]
async fn a_try_that_is_due_again_waits_for_a_free_place_too() {
    let mut receiver = Endpoint::slow(Duration::from_mins(1));
    receiver.answers = Arc::new(Mutex::new(VecDeque::from([status(
        StatusCode::SERVICE_UNAVAILABLE,
    )])));
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    office.announce("builder", "e0", "first").await;
    receiver.wait_for(1).await;
    for number in 1..=PARALLEL {
        office
            .announce("builder", &format!("e{number}"), "slow")
            .await;
    }
    receiver.wait_for(1 + PARALLEL).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(receiver.calls().len(), 1 + PARALLEL);
}

#[tokio::test]
async fn why_a_call_failed_says_nothing_secret() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?key=shh", closed.local_addr().unwrap());
    drop(closed);
    let webhook = format!("url = \"{url}\"\nsecret = \"{SECRET}\"");
    let hook = Hook::new(
        webhook::client().unwrap(),
        &toml::from_str(&webhook).unwrap(),
    )
    .unwrap();
    let event = Event {
        seq: 1,
        id: "evt_1".to_owned(),
        key: Key::new("builder", "e1"),
        event_type: "elicitation.open".to_owned(),
        at: 0,
        body: Value::Null,
    };
    let outcome = hook.post(&event, 0).await;
    let webhook::Outcome::Failed {
        why,
        retry_after: None,
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert!(why.starts_with("no connection: "), "{why}");
    assert!(!why.contains("shh") && !why.contains("hook"), "{why}");
}
