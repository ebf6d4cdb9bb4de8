//! A room is upgraded: what is pending goes on in its successor.

use super::*;

const NEXT: &str = "!next:x.org";
const LAST: &str = "!last:x.org";

async fn upgrade(house: &House, room_id: &str, successor: &str) -> Option<usize> {
    let followed = house.service.follow_upgrade(room_id, successor);
    followed.await.unwrap()
}

/// The same in the successor.
fn there(heard: Heard) -> Heard {
    Heard {
        room_id: NEXT.to_owned(),
        ..heard
    }
}

async fn hear_there(house: &House, heard: Vec<Heard>) {
    let bot = Bot {
        user_id: "@elicit:x.org".to_owned(),
        display_name: None,
    };
    let rooms = [(NEXT.to_owned(), (Rules::default(), bot))].into();
    let batch = Batch {
        heard: heard.into_iter().map(there).collect(),
        rooms,
        ..Batch::default()
    };
    house.service.take_in(batch).await.unwrap();
}

/// Where things went, and what they were.
fn places(posted: &[Posted]) -> Vec<(&str, SendKind)> {
    posted
        .iter()
        .map(|posted| (posted.sending.draft.room_id.as_str(), posted.kind()))
        .collect()
}

#[tokio::test]
async fn an_open_question_is_put_up_once_in_the_successor_and_answered_there() {
    let mut house = House::start().await;
    let old = house.open_question("e1").await;
    let before = house.found("e1").await;
    assert_eq!(upgrade(&house, ROOM, NEXT).await, Some(1));
    assert_eq!(upgrade(&house, ROOM, NEXT).await, None);
    assert_eq!(upgrade(&house, ROOM, LAST).await, None);
    let on_its_way = house.found("e1").await;
    let mut expected = before.clone();
    expected.question.room_id = NEXT.to_owned();
    expected.tag = "q2".to_owned();
    expected.event_id = None;
    expected.visible = false;
    assert_eq!(on_its_way, expected);
    assert_eq!(house.told("e1").await, ["elicitation.open"]);

    let mut house = house.restart().await;
    let posted = house.post().await;
    assert_eq!(places(&posted), [(NEXT, SendKind::Card)]);
    assert!(posted[0].body().contains("What about e1?"));
    let new = &posted[0].event_id;
    expected.event_id = Some(new.clone());
    assert_eq!(house.found("e1").await, expected);
    let told: Vec<Value> = house
        .events("builder")
        .await
        .into_iter()
        .map(|event| {
            json!([
                event.event_type,
                event.body["room_id"],
                event.body["event_id"]
            ])
        })
        .collect();
    let open = "elicitation.open";
    assert_eq!(told, [json!([open, ROOM, old]), json!([open, NEXT, new])]);

    hear_there(&house, vec![echo(&posted[0]), mira("$m1", "2")]).await;
    let answer = ("@mira:x.org".to_owned(), "wait".to_owned());
    assert_eq!(house.answer("e1").await, Some(answer));
    let posted = house.post().await;
    assert_eq!(
        places(&posted),
        [(NEXT, SendKind::CardEdit), (NEXT, SendKind::Reaction)]
    );
}

#[tokio::test]
async fn a_queued_question_is_only_put_up_in_the_successor() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    let refused = house.attempt().await.unwrap();
    assert_eq!(upgrade(&house, ROOM, NEXT).await, Some(1));
    // The old room's answer comes late.
    let late = house.service.refused(refused, "forbidden".to_owned());
    late.await.unwrap();
    assert_eq!(house.state("e1").await, State::Queued);
    let posted = house.post().await;
    assert_eq!(places(&posted), [(NEXT, SendKind::Card)]);
    assert_eq!(house.state("e1").await, State::Open);
    assert_eq!(house.told("e1").await, ["elicitation.open"]);
}

#[tokio::test]
async fn an_open_question_that_the_successor_refuses_reaches_nobody() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    upgrade(&house, ROOM, NEXT).await;
    let card = house.attempt().await.unwrap();
    let refused = house.service.refused(card, "forbidden".to_owned());
    refused.await.unwrap();
    assert_eq!(house.state("e1").await, State::Undeliverable);
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.undeliverable"]
    );
    assert!(house.post().await.is_empty());
}

#[tokio::test]
async fn a_question_that_closes_while_it_moves_is_not_put_up_again() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house.open_question("e2").await;
    house
        .service
        .cancel(&Key::new("builder", "e1"))
        .await
        .unwrap();
    assert_eq!(upgrade(&house, ROOM, NEXT).await, Some(1));
    house
        .service
        .cancel(&Key::new("builder", "e2"))
        .await
        .unwrap();
    let posted = house.post().await;
    // The last words of what was closed before, which the old room may refuse.
    assert_eq!(places(&posted), [(ROOM, SendKind::CardEdit)]);
    assert_eq!(posted[0].sending.draft.key.id, "e1");
}

#[tokio::test]
async fn a_reply_to_the_old_card_is_still_an_answer() {
    let mut house = House::start().await;
    let old = house.open_question("e1").await;
    upgrade(&house, ROOM, NEXT).await;
    let house_again = house.restart().await;
    house = house_again;
    assert_eq!(house.service.interest(ROOM), Some(Interest::Over));
    house.hear(vec![mira("$m1", "1")]).await;
    assert_eq!(house.state("e1").await, State::Open);
    house.hear(vec![to(&old, mira("$m2", "1"))]).await;
    let answer = ("@mira:x.org".to_owned(), "deploy".to_owned());
    assert_eq!(house.answer("e1").await, Some(answer));
    // It never came to the successor, and needs no word there.
    assert_eq!(places(&house.post().await), [(ROOM, SendKind::Reaction)]);
    // What becomes of the message there is still told.
    house.hear(vec![redaction("$m3", "$m2")]).await;
    assert_eq!(
        house.told("e1").await,
        [
            "elicitation.open",
            "elicitation.answered",
            "answer.redacted"
        ]
    );
    assert_eq!(house.found("e1").await.answer.unwrap().text, None);
}

#[tokio::test]
async fn what_is_said_in_the_successor_before_the_card_is_there_is_not_meant_for_it() {
    let mut house = House::start().await;
    let declinable = Ask {
        decline: true,
        ..question("e1")
    };
    house.ask("builder", declinable).await.unwrap();
    let posted = house.post().await;
    house.hear(vec![echo(&posted[0])]).await;
    upgrade(&house, ROOM, NEXT).await;
    assert_eq!(house.found("e1").await.tag, "q2");
    assert_eq!(house.service.interest(NEXT), Some(Interest::Pending));
    hear_there(&house, vec![mira("$m1", "1"), mira("$m2", "q2 1")]).await;
    hear_there(&house, vec![mira("$m3", "!decline q2")]).await;
    assert_eq!(house.state("e1").await, State::Open);
    // Nor do tags of the old room mean anything there.
    let posted = house.post().await;
    hear_there(&house, vec![echo(&posted[0]), mira("$m4", "q1 1")]).await;
    assert_eq!(house.answer("e1").await, None);
    hear_there(&house, vec![mira("$m5", "q2 1")]).await;
    let answer = ("@mira:x.org".to_owned(), "deploy".to_owned());
    assert_eq!(house.answer("e1").await, Some(answer));
}

#[tokio::test]
async fn several_questions_keep_their_order_and_show_their_tags() {
    let mut house = House::start().await;
    for id in ["e1", "e2", "e3"] {
        house.ask("builder", question(id)).await.unwrap();
    }
    house.attempt().await.unwrap();
    assert_eq!(upgrade(&house, ROOM, NEXT).await, Some(3));
    let posted = house.post().await;
    let shown: Vec<(&str, bool)> = posted
        .iter()
        .zip(["q4", "q5", "q6"])
        .map(|(card, tag)| {
            let id = card.sending.draft.key.id.as_str();
            (id, card.body().contains(tag))
        })
        .collect();
    assert_eq!(shown, [("e1", true), ("e2", true), ("e3", true)]);
}

#[tokio::test]
async fn a_question_goes_with_every_upgrade_of_a_chain_in_any_order() {
    let mut house = House::start().await;
    let mut asked = question("e1");
    asked.thread = Some("$root".to_owned());
    house.ask("builder", asked).await.unwrap();
    assert_eq!(upgrade(&house, NEXT, LAST).await, Some(0));
    assert_eq!(upgrade(&house, ROOM, NEXT).await, Some(1));
    let posted = house.post().await;
    assert_eq!(places(&posted), [(LAST, SendKind::Card)]);
    assert_eq!(posted[0].sending.draft.content.get("m.relates_to"), None);
    assert_eq!(upgrade(&house, LAST, "!fourth:x.org").await, Some(1));
    let posted = house.post().await;
    assert_eq!(places(&posted), [("!fourth:x.org", SendKind::Card)]);
    assert_eq!(upgrade(&house, "!fourth:x.org", ROOM).await, None);
}

#[tokio::test]
async fn what_is_asked_in_an_upgraded_room_is_asked_in_its_successor() {
    let mut house = House::start().await;
    upgrade(&house, ROOM, NEXT).await;
    // The room was found before its upgrade was known.
    let asked = house.ask("builder", question("e1")).await.unwrap();
    assert_eq!(asked.elicitation.question.room_id, NEXT);
    assert_eq!(house.service.interest(NEXT), Some(Interest::Pending));
    assert_eq!(places(&house.post().await), [(NEXT, SendKind::Card)]);
    let repeat = house.ask("builder", question("e1")).await.unwrap();
    assert!(!repeat.created);
    assert_eq!(repeat.elicitation.question.room_id, NEXT);
}

#[tokio::test]
async fn whoever_may_ask_in_a_room_may_ask_in_its_successor() {
    let house = House::start().await;
    let named = question("e1");
    let next = RoomFacts {
        aliases: vec![ROOM.to_owned()],
        ..facts(NEXT)
    };
    house.room(ROOM, Ok(next.clone()));
    house.room(NEXT, Ok(next));
    for (id, room) in [("e1", ROOM), ("e2", NEXT)] {
        let ask = Ask {
            elicitation_id: Some(id.to_owned()),
            room: room.to_owned(),
            ..named.clone()
        };
        let asked = house.ask("tester", ask).await.unwrap();
        assert_eq!(asked.elicitation.question.room_id, NEXT);
    }
}

#[tokio::test]
async fn a_room_is_settled_once_its_holes_are_filled_and_its_messages_read_or_told_of() {
    let house = House::start().await;
    let settled = async || house.service.is_settled(ROOM).await.unwrap();
    let gap = |room_id: &str| Gap {
        room_id: room_id.to_owned(),
        prev_batch: "p1".to_owned(),
        since: None,
        found_at: clock::now(),
    };
    let locked = |event_id: &str| Undecrypted {
        room_id: ROOM.to_owned(),
        event_id: event_id.to_owned(),
        sender: "@mira:x.org".to_owned(),
        raw: "{}".to_owned(),
        heard_at: clock::now(),
        told: false,
    };
    house
        .take_in(Batch {
            gaps: vec![gap("!other:x.org")],
            ..Batch::default()
        })
        .await;
    assert!(settled().await);
    house
        .take_in(Batch {
            gaps: vec![gap(ROOM)],
            ..Batch::default()
        })
        .await;
    assert!(!settled().await);
    let filled = Filled {
        room_id: ROOM.to_owned(),
        prev_batch: "p1".to_owned(),
        never: false,
    };
    house
        .take_in(Batch {
            filled: Some(filled),
            undecrypted: vec![locked("$m1"), locked("$m2")],
            ..Batch::default()
        })
        .await;
    assert!(!settled().await);
    let read = (ROOM.to_owned(), "$m1".to_owned());
    house
        .take_in(Batch {
            resolved: vec![read],
            ..Batch::default()
        })
        .await;
    assert!(!settled().await);
    house
        .take_in(Batch {
            unreadable: vec![locked("$m2")],
            ..Batch::default()
        })
        .await;
    assert!(settled().await);
}
