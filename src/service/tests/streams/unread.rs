//! Those whom agents do not read.

use super::*;

#[tokio::test]
async fn who_may_not_be_read_is_in_no_digest_and_may_be_again() {
    let house = house().await;
    house
        .hear(vec![
            chats("@mira:x.org", "$1", "why is the test flaky?"),
            chats("@ben:x.org", "$2", "use a retry"),
            chats("@stranger:x.org", "$3", "buy my coins"),
            votes("@ben:x.org", "$4", "$1"),
        ])
        .await;
    let mira = |upvotes| item("mira", "why is the test flaky?", upvotes);
    let ben = item("ben", "use a retry", 0);
    assert_eq!(house.items().await, [mira(1), ben.clone()]);
    for standing in [Standing::Banned, Standing::Muted] {
        house.stands("@ben:x.org", standing);
        assert_eq!(house.items().await, [mira(0)], "{standing:?}");
    }
    house.stands("@ben:x.org", Standing::In);
    house
        .service
        .silence(STREAM, "@ben:x.org", None)
        .await
        .unwrap();
    assert_eq!(house.items().await, [mira(0)]);
    assert_eq!(
        house.service.silenced(STREAM).await.unwrap(),
        [("@ben:x.org".to_owned(), None)]
    );
    assert!(house.service.unsilence(STREAM, "@ben:x.org").await.unwrap());
    assert_eq!(house.items().await, [mira(1), ben]);
}

#[tokio::test]
async fn whoever_is_not_known_for_a_day_is_not_told_of() {
    let house = house().await;
    for (user_id, since) in [("@young:x.org", DAY - 60_000), ("@old:x.org", DAY + 60_000)] {
        let person = RoomPerson {
            user_id: user_id.to_owned(),
            display_name: None,
            standing: Standing::In,
        };
        house.rooms.2.lock().unwrap().push(person);
        let age = vec![(user_id.to_owned(), clock::now() - since)];
        house.service.note_ages(ROOM, age).await.unwrap();
    }
    let new = Batch {
        heard: vec![
            chats("@young:x.org", "$1", "use a retry"),
            chats("@old:x.org", "$2", "pin the seed"),
        ],
        met: vec!["@young:x.org".to_owned(), "@old:x.org".to_owned()],
        ..Batch::default()
    };
    house.take_in(new).await;
    assert_eq!(house.items().await, [item("old", "pin the seed", 0)]);
}

/// `digest.md` 2 and 12.
#[tokio::test]
async fn agents_off_takes_everything_back_at_once_and_keeps_nothing_until_agents_on() {
    let mut house = house().await;
    house
        .hear(vec![
            chats("@mira:x.org", "$1", "why is the test flaky?"),
            chats("@ben:x.org", "$2", "use a retry"),
            votes("@mira:x.org", "$3", "$2"),
        ])
        .await;
    // In another room that is no stream, with somebody of whom nothing could be looked up.
    let mut off = mira("$off", "!agents off");
    off.room_id = "!other:x.org".to_owned();
    off.sender.joined = false;
    house.hear(vec![off]).await;
    assert!(!house.kept().await.contains("flaky"));
    assert_eq!(house.items().await, [item("ben", "use a retry", 0)]);
    assert!(house.post().await.is_empty(), "nobody is there to be told");

    house
        .hear(vec![
            chats("@mira:x.org", "$4", "and still flaky?"),
            votes("@mira:x.org", "$5", "$2"),
            says_aloud("@mira:x.org", "$6", "!agents"),
        ])
        .await;
    assert!(!house.kept().await.contains("flaky"));
    assert_eq!(house.items().await, [item("ben", "use a retry", 0)]);
    let told = house.post().await;
    assert!(told[0].body().starts_with("Agents don't read what you say"));

    house
        .hear(vec![
            says_aloud("@mira:x.org", "$7", "!agents on"),
            chats("@mira:x.org", "$8", "is it flaky now?"),
        ])
        .await;
    let told = house.post().await;
    assert!(told[0].body().starts_with("Agents may read what you say"));
    assert_eq!(
        house.items().await,
        [
            item("mira", "is it flaky now?", 0),
            item("ben", "use a retry", 0)
        ]
    );
}

#[tokio::test]
async fn agents_on_takes_a_message_of_their_own_and_the_bare_word() {
    let mut house = house().await;
    house
        .hear(vec![says_aloud("@mira:x.org", "$1", "!agents off, please")])
        .await;
    house.post().await;
    let mut forged = says_aloud("@mira:x.org", "$2", "!agents on");
    forged.trust = Trust::Refused;
    let unclear = says_aloud("@mira:x.org", "$3", "!agents on the other hand");
    house
        .hear(vec![
            forged,
            unclear,
            chats("@mira:x.org", "$4", "hm, why?"),
        ])
        .await;
    assert!(house.items().await.is_empty());
    let bodies: Vec<String> = house
        .post()
        .await
        .iter()
        .map(|it| it.body().to_owned())
        .collect();
    assert!(bodies[0].starts_with("Agents don't read"), "{bodies:?}");
    assert!(bodies[1].starts_with("I did not understand"), "{bodies:?}");
}
