//! What was said in streams' rooms: lines, their edits, the votes for them.

use super::{NOON, ROOM};
use crate::clock::Millis;
use crate::ledger::{KeptLine, KeptText, Ledger, StoredLine, Undecrypted};

super::cases![
    the_clock_never_goes_back_and_gives_no_moment_twice,
    what_is_older_is_forgotten_in_every_room,
    a_line_is_kept_as_it_came,
    the_first_who_keeps_a_line_wins,
    a_window_begins_with_since_and_ends_before_until,
    lines_come_in_the_order_in_which_they_came,
    the_latest_edit_counts_whenever_it_comes,
    an_edit_counts_before_the_message_whatever_its_time,
    an_edit_keeps_the_place_of_its_line,
    nobody_else_edits_a_line,
    an_edit_is_kept_once,
    an_edit_of_what_is_no_line_is_not_kept,
    an_edit_may_leave_a_line_without_a_word,
    each_person_votes_once,
    votes_come_with_their_lines,
    votes_after_the_window_are_not_in_it,
    only_lines_are_voted_for,
    a_vote_for_what_waits_for_its_key_counts_once_it_is_a_line,
    early_votes_can_be_taken_back,
    early_votes_are_not_for_an_edit,
    early_votes_go_with_their_room_and_their_time,
    early_votes_follow_their_room,
    votes_go_when_an_edit_says_something_else,
    votes_stay_when_an_edit_says_the_same,
    votes_stay_when_an_older_edit_comes_late,
    what_a_digest_needs_to_know_is_noted_anew,
];

/// Who says most.
pub(super) const MIRA: &str = "@mira:example.org";
/// Who says the rest.
pub(super) const SAM: &str = "@sam:example.org";
/// Who else votes.
pub(super) const ANNA: &str = "@anna:example.org";

/// What a message or an edit says, so long after noon.
pub(in crate::ledger) fn text(event_id: &str, after: Millis, key: Option<&str>) -> KeptText {
    KeptText {
        event_id: event_id.to_owned(),
        sent_at: NOON + after,
        body: format!("the words of {event_id}"),
        prepared: key.map(|key| format!("{{\"what\":\"{key}\"}}")),
        key: key.map(str::to_owned),
    }
}

/// A line of Mira's in [`ROOM`] that came so long after noon; its key is its id.
pub(in crate::ledger) fn line(event_id: &str, after: Millis) -> KeptLine {
    KeptLine {
        room_id: ROOM.to_owned(),
        event_id: event_id.to_owned(),
        sender: MIRA.to_owned(),
        stamp: NOON + after,
        // Its sender's clock is wrong.
        sent_at: NOON - 5_000,
        emote: false,
        in_reply_to: None,
        replied_to: None,
        mentions: Vec::new(),
        text: text(event_id, -5_000, Some(event_id)),
    }
}

/// Keeps a line and gives back how it stands.
pub(super) fn keep(ledger: &mut dyn Ledger, line: KeptLine) -> StoredLine {
    assert!(ledger.keep_line(&line).unwrap());
    let votes = Vec::new();
    StoredLine { line, votes }
}

/// The line with other words and without votes.
pub(super) fn saying(stored: &StoredLine, text: &KeptText) -> StoredLine {
    let mut stored = stored.clone();
    stored.line.text = text.clone();
    stored.votes.clear();
    stored
}

/// The line with these votes.
pub(super) fn voted(stored: &StoredLine, votes: &[&str]) -> StoredLine {
    let votes = votes.iter().map(|&voter| voter.to_owned()).collect();
    let line = stored.line.clone();
    StoredLine { line, votes }
}

/// All lines of [`ROOM`].
pub(super) fn all(ledger: &mut dyn Ledger) -> Vec<StoredLine> {
    ledger.lines(ROOM, None, Millis::MAX).unwrap()
}

/// Keeps an edit of Mira's line `$a`.
pub(super) fn edit(ledger: &mut dyn Ledger, text: &KeptText) -> bool {
    ledger.edit_line(ROOM, "$a", MIRA, text).unwrap()
}

/// Keeps a vote for a line.
pub(super) fn vote(ledger: &mut dyn Ledger, event_id: &str, line: &str, voter: &str) -> bool {
    ledger.vote(ROOM, event_id, line, voter, NOON + 50).unwrap()
}

fn the_clock_never_goes_back_and_gives_no_moment_twice(ledger: &mut dyn Ledger) {
    for (now, stamp) in [(7, 7), (7, 8), (3, 9), (-9, 10), (30, 30), (7, 31)] {
        assert_eq!(ledger.stamp(NOON + now).unwrap(), NOON + stamp, "{now}");
    }
}

fn what_is_older_is_forgotten_in_every_room(ledger: &mut dyn Ledger) {
    let other = |event_id, after| KeptLine {
        room_id: "!other:example.org".to_owned(),
        ..line(event_id, after)
    };
    assert!(ledger.keep_line(&other("$1", 1)).unwrap());
    assert!(ledger.keep_line(&line("$2", 2)).unwrap());
    assert!(ledger.keep_line(&line("$3", 3)).unwrap());
    assert!(vote(ledger, "$vote", "$2", SAM));
    ledger.unsay(ROOM, "$late", NOON + 2).unwrap();
    assert_eq!(ledger.forget_older(NOON + 1, NOON + 5).unwrap(), 0);
    assert!(!ledger.keep_line(&line("$late", 9)).unwrap());
    assert_eq!(ledger.forget_older(NOON + 3, NOON + 5).unwrap(), 2);
    let left: Vec<String> = all(ledger).into_iter().map(|it| it.line.event_id).collect();
    assert_eq!(left, ["$3"]);
    assert!(ledger.keep_line(&other("$1", 1)).unwrap());
    // What came while the clock was ahead is as old as its sender says: this is older than noon.
    assert!(ledger.keep_line(&line("$late", 9)).unwrap());
    let young = KeptLine {
        sent_at: NOON + 4,
        ..line("$young", 9)
    };
    assert!(ledger.keep_line(&young).unwrap());
    assert_eq!(ledger.forget_older(NOON, NOON + 8).unwrap(), 1);
    assert_eq!(ledger.forget_older(NOON, NOON + 9).unwrap(), 0);
    assert!(ledger.line(ROOM, "$late").unwrap().is_none());
}

fn a_line_is_kept_as_it_came(ledger: &mut dyn Ledger) {
    let bare = line("$bare", 1);
    let full = KeptLine {
        emote: true,
        in_reply_to: Some("$before".to_owned()),
        replied_to: Some(SAM.to_owned()),
        mentions: vec![SAM.to_owned(), ANNA.to_owned()],
        ..line("$full", 2)
    };
    let mute = KeptLine {
        text: text("$mute", -5_000, None),
        ..line("$mute", 3)
    };
    let kept = [bare, full, mute].map(|line| keep(ledger, line));
    assert_eq!(all(ledger), kept);
    for stored in &kept {
        let found = ledger.line(ROOM, &stored.line.event_id).unwrap();
        assert_eq!(found.as_ref(), Some(stored));
    }
    assert_eq!(ledger.line(ROOM, "$unknown").unwrap(), None);
    assert_eq!(ledger.line("!other:example.org", "$bare").unwrap(), None);
}

fn the_first_who_keeps_a_line_wins(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let again = KeptLine {
        sender: SAM.to_owned(),
        text: text("$a", 9, Some("other")),
        ..line("$a", 2)
    };
    assert!(!ledger.keep_line(&again).unwrap());
    assert_eq!(all(ledger), [first]);
    // In another room the same id is another line.
    let elsewhere = KeptLine {
        room_id: "!other:example.org".to_owned(),
        ..again
    };
    let elsewhere = keep(ledger, elsewhere);
    let found = ledger.lines("!other:example.org", None, Millis::MAX);
    assert_eq!(found.unwrap(), [elsewhere]);
    assert_eq!(all(ledger).len(), 1);
}

fn a_window_begins_with_since_and_ends_before_until(ledger: &mut dyn Ledger) {
    let kept = [1, 2, 3, 4].map(|n| keep(ledger, line(&format!("${n}"), n)));
    let mut window = |since: Option<Millis>, until: Millis| {
        let since = since.map(|since| NOON + since);
        ledger.lines(ROOM, since, NOON + until).unwrap()
    };
    assert_eq!(window(Some(2), 4), kept[1..3]);
    assert_eq!(window(None, 4), kept[..3]);
    assert_eq!(window(Some(4), 5), kept[3..]);
    assert_eq!(window(Some(2), 2), []);
    assert_eq!(window(Some(5), 9), []);
}

fn lines_come_in_the_order_in_which_they_came(ledger: &mut dyn Ledger) {
    // Two at one moment, of which the later has the smaller id; and one that was stored late.
    let second = keep(ledger, line("$z", 2));
    let third = keep(ledger, line("$b", 2));
    let first = keep(ledger, line("$c", 1));
    assert_eq!(all(ledger), [first, second, third]);
}

fn the_latest_edit_counts_whenever_it_comes(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let other = keep(ledger, line("$other", 2));
    let [early, small, great] = [
        text("$z_early", 10, Some("early")),
        text("$edit_a", 20, Some("small")),
        text("$edit_b", 20, Some("great")),
    ];
    for (edit_, counts) in [(&small, &small), (&great, &great), (&early, &great)] {
        assert!(edit(ledger, edit_));
        assert_eq!(all(ledger), [saying(&first, counts), other.clone()]);
    }
    let found = ledger.line(ROOM, "$a").unwrap();
    assert_eq!(found, Some(saying(&first, &great)));
}

fn an_edit_counts_before_the_message_whatever_its_time(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let before = text("$0_edit", -1_000_000, Some("edit"));
    assert!(edit(ledger, &before));
    assert_eq!(all(ledger), [saying(&first, &before)]);
}

fn an_edit_keeps_the_place_of_its_line(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let second = keep(ledger, line("$b", 2));
    let edited = text("$edit", 5_000, Some("edit"));
    assert!(edit(ledger, &edited));
    assert_eq!(all(ledger), [saying(&first, &edited), second]);
    let late = ledger.lines(ROOM, Some(NOON + 3), Millis::MAX).unwrap();
    assert_eq!(late, []);
}

fn nobody_else_edits_a_line(ledger: &mut dyn Ledger) {
    let kept = keep(ledger, line("$a", 1));
    let forged = text("$edit", 10, Some("forged"));
    let edited = ledger.edit_line(ROOM, "$a", SAM, &forged).unwrap();
    assert!(!edited);
    let elsewhere = ledger.edit_line("!other:example.org", "$a", MIRA, &forged);
    assert!(!elsewhere.unwrap());
    assert_eq!(all(ledger), [kept]);
    // Nothing of it was stored: the edit may still be theirs.
    assert!(edit(ledger, &forged));
}

fn an_edit_is_kept_once(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let edited = text("$edit", 10, Some("edit"));
    assert!(edit(ledger, &edited));
    assert!(!edit(ledger, &text("$edit", 20, Some("other"))));
    // Nor is the message its own edit.
    assert!(!edit(ledger, &text("$a", 30, Some("other"))));
    assert_eq!(all(ledger), [saying(&first, &edited)]);
}

fn an_edit_of_what_is_no_line_is_not_kept(ledger: &mut dyn Ledger) {
    let early = text("$early", 10, Some("early"));
    assert!(!edit(ledger, &early));
    let first = keep(ledger, line("$a", 1));
    assert_eq!(all(ledger), std::slice::from_ref(&first));
    // An edit is no line.
    let edited = text("$edit", 10, Some("edit"));
    assert!(edit(ledger, &edited));
    let again = text("$again", 20, Some("again"));
    assert!(!ledger.edit_line(ROOM, "$edit", MIRA, &again).unwrap());
    assert_eq!(all(ledger), [saying(&first, &edited)]);
}

fn an_edit_may_leave_a_line_without_a_word(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    assert!(vote(ledger, "$v", "$a", SAM));
    let mute = text("$mute", 10, None);
    assert!(edit(ledger, &mute));
    assert_eq!(all(ledger), [saying(&first, &mute)]);
    let again = text("$again", 20, Some("again"));
    assert!(edit(ledger, &again));
    assert_eq!(all(ledger), [saying(&first, &again)]);
}

fn each_person_votes_once(ledger: &mut dyn Ledger) {
    let kept = keep(ledger, line("$a", 1));
    for (event_id, voter) in [("$1", SAM), ("$2", MIRA), ("$3", SAM), ("$4", ANNA)] {
        assert!(vote(ledger, event_id, "$a", voter));
    }
    assert!(!vote(ledger, "$4", "$a", ANNA));
    let expected = voted(&kept, &[ANNA, MIRA, SAM]);
    assert_eq!(all(ledger), std::slice::from_ref(&expected));
    assert_eq!(ledger.line(ROOM, "$a").unwrap(), Some(expected));
}

fn votes_come_with_their_lines(ledger: &mut dyn Ledger) {
    // Stored in another order than that in which they came.
    let later = keep(ledger, line("$later", 9));
    let sooner = keep(ledger, line("$sooner", 1));
    let none = keep(ledger, line("$none", 5));
    assert!(vote(ledger, "$1", "$later", SAM));
    assert!(vote(ledger, "$2", "$sooner", SAM));
    assert!(vote(ledger, "$3", "$sooner", ANNA));
    let expected = [voted(&sooner, &[ANNA, SAM]), none, voted(&later, &[SAM])];
    assert_eq!(all(ledger), expected);
}

fn votes_after_the_window_are_not_in_it(ledger: &mut dyn Ledger) {
    let kept = keep(ledger, line("$a", 1));
    for (event_id, voter, after) in [("$1", SAM, 20), ("$2", ANNA, 21)] {
        let stamp = NOON + after;
        assert!(ledger.vote(ROOM, event_id, "$a", voter, stamp).unwrap());
    }
    for (until, votes) in [(19, &[][..]), (20, &[SAM]), (21, &[ANNA, SAM])] {
        let lines = ledger.lines(ROOM, Some(NOON), NOON + until).unwrap();
        assert_eq!(lines, [voted(&kept, votes)], "{until}");
    }
    let found = ledger.line(ROOM, "$a").unwrap();
    assert_eq!(found, Some(voted(&kept, &[ANNA, SAM])));
}

fn only_lines_are_voted_for(ledger: &mut dyn Ledger) {
    assert!(!vote(ledger, "$v", "$a", SAM));
    let kept = keep(ledger, line("$a", 1));
    let edited = text("$edit", 10, Some("$a"));
    assert!(edit(ledger, &edited));
    assert!(!vote(ledger, "$v", "$edit", SAM));
    let elsewhere = ledger.vote("!other:example.org", "$v", "$a", SAM, NOON);
    assert!(!elsewhere.unwrap());
    assert_eq!(all(ledger), [saying(&kept, &edited)]);
}

/// A message waits for its key.
fn locked(ledger: &mut dyn Ledger, event_id: &str) {
    let locked = Undecrypted {
        room_id: ROOM.to_owned(),
        event_id: event_id.to_owned(),
        sender: MIRA.to_owned(),
        raw: "{}".to_owned(),
        heard_at: NOON,
        told: false,
    };
    ledger.keep_undecrypted(&locked).unwrap();
}

fn a_vote_for_what_waits_for_its_key_counts_once_it_is_a_line(ledger: &mut dyn Ledger) {
    locked(ledger, "$a");
    assert!(vote(ledger, "$1", "$a", SAM));
    assert!(!vote(ledger, "$1", "$a", SAM));
    assert!(!vote(ledger, "$2", "$b", SAM));
    assert_eq!(all(ledger), []);
    ledger.drop_undecrypted(ROOM, "$a").unwrap();
    assert!(ledger.keep_line(&line("$a", 1)).unwrap());
    // Once for all.
    assert!(vote(ledger, "$3", "$a", ANNA));
    let kept = ledger.line(ROOM, "$a").unwrap().unwrap();
    assert_eq!(
        (kept.line, &*kept.votes),
        (line("$a", 1), &[ANNA, SAM].map(str::to_owned)[..])
    );
}

fn early_votes_can_be_taken_back(ledger: &mut dyn Ledger) {
    locked(ledger, "$a");
    for (event_id, voter) in [("$1", SAM), ("$2", ANNA), ("$3", MIRA)] {
        assert!(vote(ledger, event_id, "$a", voter));
    }
    assert!(ledger.unsay(ROOM, "$1", NOON).unwrap());
    assert!(!vote(ledger, "$1", "$a", SAM));
    assert!(ledger.opt_out(ANNA, NOON).unwrap());
    assert!(!vote(ledger, "$4", "$a", ANNA));
    let kept = keep(ledger, line("$a", 1));
    assert_eq!(all(ledger), [voted(&kept, &[MIRA])]);
}

fn early_votes_are_not_for_an_edit(ledger: &mut dyn Ledger) {
    locked(ledger, "$a");
    assert!(vote(ledger, "$1", "$a", SAM));
    let mut edited = line("$a", 1);
    edited.text = text("$edit", 10, Some("other"));
    assert!(ledger.keep_line(&edited).unwrap());
    let found = ledger.line(ROOM, "$a").unwrap().unwrap();
    assert_eq!(found.votes, [""; 0]);
}

fn early_votes_go_with_their_room_and_their_time(ledger: &mut dyn Ledger) {
    let ways: [fn(&mut dyn Ledger) -> u64; 3] = [
        |ledger| ledger.forget_lines(ROOM, NOON + 200).unwrap(),
        |ledger| ledger.forget_older(NOON + 200, NOON + 300).unwrap(),
        |ledger| ledger.forget_rooms_but(&[]).unwrap(),
    ];
    for (index, forget) in ways.into_iter().enumerate() {
        let event_id = format!("$late_{index}");
        locked(ledger, &event_id);
        assert!(vote(ledger, &format!("$vote_{index}"), &event_id, SAM));
        // The line of the way before, if there was one.
        assert_eq!(forget(ledger), u64::from(index > 0));
        assert!(ledger.keep_line(&line(&event_id, 1)).unwrap());
        let found = ledger.line(ROOM, &event_id).unwrap().unwrap();
        assert_eq!(found.votes, [""; 0], "{index}");
    }
}

fn early_votes_follow_their_room(ledger: &mut dyn Ledger) {
    let next = "!next:example.org";
    locked(ledger, "$a");
    assert!(vote(ledger, "$1", "$a", SAM));
    assert!(ledger.set_successor(ROOM, next).unwrap());
    ledger.move_lines(ROOM, next).unwrap();
    // It was heard where it was said.
    assert!(vote(ledger, "$2", "$a", ANNA));
    assert!(ledger.keep_line(&line("$a", 1)).unwrap());
    let found = ledger.line(next, "$a").unwrap().unwrap();
    assert_eq!(found.votes, [ANNA, SAM]);
}

fn votes_go_when_an_edit_says_something_else(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let other = keep(ledger, line("$other", 2));
    assert!(vote(ledger, "$1", "$a", SAM));
    assert!(vote(ledger, "$2", "$other", SAM));
    let edited = text("$edit", 10, Some("something else"));
    assert!(edit(ledger, &edited));
    let other = voted(&other, &[SAM]);
    assert_eq!(all(ledger), [saying(&first, &edited), other.clone()]);
    // Those that are given to what it says now are for that.
    assert!(vote(ledger, "$3", "$a", ANNA));
    let expected = voted(&saying(&first, &edited), &[ANNA]);
    assert_eq!(all(ledger), [expected, other]);
}

fn votes_stay_when_an_edit_says_the_same(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    assert!(vote(ledger, "$1", "$a", SAM));
    let same = text("$edit", 10, Some("$a"));
    assert!(edit(ledger, &same));
    assert_eq!(all(ledger), [voted(&saying(&first, &same), &[SAM])]);
}

fn votes_stay_when_an_older_edit_comes_late(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let latest = text("$latest", 20, Some("latest"));
    assert!(edit(ledger, &latest));
    assert!(vote(ledger, "$1", "$a", SAM));
    assert!(edit(ledger, &text("$older", 10, Some("older"))));
    assert_eq!(all(ledger), [voted(&saying(&first, &latest), &[SAM])]);
}

fn what_a_digest_needs_to_know_is_noted_anew(ledger: &mut dyn Ledger) {
    let first = keep(ledger, line("$a", 1));
    let other = KeptLine {
        room_id: "!other:example.org".to_owned(),
        ..line("$a", 1)
    };
    let other = keep(ledger, other);
    assert!(vote(ledger, "$1", "$a", SAM));
    ledger
        .set_prepared(ROOM, "$a", Some("anew"), Some("new key"))
        .unwrap();
    let mut anew = voted(&first, &[SAM]);
    anew.line.text.prepared = Some("anew".to_owned());
    anew.line.text.key = Some("new key".to_owned());
    assert_eq!(all(ledger), [anew]);
    let elsewhere = ledger.lines("!other:example.org", None, Millis::MAX);
    assert_eq!(elsewhere.unwrap(), [other]);
    // From then on the new key is what an edit is compared with.
    let same = text("$edit", 10, Some("new key"));
    assert!(edit(ledger, &same));
    assert_eq!(all(ledger), [voted(&saying(&first, &same), &[SAM])]);
    ledger.set_prepared(ROOM, "$edit", None, None).unwrap();
    let mut mute = voted(&saying(&first, &same), &[SAM]);
    mute.line.text.prepared = None;
    mute.line.text.key = None;
    assert_eq!(all(ledger), [mute]);
}
