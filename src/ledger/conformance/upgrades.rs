//! Rooms that were upgraded, and the questions that went on in their successors.

use super::{AGENT, NOON, ROOM, answer, changed, closed, draft, insert, post, question};
use crate::elicitation::{Elicitation, Key, State};
use crate::ledger::{Ledger, SendKind};

super::cases![
    an_upgraded_room_means_the_last_that_took_its_place,
    a_room_has_one_successor_and_is_never_its_own,
    tags_go_on_after_those_of_the_predecessors,
    a_pending_question_goes_on_in_another_room,
    what_was_to_be_sent_about_it_to_the_old_room_is_not,
    a_closed_question_stays_where_it_was,
    its_new_card_is_noted_like_a_first_one,
    the_old_card_stays_known,
    an_answer_given_in_the_old_room_is_found_there,
    an_upgraded_room_is_known_after_its_questions_have_gone,
];

const NEXT: &str = "!next:example.org";
const LAST: &str = "!last:example.org";

/// The question as it is in another room before its card is.
fn moved(elicitation: &Elicitation) -> Elicitation {
    changed(elicitation.clone(), |it| {
        it.question.room_id = NEXT.to_owned();
        it.question.thread = None;
        it.tag = "q7".to_owned();
        it.event_id = None;
        it.visible = false;
    })
}

fn unsent(ledger: &mut dyn Ledger) -> Vec<(String, String)> {
    let (due, _) = ledger.sendings_due(NOON).unwrap();
    due.into_iter()
        .map(|row| {
            let body = row.draft.content["body"].as_str().unwrap().to_owned();
            (row.draft.room_id, body)
        })
        .collect()
}

fn an_upgraded_room_means_the_last_that_took_its_place(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.successor(ROOM).unwrap(), None);
    assert!(ledger.set_successor(NEXT, LAST).unwrap());
    assert!(ledger.set_successor(ROOM, NEXT).unwrap());
    assert_eq!(ledger.successor(ROOM).unwrap().as_deref(), Some(LAST));
    assert_eq!(ledger.successor(NEXT).unwrap().as_deref(), Some(LAST));
    assert_eq!(ledger.successor(LAST).unwrap(), None);
    let mut all = ledger.successors().unwrap();
    all.sort();
    let pair = |room: &str, successor: &str| (room.to_owned(), successor.to_owned());
    assert_eq!(all, [pair(ROOM, NEXT), pair(NEXT, LAST)]);
}

fn a_room_has_one_successor_and_is_never_its_own(ledger: &mut dyn Ledger) {
    assert!(!ledger.set_successor(ROOM, ROOM).unwrap());
    assert!(ledger.set_successor(ROOM, NEXT).unwrap());
    assert!(!ledger.set_successor(ROOM, NEXT).unwrap());
    assert!(!ledger.set_successor(ROOM, LAST).unwrap());
    assert!(ledger.set_successor(NEXT, LAST).unwrap());
    assert!(!ledger.set_successor(LAST, ROOM).unwrap());
    assert_eq!(ledger.successor(ROOM).unwrap().as_deref(), Some(LAST));
}

fn tags_go_on_after_those_of_the_predecessors(ledger: &mut dyn Ledger) {
    for _ in 0..3 {
        ledger.next_tag(ROOM).unwrap();
    }
    ledger.next_tag(NEXT).unwrap();
    for _ in 0..5 {
        ledger.next_tag(LAST).unwrap();
    }
    ledger.set_successor(NEXT, LAST).unwrap();
    ledger.set_successor(ROOM, NEXT).unwrap();
    assert_eq!(ledger.next_tag(NEXT).unwrap(), "q4");
    assert_eq!(ledger.next_tag(LAST).unwrap(), "q6");
    assert_eq!(ledger.next_tag(ROOM).unwrap(), "q4");
}

fn a_pending_question_goes_on_in_another_room(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "open"));
    ledger.mark_visible(ROOM, "$card_open", NOON + 1).unwrap();
    let queued = insert(ledger, question(AGENT, "queued"));
    let theirs = insert(ledger, question("agt_9", "open"));
    for elicitation in [open, queued] {
        let moved = moved(&elicitation);
        assert!(ledger.relocate(&moved).unwrap());
        assert_eq!(ledger.find(moved.key()).unwrap(), Some(moved.clone()));
        assert_eq!(ledger.visible_at(moved.key()).unwrap(), None);
        let tagged = ledger.tagged(NEXT, "q7").unwrap();
        assert_eq!(tagged, Some(moved));
    }
    assert_eq!(ledger.pending_in(NEXT).unwrap().len(), 2);
    assert_eq!(ledger.pending_in(ROOM).unwrap(), [theirs]);
}

fn what_was_to_be_sent_about_it_to_the_old_room_is_not(ledger: &mut dyn Ledger) {
    let elicitation = insert(ledger, question(AGENT, "a"));
    let other = insert(ledger, question(AGENT, "b"));
    for (about, kind, body) in [
        (&elicitation, SendKind::Card, "its card"),
        (&elicitation, SendKind::Notice, "a word about it"),
        (&other, SendKind::Card, "another card"),
    ] {
        ledger.send(&draft(about, kind, body), NOON).unwrap();
    }
    let (due, _) = ledger.sendings_due(NOON).unwrap();
    let moved = moved(&elicitation);
    assert!(ledger.relocate(&moved).unwrap());
    assert!(!ledger.mark_attempted(due[0].seq, NOON).unwrap());
    assert!(!ledger.mark_sent(due[0].seq, "$late").unwrap());
    let card = draft(&moved, SendKind::Card, "its new card");
    ledger.send(&card, NOON).unwrap();
    let here = |room: &str, body: &str| (room.to_owned(), body.to_owned());
    assert_eq!(
        unsent(ledger),
        [here(ROOM, "another card"), here(NEXT, "its new card")]
    );
}

fn a_closed_question_stays_where_it_was(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "a"));
    let over = closed(&open, State::Cancelled, None);
    assert!(ledger.settle(&over).unwrap());
    let edit = draft(&over, SendKind::CardEdit, "last words");
    ledger.send(&edit, NOON).unwrap();
    assert!(!ledger.relocate(&moved(&open)).unwrap());
    assert_eq!(ledger.find(open.key()).unwrap(), Some(over));
    let last = (ROOM.to_owned(), "last words".to_owned());
    assert_eq!(unsent(ledger), [last]);
    let unknown = moved(&question(AGENT, "unknown"));
    assert!(!ledger.relocate(&unknown).unwrap());
    assert_eq!(ledger.find(&Key::new(AGENT, "unknown")).unwrap(), None);
}

fn its_new_card_is_noted_like_a_first_one(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "a"));
    ledger.mark_visible(ROOM, "$card_a", NOON + 1).unwrap();
    let moved = moved(&open);
    ledger.relocate(&moved).unwrap();
    // The old card, coming back late, is not the new one.
    ledger.mark_visible(ROOM, "$card_a", NOON + 2).unwrap();
    assert_eq!(ledger.find(moved.key()).unwrap(), Some(moved.clone()));
    let posted = changed(moved, |it| it.event_id = Some("$new".to_owned()));
    assert_eq!(
        ledger.mark_posted(posted.key(), "$new").unwrap(),
        Some(posted.clone())
    );
    assert_eq!(ledger.mark_posted(posted.key(), "$newer").unwrap(), None);
    ledger.mark_visible(NEXT, "$new", NOON + 3).unwrap();
    assert_eq!(ledger.visible_at(posted.key()).unwrap(), Some(NOON + 3));
    let visible = changed(posted, |it| it.visible = true);
    assert_eq!(ledger.open_in(NEXT).unwrap(), [visible]);
}

fn the_old_card_stays_known(ledger: &mut dyn Ledger) {
    let elicitation = insert(ledger, question(AGENT, "a"));
    let card = draft(&elicitation, SendKind::Card, "its card");
    ledger.send(&card, NOON).unwrap();
    let (due, _) = ledger.sendings_due(NOON).unwrap();
    ledger.mark_sent(due[0].seq, "$old").unwrap();
    ledger.mark_posted(elicitation.key(), "$old").unwrap();
    ledger.relocate(&moved(&elicitation)).unwrap();
    let key = elicitation.key().clone();
    assert_eq!(ledger.events_about(&key).unwrap(), ["$old"]);
    assert_eq!(ledger.about(ROOM, "$old").unwrap(), [key]);
    assert_eq!(ledger.about(NEXT, "$old").unwrap(), []);
}

fn an_answer_given_in_the_old_room_is_found_there(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "a"));
    ledger.set_successor(ROOM, NEXT).unwrap();
    let moved = moved(&open);
    ledger.relocate(&moved).unwrap();
    let answered = closed(&moved, State::Answered, Some(answer("$answer", None)));
    assert!(ledger.settle(&answered).unwrap());
    for room_id in [ROOM, NEXT] {
        let found = ledger.answered_by_event(room_id, "$answer").unwrap();
        assert_eq!(found, Some(answered.clone()), "{room_id}");
    }
    assert_eq!(ledger.answered_by_event(LAST, "$answer").unwrap(), None);
}

fn an_upgraded_room_is_known_after_its_questions_have_gone(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(AGENT, "a"));
    ledger.set_successor(ROOM, NEXT).unwrap();
    ledger.relocate(&moved(&open)).unwrap();
    let mut rooms = ledger.rooms(NOON).unwrap();
    rooms.sort();
    assert_eq!(rooms, [(ROOM.to_owned(), false), (NEXT.to_owned(), true)]);
}
