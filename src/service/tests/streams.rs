//! Streams: what is kept of what was said, and what a digest makes of it.

mod unread;
mod waiting;

use super::*;
use crate::contract::digest::AgentDigest;
use crate::desk::Chat;
use crate::digest::Standing;

const STREAM: &str = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";
const DAY: Millis = 24 * 60 * 60 * 1000;

/// A house whose room is a stream, with people who have been there for long.
async fn house() -> House {
    house_with("").await
}

async fn house_with(more: &str) -> House {
    let stream = format!(
        r#"
        [streams.{STREAM}]
        room = "{ROOM}"
        agents = ["builder"]
        {more}
        "#
    );
    let house = House::with(&stream).await;
    let users = ["@mira:x.org", "@ben:x.org", "@ana:x.org", "@tom:x.org"];
    *house.rooms.2.lock().unwrap() = users
        .map(|user_id| RoomPerson {
            user_id: user_id.to_owned(),
            display_name: Some(user_id[1..user_id.len() - 6].to_owned()),
            standing: Standing::In,
        })
        .into();
    let ages = users.map(|user_id| (user_id.to_owned(), clock::now() - 2 * DAY));
    house.service.note_ages(ROOM, ages.into()).await.unwrap();
    house.service.health().synced(clock::now());
    house
}

impl House {
    fn stands(&self, user_id: &str, standing: Standing) {
        let mut people = self.rooms.2.lock().unwrap();
        let person = people.iter_mut().find(|it| it.user_id == user_id);
        person.expect("somebody of the room").standing = standing;
    }

    async fn digest(&self, since: Option<Millis>) -> AgentDigest {
        self.service.digest(STREAM, since).await.unwrap()
    }

    /// What stands in a digest of everything: who, what and for how many.
    async fn items(&self) -> Vec<(String, String, u64)> {
        told_in(&self.digest(None).await)
    }

    /// Everything that is kept of what was said, wherever it stands in the ledger.
    async fn kept(&self) -> String {
        let lines = self
            .service
            .book()
            .read(|ledger| ledger.lines(ROOM, None, Millis::MAX));
        let lines: Vec<crate::ledger::StoredLine> = lines.await.unwrap();
        format!("{lines:?}")
    }
}

fn told_in(digest: &AgentDigest) -> Vec<(String, String, u64)> {
    let items = digest.items().iter();
    items
        .map(|item| {
            let handle = item.who().handle().to_owned();
            (handle, item.what().to_owned(), item.upvotes())
        })
        .collect()
}

fn item(who: &str, what: &str, upvotes: u64) -> (String, String, u64) {
    (who.to_owned(), what.to_owned(), upvotes)
}

fn line_of(body: Option<&str>, in_reply_to: Option<&str>, replaces: Option<&str>) -> Chat {
    Chat::Line {
        body: body.map(str::to_owned),
        emote: false,
        in_reply_to: in_reply_to.map(str::to_owned),
        mentions: Vec::new(),
        replaces: replaces.map(str::to_owned),
    }
}

/// A hole in the room.
fn gap() -> Gap {
    Gap {
        room_id: ROOM.to_owned(),
        prev_batch: "p1".to_owned(),
        since: None,
        found_at: clock::now(),
    }
}

/// That it is filled.
fn filled() -> Filled {
    Filled {
        room_id: ROOM.to_owned(),
        prev_batch: "p1".to_owned(),
        never: false,
    }
}

/// Talk, and nothing else.
fn talks(user_id: &str, event_id: &str, chat: Chat) -> Heard {
    let mut heard = heard(user_id, event_id, What::Talk);
    heard.sender.joined = false;
    heard.chat = Some(chat);
    heard
}

fn chats(user_id: &str, event_id: &str, body: &str) -> Heard {
    talks(user_id, event_id, line_of(Some(body), None, None))
}

fn edits(user_id: &str, event_id: &str, line: &str, body: Option<&str>) -> Heard {
    talks(user_id, event_id, line_of(body, None, Some(line)))
}

fn votes(user_id: &str, event_id: &str, target: &str) -> Heard {
    let target = target.to_owned();
    talks(user_id, event_id, Chat::Vote { target })
}

/// A message that is also talk, as it comes where something is open.
fn says_aloud(user_id: &str, event_id: &str, body: &str) -> Heard {
    let mut heard = says(user_id, event_id, body);
    heard.chat = Some(line_of(Some(body), None, None));
    heard
}

#[tokio::test]
async fn what_was_said_since_is_told_once_and_nothing_is_lost_between_two_digests() {
    let house = house().await;
    house
        .hear(vec![
            chats("@mira:x.org", "$1", "why is the test flaky?"),
            chats("@ben:x.org", "$2", "use a retry"),
        ])
        .await;
    let first = house.digest(None).await;
    assert_eq!(first.since(), None);
    assert_eq!(
        told_in(&first),
        [
            item("mira", "why is the test flaky?", 0),
            item("ben", "use a retry", 0)
        ]
    );
    house
        .hear(vec![chats("@ana:x.org", "$3", "pin the seed")])
        .await;
    let second = house.digest(Some(first.until())).await;
    assert_eq!(second.since(), Some(first.until()));
    assert_eq!(told_in(&second), [item("ana", "pin the seed", 0)]);
    // Asking again is always right.
    let again = house.digest(Some(first.until())).await;
    assert_eq!(told_in(&again), told_in(&second));
    assert!(told_in(&house.digest(Some(second.until())).await).is_empty());
    assert_eq!(house.items().await.len(), 3);
}

/// `digest.md` 1: what is taken in later has its place behind every window that was closed before,
/// also when all of it happens within one millisecond.
#[tokio::test]
async fn windows_one_after_the_other_hold_every_line_exactly_once() {
    let house = house().await;
    let mut since = None;
    let mut told = Vec::new();
    for number in 0..60 {
        let body = format!("use the way number {number}");
        house
            .hear(vec![chats("@mira:x.org", &format!("${number}"), &body)])
            .await;
        if number % 2 == 0 {
            let digest = house.digest(since).await;
            told.extend(told_in(&digest).into_iter().map(|(_, what, _)| what));
            since = Some(digest.until());
        }
    }
    told.extend(
        told_in(&house.digest(since).await)
            .into_iter()
            .map(|(_, what, _)| what),
    );
    told.sort();
    let mut expected: Vec<String> = (0..60)
        .map(|number| format!("use the way number {number}"))
        .collect();
    expected.sort();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn lines_of_one_response_keep_their_order() {
    let house = house().await;
    // The ids are in the other order: without one of its own it would decide.
    house
        .hear(vec![
            chats("@tom:x.org", "$9", "cache the build"),
            chats("@ana:x.org", "$5", "Cache the build!"),
            chats("@ben:x.org", "$1", "cache the build"),
        ])
        .await;
    let digest = house.digest(None).await;
    assert_eq!(told_in(&digest), [item("tom", "cache the build", 0)]);
    assert_eq!(digest.items()[0].repeated(), Some(3));
}

#[tokio::test]
async fn edits_redactions_and_votes_are_applied() {
    let house = house().await;
    house
        .hear(vec![
            chats("@mira:x.org", "$1", "why is the tset flaky?"),
            chats("@ben:x.org", "$2", "drop the table"),
            chats("@ana:x.org", "$3", "pin the seed"),
            votes("@tom:x.org", "$v1", "$1"),
            edits("@mira:x.org", "$e1", "$1", Some("why is the test flaky?")),
            // Not theirs to edit.
            edits("@mira:x.org", "$e2", "$3", Some("pin nothing")),
            votes("@ben:x.org", "$v2", "$1"),
            votes("@tom:x.org", "$v3", "$1"),
            votes("@ana:x.org", "$v4", "$nothing"),
        ])
        .await;
    house
        .hear(vec![redaction("$r1", "$2"), redaction("$r2", "$v2")])
        .await;
    // The vote before the edit was for another text.
    assert_eq!(
        house.items().await,
        [
            item("mira", "why is the test flaky?", 1),
            item("ana", "pin the seed", 0)
        ]
    );
    assert!(!house.kept().await.contains("drop the table"));
    // An edit that goes leaves what was there before it; one into a file leaves nothing.
    house
        .hear(vec![
            redaction("$r3", "$e1"),
            edits("@ana:x.org", "$e3", "$3", None),
        ])
        .await;
    assert_eq!(
        house.items().await,
        [item("mira", "why is the tset flaky?", 0)]
    );
}

#[tokio::test]
async fn the_answers_to_cards_are_no_lines() {
    let mut house = house().await;
    let card = house.open_question("q-1").await;
    let mut reply = says_aloud("@ana:x.org", "$1", "2");
    reply.chat = Some(line_of(Some("2"), Some(&card), None));
    let to_tom = line_of(Some("wait"), Some("$0"), None);
    house
        .hear(vec![
            chats("@tom:x.org", "$0", "we could wait"),
            // To somebody else's words it is no answer.
            talks("@mira:x.org", "$4", to_tom),
            says_aloud("@ben:x.org", "$2", "Deploy"),
            reply,
            says_aloud("@tom:x.org", "$3", "deploy at night"),
        ])
        .await;
    assert_eq!(
        house.items().await,
        [
            item("tom", "we could wait", 0),
            item("mira", "wait", 0),
            item("tom", "deploy at night", 0)
        ]
    );
    // What was an answer is none of them, whatever it is edited into.
    house
        .hear(vec![edits("@ben:x.org", "$e", "$2", Some("is it night?"))])
        .await;
    assert_eq!(house.items().await.len(), 3);
}

#[tokio::test]
async fn there_is_no_digest_while_something_is_missing() {
    let house = house().await;
    house
        .hear(vec![chats("@ben:x.org", "$1", "use a retry")])
        .await;
    let why = async |house: &House| {
        let refused = house.service.digest(STREAM, None).await;
        refused.unwrap_err().to_string()
    };
    house
        .take_in(Batch {
            gaps: vec![gap()],
            ..Batch::default()
        })
        .await;
    assert_eq!(
        why(&house).await,
        "what was said while the bot was away is still being read"
    );
    house
        .take_in(Batch {
            heard: vec![chats("@ana:x.org", "$0", "pin the seed")],
            filled: Some(filled()),
            ..Batch::default()
        })
        .await;
    assert_eq!(house.items().await.len(), 2);

    house.service.health().sync_failed();
    assert_eq!(why(&house).await, "the homeserver does not answer");
    house.service.health().synced(clock::now());

    house.room(
        ROOM,
        Ok(RoomFacts {
            joined: false,
            ..facts(ROOM)
        }),
    );
    assert_eq!(
        why(&house).await,
        "the bot is not in the room of this stream"
    );
    house.room(ROOM, Err(RoomTrouble::Away("timed out".to_owned())));
    assert_eq!(
        why(&house).await,
        "the homeserver does not answer: timed out"
    );
    house.room(ROOM, Ok(facts("!unread:x.org")));
    assert_eq!(
        why(&house).await,
        "since when the people of the room are known is still being read"
    );
    assert!(matches!(
        house
            .service
            .digest("ags_01JAB2C3D4E5F6G7H8J9K0MNPR", None)
            .await,
        Err(DigestError::NotFound)
    ));
}

#[tokio::test]
async fn a_policy_list_that_cannot_be_read_lets_nobody_through() {
    let house = house_with(r##"policy_lists = ["#bans:x.org"]"##).await;
    house
        .hear(vec![chats("@ben:x.org", "$1", "use a retry")])
        .await;
    let refused = house.service.digest(STREAM, None).await.unwrap_err();
    assert!(
        refused.to_string().contains("#bans:x.org cannot be read"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_window_that_begins_after_now_is_refused_and_one_before_what_is_kept_has_what_is_left() {
    let house = house_with(r#"keep = "1h""#).await;
    house
        .hear(vec![chats("@ben:x.org", "$1", "use a retry")])
        .await;
    let later = clock::now() + 60_000;
    let refused = house.service.digest(STREAM, Some(later)).await.unwrap_err();
    assert!(matches!(refused, DigestError::SinceAfterUntil { until } if until < later));
    let long_ago = clock::now() - 300 * DAY;
    let digest = house.digest(Some(long_ago)).await;
    assert_eq!(digest.since(), Some(long_ago));
    assert_eq!(told_in(&digest), [item("ben", "use a retry", 0)]);
}

#[tokio::test]
async fn what_is_too_old_or_of_a_room_that_is_no_stream_any_more_is_deleted() {
    let house = house_with(r#"keep = "1h""#).await;
    let mut elsewhere = chats("@ana:x.org", "$2", "said elsewhere");
    elsewhere.room_id = "!other:x.org".to_owned();
    house
        .hear(vec![chats("@ben:x.org", "$1", "use a retry"), elsewhere])
        .await;
    let lines = async |room: &'static str| {
        let lines = house
            .service
            .book()
            .read(move |ledger| ledger.lines(room, None, Millis::MAX));
        let lines: Vec<crate::ledger::StoredLine> = lines.await.unwrap();
        lines.len()
    };
    assert_eq!((lines(ROOM).await, lines("!other:x.org").await), (1, 1));
    // While it is not known which room the stream has, no room is given up.
    house.room(ROOM, Err(RoomTrouble::Away("timed out".to_owned())));
    house.service.forget_talk(clock::now()).await.unwrap();
    assert_eq!((lines(ROOM).await, lines("!other:x.org").await), (1, 1));
    house.room(ROOM, Ok(facts(ROOM)));
    house.service.forget_talk(clock::now()).await.unwrap();
    assert_eq!((lines(ROOM).await, lines("!other:x.org").await), (1, 0));
    house
        .service
        .forget_talk(clock::now() + 3_600_001)
        .await
        .unwrap();
    assert_eq!(lines(ROOM).await, 0);
}

/// The homeserver may be away for days; nothing is kept for longer because of that.
#[tokio::test]
async fn what_is_older_than_a_day_is_deleted_whatever_else_is_not_known() {
    let house = house().await;
    house
        .hear(vec![chats("@ben:x.org", "$1", "use a retry")])
        .await;
    house.room(ROOM, Err(RoomTrouble::Away("timed out".to_owned())));
    house
        .service
        .forget_talk(clock::now() + DAY - 60_000)
        .await
        .unwrap();
    assert!(house.kept().await.contains("use a retry"));
    house
        .service
        .forget_talk(clock::now() + DAY + 60_000)
        .await
        .unwrap();
    assert_eq!(house.kept().await, "[]");
}

#[tokio::test]
async fn the_talk_of_a_room_goes_along_when_it_is_upgraded() {
    let house = house().await;
    house
        .hear(vec![chats("@ben:x.org", "$1", "use a retry")])
        .await;
    house
        .service
        .follow_upgrade(ROOM, "!next:x.org")
        .await
        .unwrap();
    house.room(ROOM, Ok(facts("!next:x.org")));
    assert_eq!(house.items().await, [item("ben", "use a retry", 0)]);
}

#[tokio::test]
async fn what_is_kept_is_there_after_a_restart_and_handles_stay() {
    let house = house().await;
    house
        .hear(vec![chats("@ben:x.org", "$1", "use a retry")])
        .await;
    let before = house.digest(None).await;
    let house = house.restart().await;
    // Another Ben, of an older account, comes later.
    house.rooms.2.lock().unwrap().push(RoomPerson {
        user_id: "@ben:y.org".to_owned(),
        display_name: None,
        standing: Standing::In,
    });
    let age = vec![("@ben:y.org".to_owned(), clock::now() - 300 * DAY)];
    house.service.note_ages(ROOM, age).await.unwrap();
    house.service.health().synced(clock::now());
    house
        .hear(vec![chats("@ben:y.org", "$2", "pin the seed")])
        .await;
    assert!(
        told_in(&house.digest(Some(before.until())).await)[0]
            .0
            .starts_with("ben_")
    );
    assert_eq!(house.items().await[0], item("ben", "use a retry", 0));
}

/// `digest.md` 12: whatever is unsent.
#[tokio::test]
async fn what_is_taken_back_while_a_digest_is_made_is_not_in_it() {
    let house = house().await;
    house
        .hear(vec![
            chats("@mira:x.org", "$1", "why is the test flaky?"),
            chats("@ben:x.org", "$2", "use a retry"),
            chats("@ana:x.org", "$3", "pin the seed"),
        ])
        .await;
    *house.rooms.3.closed.lock().unwrap() = true;
    let service = house.service.clone();
    let made = tokio::spawn(async move { service.digest(STREAM, None).await });
    soon(house.rooms.3.reached.notified()).await;
    house
        .hear(vec![
            says_aloud("@mira:x.org", "$off", "!agents off"),
            redaction("$r", "$2"),
            chats("@tom:x.org", "$4", "cache the build"),
        ])
        .await;
    house.rooms.3.opened.notify_one();
    let digest = soon(made).await.unwrap().unwrap();
    assert_eq!(told_in(&digest), [item("ana", "pin the seed", 0)]);
}
