//! What becomes of a carrier's card after it was put up, and which are not read at all.

use super::*;

const NEXT: &str = "!next:x.org";

/// A carrier's edit of its message into one with another card.
fn edits(carrier: &str, event_id: &str, replaces: &str, carried: Carried) -> Heard {
    let what = What::Carried {
        carried: Box::new(carried),
        replaces: Some(replaces.to_owned()),
    };
    heard(carrier, event_id, what)
}

/// A carrier's edit of its message into one without a card.
fn gone(carrier: &str, event_id: &str, replaces: &str) -> Heard {
    let replaces = replaces.to_owned();
    heard(carrier, event_id, What::CardGone { replaces })
}

fn trusted(trust: Trust, heard: Heard) -> Heard {
    Heard { trust, ..heard }
}

fn there(heard: Heard) -> Heard {
    Heard {
        room_id: NEXT.to_owned(),
        ..heard
    }
}

fn with_rules(rules: &Rules, heard: Vec<Heard>) -> Batch {
    let rooms = [ROOM, NEXT].map(|room| (room.to_owned(), (rules.clone(), Bot::default())));
    Batch {
        heard,
        rooms: rooms.into(),
        ..Batch::default()
    }
}

#[tokio::test]
async fn an_edited_card_is_answered_as_it_says_now() {
    let house = house().await;
    let other = || card_of("builder", "e1", &["Now", "Later", "Never"]);
    house
        .hear(vec![
            shows(HUB, "$card", card("e1")),
            shows(CHATTY, "$theirs", card("e2")),
        ])
        .await;
    let before = house.carried(HUB, "e1").await.unwrap();
    // Only its own message, and only who sent it.
    house
        .hear(vec![
            edits(CHATTY, "$x1", "$card", other()),
            edits(HUB, "$x2", "$theirs", other()),
            edits(HUB, "$x3", "$unknown", card("e3")),
        ])
        .await;
    assert_eq!(house.carried(HUB, "e1").await.unwrap(), before);
    assert_eq!(house.carried(HUB, "e3").await, None);

    house.hear(vec![edits(HUB, "$x4", "$card", other())]).await;
    house.hear(vec![to("$card", mira("$m1", "3"))]).await;
    let answered = house.carried(HUB, "e1").await.unwrap();
    let option = answered.answer.clone().unwrap().option.unwrap();
    assert_eq!((option.number, &*option.id), (3, "never"));
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.answered"]
    );
    // What is over says what it said.
    house
        .hear(vec![edits(HUB, "$x5", "$card", card("e1"))])
        .await;
    assert_eq!(house.carried(HUB, "e1").await.unwrap(), answered);
}

#[tokio::test]
async fn an_edit_without_the_card_or_its_redaction_closes_it_and_the_agent_is_told() {
    let mut house = house().await;
    house
        .hear(vec![
            shows(HUB, "$card1", card("e1")),
            shows(HUB, "$card2", card("e2")),
            gone(CHATTY, "$x1", "$card1"),
            gone(HUB, "$x2", "$unknown"),
        ])
        .await;
    assert_eq!(house.told("e1").await, ["elicitation.open"]);
    house
        .hear(vec![
            gone(HUB, "$x3", "$card1"),
            redaction("$r1", "$card2"),
            gone(HUB, "$x4", "$card1"),
        ])
        .await;
    for (id, reason) in [
        ("e1", "closed by who carries it"),
        ("e2", "its card was removed from the room"),
    ] {
        let over = house.carried(HUB, id).await.unwrap();
        assert_eq!(over.state, State::Cancelled);
        assert_eq!(over.reason.as_deref(), Some(reason));
        assert_eq!(
            house.told(id).await,
            ["elicitation.open", "elicitation.cancelled"]
        );
    }
    // It is not the bot's card to edit.
    assert_eq!(kinds(&house.post().await), []);
}

#[tokio::test]
async fn a_redacted_answer_is_told_without_its_text() {
    let mut house = house().await;
    let in_words = card_of("builder", "e1", &[]);
    house
        .hear(vec![
            shows(HUB, "$card", in_words),
            to("$card", mira("$m1", "a secret")),
        ])
        .await;
    let told = format!("{:?}", house.events("builder").await);
    assert!(told.contains("a secret"));
    house.hear(vec![redaction("$r1", "$m1")]).await;
    assert_eq!(
        house.told("e1").await,
        [
            "elicitation.open",
            "elicitation.answered",
            "answer.redacted"
        ]
    );
    let told = format!("{:?}", house.events("builder").await);
    assert!(!told.contains("a secret"), "{told}");
    assert_eq!(kinds(&house.post().await), []);
}

#[tokio::test]
async fn a_card_of_whom_nobody_trusts_is_not_read() {
    let house = house().await;
    let strict = Rules {
        require_verified: true,
        ..Rules::default()
    };
    house
        .hear(vec![
            shows("@stranger:x.org", "$a", card("e1")),
            trusted(Trust::Refused, shows(HUB, "$b", card("e1"))),
        ])
        .await;
    let mut at = 0;
    for trust in [Trust::Unverified, Trust::Clear] {
        at += 1;
        let shown = trusted(trust, shows(HUB, &format!("$strict{at}"), card("e1")));
        let batch = with_rules(&strict, vec![shown]);
        house.service.take_in(batch).await.unwrap();
    }
    for carrier in [HUB, "@stranger:x.org"] {
        assert_eq!(house.carried(carrier, "e1").await, None);
    }
    // Elsewhere that is enough, and for a verified one everywhere.
    let verified = trusted(Trust::Verified, shows(HUB, "$c", card("e1")));
    let batch = with_rules(&strict, vec![verified]);
    house.service.take_in(batch).await.unwrap();
    house
        .hear(vec![trusted(
            Trust::Unverified,
            shows(HUB, "$d", card("e2")),
        )])
        .await;
    let open = house.carried(HUB, "e1").await.unwrap();
    assert_eq!(open.event_id.as_deref(), Some("$c"));
    assert!(house.carried(HUB, "e2").await.is_some());
    // Nor does what only claims to be the carrier's close or change one.
    house
        .hear(vec![
            trusted(Trust::Refused, gone(HUB, "$x1", "$c")),
            trusted(
                Trust::Refused,
                edits(HUB, "$x2", "$c", card_of("builder", "e1", &["No"])),
            ),
        ])
        .await;
    assert_eq!(house.carried(HUB, "e1").await, Some(open));
}

#[tokio::test]
async fn after_an_upgrade_the_carrier_puts_its_card_up_again_and_it_is_answered_there() {
    let mut house = house().await;
    house.hear(vec![shows(HUB, "$card", card("e1"))]).await;
    let moved = house.service.follow_upgrade(ROOM, NEXT).await.unwrap();
    assert_eq!(moved, Some(1));
    assert_eq!(kinds(&house.post().await), []);
    let between = house.carried(HUB, "e1").await.unwrap();
    assert_eq!((between.state, &between.event_id), (State::Open, &None));
    let take_in = async |heard: Vec<Heard>| {
        let batch = with_rules(&Rules::default(), heard);
        house.service.take_in(batch).await.unwrap();
    };
    take_in(vec![there(mira("$m1", "2"))]).await;
    assert_eq!(house.told("e1").await, ["elicitation.open"]);
    take_in(vec![
        there(shows(HUB, "$new", card("e1"))),
        there(mira("$m2", "1")),
    ])
    .await;
    let answered = house.carried(HUB, "e1").await.unwrap();
    assert_eq!(answered.question.room_id, NEXT);
    assert_eq!(answered.event_id.as_deref(), Some("$new"));
    assert_eq!(answered.answer.unwrap().event_id, "$m2");
    assert_eq!(
        house.told("e1").await,
        [
            "elicitation.open",
            "elicitation.open",
            "elicitation.answered"
        ]
    );
    assert_eq!(kinds(&house.post().await), []);
}

#[tokio::test]
async fn a_carrier_that_follows_the_upgrade_first_has_put_its_card_up_there() {
    let house = house().await;
    let take_in = async |heard: Vec<Heard>| {
        let batch = with_rules(&Rules::default(), heard);
        house.service.take_in(batch).await.unwrap();
    };
    take_in(vec![
        shows(HUB, "$card", card("e1")),
        there(shows(HUB, "$new", card("e1"))),
        there(to("$new", mira("$m1", "2"))),
        there(mira("$m2", "2")),
    ])
    .await;
    // Whether that room took the place of the first is not known yet.
    let open = house.carried(HUB, "e1").await.unwrap();
    assert_eq!((open.state, &*open.question.room_id), (State::Open, ROOM));
    assert_eq!(open.event_id.as_deref(), Some("$card"));

    let moved = house.service.follow_upgrade(ROOM, NEXT).await.unwrap();
    assert_eq!(moved, Some(1));
    let moved = house.carried(HUB, "e1").await.unwrap();
    assert_eq!(moved.question.room_id, NEXT);
    assert_eq!(moved.event_id.as_deref(), Some("$new"));
    assert!(moved.visible);
    take_in(vec![there(mira("$m3", "1"))]).await;
    let answered = house.carried(HUB, "e1").await.unwrap();
    assert_eq!(answered.answer.unwrap().event_id, "$m3");
    assert_eq!(
        house.told("e1").await,
        [
            "elicitation.open",
            "elicitation.open",
            "elicitation.answered"
        ]
    );
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_told_of_only_where_the_bot_speaks() {
    let mut house = house().await;
    let unreadable = async |house: &House, sender: &str, event_id: &str| {
        let kept = Undecrypted {
            room_id: ROOM.to_owned(),
            event_id: event_id.to_owned(),
            sender: sender.to_owned(),
            raw: "{}".to_owned(),
            heard_at: clock::now(),
            told: false,
        };
        let batch = Batch {
            undecrypted: vec![kept.clone()],
            unreadable: vec![kept],
            ..Batch::default()
        };
        house.take_in(batch).await;
    };
    house.hear(vec![shows(HUB, "$card", card("e1"))]).await;
    unreadable(&house, "@mira:x.org", "$u1").await;
    assert_eq!(kinds(&house.post().await), []);
    house.open_question("e2").await;
    unreadable(&house, HUB, "$u2").await;
    assert_eq!(kinds(&house.post().await), []);
    unreadable(&house, "@mira:x.org", "$u3").await;
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Notice]);
    assert_eq!(posted[0].sending.draft.key, Key::new("builder", "e2"));
}

#[tokio::test]
async fn a_carriers_question_in_a_room_that_is_lost_reaches_nobody_and_the_agent_is_told() {
    let mut house = house().await;
    house.hear(vec![shows(HUB, "$card", card("e1"))]).await;
    let lost = Batch {
        lost: vec![ROOM.to_owned()],
        ..Batch::default()
    };
    house.take_in(lost).await;
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.undeliverable"]
    );
    assert_eq!(kinds(&house.post().await), []);
}

#[tokio::test]
async fn a_card_that_was_kept_behind_a_hole_puts_its_room_on_the_watch() {
    let house = house().await;
    let rooms = || with_rules(&Rules::default(), Vec::new()).rooms;
    let gap = Gap {
        room_id: ROOM.to_owned(),
        prev_batch: "p1".to_owned(),
        since: None,
        found_at: clock::now(),
    };
    let found = Batch {
        gaps: vec![gap],
        rooms: rooms(),
        ..Batch::default()
    };
    house.service.take_in(found).await.unwrap();
    house.hear(vec![shows(HUB, "$card", card("e1"))]).await;
    assert_eq!(
        house.carried(HUB, "e1").await,
        None,
        "it waits for the hole"
    );
    let number = Said {
        body: "1".to_owned(),
        ..Said::default()
    };
    let filled = Batch {
        filled: Some(Filled {
            room_id: ROOM.to_owned(),
            prev_batch: "p1".to_owned(),
            never: false,
        }),
        rooms: rooms(),
        ..Batch::default()
    };
    house.service.take_in(filled).await.unwrap();
    assert!(house.carried(HUB, "e1").await.is_some());
    assert!(
        house.service.wants(ROOM, &number),
        "what follows may be an answer"
    );
}
