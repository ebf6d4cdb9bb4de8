//! What a room said, as an agent may hear it: `chat.agent-digest@1`, as a pure function.
//!
//! Nothing here knows a clock, a ledger or a room: a window of lines and people comes in, at most
//! ten items come out. A line's way:
//!
//! ```text
//! body ── prepare ──▶ Prepared ──(kept with the message)──▶ digest ──▶ items
//!           │                                                 │
//!    clean, pieces, links, addresses,            people, crowd_spam, groups,
//!    folded, kind, key, line_spam, greeting      cut, names
//! ```
//!
//! [`prepare`] does what depends on the text alone, once, when a message arrives; [`digest`] does
//! what depends on who is in the room at that moment. `lexicon.json` holds the word lists. The
//! numbers in these docs are the sections of the rules the digest is built to (`digest.md`).

mod addresses;
mod answers;
mod clean;
mod code;
mod crowd_spam;
mod cut;
mod folded;
mod greeting;
mod groups;
mod handles;
mod hosts;
mod invites;
mod key;
mod kind;
mod letters;
mod lexicon;
mod line_spam;
mod links;
mod names;
mod object;
mod people;
mod pieces;
mod prepared;
mod reduced;
#[cfg(test)]
mod tests;
mod votes;
pub mod written_window;

use serde::{Deserialize, Serialize};

pub use answers::{Choice, answers};
pub use groups::digest;
pub use handles::handle;
pub use object::object;
pub use prepared::{Prepared, VERSION, Written, make_ready, prepare};
pub use votes::is_thumbs_up;

use crate::clock::Millis;
pub use crate::contract::digest::{
    MAX_CHARS as MOST_CHARS, MAX_DISPLAY_NAME as LONGEST_NAME, MAX_ITEMS as MOST_ITEMS,
    MAX_WHAT as LONGEST_WHAT,
};

/// Someone the bot knows of in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The Matrix id.
    pub user: String,
    /// The name the room shows, as it is.
    pub display_name: Option<String>,
    /// When the account was first seen; unknown is too young (digest.md, 2).
    pub first_seen: Option<Millis>,
    /// What [`handle`] gave them.
    pub handle: String,
    /// Whether they are in, or why not.
    pub standing: Standing,
}

/// Whether someone may be in a digest, their age aside (digest.md, 2). Who is not even a
/// [`Person`] of the window may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// They may; so may who merely left.
    In,
    /// Banned, or kicked and not back.
    Banned,
    /// Timed out.
    Muted,
    /// They said that agents do not read them.
    OptedOut,
}

/// A message of a room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line<'a> {
    /// The event's id: it breaks ties, and is never shown.
    pub event_id: &'a str,
    /// The Matrix id of who wrote it.
    pub sender: &'a str,
    /// When it was stored, by our clock: it places the line (digest.md, 1).
    pub stamp: Millis,
    /// When its sender's server says it was sent; as `stamp` where that is not known.
    pub sent_at: Option<Millis>,
    /// What [`prepare`] said of its text.
    pub prepared: &'a Prepared,
    /// The Matrix id of whoever it replies to.
    pub replied_to: Option<&'a str>,
    /// The Matrix ids in its `m.mentions`.
    pub mentions: &'a [String],
    /// The Matrix ids of who gave it a thumbs-up that still counts, in any order.
    pub votes: &'a [String],
}

/// What a digest is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Window<'a> {
    /// When the agent last read: lines stored then are in. `None`: everything is.
    pub since: Option<Millis>,
    /// When this digest is made: lines stored then are in the next one. Ages are measured here.
    pub until: Millis,
    /// Who is known of in the room, in any order.
    pub people: &'a [Person],
    /// Its lines, in any order; those outside the window are passed over.
    pub lines: Vec<Line<'a>>,
}

/// What does not change from digest to digest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The Matrix ids of the bot and of agents: never in a digest, shown as `@agent`.
    pub agents: Vec<String>,
    /// How old an account must be, in milliseconds.
    pub min_age: Millis,
}

/// What a line is (digest.md, 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The agent may answer it.
    Question,
    /// The agent may take or leave it.
    Suggestion,
    /// It says nothing to do.
    Reaction,
}

/// One thing the room said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Who said it first: the name the room shows, at most [`LONGEST_NAME`] characters.
    pub display_name: String,
    /// Their handle.
    pub handle: String,
    /// What they said, at most [`LONGEST_WHAT`] characters.
    pub what: String,
    /// The strongest kind of all who said it.
    pub kind: Kind,
    /// How many people want it who did not say it.
    pub upvotes: u32,
    /// How many people said it, where more than one did.
    pub repeated: Option<u32>,
}

/// What a room said in a window.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Digest {
    /// At most [`MOST_ITEMS`], in the order of digest.md, 10.
    pub items: Vec<Item>,
    /// The characters of all items' texts, names and handles, at most [`MOST_CHARS`].
    pub chars: u32,
    /// Whether an item was left out because of the caps.
    pub truncated: bool,
    /// What was left out before, and why.
    pub dropped: Dropped,
}

/// How many lines of a window are not in its digest, by reason: for logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Their senders may not be in it (digest.md, 2).
    pub excluded: u32,
    /// Greetings.
    pub greetings: u32,
    /// Eleven in a minute (digest.md, 7.1).
    pub flood: u32,
    /// The same five times (7.2).
    pub copies: u32,
    /// Five links, or five lines of links alone (7.3).
    pub links: u32,
    /// Five people mentioned (7.4).
    pub mentions: u32,
    /// Marks piled up (7.5).
    pub marks: u32,
    /// A wall of emoji (7.6).
    pub emoji: u32,
    /// One character on and on (7.7).
    pub runs: u32,
    /// Invitations to chats elsewhere (7.8).
    pub invites: u32,
    /// Solicitations (7.9).
    pub solicitations: u32,
}

/// Why a line is not in a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Excluded,
    Greeting,
    Flood,
    Copies,
    Links,
    Mentions,
    Marks,
    Emoji,
    Run,
    Invite,
    Solicitation,
}

impl Dropped {
    /// Each reason in a word, and how many lines it left out.
    pub fn by_reason(&self) -> [(&'static str, u32); 11] {
        [
            ("excluded", self.excluded),
            ("greeting", self.greetings),
            ("flood", self.flood),
            ("copies", self.copies),
            ("links", self.links),
            ("mentions", self.mentions),
            ("marks", self.marks),
            ("emoji", self.emoji),
            ("run", self.runs),
            ("invite", self.invites),
            ("solicitation", self.solicitations),
        ]
    }

    fn count(&mut self, reason: Reason) {
        let counted = match reason {
            Reason::Excluded => &mut self.excluded,
            Reason::Greeting => &mut self.greetings,
            Reason::Flood => &mut self.flood,
            Reason::Copies => &mut self.copies,
            Reason::Links => &mut self.links,
            Reason::Mentions => &mut self.mentions,
            Reason::Marks => &mut self.marks,
            Reason::Emoji => &mut self.emoji,
            Reason::Run => &mut self.runs,
            Reason::Invite => &mut self.invites,
            Reason::Solicitation => &mut self.solicitations,
        };
        *counted = counted.saturating_add(1);
    }
}
