//! What becomes of an answer whose message is edited or redacted: it stands, and its agent is told.

use serde_json::{Value, json};

use super::change::{Change, last_words, told};
use super::hear::{Heard, Said, Trust};
use super::judge::Bot;
use super::rules::Rules;
use crate::clock::Millis;
use crate::elicitation::{Answer, AnswerKind, Elicitation, object, timestamp};
use crate::reply::{self, Options, Reading};

/// The message of an answer was edited: the answer stands, the agent is told what it says now and
/// how that would be read.
///
/// An edit that is not its author's, or that could not have been the answer by the room's rules
/// for encryption, is none.
pub fn answer_edited(
    answered: &Elicitation,
    heard: &Heard,
    said: &Said,
    rules: &Rules,
    bot: &Bot,
    now: Millis,
) -> Vec<Change> {
    let Some(answer) = &answered.answer else {
        return Vec::new();
    };
    let trusted = match heard.trust {
        Trust::Refused => false,
        // What was encrypted is only edited in encrypted form ("Event replacements").
        Trust::Plain | Trust::Clear => !answer.encrypted && !rules.require_verified,
        Trust::Unverified => !rules.require_verified,
        Trust::Verified => true,
    };
    if !trusted || answer.answered_by != heard.sender.user_id || answer.text.is_none() {
        return Vec::new();
    }
    let correction = json!({
        "event_id": heard.event_id,
        "text": said.body,
        "reading": read_again(answered, answer, said, bot),
        "corrected_at": timestamp(now),
    });
    let told = corrected(answered, "answer.edited", correction);
    told.into_iter().collect()
}

/// How the new text of an answer would be read, were it said now in the answer's place.
fn read_again(answered: &Elicitation, answer: &Answer, said: &Said, bot: &Bot) -> Value {
    let options = Options::new(&answered.question.options);
    let events = [answer.event_id.clone()];
    let question = reply::Question {
        open: true,
        visible: true,
        tag: &answered.tag,
        options: &options,
        free_text: answered.question.free_text,
        declinable: false,
        may_answer: true,
        events: &events,
    };
    let message = reply::Message {
        body: &said.body,
        // What it was directed by is not said again in an edit.
        thread: answer.directed.then_some(answer.event_id.as_str()),
        mentions_bot: said.mentions_bot,
        ..reply::Message::default()
    };
    let id = |&index: &usize| {
        answered
            .question
            .options
            .get(index)
            .map(|option| &option.id)
    };
    match reply::read(&message, &[question], &bot.named()) {
        Reading::Choose {
            option, matched_by, ..
        } => json!({ "choose": id(&option), "by": matched_by }),
        Reading::AskOption { options, .. } => {
            json!({ "ask": options.iter().filter_map(id).collect::<Vec<_>>() })
        }
        // The text itself stands beside it, and nowhere else: it may be redacted yet.
        Reading::Text { .. } => json!({ "text": true }),
        _ => json!({ "none": true }),
    }
}

/// The message of an answer was redacted: the answer stands, its text is deleted here. Redacting
/// it again changes nothing.
pub fn answer_redacted(answered: &Elicitation, heard: &Heard, now: Millis) -> Vec<Change> {
    let mut stripped = answered.clone();
    let Some(answer) = &mut stripped.answer else {
        return Vec::new();
    };
    if answer.text.take().is_none() {
        return Vec::new();
    }
    let kind = answer.kind;
    let correction = json!({
        "event_id": heard.event_id,
        "redacted_by": heard.sender.user_id,
        "corrected_at": timestamp(now),
    });
    let mut changes = vec![Change::ForgetText(answered.key().clone())];
    changes.extend(corrected(&stripped, "answer.redacted", correction));
    // The card quotes a free text; it must not outlive its message there.
    if kind == AnswerKind::Text {
        changes.extend(last_words(&stripped).map(Change::Send));
    }
    changes
}

fn corrected(elicitation: &Elicitation, event_type: &str, correction: Value) -> Option<Change> {
    let event = told(elicitation, event_type, || {
        let mut body = object(elicitation);
        if let Value::Object(fields) = &mut body {
            fields.insert("correction".to_owned(), correction);
        }
        body
    });
    event.map(Change::Announce)
}
