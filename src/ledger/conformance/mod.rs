//! What any implementation of [`Ledger`] must do, as cases that run against a factory.
//!
//! Each case gets a ledger of its own, empty and inside one transaction.

mod announcements;
mod arrival;
mod boards;
mod carried;
mod forgetting;
mod inbox;
mod outbox;
mod parked;
mod people;
mod prune;
mod questions;
pub(super) mod sessions;
mod settling;
pub(super) mod streams;
mod unsaid;
mod upgrades;
mod urgent;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;

use super::{EventDraft, Ledger, SendDraft, SendKind, Sending, SqliteLedger};
use crate::clock::Millis;
use crate::contract::CardOption;
use crate::desk::announcement;
use crate::elicitation::{
    Answer, AnswerKind, Answerers, Elicitation, Key, NumberedOption, Question, State,
};
use crate::reply::{MatchedBy, TargetedBy};

/// A rule by name, and what shows that it is kept.
type Case = (&'static str, fn(&mut dyn Ledger));

/// Lists functions as cases under their own names.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        pub(super) const CASES: &[super::Case] = &[$((stringify!($case), $case)),+];
    };
}
use cases;

/// Runs every case against a ledger of its own.
///
/// # Panics
/// When a rule is broken, with the names of all that are.
pub(super) fn suite(open: &dyn Fn() -> Box<dyn Ledger>) {
    let broken: Vec<&str> = [
        questions::CASES,
        settling::CASES,
        inbox::CASES,
        outbox::CASES,
        announcements::CASES,
        parked::CASES,
        prune::CASES,
        upgrades::CASES,
        boards::CASES,
        carried::CASES,
        sessions::CASES,
        forgetting::CASES,
        urgent::CASES,
        streams::CASES,
        unsaid::CASES,
        people::CASES,
        arrival::CASES,
    ]
    .concat()
    .into_iter()
    .filter(|(_, case)| {
        let mut ledger = open();
        catch_unwind(AssertUnwindSafe(|| case(ledger.as_mut()))).is_err()
    })
    .map(|(name, _)| name)
    .collect();
    assert!(broken.is_empty(), "rules that are broken: {broken:#?}");
}

#[test]
fn the_ledger_on_sqlite_keeps_every_rule() {
    suite(&|| Box::new(SqliteLedger::in_memory().unwrap()));
}

/// The room in which most cases play.
pub(super) const ROOM: &str = "!kitchen:example.org";
/// The agent that asks in most cases.
pub(super) const AGENT: &str = "agt_31d0";
/// When most questions are asked.
pub(super) const NOON: Millis = 1_790_000_000_000;

/// A queued question of an origin in [`ROOM`].
pub(super) fn question(origin: &str, id: &str) -> Elicitation {
    Elicitation {
        question: Question {
            key: Key::new(origin, id),
            asked_by: origin.to_owned(),
            routed_to: None,
            abridged: false,
            asked_at: None,
            asker_name: Some("Builder".to_owned()),
            room_id: ROOM.to_owned(),
            thread: Some("$thread".to_owned()),
            prompt: "Which soup?".to_owned(),
            options: [("pea", "Pea"), ("leek", "Leek")]
                .map(|(id, label)| CardOption {
                    id: id.to_owned(),
                    label: label.to_owned(),
                })
                .to_vec(),
            free_text: true,
            decline: Some("!decline".to_owned()),
            answerers: Answerers {
                users: Some(vec!["@mira:example.org".to_owned()]),
                min_power: Some(50),
            },
            mention: vec!["@mira:example.org".to_owned()],
            board_id: None,
            card_id: None,
            run_id: Some("run_1".to_owned()),
            stage_key: Some("cook".to_owned()),
            card_title: Some("Lunch".to_owned()),
            deep_link: Some("https://example.org/lunch".to_owned()),
            metadata: Some(json!({ "pot": 3 })),
            created_at: NOON,
            expires_at: None,
        },
        tag: "q1".to_owned(),
        state: State::Queued,
        event_id: None,
        visible: false,
        closed_at: None,
        reason: None,
        answer: None,
    }
}

/// The question as it is after a change.
fn changed(mut elicitation: Elicitation, change: impl FnOnce(&mut Elicitation)) -> Elicitation {
    change(&mut elicitation);
    elicitation
}

/// A person's answer by a message: an option, or with `text` what they wrote.
pub(super) fn answer(event_id: &str, text: Option<&str>) -> Answer {
    Answer {
        kind: if text.is_some() {
            AnswerKind::Text
        } else {
            AnswerKind::Option
        },
        option: text.is_none().then(|| NumberedOption {
            number: 2,
            id: "leek".to_owned(),
            label: "Leek".to_owned(),
        }),
        text: Some(text.unwrap_or("2").to_owned()),
        answered_by: "@mira:example.org".to_owned(),
        display_name: Some("Mira".to_owned()),
        event_id: event_id.to_owned(),
        answered_at: NOON + 5,
        matched_by: MatchedBy::Number,
        targeted_by: TargetedBy::Reply,
        directed: true,
        encrypted: true,
        sender_verified: Some(true),
    }
}

/// The question closed in a state, ten milliseconds after noon.
fn closed(elicitation: &Elicitation, state: State, answer: Option<Answer>) -> Elicitation {
    changed(elicitation.clone(), |elicitation| {
        elicitation.state = state;
        elicitation.closed_at = Some(NOON + 10);
        elicitation.reason = Some("for this reason".to_owned());
        elicitation.answer = answer;
    })
}

/// Stores a question and gives it back.
fn insert(ledger: &mut dyn Ledger, elicitation: Elicitation) -> Elicitation {
    let fingerprint = format!("fingerprint of {}", elicitation.key().id);
    assert!(ledger.insert(&elicitation, &fingerprint, None).unwrap());
    elicitation
}

/// Stores a question whose card then stands in the room as the event `$card_ID`.
fn post(ledger: &mut dyn Ledger, elicitation: Elicitation) -> Elicitation {
    let elicitation = insert(ledger, elicitation);
    let event_id = format!("$card_{}", elicitation.key().id);
    ledger
        .mark_posted(elicitation.key(), &event_id)
        .unwrap()
        .unwrap()
}

/// Something about a question on its way to its room.
pub(super) fn draft(about: &Elicitation, kind: SendKind, body: &str) -> SendDraft {
    SendDraft {
        room_id: about.question.room_id.clone(),
        key: about.key().clone(),
        also: Vec::new(),
        kind,
        content: json!({ "body": body }),
    }
}

/// What is to be sent next to the room of a question.
fn head(ledger: &mut dyn Ledger, room: &Elicitation) -> Option<Sending> {
    let (due, _) = ledger.sendings_due(Millis::MAX).unwrap();
    due.into_iter()
        .find(|row| row.draft.room_id == room.question.room_id)
}

/// What an agent is told about a question in its present state.
pub(super) fn news(about: &Elicitation) -> EventDraft {
    announcement(about).unwrap()
}
