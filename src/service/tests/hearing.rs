//! What is not heard in order, or not at once: holes in the timeline, missing keys.

use super::*;

fn hole() -> Gap {
    Gap {
        room_id: ROOM.to_owned(),
        prev_batch: "p1".to_owned(),
        since: Some("s1".to_owned()),
        found_at: 1,
    }
}

fn filling(heard: Vec<Heard>) -> Batch {
    Batch {
        heard,
        filled: Some(Filled {
            room_id: ROOM.to_owned(),
            prev_batch: "p1".to_owned(),
            never: false,
        }),
        ..Batch::default()
    }
}

/// The hole will never be filled.
fn never() -> Batch {
    let mut batch = filling(Vec::new());
    if let Some(filled) = &mut batch.filled {
        filled.never = true;
    }
    batch
}

/// It came after everything that was heard, also within the same millisecond.
fn locked(user_id: &str, event_id: &str) -> Undecrypted {
    Undecrypted {
        room_id: ROOM.to_owned(),
        event_id: event_id.to_owned(),
        sender: user_id.to_owned(),
        raw: "{}".to_owned(),
        heard_at: clock::now() + 1,
        told: false,
    }
}

impl House {
    async fn kept_locked(&self) -> Vec<Undecrypted> {
        let kept = self.service.book().read(|ledger| ledger.undecrypted());
        kept.await.unwrap()
    }

    async fn gaps(&self) -> Vec<Gap> {
        self.service
            .book()
            .read(|ledger| ledger.gaps())
            .await
            .unwrap()
    }
}

fn option_of(user_id: &str, id: &str) -> (String, String) {
    (user_id.to_owned(), id.to_owned())
}

#[tokio::test]
async fn behind_a_hole_nothing_is_decided_and_after_it_everything_in_order() {
    let mut house = House::start().await;
    let card = house.open_question("e1").await;
    house
        .take_in(Batch {
            heard: vec![to(&card, ben("$m2", "hm"))],
            gaps: vec![hole()],
            ..Batch::default()
        })
        .await;
    house.hear(vec![ben("$m3", "2")]).await;
    assert_eq!(house.state("e1").await, State::Open);
    assert!(house.post().await.is_empty());
    assert_eq!(house.gaps().await, [hole()]);

    // The hole held an older answer, and the filling reaches into what was kept.
    house
        .take_in(filling(vec![mira("$m1", "1"), to(&card, ben("$m2", "hm"))]))
        .await;
    assert_eq!(
        house.answer("e1").await,
        Some(option_of("@mira:x.org", "deploy"))
    );
    assert!(house.gaps().await.is_empty());
    let posted = house.post().await;
    assert_eq!(
        posted.iter().map(Posted::kind).collect::<Vec<_>>(),
        [SendKind::CardEdit, SendKind::Reaction, SendKind::Notice]
    );
    assert!(posted[2].body().contains("is already answered"));
}

#[tokio::test]
async fn a_hole_that_held_nothing_of_interest_lets_the_newer_answer_pass() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house
        .take_in(Batch {
            heard: vec![ben("$m2", "2"), mira("$m3", "1")],
            gaps: vec![hole()],
            ..Batch::default()
        })
        .await;
    house.take_in(filling(Vec::new())).await;
    assert_eq!(
        house.answer("e1").await,
        Some(option_of("@ben:x.org", "wait"))
    );
}

#[tokio::test]
async fn another_room_does_not_wait_for_a_hole() {
    let mut house = House::start().await;
    let elsewhere = Ask {
        room: "!other:x.org".to_owned(),
        ..question("e1")
    };
    house.ask("builder", elsewhere).await.unwrap();
    let card = house.post().await.remove(0);
    let there = |heard: Heard| Heard {
        room_id: "!other:x.org".to_owned(),
        ..heard
    };
    house
        .take_in(Batch {
            heard: vec![there(echo(&card)), there(mira("$m1", "1"))],
            gaps: vec![hole()],
            ..Batch::default()
        })
        .await;
    assert_eq!(house.state("e1").await, State::Answered);
}

#[tokio::test]
async fn a_card_whose_echo_is_behind_a_hole_is_answered_after_it() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    let card = house.post().await.remove(0);
    house
        .take_in(Batch {
            heard: vec![ben("$m2", "2"), echo(&card), ben("$m3", "1")],
            gaps: vec![hole()],
            ..Batch::default()
        })
        .await;
    assert!(!house.found("e1").await.visible);
    house.take_in(filling(vec![mira("$m1", "2")])).await;
    assert_eq!(
        house.answer("e1").await,
        Some(option_of("@ben:x.org", "deploy"))
    );
}

#[tokio::test]
async fn a_hole_is_filled_only_together_with_those_found_meanwhile() {
    let mut house = House::start().await;
    let card = house.open_question("e1").await;
    let behind = |gap: Gap, heard: Heard| Batch {
        heard: vec![heard],
        gaps: vec![gap],
        ..Batch::default()
    };
    house.take_in(behind(hole(), ben("$m3", "2"))).await;
    let newer = Gap {
        prev_batch: "p2".to_owned(),
        since: Some("s2".to_owned()),
        ..hole()
    };
    house
        .take_in(behind(newer.clone(), to(&card, ben("$m5", "hm"))))
        .await;
    // What was read up to the older hole says nothing of what lies in the newer one.
    house.take_in(filling(vec![mira("$m1", "1")])).await;
    assert_eq!(house.state("e1").await, State::Open);
    assert_eq!(house.gaps().await, [hole(), newer]);
    let mut whole = filling(vec![mira("$m1", "1"), ben("$m3", "2"), mira("$m4", "2")]);
    whole.filled.as_mut().unwrap().prev_batch = "p2".to_owned();
    house.take_in(whole).await;
    assert_eq!(
        house.answer("e1").await,
        Some(option_of("@mira:x.org", "deploy"))
    );
    assert!(house.gaps().await.is_empty());
}

#[tokio::test]
async fn what_was_posted_in_a_hole_that_is_never_filled_counts_as_seen() {
    let mut house = House::start().await;
    for id in ["e1", "e2"] {
        house.ask("builder", question(id)).await.unwrap();
    }
    let posted = house.post().await;
    // The first card is in the hole; the second comes after it, and after Ben's words.
    house
        .take_in(Batch {
            heard: vec![ben("$m1", "2"), echo(&posted[1])],
            gaps: vec![hole()],
            ..Batch::default()
        })
        .await;
    house.take_in(never()).await;
    assert_eq!(
        house.answer("e1").await,
        Some(option_of("@ben:x.org", "wait"))
    );
    let second = house.found("e2").await;
    assert_eq!((second.state, second.visible), (State::Open, true));
    assert!(house.gaps().await.is_empty());
}

#[tokio::test]
async fn a_hole_that_is_never_filled_makes_nothing_visible_before_its_place() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    let card = house.post().await.remove(0);
    house
        .take_in(Batch {
            heard: vec![mira("$m1", "1"), echo(&card)],
            gaps: vec![hole()],
            ..Batch::default()
        })
        .await;
    house.take_in(never()).await;
    assert_eq!(house.state("e1").await, State::Open);
    assert!(house.found("e1").await.visible);
}

#[tokio::test]
async fn without_a_rooms_rules_nobody_answers_there() {
    let mut house = House::start().await;
    let card = house.open_question("e1").await;
    let batch = Batch {
        heard: vec![mira("$m1", "1"), to(&card, ben("$m2", "hm"))],
        ..Batch::default()
    };
    house.service.take_in(batch).await.unwrap();
    assert_eq!(house.state("e1").await, State::Open);
    assert!(house.post().await.is_empty());
}

#[tokio::test]
async fn the_rules_of_the_room_are_those_of_the_response() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    let rules = Rules {
        users: Some(vec!["@ben:x.org".to_owned()]),
        ..Rules::default()
    };
    let rooms: HashMap<String, (Rules, Bot)> = [(ROOM.to_owned(), (rules, Bot::default()))].into();
    house
        .take_in(Batch {
            heard: vec![mira("$m1", "1")],
            rooms: rooms.clone(),
            ..Batch::default()
        })
        .await;
    assert_eq!(house.state("e1").await, State::Open);
    house
        .take_in(Batch {
            heard: vec![ben("$m2", "1")],
            rooms,
            ..Batch::default()
        })
        .await;
    assert_eq!(house.state("e1").await, State::Answered);
}

#[tokio::test]
async fn a_message_without_its_key_is_kept_told_of_once_and_read_when_the_key_comes() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    let kept = locked("@mira:x.org", "$m1");
    let missing = Batch {
        undecrypted: vec![kept.clone()],
        ..Batch::default()
    };
    house.take_in(missing.clone()).await;
    house.take_in(missing.clone()).await;
    assert_eq!(house.kept_locked().await, std::slice::from_ref(&kept));

    let unreadable = Batch {
        unreadable: vec![kept.clone()],
        ..Batch::default()
    };
    house.take_in(unreadable.clone()).await;
    house.take_in(unreadable).await;
    let posted = house.post().await;
    assert_eq!(posted.len(), 1);
    assert_eq!(
        posted[0].sending.draft.content["m.relates_to"]["m.in_reply_to"]["event_id"],
        "$m1"
    );
    assert!(posted[0].body().contains("could not decrypt"));
    assert!(house.kept_locked().await[0].told);

    let read = Batch {
        heard: vec![Heard {
            trust: Trust::Verified,
            ..mira("$m1", "1")
        }],
        resolved: vec![(ROOM.to_owned(), "$m1".to_owned())],
        ..Batch::default()
    };
    house.take_in(read.clone()).await;
    house.take_in(read).await;
    assert_eq!(
        house.answer("e1").await,
        Some(option_of("@mira:x.org", "deploy"))
    );
    assert!(house.kept_locked().await.is_empty());
    // What was read is not kept again, should it come again without its key.
    house.take_in(missing).await;
    assert!(house.kept_locked().await.is_empty());
}

#[tokio::test]
async fn a_person_is_told_once_per_question_that_they_cannot_be_read() {
    let mut house = House::start().await;
    let early = locked("@mira:x.org", "$m0");
    tokio::time::sleep(Duration::from_millis(2)).await;
    house.open_question("e1").await;
    let late = [
        locked("@mira:x.org", "$m1"),
        locked("@mira:x.org", "$m2"),
        locked("@ben:x.org", "$m3"),
    ];
    let unreadable: Vec<Undecrypted> = [early].into_iter().chain(late).collect();
    house
        .take_in(Batch {
            undecrypted: unreadable.clone(),
            ..Batch::default()
        })
        .await;
    house
        .take_in(Batch {
            unreadable,
            ..Batch::default()
        })
        .await;
    let posted = house.post().await;
    let told: Vec<&Value> = posted
        .iter()
        .map(|posted| &posted.sending.draft.content["m.relates_to"]["m.in_reply_to"]["event_id"])
        .collect();
    // The first was sent before anything was asked.
    assert_eq!(told, ["$m1", "$m3"]);
    assert!(house.kept_locked().await.iter().all(|kept| kept.told));
}

/// A message whose key is missing for so long that its sender is told.
async fn unreadable(house: &House) {
    let kept = locked("@mira:x.org", "$m1");
    for batch in [
        Batch {
            undecrypted: vec![kept.clone()],
            ..Batch::default()
        },
        Batch {
            unreadable: vec![kept],
            ..Batch::default()
        },
    ] {
        house.take_in(batch).await;
    }
}

fn read_after_all(body: &str) -> Batch {
    Batch {
        heard: vec![mira("$m1", body)],
        resolved: vec![(ROOM.to_owned(), "$m1".to_owned())],
        ..Batch::default()
    }
}

#[tokio::test]
async fn the_word_that_a_message_could_not_be_read_is_taken_back_when_it_is() {
    for body in ["1", "good morning"] {
        let mut house = House::start().await;
        house.open_question("e1").await;
        unreadable(&house).await;
        let notice = house.post().await.remove(0);
        assert!(notice.body().contains("could not decrypt"));
        house.take_in(read_after_all(body)).await;
        house.take_in(read_after_all(body)).await;
        let posted = house.post().await;
        let edit = &posted[0];
        assert_eq!(edit.kind(), SendKind::NoticeEdit);
        let in_place = house
            .service
            .said_before(SendKind::Notice, &edit.sending.draft)
            .await;
        assert_eq!(in_place.unwrap(), Some(notice.event_id));
        let new = &edit.sending.draft.content["m.new_content"];
        assert_eq!(new["body"], "I have read this message by now.");
        assert_eq!(new["msgtype"], "m.notice");
        let after: Vec<SendKind> = posted[1..].iter().map(Posted::kind).collect();
        let expected: &[SendKind] = match body {
            "1" => &[SendKind::CardEdit, SendKind::Reaction],
            _ => &[],
        };
        assert_eq!(after, expected, "{body}");
    }
}

#[tokio::test]
async fn that_word_is_not_said_at_all_when_the_message_is_read_before_it_is_sent() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    unreadable(&house).await;
    house.take_in(read_after_all("good morning")).await;
    assert!(house.post().await.is_empty());
}

#[tokio::test]
async fn a_message_that_is_read_late_is_not_for_a_question_that_was_asked_since() {
    let mut house = House::start().await;
    let early = locked("@mira:x.org", "$m1");
    house
        .take_in(Batch {
            undecrypted: vec![early],
            ..Batch::default()
        })
        .await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    house.open_question("e1").await;
    house
        .take_in(Batch {
            heard: vec![mira("$m1", "1")],
            resolved: vec![(ROOM.to_owned(), "$m1".to_owned())],
            ..Batch::default()
        })
        .await;
    assert_eq!(house.state("e1").await, State::Open);
    assert!(house.kept_locked().await.is_empty());
}

#[tokio::test]
async fn a_message_that_becomes_readable_behind_a_hole_is_read_after_it() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house
        .take_in(Batch {
            undecrypted: vec![locked("@mira:x.org", "$m1")],
            gaps: vec![hole()],
            ..Batch::default()
        })
        .await;
    let read = Batch {
        heard: vec![mira("$m1", "1")],
        resolved: vec![(ROOM.to_owned(), "$m1".to_owned())],
        ..Batch::default()
    };
    house.take_in(read.clone()).await;
    assert_eq!(house.state("e1").await, State::Open);
    assert_eq!(house.kept_locked().await.len(), 1);
    house.take_in(filling(Vec::new())).await;
    house.take_in(read).await;
    assert_eq!(house.state("e1").await, State::Answered);
    assert!(house.kept_locked().await.is_empty());
}

#[tokio::test]
async fn a_message_that_is_redacted_before_its_key_comes_is_never_read() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house
        .take_in(Batch {
            undecrypted: vec![locked("@mira:x.org", "$m1")],
            ..Batch::default()
        })
        .await;
    house.hear(vec![redaction("$m2", "$m1")]).await;
    assert!(house.kept_locked().await.is_empty());
}

#[tokio::test]
async fn a_message_that_can_never_be_read_is_let_go() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house
        .take_in(Batch {
            undecrypted: vec![locked("@mira:x.org", "$m1")],
            ..Batch::default()
        })
        .await;
    house
        .take_in(Batch {
            resolved: vec![(ROOM.to_owned(), "$m1".to_owned())],
            ..Batch::default()
        })
        .await;
    assert!(house.kept_locked().await.is_empty());
    assert_eq!(house.state("e1").await, State::Open);
}

#[tokio::test]
async fn a_deadline_waits_for_a_hole_in_which_an_answer_may_lie_but_not_for_ever() {
    for is_filled in [true, false] {
        let mut house = House::start().await;
        let in_time = Ask {
            expires_in: Some(1_000),
            ..question("e1")
        };
        house.ask("builder", in_time).await.unwrap();
        let posted = house.post().await;
        house.hear(vec![echo(&posted[0])]).await;
        let now = clock::now();
        let found = Gap {
            found_at: now,
            ..hole()
        };
        let gaps = vec![found];
        house
            .take_in(Batch {
                gaps,
                ..Batch::default()
            })
            .await;
        let late = now + 2_000;
        assert_eq!(
            house.service.expire(late, Some(Millis::MAX)).await.unwrap(),
            Some(late + 200)
        );
        assert_eq!(house.state("e1").await, State::Open);
        if is_filled {
            let mut answer = mira("$m1", "1");
            answer.sent_at = now;
            house.take_in(filling(vec![answer])).await;
            assert_eq!(house.state("e1").await, State::Answered);
        } else {
            let much_later = now + 11 * 60 * 1_000;
            assert_eq!(
                house
                    .service
                    .expire(much_later, Some(Millis::MAX))
                    .await
                    .unwrap(),
                None
            );
            assert_eq!(house.state("e1").await, State::Expired);
        }
    }
}
