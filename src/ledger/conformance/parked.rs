//! Deliveries that were given up, and what an operator does about them.

use super::{AGENT, NOON, news, post, question};
use crate::clock::Millis;
use crate::elicitation::Key;
use crate::ledger::{
    ChosenDeliveries, DeliveryCount, DeliveryState, EventDraft, Ledger, SoughtDeliveries,
    Undelivered,
};

super::cases![
    what_was_not_taken_is_listed_whole,
    a_listing_comes_in_pages_oldest_first,
    what_is_asked_for_again_is_as_if_new,
    what_is_asked_for_again_goes_before_what_is_newer,
    what_is_newer_and_was_taken_stays_taken,
    one_is_asked_for_without_the_others,
    only_what_is_parked_can_be_asked_for_or_dropped,
    those_chosen_are_in_both_lists,
    what_is_dropped_is_told_to_nobody,
    a_parked_delivery_is_kept_however_old_until_it_is_dropped,
    deliveries_are_counted_by_agent,
];

const OTHER: &str = "agt_9";
const ALL: ChosenDeliveries = ChosenDeliveries {
    event_ids: None,
    origins: None,
};

/// Tells about a question, with a delivery; gives the event's id.
fn tell(ledger: &mut dyn Ledger, key: &Key, event_type: &str, at: Millis) -> String {
    let before = ledger.last_event_seq().unwrap();
    let asked = ledger.find(key).unwrap().unwrap();
    let draft = EventDraft {
        event_type: event_type.to_owned(),
        ..news(&asked)
    };
    ledger.announce(&draft, true, at).unwrap();
    let told = ledger.events_after(&key.origin, before, 9).unwrap();
    told[0].id.clone()
}

/// Two questions of the agent and one of another, and their events a1, b1, a2, o1, all to be
/// delivered. Gives the ids of the events.
fn four(ledger: &mut dyn Ledger) -> [String; 4] {
    let [a, b, o] = [(AGENT, "a"), (AGENT, "b"), (OTHER, "a")].map(|(origin, id)| {
        let asked = post(ledger, question(origin, id));
        asked.key().clone()
    });
    [(&a, "a1"), (&b, "b1"), (&a, "a2"), (&o, "o1")]
        .map(|(key, name)| tell(ledger, key, name, NOON))
}

/// What is due, by type.
fn due(ledger: &mut dyn Ledger, origin: &str, at: Millis) -> Vec<String> {
    let (due, _) = ledger.deliveries_due(origin, at, 100).unwrap();
    due.into_iter().map(|it| it.event.event_type).collect()
}

/// The number of the due delivery of this event.
fn seq(ledger: &mut dyn Ledger, event_id: &str) -> i64 {
    let mut all = ledger.deliveries_due(AGENT, Millis::MAX, 100).unwrap().0;
    all.extend(ledger.deliveries_due(OTHER, Millis::MAX, 100).unwrap().0);
    let found = all.iter().find(|it| it.event.id == event_id);
    found.unwrap().seq
}

fn park(ledger: &mut dyn Ledger, event_ids: &[&String]) {
    for event_id in event_ids {
        let seq = seq(ledger, event_id);
        ledger.park_delivery(seq, "HTTP 410").unwrap();
    }
}

fn take(ledger: &mut dyn Ledger, event_id: &str) {
    let seq = seq(ledger, event_id);
    ledger.mark_delivered(seq, NOON + 1).unwrap();
}

fn sought(state: DeliveryState) -> SoughtDeliveries {
    SoughtDeliveries {
        state,
        origin: None,
        above: None,
        limit: 100,
    }
}

fn types(ledger: &mut dyn Ledger, sought: &SoughtDeliveries) -> Vec<String> {
    let page = ledger.undelivered(sought).unwrap();
    assert_eq!(page.next, None);
    let deliveries = page.deliveries.into_iter();
    deliveries.map(|it| it.event_type).collect()
}

fn these(event_ids: &[&String]) -> ChosenDeliveries {
    ChosenDeliveries {
        event_ids: Some(event_ids.iter().map(|id| (*id).clone()).collect()),
        origins: None,
    }
}

fn of(origins: &[&str]) -> ChosenDeliveries {
    ChosenDeliveries {
        event_ids: None,
        origins: Some(origins.iter().map(|&origin| origin.to_owned()).collect()),
    }
}

fn what_was_not_taken_is_listed_whole(ledger: &mut dyn Ledger) {
    let [a1, b1, a2, o1] = four(ledger);
    let seq_of_a1 = seq(ledger, &a1);
    for at in [50, 90] {
        ledger
            .retry_delivery(seq_of_a1, NOON + at, "HTTP 503")
            .unwrap();
    }
    take(ledger, &b1);
    park(ledger, &[&o1]);
    let pending = Undelivered {
        event_id: a1,
        key: Key::new(AGENT, "a"),
        event_type: "a1".to_owned(),
        at: NOON,
        state: DeliveryState::Pending,
        attempts: 2,
        next_at: Some(NOON + 90),
        last_error: Some("HTTP 503".to_owned()),
    };
    let untried = Undelivered {
        event_id: a2,
        event_type: "a2".to_owned(),
        attempts: 0,
        next_at: Some(NOON),
        last_error: None,
        ..pending.clone()
    };
    let parked = Undelivered {
        event_id: o1,
        key: Key::new(OTHER, "a"),
        event_type: "o1".to_owned(),
        state: DeliveryState::Parked,
        attempts: 1,
        next_at: None,
        last_error: Some("HTTP 410".to_owned()),
        ..pending.clone()
    };
    let listed = ledger.undelivered(&sought(DeliveryState::Pending)).unwrap();
    assert_eq!(listed.deliveries, [pending, untried]);
    let listed = ledger.undelivered(&sought(DeliveryState::Parked)).unwrap();
    assert_eq!(listed.deliveries, [parked]);
    let of_other = SoughtDeliveries {
        origin: Some(OTHER.to_owned()),
        ..sought(DeliveryState::Pending)
    };
    assert_eq!(types(ledger, &of_other), Vec::<String>::new());
}

fn a_listing_comes_in_pages_oldest_first(ledger: &mut dyn Ledger) {
    four(ledger);
    let mut sought = SoughtDeliveries {
        limit: 2,
        ..sought(DeliveryState::Pending)
    };
    let page = ledger.undelivered(&sought).unwrap();
    let names: Vec<&str> = page
        .deliveries
        .iter()
        .map(|it| it.event_type.as_str())
        .collect();
    assert_eq!(names, ["a1", "b1"]);
    sought.above = page.next;
    assert!(sought.above.is_some());
    // Exactly as many as fit are the last page.
    assert_eq!(types(ledger, &sought), ["a2", "o1"]);
    sought.origin = Some(AGENT.to_owned());
    assert_eq!(types(ledger, &sought), ["a2"]);
}

fn what_is_asked_for_again_is_as_if_new(ledger: &mut dyn Ledger) {
    let [a1, ..] = four(ledger);
    park(ledger, &[&a1]);
    let later = NOON + 5_000;
    assert_eq!(ledger.retry_parked(&ALL, later).unwrap(), [a1.as_str()]);
    let (due, _) = ledger.deliveries_due(AGENT, later, 1).unwrap();
    assert_eq!((&due[0].event.id, due[0].event.at), (&a1, NOON));
    assert_eq!((due[0].attempts, due[0].since), (0, later));
    let (before, next) = ledger.deliveries_due(AGENT, later - 1, 9).unwrap();
    assert!(before.iter().all(|it| it.event.id != a1));
    assert_eq!(next, Some(later));
    let listed = ledger.undelivered(&sought(DeliveryState::Pending)).unwrap();
    let listed = &listed.deliveries[0];
    // Why it was given up is still to be read while it is tried.
    assert_eq!(
        (
            &listed.event_id,
            listed.next_at,
            listed.last_error.as_deref()
        ),
        (&a1, Some(later), Some("HTTP 410"))
    );
}

fn what_is_asked_for_again_goes_before_what_is_newer(ledger: &mut dyn Ledger) {
    let [a1, ..] = four(ledger);
    park(ledger, &[&a1]);
    assert_eq!(due(ledger, AGENT, NOON), ["b1", "a2"]);
    ledger.retry_parked(&ALL, NOON).unwrap();
    assert_eq!(due(ledger, AGENT, NOON), ["a1", "b1"]);
    take(ledger, &a1);
    assert_eq!(due(ledger, AGENT, NOON), ["b1", "a2"]);
}

fn what_is_newer_and_was_taken_stays_taken(ledger: &mut dyn Ledger) {
    let [a1, _, a2, _] = four(ledger);
    park(ledger, &[&a1]);
    take(ledger, &a2);
    assert_eq!(ledger.retry_parked(&ALL, NOON).unwrap(), [a1.as_str()]);
    assert_eq!(due(ledger, AGENT, NOON), ["a1", "b1"]);
    take(ledger, &a1);
    assert_eq!(due(ledger, AGENT, Millis::MAX), ["b1"]);
}

fn one_is_asked_for_without_the_others(ledger: &mut dyn Ledger) {
    let [a1, b1, a2, o1] = four(ledger);
    park(ledger, &[&a1, &b1, &a2, &o1]);
    let some = these(&[&o1, &a2]);
    // Oldest first, however they are named.
    assert_eq!(ledger.retry_parked(&some, NOON).unwrap(), [a2, o1]);
    // What is older and stays parked holds nothing up.
    assert_eq!(due(ledger, AGENT, NOON), ["a2"]);
    assert_eq!(due(ledger, OTHER, NOON), ["o1"]);
    assert_eq!(types(ledger, &sought(DeliveryState::Parked)), ["a1", "b1"]);
    assert_eq!(
        ledger.retry_parked(&of(&[OTHER]), NOON).unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(ledger.retry_parked(&of(&[AGENT]), NOON).unwrap(), [a1, b1]);
    // Each is in its place again.
    assert_eq!(due(ledger, AGENT, NOON), ["a1", "b1"]);
}

fn only_what_is_parked_can_be_asked_for_or_dropped(ledger: &mut dyn Ledger) {
    let [a1, b1, ..] = four(ledger);
    take(ledger, &a1);
    let chosen = these(&[&a1, &b1, &"evt_unknown".to_owned()]);
    let none = Vec::<String>::new();
    assert_eq!(ledger.retry_parked(&chosen, NOON + 9).unwrap(), none);
    assert_eq!(ledger.drop_parked(&chosen).unwrap(), none);
    assert_eq!(ledger.retry_parked(&ALL, NOON + 9).unwrap(), none);
    assert_eq!(ledger.drop_parked(&ALL).unwrap(), none);
    assert_eq!(due(ledger, AGENT, NOON), ["b1", "a2"]);
}

fn those_chosen_are_in_both_lists(ledger: &mut dyn Ledger) {
    let [a1, b1, a2, o1] = four(ledger);
    park(ledger, &[&a1, &b1, &a2, &o1]);
    let none = Vec::<String>::new();
    let nobody = of(&[]);
    assert_eq!(ledger.retry_parked(&nobody, NOON).unwrap(), none);
    assert_eq!(ledger.retry_parked(&these(&[]), NOON).unwrap(), none);
    let mine = ChosenDeliveries {
        origins: Some(vec![AGENT.to_owned()]),
        ..these(&[&o1, &b1])
    };
    assert_eq!(ledger.retry_parked(&mine, NOON).unwrap(), [b1]);
    assert_eq!(
        ledger.drop_parked(&of(&[AGENT, OTHER])).unwrap(),
        [a1, a2, o1]
    );
}

fn what_is_dropped_is_told_to_nobody(ledger: &mut dyn Ledger) {
    let [a1, b1, a2, _] = four(ledger);
    park(ledger, &[&a1, &b1]);
    assert_eq!(ledger.drop_parked(&these(&[&a1])).unwrap(), [a1.as_str()]);
    assert_eq!(types(ledger, &sought(DeliveryState::Parked)), ["b1"]);
    assert_eq!(ledger.retry_parked(&ALL, NOON).unwrap(), [b1]);
    assert_eq!(due(ledger, AGENT, NOON), ["b1", "a2"]);
    // Whoever reads the events finds it all the same.
    let events = ledger.events_after(AGENT, 0, 9).unwrap();
    assert_eq!((&events[0].id, &events[2].id), (&a1, &a2));
}

fn a_parked_delivery_is_kept_however_old_until_it_is_dropped(ledger: &mut dyn Ledger) {
    let [a1, b1, a2, o1] = four(ledger);
    park(ledger, &[&a1, &o1]);
    take(ledger, &b1);
    take(ledger, &a2);
    ledger.prune(NOON + 1).unwrap();
    assert_eq!(types(ledger, &sought(DeliveryState::Parked)), ["a1", "o1"]);
    assert_eq!(ledger.event_seq(AGENT, &b1).unwrap(), None);
    ledger.drop_parked(&these(&[&a1])).unwrap();
    ledger.prune(NOON + 1).unwrap();
    assert_eq!(ledger.event_seq(AGENT, &a1).unwrap(), None);
    // The other one can still be asked for, whole.
    assert_eq!(ledger.retry_parked(&ALL, NOON + 9).unwrap(), [o1.as_str()]);
    let (due, _) = ledger.deliveries_due(OTHER, NOON + 9, 9).unwrap();
    assert_eq!(
        (due[0].event.id.as_str(), due[0].event.at),
        (o1.as_str(), NOON)
    );
    assert_eq!(due[0].event.body["elicitation_id"], "a");
}

fn deliveries_are_counted_by_agent(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.delivery_counts_by_origin().unwrap(), []);
    let [a1, b1, a2, o1] = four(ledger);
    park(ledger, &[&b1, &o1]);
    let count = |origin: &str, pending, parked| DeliveryCount {
        origin: origin.to_owned(),
        pending,
        parked,
    };
    assert_eq!(
        ledger.delivery_counts_by_origin().unwrap(),
        [count(AGENT, 2, 1), count(OTHER, 0, 1)]
    );
    ledger.retry_parked(&of(&[OTHER]), NOON).unwrap();
    take(ledger, &a1);
    take(ledger, &a2);
    assert_eq!(
        ledger.delivery_counts_by_origin().unwrap(),
        [count(AGENT, 0, 1), count(OTHER, 1, 0)]
    );
    take(ledger, &o1);
    ledger.drop_parked(&ALL).unwrap();
    assert_eq!(ledger.delivery_counts_by_origin().unwrap(), []);
}
