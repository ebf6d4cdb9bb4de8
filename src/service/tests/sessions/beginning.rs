//! How sessions begin, and what is said to which.

use super::*;

#[tokio::test]
async fn a_person_begins_a_session_by_the_agents_call() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    let session = house.session(&thread).await;
    assert_eq!(session.agent, "builder");
    assert_eq!(session.room_id, ROOM);
    assert_eq!(session.title.as_deref(), Some("look at the flaky test"));
    assert_eq!(session.user_id.as_deref(), Some("@mira:x.org"));
    assert_eq!(session.status, Status::Active);
    assert_eq!(session.root.as_deref(), Some(thread.root.as_str()));
    let heard = house.events("builder").await;
    assert_eq!(heard.len(), 1);
    let body = &heard[0].body;
    assert_eq!(body["action"], "created");
    assert_eq!(body["agent_session"]["id"], session.id.as_str());
    let activity = &body["agent_activity"];
    assert_eq!(
        activity["content"],
        json!({ "type": "prompt", "body": "look at the flaky test" })
    );
    assert_eq!(
        activity["user"],
        json!({ "user_id": "@mira:x.org", "display_name": null })
    );
    assert!(
        house.service.wants(ROOM, &Said::default()),
        "the room is watched"
    );
}

#[tokio::test]
async fn a_session_begins_by_the_command_too() {
    let mut house = House::start().await;
    house
        .hear(vec![mira("$m1", "!new Builder: look\nat it")])
        .await;
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Root]);
    let relation = &posted[0].sending.draft.content["m.relates_to"];
    assert_eq!(relation["m.in_reply_to"]["event_id"], "$m1");
    let session = house.only_session("builder").await;
    assert_eq!(session.title.as_deref(), Some("look"));
    assert_eq!(house.events("builder").await.len(), 1);
}

#[tokio::test]
async fn every_call_begins_a_session_of_its_own() {
    let mut house = House::start().await;
    house
        .hear(vec![
            mira("$m1", "builder: one"),
            ben("$m2", "@builder, two"),
            mira("$m1", "builder: one"),
        ])
        .await;
    let titles: Vec<Option<String>> = (house.all_of("builder").await.into_iter())
        .map(|session| session.title)
        .collect();
    assert_eq!(titles, [Some("two".to_owned()), Some("one".to_owned())]);
    assert_eq!(kinds(&house.post().await), [SendKind::Root, SendKind::Root]);
}

#[tokio::test]
async fn an_agent_begins_one_by_itself_and_is_not_told_so() {
    let mut house = House::start().await;
    let new = NewSession {
        room: ROOM.to_owned(),
        title: Some("Nightly".to_owned()),
        user_id: Some("@mira:x.org".to_owned()),
        prompt: Some("look at the build".to_owned()),
    };
    let thread = house.begun_by("builder", new).await;
    assert_eq!(house.events("builder").await, []);
    assert_eq!(house.words(&thread).await, ["look at the build"]);
    let session = house.session(&thread).await;
    assert_eq!(session.title.as_deref(), Some("Nightly"));
}

#[tokio::test]
async fn a_prompt_without_a_person_is_refused() {
    let house = House::start().await;
    for (user_id, field) in [(None, "user_id"), (Some("mira"), "user_id")] {
        let new = NewSession {
            room: ROOM.to_owned(),
            user_id: user_id.map(str::to_owned),
            prompt: Some("look".to_owned()),
            title: None,
        };
        let refused = house.service.begin_session("builder", new).await;
        let Err(AskError::Invalid { field: named, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(named, field);
    }
    assert_eq!(house.all_of("builder").await, []);
}

/// "in a room in which that agent may ask"
#[tokio::test]
async fn an_agent_that_has_no_business_in_a_room_is_begun_there_by_nobody() {
    let mut house = House::start().await;
    let elsewhere = |heard: Heard| Heard {
        room_id: "!other:x.org".to_owned(),
        ..heard
    };
    house
        .hear(vec![elsewhere(mira("$m1", "tester: look at it"))])
        .await;
    assert_eq!(house.all_of("tester").await, []);
    assert!(house.post().await.is_empty(), "that is just talk there");
    house
        .hear(vec![elsewhere(mira("$m2", "!new tester look at it"))])
        .await;
    assert_eq!(house.all_of("tester").await, []);
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Notice]);
    assert!(posted[0].body().contains("builder"));
    let new = NewSession {
        room: "!other:x.org".to_owned(),
        ..NewSession::default()
    };
    let refused = house.service.begin_session("tester", new).await;
    assert!(
        matches!(refused, Err(AskError::RoomNotAllowed { .. })),
        "{refused:?}"
    );
    // By one of its names it is the room that the configuration means.
    let mut batch = only(&["@mira:x.org"], vec![]);
    let rules = batch.rooms.remove(ROOM).unwrap();
    batch.rooms.insert("!other:x.org".to_owned(), rules);
    let names = vec!["#team:x.org".to_owned()];
    batch.names.insert("!other:x.org".to_owned(), names);
    batch.heard = vec![elsewhere(mira("$m3", "tester: look at it"))];
    house.take_in(batch).await;
    let begun = house.only_session("tester").await;
    assert_eq!(begun.room_id, "!other:x.org");
}

#[tokio::test]
async fn an_unknown_agent_is_nobody_and_the_command_says_who_there_is() {
    let mut house = House::start().await;
    house.hear(vec![mira("$m1", "scout: look at it")]).await;
    assert!(house.post().await.is_empty());
    for (event, body) in [
        ("$m2", "!new scout look at it"),
        ("$m3", "!new builder"),
        ("$m4", "!new"),
    ] {
        house.hear(vec![mira(event, body)]).await;
        let posted = house.post().await;
        assert_eq!(kinds(&posted), [SendKind::Notice], "{body}");
        assert_eq!(posted[0].sending.draft.replies_to(), Some(event));
        assert!(posted[0].body().contains("tester"), "{body}");
    }
    assert_eq!(house.all_of("builder").await, []);
}

/// Pain: anyone.
#[tokio::test]
async fn whoever_may_not_answer_here_has_no_say_in_sessions() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    for heard in [
        ben("$b1", "builder: delete everything"),
        ben("$b2", "!new builder delete everything"),
        within(&thread, ben("$b3", "delete everything")),
        within(&thread, ben("$b4", "!stop")),
        within(&thread, ben("$b5", "!undelegate")),
        within(&thread, ben("$b6", "!delegate tester")),
        to(&thread.root, ben("$b7", "!stop")),
    ] {
        house.take_in(only(&["@mira:x.org"], vec![heard])).await;
    }
    assert_eq!(house.status(&thread).await, Status::Active);
    assert_eq!(house.only_session("builder").await.id, thread.id);
    assert_eq!(house.all_of("tester").await, []);
    assert_eq!(house.heard_in("builder", &thread).await.len(), 1);
    // They are told so once, about the session that there is.
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Notice]);
    assert_eq!(posted[0].sending.draft.replies_to(), Some("$b3"));
    let mut gone = within(&thread, mira("$m2", "!stop"));
    gone.sender.joined = false;
    house.hear(vec![gone]).await;
    assert_eq!(house.status(&thread).await, Status::Active);
    assert!(house.post().await.is_empty());
}

/// "Everything directed in the thread is a prompt."
#[tokio::test]
async fn what_is_said_in_the_thread_or_to_what_stands_in_it_is_a_prompt() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .act("builder", &thread, &of("response", "It was the clock."))
        .await
        .unwrap();
    let posted = house.post().await;
    let message = posted
        .iter()
        .find(|posted| posted.kind() == SendKind::InThread);
    let message = message.unwrap().event_id.clone();
    house
        .hear(vec![
            within(&thread, ben("$b1", " and the other one? ")),
            to(&thread.root, mira("$m2", "2")),
            to(&message, mira("$m3", "thanks")),
            within(&thread, mira("$m4", "\u{200B} ")),
            mira("$m5", "nothing to do with it"),
            within(&thread, mira("$m6", "please stop there")),
        ])
        .await;
    assert_eq!(
        house.heard_in("builder", &thread).await[1..],
        [
            "prompted: and the other one?",
            "prompted: 2",
            "prompted: thanks",
            "prompted: please stop there",
        ]
    );
    assert_eq!(house.status(&thread).await, Status::Active);
}

#[tokio::test]
async fn a_call_within_a_thread_is_said_to_that_session() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![within(
            &thread,
            mira("$m2", "tester: what do you say?"),
        )])
        .await;
    assert_eq!(house.all_of("tester").await, []);
    let heard = house.heard_in("builder", &thread).await;
    assert_eq!(heard[1], "prompted: tester: what do you say?");
}

#[tokio::test]
async fn two_sessions_in_one_room_do_not_hear_each_other() {
    let mut house = House::start().await;
    let one = house.begun("builder").await;
    let two = house.begun("tester").await;
    let card = house.select("builder", &one).await;
    house.select("tester", &two).await;
    house
        .hear(vec![
            within(&two, mira("$m1", "1")),
            within(&one, ben("$b1", "for the builder")),
            to(&card, mira("$m2", "still for the builder")),
        ])
        .await;
    assert_eq!(
        house.heard_in("builder", &one).await[1..],
        [
            "prompted: for the builder",
            "prompted: still for the builder"
        ]
    );
    assert_eq!(
        house.heard_in("tester", &two).await[1..],
        ["prompted: staging"]
    );
    for (agent, thread) in [("builder", &one), ("tester", &two)] {
        let events = house.events(agent).await;
        let mut own = events
            .iter()
            .filter(|event| event.event_type.starts_with("agent_session"));
        assert!(own.all(|event| event.key.id == thread.id));
        let other = if agent == "builder" { &two } else { &one };
        let refused = house.act(agent, other, &of("thought", "hm")).await;
        assert!(
            matches!(refused, Err(SessionError::NotFound)),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house.select("builder", &thread).await;
    let before = (house.session(&thread).await, house.asks(&thread).await);
    let house = house.restart().await;
    assert!(house.service.wants(ROOM, &Said::default()));
    assert_eq!(
        (house.session(&thread).await, house.asks(&thread).await),
        before
    );
    house.hear(vec![within(&thread, mira("$m2", "2"))]).await;
    assert_eq!(
        house.heard_in("builder", &thread).await[1..],
        ["prompted: production"]
    );
    let house = house.restart().await;
    house
        .hear(vec![within(&thread, mira("$m3", "!stop"))])
        .await;
    let house = house.restart().await;
    assert_eq!(house.status(&thread).await, Status::Stopping);
    house.later(61_000).await;
    let over = house.session(&thread).await;
    assert_eq!(over.end_reason(), Some(EndReason::Stopped));
}

#[tokio::test]
async fn a_chatty_agent_in_a_room_that_is_away_is_one_edit_when_it_is_back() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    for minute in 1..=20 {
        let said = of("thought", &format!("step {minute}"));
        house.act("builder", &thread, &said).await.unwrap();
        house.later(minute * 60_000).await;
    }
    assert_eq!(kinds(&house.post().await), [SendKind::RootEdit]);
}
