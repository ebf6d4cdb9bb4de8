//! Agents' sessions and what was said in them.

use super::LedgerError;
use crate::clock::Millis;
use crate::elicitation::Elicitation;
use crate::session::{Activity, Session, Status};

/// What a listing of sessions looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoughtSessions {
    /// Only this agent's.
    pub agent: String,
    /// Only of this status.
    pub status: Option<Status>,
    /// Continue below this sequence number.
    pub below: Option<i64>,
    /// At most so many.
    pub limit: usize,
}

/// Agents' sessions and what was said in them.
pub trait Sessions {
    /// Stores a new session.
    fn begin_session(&mut self, session: &Session) -> Result<(), LedgerError>;

    /// Changes a session; its root is left as it is noted. A session that has ended stays as it is:
    /// `false`, and nothing was changed.
    fn change_session(&mut self, session: &Session) -> Result<bool, LedgerError>;

    /// `None` means that there is no such session.
    fn session(&mut self, id: &str) -> Result<Option<Session>, LedgerError>;

    /// The session whose thread has this root.
    fn session_by_root(
        &mut self,
        room_id: &str,
        root: &str,
    ) -> Result<Option<Session>, LedgerError>;

    /// Notes that the root of a session stands in a room as this event. If that is not its room any
    /// more, nothing is changed.
    fn mark_root(&mut self, id: &str, room_id: &str, event_id: &str) -> Result<(), LedgerError>;

    /// One page of an agent's sessions, newest first, and where the next one begins.
    fn list_sessions(
        &mut self,
        sought: &SoughtSessions,
    ) -> Result<(Vec<Session>, Option<i64>), LedgerError>;

    /// The sessions of a room that have not ended, oldest first.
    fn living_in(&mut self, room_id: &str) -> Result<Vec<Session>, LedgerError>;

    /// All agents that have a session that has not ended.
    fn living_agents(&mut self) -> Result<Vec<String>, LedgerError>;

    /// The sessions of an agent that have not ended, oldest first.
    fn living_of(&mut self, agent: &str) -> Result<Vec<Session>, LedgerError>;

    /// Sessions about which something is to be done at `now`, at most `limit`, and when the next one
    /// is due.
    fn sessions_due(
        &mut self,
        now: Millis,
        limit: usize,
    ) -> Result<(Vec<Session>, Option<Millis>), LedgerError>;

    /// Keeps what was said in a session.
    fn record(&mut self, session_id: &str, activity: &Activity) -> Result<(), LedgerError>;

    /// What was said in a session, oldest first, after a sequence number and at most `limit`, and
    /// where the next page begins.
    fn activities(
        &mut self,
        session_id: &str,
        after: i64,
        limit: usize,
    ) -> Result<(Vec<Activity>, Option<i64>), LedgerError>;

    /// The first prompt of a session.
    fn first_prompt(&mut self, session_id: &str) -> Result<Option<Activity>, LedgerError>;

    /// The question of a session that is queued or open.
    fn question_of(&mut self, session_id: &str) -> Result<Option<Elicitation>, LedgerError>;

    /// The sessions to which a message was a prompt, oldest first, each with the first of what is
    /// kept of it.
    fn prompted_by(&mut self, event_id: &str) -> Result<Vec<(Session, Activity)>, LedgerError>;

    /// Removes what a message said from everything that is kept of it: it was redacted. `false`
    /// when it was no prompt.
    fn forget_prompt(&mut self, event_id: &str) -> Result<bool, LedgerError>;

    /// Removes the title of a session from everything that is kept of it beside the session itself:
    /// it was the words of a prompt that was redacted.
    fn forget_title(&mut self, session_id: &str) -> Result<(), LedgerError>;

    /// The room in which a person alone is spoken to.
    fn direct_room(&mut self, user_id: &str) -> Result<Option<String>, LedgerError>;

    /// Notes the room in which a person alone is spoken to.
    fn set_direct_room(&mut self, user_id: &str, room_id: &str) -> Result<(), LedgerError>;
}
