//! The one shape of everything that is refused:
//! `{"error":{"code","message","field"?}}`.

use std::time::Duration;

use axum::Json;
use axum::http::header::{CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::elicitation::{Elicitation, timestamp};
use crate::ledger::LedgerError;
use crate::service::{AskError, CancelError, RoomTrouble, SessionError};

/// Why a request was refused. Its text is what the agent reads as `message`.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// A field breaks a rule.
    #[error("{field} {rule}")]
    Invalid {
        /// The field, parameter or header, like `options[2].label`.
        field: String,
        /// What it must be, as the rest of a sentence that begins with the field.
        rule: String,
    },
    /// No token, or not one of those that open this path.
    #[error("{}", .wanted.refusal(*.presented))]
    Unauthorized {
        /// Whose token it takes.
        wanted: Holder,
        /// Whether a token was sent at all.
        presented: bool,
    },
    /// There is no token that opens this path.
    #[error(
        "the operator's commands need http.operator_token, which is not set in the configuration of this bot"
    )]
    NoOperator,
    /// Too many wrong tokens from this address.
    #[error("too many wrong tokens from this address; try again in {} s", seconds(*.retry_after))]
    RateLimited {
        /// How long wrong tokens stay unread.
        retry_after: Duration,
    },
    /// The agent may not ask in this room.
    #[error("{0}")]
    RoomNotAllowed(String),
    /// The bot is not in this room.
    #[error("{0}")]
    RoomNotJoined(String),
    /// The bot is in the room but may not write there.
    #[error("{0}")]
    NoPowerToSend(String),
    /// The id is taken by another question of this agent.
    #[error("{id:?} was asked before with other content; another question needs another id or key")]
    Conflict {
        /// The id.
        id: String,
    },
    /// Another carrier has the question.
    #[error("{0}")]
    Carried(String),
    /// This agent has no such elicitation.
    #[error("there is no elicitation {id:?} of this agent")]
    ElicitationNotFound {
        /// The id.
        id: String,
    },
    /// This agent has no such session.
    #[error("there is no session {id:?} of this agent")]
    SessionNotFound {
        /// The id.
        id: String,
    },
    /// There is no such room, or it is not this agent's to read.
    #[error("there is no room {room:?} that this token may read")]
    RoomNotFound {
        /// The room.
        room: String,
    },
    /// Not everything is here that the answer takes.
    #[error("{why}; try again in {} s", seconds(*.retry_after))]
    NotCaughtUp {
        /// What is missing.
        why: String,
        /// When it may be here.
        retry_after: Duration,
    },
    /// More was asked for than one agent may.
    #[error("asked for too often; try again in {} s", seconds(*.retry_after))]
    TooMany {
        /// When it may be asked for again.
        retry_after: Duration,
    },
    /// The session is over for good.
    #[error("the session {id:?} has ended")]
    SessionEnded {
        /// The id.
        id: String,
    },
    /// A person wants the session to stop.
    #[error(
        "the session {id:?} is to stop: thoughts, actions, a response or an error are taken, and nothing else"
    )]
    SessionStopping {
        /// The id.
        id: String,
    },
    /// It is closed already and stays as it is.
    #[error("elicitation {id:?} was {state} at {at} and stays so")]
    NotPending {
        /// The id.
        id: String,
        /// The word of its state.
        state: &'static str,
        /// When it was closed.
        at: String,
    },
    /// The event to continue after is not kept, or never was this agent's.
    #[error(
        "the event to continue after is not kept any more; read /v1/elicitations, then listen without Last-Event-ID"
    )]
    EventsExpired,
    /// Nothing is served at this path.
    #[error("there is nothing at this path")]
    UnknownPath,
    /// The path exists, the method does not fit.
    #[error("this path does not take that method; the Allow header names those it takes")]
    MethodNotAllowed,
    /// The body is over the limit.
    #[error("the body is larger than {} KiB", super::MAX_BODY / 1024)]
    PayloadTooLarge,
    /// The body did not arrive in time.
    #[error("the body did not arrive within {} s", .0.as_secs())]
    TooSlow(Duration),
    /// As many wait as can be kept waiting.
    #[error("as many readers and listeners wait as this process can hold; try again in {} s", seconds(*.retry_after))]
    Busy {
        /// When there may be a place again.
        retry_after: Duration,
    },
    /// Nothing is wrong with the request; it may be sent again.
    #[error("{0}")]
    Unavailable(String),
    /// Ours to mend; the details go to the log only.
    #[error("something failed on this side; the log has the details")]
    Internal(#[source] LedgerError),
}

/// Who holds a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Any agent.
    Agent,
    /// Whoever runs the service.
    Operator,
    /// A board, which signs what it pushes.
    Board,
}

impl Holder {
    fn refusal(self, presented: bool) -> &'static str {
        match (self, presented) {
            (Self::Agent, true) => "this token is no agent's",
            (Self::Agent, false) => "send the agent's token: Authorization: Bearer …",
            (Self::Operator, true) => "this token is not the operator's",
            (Self::Board, true) => "the signature is not the board's",
            (Self::Board, false) => "send the signature: X-Superpipeline-Signature: sha256=…",
            (Self::Operator, false) => "send the operator's token: Authorization: Bearer …",
        }
    }
}

impl ApiError {
    /// A field and the rule it breaks.
    pub fn invalid(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            rule: rule.into(),
        }
    }

    /// An elicitation that is closed already.
    pub fn not_pending(elicitation: &Elicitation) -> Self {
        let closed_at = elicitation
            .closed_at
            .unwrap_or(elicitation.question.created_at);
        Self::NotPending {
            id: elicitation.key().id.clone(),
            state: elicitation.state.word(),
            at: timestamp(closed_at),
        }
    }

    fn code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Invalid { .. } => (StatusCode::BAD_REQUEST, "INVALID_REQUEST"),
            Self::Unauthorized { .. } => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED"),
            Self::NoOperator => (StatusCode::FORBIDDEN, "NO_OPERATOR_TOKEN"),
            Self::RateLimited { .. } | Self::TooMany { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED")
            }
            Self::RoomNotFound { .. } => (StatusCode::NOT_FOUND, "ROOM_NOT_FOUND"),
            Self::RoomNotAllowed(_) => (StatusCode::FORBIDDEN, "ROOM_NOT_ALLOWED"),
            Self::RoomNotJoined(_) => (StatusCode::CONFLICT, "ROOM_NOT_JOINED"),
            Self::NoPowerToSend(_) => (StatusCode::CONFLICT, "NO_POWER_TO_SEND"),
            Self::Conflict { .. } => (StatusCode::CONFLICT, "ELICITATION_CONFLICT"),
            Self::Carried(_) => (StatusCode::CONFLICT, "CARRIED_ELSEWHERE"),
            Self::ElicitationNotFound { .. } => (StatusCode::NOT_FOUND, "ELICITATION_NOT_FOUND"),
            Self::SessionNotFound { .. } => (StatusCode::NOT_FOUND, "SESSION_NOT_FOUND"),
            Self::SessionEnded { .. } => (StatusCode::CONFLICT, "SESSION_ENDED"),
            Self::SessionStopping { .. } => (StatusCode::CONFLICT, "SESSION_STOPPING"),
            Self::NotPending { .. } => (StatusCode::CONFLICT, "ELICITATION_NOT_PENDING"),
            Self::EventsExpired => (StatusCode::GONE, "EVENTS_EXPIRED"),
            Self::UnknownPath => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Self::PayloadTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE"),
            Self::TooSlow(_) => (StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT"),
            Self::Busy { .. } | Self::NotCaughtUp { .. } | Self::Unavailable(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE")
            }
            Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
        }
    }

    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            // RFC 6750, section 3: a request without a token gets no error code.
            // A board signs: no scheme of HTTP is asked of it.
            Self::Unauthorized {
                wanted: Holder::Board,
                ..
            } => None,
            Self::Unauthorized { presented, .. } => {
                let challenge = if *presented {
                    "Bearer realm=\"matrix-elicit\", error=\"invalid_token\""
                } else {
                    "Bearer realm=\"matrix-elicit\""
                };
                Some((WWW_AUTHENTICATE, HeaderValue::from_static(challenge)))
            }
            Self::RateLimited { retry_after }
            | Self::TooMany { retry_after }
            | Self::NotCaughtUp { retry_after, .. }
            | Self::Busy { retry_after } => {
                Some((RETRY_AFTER, HeaderValue::from(seconds(*retry_after))))
            }
            _ => None,
        }
    }
}

/// Whole seconds, rounded up: nobody is sent away to come back too early.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

impl From<LedgerError> for ApiError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Closed => Self::Unavailable("the service is stopping".to_owned()),
            error => Self::Internal(error),
        }
    }
}

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Invalid { field, rule } => Self::Invalid { field, rule },
            AskError::RoomNotAllowed { message } => Self::RoomNotAllowed(message),
            AskError::RoomNotJoined { message } => Self::RoomNotJoined(message),
            AskError::NoPowerToSend { message } => Self::NoPowerToSend(message),
            AskError::Conflict { id } => Self::Conflict { id },
            error @ AskError::Carried { .. } => Self::Carried(error.to_string()),
            AskError::Unavailable { message } => Self::Unavailable(message),
            AskError::Ledger(error) => error.into(),
        }
    }
}

impl From<RoomTrouble> for ApiError {
    fn from(trouble: RoomTrouble) -> Self {
        Self::Unavailable(trouble.to_string())
    }
}

impl ApiError {
    /// Why the elicitation `id` could not be withdrawn.
    pub fn from_cancel(id: &str, error: CancelError) -> Self {
        match error {
            CancelError::NotFound => Self::ElicitationNotFound { id: id.to_owned() },
            CancelError::NotPending(elicitation) => Self::not_pending(&elicitation),
            error @ CancelError::Carried { .. } => Self::Carried(error.to_string()),
            CancelError::Ledger(error) => error.into(),
        }
    }
}

impl ApiError {
    /// Why the session `id` does not take what its agent wants.
    pub fn from_session(id: &str, error: SessionError) -> Self {
        let id = id.to_owned();
        match error {
            SessionError::NotFound => Self::SessionNotFound { id },
            SessionError::Ended => Self::SessionEnded { id },
            SessionError::Stopping => Self::SessionStopping { id },
            SessionError::Invalid { field, rule } => Self::Invalid { field, rule },
            SessionError::Unavailable(why) => Self::Unavailable(why),
            SessionError::Ledger(error) => error.into(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Internal(error) = &self {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "a request failed inside: {error}"
            );
        }
        let (status, code) = self.code();
        let mut body = json!({ "error": { "code": code, "message": self.to_string() } });
        if let Self::Invalid { field, .. } = &self {
            body["error"]["field"] = json!(field);
        }
        let mut response = (status, Json(body)).into_response();
        if let Some((name, value)) = self.header() {
            response.headers_mut().insert(name, value);
        }
        if matches!(self, Self::Busy { .. }) {
            // Whoever comes back later need not hold a connection until then.
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn body_of(error: ApiError) -> (u16, String) {
        let response = error.into_response();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 65_536)
            .await
            .unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_broken_rule_names_its_field() {
        assert_eq!(
            body_of(ApiError::invalid("options[2].label", "must be a string")).await,
            (
                400,
                r#"{"error":{"code":"INVALID_REQUEST","field":"options[2].label","message":"options[2].label must be a string"}}"#
                    .to_owned()
            )
        );
    }

    #[tokio::test]
    async fn what_failed_inside_is_not_told() {
        let error = ApiError::from(LedgerError::Store("disk I/O error at /secret".to_owned()));
        assert_eq!(
            body_of(error).await,
            (
                500,
                r#"{"error":{"code":"INTERNAL","message":"something failed on this side; the log has the details"}}"#
                    .to_owned()
            )
        );
    }

    #[tokio::test]
    async fn a_closed_ledger_is_a_passing_trouble() {
        assert_eq!(
            body_of(ApiError::from(LedgerError::Closed)).await,
            (
                503,
                r#"{"error":{"code":"UNAVAILABLE","message":"the service is stopping"}}"#
                    .to_owned()
            )
        );
    }

    #[test]
    fn a_wait_is_rounded_up() {
        let error = ApiError::RateLimited {
            retry_after: Duration::from_millis(1_001),
        };
        assert_eq!(error.header(), Some((RETRY_AFTER, HeaderValue::from(2))));
    }
}
