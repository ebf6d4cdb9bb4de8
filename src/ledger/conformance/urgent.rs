//! What goes ahead of everything else, and what is withdrawn before it is sent.

use serde_json::json;

use super::{AGENT, NOON, ROOM};
use crate::clock::Millis;
use crate::elicitation::Key;
use crate::ledger::{
    ChosenDeliveries, Delivery, EventDraft, LONGEST_WAIT, Ledger, SendDraft, SendKind,
};

super::cases![
    what_is_urgent_is_due_before_everything_older,
    what_is_urgent_does_not_wait_behind_its_own_session,
    what_is_urgent_holds_its_own_session_up_as_little,
    what_is_urgent_waits_after_a_failure_and_is_given_up_like_the_rest,
    urgent_ones_are_given_a_few_at_a_time,
    without_a_webhook_nothing_is_urgent,
    only_what_was_never_tried_is_withdrawn,
    what_was_sent_under_a_key_is_found_by_its_kind,
    what_was_not_sent_to_a_room_is_taken_out_of_it,
];

fn tell(ledger: &mut dyn Ledger, agent: &str, session: &str, word: &str, urgent: bool) {
    let draft = EventDraft {
        key: Key::new(agent, session),
        event_type: word.to_owned(),
        body: json!({}),
        urgent,
    };
    ledger.announce(&draft, true, NOON).unwrap();
}

fn words(due: &[Delivery]) -> String {
    let words = due.iter().map(|it| it.event.event_type.as_str());
    words.collect::<Vec<_>>().join(" ")
}

/// What is due at all, and what is urgent; each with when the next one is.
type Due = [(String, Option<Millis>); 2];

fn due(ledger: &mut dyn Ledger, at: Millis) -> Due {
    let all = ledger.deliveries_due(AGENT, NOON + at, 100).unwrap();
    let urgent = ledger.urgent_due(AGENT, NOON + at, 100).unwrap();
    [all, urgent].map(|(due, next)| (words(&due), next.map(|next| next - NOON)))
}

fn expected(all: &str, urgent: &str) -> Due {
    [(all.to_owned(), None), (urgent.to_owned(), None)]
}

fn seq(ledger: &mut dyn Ledger, word: &str) -> i64 {
    let (due, _) = ledger.deliveries_due(AGENT, Millis::MAX, 100).unwrap();
    let found = due.iter().find(|it| it.event.event_type == word);
    found.unwrap().seq
}

fn what_is_urgent_is_due_before_everything_older(ledger: &mut dyn Ledger) {
    tell(ledger, AGENT, "s1", "a", false);
    tell(ledger, AGENT, "s2", "b", false);
    tell(ledger, AGENT, "s3", "stop3", true);
    tell(ledger, "agt_9", "s4", "theirs", true);
    tell(ledger, AGENT, "s5", "stop5", true);
    assert_eq!(due(ledger, 0), expected("stop3 stop5 a b", "stop3 stop5"));
    let (all, _) = ledger.deliveries_due(AGENT, NOON, 100).unwrap();
    let urgent: Vec<bool> = all.iter().map(|delivery| delivery.urgent).collect();
    assert_eq!(urgent, [true, true, false, false]);
}

fn what_is_urgent_does_not_wait_behind_its_own_session(ledger: &mut dyn Ledger) {
    tell(ledger, AGENT, "s1", "a", false);
    tell(ledger, AGENT, "s1", "stop", true);
    assert_eq!(due(ledger, 0), expected("stop a", "stop"));
    let failed = seq(ledger, "a");
    ledger
        .retry_delivery(failed, NOON + 60, "HTTP 503")
        .unwrap();
    let [all, urgent] = due(ledger, 0);
    assert_eq!(all, ("stop".to_owned(), Some(60)));
    assert_eq!(urgent, ("stop".to_owned(), None));
}

fn what_is_urgent_holds_its_own_session_up_as_little(ledger: &mut dyn Ledger) {
    tell(ledger, AGENT, "s1", "stop", true);
    tell(ledger, AGENT, "s1", "b", false);
    tell(ledger, AGENT, "s1", "c", false);
    // Among themselves the others stay in order.
    assert_eq!(due(ledger, 0), expected("stop b", "stop"));
    let stop = seq(ledger, "stop");
    ledger.mark_delivered(stop, NOON).unwrap();
    assert_eq!(due(ledger, 0), expected("b", ""));
}

fn what_is_urgent_waits_after_a_failure_and_is_given_up_like_the_rest(ledger: &mut dyn Ledger) {
    tell(ledger, AGENT, "s1", "stop", true);
    tell(ledger, AGENT, "s2", "other", true);
    let stop = seq(ledger, "stop");
    ledger.retry_delivery(stop, NOON + 60, "HTTP 503").unwrap();
    let waits = |urgent: &str| [urgent, urgent].map(|word| (word.to_owned(), Some(60)));
    assert_eq!(due(ledger, 59), waits("other"));
    assert_eq!(due(ledger, 60), expected("stop other", "stop other"));
    // The clock was set back.
    let back = 60 - LONGEST_WAIT - 1;
    let (at_once, next) = ledger.urgent_due(AGENT, NOON + back, 100).unwrap();
    assert_eq!((words(&at_once), next), ("stop".to_owned(), Some(NOON)));
    ledger.park_delivery(stop, "HTTP 410").unwrap();
    assert_eq!(due(ledger, 60), expected("other", "other"));
    // Asked for again it is as urgent as before.
    let again = ledger
        .retry_parked(&ChosenDeliveries::default(), NOON + 70)
        .unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!(due(ledger, 70), expected("stop other", "stop other"));
}

fn urgent_ones_are_given_a_few_at_a_time(ledger: &mut dyn Ledger) {
    for word in ["a", "b", "c"] {
        tell(ledger, AGENT, word, word, true);
    }
    let (two, next) = ledger.urgent_due(AGENT, NOON, 2).unwrap();
    assert_eq!((words(&two), next), ("a b".to_owned(), None));
}

fn without_a_webhook_nothing_is_urgent(ledger: &mut dyn Ledger) {
    let draft = EventDraft {
        key: Key::new(AGENT, "s1"),
        event_type: "stop".to_owned(),
        body: json!({}),
        urgent: true,
    };
    ledger.announce(&draft, false, NOON).unwrap();
    assert_eq!(due(ledger, 0), expected("", ""));
    assert_eq!(ledger.events_after(AGENT, 0, 10).unwrap().len(), 1);
}

fn send(ledger: &mut dyn Ledger, key: &Key, kind: SendKind, body: &str) {
    let draft = SendDraft {
        room_id: ROOM.to_owned(),
        key: key.clone(),
        also: Vec::new(),
        kind,
        content: json!({ "body": body }),
    };
    ledger.send(&draft, NOON).unwrap();
}

/// The bodies of what is still to be sent to the room, which sends it.
fn sent(ledger: &mut dyn Ledger) -> Vec<String> {
    let mut bodies = Vec::new();
    while let Some((row, _)) = ledger.next_sending(ROOM, NOON).unwrap() {
        bodies.push(row.draft.content["body"].as_str().unwrap().to_owned());
        let event_id = format!("$event_{}", row.seq);
        assert!(ledger.mark_sent(row.seq, &event_id).unwrap());
    }
    bodies
}

fn only_what_was_never_tried_is_withdrawn(ledger: &mut dyn Ledger) {
    let (one, other) = (Key::new("session:s1", "act"), Key::new("session:s2", "act"));
    send(ledger, &one, SendKind::Connect, "tried");
    let (row, _) = ledger.next_sending(ROOM, NOON).unwrap().unwrap();
    assert!(ledger.mark_attempted(row.seq, NOON).unwrap());
    let withdraw = |ledger: &mut dyn Ledger, key| {
        let withdrawn = ledger.withdraw_unsent(SendKind::Connect, key);
        withdrawn.unwrap()
    };
    assert!(!withdraw(ledger, &one));
    for (key, kind, body) in [
        (&one, SendKind::Connect, "untried"),
        (&one, SendKind::InThread, "of another kind"),
        (&other, SendKind::Connect, "another's"),
    ] {
        send(ledger, key, kind, body);
    }
    assert!(withdraw(ledger, &one));
    assert!(!withdraw(ledger, &one));
    assert_eq!(sent(ledger), ["tried", "of another kind", "another's"]);
}

fn what_was_sent_under_a_key_is_found_by_its_kind(ledger: &mut dyn Ledger) {
    let (one, other) = (
        Key::new("session:s1", "act"),
        Key::new("session:s1", "act2"),
    );
    let found = |ledger: &mut dyn Ledger, kind, key| ledger.sent_as(kind, key).unwrap();
    send(ledger, &one, SendKind::Connect, "first");
    assert_eq!(found(ledger, SendKind::Connect, &one), None);
    sent(ledger);
    let first = found(ledger, SendKind::Connect, &one);
    assert!(first.is_some());
    assert_eq!(found(ledger, SendKind::InThread, &one), None);
    assert_eq!(found(ledger, SendKind::Connect, &other), None);
    send(ledger, &one, SendKind::Connect, "second");
    sent(ledger);
    let second = found(ledger, SendKind::Connect, &one);
    assert!(second.is_some() && second != first);
}

fn what_was_not_sent_to_a_room_is_taken_out_of_it(ledger: &mut dyn Ledger) {
    let (one, act) = (Key::of_session("s1"), Key::new("session:s1", "act"));
    send(ledger, &one, SendKind::Root, "sent");
    sent(ledger);
    for (key, kind, body) in [
        (&one, SendKind::InThread, "tried"),
        (&act, SendKind::InThread, "untried"),
        (&one, SendKind::Notice, "of another kind"),
        (&Key::of_session("s2"), SendKind::InThread, "another's"),
        (&one, SendKind::Root, "root"),
    ] {
        send(ledger, key, kind, body);
    }
    let elsewhere = SendDraft {
        room_id: "!elsewhere".to_owned(),
        key: one.clone(),
        also: Vec::new(),
        kind: SendKind::InThread,
        content: json!({ "body": "elsewhere" }),
    };
    ledger.send(&elsewhere, NOON).unwrap();
    let (row, _) = ledger.next_sending(ROOM, NOON).unwrap().unwrap();
    assert!(ledger.mark_attempted(row.seq, NOON).unwrap());
    let kinds = [SendKind::Root, SendKind::InThread];
    let taken = ledger.take_unsent(ROOM, &one.origin, &kinds).unwrap();
    let bodies: Vec<&str> = taken
        .iter()
        .map(|draft| draft.content["body"].as_str().unwrap())
        .collect();
    assert_eq!(bodies, ["tried", "untried", "root"]);
    assert_eq!(taken[1].key, act);
    // Whatever comes of what was tried, it is not this row's any more.
    assert!(!ledger.mark_sent(row.seq, "$late").unwrap());
    assert_eq!(ledger.take_unsent(ROOM, &one.origin, &kinds).unwrap(), []);
    assert_eq!(sent(ledger), ["of another kind", "another's"]);
    let (row, _) = ledger.next_sending("!elsewhere", NOON).unwrap().unwrap();
    assert_eq!(row.draft, elsewhere);
}
