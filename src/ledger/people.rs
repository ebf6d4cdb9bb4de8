//! Whom streams know: since when, under which name, and who is not to be read.

use std::collections::{BTreeMap, BTreeSet};

use super::LedgerError;
use crate::clock::Millis;

/// Gives a person, by their Matrix id, a handle for which the second argument says `false`: it
/// says whether a handle is taken.
pub type ChooseHandle<'a> = &'a mut dyn FnMut(&str, &mut dyn FnMut(&str) -> bool) -> String;

/// Whom streams know.
///
/// Since when an account is known, its handle, and that somebody has opted out are kept for ever:
/// [`super::Ledger::prune`] deletes none of it. A handle that were given away again would put one
/// person's words in another's mouth; an opt-out that lapsed would break a promise. A time-out ends
/// by itself or is undone.
pub trait People {
    /// Notes that an account was there at a moment. The earliest is kept; whether this is it.
    fn meet(&mut self, user_id: &str, at: Millis) -> Result<bool, LedgerError>;

    /// The earliest moment at which each of these accounts is known to have been there; those of
    /// whom nothing is known are missing.
    fn met(&mut self, users: &[&str]) -> Result<BTreeMap<String, Millis>, LedgerError>;

    /// Notes that a person is not to be read in any room. Their lines, with all their texts and the
    /// votes for them, and their own votes are deleted at once in all rooms, as
    /// [`super::Streams`] says, and nothing more of it is kept until they opt in. `false` when they
    /// were out already; what there is of them is deleted all the same.
    fn opt_out(&mut self, user_id: &str, now: Millis) -> Result<bool, LedgerError>;

    /// Notes that a person may be read again. Nothing that was said or voted before comes back.
    /// `false` when they were not out.
    fn opt_in(&mut self, user_id: &str) -> Result<bool, LedgerError>;

    /// All who have opted out.
    fn opted_out(&mut self) -> Result<BTreeSet<String>, LedgerError>;

    /// Whether a person has opted out.
    fn is_opted_out(&mut self, user_id: &str) -> Result<bool, LedgerError>;

    /// Times a person out in a room until a moment, or else until it is undone. What was noted
    /// before of them there does not hold any more.
    fn silence(
        &mut self,
        room_id: &str,
        user_id: &str,
        until: Option<Millis>,
    ) -> Result<(), LedgerError>;

    /// Undoes a time-out. `false` when there was none, over or not.
    fn unsilence(&mut self, room_id: &str, user_id: &str) -> Result<bool, LedgerError>;

    /// Who is timed out in a room at `now`, in the order of their ids, and until when. At its end a
    /// time-out is over.
    fn silenced(
        &mut self,
        room_id: &str,
        now: Millis,
    ) -> Result<Vec<(String, Option<Millis>)>, LedgerError>;

    /// The handles of people. Who has none gets one, in the given order, which is theirs for ever
    /// and never anybody else's.
    ///
    /// # Errors
    /// [`LedgerError::HandleTaken`] when one is chosen that is another's; then the transaction must
    /// not be committed.
    fn give_handles(
        &mut self,
        users: &[String],
        choose: ChooseHandle<'_>,
    ) -> Result<BTreeMap<String, String>, LedgerError>;
}
