//! What a message says to a session.

use super::super::hear::{Heard, Said};
use super::super::judge::{Bot, Judge, Known, read_with};
use super::super::{Change, Rules};
use crate::clock::Millis;
use crate::elicitation::{Answer, AnswerKind, State};
use crate::reply::{self, MatchedBy, Reading, TargetedBy};

/// What a message in a session's thread, or a reply to what stands in it, says to the session:
/// plainly one option of the question it asks, or the words as they are. `None` for what says
/// nothing. Whoever may not speak to it has been told so before.
pub fn said_to_session(
    heard: &Heard,
    said: &Said,
    session_id: &str,
    open: Option<&Known>,
    rules: &Rules,
    bot: &Bot,
    now: Millis,
) -> Option<Change> {
    let known: Vec<Known> = open
        .filter(|open| open.elicitation.state == State::Open)
        .map(|open| Known {
            // Whatever of the session it points at, it is said to the question.
            own_events: said
                .in_reply_to
                .iter()
                .chain(&said.thread)
                .cloned()
                .collect(),
            ..open.clone()
        })
        .into_iter()
        .collect();
    let (reading, refusals) = read_with(heard, said, &known, rules, bot, now, reply::read);
    let judge = Judge {
        heard,
        said,
        known: &known,
        rules,
        refusals: &refusals,
        declining: None,
        now,
    };
    if reply::is_blank(judge.typed()) {
        return None;
    }
    let answer = |option: Option<usize>, matched_by, targeted_by| Answer {
        kind: option.map_or(AnswerKind::Text, |_| AnswerKind::Option),
        option: option.and_then(|option| known.first()?.elicitation.numbered(option)),
        text: Some(judge.typed().to_owned()),
        matched_by,
        targeted_by,
        directed: true,
        ..judge.answer()
    };
    let answer = match reading {
        Reading::Choose {
            option,
            matched_by,
            targeted_by,
            ..
        } => Some(answer(Some(option), matched_by, targeted_by)),
        _ => known
            .first()
            .map(|_| answer(None, MatchedBy::Text, TargetedBy::Thread)),
    };
    judge.prompt(Some(session_id), answer)
}
