//! The calls to a board's API.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::people::Credential;
use crate::calls::{BodyFault, body_of, cause, retry_after};
use crate::config::BoardConfig;
use crate::contract::board::{MAX_REFUSAL_BYTES, Verdict, code_in};
use crate::secret::Secret;

/// The longest list of what is pending, in bytes.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

/// One board's API.
#[derive(Debug, Clone)]
pub struct BoardClient {
    http: Client,
    base_url: Url,
    board_id: String,
    agent_token: Secret,
    /// What the board is to sign its pushes with; a configuration has at least one.
    push_secret: Option<Secret>,
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Given {
    /// The option with this id.
    Option(String),
    /// Words of their own.
    Text(String),
}

/// A board did not do what the bot asked of it. It says nothing about any question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unread {
    /// In a few words, without anything secret.
    pub why: String,
    /// How long the board asked to be left alone.
    pub retry_after: Option<Duration>,
}

impl Unread {
    fn because(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            retry_after: None,
        }
    }
}

impl BoardClient {
    /// The board that a configuration describes.
    pub fn new(http: Client, board_id: &str, config: &BoardConfig) -> Self {
        Self {
            http,
            base_url: config.base_url.clone(),
            board_id: board_id.to_owned(),
            agent_token: config.agent_token.clone(),
            push_secret: config.push_secrets.first().cloned(),
        }
    }

    /// Everything that is pending on the board, an entry each, as it came.
    pub async fn pending(&self) -> Result<Vec<Value>, Unread> {
        let url = self
            .address(&["elicitations", "pending"])
            .ok_or_else(nowhere)?;
        let response = self.as_agent(self.http.get(url)).await?;
        if response.status() != StatusCode::OK {
            return Err(refused(response).await);
        }
        let body = body_of(response, MAX_LIST_BYTES)
            .await
            .map_err(|fault| Unread::because(fault.to_string()))?;
        // What the parser says of a mistake may repeat some of the text.
        let body =
            serde_json::from_slice(&body).map_err(|_| Unread::because("the answer is not JSON"))?;
        match body {
            Value::Object(mut body) => match body.remove("elicitations") {
                Some(Value::Array(entries)) => Ok(entries),
                _ => Err(Unread::because("the answer has no list of elicitations")),
            },
            _ => Err(Unread::because("the answer has no list of elicitations")),
        }
    }

    /// Has the board push these events to an address, signed with the first push secret. Doing so
    /// again changes nothing, or heals what was lost.
    pub async fn subscribe(&self, push_url: &Url, events: &[&str]) -> Result<(), Unread> {
        let url = self.address(&["push-configs"]).ok_or_else(nowhere)?;
        let Some(secret) = &self.push_secret else {
            return Err(Unread::because("there is no push secret"));
        };
        let body = json!({ "url": push_url, "token": secret.expose(), "events": events });
        let response = self.as_agent(self.http.post(url).json(&body)).await?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(refused(response).await)
        }
    }

    /// Answers a question as the person who did.
    pub async fn answer(
        &self,
        elicitation_id: &str,
        given: &Given,
        as_whom: &Credential,
    ) -> Verdict {
        let failed = |why| Verdict::Failed {
            why,
            retry_after: None,
        };
        let Some(url) = self.address(&["elicitations", elicitation_id, "answer"]) else {
            return failed(nowhere().why);
        };
        let body = match given {
            Given::Option(id) => json!({ "option": id }),
            Given::Text(text) => json!({ "text": text }),
        };
        let request = self.http.post(url).json(&body);
        let request = match as_whom {
            Credential::Bearer(token) => request.bearer_auth(token.expose()),
            Credential::Dev { tenant, user } => request
                .header("X-Tenant-Id", tenant)
                .header("X-User-Id", user),
        };
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return failed(cause(error)),
        };
        let status = response.status();
        let wait = retry_after(&response);
        if status.is_success() {
            return Verdict::of(status.as_u16(), wait, &[]);
        }
        // One that is too long has no code in it. One that broke off might have had.
        match body_of(response, MAX_REFUSAL_BYTES).await {
            Ok(body) => Verdict::of(status.as_u16(), wait, &body),
            Err(BodyFault::TooLong(_)) => Verdict::of(status.as_u16(), wait, &[]),
            Err(BodyFault::Broken(why)) => failed(why),
        }
    }

    /// Below the board's own address. None where a part cannot stand in an address: whoever
    /// reads one takes it for a way up, or for nothing.
    fn address(&self, rest: &[&str]) -> Option<Url> {
        let mut url = self.base_url.clone();
        let parts = ["v1", "boards", &self.board_id];
        let parts = parts.into_iter().chain(rest.iter().copied());
        let mut segments = url.path_segments_mut().ok()?;
        segments.pop_if_empty();
        for part in parts {
            if matches!(part, "" | "." | "..") {
                return None;
            }
            segments.push(part);
        }
        drop(segments);
        Some(url)
    }

    async fn as_agent(&self, request: RequestBuilder) -> Result<Response, Unread> {
        let request = request.bearer_auth(self.agent_token.expose());
        request
            .send()
            .await
            .map_err(|error| Unread::because(cause(error)))
    }
}

fn nowhere() -> Unread {
    Unread::because("an id cannot be part of an address")
}

async fn refused(response: Response) -> Unread {
    let status = response.status().as_u16();
    let retry_after = retry_after(&response);
    let body = body_of(response, MAX_REFUSAL_BYTES).await;
    let why = match body.ok().and_then(|body| code_in(&body)) {
        Some(code) => format!("HTTP {status} {code}"),
        None => format!("HTTP {status}"),
    };
    Unread { why, retry_after }
}
