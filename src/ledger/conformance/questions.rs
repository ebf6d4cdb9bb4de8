//! What was asked, and where it stands.

use super::{AGENT, NOON, ROOM, changed, closed, draft, head, insert, post, question};
use crate::elicitation::{Elicitation, Key, State};
use crate::ledger::{Asked, Ledger, MOST_TOLD, Page, SendKind, Sought};

super::cases![
    what_was_asked_comes_back_whole,
    an_id_is_taken_once_per_origin,
    an_idempotency_key_is_taken_once_per_origin,
    what_was_asked_before_is_found_by_either_id,
    a_card_is_posted_once,
    a_question_that_is_over_may_still_be_posted,
    a_card_is_visible_once_it_came_back,
    the_pending_questions_of_a_room_come_in_the_order_of_asking,
    rooms_are_known_as_long_as_they_have_questions,
    what_was_closed_lately_in_a_room_is_found_in_the_order_it_was_asked,
    messages_of_the_bot_are_about_their_questions,
    a_tag_means_the_newest_question_that_has_it,
    tags_are_never_used_twice,
    asking_again_is_about_the_same_card_of_the_same_board,
    deadlines_come_due_in_their_order,
    pages_have_no_gaps_and_no_doubles_while_more_is_asked,
    a_listing_holds_only_what_is_sought,
    pending_questions_are_counted,
    a_thing_is_said_once_to_a_person_about_a_question,
];

fn elsewhere(elicitation: Elicitation) -> Elicitation {
    changed(elicitation, |it| {
        it.question.room_id = "!garden:example.org".to_owned();
    })
}

fn ids(found: &[Elicitation]) -> Vec<&str> {
    found.iter().map(|it| it.key().id.as_str()).collect()
}

fn what_was_asked_comes_back_whole(ledger: &mut dyn Ledger) {
    let full = changed(question(AGENT, "full"), |it| {
        it.question.board_id = Some("board".to_owned());
        it.question.card_id = Some("card".to_owned());
        it.question.expires_at = Some(NOON + 1);
    });
    let bare = changed(question(AGENT, "bare"), |it| {
        let question = &mut it.question;
        question.asker_name = None;
        question.thread = None;
        question.options = Vec::new();
        question.answerers.users = None;
        question.answerers.min_power = None;
        question.mention = Vec::new();
        question.metadata = None;
    });
    for elicitation in [full, bare] {
        insert(ledger, elicitation.clone());
        assert_eq!(ledger.find(elicitation.key()).unwrap(), Some(elicitation));
    }
    assert_eq!(ledger.find(&Key::new(AGENT, "unknown")).unwrap(), None);
}

fn an_id_is_taken_once_per_origin(ledger: &mut dyn Ledger) {
    let first = insert(ledger, question(AGENT, "same"));
    let again = changed(question(AGENT, "same"), |it| it.tag = "q2".to_owned());
    assert!(!ledger.insert(&again, "other", Some("key")).unwrap());
    assert_eq!(ledger.find(first.key()).unwrap(), Some(first.clone()));
    // The key of what was not stored is still free.
    assert_eq!(ledger.find_asked(AGENT, None, Some("key")).unwrap(), []);

    let theirs = insert(ledger, question("agt_9", "same"));
    assert_eq!(ledger.find(first.key()).unwrap(), Some(first));
    assert_eq!(ledger.find(theirs.key()).unwrap(), Some(theirs));
}

fn an_idempotency_key_is_taken_once_per_origin(ledger: &mut dyn Ledger) {
    assert!(
        ledger
            .insert(&question(AGENT, "a"), "f", Some("key"))
            .unwrap()
    );
    assert!(
        !ledger
            .insert(&question(AGENT, "b"), "f", Some("key"))
            .unwrap()
    );
    assert_eq!(ledger.find(&Key::new(AGENT, "b")).unwrap(), None);
    assert!(
        ledger
            .insert(&question("agt_9", "b"), "f", Some("key"))
            .unwrap()
    );
    // Without a key there is nothing to share.
    assert!(ledger.insert(&question(AGENT, "c"), "f", None).unwrap());
    assert!(ledger.insert(&question(AGENT, "d"), "f", None).unwrap());
}

fn what_was_asked_before_is_found_by_either_id(ledger: &mut dyn Ledger) {
    let asked = |id: &str, fingerprint: &str| Asked {
        elicitation: question(AGENT, id),
        fingerprint: fingerprint.to_owned(),
    };
    assert!(
        ledger
            .insert(&question(AGENT, "a"), "fa", Some("ka"))
            .unwrap()
    );
    assert!(
        ledger
            .insert(&question(AGENT, "b"), "fb", Some("kb"))
            .unwrap()
    );
    assert!(ledger.insert(&question(AGENT, "c"), "fc", None).unwrap());
    assert!(
        ledger
            .insert(&question("agt_9", "a"), "f9", Some("ka"))
            .unwrap()
    );
    let mut find = |id, key| ledger.find_asked(AGENT, id, key).unwrap();
    assert_eq!(find(Some("a"), None), [asked("a", "fa")]);
    assert_eq!(find(None, Some("kb")), [asked("b", "fb")]);
    assert_eq!(find(Some("a"), Some("ka")), [asked("a", "fa")]);
    assert_eq!(
        find(Some("a"), Some("kb")),
        [asked("a", "fa"), asked("b", "fb")]
    );
    // No key is not a key that others share.
    assert_eq!(find(None, None), []);
    assert_eq!(find(Some("x"), Some("x")), []);
}

fn a_card_is_posted_once(ledger: &mut dyn Ledger) {
    let queued = insert(ledger, question(AGENT, "a"));
    let other = insert(ledger, question("agt_9", "a"));
    let open = changed(queued.clone(), |it| {
        it.state = State::Open;
        it.event_id = Some("$first".to_owned());
    });
    let mut post = |event_id| ledger.mark_posted(queued.key(), event_id).unwrap();
    assert_eq!(post("$first"), Some(open.clone()));
    assert_eq!(post("$first"), None);
    assert_eq!(post("$second"), None);
    assert_eq!(ledger.find(queued.key()).unwrap(), Some(open));
    assert_eq!(ledger.find(other.key()).unwrap(), Some(other));
    assert_eq!(
        ledger.mark_posted(&Key::new(AGENT, "x"), "$x").unwrap(),
        None
    );
}

fn a_question_that_is_over_may_still_be_posted(ledger: &mut dyn Ledger) {
    let queued = insert(ledger, question(AGENT, "a"));
    let over = closed(&queued, State::Cancelled, None);
    assert!(ledger.settle(&over).unwrap());
    let posted = changed(over, |it| it.event_id = Some("$late".to_owned()));
    let noted = ledger.mark_posted(queued.key(), "$late").unwrap();
    assert_eq!(noted, Some(posted), "it stays closed");
}

fn a_card_is_visible_once_it_came_back(ledger: &mut dyn Ledger) {
    let a = post(ledger, question(AGENT, "a"));
    let b = post(ledger, question(AGENT, "b"));
    ledger.mark_visible(ROOM, "$else", NOON).unwrap();
    ledger
        .mark_visible("!other:example.org", "$card_a", NOON)
        .unwrap();
    assert_eq!(ledger.open_in(ROOM).unwrap(), [a.clone(), b.clone()]);
    for _ in 0..2 {
        ledger.mark_visible(ROOM, "$card_a", NOON + 5).unwrap();
        let seen = changed(a.clone(), |it| it.visible = true);
        assert_eq!(ledger.open_in(ROOM).unwrap(), [seen, b.clone()]);
        assert_eq!(ledger.visible_at(a.key()).unwrap(), Some(NOON + 5));
    }
    ledger.mark_visible(ROOM, "$card_a", NOON + 9).unwrap();
    assert_eq!(ledger.visible_at(a.key()).unwrap(), Some(NOON + 5));
    assert_eq!(ledger.visible_at(b.key()).unwrap(), None);
}

fn the_pending_questions_of_a_room_come_in_the_order_of_asking(ledger: &mut dyn Ledger) {
    assert!(!ledger.any_pending_in(ROOM).unwrap());
    let over = post(ledger, question(AGENT, "over"));
    for id in ["z", "queued", "m", "a"] {
        insert(ledger, question(AGENT, id));
    }
    post(ledger, elsewhere(question(AGENT, "other")));
    for id in ["a", "z", "m"] {
        ledger.mark_posted(&Key::new(AGENT, id), id).unwrap();
    }
    assert!(ledger.settle(&closed(&over, State::Expired, None)).unwrap());
    assert_eq!(ids(&ledger.open_in(ROOM).unwrap()), ["z", "m", "a"]);
    assert_eq!(
        ids(&ledger.pending_in(ROOM).unwrap()),
        ["z", "queued", "m", "a"]
    );
    assert!(ledger.any_pending_in(ROOM).unwrap());
}

fn rooms_are_known_as_long_as_they_have_questions(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.rooms(i64::MAX).unwrap(), []);
    let a = insert(ledger, question(AGENT, "a"));
    let b = insert(ledger, question(AGENT, "b"));
    let other = post(ledger, elsewhere(question(AGENT, "c")));
    let mut rooms = |over: &Elicitation| {
        assert!(
            ledger
                .settle(&closed(over, State::Cancelled, None))
                .unwrap()
        );
        let mut rooms = ledger.rooms(i64::MAX).unwrap();
        rooms.sort();
        rooms
            .into_iter()
            .map(|(_, pending)| pending)
            .collect::<Vec<_>>()
    };
    // The garden, then the kitchen.
    assert_eq!(rooms(&a), [true, true]);
    assert_eq!(rooms(&other), [false, true]);
    assert_eq!(rooms(&b), [false, false]);
    assert!(!ledger.any_pending_in(ROOM).unwrap());
}

fn messages_of_the_bot_are_about_their_questions(ledger: &mut dyn Ledger) {
    let a = post(ledger, question(AGENT, "a"));
    let b = post(ledger, question("agt_9", "a"));
    let mut which = draft(&a, SendKind::Notice, "Which one?");
    which.also = vec![a.key().clone(), b.key().clone()];
    for draft in [
        draft(&a, SendKind::Card, "the card"),
        which,
        draft(&a, SendKind::Reaction, "✓"),
    ] {
        ledger.send(&draft, NOON).unwrap();
        let row = head(ledger, &a).unwrap();
        assert!(
            ledger
                .mark_sent(row.seq, &format!("${}", draft.kind.word()))
                .unwrap()
        );
    }
    assert_eq!(ledger.about(ROOM, "$card").unwrap(), [a.key().clone()]);
    let mut both = ledger.about(ROOM, "$notice").unwrap();
    both.sort();
    assert_eq!(both, [a.key().clone(), b.key().clone()]);
    // A reaction is nothing that anybody replies to.
    assert_eq!(ledger.about(ROOM, "$reaction").unwrap(), []);
    assert_eq!(ledger.about("!other:example.org", "$card").unwrap(), []);
    let mut own = ledger.events_about(a.key()).unwrap();
    own.sort();
    assert_eq!(own, ["$card", "$notice"]);
    assert_eq!(ledger.events_about(b.key()).unwrap(), ["$notice"]);
}

fn a_tag_means_the_newest_question_that_has_it(ledger: &mut dyn Ledger) {
    let older = post(ledger, question(AGENT, "older"));
    let newer = post(ledger, question("agt_9", "newer"));
    insert(ledger, elsewhere(question(AGENT, "other")));
    let over = closed(&newer, State::Expired, None);
    assert!(ledger.settle(&over).unwrap());
    assert_eq!(older.tag, over.tag);
    assert_eq!(ledger.tagged(ROOM, "q1").unwrap(), Some(over));
    assert_eq!(ledger.tagged(ROOM, "q2").unwrap(), None);
}

fn tags_are_never_used_twice(ledger: &mut dyn Ledger) {
    assert_eq!(ledger.next_tag(ROOM).unwrap(), "q1");
    assert_eq!(ledger.next_tag(ROOM).unwrap(), "q2");
    assert_eq!(ledger.next_tag("!garden:example.org").unwrap(), "q1");
    let over = insert(
        ledger,
        changed(question(AGENT, "a"), |it| it.tag = "q2".to_owned()),
    );
    assert!(
        ledger
            .settle(&closed(&over, State::Cancelled, None))
            .unwrap()
    );
    ledger.prune(NOON + 1_000).unwrap();
    assert_eq!(ledger.find(over.key()).unwrap(), None);
    assert_eq!(ledger.next_tag(ROOM).unwrap(), "q3");
}

fn asking_again_is_about_the_same_card_of_the_same_board(ledger: &mut dyn Ledger) {
    let card = |origin, id, board: Option<&str>, card: Option<&str>| {
        changed(question(origin, id), |it| {
            it.question.board_id = board.map(str::to_owned);
            it.question.card_id = card.map(str::to_owned);
        })
    };
    let over = insert(ledger, card(AGENT, "over", Some("b"), Some("c")));
    assert!(ledger.settle(&closed(&over, State::Expired, None)).unwrap());
    let queued = insert(ledger, card(AGENT, "queued", Some("b"), Some("c")));
    let open = post(ledger, card(AGENT, "open", Some("b"), Some("c")));
    let boardless = insert(ledger, card(AGENT, "boardless", None, Some("c")));
    insert(ledger, card(AGENT, "other board", Some("b2"), Some("c")));
    insert(ledger, card(AGENT, "other card", Some("b"), Some("c2")));
    insert(ledger, card(AGENT, "no card", Some("b"), None));
    insert(ledger, card("agt_9", "theirs", Some("b"), Some("c")));
    let mut about = |board, card| ledger.pending_about_card(AGENT, board, card).unwrap();
    assert_eq!(about(Some("b"), "c"), [queued, open]);
    assert_eq!(about(None, "c"), [boardless]);
    assert_eq!(about(Some("b"), "c3"), []);
}

fn deadlines_come_due_in_their_order(ledger: &mut dyn Ledger) {
    let until = |id, at: i64| {
        changed(question(AGENT, id), |it| {
            it.question.expires_at = Some(NOON + at);
        })
    };
    insert(ledger, question(AGENT, "never"));
    insert(ledger, until("late", 30));
    post(ledger, until("second", 20));
    insert(ledger, until("first", 10));
    let over = insert(ledger, until("over", 5));
    assert!(
        ledger
            .settle(&closed(&over, State::Cancelled, None))
            .unwrap()
    );
    let mut due = |at| {
        let (due, next) = ledger.due(NOON + at).unwrap();
        let due: Vec<String> = due.iter().map(|it| it.key().id.clone()).collect();
        (due.join(", "), next.map(|next| next - NOON))
    };
    assert_eq!(due(9), (String::new(), Some(10)));
    assert_eq!(due(10), ("first".to_owned(), Some(20)));
    assert_eq!(due(29), ("first, second".to_owned(), Some(30)));
    assert_eq!(due(31), ("first, second, late".to_owned(), None));
}

/// What [`AGENT`] asked, newest first.
fn page(ledger: &mut dyn Ledger, below: Option<i64>, limit: usize) -> Page {
    let origin = AGENT.to_owned();
    let (state, room_id) = (None, None);
    ledger
        .list(&Sought {
            owner: origin,
            state,
            room_id,
            below,
            limit,
        })
        .unwrap()
}

fn pages_have_no_gaps_and_no_doubles_while_more_is_asked(ledger: &mut dyn Ledger) {
    assert_eq!(page(ledger, None, 3).elicitations, []);
    for n in 0..10 {
        insert(ledger, question(AGENT, &format!("{n}")));
        insert(ledger, question("agt_9", &format!("{n}")));
    }
    let (mut seen, mut below) = (Vec::new(), None);
    loop {
        let page = page(ledger, below, 3);
        assert!(page.elicitations.len() == 3 || page.next.is_none());
        seen.extend(page.elicitations);
        // Between two pages something is asked, and something ends.
        let n = seen.len();
        let new = insert(ledger, question(AGENT, &format!("new {n}")));
        assert!(
            ledger
                .settle(&closed(&new, State::Cancelled, None))
                .unwrap()
        );
        let Some(next) = page.next else { break };
        below = Some(next);
    }
    assert_eq!(
        ids(&seen),
        ["9", "8", "7", "6", "5", "4", "3", "2", "1", "0"]
    );
    // A page that ends with the last one says so.
    assert_eq!(page(ledger, None, 14).next, None);
    assert_eq!(page(ledger, None, 14).elicitations.len(), 14);
    assert!(page(ledger, None, 13).next.is_some());
}

fn a_listing_holds_only_what_is_sought(ledger: &mut dyn Ledger) {
    insert(ledger, question(AGENT, "queued"));
    post(ledger, question(AGENT, "open"));
    post(ledger, elsewhere(question(AGENT, "elsewhere")));
    post(ledger, question("agt_9", "theirs"));
    let mut list = |state, room: Option<&str>| {
        let sought = Sought {
            owner: AGENT.to_owned(),
            state,
            room_id: room.map(str::to_owned),
            below: None,
            limit: 10,
        };
        let page = ledger.list(&sought).unwrap();
        ids(&page.elicitations).join(", ")
    };
    assert_eq!(list(None, None), "elsewhere, open, queued");
    assert_eq!(list(Some(State::Open), None), "elsewhere, open");
    assert_eq!(list(None, Some(ROOM)), "open, queued");
    assert_eq!(list(Some(State::Queued), Some(ROOM)), "queued");
    assert_eq!(list(Some(State::Answered), None), "");
}

fn pending_questions_are_counted(ledger: &mut dyn Ledger) {
    let at = |id, at: i64| changed(question(AGENT, id), |it| it.question.created_at = NOON + at);
    assert_eq!(ledger.pending_counts().unwrap(), (0, 0, None));
    let over = post(ledger, at("over", 1));
    assert!(ledger.settle(&closed(&over, State::Expired, None)).unwrap());
    insert(ledger, at("queued", 2));
    assert_eq!(ledger.pending_counts().unwrap(), (1, 0, None));
    post(ledger, at("b", 4));
    post(ledger, at("a", 3));
    assert_eq!(ledger.pending_counts().unwrap(), (1, 2, Some(NOON + 3)));
}

fn a_thing_is_said_once_to_a_person_about_a_question(ledger: &mut dyn Ledger) {
    let (a, theirs) = (Key::new(AGENT, "a"), Key::new("agt_9", "a"));
    let mut first = |key: &Key, user, what| ledger.first_time(key, user, what).unwrap();
    assert!(first(&a, "@mira:example.org", "closed"));
    assert!(!first(&a, "@mira:example.org", "closed"));
    assert!(first(&a, "@tom:example.org", "closed"));
    assert!(first(&a, "@mira:example.org", "may_not_answer"));
    assert!(first(&theirs, "@mira:example.org", "closed"));
    assert!(!first(&theirs, "@mira:example.org", "closed"));

    // Whoever keeps the bot talking is left without an answer, and nobody else is.
    for what in ["third", "fourth", "fifth"] {
        assert!(first(&a, "@mira:example.org", what));
    }
    assert_eq!(MOST_TOLD, 5);
    assert!(!first(&a, "@mira:example.org", "sixth"));
    assert!(first(&a, "@tom:example.org", "sixth"));
    assert!(first(&theirs, "@mira:example.org", "sixth"));
}

fn what_was_closed_lately_in_a_room_is_found_in_the_order_it_was_asked(ledger: &mut dyn Ledger) {
    let end = |id: &str, at| {
        changed(question(AGENT, id), |it| {
            it.state = State::Cancelled;
            it.closed_at = Some(at);
        })
    };
    for (id, at) in [("a", NOON + 2), ("b", NOON), ("c", NOON + 1)] {
        insert(ledger, question(AGENT, id));
        assert!(ledger.settle(&end(id, at)).unwrap());
    }
    insert(ledger, question(AGENT, "open"));
    let over = insert(ledger, elsewhere(question(AGENT, "other")));
    let other = changed(over, |it| {
        it.state = State::Cancelled;
        it.closed_at = Some(NOON + 9);
    });
    assert!(ledger.settle(&other).unwrap());
    let mut since = |at| {
        let closed = ledger.closed_in(ROOM, at).unwrap();
        assert_eq!(ledger.any_closed_in(ROOM, at).unwrap(), !closed.is_empty());
        let ids = closed.iter().map(|it| it.key().id.clone());
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(since(NOON), "a b c");
    assert_eq!(since(NOON + 1), "a c");
    assert_eq!(since(NOON + 3), "");
    let rooms = ledger.rooms(NOON + 9).unwrap();
    let here = |room: &str| rooms.iter().find(|(id, _)| id == room).unwrap().1;
    assert!(here(ROOM), "one is open");
    assert!(here(&other.question.room_id), "it was closed lately");
    // Of many it is the last ones that count.
    for number in 0..25_i64 {
        let id = format!("m{number:02}");
        insert(ledger, question(AGENT, &id));
        assert!(ledger.settle(&end(&id, NOON + 100 + number)).unwrap());
    }
    let last = ledger.closed_in(ROOM, NOON).unwrap();
    assert_eq!(last.len(), 20);
    assert_eq!(last[0].key().id, "m05");
}
