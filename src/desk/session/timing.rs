//! What time does to a session.

use super::shown_anew;
use crate::clock::Millis;
use crate::desk::Change;
use crate::session::{Session, Status};

/// How long a session that is to stop waits for its agent's last word.
pub const LAST_WORD_WITHIN: Millis = 60_000;
/// How long an active session may be silent before it counts as stale.
pub const STALE_AFTER: Millis = 30 * 60_000;
/// How long an agent may take for its first word before the room is told that it does.
pub const FIRST_WORD_WITHIN: Millis = 10_000;
/// When something is to be done about a session by itself.
pub fn session_due(session: &Session) -> Option<Millis> {
    let silence = (!session.heard && !session.silent && session.status == Status::Active)
        .then(|| session.created_at.saturating_add(FIRST_WORD_WITHIN));
    let end = match session.status {
        Status::Stopping => Some(session.updated_at.saturating_add(LAST_WORD_WITHIN)),
        Status::Active => Some(session.updated_at.saturating_add(STALE_AFTER)),
        _ => None,
    };
    let own = silence
        .into_iter()
        .chain(end)
        .filter(|_| !session.has_ended());
    own.chain(session.edit_at).min()
}

/// What is to be done about a session by itself, now.
pub fn session_tick(session: &Session, now: Millis) -> Vec<Change> {
    let passed = |since: Millis, span: Millis| now >= since.saturating_add(span);
    let mut next = session.clone();
    if !session.has_ended() {
        match session.status {
            Status::Stopping if passed(session.updated_at, LAST_WORD_WITHIN) => {
                next.status = Status::Complete;
                next.ended_at = Some(now);
            }
            Status::Active if passed(session.updated_at, STALE_AFTER) => {
                next.status = Status::Stale;
            }
            Status::Active if !session.heard && passed(session.created_at, FIRST_WORD_WITHIN) => {
                next.silent = true;
            }
            _ => {}
        }
    }
    if next == *session && session.edit_at.is_none_or(|at| at > now) {
        return Vec::new();
    }
    shown_anew(session, next, now)
}
