//! What becomes of an answer that was handed in to a board: the board decides, the room is told.

use serde_json::Value;

use super::change::{Change, SendDraft, SendKind, close, taken};
use crate::clock::Millis;
use crate::elicitation::{Answer, Elicitation, Outcome, SETTLED, State};
use crate::prose::{self, Place};

/// What follows from the end of handing an answer in. `room_id` is where it was given, and has the
/// signs on it; the question may have gone on to another room. `waited`: the room was shown that it
/// takes its time.
pub fn handed_in(
    elicitation: &Elicitation,
    answer: &Answer,
    room_id: &str,
    outcome: &Outcome,
    waited: bool,
    now: Millis,
) -> Vec<Change> {
    let mut changes = Vec::new();
    if waited {
        changes.push(wait_is_over(elicitation, answer, room_id));
    }
    // Its card may be gone by then, or an answer that was taken back came there first.
    let over = elicitation.state.is_closed();
    match outcome {
        Outcome::Taken => {
            if !over {
                let given = Some(answer.clone());
                changes.push(close(elicitation, State::Answered, None, given, now));
            }
            changes.push(taken(room_id, elicitation, &answer.event_id));
        }
        Outcome::Settled { .. } => {
            if !over {
                changes.push(settled(elicitation, now));
            }
            changes.push(told(elicitation, answer, outcome));
        }
        _ => changes.push(told(elicitation, answer, outcome)),
    }
    changes
}

/// A question that is open here, and that its board no longer asks.
pub fn settled(elicitation: &Elicitation, now: Millis) -> Change {
    close(elicitation, State::Cancelled, Some(SETTLED), None, now)
}

/// The room where an answer was given sees that it is kept and takes its time.
pub fn wait_for_board(elicitation: &Elicitation, answer: &Answer, room_id: &str) -> Change {
    waiting(elicitation, answer, room_id, SendKind::Waiting)
}

/// An answer that the room saw waiting is not waited with any more.
pub fn wait_is_over(elicitation: &Elicitation, answer: &Answer, room_id: &str) -> Change {
    waiting(elicitation, answer, room_id, SendKind::WaitingOver)
}

fn waiting(elicitation: &Elicitation, answer: &Answer, room_id: &str, kind: SendKind) -> Change {
    let content = prose::reaction(&answer.event_id, prose::WAITING);
    Change::Send(SendDraft {
        room_id: room_id.to_owned(),
        ..draft(elicitation, kind, content)
    })
}

/// What the person is told of their own message. Each try is told of: it may have been meant to
/// end otherwise.
fn told(elicitation: &Elicitation, answer: &Answer, outcome: &Outcome) -> Change {
    let place = Place {
        to: &answer.event_id,
        thread: None,
    };
    let content = prose::not_taken(&place, elicitation, outcome);
    Change::SayOnce {
        user_id: answer.answered_by.clone(),
        what: format!("{} {}", outcome.word(), answer.event_id),
        notice: draft(elicitation, SendKind::Notice, content),
    }
}

fn draft(elicitation: &Elicitation, kind: SendKind, content: Value) -> SendDraft {
    SendDraft {
        room_id: elicitation.question.room_id.clone(),
        key: elicitation.key().clone(),
        also: Vec::new(),
        kind,
        content,
    }
}
