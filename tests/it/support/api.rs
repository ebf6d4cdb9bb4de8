//! An agent's side: the HTTP API as an agent uses it.

use std::{collections::VecDeque, time::Duration};

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use super::SOON;

/// An agent with its token, or somebody without one.
#[derive(Clone)]
pub struct Api {
    base: String,
    token: Option<String>,
    http: reqwest::Client,
}

impl Api {
    /// At `base`, such as `http://127.0.0.1:8080`.
    pub fn new(base: &str, token: &str) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .redirect(reqwest::redirect::Policy::none())
            .timeout(SOON + SOON)
            .build()
            .unwrap();
        Self {
            base: base.to_owned(),
            token: Some(token.to_owned()).filter(|token| !token.is_empty()),
            http,
        }
    }

    /// The same API, asked with another token; with an empty one, without any.
    pub fn with_token(&self, token: &str) -> Self {
        Self::new(&self.base, token)
    }

    /// A request that is not covered below: add a body and headers, then `send`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// `POST /v1/elicitations`: status and body, as below.
    pub async fn ask(&self, request: &Value) -> (StatusCode, Value) {
        answer_to(self.request(Method::POST, "/v1/elicitations").json(request)).await
    }

    /// Asks, and insists that it was taken; the object.
    pub async fn ask_fine(&self, request: &Value) -> Value {
        let (status, object) = self.ask(request).await;
        assert_eq!(status, StatusCode::CREATED, "{object:#}");
        object
    }

    /// `GET /v1/elicitations/{id}`.
    pub async fn get(&self, id: &str) -> (StatusCode, Value) {
        self.get_path(&format!("/v1/elicitations/{id}")).await
    }

    /// `GET /v1/elicitations/{id}?wait=SECONDS`.
    pub async fn get_waiting(&self, id: &str, seconds: u64) -> (StatusCode, Value) {
        self.get_path(&format!("/v1/elicitations/{id}?wait={seconds}"))
            .await
    }

    /// `GET /v1/elicitations` with a query such as `?state=open`, or an empty one.
    pub async fn list(&self, query: &str) -> (StatusCode, Value) {
        self.get_path(&format!("/v1/elicitations{query}")).await
    }

    /// `DELETE /v1/elicitations/{id}`.
    pub async fn cancel(&self, id: &str) -> (StatusCode, Value) {
        answer_to(self.request(Method::DELETE, &format!("/v1/elicitations/{id}"))).await
    }

    /// The object once it is in one of these states, long-polling. Fails if it ends in another.
    pub async fn until(&self, id: &str, wanted: &[&str]) -> Value {
        let is_there = |object: &Value| {
            object["state"]
                .as_str()
                .is_some_and(|state| wanted.contains(&state))
        };
        let mut last = Value::Null;
        let found = async {
            loop {
                let (status, object) = self.get(id).await;
                assert_eq!(status, StatusCode::OK, "{object:#}");
                if is_there(&object) {
                    return object;
                }
                let (status, object) = self.get_waiting(id, 1).await;
                assert_eq!(status, StatusCode::OK, "{object:#}");
                if is_there(&object) {
                    return object;
                }
                let state = object["state"].as_str().unwrap_or_default();
                assert!(
                    ["queued", "open"].contains(&state),
                    "{id} should be {wanted:?}: {object:#}"
                );
                last = object;
            }
        };
        let Ok(object) = tokio::time::timeout(SOON, found).await else {
            panic!("{id} did not become {wanted:?}: {last:#}");
        };
        object
    }

    /// The object once its card is in the room.
    pub async fn until_open(&self, id: &str) -> Value {
        self.until(id, &["open"]).await
    }

    /// The object once it is answered.
    pub async fn until_answered(&self, id: &str) -> Value {
        self.until(id, &["answered"]).await
    }

    /// `GET /v1/events`, from now on or after an event id.
    ///
    /// # Errors
    /// Status and body, if the answer is no stream.
    pub async fn events(
        &self,
        last_event_id: Option<&str>,
    ) -> Result<EventStream, (StatusCode, Value)> {
        let mut request = self.request(Method::GET, "/v1/events");
        if let Some(id) = last_event_id {
            request = request.header("Last-Event-ID", id);
        }
        let response = request.send().await.unwrap();
        if response.status() != StatusCode::OK {
            let status = response.status();
            return Err((status, response.json().await.unwrap()));
        }
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        Ok(EventStream {
            response,
            unread: Vec::new(),
            frames: VecDeque::new(),
        })
    }

    /// `GET /metrics`, as text.
    pub async fn metrics(&self) -> String {
        self.request(Method::GET, "/metrics")
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    }

    /// The number behind a metric, labels included in `name` as they are printed.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let text = self.metrics().await;
        let line = text.lines().find(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(' '))
        })?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Whether `GET /readyz` answers 200.
    pub async fn is_ready(&self) -> bool {
        let asked = self.request(Method::GET, "/readyz").send().await;
        asked.is_ok_and(|response| response.status() == StatusCode::OK)
    }

    async fn get_path(&self, path: &str) -> (StatusCode, Value) {
        answer_to(self.request(Method::GET, path)).await
    }
}

/// Status and JSON body; a body that is no JSON comes as a string.
async fn answer_to(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    (
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

/// One event of `/v1/events`.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamedEvent {
    /// What to resume after.
    pub id: String,
    /// Such as `elicitation.answered`.
    pub kind: String,
    /// `{"type", "timestamp", "data"}`.
    pub body: Value,
}

/// A reader of server-sent events.
pub struct EventStream {
    response: reqwest::Response,
    unread: Vec<u8>,
    frames: VecDeque<StreamedEvent>,
}

impl EventStream {
    /// The next event; fails if none comes.
    pub async fn next(&mut self) -> StreamedEvent {
        self.next_within(SOON).await.expect("an event in time")
    }

    /// The next event of this type, passing over others.
    pub async fn next_of(&mut self, kind: &str) -> StreamedEvent {
        loop {
            let event = self.next().await;
            if event.kind == kind {
                return event;
            }
        }
    }

    /// The next event, or `None` if there is none in time or the stream has ended.
    pub async fn next_within(&mut self, limit: Duration) -> Option<StreamedEvent> {
        let read = async {
            while self.frames.is_empty() {
                let chunk = self.response.chunk().await.ok()??;
                self.unread.extend_from_slice(&chunk);
                self.take_frames();
            }
            self.frames.pop_front()
        };
        tokio::time::timeout(limit, read).await.ok().flatten()
    }

    /// A frame ends with an empty line; one without fields, such as a comment, is no event.
    fn take_frames(&mut self) {
        while let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
            let frame: Vec<u8> = self.unread.drain(..end + 2).collect();
            let frame = String::from_utf8(frame).unwrap();
            let field = |name: &str| {
                let mut values = frame.lines().filter_map(|line| {
                    let value = line.strip_prefix(name)?.strip_prefix(':')?;
                    Some(value.strip_prefix(' ').unwrap_or(value).to_owned())
                });
                values.next()
            };
            if let Some(body) = field("data") {
                self.frames.push_back(StreamedEvent {
                    id: field("id").expect("every event has an id"),
                    kind: field("event").expect("every event has a type"),
                    body: serde_json::from_str(&body).unwrap(),
                });
            }
        }
    }
}
