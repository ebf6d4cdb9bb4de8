//! What the bot says to one person's message: little, and only where the message
//! was meant as an answer.

use serde_json::{Value, json};

use super::card::{instruction, tagged_example};
use super::closed::write_outcome;
use super::draft::{Draft, Span};
use super::text::user_id;
use super::{gist, label, labels, without_html_if_too_large};
use crate::elicitation::{Elicitation, State};

/// Characters of a label in a notice: the card has them all.
pub(super) const SHOWN_LABEL: usize = 200;

/// Characters and lines of a written answer in a notice.
const SHOWN_ANSWER: (usize, usize) = (200, 3);

/// Questions that a notice lists by name.
const SHOWN_QUESTIONS: usize = 20;

/// The message that a notice is about, and so a reply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The person's message, an event id.
    pub to: &'a str,
    /// The root of the thread it is in.
    pub thread: Option<&'a str>,
}

/// Why a person's reply does not count, whatever it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// They are not among the people who may answer.
    NotListed,
    /// Their power level in the room is too low.
    TooLittlePower {
        /// The power level that answers.
        needed: i64,
    },
    /// The list of people who may answer is empty.
    Nobody,
    /// The device they wrote from is not verified, and must be.
    Unverified,
    /// The encryption says that the message may be from somebody else.
    Untrusted,
}

/// Two or more options are named, by their places from 0: which one? With fewer
/// than two all are listed. Each is shown as `#n`, which is always clear.
pub fn ask_option(place: &Place<'_>, elicitation: &Elicitation, named: &[usize]) -> Value {
    let labels = labels(elicitation, SHOWN_LABEL);
    let several = named.len() > 1;
    let mut spans: Vec<Span> = vec![
        if several {
            "That fits more than one option:"
        } else {
            "Please name one of the options:"
        }
        .into(),
    ];
    for (index, label) in labels.iter().enumerate() {
        if !several || named.contains(&index) {
            let number = index + 1;
            spans.push(Span::Break);
            spans.push(Span::Code(format!("#{number}")));
            spans.push(format!(" {label}").into());
        }
    }
    let mut draft = Draft::default();
    draft.paragraph(&spans);
    let example = named.first().map_or(1, |index| index + 1);
    draft.paragraph(&[
        "Which one do you mean? A number with # in front, like ".into(),
        Span::Code(format!("#{example}")),
        ", is always clear.".into(),
    ]);
    notice(place, draft)
}

/// The message was meant as an answer and is none. Lists all options; `suggestions`
/// are the places from 0 of options it may have meant, at most three are shown.
pub fn not_understood(
    place: &Place<'_>,
    elicitation: &Elicitation,
    suggestions: &[usize],
) -> Value {
    let meant: Vec<String> = suggestions
        .iter()
        .take(3)
        .filter_map(|&index| elicitation.numbered(index))
        .map(|option| {
            format!(
                "{}, {}",
                option.number,
                label(&option.label, &option.id, SHOWN_LABEL)
            )
        })
        .collect();
    let gist = gist(elicitation);
    let mut lead = if elicitation.question.is_answerable() {
        format!("Sorry, I did not understand that as an answer to “{gist}”.")
    } else {
        super::board::only_there(elicitation)
    };
    if !meant.is_empty() {
        lead.extend([" Did you mean ", &meant.join("; or "), "?"]);
    }
    let mut draft = Draft::default();
    draft.paragraph(&[lead.into()]);
    if !elicitation.question.options.is_empty() {
        draft.list("Options:", &labels(elicitation, SHOWN_LABEL));
    }
    draft.paragraph(&[instruction(elicitation).into()]);
    notice(place, draft)
}

/// The message could answer several open questions: which one?
pub fn ask_which(place: &Place<'_>, questions: &[&Elicitation]) -> Value {
    let lead = match questions {
        [_] => "Another question is open here:",
        _ => "Several questions are open here:",
    };
    let mut spans: Vec<Span> = vec![lead.into()];
    listed(&mut spans, questions, |_| None);
    let mut draft = Draft::default();
    draft.paragraph(&spans);

    let mut how: Vec<Span> = vec!["Which one do you mean? Put its tag in front".into()];
    if let Some(example) = questions.iter().find_map(|one| tagged_example(one)) {
        how.extend([", for example ".into(), Span::Code(example)]);
    }
    how.push(", or reply to its message.".into());
    draft.paragraph(&how);
    notice(place, draft)
}

/// Questions by tag and prompt, a line each, each with what else is to be said of it.
pub(super) fn listed(
    spans: &mut Vec<Span>,
    questions: &[&Elicitation],
    more: impl Fn(&Elicitation) -> Option<String>,
) {
    for elicitation in questions.iter().take(SHOWN_QUESTIONS) {
        spans.push(Span::Break);
        spans.push(Span::Code(elicitation.tag.clone()));
        spans.push(
            format!(
                ": {}{}",
                gist(elicitation),
                more(elicitation).unwrap_or_default()
            )
            .into(),
        );
    }
    if let Some(more @ 1..) = questions.len().checked_sub(SHOWN_QUESTIONS) {
        spans.push(Span::Break);
        spans.push(format!("… and {more} more").into());
    }
}

/// The question is over: who answered it, what and when, or how else it ended.
pub fn already_closed(place: &Place<'_>, elicitation: &Elicitation) -> Value {
    let over = match elicitation.state {
        State::Queued | State::Open => "is still open.",
        State::Answered => "is already answered.",
        _ => "is closed.",
    };
    let mut draft = Draft::default();
    draft.paragraph(&[format!("“{}” {over}", gist(elicitation)).into()]);
    write_outcome(&mut draft, elicitation, SHOWN_ANSWER);
    notice(place, draft)
}

/// The person's reply does not count, and why.
pub fn may_not_answer(place: &Place<'_>, elicitation: &Elicitation, why: Refusal) -> Value {
    let gist = gist(elicitation);
    let words = match why {
        Refusal::NotListed => {
            format!("Sorry, “{gist}” was asked of other people here, so I cannot take your answer.")
        }
        Refusal::TooLittlePower { needed } => format!(
            "Sorry, I cannot take your answer to “{gist}”: it needs a power level of {needed} or more in this room."
        ),
        Refusal::Nobody => format!(
            "Sorry, I cannot take your answer to “{gist}”: the list of people who may answer it is empty."
        ),
        Refusal::Unverified => format!(
            "Sorry, I cannot take your answer to “{gist}”: it has to come from a verified device. Please verify the one you wrote from, then answer again."
        ),
        Refusal::Untrusted => format!(
            "Sorry, I cannot take your answer to “{gist}”: its encryption does not prove that it is from you. Please check your devices and your verification, then answer again."
        ),
    };
    let mut draft = Draft::default();
    draft.paragraph(&[words.into()]);
    notice(place, draft)
}

/// A message could not be decrypted, so nobody knows whether it was an answer.
/// `place_event` is that message, `sender` the user id of who sent it.
pub fn unreadable(place_event: &str, sender: &str) -> Value {
    let mut draft = Draft::default();
    draft.paragraph(&[format!(
        "Sorry, I could not decrypt this message from {}. If it was an answer, please send it again.",
        user_id(sender)
    )
    .into()]);
    notice(
        &Place {
            to: place_event,
            thread: None,
        },
        draft,
    )
}

/// What takes the place of [`unreadable`] once the message could be read after all. It becomes an
/// edit by [`super::relate_edit`].
pub fn read_later() -> Value {
    let mut draft = Draft::default();
    draft.paragraph(&["I have read this message by now.".into()]);
    let mut fallback = Draft::default();
    fallback.paragraph(&["* I have read this message by now.".into()]);
    let mut content = fallback.content("m.notice");
    content["m.new_content"] = draft.content("m.notice");
    content
}

/// A notice that replies to the person's message, in its thread if it is in one.
pub(super) fn notice(place: &Place<'_>, draft: Draft) -> Value {
    let mut content = draft.content("m.notice");
    let reply = json!({ "event_id": place.to });
    content["m.relates_to"] = match place.thread {
        None => json!({ "m.in_reply_to": reply }),
        Some(root) => json!({
            "rel_type": "m.thread",
            "event_id": root,
            "is_falling_back": false,
            "m.in_reply_to": reply,
        }),
    };
    without_html_if_too_large(&mut content);
    content
}
