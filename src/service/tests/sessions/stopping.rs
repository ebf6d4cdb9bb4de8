//! Sessions are stopped, taken away and removed.

use super::*;

/// What the agent heard after the beginning.
async fn told(house: &House, thread: &Thread) -> Vec<String> {
    house.heard_in("builder", thread).await.split_off(1)
}

#[tokio::test]
async fn a_stop_in_the_thread_or_to_its_message_is_one_and_nowhere_else() {
    type Place = fn(&Thread, Heard) -> Heard;
    let places: [(Place, bool); 3] = [
        (within, true),
        (|thread, heard| to(&thread.root, heard), true),
        (|_, heard| heard, false),
    ];
    for (place, stops) in places {
        let mut house = House::start().await;
        let thread = house.begun("builder").await;
        house.hear(vec![place(&thread, ben("$b1", "!stop"))]).await;
        let expected = if stops {
            vec!["prompted: !stop [stop]".to_owned()]
        } else {
            Vec::new()
        };
        assert_eq!(told(&house, &thread).await, expected);
        assert_eq!(house.status(&thread).await == Status::Stopping, stops);
        let posted = house.post().await;
        let first = if stops {
            SendKind::Reaction
        } else {
            SendKind::Notice
        };
        assert_eq!(posted[0].kind(), first);
    }
}

/// "Only the command is the signal: the word \"stop\" in a sentence is a prompt."
#[tokio::test]
async fn a_stop_in_a_sentence_is_a_prompt() {
    for body in [
        "stop",
        "please stop",
        "Stop!",
        "!stop doing that",
        "the !stop sign",
    ] {
        let mut house = House::start().await;
        let thread = house.begun("builder").await;
        house.hear(vec![within(&thread, mira("$m1", body))]).await;
        assert_eq!(told(&house, &thread).await, [format!("prompted: {body}")]);
        assert_eq!(house.status(&thread).await, Status::Active);
    }
}

/// "Open questions of it are cancelled."
#[tokio::test]
async fn what_a_session_asks_is_cancelled_with_it() {
    for body in ["!stop", "!undelegate", "!delegate tester"] {
        let mut house = House::start().await;
        let thread = house.begun("builder").await;
        house.select("builder", &thread).await;
        let key = house.asks(&thread).await.unwrap().key().clone();
        house.hear(vec![within(&thread, mira("$m1", body))]).await;
        let asked = house.service.find(&key).await.unwrap().unwrap();
        assert_eq!(asked.state, State::Cancelled, "{body}");
        assert!(kinds(&house.post().await).contains(&SendKind::CardEdit));
        let refused = house.act("builder", &thread, &select()).await;
        assert!(
            matches!(refused, Err(SessionError::Stopping)),
            "{refused:?}"
        );
        let refused = house.act("builder", &thread, &auth("@mira:x.org")).await;
        assert!(
            matches!(refused, Err(SessionError::Stopping)),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn nobody_is_looked_for_to_connect_what_will_be_refused() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![within(&thread, mira("$m1", "!stop"))])
        .await;
    // Who is not in the room would be named: so it was looked for.
    let refused = house.act("builder", &thread, &auth("@nobody:x.org")).await;
    assert!(
        matches!(refused, Err(SessionError::Stopping)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn the_last_word_ends_it_and_every_write_after_it_is_refused() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![within(&thread, mira("$m1", "!stop"))])
        .await;
    house
        .act("builder", &thread, &of("action", "cleaning up"))
        .await
        .unwrap();
    assert_eq!(house.status(&thread).await, Status::Stopping);
    house
        .act("builder", &thread, &of("response", "Stopped."))
        .await
        .unwrap();
    let over = house.session(&thread).await;
    assert_eq!(over.status, Status::Complete);
    assert_eq!(over.end_reason(), Some(EndReason::Stopped));
    let posted = house.post().await;
    assert!(kinds(&posted).contains(&SendKind::InThread));
    for said in [
        of("thought", "hm"),
        of("response", "again"),
        select(),
        auth("@mira:x.org"),
    ] {
        let refused = house.act("builder", &thread, &said).await;
        assert!(matches!(refused, Err(SessionError::Ended)), "{refused:?}");
    }
    let refused = house.service.delete_session("builder", &thread.id).await;
    assert!(matches!(refused, Err(SessionError::Ended)), "{refused:?}");
    let before = told(&house, &thread).await;
    house
        .hear(vec![
            within(&thread, mira("$m2", "one more thing")),
            within(&thread, mira("$m3", "!stop")),
            within(&thread, mira("$m4", "!delegate tester")),
        ])
        .await;
    assert_eq!(told(&house, &thread).await, before);
    assert_eq!(house.all_of("tester").await, []);
    // Told once.
    assert_eq!(kinds(&house.post().await), [SendKind::Notice]);
}

/// "the 60 s are counted by the ledger, not by the process"
#[tokio::test]
async fn a_minute_of_silence_ends_it_also_across_a_restart() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![within(&thread, mira("$m1", "!undelegate"))])
        .await;
    house.later(59_000).await;
    assert_eq!(house.status(&thread).await, Status::Stopping);
    let house = house.restart().await;
    house.later(60_000).await;
    let over = house.session(&thread).await;
    assert_eq!(over.status, Status::Complete);
    assert_eq!(over.end_reason(), Some(EndReason::Undelegated));
}

/// "the same stop, with end_reason: undelegated on the session"
#[tokio::test]
async fn taking_a_session_away_is_a_stop_that_says_so() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![within(&thread, mira("$m1", "!undelegate"))])
        .await;
    let events = house.events("builder").await;
    let body = &events[1].body;
    assert_eq!(body["agent_activity"]["signal"], "stop");
    assert_eq!(body["agent_session"]["status"], "stopping");
    assert_eq!(body["agent_session"]["end_reason"], "undelegated");
}

#[tokio::test]
async fn delegating_it_begins_another_agents_session_with_what_was_said_first() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![
            within(&thread, mira("$m1", "and hurry")),
            within(&thread, ben("$b1", "!delegate Tester")),
        ])
        .await;
    assert_eq!(
        told(&house, &thread).await,
        ["prompted: and hurry", "prompted: !delegate Tester [stop]"]
    );
    let given_up = house.session(&thread).await;
    assert_eq!(given_up.status, Status::Stopping);
    assert_eq!(given_up.end_reason(), Some(EndReason::Undelegated));
    let other = house.only_session("tester").await;
    assert_eq!(other.user_id.as_deref(), Some("@ben:x.org"));
    let events = house.events("tester").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].body["action"], "created");
    let activity = &events[0].body["agent_activity"];
    assert_eq!(activity["content"]["body"], "look at the flaky test");
    // They are the words of whoever said them.
    assert_eq!(activity["user"]["user_id"], "@mira:x.org");
    let posted = house.post().await;
    let root = posted.iter().find(|posted| posted.kind() == SendKind::Root);
    assert_eq!(
        root.unwrap().sending.draft.key.session(),
        Some(other.id.as_str())
    );
}

#[tokio::test]
async fn what_began_without_a_word_is_delegated_by_its_title_or_not_at_all() {
    for (title, begun) in [(Some("Nightly"), true), (None, false)] {
        let mut house = House::start().await;
        let new = NewSession {
            room: ROOM.to_owned(),
            title: title.map(str::to_owned),
            ..NewSession::default()
        };
        let thread = house.begun_by("builder", new).await;
        house
            .hear(vec![within(&thread, mira("$m1", "!delegate tester"))])
            .await;
        assert_eq!(house.all_of("tester").await.len(), usize::from(begun));
        let stopping = house.status(&thread).await == Status::Stopping;
        assert_eq!(stopping, begun, "what nobody takes over is not taken away");
        assert_eq!(
            kinds(&house.post().await).contains(&SendKind::Notice),
            !begun
        );
    }
}

#[tokio::test]
async fn it_is_delegated_only_to_another_agent_that_works_here() {
    for name in ["nobody", "builder", "", "two words", "elsewhere"] {
        let elsewhere = "[agents.elsewhere]\ntoken = \"a-token-of-elsewhere\"\n
            rooms = [\"!other:x.org\"]";
        let mut house = House::with(elsewhere).await;
        let thread = house.begun("builder").await;
        let command = format!("!delegate {name}");
        house
            .hear(vec![within(&thread, mira("$m1", &command))])
            .await;
        assert_eq!(house.status(&thread).await, Status::Active, "{name}");
        assert_eq!(house.all_of("elsewhere").await, []);
        let told = told(&house, &thread).await;
        if name == "two words" {
            assert_eq!(told, ["prompted: !delegate two words"]);
            continue;
        }
        assert_eq!(told, Vec::<String>::new(), "{name}");
        let posted = house.post().await;
        assert_eq!(kinds(&posted), [SendKind::Notice], "{name}");
    }
}

/// "Removing the bot from the room … ended at once, without stop"
#[tokio::test]
async fn a_room_that_the_bot_is_removed_from_takes_its_sessions_along() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house.select("builder", &thread).await;
    let elsewhere = NewSession {
        room: "!other:x.org".to_owned(),
        ..NewSession::default()
    };
    let other = house.begun_by("builder", elsewhere).await;
    let before = house.events("builder").await.len();
    house
        .take_in(Batch {
            lost: vec![ROOM.to_owned()],
            ..Batch::default()
        })
        .await;
    let over = house.session(&thread).await;
    assert_eq!(over.end_reason(), Some(EndReason::Deleted));
    assert_eq!(house.asks(&thread).await, None);
    assert_eq!(
        house.events("builder").await.len(),
        before,
        "without a word"
    );
    assert_eq!(house.status(&other).await, Status::Active);
}

#[tokio::test]
async fn what_cannot_be_shown_is_none() {
    let house = House::start().await;
    house.hear(vec![mira("$m1", "builder: look")]).await;
    let root = house.attempt().await.unwrap();
    let refused = house.service.refused(root, "forbidden".to_owned());
    refused.await.unwrap();
    let over = house.only_session("builder").await;
    assert_eq!(over.end_reason(), Some(EndReason::Deleted));
}

/// "removing the agent from the configuration"
#[tokio::test]
async fn an_agent_that_is_configured_no_more_has_no_sessions_after_the_start() {
    let scout = "[agents.scout]\ntoken = \"a-token-of-the-scout\"";
    let mut house = House::with(scout).await;
    let gone = house.begun("scout").await;
    let stays = house.begun("builder").await;
    house.select("scout", &gone).await;
    house.service.end_orphaned_sessions().await.unwrap();
    assert_eq!(house.status(&gone).await, Status::AwaitingInput);
    let mut config = (*house.config).clone();
    config.agents.remove("scout");
    house.config = Arc::new(config);
    let house = house.restart().await;
    house.service.end_orphaned_sessions().await.unwrap();
    let over = house.session(&gone).await;
    assert_eq!(over.end_reason(), Some(EndReason::Deleted));
    assert_eq!(house.asks(&gone).await, None);
    assert_eq!(house.status(&stays).await, Status::Active);
}
