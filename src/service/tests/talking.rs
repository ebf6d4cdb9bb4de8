//! What people say to the bot itself, and what two of them say at once.

use super::*;

fn declinable(id: &str) -> Ask {
    Ask {
        decline: true,
        ..question(id)
    }
}

fn bodies(posted: &[Posted]) -> Vec<&str> {
    posted.iter().map(Posted::body).collect()
}

#[tokio::test]
async fn a_question_is_declined_by_a_person_and_the_agent_is_told_who() {
    let mut house = House::start().await;
    house.ask("builder", declinable("e1")).await.unwrap();
    let card = house.post().await.remove(0);
    assert!(
        card.body()
            .contains("If you would rather not answer, type !decline."),
        "{}",
        card.body()
    );
    house.hear(vec![echo(&card)]).await;
    let said = mira("$m1", "!decline");
    house.hear(vec![said.clone(), ben("$m2", "1")]).await;
    let posted = house.post().await;
    let kinds: Vec<SendKind> = posted.iter().map(Posted::kind).collect();
    assert_eq!(
        kinds,
        [SendKind::CardEdit, SendKind::Reaction, SendKind::Notice]
    );
    assert!(
        posted[0].body().contains("Declined by @mira:x.org"),
        "{}",
        posted[0].body()
    );
    // Ben answered at the same moment.
    assert!(posted[2].body().contains("Declined by @mira:x.org"));
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.declined"]
    );
    let object = house.events("builder").await.pop().unwrap().body;
    let expected = json!({
        "user_id": "@mira:x.org", "display_name": null, "event_id": "$m1",
        "declined_at": crate::elicitation::timestamp(said.sent_at),
        "encrypted": false, "sender_verified": null,
    });
    assert_eq!(object["state"], "declined");
    assert_eq!(object["answer"], Value::Null);
    assert_eq!(object["declined_by"], expected);
    // What was said to decline is no answer that could be corrected.
    house
        .hear(vec![
            editing("$m1", mira("$m3", "1")),
            redaction("$m4", "$m1"),
        ])
        .await;
    assert_eq!(house.told("e1").await.len(), 2);
    assert_eq!(house.state("e1").await, State::Declined);
}

#[tokio::test]
async fn a_command_is_answered_where_nothing_was_ever_asked() {
    let mut house = House::start().await;
    house
        .hear(vec![mira("$m1", "!cards"), mira("$m2", "!help")])
        .await;
    let posted = house.post().await;
    assert_eq!(bodies(&posted)[0], "No question is open here.");
    assert!(bodies(&posted)[1].starts_with("I carry questions from agents."));
    // A reply to such a notice is about nothing.
    house.hear(vec![echo(&posted[0])]).await;
    house
        .hear(vec![to(&posted[0].event_id, ben("$m3", "1"))])
        .await;
    assert!(house.post().await.is_empty());
}

#[tokio::test]
async fn the_list_of_cards_may_be_replied_to_with_a_tag_or_a_label() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    let other = Ask {
        options: vec![CardOption::new("red", "Red")],
        ..question("e2")
    };
    house.ask("builder", other).await.unwrap();
    let card = house.post().await.remove(0);
    house.hear(vec![echo(&card), mira("$m1", "!cards")]).await;
    let list = house.post().await.remove(0);
    assert!(
        list.body()
            .contains("q1: What about e1?\nq2: What about e2?")
    );
    // A number does not say which.
    house.hear(vec![to(&list.event_id, ben("$m2", "1"))]).await;
    assert!(house.post().await.remove(0).body().contains("Which one"));
    house
        .hear(vec![to(&list.event_id, ben("$m3", "q2 1"))])
        .await;
    assert_eq!(house.state("e2").await, State::Answered);
    house
        .hear(vec![to(&list.event_id, ben("$m4", "wait"))])
        .await;
    assert_eq!(house.state("e1").await, State::Answered);
}

#[tokio::test]
async fn nobody_is_answered_without_end() {
    let mut house = House::start().await;
    for number in 0..20 {
        let id = format!("$m{number}");
        house.hear(vec![mira(&id, "!help")]).await;
    }
    assert_eq!(house.post().await.len(), 5);
    house.hear(vec![ben("$b1", "!help")]).await;
    assert_eq!(house.post().await.len(), 1);
    let house = house.restart().await;
    let mut house = house;
    house.hear(vec![mira("$m99", "!help")]).await;
    assert!(house.post().await.is_empty());
}

#[tokio::test]
async fn of_two_people_at_once_one_is_taken_and_the_other_told_also_in_the_next_response() {
    for together in [true, false] {
        let mut house = House::start().await;
        house.open_question("e1").await;
        let (first, second) = (mira("$m1", "1"), ben("$m2", "2"));
        if together {
            house.hear(vec![first, second]).await;
        } else {
            house.hear(vec![first]).await;
            house.hear(vec![second]).await;
        }
        let answer = house.answer("e1").await;
        assert_eq!(
            answer,
            Some(("@mira:x.org".to_owned(), "deploy".to_owned()))
        );
        let posted = house.post().await;
        let notices: Vec<&str> = posted
            .iter()
            .filter(|posted| posted.kind() == SendKind::Notice)
            .map(Posted::body)
            .collect();
        assert_eq!(notices.len(), 1, "{together}");
        assert!(
            notices[0].contains("✓ 1. Deploy — @mira:x.org"),
            "{}",
            notices[0]
        );
        assert_eq!(
            house.told("e1").await,
            ["elicitation.open", "elicitation.answered"]
        );
    }
}

/// Pain: echo.
#[tokio::test]
async fn the_same_person_twice_has_no_second_effect() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house
        .hear(vec![mira("$m1", "1"), mira("$m2", "1"), mira("$m3", "2")])
        .await;
    let kinds: Vec<SendKind> = house.post().await.iter().map(Posted::kind).collect();
    assert_eq!(kinds, [SendKind::CardEdit, SendKind::Reaction]);
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.answered"]
    );
}
