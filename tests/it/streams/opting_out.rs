//! `!agents off` and `!agents on`: whoever does not want to be read leaves no word behind.

use matrix_elicit::sandbox::{Person, RoomOptions, Synapse};
use serde_json::Value;

use super::{
    answer_to, are_old, assert_tells, digest, has_heard, holds_words, inviting, item, people,
    repeated, room_of, until, upvoted, with_stream, word,
};
use crate::stage::has_joined;
use crate::support::{BotConfig, BotProcess, EncryptedPerson, homeserver, unique};

const UNREAD: &str = "Agents don't read what you say";
const READ: &str = "Agents may read what you say";

/// Ada in a stream's room, and Ben, whose client encrypts where a room is encrypted.
struct Pair {
    bot: BotProcess,
    ada: Person,
    ben: EncryptedPerson,
    room: String,
}

impl Pair {
    async fn new(synapse: &Synapse) -> Self {
        let ada = people(synapse, &["Ada"]).await.remove(0);
        let ben = EncryptedPerson::register(synapse, &unique("ben")).await;
        ben.plain().set_display_name("Ben").await.unwrap();
        let config = BotConfig::new(synapse).await;
        let room = room_of(std::slice::from_ref(&ada), inviting(&config)).await;
        ben.join(&room).await;
        let bot = BotProcess::start(with_stream(config, &room)).await;
        assert_tells(&digest(&bot, None).await, None, &[]);
        are_old(&bot, 2).await;
        Self {
            bot,
            ada,
            ben,
            room,
        }
    }

    /// A room that Ben has alone with the bot.
    async fn direct(&self, encrypted: bool) -> String {
        let options = RoomOptions {
            encrypted,
            invite: vec![self.bot.user_id().to_owned()],
            preset: Some("trusted_private_chat".to_owned()),
            ..RoomOptions::default()
        };
        let room = self.ben.plain().create_room(&options).await.unwrap();
        has_joined(&self.bot, &room).await;
        room
    }

    /// Ben says something to the bot; what it answers.
    async fn answers(&self, room: &str, body: &str) -> String {
        let asked = self.ben.send_text(room, body).await;
        let bot = self.bot.user_id();
        let answers = |event: &Value| {
            event["sender"] == bot
                && event["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == *asked
        };
        let answer = self.ben.wait_for(room, "an answer", answers).await;
        answer["content"]["body"].as_str().unwrap().to_owned()
    }

    fn ada_says(&self, what: &str, kind: &str) -> Value {
        item("Ada", self.ada.user_id(), what, kind)
    }

    fn ben_says(&self, what: &str, kind: &str) -> Value {
        item("Ben", self.ben.user_id(), what, kind)
    }
}

#[tokio::test]
async fn whoever_turns_agents_off_in_an_encrypted_direct_room_is_unsaid_in_every_stream() {
    let pair = Pair::new(homeserver().await).await;
    let Pair { ada, ben, room, .. } = &pair;
    let direct = pair.direct(true).await;
    // What Ben says, and what he says again later in other words.
    let (first, edited, later) = (word("walrus"), word("narwhal"), word("manatee"));
    let asked = ada
        .send_text(room, "who owns the release notes?")
        .await
        .unwrap();
    let said = ben.send_text(room, &format!("rename it to {first}")).await;
    ben.edit(room, &said, &format!("rename it to {edited}"))
        .await;
    let same = ben.send_text(room, "tag it today").await;
    ada.send_text(room, "Tag it today!").await.unwrap();
    ben.plain().react(room, &asked, "👍").await.unwrap();
    let last = ada
        .send_text(room, &format!("{} knows it", ben.user_id()))
        .await
        .unwrap();
    has_heard(&pair.bot, &last).await;
    let known = format!("@{} knows it", super::handle(ben.user_id()));
    let before = digest(&pair.bot, None).await;
    let expected = [
        upvoted(pair.ada_says("who owns the release notes?", "question"), 1),
        repeated(pair.ben_says("tag it today", "suggestion"), 2),
        pair.ben_says(&format!("rename it to {edited}"), "suggestion"),
        pair.ada_says(&known, "suggestion"),
    ];
    assert_tells(&before, None, &expected);
    assert!(!holds_words(&pair.bot, &[&first, &edited]).is_empty());

    assert!(pair.answers(&direct, "!agents").await.starts_with(READ));
    let answer = pair.answers(&direct, "!agents off").await;
    assert!(answer.starts_with(UNREAD), "{answer}");
    // By the time he is told so, it is so.
    assert_eq!(holds_words(&pair.bot, &[&first, &edited]), [""; 0]);
    let left = [
        pair.ada_says("who owns the release notes?", "question"),
        pair.ada_says("Tag it today!", "suggestion"),
        pair.ada_says("@someone knows it", "suggestion"),
    ];
    assert_tells(&digest(&pair.bot, None).await, None, &left);

    // Nothing new is kept either: neither lines nor edits of old ones, nor votes.
    ben.send_text(room, &format!("call it {later}")).await;
    ben.edit(room, &same, &format!("better call it {later}"))
        .await;
    let vote = ben.plain().react(room, &last, "👍").await.unwrap();
    let after = ada.send_text(room, "no news").await.unwrap();
    has_heard(&pair.bot, &after).await;
    has_heard(&pair.bot, &vote).await;
    assert_eq!(holds_words(&pair.bot, &[&first, &edited, &later]), [""; 0]);
    let mut left = left.to_vec();
    left.push(pair.ada_says("no news", "suggestion"));
    assert_tells(&digest(&pair.bot, None).await, None, &left);
}

#[tokio::test]
async fn that_agents_are_off_outlives_the_process_and_ends_with_agents_on() {
    let mut pair = Pair::new(homeserver().await).await;
    let direct = pair.direct(false).await;
    let words = [word("walrus"), word("manatee"), word("dugong")];
    let [first, down, last] = &words;
    let said = pair
        .ben
        .send_text(&pair.room, &format!("rename it to {first}"))
        .await;
    has_heard(&pair.bot, &said).await;
    assert_eq!(
        super::said(&digest(&pair.bot, None).await),
        [format!("rename it to {first}")]
    );
    assert!(
        pair.answers(&direct, "!agents off")
            .await
            .starts_with(UNREAD)
    );

    pair.bot.kill9();
    assert_eq!(holds_words(&pair.bot, &[first]), [""; 0]);
    // While the bot is down, and in the first response after it is back.
    pair.ben
        .send_text(&pair.room, &format!("call it {down}"))
        .await;
    pair.bot.start_again().await;
    let here = pair
        .ada
        .send_text(&pair.room, "who is here?")
        .await
        .unwrap();
    has_heard(&pair.bot, &here).await;
    let window = digest(&pair.bot, None).await;
    assert_tells(&window, None, &[pair.ada_says("who is here?", "question")]);
    assert_eq!(holds_words(&pair.bot, &[first, down]), [""; 0]);

    // In the stream's own room it is the same thing.
    assert!(
        pair.answers(&pair.room, "!agents")
            .await
            .starts_with(UNREAD)
    );
    assert!(
        pair.answers(&pair.room, "!agents on")
            .await
            .starts_with(READ)
    );
    assert!(pair.answers(&direct, "!agents").await.starts_with(READ));
    let said = pair
        .ben
        .send_text(&pair.room, &format!("what about {last}"))
        .await;
    has_heard(&pair.bot, &said).await;
    let next = digest(&pair.bot, Some(until(&window))).await;
    let expected = [pair.ben_says(&format!("what about {last}"), "question")];
    assert_tells(&next, Some(until(&window)), &expected);
    assert_eq!(holds_words(&pair.bot, &[first, down]), [""; 0]);
    // Of what people say the log has nothing at any time.
    let log = pair.bot.log();
    assert!(words.iter().all(|word| !log.contains(word)), "{log}");
}

#[tokio::test]
async fn a_message_that_is_deleted_leaves_no_word_behind() {
    let pair = Pair::new(homeserver().await).await;
    let (kept, gone, edited) = (word("walrus"), word("manatee"), word("dugong"));
    let said = pair
        .ada
        .send_text(&pair.room, &format!("keep {kept}"))
        .await
        .unwrap();
    pair.ada
        .edit(&pair.room, &said, &format!("drop {gone}"))
        .await
        .unwrap();
    let other = pair
        .ada
        .send_text(&pair.room, &format!("rename {edited}"))
        .await
        .unwrap();
    has_heard(&pair.bot, &other).await;
    let since = digest(&pair.bot, None).await;
    let expected = [format!("drop {gone}"), format!("rename {edited}")];
    assert_eq!(super::said(&since), expected);
    for event in [&said, &other] {
        let redaction = pair.ada.redact(&pair.room, event).await.unwrap();
        has_heard(&pair.bot, &redaction).await;
    }
    assert_eq!(holds_words(&pair.bot, &[&kept, &gone, &edited]), [""; 0]);
    assert_tells(&digest(&pair.bot, None).await, None, &[]);
    let asked = pair.ada.send_text(&pair.room, "!agents").await.unwrap();
    let answer = answer_to(&pair.bot, &pair.ada, &pair.room, &asked).await;
    assert!(answer.starts_with(READ), "{answer}");
}
