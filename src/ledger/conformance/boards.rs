//! Answers on their way to boards, and the rooms that were made for boards.

use super::{AGENT, NOON, ROOM, answer, changed, closed, draft, insert, post, question};
use crate::clock::Millis;
use crate::elicitation::{Elicitation, Key, State};
use crate::ledger::{LONGEST_WAIT, Ledger, SendKind, Submission};

super::cases![
    an_answer_is_kept_as_it_was_given,
    of_two_answers_to_a_question_one_is_on_its_way,
    only_to_an_open_question_an_answer_is_kept,
    an_answer_is_found_by_its_message_while_it_is_on_its_way,
    answers_are_due_oldest_first_each_for_its_board,
    what_is_in_hand_is_not_due,
    an_answer_that_was_put_off_is_due_at_its_time,
    a_clock_that_was_set_back_holds_no_answer_up,
    that_it_takes_its_time_is_shown_once,
    an_answer_ends_once_and_another_may_come,
    what_has_ended_does_not_change_any_more,
    what_is_pending_of_one_origin_is_in_the_order_it_was_asked,
    the_room_of_a_board_is_the_one_that_was_noted_last,
    a_question_nobody_saw_is_forgotten_with_all_that_was_about_it,
    only_what_could_not_be_put_before_anybody_is_buried,
    answers_go_with_their_question,
    a_redacted_answer_is_nowhere_on_its_way,
];

pub(super) const BOARD: &str = "board:brd_1";

/// An open question of a board.
fn open(ledger: &mut dyn Ledger, id: &str) -> Elicitation {
    post(ledger, question(BOARD, id))
}

/// Keeps an answer by the message `$ID` and gives it back.
fn submit(ledger: &mut dyn Ledger, about: &Elicitation, at: Millis) -> Submission {
    let given = answer(&format!("${}", about.key().id), None);
    assert!(ledger.submit(about.key(), &given, at).unwrap());
    ledger.submission(about.key()).unwrap().unwrap()
}

/// What is due so long after noon, and what is next.
fn due(ledger: &mut dyn Ledger, origin: &str, after: Millis) -> (Vec<String>, Option<Millis>) {
    let (due, next) = ledger.submissions_due(origin, NOON + after, 10).unwrap();
    let ids = due.into_iter().map(|submission| submission.key.id);
    (ids.collect(), next.map(|next| next - NOON))
}

fn ids(questions: &[Elicitation]) -> Vec<&str> {
    questions.iter().map(|it| it.key().id.as_str()).collect()
}

fn an_answer_is_kept_as_it_was_given(ledger: &mut dyn Ledger) {
    let open = open(ledger, "a");
    assert_eq!(ledger.submission(open.key()).unwrap(), None);
    assert_eq!(ledger.submissions_pending().unwrap(), 0);
    let given = answer("$said", Some("pea, please"));
    assert!(ledger.submit(open.key(), &given, NOON + 7).unwrap());
    let kept = ledger.submission(open.key()).unwrap().unwrap();
    let expected = Submission {
        seq: kept.seq,
        key: open.key().clone(),
        room_id: ROOM.to_owned(),
        answer: given,
        attempts: 0,
        tried: false,
        in_hand: false,
        waited: false,
        created_at: NOON + 7,
    };
    assert_eq!(kept, expected);
    assert_eq!(ledger.submissions_pending().unwrap(), 1);
    // The board decides: nothing is decided here.
    assert_eq!(ledger.find(open.key()).unwrap(), Some(open));
}

fn of_two_answers_to_a_question_one_is_on_its_way(ledger: &mut dyn Ledger) {
    let (a, b) = (open(ledger, "a"), open(ledger, "b"));
    let first = submit(ledger, &a, NOON);
    let second = answer("$later", None);
    assert!(!ledger.submit(a.key(), &second, NOON + 1).unwrap());
    assert_eq!(ledger.submission(a.key()).unwrap(), Some(first));
    // To another question it is no second one.
    submit(ledger, &b, NOON);
    assert_eq!(ledger.submissions_pending().unwrap(), 2);
}

fn only_to_an_open_question_an_answer_is_kept(ledger: &mut dyn Ledger) {
    let queued = insert(ledger, question(BOARD, "queued"));
    let over = open(ledger, "over");
    let ended = closed(&over, State::Cancelled, None);
    assert!(ledger.settle(&ended).unwrap());
    let unknown = Key::new(BOARD, "unknown");
    for key in [queued.key(), over.key(), &unknown] {
        let given = answer("$said", None);
        assert!(!ledger.submit(key, &given, NOON).unwrap(), "{key:?}");
        assert_eq!(ledger.submission(key).unwrap(), None);
    }
    assert_eq!(ledger.submissions_pending().unwrap(), 0);
}

fn an_answer_is_found_by_its_message_while_it_is_on_its_way(ledger: &mut dyn Ledger) {
    let open = open(ledger, "a");
    let kept = submit(ledger, &open, NOON);
    let by = |ledger: &mut dyn Ledger, room: &str, event: &str| {
        ledger.submission_by_event(room, event).unwrap()
    };
    assert_eq!(by(ledger, ROOM, "$a"), Some(kept.clone()));
    assert_eq!(by(ledger, ROOM, "$card_a"), None);
    assert_eq!(by(ledger, "!other:example.org", "$a"), None);
    // It stands where it was said, wherever the question goes on.
    let moved = changed(open.clone(), |it| {
        it.question.room_id = "!next:example.org".to_owned();
        it.tag = "q7".to_owned();
    });
    assert!(ledger.relocate(&moved).unwrap());
    assert_eq!(by(ledger, ROOM, "$a"), Some(kept.clone()));
    assert_eq!(by(ledger, "!next:example.org", "$a"), None);

    assert!(ledger.end_submission(kept.seq, "invalid").unwrap());
    assert_eq!(by(ledger, ROOM, "$a"), None);
}

fn answers_are_due_oldest_first_each_for_its_board(ledger: &mut dyn Ledger) {
    for id in ["b", "a", "c"] {
        let open = open(ledger, id);
        submit(ledger, &open, NOON);
    }
    let elsewhere = post(ledger, question("board:brd_2", "d"));
    submit(ledger, &elsewhere, NOON);
    let all = (["b", "a", "c"].map(str::to_owned).to_vec(), None);
    assert_eq!(due(ledger, BOARD, 0), all);
    assert_eq!(due(ledger, "board:brd_2", 0).0, ["d"]);
    assert_eq!(due(ledger, "board:brd", 0), (Vec::new(), None));
    let (two, _) = ledger.submissions_due(BOARD, NOON, 2).unwrap();
    assert_eq!(two.len(), 2);
    assert_eq!((&*two[0].key.id, &*two[1].key.id), ("b", "a"));
}

fn what_is_in_hand_is_not_due(ledger: &mut dyn Ledger) {
    let open = open(ledger, "a");
    let kept = submit(ledger, &open, NOON);
    assert!(ledger.mark_in_hand(kept.seq).unwrap());
    let in_hand = Submission {
        in_hand: true,
        tried: true,
        ..kept.clone()
    };
    assert_eq!(ledger.submission(open.key()).unwrap(), Some(in_hand));
    assert_eq!(due(ledger, BOARD, 1_000_000), (Vec::new(), None));
    assert_eq!(ledger.submissions_pending().unwrap(), 1);
    assert!(!ledger.mark_in_hand(kept.seq + 1).unwrap());
}

fn an_answer_that_was_put_off_is_due_at_its_time(ledger: &mut dyn Ledger) {
    let (a, b) = (open(ledger, "a"), open(ledger, "b"));
    let kept = submit(ledger, &a, NOON);
    let other = submit(ledger, &b, NOON);
    assert!(ledger.mark_in_hand(kept.seq).unwrap());
    for (row, until) in [(&kept, 500), (&other, 700)] {
        ledger
            .postpone_submission(row.seq, NOON + until, "HTTP 503")
            .unwrap();
    }
    let put_off = Submission {
        attempts: 1,
        // The board may have got it: that is not forgotten.
        tried: true,
        in_hand: false,
        ..kept
    };
    assert_eq!(ledger.submission(a.key()).unwrap(), Some(put_off));
    assert_eq!(due(ledger, BOARD, 499), (Vec::new(), Some(500)));
    assert_eq!(due(ledger, BOARD, 500), (vec!["a".to_owned()], Some(700)));
    assert_eq!(due(ledger, BOARD, 700).0, ["a", "b"]);
}

fn a_clock_that_was_set_back_holds_no_answer_up(ledger: &mut dyn Ledger) {
    let open = open(ledger, "a");
    let kept = submit(ledger, &open, NOON);
    let until = NOON + LONGEST_WAIT;
    ledger.postpone_submission(kept.seq, until, "down").unwrap();
    assert_eq!(due(ledger, BOARD, 0), (Vec::new(), Some(LONGEST_WAIT)));
    assert_eq!(due(ledger, BOARD, -1), (vec!["a".to_owned()], None));
}

fn that_it_takes_its_time_is_shown_once(ledger: &mut dyn Ledger) {
    let open = open(ledger, "a");
    let kept = submit(ledger, &open, NOON);
    assert!(ledger.mark_waited(kept.seq).unwrap());
    assert!(!ledger.mark_waited(kept.seq).unwrap());
    let shown = Submission {
        waited: true,
        ..kept.clone()
    };
    assert_eq!(ledger.submission(open.key()).unwrap(), Some(shown));
    assert!(ledger.end_submission(kept.seq, "invalid").unwrap());
    let next = submit(ledger, &open, NOON);
    assert!(!next.waited);
    assert!(ledger.end_submission(next.seq, "redacted").unwrap());
    assert!(!ledger.mark_waited(next.seq).unwrap());
}

fn an_answer_ends_once_and_another_may_come(ledger: &mut dyn Ledger) {
    let open = open(ledger, "a");
    let first = submit(ledger, &open, NOON);
    assert!(ledger.mark_in_hand(first.seq).unwrap());
    assert!(ledger.end_submission(first.seq, "invalid").unwrap());
    assert!(!ledger.end_submission(first.seq, "taken").unwrap());
    assert_eq!(ledger.submission(open.key()).unwrap(), None);
    assert_eq!(ledger.submissions_pending().unwrap(), 0);
    assert_eq!(due(ledger, BOARD, 0), (Vec::new(), None));

    let second = submit(ledger, &open, NOON + 3);
    assert!(second.seq > first.seq, "no number is used twice");
    assert!(!second.tried && !second.in_hand);
    assert!(!ledger.end_submission(first.seq, "taken").unwrap());
    assert_eq!(ledger.submission(open.key()).unwrap(), Some(second));
}

fn what_has_ended_does_not_change_any_more(ledger: &mut dyn Ledger) {
    let open = open(ledger, "a");
    let kept = submit(ledger, &open, NOON);
    assert!(ledger.end_submission(kept.seq, "redacted").unwrap());
    assert!(!ledger.mark_in_hand(kept.seq).unwrap());
    ledger
        .postpone_submission(kept.seq, NOON + 1, "too late")
        .unwrap();
    assert_eq!(due(ledger, BOARD, 1_000), (Vec::new(), None));
    assert_eq!(ledger.submission(open.key()).unwrap(), None);
}

fn what_is_pending_of_one_origin_is_in_the_order_it_was_asked(ledger: &mut dyn Ledger) {
    open(ledger, "b");
    insert(ledger, question(BOARD, "a"));
    let over = open(ledger, "over");
    assert!(
        ledger
            .settle(&closed(&over, State::Cancelled, None))
            .unwrap()
    );
    insert(ledger, question("board:brd_10", "c"));
    insert(ledger, question(AGENT, "d"));
    assert_eq!(ids(&ledger.pending_of(BOARD).unwrap()), ["b", "a"]);
    assert_eq!(ids(&ledger.pending_of("board:brd_10").unwrap()), ["c"]);
    assert_eq!(ledger.pending_of("board:").unwrap(), []);
}

fn the_room_of_a_board_is_the_one_that_was_noted_last(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.board_room("brd_1").unwrap(), None);
    let none: Option<&str> = None;
    for (room, name) in [
        ("!a", none),
        ("!a", Some("Releases")),
        ("!b", Some("Release")),
        ("!c", none),
    ] {
        ledger.set_board_room("brd_1", room, name).unwrap();
        ledger
            .set_board_room("brd_2", "!other", Some("Other"))
            .unwrap();
        let noted = Some((room.to_owned(), name.map(str::to_owned)));
        assert_eq!(ledger.board_room("brd_1").unwrap(), noted);
    }
    let other = Some(("!other".to_owned(), Some("Other".to_owned())));
    assert_eq!(ledger.board_room("brd_2").unwrap(), other);
}

fn a_question_nobody_saw_is_forgotten_with_all_that_was_about_it(ledger: &mut dyn Ledger) {
    let gone = open(ledger, "gone");
    let mira = "@mira:example.org";
    ledger.note_about(gone.key(), ROOM, "$card_gone").unwrap();
    submit(ledger, &gone, NOON);
    assert!(ledger.first_time(gone.key(), mira, "closed").unwrap());
    let lost = closed(&gone, State::Undeliverable, None);
    assert!(ledger.settle(&lost).unwrap());

    assert!(ledger.bury(gone.key()).unwrap());
    assert!(!ledger.bury(gone.key()).unwrap());
    assert_eq!(ledger.find(gone.key()).unwrap(), None);
    assert_eq!(ledger.about(ROOM, "$card_gone").unwrap(), []);
    assert_eq!(ledger.submissions_pending().unwrap(), 0);
    // It may be asked anew, and is as new then.
    let anew = open(ledger, "gone");
    assert_eq!(ledger.submission(anew.key()).unwrap(), None);
    assert!(ledger.first_time(anew.key(), mira, "closed").unwrap());
}

fn only_what_could_not_be_put_before_anybody_is_buried(ledger: &mut dyn Ledger) {
    let queued = insert(ledger, question(BOARD, "queued"));
    let mut kept = vec![queued, open(ledger, "open")];
    for end in State::ALL {
        if !end.is_closed() || end == State::Undeliverable {
            continue;
        }
        let over = closed(&open(ledger, end.word()), end, None);
        assert!(ledger.settle(&over).unwrap());
        kept.push(over);
    }
    // The same id of another origin is another question.
    let elsewhere = post(ledger, question("board:brd_2", "gone"));
    let lost = closed(&elsewhere, State::Undeliverable, None);
    assert!(ledger.settle(&lost).unwrap());
    assert!(!ledger.bury(&Key::new(BOARD, "gone")).unwrap());
    kept.push(lost);
    for it in &kept[..kept.len() - 1] {
        ledger.note_about(it.key(), ROOM, "$about").unwrap();
        assert!(!ledger.bury(it.key()).unwrap(), "{:?}", it.state);
        assert_eq!(ledger.events_about(it.key()).unwrap(), ["$about"]);
    }
    for it in kept {
        assert_eq!(ledger.find(it.key()).unwrap(), Some(it));
    }
}

fn answers_go_with_their_question(ledger: &mut dyn Ledger) {
    let (old, still) = (open(ledger, "old"), open(ledger, "still"));
    let ended = submit(ledger, &old, NOON);
    assert!(ledger.end_submission(ended.seq, "invalid").unwrap());
    submit(ledger, &old, NOON);
    let kept = submit(ledger, &still, NOON);
    let over = closed(&old, State::Cancelled, None);
    assert!(ledger.settle(&over).unwrap());
    ledger.prune(NOON + 10).unwrap();
    assert_eq!(ledger.submissions_pending().unwrap(), 2);
    // The question and its two answers.
    assert_eq!(ledger.prune(NOON + 11).unwrap(), 3);
    assert_eq!(ledger.submission(old.key()).unwrap(), None);
    assert_eq!(ledger.submission(still.key()).unwrap(), Some(kept));
}

fn a_redacted_answer_is_nowhere_on_its_way(ledger: &mut dyn Ledger) {
    let (a, b) = (open(ledger, "a"), open(ledger, "b"));
    for about in [&a, &b] {
        let secret = answer("$said", Some("a secret"));
        assert!(ledger.submit(about.key(), &secret, NOON).unwrap());
    }
    let notice = draft(&a, SendKind::Notice, "an answer is on its way");
    ledger.send(&notice, NOON).unwrap();
    ledger.forget_answer_text(a.key()).unwrap();
    let text = |ledger: &mut dyn Ledger, about: &Elicitation| {
        let kept = ledger.submission(about.key()).unwrap().unwrap();
        kept.answer.text
    };
    assert_eq!(text(ledger, &a), None);
    assert_eq!(text(ledger, &b).as_deref(), Some("a secret"));
    // While the question is open, nothing that is said about it quotes an answer.
    assert_eq!(super::head(ledger, &a).map(|row| row.draft), Some(notice));
}
