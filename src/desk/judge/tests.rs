//! What follows from a message, given the questions it may be about.

mod answering;
mod boards;
mod carriers;
mod corrections;
mod declining;
mod properties;
mod racing;
mod refusing;
mod several;

use serde_json::json;

use super::*;
use crate::contract::CardOption;
use crate::desk::{EventDraft, Sender};
use crate::desk::{answer_edited, answer_redacted};
use crate::elicitation::{Answerers, Key, NumberedOption, Question, object};

const ROOM: &str = "!deploys:x.org";
const NOW: Millis = 1_796_047_500_000;

/// The first question of the room: two options, open, its card seen.
fn first() -> Known {
    asked("e1", "q1", &[("deploy", "Deploy"), ("wait", "Wait")])
}

/// Another question there.
fn second() -> Known {
    asked("e2", "q2", &[("red", "Red"), ("blue", "Blue")])
}

/// A question that is answered in words.
fn in_words() -> Known {
    let mut known = asked("e3", "q3", &[]);
    known.elicitation.question.free_text = true;
    known
}

/// A question whose card is `$` and its id.
fn asked(id: &str, tag: &str, options: &[(&str, &str)]) -> Known {
    let card = format!("${id}");
    Known {
        elicitation: Elicitation {
            question: Question {
                key: Key::new("builder", id),
                asked_by: "builder".to_owned(),
                routed_to: None,
                abridged: false,
                asked_at: None,
                asker_name: None,
                room_id: ROOM.to_owned(),
                thread: None,
                prompt: format!("What about {id}?"),
                options: options
                    .iter()
                    .map(|&(id, label)| CardOption::new(id, label))
                    .collect(),
                free_text: false,
                decline: None,
                answerers: Answerers::default(),
                mention: Vec::new(),
                board_id: None,
                card_id: None,
                run_id: None,
                stage_key: None,
                card_title: None,
                deep_link: None,
                metadata: None,
                created_at: NOW - 60_000,
                expires_at: None,
            },
            tag: tag.to_owned(),
            state: State::Open,
            event_id: Some(card.clone()),
            visible: true,
            closed_at: None,
            reason: None,
            answer: None,
        },
        own_events: vec![card],
        submission: None,
        manners: Manners::default(),
    }
}

/// The same question, changed.
fn with(mut known: Known, change: impl FnOnce(&mut Elicitation)) -> Known {
    change(&mut known.elicitation);
    known
}

/// The same question, only for these people.
fn only_for(known: Known, users: &[&str]) -> Known {
    with(known, |elicitation| {
        let users = users.iter().map(|&user| user.to_owned());
        elicitation.question.answerers.users = Some(users.collect());
    })
}

/// The same question, answered by Mira's `$m0`.
fn answered(known: Known) -> Known {
    let changes = judge_one(&known, &mira("$m0"), &words("1"));
    Known {
        elicitation: closed(&changes).clone(),
        ..known
    }
}

/// A message of Mira's, two seconds old.
fn mira(event_id: &str) -> Heard {
    Heard {
        room_id: ROOM.to_owned(),
        event_id: event_id.to_owned(),
        sender: Sender {
            user_id: "@mira:x.org".to_owned(),
            display_name: Some("Mira".to_owned()),
            joined: true,
            power: 0,
            alone: false,
        },
        sent_at: NOW - 2_000,
        trust: Trust::Plain,
        what: super::super::What::Message(Said::default()),
        chat: None,
    }
}

fn trusted(trust: Trust) -> Heard {
    Heard {
        trust,
        ..mira("$m1")
    }
}

fn words(body: &str) -> Said {
    Said {
        body: body.to_owned(),
        ..Said::default()
    }
}

fn reply_to(event_id: &str, body: &str) -> Said {
    Said {
        in_reply_to: Some(event_id.to_owned()),
        ..words(body)
    }
}

/// A message in a thread, with the reply that clients add for those that know no threads.
fn in_thread(root: &str, body: &str) -> Said {
    Said {
        in_reply_to: Some("$last".to_owned()),
        falling_back: true,
        thread: Some(root.to_owned()),
        ..words(body)
    }
}

fn edit_of(event_id: &str, body: &str) -> Said {
    Said {
        replaces: Some(event_id.to_owned()),
        ..words(body)
    }
}

fn elicit() -> Bot {
    Bot {
        user_id: "@elicit:x.org".to_owned(),
        display_name: Some("Elicit".to_owned()),
    }
}

fn judge_all(known: &[Known], heard: &Heard, said: &Said) -> Vec<Change> {
    judge(heard, said, known, &Rules::default(), &elicit(), NOW)
}

fn judge_one(known: &Known, heard: &Heard, said: &Said) -> Vec<Change> {
    judge_all(std::slice::from_ref(known), heard, said)
}

/// What Mira's message does to a question.
fn says(known: &Known, said: &Said) -> Vec<Change> {
    judge_one(known, &mira("$m1"), said)
}

/// The question as it is closed.
#[track_caller]
fn closed(changes: &[Change]) -> &Elicitation {
    let [Change::Close { closed, .. }, Change::Send(_)] = changes else {
        panic!("not one question is closed by {changes:?}");
    };
    closed
}

/// The answer that is taken.
#[track_caller]
fn taken(changes: &[Change]) -> &Answer {
    closed(changes).answer.as_ref().expect("it has an answer")
}

/// In short: which question was answered how, and how it was found.
#[track_caller]
fn in_short(changes: &[Change]) -> (&str, &str, MatchedBy, TargetedBy) {
    let answer = taken(changes);
    let said = match &answer.option {
        Some(option) => &option.id,
        None => answer.text.as_ref().expect("it has a text"),
    };
    let id = &closed(changes).question.key.id;
    (id, said, answer.matched_by, answer.targeted_by)
}

/// What is said to Mira: about which question, under which word, and the notice.
#[track_caller]
fn told(changes: &[Change]) -> (&str, &str, &SendDraft) {
    let [
        Change::SayOnce {
            user_id,
            what,
            notice,
        },
    ] = changes
    else {
        panic!("not one thing is said by {changes:?}");
    };
    assert_eq!(
        (user_id.as_str(), notice.kind),
        ("@mira:x.org", SendKind::Notice)
    );
    (&notice.key.id, what, notice)
}

fn body(draft: &SendDraft) -> &str {
    draft.content["body"].as_str().expect("it has a body")
}
