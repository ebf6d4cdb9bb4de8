//! What waits for a hole to be filled, or for its key.

use super::*;

/// What was kept behind a hole is talk as well, in its place.
#[tokio::test]
async fn talk_behind_a_hole_is_kept_once_the_hole_is_filled() {
    let house = house().await;
    house
        .take_in(Batch {
            gaps: vec![gap()],
            heard: vec![
                chats("@ben:x.org", "$2", "cache the build"),
                votes("@tom:x.org", "$v", "$1"),
            ],
            ..Batch::default()
        })
        .await;
    house
        .take_in(Batch {
            heard: vec![chats("@ana:x.org", "$1", "Cache the build")],
            filled: Some(filled()),
            ..Batch::default()
        })
        .await;
    let digest = house.digest(None).await;
    assert_eq!(told_in(&digest), [item("ana", "Cache the build", 1)]);
    assert_eq!(digest.items()[0].repeated(), Some(2));
}

/// A message waits for its key.
fn locked(event_id: &str, sender: &str) -> Undecrypted {
    Undecrypted {
        room_id: ROOM.to_owned(),
        event_id: event_id.to_owned(),
        sender: sender.to_owned(),
        raw: "{}".to_owned(),
        heard_at: clock::now(),
        told: false,
    }
}

/// What a message says may be known later than what was done about it, also in one response.
#[tokio::test]
async fn what_comes_with_a_message_that_waits_for_its_key_is_about_it() {
    let house = house().await;
    house
        .take_in(Batch {
            undecrypted: vec![
                locked("$1", "@ben:x.org"),
                locked("$2", "@tom:x.org"),
                locked("$3", "@ana:x.org"),
            ],
            heard: vec![
                edits("@ben:x.org", "$e1", "$1", Some("use a retry")),
                votes("@mira:x.org", "$v1", "$2"),
                votes("@ana:x.org", "$v2", "$2"),
                redaction("$r", "$3"),
            ],
            ..Batch::default()
        })
        .await;
    assert_eq!(house.items().await, [item("ben", "use a retry", 0)]);
    let read = ["$1", "$2", "$3"].map(|event_id| (ROOM.to_owned(), event_id.to_owned()));
    house
        .take_in(Batch {
            heard: vec![
                chats("@ben:x.org", "$1", "use a rtery"),
                chats("@tom:x.org", "$2", "pin the toolchain"),
                chats("@ana:x.org", "$3", "say nothing of it"),
            ],
            resolved: read.into(),
            ..Batch::default()
        })
        .await;
    let expected = [
        item("tom", "pin the toolchain", 2),
        item("ben", "use a retry", 0),
    ];
    assert_eq!(house.items().await, expected);
    assert!(!house.kept().await.contains("say nothing"));
}

/// The key of a message may come after that of its edit.
#[tokio::test]
async fn an_edit_that_can_be_read_before_its_message_counts() {
    let house = house().await;
    house
        .take_in(Batch {
            undecrypted: vec![locked("$1", "@ben:x.org"), locked("$2", "@tom:x.org")],
            ..Batch::default()
        })
        .await;
    house
        .hear(vec![
            edits("@ben:x.org", "$e1", "$1", Some("use a retry")),
            // Not theirs to edit.
            edits("@ben:x.org", "$e2", "$2", Some("use nothing")),
            edits("@ben:x.org", "$e3", "$3", Some("use what nobody said")),
        ])
        .await;
    assert_eq!(house.items().await, [item("ben", "use a retry", 0)]);
    house
        .take_in(Batch {
            heard: vec![chats("@ben:x.org", "$1", "use a rtery")],
            resolved: vec![(ROOM.to_owned(), "$1".to_owned())],
            ..Batch::default()
        })
        .await;
    assert_eq!(house.items().await, [item("ben", "use a retry", 0)]);
}

/// `digest.md` 12: at once, also where what was said before them is still being read.
#[tokio::test]
async fn taking_back_and_agents_off_wait_for_no_hole() {
    let house = house().await;
    house
        .hear(vec![
            chats("@ben:x.org", "$1", "use a retry"),
            chats("@ana:x.org", "$2", "pin the seed"),
            chats("@tom:x.org", "$3", "cache the build"),
        ])
        .await;
    house
        .take_in(Batch {
            gaps: vec![gap()],
            heard: vec![
                redaction("$r", "$1"),
                says_aloud("@ana:x.org", "$off", "!agents off"),
            ],
            ..Batch::default()
        })
        .await;
    let kept = house.kept().await;
    assert!(!kept.contains("retry") && !kept.contains("seed"), "{kept}");
    house
        .take_in(Batch {
            heard: vec![chats("@ana:x.org", "$0", "seed it first")],
            filled: Some(filled()),
            ..Batch::default()
        })
        .await;
    assert_eq!(house.items().await, [item("tom", "cache the build", 0)]);
}
