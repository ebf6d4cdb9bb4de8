//! The things the desk decides about: questions, their life, their answers.
//!
//! These types are what the ledger keeps. Nothing here knows the clock, the
//! network or the storage.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Millis;
use crate::contract::CardOption;
use crate::reply::{MatchedBy, TargetedBy};

const BOARD: &str = "board:";
const CARRIER: &str = "carrier:";
const SESSION: &str = "session:";

/// What identifies an elicitation: who asked, and the id they know it by.
///
/// Two origins may use the same id, and neither learns of the other's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The agent the question came from; `board:ID` for a board, `session:ID` for a session,
    /// `carrier:USER_ID` for the card of another carrier. No agent's id has a colon.
    pub origin: String,
    /// The `elicitation_id`.
    pub id: String,
}

impl Key {
    /// The key of one origin's elicitation.
    pub fn new(origin: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            origin: origin.into(),
            id: id.into(),
        }
    }

    /// The key of a board's question.
    pub fn of_board(board: &str, id: impl Into<String>) -> Self {
        Self::new(format!("{BOARD}{board}"), id)
    }

    /// The key of a question whose card another carrier, by its user id, put into a room.
    pub fn of_carrier(carrier: &str, id: impl Into<String>) -> Self {
        Self::new(format!("{CARRIER}{carrier}"), id)
    }

    /// The key under which a session speaks in its room.
    pub fn of_session(id: &str) -> Self {
        Self::new(format!("{SESSION}{id}"), "")
    }

    /// The session that asked the question, or that this is of.
    pub fn session(&self) -> Option<&str> {
        self.origin.strip_prefix(SESSION)
    }

    /// The board the question came from.
    pub fn board(&self) -> Option<&str> {
        self.origin.strip_prefix(BOARD)
    }

    /// The carrier that asked the question, by its user id.
    pub fn carrier(&self) -> Option<&str> {
        self.origin.strip_prefix(CARRIER)
    }

    /// What is said in a room about no question goes under the room's own key. No origin is
    /// called like that.
    pub fn of_room(room_id: &str) -> Self {
        Self::new("", room_id)
    }

    /// Whether this is the key of a room, and of no question.
    pub fn is_of_room(&self) -> bool {
        self.origin.is_empty()
    }
}

/// Where an elicitation stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Stored, not yet seen in the room.
    Queued,
    /// In the room, waiting for a person.
    Open,
    /// A person chose an option or wrote a text.
    Answered,
    /// A person declined to answer, where the question allows that.
    Declined,
    /// Withdrawn by whoever asked.
    Cancelled,
    /// A newer question about the same card took its place.
    Superseded,
    /// Nobody answered before the deadline. Never an answer.
    Expired,
    /// It could not be put before anybody.
    Undeliverable,
}

impl State {
    /// All states, in the order of a life.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Open,
        Self::Answered,
        Self::Declined,
        Self::Cancelled,
        Self::Superseded,
        Self::Expired,
        Self::Undeliverable,
    ];

    /// Whether nothing can change it any more.
    pub const fn is_closed(self) -> bool {
        !matches!(self, Self::Queued | Self::Open)
    }

    /// Its word on the wire and in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
            Self::Expired => "expired",
            Self::Undeliverable => "undeliverable",
        }
    }

    /// The state of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// Who may answer one elicitation, on top of what the room's rules say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answerers {
    /// Only these user ids. An empty list is nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<String>>,
    /// Only people with at least this power level when their reply is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_power: Option<i64>,
}

/// What was asked. It never changes after it was stored, but for the room: a question goes with an
/// upgrade of its room, out of its thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its identity.
    pub key: Key,
    /// The agent's id, as the card shows it. Only where the agent itself is the origin does it
    /// prove anything.
    pub asked_by: String,
    /// The agent that hears of the answer to another carrier's card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed_to: Option<String>,
    /// The agent's name for people, where the configuration has one.
    pub asker_name: Option<String>,
    /// The room it is asked in, an id.
    pub room_id: String,
    /// The root of the thread it is asked in.
    pub thread: Option<String>,
    /// The question itself.
    pub prompt: String,
    /// All options, in order; the number of each is its place from 1.
    pub options: Vec<CardOption>,
    /// Whether it is shown shortened: its board has more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abridged: bool,
    /// Whether a directed text that names no option is an answer.
    pub free_text: bool,
    /// The command that declines it, as people type it; `None` where it cannot be declined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decline: Option<String>,
    /// Who may answer it.
    pub answerers: Answerers,
    /// The people the message mentions.
    pub mention: Vec<String>,
    /// The board, if the asker named one.
    pub board_id: Option<String>,
    /// The card, if the asker named one. Only then asking again supersedes.
    pub card_id: Option<String>,
    /// The run, if the asker named one.
    pub run_id: Option<String>,
    /// The stage, if the asker named one.
    pub stage_key: Option<String>,
    /// The card's title, if the asker gave one.
    pub card_title: Option<String>,
    /// A link to more, if the asker gave one.
    pub deep_link: Option<String>,
    /// Whatever the asker wants back.
    pub metadata: Option<Value>,
    /// When the board asked it, as the board says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Millis>,
    /// When it was stored.
    pub created_at: Millis,
    /// Its one deadline.
    pub expires_at: Option<Millis>,
}

impl Question {
    /// The agent that hears of it and may read it; `None` where no agent does.
    pub fn owner(&self) -> Option<&str> {
        match self.source() {
            Source::Agent => Some(&self.key.origin),
            Source::Board | Source::Session => None,
            Source::Carrier => self.routed_to.as_deref(),
        }
    }

    /// Where it came from.
    pub fn source(&self) -> Source {
        if self.key.board().is_some() {
            Source::Board
        } else if self.key.carrier().is_some() {
            Source::Carrier
        } else if self.key.session().is_some() {
            Source::Session
        } else {
            Source::Agent
        }
    }

    /// Whether a reply can answer it at all: a board may ask what only the board can take.
    pub fn is_answerable(&self) -> bool {
        self.free_text || !self.options.is_empty()
    }
}

/// Where a question came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An agent asked it here.
    Agent,
    /// A board pushed it, or listed it as pending.
    Board,
    /// Another carrier put its card into a room.
    Carrier,
    /// An agent asked it in a session, where the answer is a prompt.
    Session,
}

/// An option with its number, as answers and objects show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedOption {
    /// Its place, from 1.
    pub number: usize,
    /// Its id.
    pub id: String,
    /// Its label.
    pub label: String,
}

/// What kind of answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// One option was named.
    Option,
    /// A text was written.
    Text,
    /// None: the person declined.
    Declined,
}

/// The one reply that settled an elicitation: an answer, or that there will be none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Option or text, or declined.
    pub kind: AnswerKind,
    /// The option, for [`AnswerKind::Option`].
    pub option: Option<NumberedOption>,
    /// What the person typed, verbatim, without what their client quoted before it; `null` after
    /// they redacted it, and where they declined.
    pub text: Option<String>,
    /// The person's user id.
    pub answered_by: String,
    /// Their name in the room, if they have one.
    pub display_name: Option<String>,
    /// The event that was the reply.
    pub event_id: String,
    /// When it was sent, as its homeserver says.
    pub answered_at: Millis,
    /// Which rule matched.
    pub matched_by: MatchedBy,
    /// How the question was found.
    pub targeted_by: TargetedBy,
    /// Whether it was directed at the bot or the card.
    pub directed: bool,
    /// Whether the reply was end-to-end encrypted.
    pub encrypted: bool,
    /// Whether its sender's device is verified; `null` in a plain room.
    pub sender_verified: Option<bool>,
}

/// A question and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// What was asked.
    pub question: Question,
    /// Its short name in its room, like `q3`.
    pub tag: String,
    /// Where it stands.
    pub state: State,
    /// Its card's event, once posted.
    pub event_id: Option<String>,
    /// Whether the card was seen coming back in the room's timeline: only
    /// messages after that can be meant for it without saying so.
    pub visible: bool,
    /// When it reached its last state.
    pub closed_at: Option<Millis>,
    /// Why it was closed, in a few words, where that is not plain.
    pub reason: Option<String>,
    /// The answer, when answered; when declined, by whom.
    pub answer: Option<Answer>,
}

impl Elicitation {
    /// Its identity.
    pub fn key(&self) -> &Key {
        &self.question.key
    }

    /// The option at a place counted from 0.
    pub fn numbered(&self, index: usize) -> Option<NumberedOption> {
        self.question
            .options
            .get(index)
            .map(|option| NumberedOption {
                number: index + 1,
                id: option.id.clone(),
                label: option.label.clone(),
            })
    }
}
