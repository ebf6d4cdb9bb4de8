//! Prompts are edited and redacted.

use super::*;

/// "What is said to a session is never corrected: what is said instead is said as well."
#[tokio::test]
async fn an_edited_prompt_is_said_again_to_the_same_session() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![
            within(&thread, mira("$m1", "use the old one")),
            editing("$m1", within(&thread, mira("$m2", "use the new one"))),
        ])
        .await;
    assert_eq!(
        house.heard_in("builder", &thread).await[1..],
        ["prompted: use the old one", "prompted: use the new one"]
    );
}

#[tokio::test]
async fn an_edit_of_what_began_a_session_begins_no_other() {
    for (first, then) in [
        ("builder: look at it", "builder: look at that"),
        ("!new builder look at it", "!new builder look at that"),
        ("builder: look at it", "!new builder: look at that"),
        ("builder: look at it", "look at that"),
    ] {
        let mut house = House::start().await;
        house.hear(vec![mira("$m1", first)]).await;
        let session = house.only_session("builder").await;
        let thread = house.shown(session.id).await;
        house.hear(vec![editing("$m1", mira("$m2", then))]).await;
        assert_eq!(house.only_session("builder").await.id, thread.id);
        let heard = house.heard_in("builder", &thread).await;
        assert_eq!(heard, ["created: look at it", "prompted: look at that"]);
    }
}

#[tokio::test]
async fn a_message_that_becomes_a_call_by_an_edit_begins_a_session() {
    let house = House::start().await;
    house
        .hear(vec![
            mira("$m1", "bilder: look at it"),
            editing("$m1", mira("$m2", "builder: look at it")),
        ])
        .await;
    let session = house.only_session("builder").await;
    let said = house.service.activities("builder", &session.id, 0, 10);
    let (said, _) = said.await.unwrap().unwrap();
    // It is the message that is redacted, should it be.
    assert_eq!(said[0].event_id.as_deref(), Some("$m1"));
}

#[tokio::test]
async fn an_edit_of_what_was_said_before_is_no_answer_to_what_was_asked_since() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![within(&thread, mira("$m1", "look at 2"))])
        .await;
    house.select("builder", &thread).await;
    house
        .hear(vec![editing("$m1", within(&thread, mira("$m2", "2")))])
        .await;
    assert!(house.asks(&thread).await.is_some());
    assert_eq!(
        house.heard_in("builder", &thread).await[2..],
        ["prompted: 2"]
    );
}

#[tokio::test]
async fn a_redacted_prompt_is_gone_and_with_it_what_was_called_after_it() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![
            within(&thread, mira("$m1", "the key is under the mat")),
            within(&thread, mira("$m2", "no, on the sill")),
            redaction("$r1", "$m1"),
        ])
        .await;
    let untouched = "look at the flaky test";
    assert_eq!(
        house.words(&thread).await,
        [untouched, "", "no, on the sill"]
    );
    assert_eq!(
        house.heard_in("builder", &thread).await,
        [
            "created: look at the flaky test",
            "prompted: ",
            "prompted: no, on the sill"
        ]
    );
    assert_eq!(
        house.session(&thread).await.title.as_deref(),
        Some(untouched)
    );
    house.later(3_000).await;
    house.post().await;
    house.hear(vec![redaction("$r2", "$began_builder")]).await;
    assert_eq!(house.session(&thread).await.title, None);
    for event in house.events("builder").await {
        assert!(!event.body.to_string().contains("flaky"), "{event:?}");
    }
    house.later(6_000).await;
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::RootEdit]);
    assert!(
        !posted[0]
            .sending
            .draft
            .content
            .to_string()
            .contains("flaky")
    );
}

#[tokio::test]
async fn a_title_that_nobody_said_stays() {
    let mut house = House::start().await;
    let new = NewSession {
        room: ROOM.to_owned(),
        title: Some("Nightly".to_owned()),
        ..NewSession::default()
    };
    let thread = house.begun_by("builder", new).await;
    house
        .hear(vec![
            within(&thread, mira("$m1", "look at it")),
            redaction("$r1", "$m1"),
        ])
        .await;
    assert_eq!(house.words(&thread).await, [""]);
    assert_eq!(
        house.session(&thread).await.title.as_deref(),
        Some("Nightly")
    );
}

#[tokio::test]
async fn a_redacted_answer_is_gone_from_the_prompt_the_question_and_its_card() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house.select("builder", &thread).await;
    let key = house.asks(&thread).await.unwrap().key().clone();
    house
        .hear(vec![within(
            &thread,
            mira("$m1", "where the key is: the mat"),
        )])
        .await;
    let closed = house.post().await;
    assert!(
        closed
            .iter()
            .any(|posted| posted.body().contains("the mat"))
    );
    house.hear(vec![redaction("$r1", "$m1")]).await;
    let asked = house.service.find(&key).await.unwrap().unwrap();
    assert_eq!(asked.answer.unwrap().text, None);
    assert_eq!(
        house.heard_in("builder", &thread).await[1..],
        ["prompted: "]
    );
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::CardEdit]);
    assert!(!posted[0].body().contains("the mat"));
}

#[tokio::test]
async fn what_was_handed_over_is_redacted_with_what_was_said() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![
            within(&thread, ben("$b1", "!delegate tester")),
            redaction("$r1", "$began_builder"),
        ])
        .await;
    let other = house.only_session("tester").await;
    assert_eq!(other.title, None);
    for agent in ["builder", "tester"] {
        for event in house.events(agent).await {
            assert!(!event.body.to_string().contains("flaky"), "{event:?}");
        }
    }
}

#[tokio::test]
async fn what_is_redacted_in_another_room_changes_nothing_here() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .hear(vec![Heard {
            room_id: "!other:x.org".to_owned(),
            ..redaction("$r1", "$began_builder")
        }])
        .await;
    assert_eq!(house.words(&thread).await, ["look at the flaky test"]);
    let edit = editing("$began_builder", mira("$m2", "and that"));
    house
        .hear(vec![Heard {
            room_id: "!other:x.org".to_owned(),
            ..edit
        }])
        .await;
    assert_eq!(house.heard_in("builder", &thread).await.len(), 1);
}

#[tokio::test]
async fn the_edit_of_a_reply_stays_as_it_was_written() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    let first = to(&thread.root, mira("$m1", "tester: what do you say?"));
    let then = to(&thread.root, mira("$m2", "tester: what do you think?"));
    house.hear(vec![first, editing("$m1", then)]).await;
    assert_eq!(
        house.heard_in("builder", &thread).await[1..],
        [
            "prompted: tester: what do you say?",
            "prompted: tester: what do you think?"
        ]
    );
}
