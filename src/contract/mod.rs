//! The wire: what other systems read from us and we from them.
//!
//! Types, their readers and their schemas, and nothing else. Every contract has a
//! JSON Schema that is embedded in the binary ([`schema`]) and a Rust type that gives
//! the same verdict ([`card`], [`digest`]).

pub mod board;
pub mod card;
pub mod digest;
pub mod listed;
pub mod schema;
pub mod signals;

use serde::{Deserialize, Serialize};

/// The content key under which a card rides inside a prose message.
pub const CARD_KEY: &str = "dev.superpipeline.elicitation";

/// The name of the contract that a digest for an agent keeps.
pub const DIGEST_CONTRACT: &str = "chat.agent-digest@1";

/// One option of a question. Its *number* is its place in the list, from 1.
///
/// A question's full list may be longer than what its card carries, which is
/// [`card::MAX_OPTIONS`] at most.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CardOption {
    /// Names the option exactly; unique within its question, at least one character.
    pub id: String,
    /// What people read; may repeat within a question.
    pub label: String,
}

impl CardOption {
    /// An option with this id and label.
    pub fn new(id: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            label: label.into(),
        }
    }
}
