//! What the ledger keeps of sessions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Millis;
use crate::contract::signals::{ActivityType, Signal};

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// The agent works.
    Active,
    /// The agent waits for a person.
    AwaitingInput,
    /// A person wants it to end, and the agent has not said its last word.
    Stopping,
    /// The agent is done.
    Complete,
    /// The agent has failed.
    Error,
    /// Nothing was heard of an active agent for very long.
    Stale,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Active,
        Self::AwaitingInput,
        Self::Stopping,
        Self::Complete,
        Self::Error,
        Self::Stale,
    ];

    /// Its word on the wire and in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::AwaitingInput => "awaitingInput",
            Self::Stopping => "stopping",
            Self::Complete => "complete",
            Self::Error => "error",
            Self::Stale => "stale",
        }
    }

    /// The status of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }
}

/// Why a session ends, or has ended, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// A person stopped it.
    Stopped,
    /// It was taken away from the agent.
    Undelegated,
    /// It was removed: by its agent, with its room, or with its agent.
    Deleted,
}

impl EndReason {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stopped, Self::Undelegated, Self::Deleted];

    /// Its word on the wire and in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Undelegated => "undelegated",
            Self::Deleted => "deleted",
        }
    }

    /// The reason of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }
}

/// A session as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// `sess_` and a ULID.
    pub id: String,
    /// The agent, by its id.
    pub agent: String,
    /// The agent's name for people.
    pub agent_name: String,
    /// The room it lives in.
    pub room_id: String,
    /// What it is about, if that was said.
    pub title: Option<String>,
    /// For whom it is, a user id.
    pub user_id: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// Why it ends: known from the moment it is stopping.
    pub ending: Option<EndReason>,
    /// The root of its thread, an event, once that is in the room.
    #[serde(skip)]
    pub root: Option<String>,
    /// What the agent does, in a line, as it said last.
    pub doing: Option<String>,
    /// Whether the agent is late with its first word.
    pub silent: bool,
    /// Whether the agent has said anything yet.
    pub heard: bool,
    /// The request to connect an account that somebody has before them now.
    pub connecting: Option<Connecting>,
    /// When it began.
    pub created_at: Millis,
    /// When anybody last did anything in it.
    pub updated_at: Millis,
    /// When it ended for good.
    pub ended_at: Option<Millis>,
    /// When the root was last edited.
    pub edited_at: Millis,
    /// When the root is to be edited, if what it says is old.
    pub edit_at: Option<Millis>,
}

impl Session {
    /// Whether it is over for good.
    pub fn has_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Why it is over, as everybody is told: of what was stopped, when it is.
    pub fn end_reason(&self) -> Option<EndReason> {
        self.ending
            .filter(|reason| self.has_ended() || *reason == EndReason::Undelegated)
    }
}

/// A request to connect an account, in the direct room with whoever is to do it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connecting {
    /// The room.
    pub room_id: String,
    /// The activity that asked for it.
    pub activity: String,
    /// Where the account is.
    pub provider: String,
}

/// Who said it, where it was a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// Their user id.
    pub user_id: String,
    /// Their name in the room.
    pub display_name: Option<String>,
}

/// One thing that was said in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// `act_` and a ULID.
    pub id: String,
    /// What kind it is.
    pub kind: ActivityType,
    /// What was said; empty after its message was redacted.
    pub body: String,
    /// Its signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// The details of the signal, as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_metadata: Option<Value>,
    /// The person, of a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// The person's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Whether it is only to be seen until the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ephemeral: bool,
    /// When.
    pub created_at: Millis,
}
