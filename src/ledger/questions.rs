//! What was asked, where it stands, what was answered.

use super::LedgerError;
use super::records::{Asked, Page, Sought};
use crate::clock::Millis;
use crate::elicitation::{Elicitation, Key, Question};

/// The most different things a person is told about one question.
pub const MOST_TOLD: u32 = 5;

/// What was asked, where it stands, what was answered.
pub trait Questions {
    /// `None` means that this origin has no such elicitation.
    fn find(&mut self, key: &Key) -> Result<Option<Elicitation>, LedgerError>;

    /// The elicitation that an agent knows by an id: its own, or else one whose answer is routed to
    /// it.
    fn find_of(&mut self, agent: &str, id: &str) -> Result<Option<Elicitation>, LedgerError>;

    /// The questions of other carriers that go by an id.
    fn carried_as(&mut self, id: &str) -> Result<Vec<Elicitation>, LedgerError>;

    /// Changes what a pending question says: its carrier edited the card. `false` when it was
    /// closed already.
    fn revise(&mut self, question: &Question) -> Result<bool, LedgerError>;

    /// Forgets a question that could not be put before anybody, so that its board can have it asked
    /// anew. `false` when there is no such question, or it ended otherwise.
    fn bury(&mut self, key: &Key) -> Result<bool, LedgerError>;

    /// Notes that somebody else's message is about a question, like one of the bot's own.
    fn note_about(&mut self, key: &Key, room_id: &str, event_id: &str) -> Result<(), LedgerError>;

    /// What this origin stored under this id or under this idempotency key, each with the
    /// fingerprint of the request that stored it. At most two: they may differ.
    fn find_asked(
        &mut self,
        origin: &str,
        id: Option<&str>,
        idempotency_key: Option<&str>,
    ) -> Result<Vec<Asked>, LedgerError>;

    /// Stores a new question. `false` when the key (or the idempotency key) exists already:
    /// then nothing was changed.
    fn insert(
        &mut self,
        elicitation: &Elicitation,
        fingerprint: &str,
        idempotency_key: Option<&str>,
    ) -> Result<bool, LedgerError>;

    /// Moves a question to the closed state that `closed` carries, with its answer, reason and
    /// time. `false` when its life does not allow that: it was closed already (the first writer
    /// wins), it is not in the room yet and cannot be answered or declined, or there is no such
    /// question. Then nothing was changed.
    fn settle(&mut self, closed: &Elicitation) -> Result<bool, LedgerError>;

    /// Moves a pending question to the room and the tag that `moved` carries, where its card does
    /// not stand yet. What was still to be sent about it to its old room is dropped; which of the
    /// bot's messages there are about it stays known. `false` when it was closed already, or there
    /// is no such question; then nothing was changed.
    fn relocate(&mut self, moved: &Elicitation) -> Result<bool, LedgerError>;

    /// Notes that the card stands in the room as this event; a queued question becomes open.
    /// Gives back the elicitation as it is now, or `None` if it is unknown or was noted already.
    fn mark_posted(
        &mut self,
        key: &Key,
        event_id: &str,
    ) -> Result<Option<Elicitation>, LedgerError>;

    /// Notes that an own event came back in the room's timeline: the open question whose card it is
    /// becomes visible to what is said after it.
    fn mark_visible(
        &mut self,
        room_id: &str,
        event_id: &str,
        now: Millis,
    ) -> Result<(), LedgerError>;

    /// When a question became visible, by [`Questions::mark_visible`].
    fn visible_at(&mut self, key: &Key) -> Result<Option<Millis>, LedgerError>;

    /// The questions of a room that are open, in the order they were asked.
    fn open_in(&mut self, room_id: &str) -> Result<Vec<Elicitation>, LedgerError>;

    /// The questions of a room that were closed at or after `since`, in the order they were asked;
    /// of many the 20 that were closed last.
    fn closed_in(&mut self, room_id: &str, since: Millis) -> Result<Vec<Elicitation>, LedgerError>;

    /// Whether any question of this room was closed at or after `since`.
    fn any_closed_in(&mut self, room_id: &str, since: Millis) -> Result<bool, LedgerError>;

    /// The questions of a room that are queued or open, in the order they were asked.
    fn pending_in(&mut self, room_id: &str) -> Result<Vec<Elicitation>, LedgerError>;

    /// Whether any question of this room is queued or open.
    fn any_pending_in(&mut self, room_id: &str) -> Result<bool, LedgerError>;

    /// Rooms that have a question or had one before they were upgraded, and whether one of them is
    /// queued or open, or was closed at or after `since`.
    fn rooms(&mut self, since: Millis) -> Result<Vec<(String, bool)>, LedgerError>;

    /// The questions that one of the bot's own messages in the room is about.
    fn about(&mut self, room_id: &str, event_id: &str) -> Result<Vec<Key>, LedgerError>;

    /// The bot's own messages about a question: its card, its notices.
    fn events_about(&mut self, key: &Key) -> Result<Vec<String>, LedgerError>;

    /// The newest question of a room with this tag, open or closed.
    fn tagged(&mut self, room_id: &str, tag: &str) -> Result<Option<Elicitation>, LedgerError>;

    /// The elicitation this event is the answer of. It may have been given in a room whose
    /// successor the question is in.
    fn answered_by_event(
        &mut self,
        room_id: &str,
        event_id: &str,
    ) -> Result<Option<Elicitation>, LedgerError>;

    /// Removes the text of an answer everywhere, after its message was redacted: from the
    /// elicitation, its events, and what was or is to be sent about it. Unsent messages that may
    /// quote a written answer are dropped; the caller sends new last words after this.
    fn forget_answer_text(&mut self, key: &Key) -> Result<(), LedgerError>;

    /// The next tag of a room. Tags are never used twice: a late `q1 2` must not
    /// answer another question.
    fn next_tag(&mut self, room_id: &str) -> Result<String, LedgerError>;

    /// The pending question of this origin about the same card.
    fn pending_about_card(
        &mut self,
        origin: &str,
        board_id: Option<&str>,
        card_id: &str,
    ) -> Result<Vec<Elicitation>, LedgerError>;

    /// Pending questions whose deadline is at or before `now`, and the deadline that comes next.
    fn due(&mut self, now: Millis) -> Result<(Vec<Elicitation>, Option<Millis>), LedgerError>;

    /// One page of the elicitations that an agent may read, newest first.
    fn list(&mut self, sought: &Sought) -> Result<Page, LedgerError>;

    /// Pending questions in number, and when the oldest open one was asked.
    fn pending_counts(&mut self) -> Result<(u64, u64, Option<Millis>), LedgerError>;

    /// `true` the first time this is said to this person about this question, unless they were
    /// told [`MOST_TOLD`] things about it already: the bot is not to be kept talking.
    fn first_time(&mut self, key: &Key, user_id: &str, what: &str) -> Result<bool, LedgerError>;
}
