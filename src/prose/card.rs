//! The card: the message that asks.

use serde_json::{Value, json};

use super::draft::{Draft, Span, joined};
use super::text::{line, line_of, link, shortened, user_id};
use super::{MAX_CONTENT, event_size, labels, moment, without_html_if_too_large, write_prompt};
use crate::contract::{CARD_KEY, CardOption};
use crate::elicitation::{self, Answerers, Elicitation};

/// Characters of prompt that a card keeps when the message is too large with all of
/// it. Clients that draw the card show 300; the prose has it all.
const SHORT_PROMPT: usize = 500;

/// People who may answer that a card names one by one.
const SHOWN_ANSWERERS: usize = 5;

/// The content of the `m.room.message` that asks the question: the prose with all
/// options, and the card under its key. `show_tag` when another question is open in
/// the room.
///
/// Where it is larger than [`MAX_CONTENT`], the HTML form is left out, then the
/// card's copy of the prompt is shortened. See [`fits`] for what is larger even then.
pub fn card(elicitation: &Elicitation, show_tag: bool) -> Value {
    let question = &elicitation.question;
    let card = json!(elicitation::card(elicitation).ok());
    let buttons = card["options"].as_array().map_or(0, Vec::len);

    let mut draft = Draft::default();
    write_prompt(&mut draft, elicitation);
    if !question.options.is_empty() {
        draft.list("Options:", &labels(elicitation, usize::MAX));
    }
    draft.paragraph(&how_to_answer(elicitation, buttons, show_tag));
    if question.abridged {
        draft.paragraph(&["This was shortened. All of it is on the board.".into()]);
    }
    if !question.mention.is_empty() {
        let people = question.mention.iter().cloned().map(Span::Person).collect();
        let mut spans = vec!["For ".into()];
        spans.extend(joined(people, ", "));
        draft.paragraph(&spans);
    }
    draft.aside(&context(elicitation));

    let mut content = draft.content("m.text");
    // What no reply can answer has no card: a client would draw buttons, or ask for a reply.
    if question.is_answerable() {
        content[CARD_KEY] = card;
    }
    if !question.mention.is_empty() {
        content["m.mentions"] = json!({ "user_ids": question.mention });
    }
    if let Some(root) = &question.thread {
        content["m.relates_to"] = json!({
            "rel_type": "m.thread",
            "event_id": root,
            "is_falling_back": true,
            "m.in_reply_to": { "event_id": root },
        });
    }
    without_html_if_too_large(&mut content);
    if event_size(&content) > MAX_CONTENT && question.is_answerable() {
        content[CARD_KEY]["prompt"] = json!(shortened(question.prompt.clone(), SHORT_PROMPT));
    }
    content
}

/// Whether the question can be put into one event at all. If not, whoever asks is
/// refused before anything is stored.
pub fn fits(elicitation: &Elicitation) -> bool {
    event_size(&card(elicitation, true)) <= MAX_CONTENT
}

/// What a person has to do, a line each: how, the deadline.
fn how_to_answer(elicitation: &Elicitation, buttons: usize, show_tag: bool) -> Vec<Span> {
    let question = &elicitation.question;
    let count = question.options.len();
    let mut lines: Vec<Vec<Span>> = Vec::new();

    lines.push(vec![instruction(elicitation).into()]);
    let rest = match count.saturating_sub(buttons) {
        0 => None,
        1 => Some(format!("option {count} has")),
        2 => Some(format!("options {} and {count} have", buttons + 1)),
        _ => Some(format!("options {} to {count} have", buttons + 1)),
    };
    if let Some(rest) = rest {
        let line = format!("Where buttons are shown, {rest} none: type the number or the text.");
        lines.push(vec![line.into()]);
    }
    if numbers_clash(&question.options) {
        lines.push(vec![
            "A number with # in front, like ".into(),
            Span::Code(format!("#{count}")),
            ", always means its place in this list.".into(),
        ]);
    }
    // What only the board takes an answer to needs no tag.
    if show_tag && question.is_answerable() {
        let mut tag = vec![
            "Another question is open here. This one is ".into(),
            Span::Code(elicitation.tag.clone()),
            ": ".into(),
        ];
        match tagged_example(elicitation) {
            Some(example) => tag.extend([
                "put that in front, for example ".into(),
                Span::Code(example),
            ]),
            None => tag.push("put that in front of your answer".into()),
        }
        tag.push(", or reply to this message.".into());
        lines.push(tag);
    }
    if let Some(decline) = &question.decline {
        let mut line = vec!["If you would rather not answer, type ".into()];
        let command = if show_tag {
            format!("{decline} {}", elicitation.tag)
        } else {
            decline.clone()
        };
        line.extend([Span::Code(command), ".".into()]);
        lines.push(line);
    }
    if let Some(who) = who_may_answer(&question.answerers) {
        lines.push(vec![who.into()]);
    }
    if let Some(deadline) = question.expires_at {
        lines.push(vec![
            format!("Please answer by {}.", moment(deadline)).into(),
        ]);
    }

    let mut spans = Vec::new();
    for line in lines {
        if !spans.is_empty() {
            spans.push(Span::Break);
        }
        spans.extend(line);
    }
    spans
}

/// Whose answer counts, where the asker narrowed it. The room may narrow it further.
fn who_may_answer(answerers: &Answerers) -> Option<String> {
    let power = answerers
        .min_power
        .map(|power| format!("power level {power} or more"));
    let users = answerers.users.as_deref().map(|users| match users {
        [] => "nobody".to_owned(),
        _ if users.len() <= SHOWN_ANSWERERS => users
            .iter()
            .map(|user| user_id(user))
            .collect::<Vec<_>>()
            .join(", "),
        _ => format!("{} named people", users.len()),
    });
    match (users, power) {
        (None, None) => None,
        (Some(users), None) => Some(format!("Answers count from {users} only.")),
        (None, Some(power)) => Some(format!("Answers count only from people with {power}.")),
        (Some(users), Some(power)) => {
            Some(format!("Answers count from {users} only, with {power}."))
        }
    }
}

/// The one sentence that says what counts as an answer.
pub(super) fn instruction(elicitation: &Elicitation) -> &'static str {
    let question = &elicitation.question;
    match (question.options.is_empty(), question.free_text) {
        (true, false) => "It can only be answered on the board: please open its card there.",
        (true, true) => "Reply to this message with your answer.",
        (false, false) => "Reply with the number or the text of an option.",
        (false, true) => {
            "Reply with the number or the text of an option, or reply to this message with your own answer."
        }
    }
}

/// What an answer looks like that says which question it is for. `None` where it
/// would be a text.
pub(super) fn tagged_example(elicitation: &Elicitation) -> Option<String> {
    match elicitation.question.options.len() {
        0 => None,
        _ => Some(format!("{} 1", elicitation.tag)),
    }
}

/// What the asker told about the question, and who asks, on one line.
pub(super) fn context(elicitation: &Elicitation) -> Vec<Span> {
    let question = &elicitation.question;
    let asker = question
        .asker_name
        .as_deref()
        .map(line)
        .filter(|name| !name.is_empty());
    let asker = asker.unwrap_or_else(|| line(&question.asked_by));
    let mut parts: Vec<Span> = [&question.card_title, &question.stage_key]
        .into_iter()
        .flatten()
        // No piece may pretend to be several.
        .map(|piece| line_of(piece, 200).replace(['·', '∙', '⋅', '‧', '•'], "-"))
        .filter(|piece| !piece.is_empty())
        .map(Span::Text)
        .collect();
    parts.push(format!("asked by {asker}").into());
    parts.extend(question.deep_link.as_deref().and_then(link).map(Span::Link));
    joined(parts, " · ")
}

/// Whether a label or an id reads as the number of another option.
fn numbers_clash(options: &[CardOption]) -> bool {
    (1..).zip(options).any(|(place, option)| {
        [&option.label, &option.id]
            .into_iter()
            .map(|name| name.trim())
            .any(|name| {
                let number = !name.is_empty() && name.chars().all(char::is_numeric);
                // What does not parse has digits of another script: better one note too many.
                let named = name.parse().unwrap_or(0);
                number && named != place && named <= options.len()
            })
    })
}
