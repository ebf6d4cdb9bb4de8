//! What a decision changes. The ledger carries it out in the transaction in which it was made.

use serde_json::Value;

use crate::clock::Millis;
use crate::elicitation::{Answer, Elicitation, Key, State, object};
use crate::prose;

/// What kind of thing goes to a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendKind {
    /// The card itself.
    Card,
    /// A new content for the card, in place.
    CardEdit,
    /// A reaction to somebody's message.
    Reaction,
    /// A notice about a question.
    Notice,
    /// A new content for a notice, in place.
    NoticeEdit,
}

impl SendKind {
    const ALL: [Self; 5] = [
        Self::Card,
        Self::CardEdit,
        Self::Reaction,
        Self::Notice,
        Self::NoticeEdit,
    ];

    /// Its word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::CardEdit => "card_edit",
            Self::Reaction => "reaction",
            Self::Notice => "notice",
            Self::NoticeEdit => "notice_edit",
        }
    }

    /// The kind of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The type of the room event.
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::Reaction => "m.reaction",
            Self::Card | Self::CardEdit | Self::Notice | Self::NoticeEdit => "m.room.message",
        }
    }
}

/// Something to be sent to a room.
#[derive(Debug, Clone, PartialEq)]
pub struct SendDraft {
    /// Where to.
    pub room_id: String,
    /// Which question it is about.
    pub key: Key,
    /// Other questions it is about as well.
    pub also: Vec<Key>,
    /// What it is.
    pub kind: SendKind,
    /// The content. A [`SendKind::CardEdit`] gets its relation when it is sent, and so does a
    /// [`SendKind::NoticeEdit`]; until then the latter says which message its notice replies to.
    pub content: Value,
}

impl SendDraft {
    /// The message that a notice (or its edit) replies to.
    pub fn replies_to(&self) -> Option<&str> {
        match self.kind {
            SendKind::Notice | SendKind::NoticeEdit => self
                .content
                .pointer("/m.relates_to/m.in_reply_to/event_id")
                .and_then(Value::as_str),
            SendKind::Card | SendKind::CardEdit | SendKind::Reaction => None,
        }
    }
}

/// An event for an agent, before it has an id.
#[derive(Debug, Clone, PartialEq)]
pub struct EventDraft {
    /// Which question it is about; its origin is whom it is for.
    pub key: Key,
    /// `elicitation.open`, `elicitation.answered`, …
    pub event_type: String,
    /// The object the event carries.
    pub body: Value,
}

/// One thing a decision changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The question is over. The first writer wins: if it was over already, nothing of this
    /// happens. The edit is not sent for a card that never left,
    /// or is gone.
    Close {
        /// The elicitation in its closed state.
        closed: Box<Elicitation>,
        /// The card's last words.
        edit: SendDraft,
        /// What the agent is told.
        event: EventDraft,
    },
    /// A pending question goes on in another room, where its card is put up anew. If it was closed
    /// already, nothing of this happens.
    Move {
        /// The elicitation as it is there before its card is.
        moved: Box<Elicitation>,
        /// Its card.
        card: SendDraft,
    },
    /// Something goes to the room.
    Send(SendDraft),
    /// Something is said to a person about a question, but only the first time.
    SayOnce {
        /// To whom.
        user_id: String,
        /// What is said, in a word; the same word is not said twice.
        what: String,
        /// The notice.
        notice: SendDraft,
    },
    /// A command is answered, unless its sender gives too many.
    AnswerCommand {
        /// Who gave it.
        user_id: String,
        /// The answer.
        notice: SendDraft,
    },
    /// An agent is told something.
    Announce(EventDraft),
    /// The text of an answer is removed from the ledger: its message was redacted.
    ForgetText(Key),
}

/// Closes a question.
pub fn close(
    elicitation: &Elicitation,
    state: State,
    reason: Option<&str>,
    answer: Option<Answer>,
    now: Millis,
) -> Change {
    let closed = Elicitation {
        state,
        closed_at: Some(now),
        reason: reason.map(str::to_owned),
        answer,
        ..elicitation.clone()
    };
    let edit = last_words(&closed);
    let event = announcement(&closed);
    Change::Close {
        closed: Box::new(closed),
        edit,
        event,
    }
}

/// Closes a question whose card was removed from the room.
pub fn close_without_card(elicitation: &Elicitation, now: Millis) -> Change {
    let reason = "its card was removed from the room";
    let mut change = close(elicitation, State::Cancelled, Some(reason), None, now);
    if let Change::Close { closed, .. } = &mut change {
        // No card, no last words: they would say again what somebody wanted gone.
        closed.event_id = None;
    }
    change
}

/// Lets a pending question go on in the room that took the place of its own, under a tag of that
/// room. `others_open`: another question is open there.
pub fn move_to(elicitation: &Elicitation, room_id: &str, tag: String, others_open: bool) -> Change {
    let mut moved = Elicitation {
        tag,
        event_id: None,
        visible: false,
        ..elicitation.clone()
    };
    room_id.clone_into(&mut moved.question.room_id);
    // The old room's threads are not in the new one.
    moved.question.thread = None;
    let card = card(&moved, others_open);
    Change::Move {
        moved: Box::new(moved),
        card,
    }
}

/// The card of a closed question, edited in place.
pub(super) fn last_words(closed: &Elicitation) -> SendDraft {
    SendDraft {
        room_id: closed.question.room_id.clone(),
        key: closed.key().clone(),
        also: Vec::new(),
        kind: SendKind::CardEdit,
        content: prose::closed(closed),
    }
}

/// The event that tells the agent in which state its question is now.
pub fn announcement(elicitation: &Elicitation) -> EventDraft {
    EventDraft {
        key: elicitation.key().clone(),
        event_type: format!("elicitation.{}", elicitation.state.word()),
        body: object(elicitation),
    }
}

/// The card of a question, on its way to the room. `others_open`: another question is open there.
pub fn card(elicitation: &Elicitation, others_open: bool) -> SendDraft {
    SendDraft {
        room_id: elicitation.question.room_id.clone(),
        key: elicitation.key().clone(),
        also: Vec::new(),
        kind: SendKind::Card,
        content: prose::card(elicitation, others_open),
    }
}

/// A message could not be decrypted: its sender is told once about this question.
pub fn unreadable(open: &Elicitation, event_id: &str, sender: &str) -> Change {
    Change::SayOnce {
        user_id: sender.to_owned(),
        what: "unreadable".to_owned(),
        notice: SendDraft {
            room_id: open.question.room_id.clone(),
            key: open.key().clone(),
            also: Vec::new(),
            kind: SendKind::Notice,
            content: prose::unreadable(event_id, sender),
        },
    }
}

/// A message can be read after its sender was told that it could not: that word is taken back.
/// `notice` is the question under which it was said.
pub fn read_later(notice: &Key, room_id: &str, event_id: &str) -> Change {
    let mut content = prose::read_later();
    content["m.relates_to"] = serde_json::json!({ "m.in_reply_to": { "event_id": event_id } });
    Change::Send(SendDraft {
        room_id: room_id.to_owned(),
        key: notice.clone(),
        also: Vec::new(),
        kind: SendKind::NoticeEdit,
        content,
    })
}
