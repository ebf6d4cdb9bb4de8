//! What is to be sent to rooms.

use std::collections::HashSet;

use serde_json::json;

use super::{AGENT, NOON, changed, draft, head, insert, question};
use crate::clock::Millis;
use crate::elicitation::Elicitation;
use crate::elicitation::Key;
use crate::ledger::{Ledger, Noticed, SendDraft, SendKind, Sending};

super::cases![
    a_room_gets_everything_in_order_and_one_thing_at_a_time,
    a_row_that_is_put_off_holds_up_its_room_alone,
    a_row_is_due_at_its_time,
    a_clock_that_was_set_back_holds_nothing_up,
    the_next_row_of_a_room_is_its_oldest_unsent_one,
    a_row_keeps_its_transaction_id_and_its_first_attempt,
    a_row_is_sent_once,
    a_dropped_row_lets_the_next_one_go,
    what_is_sent_or_dropped_does_not_change_any_more,
    an_unsent_row_is_found_by_its_transaction_id,
    the_unsent_card_of_a_question_is_found,
    only_a_card_that_was_never_tried_is_withdrawn,
    what_failed_for_longest_is_known,
    a_notice_is_found_by_the_message_it_replies_to,
    a_notice_about_no_question_is_about_none,
];

fn in_room(id: &str, room: &str) -> Elicitation {
    changed(question(AGENT, id), |it| {
        it.question.room_id = room.to_owned();
    })
}

/// Questions in two rooms.
fn two_rooms(ledger: &mut dyn Ledger) -> (Elicitation, Elicitation) {
    let a = insert(ledger, in_room("a", "!a:example.org"));
    let b = insert(ledger, in_room("b", "!b:example.org"));
    (a, b)
}

fn say(ledger: &mut dyn Ledger, about: &Elicitation, body: &str) {
    let draft = draft(about, SendKind::Notice, body);
    ledger.send(&draft, NOON).unwrap();
}

fn bodies(due: &[Sending]) -> Vec<&str> {
    due.iter()
        .map(|row| row.draft.content["body"].as_str().unwrap())
        .collect()
}

fn due(ledger: &mut dyn Ledger, at: Millis) -> (String, Option<Millis>) {
    let (due, next) = ledger.sendings_due(NOON + at).unwrap();
    (bodies(&due).join(", "), next.map(|next| next - NOON))
}

fn a_room_gets_everything_in_order_and_one_thing_at_a_time(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    assert_eq!(due(ledger, 0), (String::new(), None));
    for (room, body) in [(&a, "a1"), (&b, "b1"), (&a, "a2"), (&b, "b2"), (&a, "a3")] {
        say(ledger, room, body);
    }
    assert_eq!(due(ledger, 0).0, "a1, b1");
    let mut sent = Vec::new();
    while let Some(row) = head(ledger, &a) {
        assert_eq!(row.draft.key, *a.key());
        assert!(ledger.mark_sent(row.seq, &format!("${}", row.seq)).unwrap());
        sent.push(row);
    }
    assert_eq!(bodies(&sent), ["a1", "a2", "a3"]);
    assert_eq!(due(ledger, 0).0, "b1");
}

fn a_row_that_is_put_off_holds_up_its_room_alone(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    for (room, body) in [(&a, "a1"), (&a, "a2"), (&b, "b1")] {
        say(ledger, room, body);
    }
    let a1 = head(ledger, &a).unwrap();
    ledger
        .postpone(a1.seq, NOON + 50, "M_LIMIT_EXCEEDED")
        .unwrap();
    assert_eq!(due(ledger, 49), ("b1".to_owned(), Some(50)));
    assert_eq!(due(ledger, 50), ("a1, b1".to_owned(), None));
    let again = Sending { attempts: 1, ..a1 };
    assert_eq!(head(ledger, &a), Some(again.clone()));
    // To be held back is no failure.
    ledger.hold(again.seq, NOON + 70, "not yet").unwrap();
    assert_eq!(due(ledger, 69), ("b1".to_owned(), Some(70)));
    assert_eq!(due(ledger, 70), ("a1, b1".to_owned(), None));
    assert_eq!(head(ledger, &a), Some(again));
}

fn a_row_is_due_at_its_time(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    ledger
        .send(&draft(&a, SendKind::Card, "a1"), NOON + 10)
        .unwrap();
    ledger
        .send(&draft(&b, SendKind::Card, "b1"), NOON + 20)
        .unwrap();
    assert_eq!(due(ledger, 9), (String::new(), Some(10)));
    assert_eq!(due(ledger, 10), ("a1".to_owned(), Some(20)));
    assert_eq!(due(ledger, 20), ("a1, b1".to_owned(), None));
}

fn a_clock_that_was_set_back_holds_nothing_up(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    say(ledger, &a, "a1");
    say(ledger, &b, "b1");
    let (rows, _) = ledger.sendings_due(NOON).unwrap();
    ledger.postpone(rows[0].seq, NOON + 60_000, "busy").unwrap();
    ledger
        .hold(rows[1].seq, NOON + 2_000, "nobody there")
        .unwrap();
    let hour = 3_600_000;
    assert_eq!(due(ledger, 0), (String::new(), Some(2_000)));
    assert_eq!(due(ledger, -hour), ("a1, b1".to_owned(), None));
}

fn the_next_row_of_a_room_is_its_oldest_unsent_one(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    let next = |ledger: &mut dyn Ledger, room: &Elicitation, at: Millis| {
        let found = ledger
            .next_sending(&room.question.room_id, NOON + at)
            .unwrap();
        found.map(|(row, due)| {
            let seq = row.seq;
            (seq, bodies(&[row]).join(""), due - NOON)
        })
    };
    assert_eq!(next(ledger, &a, 0), None);
    for body in ["a1", "a2"] {
        say(ledger, &a, body);
    }
    say(ledger, &b, "b1");
    let (seq, body, due) = next(ledger, &a, 5).unwrap();
    assert_eq!((body.as_str(), due), ("a1", 0));
    ledger.postpone(seq, NOON + 60_000, "busy").unwrap();
    assert_eq!(next(ledger, &a, 5), Some((seq, "a1".to_owned(), 60_000)));
    let hour = 3_600_000;
    assert_eq!(next(ledger, &a, -hour), Some((seq, "a1".to_owned(), -hour)));
    ledger.mark_sent(seq, "$1").unwrap();
    assert_eq!(next(ledger, &a, 5).unwrap().1, "a2");
    let (seq, body, _) = next(ledger, &b, 5).unwrap();
    assert_eq!(body, "b1");
    ledger.drop_sending(seq, "gone").unwrap();
    assert_eq!(next(ledger, &b, 5), None);
}

fn a_row_keeps_its_transaction_id_and_its_first_attempt(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    let mut card = draft(&a, SendKind::Card, "the card");
    card.also = vec![b.key().clone()];
    ledger.send(&card, NOON + 3).unwrap();
    let row = head(ledger, &a).unwrap();
    let expected = Sending {
        draft: card,
        attempts: 0,
        attempted_at: None,
        created_at: NOON + 3,
        ..row.clone()
    };
    assert_eq!(row, expected);
    ledger.mark_attempted(row.seq, NOON + 5).unwrap();
    ledger.postpone(row.seq, NOON + 6, "timeout").unwrap();
    ledger.mark_attempted(row.seq, NOON + 7).unwrap();
    ledger.postpone(row.seq, NOON + 8, "timeout").unwrap();
    let now = Sending {
        attempts: 2,
        attempted_at: Some(NOON + 5),
        ..row
    };
    assert_eq!(head(ledger, &a), Some(now));
    // No two rows share an id.
    for room in [&a, &b, &a] {
        say(ledger, room, "more");
    }
    let mut seen = HashSet::new();
    for room in [&a, &b] {
        while let Some(row) = head(ledger, room) {
            assert!(seen.insert(row.txn_id));
            ledger.drop_sending(row.seq, "seen").unwrap();
        }
    }
    assert_eq!(seen.len(), 4);
}

fn a_row_is_sent_once(ledger: &mut dyn Ledger) {
    let (a, _) = two_rooms(ledger);
    say(ledger, &a, "hello");
    let row = head(ledger, &a).unwrap();
    assert!(ledger.mark_sent(row.seq, "$1").unwrap());
    assert!(!ledger.mark_sent(row.seq, "$1").unwrap());
    assert!(!ledger.mark_sent(row.seq, "$2").unwrap());
    assert_eq!(ledger.events_about(a.key()).unwrap(), ["$1"]);
    assert!(!ledger.mark_sent(row.seq + 99, "$3").unwrap());
}

fn a_dropped_row_lets_the_next_one_go(ledger: &mut dyn Ledger) {
    let (a, _) = two_rooms(ledger);
    say(ledger, &a, "a1");
    say(ledger, &a, "a2");
    let a1 = head(ledger, &a).unwrap();
    ledger.drop_sending(a1.seq, "M_FORBIDDEN").unwrap();
    assert_eq!(due(ledger, 0), ("a2".to_owned(), None));
    assert!(!ledger.mark_sent(a1.seq, "$1").unwrap());
    assert_eq!(ledger.events_about(a.key()).unwrap(), Vec::<String>::new());
}

fn what_is_sent_or_dropped_does_not_change_any_more(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    say(ledger, &a, "sent");
    say(ledger, &b, "dropped");
    let (sent, dropped) = (head(ledger, &a).unwrap(), head(ledger, &b).unwrap());
    assert!(ledger.mark_sent(sent.seq, "$1").unwrap());
    ledger.drop_sending(dropped.seq, "M_FORBIDDEN").unwrap();
    for seq in [sent.seq, dropped.seq] {
        ledger.drop_sending(seq, "again").unwrap();
        ledger.mark_attempted(seq, NOON).unwrap();
        ledger.postpone(seq, NOON + 1, "timeout").unwrap();
    }
    assert_eq!(due(ledger, 9), (String::new(), None));
    assert_eq!(ledger.oldest_attempted().unwrap(), None);
    assert_eq!(
        ledger.about("!a:example.org", "$1").unwrap(),
        [a.key().clone()]
    );
}

fn an_unsent_row_is_found_by_its_transaction_id(ledger: &mut dyn Ledger) {
    let (a, _) = two_rooms(ledger);
    say(ledger, &a, "a1");
    let row = head(ledger, &a).unwrap();
    assert_eq!(
        ledger.sending_by_txn(&row.txn_id).unwrap(),
        Some(row.clone())
    );
    assert_eq!(ledger.sending_by_txn("unknown").unwrap(), None);
    assert!(ledger.mark_sent(row.seq, "$1").unwrap());
    assert_eq!(ledger.sending_by_txn(&row.txn_id).unwrap(), None);
}

fn the_unsent_card_of_a_question_is_found(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    say(ledger, &a, "not a card");
    let notice = head(ledger, &a).unwrap();
    assert!(ledger.mark_sent(notice.seq, "$1").unwrap());
    assert_eq!(ledger.pending_card(a.key()).unwrap(), None);
    ledger
        .send(&draft(&a, SendKind::Card, "card a"), NOON)
        .unwrap();
    ledger
        .send(&draft(&b, SendKind::Card, "card b"), NOON)
        .unwrap();
    let card = head(ledger, &a).unwrap();
    assert_eq!(ledger.pending_card(a.key()).unwrap(), Some(card.clone()));
    assert!(ledger.mark_sent(card.seq, "$2").unwrap());
    assert_eq!(ledger.pending_card(a.key()).unwrap(), None);
}

fn only_a_card_that_was_never_tried_is_withdrawn(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    say(ledger, &a, "a notice");
    assert!(!ledger.withdraw_unsent(SendKind::Card, a.key()).unwrap());
    ledger
        .send(&draft(&a, SendKind::Card, "card a"), NOON)
        .unwrap();
    ledger
        .send(&draft(&b, SendKind::Card, "card b"), NOON)
        .unwrap();
    assert!(ledger.withdraw_unsent(SendKind::Card, a.key()).unwrap());
    assert!(!ledger.withdraw_unsent(SendKind::Card, a.key()).unwrap());
    assert_eq!(ledger.pending_card(a.key()).unwrap(), None);
    assert_eq!(due(ledger, 0).0, "a notice, card b");

    let card = head(ledger, &b).unwrap();
    ledger.mark_attempted(card.seq, NOON).unwrap();
    assert!(!ledger.withdraw_unsent(SendKind::Card, b.key()).unwrap());
    assert_eq!(due(ledger, 0).0, "a notice, card b");
}

fn what_failed_for_longest_is_known(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    say(ledger, &a, "a1");
    say(ledger, &b, "b1");
    let (a1, b1) = (head(ledger, &a).unwrap(), head(ledger, &b).unwrap());
    // Being sent is not being stuck, and waiting for the room is not either.
    ledger.mark_attempted(a1.seq, NOON + 2).unwrap();
    ledger.postpone(b1.seq, NOON + 3, "nobody joined").unwrap();
    assert_eq!(ledger.oldest_attempted().unwrap(), None);
    ledger.postpone(a1.seq, NOON + 4, "timeout").unwrap();
    assert_eq!(ledger.oldest_attempted().unwrap(), Some(NOON + 2));
    ledger.mark_attempted(b1.seq, NOON + 1).unwrap();
    assert_eq!(ledger.oldest_attempted().unwrap(), Some(NOON + 1));
    assert!(ledger.mark_sent(b1.seq, "$b").unwrap());
    ledger.drop_sending(a1.seq, "M_FORBIDDEN").unwrap();
    assert_eq!(ledger.oldest_attempted().unwrap(), None);
}

fn reply(about: &Elicitation, kind: SendKind, to: &str) -> SendDraft {
    let mut draft = draft(about, kind, "hm");
    draft.content["m.relates_to"] = json!({ "m.in_reply_to": { "event_id": to } });
    draft
}

fn a_notice_is_found_by_the_message_it_replies_to(ledger: &mut dyn Ledger) {
    let (a, b) = two_rooms(ledger);
    let (room, other) = (&a.question.room_id, &b.question.room_id);
    for draft in [
        reply(&a, SendKind::Card, "$m1"),
        reply(&a, SendKind::Notice, "$m1"),
        reply(&a, SendKind::NoticeEdit, "$m1"),
        reply(&b, SendKind::Notice, "$m1"),
    ] {
        ledger.send(&draft, NOON).unwrap();
    }
    assert_eq!(
        ledger.said_about(SendKind::Notice, room, "$m2").unwrap(),
        None
    );
    let found = ledger
        .said_about(SendKind::Notice, room, "$m1")
        .unwrap()
        .unwrap();
    let expected = |event_id: Option<&str>, untried| Noticed {
        seq: found.seq,
        key: a.key().clone(),
        event_id: event_id.map(str::to_owned),
        untried,
    };
    assert_eq!(found, expected(None, true));
    ledger.mark_attempted(found.seq, NOON).unwrap();
    let tried = ledger.said_about(SendKind::Notice, room, "$m1").unwrap();
    assert_eq!(tried, Some(expected(None, false)));
    ledger.mark_sent(found.seq, "$n1").unwrap();
    let sent = ledger.said_about(SendKind::Notice, room, "$m1").unwrap();
    assert_eq!(sent, Some(expected(Some("$n1"), false)));
    let elsewhere = ledger
        .said_about(SendKind::Notice, other, "$m1")
        .unwrap()
        .unwrap();
    ledger.drop_sending(elsewhere.seq, "never mind").unwrap();
    assert_eq!(
        ledger.said_about(SendKind::Notice, other, "$m1").unwrap(),
        None
    );
}

fn a_notice_about_no_question_is_about_none(ledger: &mut dyn Ledger) {
    let a = insert(ledger, question(AGENT, "a"));
    let room_id = &a.question.room_id;
    let mut help = draft(&a, SendKind::Notice, "help");
    help.key = Key::of_room(room_id);
    ledger.send(&help, NOON).unwrap();
    let row = head(ledger, &a).unwrap();
    assert_eq!(row.draft.key, help.key);
    assert!(row.draft.key.is_of_room());
    assert!(!a.key().is_of_room());
    ledger.mark_sent(row.seq, "$n1").unwrap();
    assert_eq!(ledger.about(room_id, "$n1").unwrap(), []);
}
