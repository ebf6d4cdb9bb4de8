//! How else a question ends: withdrawn, expired, never put before anybody.

use super::*;

async fn cancel(house: &House, id: &str) -> Result<Elicitation, CancelError> {
    house.service.cancel(&Key::new("builder", id)).await
}

#[tokio::test]
async fn a_queued_question_that_is_withdrawn_is_never_posted() {
    let mut house = House::start().await;
    let asked = house.ask("builder", question("e1")).await.unwrap();
    let cancelled = cancel(&house, "e1").await.unwrap();
    assert_eq!(
        cancelled,
        Elicitation {
            state: State::Cancelled,
            closed_at: cancelled.closed_at,
            reason: None,
            ..asked.elicitation
        }
    );
    assert!(cancelled.closed_at.is_some());
    assert!(house.post().await.is_empty());
    assert_eq!(house.told("e1").await, ["elicitation.cancelled"]);
}

#[tokio::test]
async fn a_card_withdrawn_between_being_due_and_being_sent_is_not_sent() {
    let house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    let book = house.service.book();
    let (due, _) = book
        .read(|ledger| ledger.sendings_due(Millis::MAX))
        .await
        .unwrap();
    cancel(&house, "e1").await.unwrap();
    let seq = due[0].seq;
    let attempted = book.write(move |ledger| ledger.mark_attempted(seq, 1));
    let attempted: Result<bool, LedgerError> = attempted.await;
    assert!(!attempted.unwrap());
}

#[tokio::test]
async fn an_open_question_that_is_withdrawn_has_its_card_edited() {
    let mut house = House::start().await;
    let card = house.open_question("e1").await;
    let cancelled = cancel(&house, "e1").await.unwrap();
    assert_eq!(cancelled, house.found("e1").await);
    assert_eq!(cancelled.state, State::Cancelled);
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.cancelled"]
    );
    let posted = house.post().await;
    assert_eq!(posted.len(), 1);
    assert_eq!(posted[0].kind(), SendKind::CardEdit);
    assert!(posted[0].body().contains("Withdrawn by the agent"));
    // A late answer is told so.
    house
        .hear(vec![mira("$m1", "1"), to(&card, mira("$m2", "1"))])
        .await;
    let posted = house.post().await;
    assert_eq!(posted.len(), 1);
    assert!(posted[0].body().contains("is closed"));
    assert_eq!(house.found("e1").await, cancelled);
}

#[tokio::test]
async fn a_question_withdrawn_while_its_card_is_on_its_way_gets_its_last_words() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    let sending = house.attempt().await.unwrap();
    cancel(&house, "e1").await.unwrap();
    house
        .service
        .sent(sending, "$card".to_owned())
        .await
        .unwrap();
    let found = house.found("e1").await;
    assert_eq!(found.state, State::Cancelled);
    assert_eq!(found.event_id.as_deref(), Some("$card"));
    // It was never open.
    assert_eq!(house.told("e1").await, ["elicitation.cancelled"]);
    let posted = house.post().await;
    assert_eq!(
        posted.iter().map(Posted::kind).collect::<Vec<_>>(),
        [SendKind::CardEdit]
    );
}

#[tokio::test]
async fn only_what_is_pending_can_be_withdrawn() {
    let mut house = House::start().await;
    assert!(matches!(
        cancel(&house, "e1").await,
        Err(CancelError::NotFound)
    ));
    house.open_question("e1").await;
    let others = house.service.cancel(&Key::new("tester", "e1")).await;
    assert!(matches!(others, Err(CancelError::NotFound)));
    house.hear(vec![mira("$m1", "1")]).await;
    let answered = house.found("e1").await;
    house.post().await;
    match cancel(&house, "e1").await {
        Err(CancelError::NotPending(found)) => assert_eq!(*found, answered),
        other => panic!("{other:?}"),
    }
    assert_eq!(house.found("e1").await, answered);
    assert_eq!(house.told("e1").await.len(), 2);
    assert!(house.post().await.is_empty());
}

#[tokio::test]
async fn withdrawn_many_times_at_once_it_is_withdrawn_once() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    let withdrawing: Vec<_> = (0..10)
        .map(|_| {
            let service = house.service.clone();
            tokio::spawn(async move { service.cancel(&Key::new("builder", "e1")).await.is_ok() })
        })
        .collect();
    let mut withdrawn = 0;
    for done in withdrawing {
        withdrawn += u32::from(done.await.unwrap());
    }
    assert_eq!(withdrawn, 1);
    assert_eq!(house.told("e1").await.len(), 2);
    assert_eq!(house.post().await.len(), 1);
}

fn due_in(id: &str, expires_in: Millis) -> Ask {
    Ask {
        expires_in: Some(expires_in),
        ..question(id)
    }
}

/// Pain: two-clocks.
#[tokio::test]
async fn a_question_expires_at_its_deadline_and_not_before() {
    let mut house = House::start().await;
    for (id, expires_in) in [("e1", 60_000), ("e2", 120_000), ("e3", 180_000)] {
        house.ask("builder", due_in(id, expires_in)).await.unwrap();
    }
    house.ask("builder", question("e4")).await.unwrap();
    let deadline = |found: Elicitation| found.question.expires_at.unwrap();
    let first = deadline(house.found("e1").await);
    let second = deadline(house.found("e2").await);
    let third = deadline(house.found("e3").await);
    // The first is queued, the others are in the room.
    let posted = house.post().await;
    house.hear(posted.iter().map(echo).collect()).await;

    assert_eq!(
        house
            .service
            .expire(first - 1, Some(Millis::MAX))
            .await
            .unwrap(),
        Some(first)
    );
    assert_eq!(house.state("e1").await, State::Open);
    assert_eq!(
        house
            .service
            .expire(second, Some(Millis::MAX))
            .await
            .unwrap(),
        Some(third)
    );
    for id in ["e1", "e2"] {
        let expired = house.found(id).await;
        assert_eq!(
            (expired.state, expired.closed_at, expired.answer),
            (State::Expired, Some(second), None),
            "{id}"
        );
        assert_eq!(
            house.told(id).await,
            ["elicitation.open", "elicitation.expired"]
        );
    }
    assert_eq!(house.state("e3").await, State::Open);
    assert_eq!(
        house
            .service
            .expire(third, Some(Millis::MAX))
            .await
            .unwrap(),
        None
    );
    assert_eq!(house.state("e4").await, State::Open);
    let posted = house.post().await;
    assert_eq!(posted.len(), 3);
    assert!(posted[0].body().contains("Expired without an answer"));
}

#[tokio::test]
async fn a_queued_question_that_expires_is_never_posted() {
    let mut house = House::start().await;
    house.ask("builder", due_in("e1", 1)).await.unwrap();
    house
        .service
        .expire(Millis::MAX, Some(Millis::MAX))
        .await
        .unwrap();
    assert_eq!(house.state("e1").await, State::Expired);
    assert!(house.post().await.is_empty());
}

#[tokio::test]
async fn many_questions_expire_at_once() {
    let house = House::start().await;
    for n in 0..250 {
        let asked = house.ask("builder", due_in(&format!("e{n}"), 1)).await;
        asked.unwrap();
    }
    assert_eq!(
        house
            .service
            .expire(Millis::MAX, Some(Millis::MAX))
            .await
            .unwrap(),
        None
    );
    assert_eq!(house.events("builder").await.len(), 250);
}

#[tokio::test]
async fn an_answer_sent_in_time_counts_when_it_is_read_late() {
    let mut house = House::start().await;
    house.ask("builder", due_in("e1", 1)).await.unwrap();
    let card = house.post().await.remove(0);
    let deadline = house.found("e1").await.question.expires_at.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let late = Heard {
        sent_at: deadline + 1,
        ..ben("$m1", "2")
    };
    let in_time = Heard {
        sent_at: deadline,
        ..mira("$m2", "1")
    };
    house.hear(vec![echo(&card), late, in_time]).await;
    assert_eq!(
        house.answer("e1").await,
        Some(("@mira:x.org".to_owned(), "deploy".to_owned()))
    );
    house
        .service
        .expire(Millis::MAX, Some(Millis::MAX))
        .await
        .unwrap();
    assert_eq!(house.state("e1").await, State::Answered);
}

#[tokio::test]
async fn what_is_pending_in_a_room_the_bot_is_removed_from_is_undeliverable() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house.ask("builder", question("e2")).await.unwrap();
    let elsewhere = Ask {
        room: "!other:x.org".to_owned(),
        ..question("e3")
    };
    house.ask("builder", elsewhere).await.unwrap();
    house
        .take_in(Batch {
            lost: vec![ROOM.to_owned()],
            ..Batch::default()
        })
        .await;
    for id in ["e1", "e2"] {
        let closed = house.found(id).await;
        assert_eq!(closed.state, State::Undeliverable, "{id}");
        assert_eq!(
            closed.reason.as_deref(),
            Some("the bot was removed from the room")
        );
    }
    assert_eq!(house.state("e3").await, State::Queued);
    assert_eq!(house.told("e2").await, ["elicitation.undeliverable"]);
}

#[tokio::test]
async fn an_answer_that_came_with_the_removal_still_counts() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house
        .take_in(Batch {
            heard: vec![mira("$m1", "1")],
            lost: vec![ROOM.to_owned()],
            ..Batch::default()
        })
        .await;
    assert_eq!(house.state("e1").await, State::Answered);
}

#[tokio::test]
async fn a_card_that_the_room_refuses_makes_its_question_undeliverable() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    house.ask("builder", question("e2")).await.unwrap();
    let sending = house.attempt().await.unwrap();
    house
        .service
        .refused(sending, "M_FORBIDDEN".to_owned())
        .await
        .unwrap();
    let closed = house.found("e1").await;
    assert_eq!(closed.state, State::Undeliverable);
    assert_eq!(closed.reason.as_deref(), Some("M_FORBIDDEN"));
    assert_eq!(closed.event_id, None);
    assert_eq!(house.told("e1").await, ["elicitation.undeliverable"]);
    // There is nothing to edit, and what comes next is not held up.
    let posted = house.post().await;
    assert_eq!(posted.len(), 1);
    assert_eq!(posted[0].sending.draft.key.id, "e2");
}

#[tokio::test]
async fn what_else_the_room_refuses_ends_no_question() {
    let mut house = House::start().await;
    let card = house.open_question("e1").await;
    house.hear(vec![to(&card, mira("$m1", "hm"))]).await;
    let notice = house.attempt().await.unwrap();
    assert_eq!(notice.draft.kind, SendKind::Notice);
    let refused = house.service.refused(notice, "M_FORBIDDEN".to_owned());
    refused.await.unwrap();
    assert_eq!(house.state("e1").await, State::Open);
    assert!(house.post().await.is_empty());
}

#[tokio::test]
async fn a_refusal_of_a_card_that_is_in_the_room_all_the_same_ends_nothing() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    let sending = house.attempt().await.unwrap();
    // The first try arrived although its answer was lost; the second is refused.
    let posted = Posted {
        event_id: "$card".to_owned(),
        sending: sending.clone(),
    };
    house.hear(vec![echo(&posted)]).await;
    let refused = house.service.refused(sending, "M_FORBIDDEN".to_owned());
    refused.await.unwrap();
    assert_eq!(house.state("e1").await, State::Open);
    house.hear(vec![mira("$m1", "1")]).await;
    assert_eq!(house.state("e1").await, State::Answered);
    house.post().await;
}

/// Pain: two-clocks.
#[tokio::test]
async fn a_deadline_waits_until_all_is_heard_that_was_said_before_it() {
    let mut house = House::start().await;
    for id in ["e1", "e2"] {
        house.ask("builder", due_in(id, 1_000)).await.unwrap();
    }
    let posted = house.post().await;
    house.hear(posted.iter().map(echo).collect()).await;
    let deadline = house.found("e2").await.question.expires_at.unwrap();
    let after = deadline + 10;
    for heard_until in [None, Some(deadline - 2_000)] {
        let looked = house.service.expire(after, heard_until).await.unwrap();
        assert_eq!(looked, Some(after + 200));
        assert_eq!(house.state("e2").await, State::Open);
    }
    // An answer sent in time arrives.
    let mut in_time = to(&posted[0].event_id, mira("$m1", "1"));
    in_time.sent_at = deadline - 1_500;
    house.hear(vec![in_time]).await;
    assert_eq!(house.state("e1").await, State::Answered);
    // The homeserver has told everything up to the deadline, and no answer was among it.
    let looked = house.service.expire(after, Some(deadline)).await.unwrap();
    assert_eq!(looked, None);
    assert_eq!(house.state("e2").await, State::Expired);
}

#[tokio::test]
async fn a_homeserver_that_stays_silent_holds_a_deadline_up_for_a_minute() {
    let house = House::start().await;
    house.ask("builder", due_in("e1", 1_000)).await.unwrap();
    let deadline = house.found("e1").await.question.expires_at.unwrap();
    house.service.expire(deadline + 59_999, None).await.unwrap();
    assert_eq!(house.state("e1").await, State::Queued);
    house.service.expire(deadline + 60_000, None).await.unwrap();
    assert_eq!(house.state("e1").await, State::Expired);
}
