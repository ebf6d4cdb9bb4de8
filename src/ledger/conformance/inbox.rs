//! What was heard.

use super::NOON;
use crate::ledger::{COMMANDS_WITHIN, Gap, Ledger, MOST_COMMANDS, MOST_KEPT, Undecrypted};

super::cases![
    an_event_is_new_once_in_each_room,
    the_sync_token_is_the_last_one_set,
    an_alias_leads_where_it_last_led,
    gaps_are_open_until_their_room_closes_them,
    what_waited_behind_a_gap_comes_once_and_in_order,
    undecrypted_events_wait_in_order_until_they_are_dropped,
    one_room_does_not_fill_the_ledger_with_what_nobody_can_read,
    a_person_is_answered_so_many_commands_within_so_much_time,
];

const A: &str = "!a:example.org";
const B: &str = "!b:example.org";

fn an_event_is_new_once_in_each_room(ledger: &mut dyn Ledger) {
    assert!(!ledger.seen(A, "$1").unwrap());
    assert!(ledger.see(A, "$1", NOON).unwrap());
    assert!(!ledger.see(A, "$1", NOON + 1).unwrap());
    assert!(ledger.seen(A, "$1").unwrap());
    assert!(!ledger.seen(B, "$1").unwrap());
    assert!(ledger.see(B, "$1", NOON).unwrap());
    assert!(ledger.see(A, "$2", NOON).unwrap());
}

fn the_sync_token_is_the_last_one_set(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.sync_token().unwrap(), None);
    for token in ["s1", "s2"] {
        ledger.set_sync_token(token).unwrap();
        assert_eq!(ledger.sync_token().unwrap().as_deref(), Some(token));
    }
}

fn an_alias_leads_where_it_last_led(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.alias("#a:example.org").unwrap(), None);
    for room_id in [A, B] {
        ledger.set_alias("#a:example.org", room_id).unwrap();
        let leads_to = ledger.alias("#a:example.org").unwrap();
        assert_eq!(leads_to.as_deref(), Some(room_id));
    }
    assert_eq!(ledger.alias("#b:example.org").unwrap(), None);
    assert_eq!(ledger.sync_token().unwrap(), None);
}

fn gap(room_id: &str, prev_batch: &str, since: Option<&str>) -> Gap {
    Gap {
        room_id: room_id.to_owned(),
        prev_batch: prev_batch.to_owned(),
        since: since.map(str::to_owned),
        found_at: NOON,
    }
}

fn gaps_are_open_until_their_room_closes_them(ledger: &mut dyn Ledger) {
    let first = gap(A, "t9", Some("s1"));
    let other = gap(B, "t9", None);
    let second = gap(A, "t5", Some("s2"));
    for gap in [&first, &other, &second] {
        ledger.open_gap(gap).unwrap();
    }
    // The same hole is found once, as it was found first.
    ledger.open_gap(&gap(A, "t9", Some("s7"))).unwrap();
    assert_eq!(ledger.gaps().unwrap(), [first, other.clone(), second]);
    assert_eq!(ledger.close_gaps(A).unwrap(), Vec::<String>::new());
    assert_eq!(ledger.gaps().unwrap(), [other]);
    // Closed, it may open again.
    ledger.open_gap(&gap(A, "t9", None)).unwrap();
    assert_eq!(ledger.gaps().unwrap().len(), 2);
}

fn what_waited_behind_a_gap_comes_once_and_in_order(ledger: &mut dyn Ledger) {
    ledger.open_gap(&gap(A, "t1", None)).unwrap();
    for (room, event, raw) in [
        (A, "$9", "nine"),
        (B, "$7", "other"),
        (A, "$1", "one"),
        (A, "$9", "nine again"),
        (A, "$5", "five"),
    ] {
        ledger.defer(room, event, raw).unwrap();
    }
    assert_eq!(ledger.close_gaps(A).unwrap(), ["nine", "one", "five"]);
    assert_eq!(ledger.close_gaps(A).unwrap(), Vec::<String>::new());
    assert_eq!(ledger.close_gaps(B).unwrap(), ["other"]);
}

fn undecrypted(room_id: &str, event_id: &str, heard_at: i64) -> Undecrypted {
    Undecrypted {
        room_id: room_id.to_owned(),
        event_id: event_id.to_owned(),
        sender: "@mira:example.org".to_owned(),
        raw: format!("{{\"n\":{heard_at}}}"),
        heard_at,
        told: false,
    }
}

fn undecrypted_events_wait_in_order_until_they_are_dropped(ledger: &mut dyn Ledger) {
    let first = undecrypted(A, "$9", NOON + 3);
    let second = undecrypted(B, "$9", NOON + 1);
    let third = undecrypted(A, "$1", NOON + 2);
    for kept in [&first, &second, &third] {
        ledger.keep_undecrypted(kept).unwrap();
    }
    ledger
        .keep_undecrypted(&undecrypted(A, "$9", NOON + 9))
        .unwrap();
    assert_eq!(
        ledger.undecrypted().unwrap(),
        [first.clone(), second.clone(), third.clone()]
    );

    ledger.mark_told_unreadable(A, "$9").unwrap();
    ledger.keep_undecrypted(&first).unwrap();
    let told = Undecrypted {
        told: true,
        ..first
    };
    assert_eq!(
        ledger.undecrypted().unwrap(),
        [told.clone(), second, third.clone()]
    );

    assert_eq!(ledger.undecrypted_since(A, "$1").unwrap(), Some(NOON + 2));
    assert_eq!(ledger.undecrypted_since(B, "$1").unwrap(), None);
    ledger.drop_undecrypted(B, "$9").unwrap();
    ledger.drop_undecrypted(B, "$unknown").unwrap();
    assert_eq!(ledger.undecrypted().unwrap(), [told, third]);
}

fn one_room_does_not_fill_the_ledger_with_what_nobody_can_read(ledger: &mut dyn Ledger) {
    for number in 0..=MOST_KEPT {
        let locked = undecrypted(A, &format!("${number}"), NOON);
        ledger.keep_undecrypted(&locked).unwrap();
    }
    let other = undecrypted(B, "$1", NOON);
    ledger.keep_undecrypted(&other).unwrap();
    let kept = ledger.undecrypted().unwrap();
    assert_eq!(kept.len(), usize::try_from(MOST_KEPT).unwrap() + 1);
    assert_eq!(kept.last(), Some(&other));
}

fn a_person_is_answered_so_many_commands_within_so_much_time(ledger: &mut dyn Ledger) {
    let mut given = |user: &str, at| ledger.may_command(user, at).unwrap();
    for number in 0..MOST_COMMANDS {
        assert!(given("@mira:x.org", NOON + i64::from(number)));
    }
    assert!(!given("@mira:x.org", NOON + COMMANDS_WITHIN - 1));
    assert!(given("@ben:x.org", NOON));
    // The first is forgotten, and only that one: what was refused did not count.
    assert!(given("@mira:x.org", NOON + COMMANDS_WITHIN));
    assert!(!given("@mira:x.org", NOON + COMMANDS_WITHIN));
    // A clock that is set back shuts nobody out.
    assert!(given("@mira:x.org", NOON - 3_600_000));
}
