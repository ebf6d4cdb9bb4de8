//! A restart between any two steps changes nothing of what comes of them.

use super::*;

/// A house that restarts between the steps, or does not.
struct Story {
    house: House,
    restarts: bool,
}

impl Story {
    async fn begin(restarts: bool) -> Self {
        Self {
            house: House::start().await,
            restarts,
        }
    }

    async fn step(&mut self) -> &mut House {
        if self.restarts {
            let fresh = House::start().await;
            let house = std::mem::replace(&mut self.house, fresh);
            self.house = house.restart().await;
        }
        &mut self.house
    }
}

/// What differs from run to run.
fn without_times(mut told: Value) -> Value {
    for key in ["created_at", "closed_at"] {
        told[key].take();
    }
    if let Some(answer) = told["answer"].as_object_mut() {
        answer.remove("answered_at");
    }
    if let Some(correction) = told.get_mut("correction") {
        correction["corrected_at"].take();
    }
    told
}

/// A life with everything in it: who was told what, and what the room saw.
#[expect(
    clippy::too_many_lines,
    reason = "one life, told from its beginning to its end"
)]
async fn life(restarts: bool) -> (Vec<(String, Value)>, Vec<String>, bool) {
    let mut story = Story::begin(restarts).await;
    let mut room = Vec::new();
    let house = story.step().await;
    house.ask("builder", question("e1")).await.unwrap();
    let house = story.step().await;
    let repeat = house.ask("builder", question("e1")).await.unwrap();
    assert!(!repeat.created);
    house.ask("builder", in_words("e2")).await.unwrap();

    // The first card is sent, and the process ends before the homeserver's answer is noted.
    let house = story.step().await;
    let sending = house.attempt().await.unwrap();
    let house = story.step().await;
    let again = house.attempt().await.unwrap();
    assert_eq!(again.txn_id, sending.txn_id, "fixed for ever");
    assert!(
        again.attempted_at.is_some(),
        "it may be in the room already"
    );
    house
        .service
        .sent(again.clone(), "$card".to_owned())
        .await
        .unwrap();
    let posted = Posted {
        event_id: "$card".to_owned(),
        sending: again,
    };
    room.push(posted.body().to_owned());

    let house = story.step().await;
    let second = house.post().await;
    room.extend(second.iter().map(|posted| posted.body().to_owned()));
    let house = story.step().await;
    house
        .take_in(Batch {
            token: Some("s1".to_owned()),
            heard: vec![mira("$m0", "1"), echo(&posted), echo(&second[0])],
            ..Batch::default()
        })
        .await;

    // A number does not say which question is meant; asked again it is not said twice.
    for event_id in ["$m1", "$m2"] {
        story.step().await.hear(vec![mira(event_id, "1")]).await;
    }
    // Kept behind a hole, and a message without its key.
    let house = story.step().await;
    let hole = Gap {
        room_id: ROOM.to_owned(),
        prev_batch: "p1".to_owned(),
        since: None,
        found_at: 1,
    };
    house
        .take_in(Batch {
            heard: vec![mira("$m4", "q1 2")],
            gaps: vec![hole],
            undecrypted: vec![Undecrypted {
                room_id: ROOM.to_owned(),
                event_id: "$m5".to_owned(),
                sender: "@mira:x.org".to_owned(),
                raw: "{}".to_owned(),
                heard_at: clock::now(),
                told: false,
            }],
            ..Batch::default()
        })
        .await;
    let house = story.step().await;
    assert_eq!(house.state("e1").await, State::Open);
    house
        .take_in(Batch {
            heard: vec![ben("$m3", "q1 1")],
            filled: Some(Filled {
                room_id: ROOM.to_owned(),
                prev_batch: "p1".to_owned(),
                never: false,
            }),
            ..Batch::default()
        })
        .await;
    let house = story.step().await;
    house
        .take_in(Batch {
            heard: vec![to("$own1", mira("$m5", "Not before Monday"))],
            resolved: vec![(ROOM.to_owned(), "$m5".to_owned())],
            ..Batch::default()
        })
        .await;
    let house = story.step().await;
    room.extend(
        house
            .post()
            .await
            .iter()
            .map(|posted| without_minute(posted.body())),
    );
    let house = story.step().await;
    house
        .hear(vec![
            editing("$m3", ben("$m6", "2")),
            redaction("$m7", "$m5"),
        ])
        .await;
    // The homeserver sends the last response again.
    let house = story.step().await;
    house
        .hear(vec![
            ben("$m3", "q1 1"),
            mira("$m4", "q1 2"),
            redaction("$m7", "$m5"),
        ])
        .await;
    room.extend(
        house
            .post()
            .await
            .iter()
            .map(|posted| without_minute(posted.body())),
    );

    // Nobody can be answering any more who did not see how it ended.
    story.step().await.a_minute_passes();
    story.step().await.hear(vec![ben("$m8", "so be it")]).await;
    let house = story.step().await;
    let events = house.events("builder").await.into_iter();
    let told = events
        .map(|event| (event.event_type, without_times(event.body)))
        .collect();
    let quiet = Said {
        body: "good morning".to_owned(),
        ..Said::default()
    };
    (told, room, house.service.wants(ROOM, &quiet))
}

/// What is said in the room, whatever the minute in which it is.
fn without_minute(body: &str) -> String {
    // ", 1 Dec 2026, 03:39 UTC"
    let mut parts: Vec<&str> = body.split(" UTC").collect();
    let last = parts.pop().unwrap_or_default();
    let undated = parts
        .into_iter()
        .map(|part| part.rsplitn(3, ", ").last().unwrap_or_default());
    undated.chain([last]).collect()
}

/// Pain: lost.
#[tokio::test]
async fn a_life_with_a_restart_at_every_step_is_the_same_life() {
    let (told, room, watched) = life(false).await;
    let types: Vec<&str> = told
        .iter()
        .map(|(event_type, _)| event_type.as_str())
        .collect();
    assert_eq!(
        types,
        [
            "elicitation.open",
            "elicitation.open",
            "elicitation.answered",
            "elicitation.answered",
            "answer.edited",
            "answer.redacted"
        ]
    );
    assert!(!watched);
    assert_eq!(life(true).await, (told, room, watched));
}

/// Pain: lost.
#[tokio::test]
async fn what_a_wait_waits_for_outlives_the_process() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    let house = house.restart().await;
    let waiter = {
        let service = house.service.clone();
        let key = Key::new("builder", "e1");
        tokio::spawn(async move { service.wait(&key, Duration::from_mins(1)).await.unwrap() })
    };
    house.hear(vec![mira("$m1", "1")]).await;
    let found = soon(waiter).await.unwrap();
    assert_eq!(found.unwrap().state, State::Answered);
}

#[tokio::test]
async fn ids_keys_and_tags_are_remembered() {
    let house = House::start().await;
    let keyed = Ask {
        elicitation_id: None,
        idempotency_key: Some("k1".to_owned()),
        ..question("e1")
    };
    let first = house.ask("builder", keyed.clone()).await.unwrap();
    let house = house.restart().await;
    let repeat = house.ask("builder", keyed).await.unwrap();
    assert_eq!(
        (repeat.created, repeat.elicitation),
        (false, first.elicitation)
    );
    let second = house.ask("builder", question("e2")).await.unwrap();
    assert_eq!(second.elicitation.tag, "q2");
}
