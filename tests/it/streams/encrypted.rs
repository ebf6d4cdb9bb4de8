//! The same where everything is end-to-end encrypted.

use matrix_elicit::sandbox::{Person, RoomOptions};
use serde_json::{Value, json};

use super::{
    TWENTY, all_join, are_old, assert_tells, digest, has_heard, holds_words, inviting, item,
    people, repeated, until, upvoted, with_stream, word,
};
use crate::encrypted_room::Distant;
use crate::scene::count;
use crate::support::{BotConfig, BotProcess, EncryptedPerson, homeserver, soon, unique};

/// Who of the twenty has a client that encrypts; more would take long. The others vote, which Matrix
/// does not encrypt, and what they say they say in clear.
const SPEAKERS: [&str; 4] = ["Ben", "Dan", "Quinn", "Tom"];

/// An encrypted room of twenty people with the bot.
struct Secret {
    speakers: Vec<EncryptedPerson>,
    /// Of whom the first made the room.
    others: Vec<Person>,
    room: String,
    bot: BotProcess,
}

impl Secret {
    async fn new() -> Self {
        let synapse = homeserver().await;
        let mut speakers = Vec::new();
        for name in SPEAKERS {
            let person = EncryptedPerson::register(synapse, &unique(&name.to_lowercase())).await;
            person.plain().set_display_name(name).await.unwrap();
            speakers.push(person);
        }
        let others = people(synapse, &others()).await;
        let config = BotConfig::new(synapse).await;
        let options = RoomOptions {
            encrypted: true,
            preset: Some("public_chat".to_owned()),
            ..inviting(&config)
        };
        let room = others[0].create_room(&options).await.unwrap();
        for speaker in &speakers {
            speaker.join(&room).await;
        }
        all_join(&others[1..], &room).await;
        let bot = BotProcess::start(with_stream(config, &room)).await;
        assert_tells(&digest(&bot, None).await, None, &[]);
        are_old(&bot, TWENTY.len()).await;
        Self {
            speakers,
            others,
            room,
            bot,
        }
    }

    fn speaker(&self, name: &str) -> &EncryptedPerson {
        let place = SPEAKERS.iter().position(|one| *one == name);
        &self.speakers[place.unwrap()]
    }

    fn other(&self, name: &str) -> &Person {
        let place = others().iter().position(|one| *one == name);
        &self.others[place.unwrap()]
    }

    async fn say(&self, name: &str, body: &str) -> String {
        self.speaker(name).send_text(&self.room, body).await
    }

    async fn say_in_clear(&self, name: &str, body: &str) -> String {
        let said = self.other(name).send_text(&self.room, body).await;
        said.unwrap()
    }

    /// So many people vote.
    async fn upvote(&self, event: &str, votes: usize) {
        for voter in &self.others[..votes] {
            voter.react(&self.room, event, "👍").await.unwrap();
        }
    }

    fn item(&self, name: &str, what: &str, kind: &str) -> Value {
        let user_id = if SPEAKERS.contains(&name) {
            self.speaker(name).user_id()
        } else {
            self.other(name).user_id()
        };
        item(name, user_id, what, kind)
    }

    /// One is muted, one banned, and one does not want to be read.
    async fn leave_some_out(&self, word: &str) {
        for name in ["Quinn", "Tom"] {
            self.say(name, &format!("{name} wants {word}")).await;
        }
        self.say_in_clear("Rita", &format!("Rita wants {word}"))
            .await;
        let ada = self.other("Ada");
        let levels = ada.state(&self.room, "m.room.power_levels", "").await;
        let mut levels = levels.unwrap().unwrap();
        levels["users"][self.speaker("Quinn").user_id()] = json!(-1);
        let set = ada.set_state(&self.room, "m.room.power_levels", "", &levels);
        set.await.unwrap();
        let rita = self.other("Rita").user_id();
        ada.ban(&self.room, rita).await.unwrap();
        let off = self.say("Tom", "!agents off").await;
        let answers =
            |event: &Value| event["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == *off;
        let tom = self.speaker("Tom");
        tom.wait_for_decrypted(&self.room, "an answer", answers)
            .await;
        self.say("Tom", &format!("Tom still wants {word}")).await;
    }
}

/// Who of the twenty does not encrypt.
fn others() -> Vec<&'static str> {
    let others = TWENTY.into_iter();
    others.filter(|name| !SPEAKERS.contains(name)).collect()
}

#[tokio::test]
async fn twenty_people_talk_encrypted_and_what_is_readable_late_is_told_late() {
    let talk = Secret::new().await;
    let distant = Distant::new(talk.other("Cleo").account()).await;
    let start = digest(&talk.bot, None).await;
    let since = until(&start);
    let secret = word("walrus");

    talk.say("Dan", "hello everyone").await;
    let flaky = talk.say("Ben", "why is the test flaky?").await;
    talk.upvote(&flaky, 4).await;
    talk.say("Ben", "https://github.com/rust-lang/rust/pull/1")
        .await;
    talk.say("Dan", "https://github.com/tokio-rs/tokio/issues/7")
        .await;
    let (dan, room) = (talk.speaker("Dan"), &talk.room);
    let typo = talk.say("Dan", "run them on amr64").await;
    talk.upvote(&typo, 1).await;
    dan.edit(room, &typo, "run them on arm64").await;
    let gone = talk.say("Dan", &format!("delete {secret}")).await;
    dan.plain().redact(room, &gone).await.unwrap();
    let emote = json!({"msgtype": "m.emote", "body": "is dancing"});
    dan.send_content(room, "m.room.message", emote).await;
    talk.leave_some_out(&secret).await;
    talk.say_in_clear("Ada", "the docs are out of date").await;
    distant
        .say_with_late_keys(&talk.room, "what about the cache?")
        .await;
    let last = talk.say("Ben", "ship it at noon").await;
    has_heard(&talk.bot, &last).await;
    assert_eq!(count(&talk.bot, "SELECT COUNT(*) FROM undecrypted"), 1);

    let first = digest(&talk.bot, Some(since)).await;
    let link = talk.item("Ben", "a link to github.com", "suggestion");
    let expected = [
        upvoted(talk.item("Ben", "why is the test flaky?", "question"), 4),
        repeated(link, 2),
        talk.item("Dan", "run them on arm64", "suggestion"),
        talk.item("Ada", "the docs are out of date", "suggestion"),
        talk.item("Ben", "ship it at noon", "suggestion"),
        talk.item("Dan", "is dancing", "reaction"),
    ];
    assert_tells(&first, Some(since), &expected);
    // What is only left out stays: whoever said it may be back.
    let deleted = format!("delete {secret}");
    let deleted = ["tom wants", "tom still wants", &deleted];
    assert_eq!(holds_words(&talk.bot, &deleted), [""; 0]);
    assert_ne!(holds_words(&talk.bot, &["quinn wants"]), [""; 0]);

    distant.relay().catch_up().await;
    all_is_read(&talk.bot).await;
    let second = digest(&talk.bot, Some(until(&first))).await;
    let late = talk.item("Cleo", "what about the cache?", "question");
    assert_tells(&second, Some(until(&first)), &[late]);
    let third = digest(&talk.bot, Some(until(&second))).await;
    assert_tells(&third, Some(until(&second)), &[]);
}

#[tokio::test]
async fn a_vote_for_what_cannot_be_read_yet_counts_once_it_can() {
    let synapse = homeserver().await;
    let ada = EncryptedPerson::register(synapse, &unique("ada")).await;
    let ben = people(synapse, &["Ben"]).await.remove(0);
    let cleo = people(synapse, &["Cleo"]).await.remove(0);
    let distant = Distant::new(cleo.account()).await;
    let config = BotConfig::new(synapse).await;
    let options = RoomOptions {
        encrypted: true,
        preset: Some("public_chat".to_owned()),
        ..inviting(&config)
    };
    let room = ada.plain().create_room(&options).await.unwrap();
    all_join(&[ben.clone(), cleo.clone()], &room).await;
    let bot = BotProcess::start(with_stream(config, &room)).await;
    assert_tells(&digest(&bot, None).await, None, &[]);
    are_old(&bot, 3).await;
    let late = distant
        .say_with_late_keys(&room, "what about the cache?")
        .await;
    ben.react(&room, &late, "👍").await.unwrap();
    let taken_back = ada.plain().react(&room, &late, "👍").await.unwrap();
    ada.plain().redact(&room, &taken_back).await.unwrap();
    let last = ada.send_text(&room, "ship it at noon").await;
    has_heard(&bot, &last).await;
    assert_eq!(count(&bot, "SELECT COUNT(*) FROM undecrypted"), 1);
    let first = digest(&bot, None).await;
    distant.relay().catch_up().await;
    all_is_read(&bot).await;
    let late = item("Cleo", cleo.user_id(), "what about the cache?", "question");
    let second = digest(&bot, Some(until(&first))).await;
    assert_tells(&second, Some(until(&first)), &[upvoted(late, 1)]);
}

/// Waits until no message waits for its key.
async fn all_is_read(bot: &BotProcess) {
    soon("the late message to be read", async || {
        let left = count(bot, "SELECT COUNT(*) FROM undecrypted");
        (left == 0).then_some(())
    })
    .await;
}
