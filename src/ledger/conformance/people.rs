//! Whom streams know, and who is not to be read.

use std::collections::{BTreeMap, BTreeSet};

use super::streams::{ANNA, MIRA, SAM, all, keep, line, text, vote, voted};
use super::{NOON, ROOM};
use crate::clock::Millis;
use crate::ledger::{KeptLine, Ledger, LedgerError};

super::cases![
    of_an_account_the_earliest_moment_is_kept,
    only_who_was_asked_for_and_met_is_named,
    who_opts_out_leaves_nothing_behind,
    while_somebody_is_out_nothing_of_them_is_kept,
    who_is_out_cannot_opt_out_again,
    who_opts_in_is_read_again_from_then_on,
    all_who_have_opted_out_are_known,
    a_time_out_holds_until_its_end,
    the_last_time_out_holds,
    a_time_out_is_undone,
    a_time_out_that_is_over_goes_with_the_lines_of_its_time,
    everybody_gets_one_handle_for_ever,
    handles_are_given_in_order_and_what_is_taken_is_known,
    a_handle_is_never_given_to_two,
    people_are_kept_for_ever,
];

const OTHER: &str = "!other:example.org";

fn of_an_account_the_earliest_moment_is_kept(ledger: &mut dyn Ledger) {
    let met = |ledger: &mut dyn Ledger| ledger.met(&[MIRA]).unwrap()[MIRA] - NOON;
    for (at, changed, kept) in [
        (5, true, 5),
        (5, false, 5),
        (9, false, 5),
        (3, true, 3),
        (4, false, 3),
        (-9, true, -9),
    ] {
        assert_eq!(ledger.meet(MIRA, NOON + at).unwrap(), changed, "{at}");
        assert_eq!(met(ledger), kept, "{at}");
    }
}

fn only_who_was_asked_for_and_met_is_named(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.met(&[MIRA]).unwrap(), BTreeMap::new());
    assert!(ledger.meet(MIRA, NOON).unwrap());
    assert!(ledger.meet(SAM, NOON + 1).unwrap());
    let found = ledger.met(&[SAM, ANNA, SAM]).unwrap();
    assert_eq!(found, BTreeMap::from([(SAM.to_owned(), NOON + 1)]));
    assert_eq!(ledger.met(&[]).unwrap(), BTreeMap::new());
}

/// A line of Sam's, in a room.
fn of_sam(room_id: &str, event_id: &str) -> KeptLine {
    KeptLine {
        room_id: room_id.to_owned(),
        sender: SAM.to_owned(),
        ..line(event_id, 5)
    }
}

fn who_opts_out_leaves_nothing_behind(ledger: &mut dyn Ledger) {
    let of_mira = keep(ledger, line("$a", 1));
    keep(ledger, of_sam(ROOM, "$b"));
    keep(ledger, of_sam(OTHER, "$c"));
    let edited = text("$edit", 10, Some("edit"));
    assert!(ledger.edit_line(ROOM, "$b", SAM, &edited).unwrap());
    for (event_id, about, voter) in [("$1", "$a", SAM), ("$2", "$a", ANNA), ("$3", "$b", MIRA)] {
        assert!(vote(ledger, event_id, about, voter));
    }
    assert!(ledger.opt_out(SAM, NOON + 60).unwrap());
    assert_eq!(all(ledger), [voted(&of_mira, &[ANNA])]);
    let elsewhere = ledger.lines(OTHER, None, Millis::MAX).unwrap();
    assert_eq!(elsewhere, []);
    for gone in ["$b", "$edit", "$1", "$3"] {
        assert!(!ledger.unsay(ROOM, gone, NOON).unwrap(), "{gone}");
    }
}

fn while_somebody_is_out_nothing_of_them_is_kept(ledger: &mut dyn Ledger) {
    assert!(ledger.opt_out(SAM, NOON).unwrap());
    let of_mira = keep(ledger, line("$a", 1));
    assert!(!ledger.keep_line(&of_sam(ROOM, "$b")).unwrap());
    let edited = text("$edit", 10, Some("edit"));
    assert!(!ledger.edit_line(ROOM, "$b", SAM, &edited).unwrap());
    assert!(!vote(ledger, "$1", "$a", SAM));
    assert_eq!(all(ledger), [of_mira]);
    assert!(ledger.opt_in(SAM).unwrap());
    for unknown in ["$b", "$edit", "$1"] {
        assert!(!ledger.unsay(ROOM, unknown, NOON).unwrap(), "{unknown}");
    }
}

fn who_is_out_cannot_opt_out_again(ledger: &mut dyn Ledger) {
    assert!(ledger.opt_out(SAM, NOON).unwrap());
    assert!(!ledger.opt_out(SAM, NOON + 1).unwrap());
    assert_eq!(
        ledger.opted_out().unwrap(),
        BTreeSet::from([SAM.to_owned()])
    );
}

fn who_opts_in_is_read_again_from_then_on(ledger: &mut dyn Ledger) {
    keep(ledger, of_sam(ROOM, "$b"));
    assert!(ledger.opt_out(SAM, NOON).unwrap());
    assert!(ledger.opt_in(SAM).unwrap());
    assert!(!ledger.opt_in(SAM).unwrap());
    assert_eq!(all(ledger), []);
    let of_mira = keep(ledger, line("$a", 1));
    let of_sam = keep(ledger, of_sam(ROOM, "$c"));
    assert!(vote(ledger, "$1", "$a", SAM));
    assert_eq!(all(ledger), [voted(&of_mira, &[SAM]), of_sam]);
    assert!(ledger.opt_out(SAM, NOON).unwrap());
    assert_eq!(all(ledger), [of_mira]);
}

fn all_who_have_opted_out_are_known(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.opted_out().unwrap(), BTreeSet::new());
    assert!(!ledger.opt_in(SAM).unwrap());
    for user_id in [SAM, MIRA] {
        assert!(!ledger.is_opted_out(user_id).unwrap());
        assert!(ledger.opt_out(user_id, NOON).unwrap());
        assert!(ledger.is_opted_out(user_id).unwrap());
    }
    let both = BTreeSet::from([MIRA.to_owned(), SAM.to_owned()]);
    assert_eq!(ledger.opted_out().unwrap(), both);
    assert!(ledger.opt_in(SAM).unwrap());
    assert!(!ledger.is_opted_out(SAM).unwrap());
    let one = BTreeSet::from([MIRA.to_owned()]);
    assert_eq!(ledger.opted_out().unwrap(), one);
}

fn a_time_out_holds_until_its_end(ledger: &mut dyn Ledger) {
    let sam = (SAM.to_owned(), None);
    let anna = (ANNA.to_owned(), Some(NOON + 10));
    ledger.silence(ROOM, SAM, None).unwrap();
    ledger.silence(ROOM, ANNA, Some(NOON + 10)).unwrap();
    let both = [anna, sam.clone()];
    assert_eq!(ledger.silenced(ROOM, NOON + 9).unwrap(), both);
    let left = ledger.silenced(ROOM, NOON + 10).unwrap();
    assert_eq!(left, std::slice::from_ref(&sam));
    assert_eq!(ledger.silenced(ROOM, Millis::MAX).unwrap(), [sam]);
    assert_eq!(ledger.silenced(OTHER, NOON).unwrap(), []);
}

fn the_last_time_out_holds(ledger: &mut dyn Ledger) {
    for until in [Some(NOON + 10), Some(NOON + 5), None, Some(NOON + 20)] {
        ledger.silence(ROOM, SAM, until).unwrap();
        let expected = [(SAM.to_owned(), until)];
        assert_eq!(ledger.silenced(ROOM, NOON).unwrap(), expected);
    }
}

fn a_time_out_is_undone(ledger: &mut dyn Ledger) {
    ledger.silence(ROOM, SAM, None).unwrap();
    ledger.silence(OTHER, SAM, None).unwrap();
    assert!(ledger.unsilence(ROOM, SAM).unwrap());
    assert!(!ledger.unsilence(ROOM, SAM).unwrap());
    assert_eq!(ledger.silenced(ROOM, NOON).unwrap(), []);
    let elsewhere = ledger.silenced(OTHER, NOON).unwrap();
    assert_eq!(elsewhere, [(SAM.to_owned(), None)]);
    assert!(!ledger.unsilence(ROOM, ANNA).unwrap());
}

fn a_time_out_that_is_over_goes_with_the_lines_of_its_time(ledger: &mut dyn Ledger) {
    ledger.silence(ROOM, SAM, Some(NOON + 10)).unwrap();
    ledger.silence(ROOM, ANNA, None).unwrap();
    ledger.silence(OTHER, SAM, Some(NOON + 10)).unwrap();
    ledger.forget_lines(ROOM, NOON + 10).unwrap();
    assert_eq!(ledger.silenced(ROOM, NOON).unwrap().len(), 2);
    ledger.forget_lines(ROOM, NOON + 11).unwrap();
    let left = [(ANNA.to_owned(), None)];
    assert_eq!(ledger.silenced(ROOM, NOON).unwrap(), left);
    assert_eq!(ledger.silenced(OTHER, NOON).unwrap().len(), 1);
}

/// Gives handles by the first of these names that is free, and who was asked about.
fn give(
    ledger: &mut dyn Ledger,
    users: &[&str],
    names: &[&str],
) -> (Result<BTreeMap<String, String>, LedgerError>, Vec<String>) {
    let users: Vec<String> = users.iter().map(|&user| user.to_owned()).collect();
    let mut asked = Vec::new();
    let given = ledger.give_handles(&users, &mut |user, taken| {
        asked.push(user.to_owned());
        let free = names.iter().find(|name| !taken(name));
        (*free.unwrap_or(&names[0])).to_owned()
    });
    (given, asked)
}

fn pairs(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = of.iter();
    pairs
        .map(|&(user, handle)| (user.to_owned(), handle.to_owned()))
        .collect()
}

fn everybody_gets_one_handle_for_ever(ledger: &mut dyn Ledger) {
    let (given, asked) = give(ledger, &[MIRA, MIRA], &["mira"]);
    assert_eq!(given.unwrap(), pairs(&[(MIRA, "mira")]));
    assert_eq!(asked, [MIRA]);
    // Whatever would be chosen now.
    let (given, asked) = give(ledger, &[MIRA, SAM], &["other"]);
    assert_eq!(given.unwrap(), pairs(&[(MIRA, "mira"), (SAM, "other")]));
    assert_eq!(asked, [SAM]);
    let (given, asked) = give(ledger, &[SAM], &["third"]);
    assert_eq!(given.unwrap(), pairs(&[(SAM, "other")]));
    assert_eq!(asked, Vec::<String>::new());
}

fn handles_are_given_in_order_and_what_is_taken_is_known(ledger: &mut dyn Ledger) {
    let names = ["first", "second", "third"];
    let (given, asked) = give(ledger, &[SAM, ANNA, MIRA], &names);
    let expected = [(SAM, "first"), (ANNA, "second"), (MIRA, "third")];
    assert_eq!(given.unwrap(), pairs(&expected));
    assert_eq!(asked, [SAM, ANNA, MIRA]);
}

fn a_handle_is_never_given_to_two(ledger: &mut dyn Ledger) {
    let (given, _) = give(ledger, &[MIRA], &["mira"]);
    assert_eq!(given.unwrap(), pairs(&[(MIRA, "mira")]));
    let (refused, _) = give(ledger, &[SAM], &["mira"]);
    assert!(matches!(refused, Err(LedgerError::HandleTaken(handle)) if handle == "mira"));
    let (given, _) = give(ledger, &[MIRA, SAM], &["sam"]);
    assert_eq!(given.unwrap(), pairs(&[(MIRA, "mira"), (SAM, "sam")]));
    // Not even when of its owner nothing else is left.
    assert!(ledger.opt_out(MIRA, NOON).unwrap());
    let (refused, _) = give(ledger, &[ANNA], &["mira"]);
    assert!(matches!(refused, Err(LedgerError::HandleTaken(handle)) if handle == "mira"));
}

fn people_are_kept_for_ever(ledger: &mut dyn Ledger) {
    assert!(ledger.meet(MIRA, NOON).unwrap());
    assert!(ledger.opt_out(MIRA, NOON).unwrap());
    ledger.silence(ROOM, ANNA, None).unwrap();
    give(ledger, &[MIRA], &["mira"]).0.unwrap();
    assert_eq!(ledger.prune(Millis::MAX).unwrap(), 0);
    ledger.forget_lines(ROOM, Millis::MAX).unwrap();
    ledger.forget_rooms_but(&[]).unwrap();
    let met = ledger.met(&[MIRA]).unwrap();
    assert_eq!(met, BTreeMap::from([(MIRA.to_owned(), NOON)]));
    assert!(ledger.is_opted_out(MIRA).unwrap());
    let silenced = ledger.silenced(ROOM, NOON).unwrap();
    assert_eq!(silenced, [(ANNA.to_owned(), None)]);
    let (given, _) = give(ledger, &[MIRA], &["other"]);
    assert_eq!(given.unwrap(), pairs(&[(MIRA, "mira")]));
}
