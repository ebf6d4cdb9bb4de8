//! How a question ends, and what becomes of its answer.

use serde_json::{Value, json};

use super::{
    AGENT, NOON, ROOM, answer, changed, closed, draft, head, insert, news, post, question,
};
use crate::elicitation::State;
use crate::ledger::{EventDraft, Ledger, SendKind};

super::cases![
    the_first_to_close_a_question_wins,
    a_question_is_closed_with_all_that_its_state_carries,
    a_queued_question_is_neither_answered_nor_declined,
    a_question_is_not_settled_as_pending,
    one_origin_does_not_close_what_another_asked,
    an_answer_is_found_by_its_message,
    a_redacted_text_is_nowhere_any_more,
    what_quotes_a_redacted_text_is_neither_sent_nor_kept,
    a_redaction_does_not_stop_what_quotes_nothing,
];

const ENDS: [State; 6] = [
    State::Answered,
    State::Declined,
    State::Cancelled,
    State::Superseded,
    State::Expired,
    State::Undeliverable,
];

fn the_first_to_close_a_question_wins(ledger: &mut dyn Ledger) {
    for first in ENDS {
        let open = post(ledger, question(AGENT, first.word()));
        let winner = closed(&open, first, Some(answer("$first", Some("yes"))));
        assert!(ledger.settle(&winner).unwrap(), "{first:?}");
        for second in ENDS {
            let late = changed(closed(&open, second, Some(answer("$late", None))), |late| {
                late.closed_at = Some(NOON + 99);
                late.reason = Some("too late".to_owned());
            });
            assert!(!ledger.settle(&late).unwrap(), "{first:?}, then {second:?}");
            assert_eq!(ledger.find(open.key()).unwrap(), Some(winner.clone()));
        }
    }
}

fn a_question_is_closed_with_all_that_its_state_carries(ledger: &mut dyn Ledger) {
    for end in ENDS {
        let open = post(ledger, question(AGENT, end.word()));
        let over = closed(
            &open,
            end,
            (end == State::Answered).then(|| answer("$a", None)),
        );
        assert!(ledger.settle(&over).unwrap());
        assert_eq!(ledger.find(open.key()).unwrap(), Some(over));
    }
    assert_eq!(ledger.pending_in(ROOM).unwrap(), []);
}

fn a_queued_question_is_neither_answered_nor_declined(ledger: &mut dyn Ledger) {
    for end in ENDS {
        let queued = insert(ledger, question(AGENT, end.word()));
        let over = closed(&queued, end, None);
        let may = !matches!(end, State::Answered | State::Declined);
        assert_eq!(ledger.settle(&over).unwrap(), may, "{end:?}");
        let now = if may { over } else { queued };
        assert_eq!(ledger.find(now.key()).unwrap(), Some(now));
    }
}

fn a_question_is_not_settled_as_pending(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "a"));
    for state in [State::Queued, State::Open] {
        assert!(!ledger.settle(&closed(&open, state, None)).unwrap());
    }
    assert_eq!(ledger.find(open.key()).unwrap(), Some(open));
}

fn one_origin_does_not_close_what_another_asked(ledger: &mut dyn Ledger) {
    let mine = post(ledger, question(AGENT, "same"));
    let theirs = post(ledger, question("agt_9", "same"));
    assert!(
        ledger
            .settle(&closed(&mine, State::Cancelled, None))
            .unwrap()
    );
    assert_eq!(ledger.find(theirs.key()).unwrap(), Some(theirs));
    let unknown = question("agt_unknown", "same");
    assert!(
        !ledger
            .settle(&closed(&unknown, State::Cancelled, None))
            .unwrap()
    );
    assert_eq!(ledger.find(unknown.key()).unwrap(), None);
}

fn an_answer_is_found_by_its_message(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "a"));
    let other = post(ledger, question(AGENT, "b"));
    assert_eq!(ledger.answered_by_event(ROOM, "$said").unwrap(), None);
    let answered = closed(&open, State::Answered, Some(answer("$said", None)));
    assert!(ledger.settle(&answered).unwrap());
    assert!(
        ledger
            .settle(&closed(&other, State::Cancelled, None))
            .unwrap()
    );
    assert_eq!(
        ledger.answered_by_event(ROOM, "$said").unwrap(),
        Some(answered)
    );
    assert_eq!(
        ledger
            .answered_by_event("!other:example.org", "$said")
            .unwrap(),
        None
    );
    assert_eq!(ledger.answered_by_event(ROOM, "$card_a").unwrap(), None);
}

fn a_redacted_text_is_nowhere_any_more(ledger: &mut dyn Ledger) {
    let secret = "leek, and the key is under the mat";
    let open = post(ledger, question(AGENT, "a"));
    let answered = closed(&open, State::Answered, Some(answer("$said", Some(secret))));
    assert!(ledger.settle(&answered).unwrap());
    let bystander = post(ledger, question(AGENT, "b"));
    let kept = closed(
        &bystander,
        State::Answered,
        Some(answer("$kept", Some(secret))),
    );
    assert!(ledger.settle(&kept).unwrap());
    // An event before the answer, the answer itself, and two corrections of it.
    let edited = |reading: Value| {
        let mut told = news(&answered);
        told.body["correction"] = json!({ "text": secret, "reading": reading, "event_id": "$e" });
        told
    };
    let told = [
        news(&open),
        news(&answered),
        edited(json!({ "text": secret })),
        edited(json!({ "choose": "leek", "by": "label" })),
    ];
    for told in told.iter().chain([&news(&kept)]) {
        ledger.announce(told, true, NOON).unwrap();
    }

    ledger.forget_answer_text(answered.key()).unwrap();

    let stripped = changed(answered.clone(), |answered| {
        answered.answer.as_mut().unwrap().text = None;
    });
    assert_eq!(ledger.find(answered.key()).unwrap(), Some(stripped));
    assert_eq!(ledger.find(kept.key()).unwrap(), Some(kept.clone()));
    // Everything else in the events is as it was.
    let without_text = |told: &EventDraft| {
        let mut body = told.body.clone();
        for place in [
            "/answer/text",
            "/correction/text",
            "/correction/reading/text",
        ] {
            if let Some(text) = body.pointer_mut(place) {
                *text = Value::Null;
            }
        }
        body
    };
    let mut bodies: Vec<Value> = told.iter().map(without_text).collect();
    bodies.push(news(&kept).body);
    let events = ledger.events_after(AGENT, 0, 100).unwrap();
    let now: Vec<Value> = events.into_iter().map(|event| event.body).collect();
    assert_eq!(now, bodies);
    // And what is delivered is what is kept.
    let (due, _) = ledger.deliveries_due(AGENT, NOON, 100).unwrap();
    assert_eq!(due[0].event.body, bodies[0]);
    ledger.mark_delivered(due[0].seq, NOON).unwrap();
    let (due, _) = ledger.deliveries_due(AGENT, NOON, 100).unwrap();
    let delivered: Vec<&Value> = due.iter().map(|delivery| &delivery.event.body).collect();
    assert_eq!(delivered, [&bodies[1], &bodies[4]]);
}

fn what_quotes_a_redacted_text_is_neither_sent_nor_kept(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "a"));
    let answered = closed(
        &open,
        State::Answered,
        Some(answer("$said", Some("a secret"))),
    );
    assert!(ledger.settle(&answered).unwrap());
    let before = draft(&open, SendKind::Notice, "said before it was answered");
    ledger.send(&before, NOON).unwrap();
    for (kind, body) in [
        (SendKind::CardEdit, "answered: a secret"),
        (SendKind::Notice, "closed already: a secret"),
        (SendKind::Reaction, "✓"),
    ] {
        ledger
            .send(&draft(&answered, kind, body), NOON + 10)
            .unwrap();
    }
    let other = draft(
        &post(ledger, question(AGENT, "b")),
        SendKind::CardEdit,
        "another",
    );
    ledger.send(&other, NOON + 10).unwrap();

    ledger.forget_answer_text(answered.key()).unwrap();
    let last_words = draft(&answered, SendKind::CardEdit, "the text was removed");
    ledger.send(&last_words, NOON + 20).unwrap();

    let mut left = Vec::new();
    while let Some(row) = head(ledger, &open) {
        assert!(ledger.mark_sent(row.seq, &format!("${}", row.seq)).unwrap());
        left.push(row.draft);
    }
    let reaction = draft(&answered, SendKind::Reaction, "✓");
    assert_eq!(left, [before, reaction, other, last_words]);
}

fn a_redaction_does_not_stop_what_quotes_nothing(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "a"));
    let answered = closed(&open, State::Answered, Some(answer("$said", None)));
    assert!(ledger.settle(&answered).unwrap());
    let last_words = draft(&answered, SendKind::CardEdit, "answered: 2. Leek");
    ledger.send(&last_words, NOON + 10).unwrap();
    ledger.forget_answer_text(answered.key()).unwrap();
    assert_eq!(head(ledger, &open).map(|row| row.draft), Some(last_words));
}
