//! What is heard of lines in another order makes the same of them.
//!
//! Two rooms hear the same in different orders. Votes are for what a line says when they come, so
//! they are the same only when nothing says something else, or when they come last.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::NOON;
use super::streams::{ANNA, MIRA, SAM, line, text};
use crate::clock::Millis;
use crate::ledger::{KeptLine, Ledger, StoredLine};

super::cases![
    edits_and_redactions_make_the_same_of_a_line_in_any_order,
    votes_that_come_last_are_the_same,
    votes_for_what_is_not_changed_are_the_same_in_any_order,
];

/// How many different edits there are, and how many votes.
const EACH: usize = 8;

/// One thing that is heard, by its number: what it says is always the same.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Heard {
    Edit(usize),
    Vote(usize),
    UnsaidLine(usize),
    UnsaidEdit(usize),
    UnsaidVote(usize),
}

/// Up to 24 things that are heard, in two orders.
fn two_orders() -> impl Strategy<Value = (Vec<Heard>, Vec<Heard>)> {
    let heard = prop_oneof![
        8 => (0..EACH).prop_map(Heard::Edit),
        8 => (0..EACH).prop_map(Heard::Vote),
        1 => (0..2_usize).prop_map(Heard::UnsaidLine),
        4 => (0..EACH).prop_map(Heard::UnsaidEdit),
        4 => (0..EACH).prop_map(Heard::UnsaidVote),
    ];
    proptest::collection::vec(heard, 0..24)
        .prop_flat_map(|heard| (Just(heard.clone()), Just(heard).prop_shuffle()))
}

/// A line's event, an edit's, a vote's.
fn id(what: &str, number: usize) -> String {
    format!("${what}_{number}")
}

/// Lets a room hear of two lines, and then of the rest.
fn hear(ledger: &mut dyn Ledger, room_id: &str, keys: &[&str; EACH], heard: &[Heard]) {
    for number in 0..2 {
        let kept = KeptLine {
            room_id: room_id.to_owned(),
            text: text(&id("line", number), 0, Some("first")),
            ..line(&id("line", number), 1)
        };
        assert!(ledger.keep_line(&kept).unwrap());
    }
    for &one in heard {
        match one {
            Heard::Edit(number) => {
                // Some at the same time, some before others.
                let after = Millis::try_from(number / 4).unwrap();
                let text = text(&id("edit", number), after, Some(keys[number]));
                let line = id("line", number % 2);
                ledger.edit_line(room_id, &line, MIRA, &text).unwrap();
            }
            Heard::Vote(number) => {
                let voter = if number < 4 { SAM } else { ANNA };
                let (vote, line) = (id("vote", number), id("line", number % 2));
                ledger.vote(room_id, &vote, &line, voter, NOON).unwrap();
            }
            Heard::UnsaidLine(number) => unsay(ledger, room_id, &id("line", number)),
            Heard::UnsaidEdit(number) => unsay(ledger, room_id, &id("edit", number)),
            Heard::UnsaidVote(number) => unsay(ledger, room_id, &id("vote", number)),
        }
    }
}

fn unsay(ledger: &mut dyn Ledger, room_id: &str, event_id: &str) {
    ledger.unsay(room_id, event_id, NOON).unwrap();
}

/// What a room that heard this holds, as if it were one and the same room.
fn held(
    ledger: &mut dyn Ledger,
    room_id: &str,
    keys: &[&str; EACH],
    heard: &[Heard],
) -> Vec<StoredLine> {
    hear(ledger, room_id, keys, heard);
    let mut lines = ledger.lines(room_id, None, Millis::MAX).unwrap();
    for stored in &mut lines {
        stored.line.room_id.clear();
    }
    lines
}

/// Tries many things that are heard, each in two rooms of their own; `arrange` says what of an order
/// and of what is held the rule is about.
fn in_two_orders(
    ledger: &mut dyn Ledger,
    keys: &[&str; EACH],
    arrange: fn(&mut Vec<Heard>),
    look: fn(&mut StoredLine),
) {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(200)
    };
    let state = RefCell::new((0, ledger));
    let tried = TestRunner::new(config).run(&two_orders(), |(one, other)| {
        let (rooms, ledger) = &mut *state.borrow_mut();
        let [one, other] = [one, other].map(|mut heard| {
            arrange(&mut heard);
            *rooms += 1;
            let mut lines = held(&mut **ledger, &format!("!{rooms}"), keys, &heard);
            lines.iter_mut().for_each(look);
            lines
        });
        prop_assert_eq!(one, other);
        Ok(())
    });
    tried.unwrap();
}

/// Edits that say all kinds of things, one of them the first.
const SEVERAL: [&str; EACH] = ["b", "c", "first", "b", "c", "d", "first", "c"];

fn edits_and_redactions_make_the_same_of_a_line_in_any_order(ledger: &mut dyn Ledger) {
    in_two_orders(ledger, &SEVERAL, |_| {}, |stored| stored.votes.clear());
}

fn votes_that_come_last_are_the_same(ledger: &mut dyn Ledger) {
    let votes_last = |heard: &mut Vec<Heard>| {
        heard.sort_by_key(|one| matches!(one, Heard::Vote(_)));
    };
    in_two_orders(ledger, &SEVERAL, votes_last, |_| {});
}

fn votes_for_what_is_not_changed_are_the_same_in_any_order(ledger: &mut dyn Ledger) {
    in_two_orders(ledger, &["first"; EACH], |_| {}, |_| {});
}
