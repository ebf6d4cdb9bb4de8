//! A board's question, on its way into a room. It cannot be refused for its size: it is shortened,
//! and says that the board has all of it.

use super::ask::{MAX_LABEL, MAX_OPTIONS, MAX_PROMPT};
use crate::clock::Millis;
use crate::contract::CardOption;
use crate::contract::board::Pending;
use crate::elicitation::{Answerers, Elicitation, Key, Question, State};
use crate::prose;

/// The least that is left of a label, in bytes.
const SHORTEST_LABEL: usize = 32;

/// The elicitation that a board's question becomes in a room. `free_text`: the board takes texts.
///
/// Its prompt, its title and its labels are shortened to what an asker here may write, and further
/// until they fit into one event; of more than [`MAX_OPTIONS`] the first ones are shown. The ids
/// stay as they are.
pub fn from_board(
    board: &str,
    pending: Pending,
    free_text: bool,
    room_id: String,
    tag: String,
    now: Millis,
) -> Elicitation {
    let mut options = pending.options;
    let whole_list = options.len() <= MAX_OPTIONS;
    options.truncate(MAX_OPTIONS);
    let mut elicitation = Elicitation {
        question: Question {
            key: Key::of_board(board, pending.elicitation_id),
            asked_by: pending.agent_id,
            routed_to: None,
            asked_at: pending.asked_at,
            asker_name: None,
            room_id,
            thread: None,
            prompt: String::new(),
            options: Vec::new(),
            abridged: false,
            free_text,
            decline: None,
            answerers: Answerers::default(),
            mention: Vec::new(),
            board_id: Some(pending.board_id),
            card_id: Some(pending.card_id).filter(|id| !id.is_empty()),
            run_id: Some(pending.run_id),
            stage_key: Some(pending.stage_key),
            card_title: Some(shortened(&pending.card_title, MAX_LABEL)),
            deep_link: None,
            metadata: None,
            created_at: now,
            expires_at: None,
        },
        tag,
        state: State::Queued,
        event_id: None,
        visible: false,
        closed_at: None,
        reason: None,
        answer: None,
    };
    let (mut prompt, mut label) = (MAX_PROMPT, MAX_LABEL);
    loop {
        let question = &mut elicitation.question;
        question.prompt = shortened(&pending.question, prompt);
        let labels = options.iter().map(|option| CardOption {
            id: option.id.clone(),
            label: shortened(&option.label, label),
        });
        question.options = labels.collect();
        question.abridged =
            !whole_list || question.prompt != pending.question || question.options != options;
        if prose::fits(&elicitation) || prompt == 0 {
            return elicitation;
        }
        if label > SHORTEST_LABEL {
            label /= 2;
        } else {
            prompt /= 2;
        }
    }
}

/// At most so many bytes of a text, with an ellipsis where it goes on.
fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let most = text.floor_char_boundary(bytes.saturating_sub('…'.len_utf8()));
    format!("{}…", text[..most].trim_end())
}

/// Whether what a board pushes was asked after a question about the same card, as far as the board
/// says. In doubt the one that comes later is the newer one.
pub fn is_newer(pending: &Pending, than: &Elicitation) -> bool {
    match (pending.asked_at, than.question.asked_at) {
        (Some(new), Some(old)) => new >= old,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
