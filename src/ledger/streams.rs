//! What was said in the rooms of streams, for as long as a digest may ask for it.

use super::LedgerError;
use crate::clock::Millis;

/// A line as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLine {
    /// The room in which it stands.
    pub room_id: String,
    /// Its message.
    pub event_id: String,
    /// Who said it, a Matrix id.
    pub sender: String,
    /// When it came, by [`Streams::stamp`]: its place.
    pub stamp: Millis,
    /// When it was sent, as its sender says.
    pub sent_at: Millis,
    /// Whether it is an `m.emote`.
    pub emote: bool,
    /// The event it replies to.
    pub in_reply_to: Option<String>,
    /// Who said what it replies to, a Matrix id.
    pub replied_to: Option<String>,
    /// Whom its `m.mentions` names, Matrix ids in its order.
    pub mentions: Vec<String>,
    /// What it says.
    pub text: KeptText,
}

/// What a line says, by its message or by an edit of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptText {
    /// The message itself, or the edit.
    pub event_id: String,
    /// When that was sent, as its sender says.
    pub sent_at: Millis,
    /// The body, as it came.
    pub body: String,
    /// What a digest needs to know of it; nothing here looks into it. `None`: it says nothing, and
    /// is kept because an edit may say something in its place.
    pub prepared: Option<String>,
    /// What it has in common with its repeats: votes are for this, not for the letters.
    pub key: Option<String>,
}

/// A line as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    /// The line, with the text that counts now.
    pub line: KeptLine,
    /// The people who voted for it, each once, in the order of their ids.
    pub votes: Vec<String>,
}

/// What was said in the rooms of streams.
///
/// A room that was upgraded ([`super::Inbox::set_successor`]) means the last that took its place,
/// in every method: what is heard late in the old one, an edit or a redaction, is about lines that
/// stand in the new one.
///
/// **What is deleted.** Deleted text is overwritten in the database by the commit that deletes it,
/// and the log, which may hold older copies of it, is emptied right after that commit. While
/// somebody is reading the log cannot be emptied; then that is done after the next commit that
/// finds nobody reading, or when the ledger is closed. What a crash leaves in the log goes at the
/// next start. None of this reaches copies and snapshots that the file system or a backup made.
///
/// Nothing here goes by [`super::Ledger::prune`]: only by [`Streams::unsay`],
/// [`Streams::forget_lines`], [`Streams::forget_rooms_but`] and [`super::People::opt_out`].
pub trait Streams {
    /// The moment to note for what is stored now, or to end a window at: `now`, or the one after the
    /// last moment given if that is later. It never goes back and is never given twice, whatever the
    /// clock does, also across restarts: what is stored one after the other keeps its order, and what
    /// was stored before a window ends is in it.
    fn stamp(&mut self, now: Millis) -> Result<Millis, LedgerError>;

    /// Keeps a line, with the votes that came for it while it waited for its key; those are deleted
    /// when it comes with an edit, for they may have been for something else. The first writer wins.
    /// `false`, and nothing is stored, when it is kept already,
    /// its sender has opted out, or its message or the edit that it comes with was unsaid before.
    fn keep_line(&mut self, line: &KeptLine) -> Result<bool, LedgerError>;

    /// Keeps what an edit makes of a line. The latest edit counts, by when it was sent and then by
    /// its id, in whatever order they come; any edit counts before the message itself. When the text
    /// that counts then has another key, the votes for the line are deleted: they were for something
    /// else.
    ///
    /// `false`, and nothing is stored, when there is no such line of this sender, or the edit is kept
    /// already or was unsaid before.
    fn edit_line(
        &mut self,
        room_id: &str,
        line_event: &str,
        sender: &str,
        text: &KeptText,
    ) -> Result<bool, LedgerError>;

    /// A line as it stands, with all its votes.
    fn line(&mut self, room_id: &str, event_id: &str) -> Result<Option<StoredLine>, LedgerError>;

    /// Keeps a vote for a line, or for a message that waits for its key
    /// ([`super::Inbox::keep_undecrypted`]) and may be one. `false`, and nothing is stored, when it is
    /// for neither, the voter has opted out, or the vote is kept already or was unsaid before. A
    /// person may vote for a line more than once, and counts once.
    fn vote(
        &mut self,
        room_id: &str,
        vote_event: &str,
        line_event: &str,
        voter: &str,
        stamp: Millis,
    ) -> Result<bool, LedgerError>;

    /// Takes back what was redacted: a line with all its texts and votes; an edit, so that the text
    /// before it counts again, with the rule for votes of [`Streams::edit_line`]; or a vote, but no
    /// other one of the same person. A line that has no text left, for it came with its edit, goes.
    /// The id stays known, as of `stamp`, until lines of that time are forgotten: what comes only
    /// afterwards, or once more, is not kept. `false` when nothing of it was kept.
    fn unsay(&mut self, room_id: &str, event_id: &str, stamp: Millis) -> Result<bool, LedgerError>;

    /// The lines of a room that came at or after `since` and before `until`, as they stand, in the
    /// order in which they came, with the votes up to and including `until`. With `since` `None` all
    /// that are kept.
    fn lines(
        &mut self,
        room_id: &str,
        since: Option<Millis>,
        until: Millis,
    ) -> Result<Vec<StoredLine>, LedgerError>;

    /// Notes anew what a digest needs to know of a text: the rules for it have changed, not the
    /// text. Votes stay, whatever the key was.
    fn set_prepared(
        &mut self,
        room_id: &str,
        text_event: &str,
        prepared: Option<&str>,
        key: Option<&str>,
    ) -> Result<(), LedgerError>;

    /// Deletes the lines of a room that came before a moment, with their texts and votes, and gives
    /// their number. With them goes what was unsaid there, and who was timed out there, only before
    /// that moment.
    fn forget_lines(&mut self, room_id: &str, before: Millis) -> Result<u64, LedgerError>;

    /// Deletes the lines of all rooms that came before a moment, with their texts and votes, and gives
    /// their number. With them goes what was unsaid before that moment. A line whose stamp is after
    /// `now` came while the clock was ahead, and how long ago is not known: of those go the ones that
    /// were sent before that moment, as their senders say.
    fn forget_older(&mut self, before: Millis, now: Millis) -> Result<u64, LedgerError>;

    /// Deletes the lines of all rooms but these, and gives their number: they are of no stream any
    /// more. With them goes what was unsaid there, and that their ages were read: it is not known
    /// who comes while nobody listens. Who is timed out there stays so.
    fn forget_rooms_but(&mut self, rooms: &[String]) -> Result<u64, LedgerError>;

    /// Moves the lines of a room, and what was unsaid there, to the one that took its place, where
    /// they are found under their ids as before. Also what is noted of the room: who is timed out
    /// there (of two ends the later), and whether ages were read.
    fn move_lines(&mut self, from: &str, to: &str) -> Result<(), LedgerError>;

    /// Notes that the history of a room has been read for when people were first there.
    fn note_ages_read(&mut self, room_id: &str) -> Result<(), LedgerError>;

    /// Whether the history of a room has been read for when people were first there.
    fn ages_read(&mut self, room_id: &str) -> Result<bool, LedgerError>;
}
