//! What agents are told.

use std::collections::HashSet;

use super::{AGENT, NOON, changed, news, post, question};
use crate::clock::Millis;
use crate::elicitation::Elicitation;
use crate::ledger::{Event, EventDraft, Ledger};

super::cases![
    an_origin_hears_of_its_own_in_order,
    an_event_keeps_its_id_and_is_found_by_it,
    without_a_webhook_nothing_is_delivered,
    deliveries_are_in_order_per_elicitation_and_do_not_wait_across,
    a_delivery_that_failed_waits_and_holds_up_its_elicitation_alone,
    a_clock_that_was_set_back_holds_no_delivery_up,
    a_parked_delivery_blocks_nothing,
    what_is_delivered_or_parked_does_not_change_any_more,
    deliveries_are_counted,
];

/// A piece of news about a question that is told apart by its type.
fn told(about: &Elicitation, event_type: &str) -> EventDraft {
    EventDraft {
        event_type: event_type.to_owned(),
        ..news(about)
    }
}

/// Questions `a` and `b`, with the events a1, b1, a2, b2, a3 about them, to be delivered.
fn five(ledger: &mut dyn Ledger) {
    let a = post(ledger, question(AGENT, "a"));
    let b = post(ledger, question(AGENT, "b"));
    for (about, name) in [(&a, "a1"), (&b, "b1"), (&a, "a2"), (&b, "b2"), (&a, "a3")] {
        ledger.announce(&told(about, name), true, NOON).unwrap();
    }
}

fn types(events: &[Event]) -> String {
    let types: Vec<&str> = events.iter().map(|it| it.event_type.as_str()).collect();
    types.join(", ")
}

/// What is due to be delivered to [`AGENT`], and when the next one is.
fn due(ledger: &mut dyn Ledger, at: Millis) -> (String, Option<Millis>) {
    let (due, next) = ledger.deliveries_due(AGENT, NOON + at, 100).unwrap();
    let events: Vec<Event> = due.into_iter().map(|delivery| delivery.event).collect();
    (types(&events), next.map(|next| next - NOON))
}

/// The number of the due delivery of this event.
fn seq(ledger: &mut dyn Ledger, event_type: &str) -> i64 {
    let (due, _) = ledger.deliveries_due(AGENT, Millis::MAX, 100).unwrap();
    let found = due.iter().find(|it| it.event.event_type == event_type);
    found.unwrap().seq
}

fn an_origin_hears_of_its_own_in_order(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.last_event_seq().unwrap(), 0);
    let mine = post(ledger, question(AGENT, "same"));
    let theirs = post(ledger, question("agt_9", "same"));
    for (about, name) in [(&mine, "m1"), (&theirs, "t1"), (&mine, "m2"), (&mine, "m3")] {
        ledger
            .announce(&told(about, name), false, NOON + 7)
            .unwrap();
    }
    let all = ledger.events_after(AGENT, 0, 100).unwrap();
    let expected = Event {
        seq: all[0].seq,
        id: all[0].id.clone(),
        key: mine.key().clone(),
        event_type: "m1".to_owned(),
        at: NOON + 7,
        body: news(&mine).body,
    };
    assert_eq!(all[0], expected);
    assert_eq!(types(&all), "m1, m2, m3");
    assert_eq!(types(&ledger.events_after(AGENT, 0, 2).unwrap()), "m1, m2");
    assert_eq!(
        types(&ledger.events_after(AGENT, all[0].seq, 9).unwrap()),
        "m2, m3"
    );
    assert_eq!(
        types(&ledger.events_after(AGENT, all[2].seq, 9).unwrap()),
        ""
    );
    assert_eq!(types(&ledger.events_after("agt_9", 0, 9).unwrap()), "t1");
    assert_eq!(ledger.last_event_seq().unwrap(), all[2].seq);
}

fn an_event_keeps_its_id_and_is_found_by_it(ledger: &mut dyn Ledger) {
    five(ledger);
    let events = ledger.events_after(AGENT, 0, 100).unwrap();
    let ids: HashSet<&str> = events.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), 5);
    for event in &events {
        assert_eq!(ledger.event_seq(AGENT, &event.id).unwrap(), Some(event.seq));
        assert_eq!(ledger.event_seq("agt_9", &event.id).unwrap(), None);
    }
    assert_eq!(ledger.event_seq(AGENT, "evt_unknown").unwrap(), None);
    let (due, _) = ledger.deliveries_due(AGENT, NOON, 100).unwrap();
    assert_eq!(due[0].event, events[0]);
    assert_eq!((due[0].attempts, due[0].since), (0, NOON));
    ledger.retry_delivery(due[0].seq, NOON, "HTTP 500").unwrap();
    let (again, _) = ledger.deliveries_due(AGENT, NOON, 100).unwrap();
    assert_eq!(again[0].event, events[0]);
    assert_eq!(again[0].attempts, 1);
}

fn without_a_webhook_nothing_is_delivered(ledger: &mut dyn Ledger) {
    let a = post(ledger, question(AGENT, "a"));
    ledger.announce(&told(&a, "a1"), false, NOON).unwrap();
    assert_eq!(due(ledger, 0), (String::new(), None));
    assert_eq!(ledger.delivery_counts().unwrap(), (0, 0));
}

fn deliveries_are_in_order_per_elicitation_and_do_not_wait_across(ledger: &mut dyn Ledger) {
    five(ledger);
    let theirs = post(ledger, question("agt_9", "a"));
    ledger.announce(&told(&theirs, "t1"), true, NOON).unwrap();
    assert_eq!(due(ledger, -1), (String::new(), Some(0)));
    assert_eq!(due(ledger, 0), ("a1, b1".to_owned(), None));
    let (one, _) = ledger.deliveries_due(AGENT, NOON, 1).unwrap();
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].event.event_type, "a1");
    for (delivered, then) in [("b1", "a1, b2"), ("b2", "a1"), ("a1", "a2"), ("a2", "a3")] {
        let seq = seq(ledger, delivered);
        ledger.mark_delivered(seq, NOON + 1).unwrap();
        assert_eq!(due(ledger, 0).0, then);
    }
    let (theirs, _) = ledger.deliveries_due("agt_9", NOON, 9).unwrap();
    assert_eq!(theirs[0].event.event_type, "t1");
}

fn a_clock_that_was_set_back_holds_no_delivery_up(ledger: &mut dyn Ledger) {
    five(ledger);
    let (rows, _) = ledger.deliveries_due(AGENT, NOON, 9).unwrap();
    for row in rows {
        ledger
            .retry_delivery(row.seq, NOON + 50, "HTTP 503")
            .unwrap();
    }
    let mut at = |at| {
        let (due, next) = ledger.deliveries_due(AGENT, at, 9).unwrap();
        let events: Vec<Event> = due.into_iter().map(|row| row.event).collect();
        (types(&events), next)
    };
    assert_eq!(at(NOON), (String::new(), Some(NOON + 50)));
    assert_eq!(at(NOON - 3_600_000), ("a1, b1".to_owned(), None));
}

fn a_delivery_that_failed_waits_and_holds_up_its_elicitation_alone(ledger: &mut dyn Ledger) {
    five(ledger);
    let a1 = seq(ledger, "a1");
    ledger.retry_delivery(a1, NOON + 50, "HTTP 503").unwrap();
    assert_eq!(due(ledger, 49), ("b1".to_owned(), Some(50)));
    assert_eq!(due(ledger, 50), ("a1, b1".to_owned(), None));
}

fn a_parked_delivery_blocks_nothing(ledger: &mut dyn Ledger) {
    five(ledger);
    let a1 = seq(ledger, "a1");
    ledger.park_delivery(a1, "HTTP 410").unwrap();
    assert_eq!(due(ledger, 0), ("b1, a2".to_owned(), None));
}

fn what_is_delivered_or_parked_does_not_change_any_more(ledger: &mut dyn Ledger) {
    five(ledger);
    let (a1, b1) = (seq(ledger, "a1"), seq(ledger, "b1"));
    ledger.mark_delivered(a1, NOON).unwrap();
    ledger.park_delivery(b1, "HTTP 410").unwrap();
    for seq in [a1, b1] {
        ledger.retry_delivery(seq, NOON, "late").unwrap();
        ledger.park_delivery(seq, "late").unwrap();
        ledger.mark_delivered(seq, NOON).unwrap();
    }
    assert_eq!(due(ledger, 0), ("a2, b2".to_owned(), None));
    assert_eq!(ledger.delivery_counts().unwrap(), (3, 1));
}

fn deliveries_are_counted(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.delivery_counts().unwrap(), (0, 0));
    five(ledger);
    let theirs = changed(question("agt_9", "a"), |it| it.tag = "q9".to_owned());
    let theirs = post(ledger, theirs);
    ledger.announce(&news(&theirs), true, NOON).unwrap();
    assert_eq!(ledger.delivery_counts().unwrap(), (6, 0));
    let (a1, b1) = (seq(ledger, "a1"), seq(ledger, "b1"));
    ledger.mark_delivered(a1, NOON).unwrap();
    assert_eq!(ledger.delivery_counts().unwrap(), (5, 0));
    ledger.park_delivery(b1, "HTTP 410").unwrap();
    assert_eq!(ledger.delivery_counts().unwrap(), (4, 1));
}
