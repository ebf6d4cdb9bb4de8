//! What a decision changes. The ledger carries it out in the transaction in which it was made.

use serde_json::Value;

use crate::clock::Millis;
use crate::elicitation::{Answer, Elicitation, Key, Source, State, object};
use crate::prose;
use crate::session::{Activity, Session};

use super::session::Prompt;

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
    /// A reaction that says that somebody's message is kept, and not decided yet.
    Waiting,
    /// The end of such a reaction.
    WaitingOver,
    /// The root of a session's thread.
    Root,
    /// A new content for the root, in place.
    RootEdit,
    /// A message in a session's thread.
    InThread,
    /// What one person alone is asked to connect.
    Connect,
    /// A new content for that, in place.
    ConnectOver,
}

impl SendKind {
    const ALL: [Self; 12] = [
        Self::Card,
        Self::CardEdit,
        Self::Reaction,
        Self::Notice,
        Self::NoticeEdit,
        Self::Waiting,
        Self::WaitingOver,
        Self::Root,
        Self::RootEdit,
        Self::InThread,
        Self::Connect,
        Self::ConnectOver,
    ];

    /// Its word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::CardEdit => "card_edit",
            Self::Reaction => "reaction",
            Self::Notice => "notice",
            Self::NoticeEdit => "notice_edit",
            Self::Waiting => "waiting",
            Self::WaitingOver => "waiting_over",
            Self::Root => "root",
            Self::RootEdit => "root_edit",
            Self::InThread => "in_thread",
            Self::Connect => "connect",
            Self::ConnectOver => "connect_over",
        }
    }

    /// The kind of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The type of the room event.
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::Reaction | Self::Waiting => "m.reaction",
            Self::WaitingOver => "m.room.redaction",
            Self::Card
            | Self::CardEdit
            | Self::Notice
            | Self::NoticeEdit
            | Self::Root
            | Self::RootEdit
            | Self::InThread
            | Self::Connect
            | Self::ConnectOver => "m.room.message",
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
    /// A [`SendKind::WaitingOver`] has the content of the reaction that it ends.
    pub content: Value,
}

impl SendDraft {
    /// The message that a notice (or its edit) replies to, or that is waited with.
    pub fn replies_to(&self) -> Option<&str> {
        let place = match self.kind {
            SendKind::Notice | SendKind::NoticeEdit => "/m.relates_to/m.in_reply_to/event_id",
            SendKind::Waiting | SendKind::WaitingOver => "/m.relates_to/event_id",
            _ => return None,
        };
        self.content.pointer(place).and_then(Value::as_str)
    }
}

/// An event for an agent, before it has an id.
#[derive(Debug, Clone, PartialEq)]
pub struct EventDraft {
    /// Whom it is for, as its origin, and the id of the question it is about.
    pub key: Key,
    /// `elicitation.open`, `elicitation.answered`, …
    pub event_type: String,
    /// The object the event carries.
    pub body: Value,
    /// Whether it goes ahead of everything else that waits for the agent.
    pub urgent: bool,
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
        /// The card's last words; none for a card that somebody else posted.
        edit: Option<SendDraft>,
        /// What an agent is told, if one is.
        event: Option<EventDraft>,
    },
    /// A pending question goes on in another room, where its card is put up anew. If it was closed
    /// already, nothing of this happens.
    Move {
        /// The elicitation as it is there before its card is.
        moved: Box<Elicitation>,
        /// Its card; none where somebody else is to put it up.
        card: Option<SendDraft>,
    },
    /// A session begins.
    Begin(Box<Session>),
    /// A session is as this from now on. If it had ended, nothing of this happens.
    Session(Box<Session>),
    /// Something that was said in a session is kept.
    Record {
        /// The session.
        session_id: String,
        /// What was said.
        activity: Box<Activity>,
    },
    /// A session asks a question in its room.
    Ask {
        /// The question.
        elicitation: Box<Elicitation>,
        /// Its card.
        card: SendDraft,
    },
    /// A person speaks to a session; what follows is decided by how that stands.
    Prompt(Box<Prompt>),
    /// An answer is to be handed in to the question's board, which decides. When another one is
    /// being handed in already, or the question is over, nothing of this happens.
    Submit {
        /// The question.
        key: Key,
        /// The answer, as it will stand once the board has taken it.
        answer: Box<Answer>,
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
    /// Agents may read what a person says in rooms, or may not: then nothing of it is kept.
    LetRead {
        /// The person.
        user_id: String,
        /// Whether they may.
        may: bool,
    },
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
    let card = (moved.question.source() != Source::Carrier).then(|| card(&moved, others_open));
    Change::Move {
        moved: Box::new(moved),
        card,
    }
}

/// The card of a closed question, edited in place; none for one that is not ours to edit.
pub(super) fn last_words(closed: &Elicitation) -> Option<SendDraft> {
    (closed.question.source() != Source::Carrier).then(|| SendDraft {
        room_id: closed.question.room_id.clone(),
        key: closed.key().clone(),
        also: Vec::new(),
        kind: SendKind::CardEdit,
        content: prose::closed(closed),
    })
}

/// The event that tells an agent in which state a question is now, if one is to be told.
pub fn announcement(elicitation: &Elicitation) -> Option<EventDraft> {
    let event_type = format!("elicitation.{}", elicitation.state.word());
    told(elicitation, event_type, || object(elicitation))
}

/// An event about a question for the agent that hears of it, if there is one.
pub(super) fn told(
    elicitation: &Elicitation,
    event_type: impl Into<String>,
    body: impl FnOnce() -> Value,
) -> Option<EventDraft> {
    let question = &elicitation.question;
    Some(EventDraft {
        key: Key::new(question.owner()?, question.key.id.as_str()),
        event_type: event_type.into(),
        body: body(),
        urgent: false,
    })
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

/// The ✓ on a message that was taken as the answer to a question.
pub(super) fn taken(room_id: &str, elicitation: &Elicitation, message: &str) -> Change {
    Change::Send(SendDraft {
        room_id: room_id.to_owned(),
        key: elicitation.key().clone(),
        also: Vec::new(),
        kind: SendKind::Reaction,
        content: prose::reaction(message, prose::TAKEN),
    })
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
