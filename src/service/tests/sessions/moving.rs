//! A room is upgraded: its sessions go on in its successor.

use super::*;

const NEXT: &str = "!next:x.org";

async fn upgrade(house: &House) {
    let followed = house.service.follow_upgrade(ROOM, NEXT).await.unwrap();
    assert!(followed.is_some());
}

async fn hear_there(house: &House, heard: Vec<Heard>) {
    let mut batch = only(&["@mira:x.org", "@ben:x.org"], vec![]);
    let rules = batch.rooms.remove(ROOM).unwrap();
    batch.rooms.insert(NEXT.to_owned(), rules);
    batch.heard = heard
        .into_iter()
        .map(|heard| Heard {
            room_id: NEXT.to_owned(),
            ..heard
        })
        .collect();
    house.take_in(batch).await;
}

fn places(posted: &[Posted]) -> Vec<(&str, SendKind)> {
    posted
        .iter()
        .map(|posted| (posted.sending.draft.room_id.as_str(), posted.kind()))
        .collect()
}

#[tokio::test]
async fn a_session_goes_on_in_the_successor_with_what_it_asks() {
    let mut house = House::start().await;
    let old = house.begun("builder").await;
    house.select("builder", &old).await;
    house.later(3_000).await;
    house.post().await;
    upgrade(&house).await;
    let moved = house.session(&old).await;
    assert_eq!((moved.room_id.as_str(), moved.root), (NEXT, None));
    assert_eq!(moved.status, Status::AwaitingInput);
    let mut house = house.restart().await;
    assert!(house.service.wants(NEXT, &Said::default()));
    let posted = house.post().await;
    assert_eq!(
        places(&posted),
        [(NEXT, SendKind::Root), (NEXT, SendKind::Card)]
    );
    let thread = Thread {
        id: old.id.clone(),
        root: posted[0].event_id.clone(),
    };
    assert_eq!(
        house.session(&thread).await.root.as_ref(),
        Some(&thread.root)
    );
    let echoes = posted.iter().map(echo).collect();
    hear_there(&house, echoes).await;
    hear_there(&house, vec![within(&thread, mira("$m1", "2"))]).await;
    hear_there(&house, vec![within(&thread, mira("$m2", "!stop"))]).await;
    assert_eq!(
        house.heard_in("builder", &thread).await[1..],
        ["prompted: production", "prompted: !stop [stop]"]
    );
    let events = house.events("builder").await;
    assert_eq!(events[1].body["agent_session"]["room_id"], NEXT);
    assert_eq!(
        events[1].body["agent_session"]["thread"],
        thread.root.as_str()
    );
    for (room_id, _) in places(&house.post().await) {
        assert_eq!(room_id, NEXT);
    }
}

#[tokio::test]
async fn what_was_not_said_yet_is_said_in_the_successor() {
    let mut house = House::start().await;
    house.hear(vec![mira("$m1", "builder: look")]).await;
    let id = house.only_session("builder").await.id;
    let thread = Thread {
        id,
        root: String::new(),
    };
    // The old room was asked to take the root, and has not answered.
    let late = house.attempt().await.unwrap();
    assert_eq!(late.draft.kind, SendKind::Root);
    house
        .act("builder", &thread, &of("response", "Done."))
        .await
        .unwrap();
    house.later(3_000).await;
    upgrade(&house).await;
    house.service.sent(late, "$late".to_owned()).await.unwrap();
    assert_eq!(house.session(&thread).await.root, None);
    let posted = house.post().await;
    assert_eq!(
        places(&posted),
        [(NEXT, SendKind::Root), (NEXT, SendKind::InThread)]
    );
    assert!(posted[1].body().contains("Done."));
}

#[tokio::test]
async fn a_root_that_the_old_room_refuses_late_ends_nothing() {
    let house = House::start().await;
    house.hear(vec![mira("$m1", "builder: look")]).await;
    let late = house.attempt().await.unwrap();
    upgrade(&house).await;
    let refused = house.service.refused(late, "forbidden".to_owned());
    refused.await.unwrap();
    assert_eq!(house.only_session("builder").await.status, Status::Active);
}

#[tokio::test]
async fn what_was_said_in_the_old_thread_and_is_heard_late_still_counts() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    upgrade(&house).await;
    house
        .hear(vec![
            within(&thread, mira("$m1", "and the other one")),
            to(&thread.root, mira("$m2", "please")),
            within(&thread, mira("$m3", "!stop")),
        ])
        .await;
    assert_eq!(
        house.heard_in("builder", &thread).await[1..],
        [
            "prompted: and the other one",
            "prompted: please",
            "prompted: !stop [stop]"
        ]
    );
    // The ✓ goes where the message is.
    let posted = house.post().await;
    assert!(places(&posted).contains(&(ROOM, SendKind::Reaction)));
    house.hear(vec![redaction("$r1", "$m1")]).await;
    assert_eq!(house.words(&thread).await[1], "");
}

#[tokio::test]
async fn a_session_that_is_begun_in_the_old_room_too_late_begins_in_the_new_one() {
    let mut house = House::start().await;
    house.begun("builder").await;
    upgrade(&house).await;
    house.hear(vec![mira("$m1", "tester: look at it")]).await;
    let begun = house.only_session("tester").await;
    assert_eq!(begun.room_id, NEXT);
    for posted in house.post().await {
        assert_eq!(posted.sending.draft.room_id, NEXT);
        let relation = &posted.sending.draft.content["m.relates_to"];
        assert!(relation.get("m.in_reply_to").is_none());
    }
}

#[tokio::test]
async fn the_end_of_the_old_room_is_not_the_end_of_its_sessions() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .service
        .delete_session("builder", &thread.id)
        .await
        .unwrap();
    let living = house.begun("tester").await;
    upgrade(&house).await;
    house
        .take_in(Batch {
            lost: vec![ROOM.to_owned()],
            ..Batch::default()
        })
        .await;
    assert_eq!(house.status(&living).await, Status::Active);
    // What had ended is not put up again.
    let over = house.session(&thread).await;
    assert_eq!(over.room_id, ROOM);
    let roots: Vec<SendKind> = (kinds(&house.post().await).into_iter())
        .filter(|&kind| kind == SendKind::Root)
        .collect();
    assert_eq!(roots.len(), 1);
}
