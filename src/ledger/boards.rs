//! What boards decide: answers on their way to them, and the rooms that were made for them.

use super::LedgerError;
use crate::clock::Millis;
use crate::elicitation::{Answer, Elicitation, Key};

/// An answer on its way to the board that decides.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// Its number.
    pub seq: i64,
    /// The question.
    pub key: Key,
    /// The room in which it was given; the question may have gone on to another.
    pub room_id: String,
    /// The answer, as it will stand once the board has taken it.
    pub answer: Answer,
    /// Failed attempts.
    pub attempts: u32,
    /// Whether the board may have got it already.
    pub tried: bool,
    /// Whether it is being handed in right now.
    pub in_hand: bool,
    /// Whether the room was shown that it takes its time.
    pub waited: bool,
    /// When it was given.
    pub created_at: Millis,
}

/// What boards decide: answers on their way to them, and the rooms that were made for them.
pub trait Boards {
    /// Keeps an answer that is to be handed in. `false` when another one to the same question is on
    /// its way, or the question is not open; then nothing was changed.
    fn submit(&mut self, key: &Key, answer: &Answer, now: Millis) -> Result<bool, LedgerError>;

    /// The answer to a question that is on its way.
    fn submission(&mut self, key: &Key) -> Result<Option<Submission>, LedgerError>;

    /// The answer on its way that this message of a room gave.
    fn submission_by_event(
        &mut self,
        room_id: &str,
        event_id: &str,
    ) -> Result<Option<Submission>, LedgerError>;

    /// The answers of one origin that are to be handed in now, oldest first and at most `limit`, and
    /// when the next one is due. One that is in hand is not among them; one that is to wait for
    /// longer than [`super::LONGEST_WAIT`] is: the clock was set back.
    fn submissions_due(
        &mut self,
        origin: &str,
        now: Millis,
        limit: usize,
    ) -> Result<(Vec<Submission>, Option<Millis>), LedgerError>;

    /// Notes that an answer is handed in now: after a crash the board may have it. `false` when it
    /// is not to be handed in any more; it may have been withdrawn since it was due.
    fn mark_in_hand(&mut self, seq: i64) -> Result<bool, LedgerError>;

    /// Notes that the room is shown that an answer takes its time. `false` when it was shown already,
    /// or the answer is not on its way any more.
    fn mark_waited(&mut self, seq: i64) -> Result<bool, LedgerError>;

    /// Puts an answer off after a failure that may pass.
    fn postpone_submission(
        &mut self,
        seq: i64,
        until: Millis,
        error: &str,
    ) -> Result<(), LedgerError>;

    /// Lets the answers of an origin that were put off be due at once: it can be reached again.
    fn hurry_submissions(&mut self, origin: &str, now: Millis) -> Result<(), LedgerError>;

    /// Notes how handing an answer in ended; another one may be handed in then. Its text is not kept
    /// for longer: nobody would know of it when its message is redacted. `false` when it was ended
    /// already.
    fn end_submission(&mut self, seq: i64, outcome: &str) -> Result<bool, LedgerError>;

    /// Answers on their way, in number.
    fn submissions_pending(&mut self) -> Result<u64, LedgerError>;

    /// The questions of an origin that are queued or open, in the order they were asked.
    fn pending_of(&mut self, origin: &str) -> Result<Vec<Elicitation>, LedgerError>;

    /// The room that was made for a board, and the name that it was given last.
    fn board_room(&mut self, board: &str) -> Result<Option<(String, Option<String>)>, LedgerError>;

    /// Notes the room that was made for a board, and the name that it was given.
    fn set_board_room(
        &mut self,
        board: &str,
        room_id: &str,
        name: Option<&str>,
    ) -> Result<(), LedgerError>;
}
