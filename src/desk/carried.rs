//! The cards of other carriers: read, and answered by the same rules, but never ours to change.

use serde::{Deserialize, Serialize};

use super::change::{Change, close};
use crate::clock::Millis;
use crate::contract::card::Card;
use crate::contract::listed::all_options;
use crate::elicitation::{Answerers, Elicitation, Key, Question, State};

/// A card as another carrier put it into a room, or edited it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// The card.
    pub card: Card,
    /// The prose it rides in, plain.
    pub body: String,
    /// The root of the thread it stands in.
    pub thread: Option<String>,
}

/// The open elicitation that a carrier's card becomes. `routed_to` is the agent that gets the
/// answer.
pub fn from_carrier(
    carrier: &str,
    carried: &Carried,
    routed_to: Option<String>,
    room_id: &str,
    event_id: &str,
    tag: String,
    now: Millis,
) -> Elicitation {
    let card = &carried.card;
    let options = all_options(card, &carried.body);
    Elicitation {
        question: Question {
            key: Key::of_carrier(carrier, card.elicitation_id()),
            asked_by: card.asked_by().to_owned(),
            routed_to,
            asked_at: None,
            asker_name: None,
            room_id: room_id.to_owned(),
            thread: carried.thread.clone(),
            prompt: card.prompt().to_owned(),
            free_text: options.is_empty(),
            options,
            abridged: false,
            decline: None,
            answerers: Answerers::default(),
            mention: Vec::new(),
            board_id: Some(card.board_id().to_owned()),
            card_id: Some(card.card_id().to_owned()),
            run_id: Some(card.run_id().to_owned()),
            stage_key: Some(card.stage_key().to_owned()),
            card_title: Some(card.card_title().to_owned()),
            deep_link: card.deep_link().map(str::to_owned),
            metadata: None,
            created_at: now,
            expires_at: None,
        },
        tag,
        state: State::Open,
        event_id: Some(event_id.to_owned()),
        visible: true,
        closed_at: None,
        reason: None,
        answer: None,
    }
}

/// A question as its carrier's card says it now; `None` where that changes nothing.
pub fn revised(open: &Elicitation, carried: &Carried) -> Option<Question> {
    let was = &open.question;
    let carrier = was.key.carrier()?;
    let now = from_carrier(
        carrier,
        carried,
        was.routed_to.clone(),
        &was.room_id,
        open.event_id.as_deref()?,
        open.tag.clone(),
        was.created_at,
    );
    // What an edit leaves out of a message's relation it keeps ("Event replacements").
    let question = Question {
        thread: was.thread.clone(),
        ..now.question
    };
    (question != *was && question.key == was.key).then_some(question)
}

/// The carrier has edited its card into a message without one: it is over there.
pub fn gone(open: &Elicitation, now: Millis) -> Change {
    let reason = "closed by who carries it";
    close(open, State::Cancelled, Some(reason), None, now)
}

#[cfg(test)]
mod tests;
