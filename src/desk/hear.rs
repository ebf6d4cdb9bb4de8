//! What was heard in a room, with the facts about its sender as they are when it is read.

use serde::{Deserialize, Serialize};

use super::carried::Carried;
use crate::clock::Millis;

/// How far the sender of an encrypted message can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The room is not encrypted.
    Plain,
    /// Encrypted, from a device its owner verified.
    Verified,
    /// Encrypted, from a device nobody vouches for.
    Unverified,
    /// Not encrypted, in a room that is: nobody vouches for it.
    Clear,
    /// Encrypted, and not from who it says, or from an identity that changed after it was
    /// verified. Never an answer.
    Refused,
}

/// One room event that may matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// The room.
    pub room_id: String,
    /// The event.
    pub event_id: String,
    /// Who sent it.
    pub sender: Sender,
    /// When, as its homeserver says.
    pub sent_at: Millis,
    /// How far its sender is trusted.
    pub trust: Trust,
    /// What it is.
    pub what: What,
    /// What it is in the talk of a room that is an agent's stream; `None` elsewhere.
    #[serde(default)]
    pub chat: Option<Chat>,
}

/// An event as part of a room's talk, of which agents read a digest (`digest.md` 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chat {
    /// A line somebody said, or the edit of one.
    Line {
        /// What was said; `None` when an edit made it something that is no line.
        body: Option<String>,
        /// Whether it is an `m.emote`.
        emote: bool,
        /// The event it replies to.
        in_reply_to: Option<String>,
        /// The users that `m.mentions` names.
        mentions: Vec<String>,
        /// The event it edits.
        replaces: Option<String>,
    },
    /// A thumbs up.
    Vote {
        /// The event it is given to.
        target: String,
    },
}

/// The sender, as they are in the room when the event is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// Their user id.
    pub user_id: String,
    /// Their name in the room.
    pub display_name: Option<String>,
    /// Whether they are joined.
    pub joined: bool,
    /// Their power; a creator of a room of version 12 has [`i64::MAX`].
    pub power: i64,
    /// Whether the bot is alone with them in the room.
    pub alone: bool,
}

/// What kind of event it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A text message, or the edit of one.
    Message(Said),
    /// The redaction of an event.
    Redaction {
        /// The event that was redacted.
        redacts: String,
    },
    /// One of the bot's own events coming back.
    Own {
        /// The transaction id it was sent under, if this device sent it.
        txn_id: Option<String>,
        /// The elicitation whose card it carries: the agent and the id.
        card: Option<(String, String)>,
        /// The board that card names.
        #[serde(default)]
        board_id: Option<String>,
    },
    /// The card of another carrier, or an edit that still is one.
    Carried {
        /// The card and what is around it.
        carried: Box<Carried>,
        /// The event it edits.
        replaces: Option<String>,
    },
    /// Another carrier edited its message into one without a card.
    CardGone {
        /// The event it edits.
        replaces: String,
    },
    /// Nothing but part of the room's talk. Of its sender nothing was looked up.
    Talk,
}

/// A text message as a person wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The plain body; of an edit the new one.
    pub body: String,
    /// The event it replies to.
    pub in_reply_to: Option<String>,
    /// Whether that reply is only there for clients that know no threads.
    pub falling_back: bool,
    /// The root of the thread it is in.
    pub thread: Option<String>,
    /// The event it edits.
    pub replaces: Option<String>,
    /// Whether `m.mentions` names the bot.
    pub mentions_bot: bool,
}
