//! The demo's agent: asks over HTTP, waits by long-poll, and has a webhook as well.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
    task::JoinHandle,
};

use super::stage::Settings;

/// Longer than a long-poll.
const REQUEST_LIMIT: Duration = Duration::from_secs(70);
const WAIT_SECONDS: &str = "55";
/// A bot that has just been let into a room may not have heard of it yet.
const TRIES_TO_ASK: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// The id under which the bot knows the agent.
const ID: &str = "agt_31d0";

/// Who asks in the demo.
pub struct Agent {
    token: String,
    /// The secret for webhooks, `whsec_…`.
    secret: String,
    webhook_url: String,
    http: reqwest::Client,
    received: Mutex<mpsc::Receiver<WebhookRequest>>,
    server: JoinHandle<()>,
}

/// A webhook whose signature holds.
#[derive(Debug)]
pub struct WebhookRequest {
    /// Its id, the same however often it is sent.
    pub id: String,
    /// `{"type", "timestamp", "data"}`.
    pub body: Value,
}

struct Receiver {
    secret: Webhook,
    received: mpsc::Sender<WebhookRequest>,
}

impl Agent {
    /// With fresh secrets, and a receiver of webhooks on loopback.
    pub async fn start() -> anyhow::Result<Self> {
        let secret = format!("whsec_{}", STANDARD.encode(rand::random::<[u8; 32]>()));
        let (take_in, received) = mpsc::channel(64);
        let webhooks = Receiver {
            secret: Webhook::new(&secret)?,
            received: take_in,
        };
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("opening a port")?;
        let webhook_url = format!("http://{}/webhook", listener.local_addr()?);
        let router = Router::new()
            .route("/webhook", post(take))
            .with_state(Arc::new(webhooks));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the webhook receiver stopped: {error}");
            }
        });
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(REQUEST_LIMIT)
            .build()?;
        let token = STANDARD.encode(rand::random::<[u8; 32]>());
        Ok(Self {
            token,
            secret,
            webhook_url,
            http,
            received: received.into(),
            server,
        })
    }

    /// What the bot has to know of it.
    pub fn settings(&self) -> Settings {
        let agent = json!({
            "name": "Builder",
            "token": "env:AGENT_TOKEN",
            "rooms": ["*"],
            "webhook": {"url": self.webhook_url, "secret": "env:WEBHOOK_SECRET"},
        });
        Settings {
            config: json!({"http": {"listen": "127.0.0.1:0"}, "agents": {ID: agent}}),
            secrets: vec![
                ("AGENT_TOKEN", self.token.clone()),
                ("WEBHOOK_SECRET", self.secret.clone()),
            ],
        }
    }

    /// Asks; the elicitation as the bot took it.
    pub async fn ask(&self, api: &str, request: &Value) -> anyhow::Result<Value> {
        let url = format!("{api}/v1/elicitations");
        let mut answer = Value::Null;
        for _ in 0..TRIES_TO_ASK {
            let asking = self.http.post(&url).bearer_auth(&self.token).json(request);
            let response = asking.send().await.context("asking the bot")?;
            let taken = response.status().is_success();
            answer = response.json().await.context("reading the bot's answer")?;
            if taken {
                return Ok(answer);
            }
            if answer["error"]["code"] != "ROOM_NOT_JOINED" {
                break;
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
        bail!("the bot refused the question: {answer}")
    }

    /// The elicitation once it is closed, by long-polls one after the other.
    pub async fn wait_until_closed(&self, api: &str, id: &str) -> anyhow::Result<Value> {
        let url = format!("{api}/v1/elicitations/{id}?wait={WAIT_SECONDS}");
        loop {
            let waiting = self.http.get(&url).bearer_auth(&self.token).send();
            let response = waiting.await.context("waiting for the answer")?;
            let found = response.status().is_success();
            let object: Value = response.json().await.context("reading the bot's answer")?;
            if !found {
                bail!("the bot does not tell of the question: {object}");
            }
            if object["closed_at"].is_string() {
                return Ok(object);
            }
        }
    }

    /// The first webhook of this type.
    pub async fn webhook(&self, kind: &str, limit: Duration) -> anyhow::Result<WebhookRequest> {
        let mut received = self.received.lock().await;
        let first = async {
            while let Some(request) = received.recv().await {
                if request.body["type"] == kind {
                    return Some(request);
                }
            }
            None
        };
        let first = tokio::time::timeout(limit, first).await.ok().flatten();
        first.with_context(|| format!("no webhook {kind} within {} s", limit.as_secs()))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn take(
    State(receiver): State<Arc<Receiver>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    if receiver.secret.verify(&body, &headers).is_err() {
        return StatusCode::UNAUTHORIZED;
    }
    let id = headers
        .get("webhook-id")
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default();
    let Ok(body) = serde_json::from_slice(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    match receiver
        .received
        .send(WebhookRequest {
            id: id.to_owned(),
            body,
        })
        .await
    {
        Ok(()) => StatusCode::NO_CONTENT,
        Err(_) => StatusCode::GONE,
    }
}

/// The contract's own example: "built: a question with two options".
pub fn question(room: &str) -> Value {
    json!({
        "room": room,
        "elicitation_id": "elc_7f3c",
        "board_id": "brd_7c1f",
        "card_id": "crd_51d0",
        "run_id": "run_12",
        "stage_key": "build",
        "card_title": "Upgrade the build image",
        "prompt": "The tests need network access. May I run them?",
        "options": [
            {"id": "run_them", "label": "Run the tests"},
            {"id": "skip", "label": "Skip them"},
        ],
        "deep_link": "https://superpipeline.dev/b/brd_7c1f/c/crd_6b40",
    })
}
