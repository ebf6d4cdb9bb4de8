//! From a card to its answer, and what becomes of the answer's message.

use super::*;

#[tokio::test]
async fn a_question_is_asked_posted_answered_and_told_as_one_object() {
    let mut house = House::start().await;
    let ask = Ask {
        expires_in: Some(3_600_000),
        metadata: Some(json!({ "build": 7 })),
        card_title: Some("Release".to_owned()),
        ..question("e1")
    };
    let asked = house.ask("builder", ask).await.unwrap().elicitation;
    let posted = house.post().await;
    assert_eq!(posted.len(), 1);
    assert_eq!(posted[0].kind(), SendKind::Card);
    let open = house.found("e1").await;
    assert_eq!(
        open,
        Elicitation {
            state: State::Open,
            event_id: Some("$own1".to_owned()),
            ..asked.clone()
        }
    );
    house.hear(vec![echo(&posted[0])]).await;
    assert!(house.found("e1").await.visible);

    let reply = mira("$m1", "2.");
    house.hear(vec![reply.clone()]).await;
    let answered = house.found("e1").await;
    let at = |millis: Millis| crate::elicitation::timestamp(millis);
    let expected = json!({
        "elicitation_id": "e1",
        "state": "answered",
        "room_id": ROOM,
        "event_id": "$own1",
        "asked_by": "builder",
        "source": "agent",
        "card": {
            "schema_version": 1, "board_id": "builder", "card_id": "e1", "elicitation_id": "e1",
            "run_id": "e1", "stage_key": "ask", "card_title": "Release", "asked_by": "builder",
            "prompt": "What about e1?",
            "options": [{ "id": "deploy", "label": "Deploy" }, { "id": "wait", "label": "Wait" }],
        },
        "options": [
            { "number": 1, "id": "deploy", "label": "Deploy" },
            { "number": 2, "id": "wait", "label": "Wait" },
        ],
        "created_at": at(asked.question.created_at),
        "expires_at": at(asked.question.created_at + 3_600_000),
        "closed_at": at(answered.closed_at.unwrap()),
        "reason": null,
        "metadata": { "build": 7 },
        "answer": {
            "kind": "option",
            "option": { "number": 2, "id": "wait", "label": "Wait" },
            "text": "2.",
            "answered_by": "@mira:x.org",
            "display_name": null,
            "event_id": "$m1",
            "answered_at": at(reply.sent_at),
            "matched_by": "number",
            "targeted_by": "only_open",
            "directed": false,
            "encrypted": false,
            "sender_verified": null,
        },
        "declined_by": null,
    });
    assert_eq!(object(&answered), expected);

    let events = house.events("builder").await;
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.answered"]
    );
    assert_eq!(events[0].body, object(&open));
    assert_eq!(events[1].body, expected);
    let posted = house.post().await;
    assert_eq!(
        posted.iter().map(Posted::kind).collect::<Vec<_>>(),
        [SendKind::CardEdit, SendKind::Reaction]
    );
    assert_eq!(
        posted[1].sending.draft.content["m.relates_to"]["event_id"],
        "$m1"
    );
}

#[tokio::test]
async fn who_has_a_webhook_gets_every_event_there_too() {
    let mut house = House::start().await;
    house.ask("hooked", question("e1")).await.unwrap();
    let posted = house.post().await;
    house.hear(vec![echo(&posted[0]), mira("$m1", "1")]).await;
    let counts = |house: &House| {
        let book = house.service.book().clone();
        async move { book.read(|ledger| ledger.delivery_counts()).await.unwrap() }
    };
    assert_eq!(house.events("hooked").await.len(), 2);
    assert_eq!(counts(&house).await, (2, 0));
    house.open_question("e2").await;
    assert_eq!(counts(&house).await, (2, 0), "the builder has none");
}

#[tokio::test]
async fn the_same_response_taken_in_again_changes_nothing() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    house.ask("builder", in_words("e2")).await.unwrap();
    let posted = house.post().await;
    let batch = Batch {
        token: Some("s1".to_owned()),
        heard: vec![
            echo(&posted[0]),
            echo(&posted[1]),
            to("$own1", mira("$m1", "hm")),
            to("$own1", mira("$m2", "1")),
            to("$own1", ben("$m3", "2")),
            to("$own2", ben("$m4", "Not before Monday")),
            editing("$m2", mira("$m5", "2")),
            redaction("$m6", "$m4"),
        ],
        ..Batch::default()
    };
    house.take_in(batch.clone()).await;
    let seen = (house.found("e1").await, house.found("e2").await);
    let events = house.events("builder").await;
    assert!(!house.post().await.is_empty());
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.answered", "answer.edited"]
    );
    // The echoes of what was just posted are no news either.
    house.take_in(batch).await;
    assert_eq!((house.found("e1").await, house.found("e2").await), seen);
    assert_eq!(house.events("builder").await, events);
    assert!(house.post().await.is_empty());
    let token = house.service.book().read(|ledger| ledger.sync_token());
    assert_eq!(token.await.unwrap().as_deref(), Some("s1"));
}

#[tokio::test]
async fn what_was_said_before_the_card_is_not_for_it() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    let card = house.post().await.remove(0);
    house
        .hear(vec![
            mira("$m1", "1"),
            echo(&card),
            ben("$m2", "good morning"),
        ])
        .await;
    assert_eq!(house.state("e1").await, State::Open);
    house.hear(vec![ben("$m3", "2")]).await;
    assert_eq!(
        house.answer("e1").await,
        Some(("@ben:x.org".to_owned(), "wait".to_owned()))
    );
}

#[tokio::test]
async fn a_card_that_comes_back_before_its_sending_ended_is_posted_once() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    let sending = house.attempt().await.unwrap();
    let posted = Posted {
        event_id: "$card".to_owned(),
        sending: sending.clone(),
    };
    house.hear(vec![echo(&posted), mira("$m1", "1")]).await;
    house
        .service
        .sent(sending, "$card".to_owned())
        .await
        .unwrap();
    let answered = house.found("e1").await;
    assert_eq!(answered.state, State::Answered);
    assert_eq!(answered.event_id.as_deref(), Some("$card"));
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.answered"]
    );
    assert_eq!(house.post().await.len(), 2, "an edit and a reaction");
}

#[tokio::test]
async fn a_card_of_another_device_of_the_bot_is_known_by_what_it_carries() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    house.attempt().await.unwrap();
    let own = |room_id: &str, event_id: &str, agent: &str| {
        let card = Some((agent.to_owned(), "e1".to_owned()));
        Heard {
            room_id: room_id.to_owned(),
            ..heard(
                "@elicit:x.org",
                event_id,
                What::Own {
                    txn_id: None,
                    card,
                    board_id: None,
                },
            )
        }
    };
    house
        .hear(vec![
            own("!other:x.org", "$a", "builder"),
            own(ROOM, "$b", "tester"),
        ])
        .await;
    assert_eq!(house.state("e1").await, State::Queued);
    house
        .hear(vec![own(ROOM, "$c", "builder"), mira("$m1", "1")])
        .await;
    assert_eq!(house.state("e1").await, State::Answered);
    assert_eq!(house.found("e1").await.event_id.as_deref(), Some("$c"));
    house.post().await;
}

#[tokio::test]
async fn of_two_answers_the_first_counts_and_the_second_changes_nothing() {
    let mut house = House::start().await;
    let card = house.open_question("e1").await;
    house
        .hear(vec![
            ben("$m1", "2"),
            mira("$m2", "1"),
            to(&card, mira("$m3", "1")),
        ])
        .await;
    let bens = Some(("@ben:x.org".to_owned(), "wait".to_owned()));
    assert_eq!(house.answer("e1").await, bens);
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.answered"]
    );
    let posted = house.post().await;
    let kinds: Vec<SendKind> = posted.iter().map(Posted::kind).collect();
    assert_eq!(
        kinds,
        [SendKind::CardEdit, SendKind::Reaction, SendKind::Notice]
    );
    assert!(
        posted[2]
            .body()
            .contains("is already answered.\n\n✓ 2. Wait — @ben:x.org")
    );
    // Once: also after it was told.
    house.hear(vec![to(&card, mira("$m4", "1"))]).await;
    assert!(house.post().await.is_empty());
}

#[tokio::test]
async fn a_refused_person_is_told_once_per_question() {
    let mut house = House::start().await;
    let ask = Ask {
        answerers: Answerers {
            users: Some(vec!["@ben:x.org".to_owned()]),
            min_power: None,
        },
        ..question("e1")
    };
    house.ask("builder", ask).await.unwrap();
    let card = house.post().await.remove(0);
    house.hear(vec![echo(&card), mira("$m1", "1")]).await;
    house
        .hear(vec![mira("$m2", "2"), says("@eve:x.org", "$m3", "2")])
        .await;
    let posted = house.post().await;
    let told: Vec<&Value> = posted
        .iter()
        .map(|posted| &posted.sending.draft.content["m.relates_to"]["m.in_reply_to"]["event_id"])
        .collect();
    assert_eq!(told, ["$m1", "$m3"]);
    house.hear(vec![ben("$m4", "2")]).await;
    assert_eq!(house.state("e1").await, State::Answered);
}

#[tokio::test]
async fn an_edited_answer_stands_and_its_agent_is_told() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house.open_question("e2").await;
    house.hear(vec![mira("$m1", "q1 1")]).await;
    let answered = house.found("e1").await;
    house.post().await;
    // Not even where the new text would answer another question.
    house
        .hear(vec![
            editing("$m1", mira("$m2", "2")),
            editing("$m1", ben("$m3", "2")),
        ])
        .await;
    assert_eq!(house.found("e1").await, answered);
    assert_eq!(house.state("e2").await, State::Open);
    assert!(house.post().await.is_empty());
    let event = house.events("builder").await.pop().unwrap();
    assert_eq!(event.event_type, "answer.edited");
    let mut expected = object(&answered);
    expected["correction"] = json!({
        "event_id": "$m2",
        "text": "2",
        "reading": { "choose": "wait", "by": "number" },
        "corrected_at": event.body["correction"]["corrected_at"],
    });
    assert_eq!(event.body, expected);
}

#[tokio::test]
async fn a_redacted_text_is_gone_from_the_question_and_from_everything_that_was_told() {
    let mut house = House::start().await;
    house.ask("builder", in_words("e1")).await.unwrap();
    let card = house.post().await.remove(0);
    house
        .hear(vec![
            echo(&card),
            to("$own1", mira("$m1", "a secret")),
            editing("$m1", mira("$m2", "another secret")),
        ])
        .await;
    let told = format!("{:?}", house.events("builder").await);
    assert!(told.contains("a secret") && told.contains("another secret"));
    house.post().await;

    house.hear(vec![redaction("$m3", "$m1")]).await;
    let answered = house.found("e1").await;
    assert_eq!(answered.state, State::Answered);
    assert_eq!(answered.answer.unwrap().text, None);
    let told = format!("{:?}", house.events("builder").await);
    assert!(!told.contains("secret"), "{told}");
    assert_eq!(
        house.told("e1").await,
        [
            "elicitation.open",
            "elicitation.answered",
            "answer.edited",
            "answer.redacted"
        ]
    );
    let posted = house.post().await;
    assert_eq!(posted.len(), 1);
    assert_eq!(posted[0].kind(), SendKind::CardEdit);
    assert!(posted[0].body().contains("(the text was removed later)"));
    // Redacted again, edited afterwards, or named by whoever comes late: it stays gone.
    house
        .hear(vec![
            redaction("$m4", "$m1"),
            editing("$m1", mira("$m5", "a secret")),
            to("$own1", ben("$m6", "me too")),
        ])
        .await;
    assert_eq!(house.told("e1").await.len(), 4);
    let said: Vec<String> = house
        .post()
        .await
        .iter()
        .map(|it| it.body().to_owned())
        .collect();
    assert_eq!(said.len(), 1);
    assert!(!said[0].contains("secret"), "{}", said[0]);
}

/// What the outbox holds, sent or not.
fn outbox(house: &House) -> String {
    let path = house.folder.path().join("ledger.sqlite3");
    let ledger = rusqlite::Connection::open(path).unwrap();
    let all = "SELECT group_concat(content, char(10)) FROM outbox";
    ledger.query_row(all, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_redacted_text_is_gone_from_what_was_sent_and_not_sent_any_more() {
    for sent_before in [true, false] {
        let mut house = House::start().await;
        house.ask("builder", in_words("e1")).await.unwrap();
        let card = house.post().await.remove(0);
        house
            .hear(vec![
                echo(&card),
                to("$own1", mira("$m1", "a secret")),
                to("$own1", ben("$m2", "me too")),
            ])
            .await;
        assert!(outbox(&house).contains("a secret"));
        if sent_before {
            house.post().await;
        }
        house.hear(vec![redaction("$m3", "$m1")]).await;
        assert!(!outbox(&house).contains("a secret"));
        let edits = house.post().await.into_iter();
        let edits = edits.filter(|posted| posted.kind() == SendKind::CardEdit);
        assert_eq!(edits.count(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_was_an_edit_is_corrected_like_any_other() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house
        .hear(vec![
            mira("$m1", "hello"),
            editing("$m1", mira("$m2", "1")),
            editing("$m1", mira("$m3", "2")),
            redaction("$m4", "$m1"),
        ])
        .await;
    assert_eq!(
        house.answer("e1").await,
        Some(("@mira:x.org".to_owned(), "deploy".to_owned()))
    );
    assert_eq!(house.found("e1").await.answer.unwrap().text, None);
    assert_eq!(
        house.told("e1").await,
        [
            "elicitation.open",
            "elicitation.answered",
            "answer.edited",
            "answer.redacted"
        ]
    );
}

#[tokio::test]
async fn a_question_whose_card_is_redacted_is_withdrawn() {
    let mut house = House::start().await;
    let card = house.open_question("e1").await;
    house
        .hear(vec![
            redaction("$r1", "$unrelated"),
            redaction("$r2", &card),
        ])
        .await;
    let closed = house.found("e1").await;
    assert_eq!(closed.state, State::Cancelled);
    assert_eq!(
        closed.reason.as_deref(),
        Some("its card was removed from the room")
    );
}
