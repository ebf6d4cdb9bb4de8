//! What goes wrong, and when.

use std::collections::{BTreeMap, VecDeque};

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use serde_json::json;

use super::call::Endpoint;

/// One way in which an answer goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// What was asked for is done; the answer breaks off in the middle.
    Cut,
    /// What was asked for is done; the answer never comes.
    Unanswered,
    /// Nothing is done, and no answer comes.
    Hang,
    /// Nothing is done; this status with this body.
    Status(u16, String),
    /// Nothing is done: too many requests. For so many seconds by the header, and so many
    /// milliseconds by the body.
    Limited {
        header: Option<u64>,
        body: Option<u64>,
    },
    /// What was asked for is done; the answer is 200 and something that is no JSON.
    NoJson,
    /// Of a sync: its last answer again, to the byte.
    Replay,
    /// Of a sync: what is new, under the token that was asked with.
    SameToken,
    /// Of a sync: what the last answer held once more, with what is new.
    Overlap,
}

impl Fault {
    /// A proxy that finds nobody behind it.
    pub fn unavailable() -> Self {
        Self::Status(503, "<html>503 Service Unavailable</html>".to_owned())
    }

    /// A refusal by the homeserver itself.
    pub fn refused(status: u16, code: &str) -> Self {
        let body = json!({"errcode": code, "error": "refused by the script"});
        Self::Status(status, body.to_string())
    }

    /// Whether the endpoint does what it is asked for.
    pub(super) fn is_carried_out(&self) -> bool {
        !matches!(self, Self::Hang | Self::Status(..) | Self::Limited { .. })
    }

    /// Whether it needs no news to happen to a sync.
    pub(super) fn is_immediate(&self) -> bool {
        !self.is_carried_out() || matches!(self, Self::NoJson | Self::Replay)
    }
}

/// What is to go wrong.
#[derive(Debug, Default)]
pub(super) struct Script {
    once: BTreeMap<Endpoint, VecDeque<Fault>>,
    always: BTreeMap<Endpoint, Fault>,
}

impl Script {
    pub(super) fn once(&mut self, endpoint: Endpoint, fault: Fault) {
        self.once.entry(endpoint).or_default().push_back(fault);
    }

    pub(super) fn always(&mut self, endpoint: Endpoint, fault: Fault) {
        self.always.insert(endpoint, fault);
    }

    pub(super) fn is_over(&self) -> bool {
        self.always.is_empty() && self.once.values().all(VecDeque::is_empty)
    }

    /// What happens to the next answer of an endpoint.
    pub(super) fn next(&self, endpoint: Endpoint) -> Option<Fault> {
        let once = self.once.get(&endpoint).and_then(VecDeque::front);
        once.or_else(|| self.always.get(&endpoint)).cloned()
    }

    /// The same, which is happening now.
    pub(super) fn take(&mut self, endpoint: Endpoint) -> Option<Fault> {
        let once = self.once.get_mut(&endpoint).and_then(VecDeque::pop_front);
        once.or_else(|| self.always.get(&endpoint).cloned())
    }
}

/// An answer, whole or broken.
pub(super) async fn respond(status: u16, body: String, fault: Option<&Fault>) -> Response {
    match fault {
        Some(Fault::Hang | Fault::Unanswered) => std::future::pending().await,
        Some(Fault::Status(status, body)) => whole(*status, body.clone(), None),
        Some(Fault::Limited {
            header,
            body: wait_ms,
        }) => {
            let mut body = json!({"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests"});
            if let Some(wait_ms) = wait_ms {
                body["retry_after_ms"] = json!(wait_ms);
            }
            whole(429, body.to_string(), *header)
        }
        Some(Fault::NoJson) => whole(200, "<html>it works</html>".to_owned(), None),
        Some(Fault::Cut) => cut(status, &body),
        Some(Fault::Replay | Fault::SameToken | Fault::Overlap) | None => whole(status, body, None),
    }
}

fn whole(status: u16, body: String, retry_after: Option<u64>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Announces the whole length, sends half of it, and hangs up.
fn cut(status: u16, body: &str) -> Response {
    let half = Bytes::copy_from_slice(&body.as_bytes()[..body.len() / 2]);
    let broken = stream::unfold(Some(half), async |half| {
        if let Some(half) = half {
            return Some((Ok(half), None));
        }
        // Not before the first half is on its way.
        tokio::task::yield_now().await;
        Some((Err(std::io::Error::other("cut by the script")), None))
    });
    let mut response = whole(status, String::new(), None);
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, body.len().into());
    *response.body_mut() = Body::from_stream(broken);
    response
}
