//! What was heard in rooms: ids seen, gaps, what could not be decrypted, the sync token.

use super::LedgerError;
use super::records::{Gap, Undecrypted};
use crate::clock::Millis;

/// The most events of one room that wait for their keys.
pub const MOST_KEPT: u32 = 500;

/// The most commands of one person that are answered within [`COMMANDS_WITHIN`].
pub const MOST_COMMANDS: u32 = 5;
/// See [`MOST_COMMANDS`]; in milliseconds.
pub const COMMANDS_WITHIN: Millis = 60_000;

/// What was heard in rooms: ids seen, gaps, what could not be decrypted, the sync token.
pub trait Inbox {
    /// `true` if this event was not seen before; it belongs to whoever inserts it first.
    fn see(&mut self, room_id: &str, event_id: &str, now: Millis) -> Result<bool, LedgerError>;

    /// Whether this event was seen before.
    fn seen(&mut self, room_id: &str, event_id: &str) -> Result<bool, LedgerError>;

    /// Where the next sync continues.
    fn sync_token(&mut self) -> Result<Option<String>, LedgerError>;

    /// Sets where the next sync continues.
    fn set_sync_token(&mut self, token: &str) -> Result<(), LedgerError>;

    /// Where a configured alias led when it was last looked up.
    fn alias(&mut self, alias: &str) -> Result<Option<String>, LedgerError>;

    /// Notes where a configured alias leads.
    fn set_alias(&mut self, alias: &str, room_id: &str) -> Result<(), LedgerError>;

    /// The room that took the place of an upgraded one; of a chain of them the last. `None` for a
    /// room that is still in use.
    fn successor(&mut self, room_id: &str) -> Result<Option<String>, LedgerError>;

    /// All upgrades that were followed, each as the room and the one that took its place.
    fn successors(&mut self) -> Result<Vec<(String, String)>, LedgerError>;

    /// Notes that a room was upgraded. The successor's tags go on after the room's: a late `q1 2`
    /// must not answer another question there either. `false` when another successor was noted
    /// already, or when the room is itself one of the successor's; then nothing was changed.
    fn set_successor(&mut self, room_id: &str, successor: &str) -> Result<bool, LedgerError>;

    /// Opens a gap in a room's timeline: nothing is decided there until it is closed.
    fn open_gap(&mut self, gap: &Gap) -> Result<(), LedgerError>;

    /// All open gaps, oldest first.
    fn gaps(&mut self) -> Result<Vec<Gap>, LedgerError>;

    /// Keeps an event that arrived while its room had an open gap.
    fn defer(&mut self, gap_room: &str, event_id: &str, raw: &str) -> Result<(), LedgerError>;

    /// Closes a room's gaps and hands out what was kept meanwhile, in order.
    fn close_gaps(&mut self, room_id: &str) -> Result<Vec<String>, LedgerError>;

    /// Keeps an event that could not be decrypted yet; of one room at most [`MOST_KEPT`], the first.
    fn keep_undecrypted(&mut self, kept: &Undecrypted) -> Result<(), LedgerError>;

    /// When a kept event came; `None` if it is not kept.
    fn undecrypted_since(
        &mut self,
        room_id: &str,
        event_id: &str,
    ) -> Result<Option<Millis>, LedgerError>;

    /// What could not be decrypted yet, oldest first.
    fn undecrypted(&mut self) -> Result<Vec<Undecrypted>, LedgerError>;

    /// Notes that the room was told that this event could not be read.
    fn mark_told_unreadable(&mut self, room_id: &str, event_id: &str) -> Result<(), LedgerError>;

    /// Notes that a person gave a command. `false` when they gave [`MOST_COMMANDS`] within
    /// [`COMMANDS_WITHIN`] already: then it is not to be answered.
    fn may_command(&mut self, user_id: &str, now: Millis) -> Result<bool, LedgerError>;

    /// Drops a kept event, because it was decrypted or is too old.
    fn drop_undecrypted(&mut self, room_id: &str, event_id: &str) -> Result<(), LedgerError>;
}
