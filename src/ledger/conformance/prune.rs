//! What is deleted after its time, and what is not.

use super::{AGENT, NOON, ROOM, changed, closed, draft, head, insert, news, post, question};
use crate::clock::Millis;
use crate::elicitation::{Elicitation, State};
use crate::ledger::{Gap, Ledger, SendKind, Undecrypted};

super::cases![
    a_question_goes_with_all_that_is_about_it,
    a_pending_question_stays_however_old,
    a_question_stays_until_its_last_words_are_sent,
    events_stay_until_they_are_delivered,
    what_was_heard_goes_after_its_time,
    nothing_of_a_gap_is_lost,
];

/// Everything in these cases is older.
const LATER: Millis = NOON + 1_000;

/// A question about which something was said, and which is over.
fn over(ledger: &mut dyn Ledger, id: &str) -> Elicitation {
    let open = post(ledger, question(AGENT, id));
    ledger
        .send(&draft(&open, SendKind::Card, id), NOON)
        .unwrap();
    let row = head(ledger, &open).unwrap();
    assert!(ledger.mark_sent(row.seq, &format!("$card_{id}")).unwrap());
    assert!(
        ledger
            .first_time(open.key(), "@mira:example.org", "closed")
            .unwrap()
    );
    let over = closed(&open, State::Expired, None);
    assert!(ledger.settle(&over).unwrap());
    over
}

fn a_question_goes_with_all_that_is_about_it(ledger: &mut dyn Ledger) {
    let old = over(ledger, "old");
    // It was closed ten milliseconds after noon: not before that moment.
    ledger.prune(NOON + 10).unwrap();
    assert_eq!(ledger.find(old.key()).unwrap(), Some(old.clone()));
    assert_eq!(
        ledger.about(ROOM, "$card_old").unwrap(),
        [old.key().clone()]
    );

    // The question, which event its card is, and what was said once.
    assert_eq!(ledger.prune(NOON + 11).unwrap(), 3);
    assert_eq!(ledger.find(old.key()).unwrap(), None);
    assert_eq!(ledger.about(ROOM, "$card_old").unwrap(), []);
    assert_eq!(
        ledger.events_about(old.key()).unwrap(),
        Vec::<String>::new()
    );
    assert!(
        ledger
            .first_time(old.key(), "@mira:example.org", "closed")
            .unwrap()
    );
    assert_eq!(ledger.prune(NOON + 11).unwrap(), 0);
    // Its id is free again.
    insert(ledger, question(AGENT, "old"));
}

fn a_pending_question_stays_however_old(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "open"));
    let queued = insert(ledger, question(AGENT, "queued"));
    ledger
        .send(&draft(&open, SendKind::Notice, "hello"), NOON)
        .unwrap();
    let row = head(ledger, &open).unwrap();
    assert!(ledger.mark_sent(row.seq, "$notice").unwrap());
    assert!(
        ledger
            .first_time(open.key(), "@mira:example.org", "what")
            .unwrap()
    );
    ledger
        .send(&draft(&queued, SendKind::Card, "the card"), NOON)
        .unwrap();
    // Only the row that was sent.
    assert_eq!(ledger.prune(LATER).unwrap(), 1);
    assert_eq!(
        ledger.pending_in(ROOM).unwrap(),
        [open.clone(), queued.clone()]
    );
    assert_eq!(ledger.events_about(open.key()).unwrap(), ["$notice"]);
    assert!(
        !ledger
            .first_time(open.key(), "@mira:example.org", "what")
            .unwrap()
    );
    assert!(ledger.pending_card(queued.key()).unwrap().is_some());
}

fn a_question_stays_until_its_last_words_are_sent(ledger: &mut dyn Ledger) {
    let over = over(ledger, "over");
    let other = changed(over.clone(), |it| {
        it.question.key.origin = "agt_9".to_owned();
    });
    insert(ledger, changed(other.clone(), |it| it.state = State::Open));
    assert!(ledger.settle(&other).unwrap());
    ledger
        .send(&draft(&over, SendKind::CardEdit, "over"), NOON)
        .unwrap();

    ledger.prune(LATER).unwrap();
    assert_eq!(ledger.find(over.key()).unwrap(), Some(over.clone()));
    assert_eq!(
        ledger.about(ROOM, "$card_over").unwrap(),
        [over.key().clone()]
    );
    assert!(
        !ledger
            .first_time(over.key(), "@mira:example.org", "closed")
            .unwrap()
    );
    // Another origin's question of the same id is not held back by it.
    assert_eq!(ledger.find(other.key()).unwrap(), None);

    let row = head(ledger, &over).unwrap();
    assert!(ledger.mark_sent(row.seq, "$edit").unwrap());
    ledger.prune(LATER).unwrap();
    assert_eq!(ledger.find(over.key()).unwrap(), None);
    assert_eq!(ledger.about(ROOM, "$card_over").unwrap(), []);
}

fn events_stay_until_they_are_delivered(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "a"));
    // One that nobody waits for, two that are delivered, one that is parked, one that is new.
    ledger.announce(&news(&open), false, NOON).unwrap();
    for _ in 0..3 {
        ledger.announce(&news(&open), true, NOON).unwrap();
    }
    ledger.announce(&news(&open), false, LATER).unwrap();
    let events = ledger.events_after(AGENT, 0, 9).unwrap();
    let last = ledger.last_event_seq().unwrap();
    let deliver = |ledger: &mut dyn Ledger| {
        let (due, _) = ledger.deliveries_due(AGENT, NOON, 1).unwrap();
        due[0].seq
    };
    let first = deliver(ledger);
    ledger.park_delivery(first, "HTTP 410").unwrap();

    ledger.prune(LATER).unwrap();
    assert_eq!(ledger.events_after(AGENT, 0, 9).unwrap(), events[1..]);
    assert_eq!(ledger.event_seq(AGENT, &events[0].id).unwrap(), None);
    let second = deliver(ledger);
    ledger.mark_delivered(second, NOON).unwrap();
    ledger.prune(LATER).unwrap();
    let left = [events[1].clone(), events[3].clone(), events[4].clone()];
    assert_eq!(ledger.events_after(AGENT, 0, 9).unwrap(), left);
    assert_eq!(ledger.delivery_counts().unwrap(), (1, 1));

    // Numbers are never used twice: who resumes after one misses nothing.
    let third = deliver(ledger);
    ledger.mark_delivered(third, NOON).unwrap();
    ledger.prune(LATER + 1).unwrap();
    ledger.announce(&news(&open), false, LATER).unwrap();
    assert_eq!(ledger.events_after(AGENT, last, 9).unwrap().len(), 1);
}

fn what_was_heard_goes_after_its_time(ledger: &mut dyn Ledger) {
    assert!(ledger.see(ROOM, "$old", NOON).unwrap());
    assert!(ledger.see(ROOM, "$new", LATER).unwrap());
    let undecrypted = |event_id: &str, heard_at| Undecrypted {
        room_id: ROOM.to_owned(),
        event_id: event_id.to_owned(),
        sender: "@mira:example.org".to_owned(),
        raw: "{}".to_owned(),
        heard_at,
        told: false,
    };
    ledger.keep_undecrypted(&undecrypted("$old", NOON)).unwrap();
    ledger
        .keep_undecrypted(&undecrypted("$new", LATER))
        .unwrap();
    ledger.set_sync_token("s1").unwrap();
    assert_eq!(ledger.prune(LATER).unwrap(), 2);
    assert!(!ledger.seen(ROOM, "$old").unwrap());
    assert!(ledger.seen(ROOM, "$new").unwrap());
    assert_eq!(ledger.undecrypted().unwrap(), [undecrypted("$new", LATER)]);
    assert_eq!(ledger.sync_token().unwrap().as_deref(), Some("s1"));
}

fn nothing_of_a_gap_is_lost(ledger: &mut dyn Ledger) {
    let gap = Gap {
        room_id: ROOM.to_owned(),
        prev_batch: "t1".to_owned(),
        since: None,
        found_at: NOON,
    };
    ledger.open_gap(&gap).unwrap();
    ledger.defer(ROOM, "$1", "one").unwrap();
    assert_eq!(ledger.prune(LATER).unwrap(), 0);
    assert_eq!(ledger.gaps().unwrap(), [gap]);
    assert_eq!(ledger.close_gaps(ROOM).unwrap(), ["one"]);
}
