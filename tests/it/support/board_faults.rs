//! How a board misbehaves for the tests; in its own words in `tests/board/superpipeline.py`.

use std::time::Duration;

use serde_json::{Value, json};

/// What of the board misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardRoute {
    /// Reading what is pending.
    Pending,
    /// Subscribing to pushes.
    Subscribe,
    /// Answering.
    Answer,
    /// The identity service.
    Identity,
    /// Pushing; each attempt is one use.
    Push,
    /// Every request, of these and others, that has no fault of its own.
    Every,
}

/// How it misbehaves, once.
#[derive(Debug, Clone, PartialEq)]
pub enum BoardFault {
    /// Not at all, this time.
    None,
    /// Answers this without looking at the request.
    Status(u16, Value),
    /// Answers 429 with `Retry-After`, without looking at the request.
    Limited {
        /// In seconds.
        retry_after: u64,
    },
    /// Keeps the request for so long, does nothing, and closes the connection.
    Hang(Duration),
    /// Closes the connection at once, without looking at the request.
    Close,
    /// Waits for so long, then does as usual.
    Slow(Duration),
    /// Does as usual, but closes the connection in place of answering.
    LoseReply,
    /// Does as usual, but cuts the body of the answer in half.
    Garble,
    /// Does as usual, but puts an error one deeper: `{"error":{"error":{…}}}`.
    Nest,
    /// A push is lost and not tried again.
    Drop,
    /// A push comes twice at once.
    Double,
    /// A push is signed with a key that nobody has.
    WrongKey,
}

impl BoardRoute {
    /// As the log of requests has it under `route`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Subscribe => "subscribe",
            Self::Answer => "answer",
            Self::Identity => "identity",
            Self::Push => "push",
            Self::Every => "*",
        }
    }
}

impl BoardFault {
    /// As the board is told it.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::None => json!({"do": "ok"}),
            Self::Status(status, body) => {
                json!({"do": "status", "status": status, "body": body})
            }
            Self::Limited { retry_after } => json!({
                "do": "status",
                "status": 429,
                "body": {"error": "too many requests"},
                "headers": {"Retry-After": retry_after},
            }),
            Self::Hang(time) => json!({"do": "hang", "seconds": time.as_secs_f64()}),
            Self::Close => json!({"do": "close"}),
            Self::Slow(time) => json!({"do": "slow", "seconds": time.as_secs_f64()}),
            Self::LoseReply => json!({"do": "lose_reply"}),
            Self::Garble => json!({"do": "garble"}),
            Self::Nest => json!({"do": "nest"}),
            Self::Drop => json!({"do": "drop"}),
            Self::Double => json!({"do": "double"}),
            Self::WrongKey => json!({"do": "wrong_key"}),
        }
    }
}
