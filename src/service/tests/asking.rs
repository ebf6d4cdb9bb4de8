//! Asking: what is new, what is a repeat, what takes another question's place, what is refused.

use super::*;

/// What a refusal says.
#[track_caller]
fn refusal(asked: Result<Asked, AskError>) -> String {
    match asked {
        Err(error) => format!("{error:?}"),
        Ok(asked) => panic!("it was asked: {asked:?}"),
    }
}

async fn repeats(house: &House, ask: Ask) -> String {
    let asked = house.ask("builder", ask).await.unwrap();
    assert!(!asked.created, "it is new");
    asked.elicitation.question.key.id
}

fn keyed(key: &str, id: Option<&str>) -> Ask {
    Ask {
        elicitation_id: id.map(str::to_owned),
        idempotency_key: Some(key.to_owned()),
        ..question("keyed")
    }
}

#[tokio::test]
async fn a_question_is_queued_under_its_id_and_the_next_tag() {
    let house = House::start().await;
    for (id, tag) in [("e1", "q1"), ("e2", "q2")] {
        let asked = house.ask("builder", question(id)).await.unwrap();
        assert!(asked.created);
        assert_eq!(asked.elicitation, house.found(id).await);
        assert_eq!(asked.elicitation.state, State::Queued);
        assert_eq!(asked.elicitation.tag, tag);
    }
    let elsewhere = Ask {
        room: "!other:x.org".to_owned(),
        ..question("e3")
    };
    let asked = house.ask("builder", elsewhere).await.unwrap();
    assert_eq!(asked.elicitation.tag, "q1", "tags are per room");
    assert!(house.events("builder").await.is_empty());
}

#[tokio::test]
async fn a_question_without_an_id_gets_one() {
    let house = House::start().await;
    let ask = Ask {
        elicitation_id: None,
        ..question("e1")
    };
    let mut ids = Vec::new();
    for _ in 0..2 {
        let asked = house.ask("builder", ask.clone()).await.unwrap();
        assert!(asked.created);
        ids.push(asked.elicitation.question.key.id);
    }
    assert!(ids.iter().all(|id| id.starts_with("elc_")));
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn the_tag_is_printed_only_where_another_question_is_pending() {
    let mut house = House::start().await;
    for id in ["e1", "e2"] {
        house.ask("builder", question(id)).await.unwrap();
    }
    let posted = house.post().await;
    assert!(!posted[0].body().contains("q1"), "{}", posted[0].body());
    assert!(posted[1].body().contains("This one is q2"));
}

#[tokio::test]
async fn the_same_question_under_the_same_id_is_a_repeat_and_another_a_conflict() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    assert_eq!(repeats(&house, question("e1")).await, "e1");
    let other = Ask {
        prompt: "Something else?".to_owned(),
        ..question("e1")
    };
    assert_eq!(
        refusal(house.ask("builder", other).await),
        r#"Conflict { id: "e1" }"#
    );
    assert_eq!(house.post().await.len(), 1, "one card");
    // Also when it is over.
    house.hear(vec![to("$own1", mira("$m1", "1"))]).await;
    let asked = house.ask("builder", question("e1")).await.unwrap();
    assert_eq!(
        (asked.created, asked.elicitation.state),
        (false, State::Answered)
    );
}

#[tokio::test]
async fn an_idempotency_key_makes_a_repeat_or_a_conflict_of_itself() {
    let house = House::start().await;
    let first = house.ask("builder", keyed("k1", None)).await.unwrap();
    let id = first.elicitation.question.key.id;
    assert_eq!(repeats(&house, keyed("k1", None)).await, id);
    assert_eq!(repeats(&house, keyed("k1", Some(&id))).await, id);
    let conflict = format!("Conflict {{ id: {id:?} }}");
    let other = Ask {
        prompt: "Something else?".to_owned(),
        ..keyed("k1", None)
    };
    assert_eq!(refusal(house.ask("builder", other).await), conflict);
    // The key says one question, the id another.
    let other_id = keyed("k1", Some("e9"));
    assert_eq!(refusal(house.ask("builder", other_id).await), conflict);
    house.ask("builder", keyed("k2", Some("e2"))).await.unwrap();
    assert_eq!(
        refusal(house.ask("builder", keyed("k1", Some("e2"))).await),
        r#"Conflict { id: "e2" }"#
    );
    // Another origin's keys are its own.
    let asked = house.ask("tester", keyed("k1", None)).await.unwrap();
    assert!(asked.created);
}

#[tokio::test]
async fn a_repeat_is_answered_whatever_became_of_the_room() {
    let house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    house.room(
        ROOM,
        Ok(RoomFacts {
            invited_by: None,
            joined: false,
            may_send: false,
            ..facts(ROOM)
        }),
    );
    assert_eq!(repeats(&house, question("e1")).await, "e1");
    let new = house.ask("builder", question("e2")).await;
    assert!(matches!(new, Err(AskError::RoomNotJoined { .. })));
}

#[tokio::test]
async fn asked_many_times_at_once_it_is_asked_once() {
    let mut house = House::start().await;
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let service = house.service.clone();
            tokio::spawn(async move { service.ask("builder", question("e1")).await.unwrap() })
        })
        .collect();
    let mut created = 0;
    for asked in asking {
        created += u32::from(asked.await.unwrap().created);
    }
    assert_eq!(created, 1);
    assert_eq!(house.post().await.len(), 1);
}

/// Pain: same-id.
#[tokio::test]
async fn two_origins_use_the_same_id_and_neither_learns_of_the_others() {
    let mut house = House::start().await;
    let builders = house.ask("builder", question("e1")).await.unwrap();
    let testers = Ask {
        prompt: "The tester's own?".to_owned(),
        ..question("e1")
    };
    let testers = house.ask("tester", testers).await.unwrap();
    assert!(builders.created && testers.created);
    let posted = house.post().await;
    house.hear(posted.iter().map(echo).collect()).await;
    house.hear(vec![mira("$m1", "q2 1")]).await;
    assert_eq!(house.state("e1").await, State::Open);
    let testers = house.service.find(&Key::new("tester", "e1")).await.unwrap();
    assert_eq!(testers.unwrap().state, State::Answered);
    let told = |events: Vec<Event>| -> Vec<String> {
        events.into_iter().map(|event| event.event_type).collect()
    };
    assert_eq!(told(house.events("builder").await), ["elicitation.open"]);
    assert_eq!(
        told(house.events("tester").await),
        ["elicitation.open", "elicitation.answered"]
    );
    let nobodys = house.service.find(&Key::new("hooked", "e1")).await.unwrap();
    assert_eq!(nobodys, None);
}

fn about(id: &str, board_id: Option<&str>, card_id: Option<&str>) -> Ask {
    Ask {
        board_id: board_id.map(str::to_owned),
        card_id: card_id.map(str::to_owned),
        ..question(id)
    }
}

#[tokio::test]
async fn asking_again_about_a_card_takes_the_older_questions_place() {
    let mut house = House::start().await;
    let older = about("e1", Some("b"), Some("c"));
    house.ask("builder", older).await.unwrap();
    let card = house.post().await.remove(0);
    house.hear(vec![echo(&card)]).await;
    let newer = about("e2", Some("b"), Some("c"));
    house.ask("builder", newer).await.unwrap();

    let old = house.found("e1").await;
    assert_eq!(old.state, State::Superseded);
    assert_eq!(old.reason.as_deref(), Some("asked again as e2"));
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.superseded"]
    );
    let posted = house.post().await;
    assert_eq!(
        posted.iter().map(Posted::kind).collect::<Vec<_>>(),
        [SendKind::CardEdit, SendKind::Card]
    );
    assert!(posted[0].body().contains("Replaced by a newer question"));
    // Nothing else is open there now, so no tag is needed.
    assert!(!posted[1].body().contains("q2"));
}

#[tokio::test]
async fn nothing_else_is_superseded() {
    let house = House::start().await;
    // The card of the first is its own id by default: that supersedes nothing, and is not found
    // by the one that names it.
    for ask in [
        about("e1", Some("b"), None),
        about("e2", Some("b"), None),
        about("e3", Some("b"), Some("e1")),
        about("e4", Some("other"), Some("e1")),
        about("e5", None, Some("e1")),
        about("e6", Some("b"), Some("other")),
    ] {
        house.ask("builder", ask).await.unwrap();
    }
    let others = about("e7", Some("b"), Some("e1"));
    house.ask("tester", others).await.unwrap();
    for id in ["e1", "e2", "e3", "e4", "e5", "e6"] {
        assert_eq!(house.state(id).await, State::Queued, "{id}");
    }
}

#[tokio::test]
async fn a_question_that_is_refused_supersedes_nothing() {
    let house = House::start().await;
    house
        .ask("builder", about("e1", None, Some("c")))
        .await
        .unwrap();
    // It passes every limit, but not all of them together.
    let too_large = Ask {
        options: (0..50)
            .map(|number| CardOption::new(number.to_string(), "\"".repeat(512)))
            .collect(),
        ..about("e2", None, Some("c"))
    };
    assert!(matches!(
        house.ask("builder", too_large).await,
        Err(AskError::Invalid { field, .. }) if field == "options"
    ));
    assert_eq!(house.state("e1").await, State::Queued);
    let next = house.ask("builder", question("e3")).await.unwrap();
    assert_eq!(next.elicitation.tag, "q2", "not even a tag was used up");
}

#[tokio::test]
async fn a_room_that_cannot_be_asked_in_is_refused_with_what_helps() {
    let house = House::start().await;
    let away = RoomTrouble::Away("timed out".to_owned());
    house.room("#away:x.org", Err(away));
    house.room(
        "!left:x.org",
        Ok(RoomFacts {
            invited_by: None,
            joined: false,
            may_send: false,
            ..facts("!left:x.org")
        }),
    );
    house.room(
        "!mute:x.org",
        Ok(RoomFacts {
            may_send: false,
            ..facts("!mute:x.org")
        }),
    );
    for (room, expected) in [
        (
            "deploys",
            r#"Invalid { field: "room", rule: "must be a room id like !abc or an alias like #team:example.org" }"#,
        ),
        (
            "#nowhere:x.org",
            r#"Invalid { field: "room", rule: "must be a room that exists; there is no #nowhere:x.org" }"#,
        ),
        (
            "#away:x.org",
            r#"Unavailable { message: "the alias #away:x.org cannot be looked up now: timed out" }"#,
        ),
        (
            "!left:x.org",
            r#"RoomNotJoined { message: "the bot is not in !left:x.org: invite @elicit:x.org" }"#,
        ),
        (
            "!mute:x.org",
            r#"NoPowerToSend { message: "the bot may not send messages in !mute:x.org: give @elicit:x.org the power to" }"#,
        ),
    ] {
        let ask = Ask {
            room: room.to_owned(),
            ..question("e1")
        };
        assert_eq!(refusal(house.ask("builder", ask).await), expected);
    }
    let nothing = house
        .service
        .find(&Key::new("builder", "e1"))
        .await
        .unwrap();
    assert_eq!(nothing, None);
}

#[tokio::test]
async fn an_agent_asks_only_in_its_rooms_and_learns_of_no_others() {
    let house = House::start().await;
    house.room(
        "!team:x.org",
        Ok(RoomFacts {
            aliases: vec!["#team:x.org".to_owned()],
            ..facts("!team:x.org")
        }),
    );
    house.room("#team:x.org", Ok(facts("!team:x.org")));
    house.room("#deploys:x.org", Ok(facts(ROOM)));
    house.room(
        "#away:x.org",
        Err(RoomTrouble::Away("timed out".to_owned())),
    );
    house.room(
        "!left:x.org",
        Ok(RoomFacts {
            invited_by: None,
            joined: false,
            ..facts("!left:x.org")
        }),
    );
    for (n, room) in [ROOM, "#deploys:x.org", "!team:x.org", "#team:x.org"]
        .into_iter()
        .enumerate()
    {
        let ask = Ask {
            room: room.to_owned(),
            ..question(&format!("e{n}"))
        };
        assert!(house.ask("tester", ask).await.is_ok(), "{room}");
    }
    // Whether they exist, and whether the bot is there, is the same to it.
    for room in [
        "!other:x.org",
        "!left:x.org",
        "#nowhere:x.org",
        "#away:x.org",
    ] {
        let ask = Ask {
            room: room.to_owned(),
            ..question("e9")
        };
        assert_eq!(
            refusal(house.ask("tester", ask).await),
            format!(r#"RoomNotAllowed {{ message: "this agent may not ask in {room}" }}"#)
        );
    }
    let unknown = house.ask("nobody", question("e1")).await;
    assert!(matches!(unknown, Err(AskError::RoomNotAllowed { .. })));
}

#[tokio::test]
async fn the_room_is_watched_from_before_the_question_is_stored_until_it_is_over() {
    let mut house = House::start().await;
    let talk = Said {
        body: "good morning".to_owned(),
        ..Said::default()
    };
    assert!(!house.service.wants(ROOM, &talk));
    house.open_question("e1").await;
    assert!(house.service.wants(ROOM, &talk));
    house.hear(vec![mira("$m1", "1")]).await;
    // Ben may be answering at this moment.
    assert!(house.service.wants(ROOM, &talk));
    house.a_minute_passes();
    house.hear(vec![mira("$m2", "done")]).await;
    assert!(!house.service.wants(ROOM, &talk));
    // A question that is refused leaves no room on the watch for long.
    let refused = Ask {
        prompt: "Something else?".to_owned(),
        ..question("e1")
    };
    house.ask("builder", refused).await.unwrap_err();
    house.hear(vec![mira("$m3", "good morning")]).await;
    assert!(!house.service.wants(ROOM, &talk));
}
