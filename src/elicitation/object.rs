//! The answer object: the one shape in which an agent sees an elicitation, the
//! same in every response, event and webhook.

use serde_json::{Value, json};

use super::{AnswerKind, Elicitation, NumberedOption};
use crate::clock::timestamp;
use crate::contract::card::{Card, CardError};

/// The card as it rides in the room: the first four options, and sensible
/// words where the asker named no board, card, run or stage.
///
/// # Errors
/// When its id or an option's id or label is empty, or an id repeats; what was asked through the
/// desk has none of that.
pub fn card(elicitation: &Elicitation) -> Result<Card, CardError> {
    let question = &elicitation.question;
    let or =
        |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_owned());
    let name = question.asker_name.as_deref().unwrap_or(&question.asked_by);
    Card::builder(&question.key.id)
        .asked_by(&question.asked_by)
        .prompt(&question.prompt)
        .board_id(or(&question.board_id, &question.asked_by))
        .card_id(or(&question.card_id, &question.key.id))
        .run_id(or(&question.run_id, &question.key.id))
        .stage_key(or(&question.stage_key, "ask"))
        .card_title(or(&question.card_title, &format!("Question from {name}")))
        .deep_link(question.deep_link.clone())
        .options(question.options.iter().cloned())
        .build()
}

/// The answer object of an elicitation.
pub fn object(elicitation: &Elicitation) -> Value {
    let question = &elicitation.question;
    let options: Vec<NumberedOption> = (0..question.options.len())
        .filter_map(|index| elicitation.numbered(index))
        .collect();
    let reply = elicitation.answer.as_ref();
    let declined = reply.filter(|reply| reply.kind == AnswerKind::Declined);
    let declined_by = declined.map(|declined| {
        json!({
            "user_id": declined.answered_by,
            "display_name": declined.display_name,
            "event_id": declined.event_id,
            "declined_at": timestamp(declined.answered_at),
            "encrypted": declined.encrypted,
            "sender_verified": declined.sender_verified,
        })
    });
    // Whoever declines gives no answer: nothing here can be mistaken for one.
    let answer = reply.filter(|reply| reply.kind != AnswerKind::Declined);
    let answer = answer.map(|answer| {
        json!({
            "kind": answer.kind,
            "option": answer.option,
            "text": answer.text,
            "answered_by": answer.answered_by,
            "display_name": answer.display_name,
            "event_id": answer.event_id,
            "answered_at": timestamp(answer.answered_at),
            "matched_by": answer.matched_by,
            "targeted_by": answer.targeted_by,
            "directed": answer.directed,
            "encrypted": answer.encrypted,
            "sender_verified": answer.sender_verified,
        })
    });
    json!({
        "elicitation_id": question.key.id,
        "state": elicitation.state.word(),
        "room_id": question.room_id,
        "event_id": elicitation.event_id,
        "asked_by": question.asked_by,
        "source": question.source(),
        "card": card(elicitation).ok(),
        "options": options,
        "created_at": timestamp(question.created_at),
        "expires_at": question.expires_at.map(timestamp),
        "closed_at": elicitation.closed_at.map(timestamp),
        "reason": elicitation.reason,
        "metadata": question.metadata,
        "answer": answer,
        "declined_by": declined_by,
    })
}
