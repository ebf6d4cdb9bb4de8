//! What is to be sent to rooms, in order, each row under a transaction id fixed for ever.

use super::LedgerError;
use super::records::{Noticed, Sending};
use crate::clock::Millis;
use crate::desk::{SendDraft, SendKind};
use crate::elicitation::Key;

/// Nothing is put off for longer than this, in milliseconds.
pub const LONGEST_WAIT: Millis = 15 * 60 * 1000;

/// What is to be sent to rooms, in order, each row under a transaction id fixed for ever.
pub trait Outbox {
    /// Queues something to be sent to a room. Its transaction id is fixed here, for ever.
    fn send(&mut self, draft: &SendDraft, now: Millis) -> Result<(), LedgerError>;

    /// The oldest unsent row of each room whose time has come, and when the next one is due. One
    /// that is to wait for longer than [`LONGEST_WAIT`] is due as well: the clock was set back.
    fn sendings_due(&mut self, now: Millis) -> Result<(Vec<Sending>, Option<Millis>), LedgerError>;

    /// The oldest unsent row of one room, and when its time has come; as for
    /// [`Outbox::sendings_due`], that is at once for one that would wait too long.
    fn next_sending(
        &mut self,
        room_id: &str,
        now: Millis,
    ) -> Result<Option<(Sending, Millis)>, LedgerError>;

    /// Notes that a row is about to be sent: after a crash it may be in the room already. `false`
    /// when it is not to be sent any more; it may have been withdrawn since it was due.
    fn mark_attempted(&mut self, seq: i64, now: Millis) -> Result<bool, LedgerError>;

    /// Notes that a row stands in the room as this event. `false` when that was known already.
    fn mark_sent(&mut self, seq: i64, event_id: &str) -> Result<bool, LedgerError>;

    /// Holds a row back: its room is not ready for it. That is no failure.
    fn hold(&mut self, seq: i64, until: Millis, why: &str) -> Result<(), LedgerError>;

    /// Puts a row off after a failure that may pass.
    fn postpone(&mut self, seq: i64, until: Millis, error: &str) -> Result<(), LedgerError>;

    /// Gives a row up for good.
    fn drop_sending(&mut self, seq: i64, error: &str) -> Result<(), LedgerError>;

    /// The unsent row with this transaction id.
    fn sending_by_txn(&mut self, txn_id: &str) -> Result<Option<Sending>, LedgerError>;

    /// The unsent row that holds the card of a question.
    fn pending_card(&mut self, key: &Key) -> Result<Option<Sending>, LedgerError>;

    /// The latest notice that replies to a message of a room, or, for [`SendKind::Waiting`], the
    /// latest reaction of that kind to it.
    fn said_about(
        &mut self,
        kind: SendKind,
        room_id: &str,
        event_id: &str,
    ) -> Result<Option<Noticed>, LedgerError>;

    /// The event of the latest row of this kind under a key, if it is in its room.
    fn sent_as(&mut self, kind: SendKind, key: &Key) -> Result<Option<String>, LedgerError>;

    /// Drops what is of this kind under a key and was never tried. `true` if there was any: its room
    /// never heard of it, and needs no word about its end.
    fn withdraw_unsent(&mut self, kind: SendKind, key: &Key) -> Result<bool, LedgerError>;

    /// Drops what is of these kinds under all keys of an origin and was not sent to a room yet; gives
    /// it, oldest first. What was tried may be in the room all the same.
    fn take_unsent(
        &mut self,
        room_id: &str,
        origin: &str,
        kinds: &[SendKind],
    ) -> Result<Vec<SendDraft>, LedgerError>;

    /// The unsent cards of the questions that go by an id, in one room.
    fn pending_cards(&mut self, room_id: &str, id: &str) -> Result<Vec<Sending>, LedgerError>;

    /// The longest time an unsent row has been waiting since it was first tried, as its first
    /// attempt's time. `None` when nothing is stuck.
    fn oldest_attempted(&mut self) -> Result<Option<Millis>, LedgerError>;
}
