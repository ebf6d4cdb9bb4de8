//! Every sentence a person reads in a room, plain and HTML side by side.
//!
//! Pure: a question in, the content of a Matrix event out. A question's life in a
//! room is its [`card`], then perhaps notices about replies that chose nothing, then
//! one [`reaction`] on the reply that was taken and one edit, [`closed`], in the
//! card's place. Contents are made once, when the decision is taken, and kept in the
//! outbox: a restart sends them as they were.
//!
//! Nothing that an agent or a person wrote gets here without passing [`text`], and
//! nothing becomes HTML outside [`draft`] and [`markdown`]. No content pings anybody but the people a
//! card asks (`m.mentions` is always there).

mod board;
mod card;
mod closed;
mod commands;
mod draft;
mod markdown;
mod moment;
mod notices;
mod session;
mod talking;
mod text;

use serde_json::{Value, json};

pub use board::{handing_in, not_taken};
pub use card::{card, fits};
pub use closed::closed;
pub use commands::{agents, cards, help, how_to_decline, not_declinable};
pub use moment::moment;
pub use notices::{
    Place, Refusal, already_closed, ask_option, ask_which, may_not_answer, not_understood,
    read_later, unreadable,
};

pub use session::{
    NotDelegated, Shown, cannot_delegate, connect_asked, connect_over, connect_request,
    may_not_steer, no_session, no_such_agent, session_edit, session_error, session_message,
    session_over, session_root,
};
pub use talking::{relate_thread, title_of};

use crate::elicitation::Elicitation;
use draft::{Draft, broken};

/// The most bytes of JSON a content may have.
///
/// An event may have 65,536 bytes (Matrix specification, "Size limits"). Encrypted,
/// a content grows by a third, and headers, relations and signatures come on top.
pub const MAX_CONTENT: usize = 46_000;

/// The reaction that says an answer was taken, with the key the room sees.
pub const TAKEN: &str = "✓";

/// The size of an event's content, in bytes of JSON.
pub fn event_size(content: &Value) -> usize {
    content.to_string().len()
}

/// The reaction that says that an answer is kept, and tried again until its board takes it.
pub const WAITING: &str = "⏳";

/// The content of an `m.reaction` to a person's message: [`TAKEN`] marks it as the answer.
pub fn reaction(event_id: &str, key: &str) -> Value {
    json!({
        "m.relates_to": { "rel_type": "m.annotation", "event_id": event_id, "key": key },
    })
}

/// Makes the content of [`closed`] an edit of the card with this event id.
///
/// Done when it is sent, because only then the card's event is sure to be known.
pub fn relate_edit(content: &mut Value, event_id: &str) {
    content["m.relates_to"] = json!({ "rel_type": "m.replace", "event_id": event_id });
}

/// Leaves the HTML form out where a content is too large with it: the plain form
/// says the same.
fn without_html_if_too_large(content: &mut Value) {
    if event_size(content) <= MAX_CONTENT {
        return;
    }
    for part in ["", "/m.new_content"] {
        if let Some(Value::Object(part)) = content.pointer_mut(part) {
            part.remove("format");
            part.remove("formatted_body");
        }
    }
}

/// The question itself, first thing on the card, open or closed.
///
/// An agent may well put a list into its prompt. Where that could be taken for the
/// list of options, or for what we say ourselves, the prompt is set apart as a
/// quotation.
fn write_prompt(draft: &mut Draft, elicitation: &Elicitation) {
    let question = &elicitation.question;
    let lines = text::lines(&question.prompt);
    if lines.is_empty() {
        let stand_in = if question.options.is_empty() {
            "Please answer."
        } else {
            "Please choose."
        };
        draft.paragraph(&[stand_in.into()]);
    } else if lines.iter().any(|line| text::poses(line)) {
        draft.quote(&lines);
    } else {
        draft.paragraph(&broken(&lines));
    }
}

/// The labels of all options, each on one line of at most `most` characters.
fn labels(elicitation: &Elicitation, most: usize) -> Vec<String> {
    elicitation
        .question
        .options
        .iter()
        .map(|option| label(&option.label, &option.id, most))
        .collect()
}

/// One label as people read it; its id where the label has nothing to read.
fn label(label: &str, id: &str, most: usize) -> String {
    [label, id]
        .into_iter()
        .map(|name| text::line_of(name, most))
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "(no name)".to_owned())
}

/// The prompt in a few words on one line, to say which question is meant.
fn gist(elicitation: &Elicitation) -> String {
    let gist = text::line_of(&elicitation.question.prompt, 100);
    if gist.is_empty() {
        elicitation.tag.clone()
    } else {
        gist
    }
}

#[cfg(test)]
mod tests;
