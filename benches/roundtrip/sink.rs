//! Where the agent's webhooks go: notes when each came, and takes it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Router, routing::post};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What came, by elicitation and type; of sessions by session and signal.
#[derive(Default)]
struct Inner {
    came: Mutex<HashMap<(String, String), Instant>>,
    count: watch::Sender<usize>,
}

/// A receiver of webhooks.
pub struct Sink {
    pub url: String,
    inner: Arc<Inner>,
}

impl Sink {
    pub async fn start() -> Self {
        let inner = Arc::<Inner>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let routes = Router::new()
            .route("/", post(take))
            .with_state(inner.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, inner }
    }

    /// When something about a question came, once it has.
    pub async fn came(&self, id: &str, kind: &str) -> Instant {
        let mut counted = self.inner.count.subscribe();
        let wanted = (id.to_owned(), kind.to_owned());
        loop {
            counted.borrow_and_update();
            if let Some(came) = self.inner.came.lock().expect("no panic").get(&wanted) {
                return *came;
            }
            counted.changed().await.expect("a sink");
        }
    }

    /// How many have come.
    pub fn count(&self) -> usize {
        *self.inner.count.borrow()
    }

    /// Waits until so many have come.
    pub async fn until(&self, count: usize) {
        let mut counted = self.inner.count.subscribe();
        let enough = counted.wait_for(|now| *now >= count);
        enough.await.expect("a sink");
    }
}

async fn take(State(sink): State<Arc<Inner>>, body: Bytes) -> StatusCode {
    let now = Instant::now();
    let event: Value = serde_json::from_slice(&body).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Of a session there is no envelope: what counts is whether it is to stop.
    let key = match event.get("agent_session") {
        Some(session) => {
            let signal = &event["agent_activity"]["signal"];
            let kind = if signal.is_string() {
                signal
            } else {
                &event["agent_activity"]["id"]
            };
            (text(&session["id"]), text(kind))
        }
        None => (text(&event["data"]["elicitation_id"]), text(&event["type"])),
    };
    let mut came = sink.came.lock().expect("no panic");
    came.entry(key).or_insert(now);
    let count = came.len();
    drop(came);
    sink.count.send_replace(count);
    StatusCode::NO_CONTENT
}
