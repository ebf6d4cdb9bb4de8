//! Where an agent's webhooks go: remembers what comes, and answers as it is told.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use super::SOON;

/// What the sink does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkAnswer {
    /// Answers with this status.
    Status(u16),
    /// Takes the request and never answers.
    Hang,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Received {
    /// The `webhook-id` header.
    pub id: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The body to the byte.
    pub body: Bytes,
    /// The body as JSON.
    pub json: Value,
    /// What was wrong with the signature, if anything was.
    pub signature: Result<(), String>,
}

struct Inner {
    secret: Webhook,
    received: Mutex<Vec<Received>>,
    answer: Mutex<SinkAnswer>,
    count: watch::Sender<usize>,
}

/// A receiver of webhooks on loopback, for as long as this lives.
pub struct WebhookSink {
    secret: String,
    url: String,
    inner: Arc<Inner>,
    server: JoinHandle<()>,
}

impl WebhookSink {
    /// One with a secret of its own, which answers 204.
    pub async fn start() -> Self {
        use base64::Engine as _;

        let key: [u8; 32] = rand::random();
        let secret = format!(
            "whsec_{}",
            base64::engine::general_purpose::STANDARD.encode(key)
        );
        let inner = Arc::new(Inner {
            secret: Webhook::new(&secret).unwrap(),
            received: Mutex::default(),
            answer: Mutex::new(SinkAnswer::Status(204)),
            count: watch::Sender::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/hook", post(take))
            .with_state(inner.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            secret,
            url,
            inner,
            server,
        }
    }

    /// Where to send webhooks.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The secret to sign them with, `whsec_…`.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// From now on, answers like this.
    pub fn answer_with(&self, answer: SinkAnswer) {
        *self.inner.answer.lock().unwrap() = answer;
    }

    /// Everything that came, refused or not, in the order it came.
    pub fn received(&self) -> Vec<Received> {
        self.inner.received.lock().unwrap().clone()
    }

    /// Everything that came, once it is at least so many.
    pub async fn wait_for_count(&self, count: usize) -> Vec<Received> {
        let mut counted = self.inner.count.subscribe();
        let enough = tokio::time::timeout(SOON, counted.wait_for(|now| *now >= count)).await;
        let received = self.received();
        assert!(
            enough.is_ok(),
            "waited in vain for {count} webhooks: {received:#?}"
        );
        received
    }

    /// The first request of this type, such as `elicitation.answered`.
    pub async fn wait_for_type(&self, kind: &str) -> Received {
        let mut count = 0;
        loop {
            let received = self.wait_for_count(count).await;
            count = received.len() + 1;
            if let Some(hit) = received.into_iter().find(|one| one.json["type"] == kind) {
                return hit;
            }
        }
    }
}

impl Drop for WebhookSink {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn take(State(sink): State<Arc<Inner>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let id = headers
        .get("webhook-id")
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default();
    let received = Received {
        id: id.to_owned(),
        json: serde_json::from_slice(&body).unwrap_or_default(),
        signature: sink
            .secret
            .verify(&body, &headers)
            .map_err(|error| error.to_string()),
        headers,
        body,
    };
    sink.received.lock().unwrap().push(received);
    sink.count.send_modify(|count| *count += 1);
    let answer = *sink.answer.lock().unwrap();
    match answer {
        SinkAnswer::Status(status) => StatusCode::from_u16(status).unwrap(),
        SinkAnswer::Hang => std::future::pending().await,
    }
}
