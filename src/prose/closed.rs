//! What becomes of a card when its question is over.

use serde_json::Value;

use super::card::context;
use super::draft::Draft;
use super::text::{line_of, lines, shortened, user_id};
use super::{gist, label, moment, without_html_if_too_large, write_prompt};
use crate::elicitation::{Answer, Elicitation, SETTLED, Source, State};

/// Characters and lines of a written answer that the closed card shows.
const SHOWN_ANSWER: (usize, usize) = (1000, 20);

/// The content that takes the card's place when the question is over: the prompt,
/// the outcome, the context. It carries no card, so no client draws buttons.
///
/// It becomes an edit by [`super::relate_edit`]. Clients that know no edits show the
/// question in a few words, and the outcome. Meant for closed states; of an open question it says that nobody
/// has answered yet.
pub fn closed(elicitation: &Elicitation) -> Value {
    let mut draft = Draft::default();
    write_prompt(&mut draft, elicitation);
    write_outcome(&mut draft, elicitation, SHOWN_ANSWER);
    draft.aside(&context(elicitation));

    let mut fallback = Draft::default();
    let short = format!("* “{}”: {}", gist(elicitation), outcome(elicitation));
    fallback.paragraph(&[short.into()]);
    write_answer(&mut fallback, elicitation, SHOWN_IN_FALLBACK);

    let mut content = fallback.content("m.text");
    content["m.new_content"] = draft.content("m.text");
    without_html_if_too_large(&mut content);
    content
}

/// Characters and lines of a written answer that clients without edits show.
const SHOWN_IN_FALLBACK: (usize, usize) = (200, 3);

/// The outcome, and below it a written answer of at most so many characters and
/// lines.
pub(super) fn write_outcome(draft: &mut Draft, elicitation: &Elicitation, most: (usize, usize)) {
    draft.paragraph(&[outcome(elicitation).into()]);
    write_answer(draft, elicitation, most);
}

/// A written answer, if that is what was given.
fn write_answer(
    draft: &mut Draft,
    elicitation: &Elicitation,
    (most_characters, most_lines): (usize, usize),
) {
    if elicitation.state == State::Answered
        && let Some(Answer {
            option: None,
            text: Some(text),
            ..
        }) = &elicitation.answer
    {
        let mut shown = lines(&shortened(text.clone(), most_characters));
        if shown.len() > most_lines {
            shown.truncate(most_lines);
            shown.push("…".to_owned());
        }
        if shown.is_empty() {
            shown.push("(nothing readable)".to_owned());
        }
        draft.quote(&shown);
    }
}

/// The outcome on one line.
fn outcome(elicitation: &Elicitation) -> String {
    let mut words = words(elicitation);
    let reason = elicitation
        .reason
        .as_deref()
        // Which question took its place means something to the agent only.
        .filter(|_| elicitation.state != State::Superseded && !is_settled(elicitation))
        .map(|reason| line_of(reason, 300));
    if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
        words.push_str(". Reason: ");
        words.push_str(&reason);
    }
    words
}

fn words(elicitation: &Elicitation) -> String {
    let closed_at = elicitation
        .closed_at
        .map_or_else(String::new, |at| format!(", {}", moment(at)));
    match (elicitation.state, &elicitation.answer) {
        (State::Queued | State::Open, _) => "Not answered yet".to_owned(),
        (State::Answered, Some(answer)) => answered(answer),
        (State::Answered, None) => format!("✓ Answered{closed_at}"),
        (State::Declined, Some(answer)) => {
            format!(
                "Declined by {}, {}",
                person(answer),
                moment(answer.answered_at)
            )
        }
        (State::Declined, None) => format!("Declined{closed_at}"),
        // Without a reason it was the agent itself.
        (State::Cancelled, _) if elicitation.reason.is_none() => {
            format!("Withdrawn by the agent{closed_at}")
        }
        (State::Cancelled, _) if is_settled(elicitation) => {
            format!("Settled on the board{closed_at}")
        }
        (State::Cancelled, _) => format!("Withdrawn{closed_at}"),
        (State::Superseded, _) => format!("Replaced by a newer question{closed_at}"),
        // The deadline, not when it was noticed.
        (State::Expired, _) => match elicitation.question.expires_at.or(elicitation.closed_at) {
            Some(at) => format!("Expired without an answer, {}", moment(at)),
            None => "Expired without an answer".to_owned(),
        },
        (State::Undeliverable, _) => format!("Could not be asked here{closed_at}"),
    }
}

/// Whether it was closed because its board no longer asks.
fn is_settled(elicitation: &Elicitation) -> bool {
    elicitation.question.source() == Source::Board && elicitation.reason.as_deref() == Some(SETTLED)
}

fn answered(answer: &Answer) -> String {
    let (who, at) = (person(answer), moment(answer.answered_at));
    match (&answer.option, &answer.text) {
        (Some(option), _) => {
            let label = label(&option.label, &option.id, usize::MAX);
            format!("✓ {}. {label} — {who}, {at}", option.number)
        }
        (None, Some(_)) => format!("✓ Answered by {who}, {at}:"),
        (None, None) => format!("✓ Answered by {who}, {at} (the text was removed later)"),
    }
}

/// Who answered: the name in the room, which anybody may choose freely, and beside
/// it the user id, which nobody can. A name that could pass for a user id is not
/// shown.
pub(super) fn person(answer: &Answer) -> String {
    let user_id = user_id(&answer.answered_by);
    match answer.display_name.as_deref().map(|name| line_of(name, 60)) {
        Some(name) if !name.is_empty() && !name.contains(['@', '＠', '﹫']) => {
            format!("{name} ({user_id})")
        }
        _ => user_id,
    }
}
