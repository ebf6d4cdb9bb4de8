//! The message of an answer is edited or redacted: the answer stands.

use super::*;

fn edited_as(answered: &Known, heard: &Heard, said: &Said, rules: &Rules) -> Vec<Change> {
    answer_edited(&answered.elicitation, heard, said, rules, &elicit(), NOW)
}

fn edited(answered: &Known, body: &str) -> Vec<Change> {
    let said = edit_of("$m0", body);
    edited_as(answered, &mira("$m1"), &said, &Rules::default())
}

#[track_caller]
fn reading(changes: &[Change]) -> &Value {
    let [Change::Announce(event)] = changes else {
        panic!("not one event in {changes:?}");
    };
    &event.body["correction"]["reading"]
}

#[test]
fn an_edit_is_told_with_its_text_and_how_it_would_be_read() {
    let answered = answered(first());
    let mut told = object(&answered.elicitation);
    told["correction"] = json!({
        "event_id": "$m1",
        "text": "2",
        "reading": { "choose": "wait", "by": "number" },
        "corrected_at": "2026-11-30T14:05:00.000Z",
    });
    assert_eq!(
        edited(&answered, "2"),
        [Change::Announce(EventDraft {
            urgent: false,
            key: Key::new("builder", "e1"),
            event_type: "answer.edited".to_owned(),
            body: told,
        })]
    );
}

#[test]
fn an_edit_is_read_as_the_answer_was() {
    let undirected = answered(first());
    let directed = with(undirected.clone(), |elicitation| {
        elicitation.answer.as_mut().unwrap().directed = true;
    });
    let mut wordy = directed.clone();
    wordy.elicitation.question.free_text = true;
    let mut quiet = undirected.clone();
    quiet.elicitation.question.free_text = true;
    for (answered, body, expected) in [
        (&undirected, "wait", json!({ "choose": "wait", "by": "id" })),
        (&undirected, "the second one", json!({ "none": true })),
        (
            &directed,
            "the second one",
            json!({ "choose": "wait", "by": "number" }),
        ),
        (&directed, "1 or 2", json!({ "ask": ["deploy", "wait"] })),
        (&directed, "neither", json!({ "none": true })),
        (
            &directed,
            "q1 2",
            json!({ "choose": "wait", "by": "number" }),
        ),
        (
            &undirected,
            "q1 2",
            json!({ "choose": "wait", "by": "number" }),
        ),
        (
            &undirected,
            "Elicit: 2",
            json!({ "choose": "wait", "by": "number" }),
        ),
        (&undirected, " ", json!({ "none": true })),
        (&wordy, "neither", json!({ "text": true })),
        (&wordy, "> 1", json!({ "text": true })),
        (&wordy, " ", json!({ "none": true })),
        // Not directed, it would have been the talk of the room.
        (&quiet, "neither", json!({ "none": true })),
    ] {
        assert_eq!(*reading(&edited(answered, body)), expected, "{body}");
    }
}

#[test]
fn only_its_author_edits_an_answer() {
    let mut ben = mira("$m1");
    ben.sender.user_id = "@ben:x.org".to_owned();
    let said = edit_of("$m0", "2");
    assert_eq!(
        edited_as(&answered(first()), &ben, &said, &Rules::default()),
        []
    );
}

#[test]
fn an_edit_is_trusted_no_further_than_an_answer() {
    let strict = Rules {
        require_verified: true,
        ..Rules::default()
    };
    let plain = answered(first());
    let encrypted = with(plain.clone(), |elicitation| {
        elicitation.answer.as_mut().unwrap().encrypted = true;
    });
    let told = |answered, trust, rules: &Rules| {
        !edited_as(answered, &trusted(trust), &edit_of("$m0", "2"), rules).is_empty()
    };
    let lax = Rules::default();
    for (trust, of_plain, of_encrypted, where_required) in [
        (Trust::Plain, true, false, false),
        (Trust::Clear, true, false, false),
        (Trust::Unverified, true, true, false),
        (Trust::Verified, true, true, true),
        (Trust::Refused, false, false, false),
    ] {
        assert_eq!(told(&plain, trust, &lax), of_plain, "{trust:?}");
        assert_eq!(told(&encrypted, trust, &lax), of_encrypted, "{trust:?}");
        assert_eq!(
            told(&encrypted, trust, &strict),
            where_required,
            "{trust:?}"
        );
    }
}

#[test]
fn a_question_without_an_answer_has_nothing_to_correct() {
    assert_eq!(edited(&first(), "2"), []);
    assert_eq!(answer_redacted(&first().elicitation, &mira("$m1"), NOW), []);
}

#[test]
fn a_redaction_forgets_the_text_and_tells_the_agent() {
    let answered = answered(first());
    let mut told = object(&answered.elicitation);
    told["answer"]["text"] = Value::Null;
    told["correction"] = json!({
        "event_id": "$m1",
        "redacted_by": "@mira:x.org",
        "corrected_at": "2026-11-30T14:05:00.000Z",
    });
    assert_eq!(
        answer_redacted(&answered.elicitation, &mira("$m1"), NOW),
        [
            Change::ForgetText(Key::new("builder", "e1")),
            Change::Announce(EventDraft {
                urgent: false,
                key: Key::new("builder", "e1"),
                event_type: "answer.redacted".to_owned(),
                body: told,
            }),
        ]
    );
}

#[test]
fn the_card_no_longer_quotes_a_redacted_text() {
    let changes = says(&in_words(), &reply_to("$e3", "the secret"));
    let answered = closed(&changes).clone();
    assert!(prose::closed(&answered).to_string().contains("the secret"));
    let changes = answer_redacted(&answered, &mira("$m2"), NOW);
    let [
        Change::ForgetText(_),
        Change::Announce(_),
        Change::Send(edit),
    ] = changes.as_slice()
    else {
        panic!("the card is not edited again by {changes:?}");
    };
    assert_eq!(edit.kind, SendKind::CardEdit);
    assert!(
        edit.content["m.new_content"]["body"]
            .as_str()
            .unwrap()
            .contains("(the text was removed later)")
    );
    assert!(!format!("{changes:?}").contains("the secret"));
}

#[test]
fn what_was_redacted_is_not_redacted_or_edited_again() {
    let forgotten = with(answered(first()), |elicitation| {
        elicitation.answer.as_mut().unwrap().text = None;
    });
    assert_eq!(
        answer_redacted(&forgotten.elicitation, &mira("$m2"), NOW),
        []
    );
    assert_eq!(edited(&forgotten, "2"), []);
}
