//! Agents' sessions over a real homeserver: what agents do in them, and what people say.

mod connecting;
mod correcting;
mod example;
mod living;
mod selecting;
mod stopping;

use matrix_elicit::sandbox::{Person, RoomOptions};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::stage::{has_joined, people};
use crate::support::{
    AGENT, Api, BotConfig, BotProcess, Received, SOON, WebhookSink, homeserver, soon,
};

/// The other agent, and the token it has.
pub const SCOUT: &str = "agt_scout";
const SCOUTS_TOKEN: &str = "token-of-the-scout-of-the-tests";

/// A room with two people and two agents: the builder, and the scout. Both are told by webhook.
pub struct Team {
    pub bot: BotProcess,
    pub ada: Person,
    pub ben: Person,
    pub room: String,
    pub builder: Worker,
    pub scout: Worker,
}

/// An agent: its calls and its webhook.
pub struct Worker {
    pub api: Api,
    pub sink: WebhookSink,
}

impl Team {
    pub async fn new() -> Self {
        Self::with(|config| config).await
    }

    /// With the configuration changed.
    pub async fn with(change: impl FnOnce(BotConfig) -> BotConfig) -> Self {
        let (ada, ben) = people().await;
        Self::of(ada, ben, change).await
    }

    /// Of these people, for a configuration that has to name them.
    pub async fn of(ada: Person, ben: Person, change: impl FnOnce(BotConfig) -> BotConfig) -> Self {
        let (builders, scouts) = (WebhookSink::start().await, WebhookSink::start().await);
        let config = BotConfig::new(homeserver().await)
            .await
            .with_webhook(&builders)
            .with_path(&["agents", AGENT, "call"], json!("builder"))
            .with_path(
                &["agents", SCOUT],
                json!({
                    "name": "Scout", "call": "scout", "token": SCOUTS_TOKEN,
                    "webhook": {"url": scouts.url(), "secret": scouts.secret()},
                }),
            );
        let config = change(config);
        let options = RoomOptions {
            invite: vec![ben.user_id().to_owned(), config.user_id().to_owned()],
            ..RoomOptions::default()
        };
        let room = ada.create_room(&options).await.unwrap();
        ben.join(&room).await.unwrap();
        let bot = BotProcess::start(config).await;
        has_joined(&bot, &room).await;
        let api = bot.api();
        Self {
            builder: Worker {
                api: api.with_token(bot.config().token()),
                sink: builders,
            },
            scout: Worker {
                api: api.with_token(SCOUTS_TOKEN),
                sink: scouts,
            },
            bot,
            ada,
            ben,
            room,
        }
    }

    /// Ada addresses the builder; the session once its root is in the room.
    pub async fn begin(&self, words: &str) -> Value {
        let before = self.builder.sink.received().len();
        self.ada
            .send_text(&self.room, &format!("builder: {words}"))
            .await
            .unwrap();
        let told = self.builder.told(before, "created").await;
        self.rooted(
            &self.builder,
            told.json["agent_session"]["id"].as_str().unwrap(),
        )
        .await
    }

    /// A session once its root is in the room.
    pub async fn rooted(&self, worker: &Worker, id: &str) -> Value {
        soon("the root of the session", async || {
            let session = worker.session(id).await;
            session["thread"].is_string().then_some(session)
        })
        .await
    }

    /// Somebody says something in a session's thread; the event.
    pub async fn says(&self, who: &Person, session: &Value, words: &str) -> String {
        who.in_thread(&self.room, session["thread"].as_str().unwrap(), words)
            .await
            .unwrap()
    }

    /// Waits for something of the bot in the room.
    pub async fn seen(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let bot = self.bot.user_id();
        let wanted = |event: &Value| event["sender"] == bot && wanted(event);
        self.ada
            .wait_for(&self.room, what, SOON, wanted)
            .await
            .unwrap()
    }

    /// The text of the latest form of a session's root, once it holds these words.
    pub async fn root_says(&self, session: &Value, words: &str) -> String {
        let root = session["thread"].as_str().unwrap();
        let event = self
            .seen(&format!("the root to say {words:?}"), |event| {
                let is_root = event["event_id"] == root
                    || event["content"]["m.relates_to"]["event_id"] == root
                        && event["content"]["m.relates_to"]["rel_type"] == "m.replace";
                is_root && newest(event).contains(words)
            })
            .await;
        newest(&event).to_owned()
    }

    /// A message of the bot in a session's thread that holds these words.
    pub async fn in_thread(&self, session: &Value, words: &str) -> Value {
        let root = session["thread"].as_str().unwrap();
        self.seen(&format!("{words:?} in the thread"), |event| {
            let relation = &event["content"]["m.relates_to"];
            relation["rel_type"] == "m.thread"
                && relation["event_id"] == root
                && newest(event).contains(words)
        })
        .await
    }
}

impl Worker {
    /// Calls the API; status and body.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self.api.request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }

    /// Begins a session.
    pub async fn begin(&self, request: Value) -> Value {
        let (status, session) = self.call(Method::POST, "/v1/sessions", Some(request)).await;
        assert_eq!(status, StatusCode::CREATED, "{session:#}");
        session
    }

    /// The session as it stands.
    pub async fn session(&self, id: &str) -> Value {
        let (status, session) = self
            .call(Method::GET, &format!("/v1/sessions/{id}"), None)
            .await;
        assert_eq!(status, StatusCode::OK, "{session:#}");
        session
    }

    /// The session once it is of this status.
    pub async fn until(&self, session: &Value, status: &str) -> Value {
        soon(&format!("the session to be {status}"), async || {
            let now = self.session(id(session)).await;
            (now["status"] == status).then_some(now)
        })
        .await
    }

    /// Does something in a session; status and body.
    pub async fn tries(&self, session: &Value, activity: Value) -> (StatusCode, Value) {
        let path = format!("/v1/sessions/{}/activities", id(session));
        self.call(Method::POST, &path, Some(activity)).await
    }

    /// Does something in a session that takes it.
    pub async fn does(&self, session: &Value, activity: Value) -> Value {
        let (status, taken) = self.tries(session, activity).await;
        assert_eq!(status, StatusCode::CREATED, "{taken:#}");
        taken
    }

    /// Says something in a session: a thought, an action, a response …
    pub async fn says(&self, session: &Value, kind: &str, body: &str) -> Value {
        self.does(session, json!({"content": {"type": kind, "body": body}}))
            .await
    }

    /// What was said in a session.
    pub async fn activities(&self, session: &Value) -> Vec<Value> {
        let path = format!("/v1/sessions/{}/activities", id(session));
        let (status, mut page) = self.call(Method::GET, &path, None).await;
        assert_eq!(status, StatusCode::OK, "{page:#}");
        serde_json::from_value(page["activities"].take()).unwrap()
    }

    /// The first event of this action among those that came after so many.
    pub async fn told(&self, after: usize, action: &str) -> Received {
        let mut count = after;
        loop {
            let received = self.sink.wait_for_count(count).await;
            count = received.len() + 1;
            let mut later = received.into_iter().skip(after);
            if let Some(hit) = later.find(|one| one.json["action"] == action) {
                assert_eq!(hit.signature, Ok(()));
                return hit;
            }
        }
    }

    /// How many events came until now.
    pub fn count(&self) -> usize {
        self.sink.received().len()
    }
}

/// The id of a session.
pub fn id(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

/// The text of a message; of an edit, the new one.
pub fn newest(event: &Value) -> &str {
    let content = &event["content"];
    let content = content.get("m.new_content").unwrap_or(content);
    content["body"].as_str().unwrap_or_default()
}

/// The `select` of the source document.
pub fn which_environment() -> Value {
    json!({
        "content": { "type": "elicitation", "body": "Which environment should I deploy to?" },
        "signal": "select",
        "signal_metadata": {
            "options": [
                { "value": "staging", "label": "Staging" },
                { "value": "production", "label": "Production" }
            ]
        }
    })
}
