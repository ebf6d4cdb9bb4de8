//! What is taken back, forgotten or moved of what was said in streams' rooms.

use super::streams::{ANNA, MIRA, SAM, all, edit, keep, line, saying, text, vote, voted};
use super::{NOON, ROOM};
use crate::clock::Millis;
use crate::ledger::{KeptLine, Ledger, StoredLine};

super::cases![
    a_redacted_line_goes_with_its_texts_and_votes,
    a_redacted_line_does_not_come_back,
    of_a_redacted_edit_the_text_before_it_counts,
    redacting_an_edit_that_does_not_count_changes_nothing_else,
    votes_for_what_a_redacted_edit_said_go,
    a_line_that_came_with_its_edit_goes_with_it,
    a_redacted_vote_goes_and_another_of_the_same_person_stays,
    a_redaction_holds_in_its_own_room,
    what_was_unsaid_before_it_came_is_not_kept,
    what_was_unsaid_is_known_until_lines_of_that_time_go,
    old_lines_are_forgotten_with_all_that_is_theirs,
    rooms_that_are_no_streams_are_forgotten,
    nothing_of_a_stream_is_pruned,
    lines_go_on_in_the_room_that_took_the_place,
    an_upgraded_room_means_its_successor,
    what_is_noted_of_a_room_goes_along,
    a_line_that_has_no_place_in_the_new_room_goes,
    of_a_room_it_is_known_whether_ages_were_read,
];

const NEXT: &str = "!next:example.org";
const OTHER: &str = "!other:example.org";

/// Takes something back in [`ROOM`], a hundred milliseconds after noon.
fn unsay(ledger: &mut dyn Ledger, event_id: &str) -> bool {
    ledger.unsay(ROOM, event_id, NOON + 100).unwrap()
}

/// All lines of a room.
fn of(ledger: &mut dyn Ledger, room_id: &str) -> Vec<StoredLine> {
    ledger.lines(room_id, None, Millis::MAX).unwrap()
}

/// The line in another room.
fn at(room_id: &str, line: KeptLine) -> KeptLine {
    KeptLine {
        room_id: room_id.to_owned(),
        ..line
    }
}

fn a_redacted_line_goes_with_its_texts_and_votes(ledger: &mut dyn Ledger) {
    let other = keep(ledger, line("$b", 1));
    keep(ledger, line("$a", 2));
    assert!(edit(ledger, &text("$edit", 10, Some("$a"))));
    assert!(vote(ledger, "$1", "$a", SAM));
    assert!(vote(ledger, "$2", "$b", SAM));
    assert!(unsay(ledger, "$a"));
    assert_eq!(all(ledger), [voted(&other, &[SAM])]);
    assert_eq!(ledger.line(ROOM, "$a").unwrap(), None);
    for gone in ["$a", "$edit", "$1"] {
        assert!(!unsay(ledger, gone), "{gone}");
    }
    // Nor do its votes go over to what is said next.
    let next = keep(ledger, line("$c", 3));
    assert_eq!(all(ledger), [voted(&other, &[SAM]), next]);
}

fn a_redacted_line_does_not_come_back(ledger: &mut dyn Ledger) {
    keep(ledger, line("$a", 1));
    assert!(unsay(ledger, "$a"));
    assert!(!ledger.keep_line(&line("$a", 200)).unwrap());
    assert!(!edit(ledger, &text("$edit", 10, Some("$a"))));
    assert!(!vote(ledger, "$1", "$a", SAM));
    assert_eq!(all(ledger), []);
}

fn of_a_redacted_edit_the_text_before_it_counts(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let edits = [10, 20, 30].map(|after| text(&format!("$edit_{after}"), after, Some("$a")));
    for each in &edits {
        assert!(edit(ledger, each));
    }
    assert!(vote(ledger, "$1", "$a", SAM));
    for (redacted, left) in [("$edit_30", &edits[1]), ("$edit_20", &edits[0])] {
        assert!(unsay(ledger, redacted));
        assert_eq!(all(ledger), [voted(&saying(&first, left), &[SAM])]);
        assert!(!unsay(ledger, redacted));
    }
    assert!(unsay(ledger, "$edit_10"));
    assert_eq!(all(ledger), [voted(&first, &[SAM])]);
    // An edit that was redacted does not come back.
    assert!(!edit(ledger, &edits[2]));
    assert_eq!(all(ledger), [voted(&first, &[SAM])]);
}

fn redacting_an_edit_that_does_not_count_changes_nothing_else(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let latest = text("$latest", 20, Some("latest"));
    assert!(edit(ledger, &text("$older", 10, Some("older"))));
    assert!(edit(ledger, &latest));
    assert!(vote(ledger, "$1", "$a", SAM));
    assert!(unsay(ledger, "$older"));
    assert_eq!(all(ledger), [voted(&saying(&first, &latest), &[SAM])]);
    assert!(unsay(ledger, "$latest"));
    assert_eq!(all(ledger), [first]);
}

fn votes_for_what_a_redacted_edit_said_go(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    assert!(edit(ledger, &text("$edit", 10, Some("something else"))));
    assert!(vote(ledger, "$1", "$a", SAM));
    assert!(unsay(ledger, "$edit"));
    assert_eq!(all(ledger), [first]);
}

fn a_line_that_came_with_its_edit_goes_with_it(ledger: &mut dyn Ledger) {
    let edited = KeptLine {
        text: text("$edit", 10, Some("edit")),
        ..line("$a", 1)
    };
    let kept = keep(ledger, edited);
    // It is an edit like any other.
    assert!(edit(ledger, &text("$older", 5, Some("edit"))));
    assert_eq!(all(ledger), std::slice::from_ref(&kept));
    assert!(unsay(ledger, "$edit"));
    let older = text("$older", 5, Some("edit"));
    assert_eq!(all(ledger), [saying(&kept, &older)]);
    assert!(unsay(ledger, "$older"));
    assert_eq!(all(ledger), []);
    assert!(!edit(ledger, &text("$again", 20, Some("edit"))));
}

fn a_redacted_vote_goes_and_another_of_the_same_person_stays(ledger: &mut dyn Ledger) {
    let kept = keep(ledger, line("$a", 1));
    for (event_id, voter) in [("$1", SAM), ("$2", SAM), ("$3", ANNA)] {
        assert!(vote(ledger, event_id, "$a", voter));
    }
    for (redacted, left) in [("$1", &[ANNA, SAM][..]), ("$2", &[ANNA]), ("$3", &[])] {
        assert!(unsay(ledger, redacted));
        assert_eq!(all(ledger), [voted(&kept, left)], "{redacted}");
        assert!(!unsay(ledger, redacted));
        assert!(!vote(ledger, redacted, "$a", SAM));
    }
}

fn a_redaction_holds_in_its_own_room(ledger: &mut dyn Ledger) {
    let kept = keep(ledger, line("$a", 1));
    let edited = text("$edit", 10, Some("$a"));
    assert!(edit(ledger, &edited));
    assert!(vote(ledger, "$1", "$a", SAM));
    for event_id in ["$a", "$edit", "$1", "$late"] {
        assert!(!ledger.unsay(OTHER, event_id, NOON).unwrap(), "{event_id}");
    }
    let expected = voted(&saying(&kept, &edited), &[SAM]);
    assert_eq!(all(ledger), std::slice::from_ref(&expected));
    let late = keep(ledger, line("$late", 2));
    assert_eq!(all(ledger), [expected, late]);
}

fn what_was_unsaid_before_it_came_is_not_kept(ledger: &mut dyn Ledger) {
    for event_id in ["$late", "$edit", "$vote"] {
        assert!(!unsay(ledger, event_id), "{event_id}");
    }
    assert!(!ledger.keep_line(&line("$late", 1)).unwrap());
    // Nor with an edit, nor where only the edit was unsaid.
    for (event_id, edit_id) in [("$late", "$other"), ("$b", "$edit")] {
        let edited = KeptLine {
            text: text(edit_id, 10, Some("edit")),
            ..line(event_id, 1)
        };
        assert!(!ledger.keep_line(&edited).unwrap(), "{event_id}");
        let again = text("$again", 20, Some("edit"));
        let edited = ledger.edit_line(ROOM, event_id, MIRA, &again).unwrap();
        assert!(!edited, "{event_id}");
    }
    let kept = keep(ledger, line("$a", 1));
    assert!(!edit(ledger, &text("$edit", 10, Some("edit"))));
    assert!(!vote(ledger, "$vote", "$a", SAM));
    assert_eq!(all(ledger), [kept]);
}

fn what_was_unsaid_is_known_until_lines_of_that_time_go(ledger: &mut dyn Ledger) {
    assert!(!unsay(ledger, "$late"));
    // It was unsaid a hundred milliseconds after noon: not before that moment.
    assert_eq!(ledger.forget_lines(ROOM, NOON + 100).unwrap(), 0);
    assert!(!ledger.keep_line(&line("$late", 200)).unwrap());
    assert_eq!(ledger.forget_lines(OTHER, NOON + 101).unwrap(), 0);
    assert!(!ledger.keep_line(&line("$late", 200)).unwrap());
    assert_eq!(ledger.forget_lines(ROOM, NOON + 101).unwrap(), 0);
    keep(ledger, line("$late", 200));
}

fn old_lines_are_forgotten_with_all_that_is_theirs(ledger: &mut dyn Ledger) {
    let [_, _, young] = [1, 2, 3].map(|n| keep(ledger, line(&format!("${n}"), n)));
    let elsewhere = keep(ledger, at(OTHER, line("$1", 1)));
    for n in [1, 3] {
        assert!(vote(ledger, &format!("$vote_{n}"), &format!("${n}"), SAM));
    }
    assert_eq!(ledger.forget_lines(ROOM, NOON + 1).unwrap(), 0);
    assert_eq!(ledger.forget_lines(ROOM, NOON + 3).unwrap(), 2);
    assert_eq!(all(ledger), [voted(&young, &[SAM])]);
    assert_eq!(of(ledger, OTHER), [elsewhere]);
    assert!(!unsay(ledger, "$vote_1"));
    assert!(unsay(ledger, "$vote_3"));
    // What comes once more is new: it was forgotten, not unsaid.
    keep(ledger, line("$1", 9));
}

fn rooms_that_are_no_streams_are_forgotten(ledger: &mut dyn Ledger) {
    let kept = keep(ledger, line("$a", 1));
    for n in [1, 2] {
        keep(ledger, at(OTHER, line(&format!("${n}"), n)));
    }
    for room_id in [ROOM, OTHER] {
        ledger.unsay(room_id, "$late", NOON).unwrap();
        ledger.note_ages_read(room_id).unwrap();
        ledger.silence(room_id, SAM, None).unwrap();
    }
    let streams = [ROOM.to_owned(), NEXT.to_owned()];
    assert_eq!(ledger.forget_rooms_but(&streams).unwrap(), 2);
    assert_eq!(all(ledger), [kept]);
    assert_eq!(of(ledger, OTHER), []);
    assert!(!ledger.keep_line(&line("$late", 1)).unwrap());
    keep(ledger, at(OTHER, line("$late", 1)));
    assert!(ledger.ages_read(ROOM).unwrap());
    assert!(!ledger.ages_read(OTHER).unwrap());
    for room_id in [ROOM, OTHER] {
        let silenced = ledger.silenced(room_id, NOON).unwrap();
        assert_eq!(silenced, [(SAM.to_owned(), None)], "{room_id}");
    }
    assert_eq!(ledger.forget_rooms_but(&[]).unwrap(), 2);
    assert_eq!(all(ledger), []);
}

fn nothing_of_a_stream_is_pruned(ledger: &mut dyn Ledger) {
    let kept = keep(ledger, line("$a", 1));
    assert!(vote(ledger, "$1", "$a", SAM));
    assert!(!unsay(ledger, "$late"));
    ledger.note_ages_read(ROOM).unwrap();
    assert_eq!(ledger.stamp(NOON + 7).unwrap(), NOON + 7);
    assert_eq!(ledger.prune(Millis::MAX).unwrap(), 0);
    assert_eq!(all(ledger), [voted(&kept, &[SAM])]);
    assert!(!ledger.keep_line(&line("$late", 1)).unwrap());
    assert!(ledger.ages_read(ROOM).unwrap());
    assert_eq!(ledger.stamp(NOON).unwrap(), NOON + 8);
}

fn lines_go_on_in_the_room_that_took_the_place(ledger: &mut dyn Ledger) {
    let old = keep(ledger, line("$a", 1));
    assert!(vote(ledger, "$1", "$a", SAM));
    let new = keep(ledger, at(NEXT, line("$b", 2)));
    let other = keep(ledger, at(OTHER, line("$c", 3)));
    ledger.move_lines(ROOM, NEXT).unwrap();
    let moved = StoredLine {
        line: at(NEXT, old.line),
        votes: vec![SAM.to_owned()],
    };
    assert_eq!(of(ledger, NEXT), [moved.clone(), new]);
    assert_eq!(ledger.line(NEXT, "$a").unwrap(), Some(moved));
    assert_eq!(all(ledger), []);
    assert_eq!(of(ledger, OTHER), std::slice::from_ref(&other));
    // To the last, when that room was upgraded as well.
    assert!(ledger.set_successor(NEXT, "!last:example.org").unwrap());
    ledger.move_lines(OTHER, NEXT).unwrap();
    let last = StoredLine {
        line: at("!last:example.org", other.line),
        votes: Vec::new(),
    };
    assert_eq!(of(ledger, "!last:example.org"), [last]);
}

fn an_upgraded_room_means_its_successor(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    assert!(ledger.set_successor(ROOM, NEXT).unwrap());
    ledger.move_lines(ROOM, NEXT).unwrap();
    let moved = StoredLine {
        line: at(NEXT, first.line),
        votes: Vec::new(),
    };
    // All of this was said in the old room, and is heard of late.
    let edited = text("$edit", 10, Some("edit"));
    assert!(edit(ledger, &edited));
    assert!(vote(ledger, "$1", "$a", SAM));
    let expected = voted(&saying(&moved, &edited), &[SAM]);
    assert_eq!(all(ledger), std::slice::from_ref(&expected));
    assert_eq!(of(ledger, NEXT), std::slice::from_ref(&expected));
    assert_eq!(ledger.line(ROOM, "$a").unwrap(), Some(expected));
    assert!(ledger.keep_line(&line("$b", 2)).unwrap());
    let late = ledger.line(NEXT, "$b").unwrap().unwrap();
    assert_eq!(late.line, at(NEXT, line("$b", 2)));
    ledger
        .set_prepared(ROOM, "$b", Some("anew"), Some("new key"))
        .unwrap();
    let anew = ledger.line(NEXT, "$b").unwrap().unwrap();
    assert_eq!(anew.line.text.key.as_deref(), Some("new key"));
    assert!(unsay(ledger, "$b"));
    assert!(!ledger.keep_line(&at(NEXT, line("$b", 2))).unwrap());
    ledger.note_ages_read(ROOM).unwrap();
    ledger.silence(ROOM, SAM, None).unwrap();
    for room_id in [ROOM, NEXT] {
        assert!(ledger.ages_read(room_id).unwrap(), "{room_id}");
        let silenced = ledger.silenced(room_id, NOON).unwrap();
        assert_eq!(silenced, [(SAM.to_owned(), None)], "{room_id}");
    }
    assert!(ledger.unsilence(ROOM, SAM).unwrap());
    assert_eq!(ledger.forget_rooms_but(&[ROOM.to_owned()]).unwrap(), 0);
    assert_eq!(ledger.forget_lines(ROOM, NOON + 2).unwrap(), 1);
    assert_eq!(of(ledger, NEXT), []);
}

fn what_is_noted_of_a_room_goes_along(ledger: &mut dyn Ledger) {
    assert!(!unsay(ledger, "$late"));
    ledger.note_ages_read(ROOM).unwrap();
    for (room_id, user_id, until) in [
        (ROOM, ANNA, Some(NOON + 10)),
        (NEXT, ANNA, Some(NOON + 20)),
        (ROOM, MIRA, Some(NOON + 20)),
        (NEXT, MIRA, Some(NOON + 10)),
        (ROOM, SAM, None),
        (NEXT, SAM, Some(NOON + 10)),
    ] {
        ledger.silence(room_id, user_id, until).unwrap();
    }
    ledger.move_lines(ROOM, NEXT).unwrap();
    assert!(!ledger.keep_line(&at(NEXT, line("$late", 1))).unwrap());
    let expected = [
        (ANNA.to_owned(), Some(NOON + 20)),
        (MIRA.to_owned(), Some(NOON + 20)),
        (SAM.to_owned(), None),
    ];
    assert_eq!(ledger.silenced(NEXT, NOON).unwrap(), expected);
    assert!(ledger.ages_read(NEXT).unwrap());
    // Nothing of it is left behind.
    keep(ledger, line("$late", 1));
    assert_eq!(ledger.silenced(ROOM, NOON).unwrap(), []);
    assert!(!ledger.ages_read(ROOM).unwrap());
}

fn a_line_that_has_no_place_in_the_new_room_goes(ledger: &mut dyn Ledger) {
    keep(ledger, line("$a", 1));
    let there = keep(ledger, at(NEXT, line("$a", 2)));
    ledger.move_lines(ROOM, NEXT).unwrap();
    assert_eq!(of(ledger, NEXT), std::slice::from_ref(&there));
    assert_eq!(all(ledger), []);
    // To where it is nothing has to go.
    ledger.move_lines(NEXT, NEXT).unwrap();
    assert_eq!(of(ledger, NEXT), [there]);
}

fn of_a_room_it_is_known_whether_ages_were_read(ledger: &mut dyn Ledger) {
    assert!(!ledger.ages_read(ROOM).unwrap());
    for _ in 0..2 {
        ledger.note_ages_read(ROOM).unwrap();
        assert!(ledger.ages_read(ROOM).unwrap());
    }
    assert!(!ledger.ages_read(OTHER).unwrap());
}
