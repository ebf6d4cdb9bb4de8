//! The rows of the ledger that are not questions.

use serde_json::Value;

use crate::clock::Millis;
use crate::desk::SendDraft;
use crate::elicitation::{Elicitation, Key, State};

/// A question with the fingerprint of the request that stored it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The question as it stands.
    pub elicitation: Elicitation,
    /// SHA-256 of the request's meaning, hex.
    pub fingerprint: String,
}

/// What a listing looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    /// Only what this agent may read.
    pub owner: String,
    /// Only in this state.
    pub state: Option<State>,
    /// Only in this room.
    pub room_id: Option<String>,
    /// Continue below this sequence number.
    pub below: Option<i64>,
    /// At most so many.
    pub limit: usize,
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Newest first.
    pub elicitations: Vec<Elicitation>,
    /// Where the next page begins, if there is more.
    pub next: Option<i64>,
}

/// A row of the outbox to rooms.
#[derive(Debug, Clone, PartialEq)]
pub struct Sending {
    /// Its place in the order of its room.
    pub seq: i64,
    /// Its transaction id, fixed for ever.
    pub txn_id: String,
    /// What is to be sent.
    pub draft: SendDraft,
    /// How often it was put off.
    pub attempts: u32,
    /// When it was first tried; it may be in the room already.
    pub attempted_at: Option<Millis>,
    /// When it was queued.
    pub created_at: Millis,
}

/// A notice that replies to somebody's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noticed {
    /// Its row.
    pub seq: i64,
    /// The question it is about.
    pub key: Key,
    /// Its event, once it is in the room.
    pub event_id: Option<String>,
    /// Whether it is still to be sent, and was never tried.
    pub untried: bool,
}

/// An event as an agent gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its place in the order of all events.
    pub seq: i64,
    /// Its id, the same for ever: SSE id and webhook id.
    pub id: String,
    /// Which question it is about.
    pub key: Key,
    /// `elicitation.open`, …
    pub event_type: String,
    /// When it happened.
    pub at: Millis,
    /// The object the event carries.
    pub body: Value,
}

/// An event on its way to an agent's webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Its number.
    pub seq: i64,
    /// What is delivered.
    pub event: Event,
    /// Failed attempts since then.
    pub attempts: u32,
    /// Since when it is tried: it was recorded then, or asked for again.
    pub since: Millis,
    /// Whether it goes ahead of everything else.
    pub urgent: bool,
}

/// A hole in a room's timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The room.
    pub room_id: String,
    /// The token to page backwards from.
    pub prev_batch: String,
    /// The sync token the hole begins after.
    pub since: Option<String>,
    /// When it was found.
    pub found_at: Millis,
}

/// An event that could not be decrypted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecrypted {
    /// The room.
    pub room_id: String,
    /// The event.
    pub event_id: String,
    /// Who sent it.
    pub sender: String,
    /// The event as it came, JSON.
    pub raw: String,
    /// When it came.
    pub heard_at: Millis,
    /// Whether the room was told that it could not be read.
    pub told: bool,
}
