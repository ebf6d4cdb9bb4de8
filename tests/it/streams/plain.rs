//! A room without encryption, and everything that people do in one.

use matrix_elicit::sandbox::{Person, RoomOptions};
use serde_json::{Value, json};

use super::{
    TWENTY, answer_to, are_old, assert_tells, digest, has_heard, item, people, repeated, room_of,
    said, until, upvoted, with_stream,
};
use crate::support::{BotConfig, BotProcess, homeserver, unique};

/// A room of twenty people with the bot, and somebody else's bot that is known to be one.
struct Room {
    people: Vec<Person>,
    robot: Person,
    room: String,
    bot: BotProcess,
}

impl Room {
    async fn new() -> Self {
        let synapse = homeserver().await;
        let people = people(synapse, &TWENTY).await;
        let robot = synapse.person(&unique("robot")).await.unwrap();
        let config = BotConfig::new(synapse).await;
        let options = RoomOptions {
            invite: vec![config.user_id().to_owned()],
            ..RoomOptions::default()
        };
        let room = room_of(&people, options).await;
        robot.join(&room).await.unwrap();
        let config = config.with("answers.bots", json!(["@robot-*:elicit.test"]));
        let bot = BotProcess::start(with_stream(config, &room)).await;
        assert_tells(&digest(&bot, None).await, None, &[]);
        are_old(&bot, people.len()).await;
        Self {
            people,
            robot,
            room,
            bot,
        }
    }

    fn who(&self, name: &str) -> &Person {
        let place = TWENTY.iter().position(|one| *one == name);
        &self.people[place.unwrap()]
    }

    async fn say(&self, name: &str, body: &str) -> String {
        let said = self.who(name).send_text(&self.room, body).await;
        said.unwrap()
    }

    async fn send(&self, name: &str, content: Value) -> String {
        let sent = self
            .who(name)
            .send_content(&self.room, "m.room.message", &content);
        sent.await.unwrap()
    }

    async fn react(&self, names: &[&str], event: &str, key: &str) {
        for name in names {
            let reacted = self.who(name).react(&self.room, event, key).await;
            reacted.unwrap();
        }
    }

    fn item(&self, name: &str, what: &str, kind: &str) -> Value {
        item(name, self.who(name).user_id(), what, kind)
    }

    /// One is muted, one banned, one removed, and one does not want to be read; each has said
    /// something before that, and voted for a message.
    async fn leave_some_out(&self, voted: &str) {
        for name in ["Quinn", "Rita", "Sam", "Tom"] {
            let body = format!("{name} wants a word in the release notes");
            self.say(name, &body).await;
            self.react(&[name], voted, "👍").await;
        }
        let ada = self.who("Ada");
        let levels = ada.state(&self.room, "m.room.power_levels", "").await;
        let mut levels = levels.unwrap().unwrap();
        levels["users"][self.who("Quinn").user_id()] = json!(-1);
        let set = ada.set_state(&self.room, "m.room.power_levels", "", &levels);
        set.await.unwrap();
        let rita = self.who("Rita").user_id();
        ada.ban(&self.room, rita).await.unwrap();
        let sam = self.who("Sam").user_id();
        ada.kick(&self.room, sam).await.unwrap();
        let off = self.say("Tom", "!agents off").await;
        let answer = answer_to(&self.bot, ada, &self.room, &off).await;
        assert!(
            answer.starts_with("Agents don't read what you say"),
            "{answer}"
        );
        self.say("Tom", "Tom has yet another word to say").await;
    }

    /// What is in no digest, whoever says it.
    async fn say_nothing(&self) {
        for (name, body) in [
            ("Ada", "hello everyone"),
            ("Ben", "hi Ada!"),
            ("Pia", "..."),
        ] {
            self.say(name, body).await;
        }
        let robot = self.robot.send_text(&self.room, "nightly build is out");
        robot.await.unwrap();
        self.send(
            "Mia",
            json!({"msgtype": "m.notice", "body": "away from my desk"}),
        )
        .await;
        self.send(
            "Mia",
            json!({"msgtype": "m.image", "body": "desk.png", "url": "mxc://elicit.test/a"}),
        )
        .await;
        let gone = self.say("Leo", "let us delete the main branch").await;
        self.react(&["Ada", "Ben"], &gone, "👍").await;
        self.who("Leo").redact(&self.room, &gone).await.unwrap();
    }
}

#[tokio::test]
async fn twenty_people_talk_and_the_agent_gets_what_they_said_in_windows_that_meet() {
    let room = Room::new().await;
    let start = digest(&room.bot, None).await;
    let since = until(&start);

    room.say_nothing().await;
    let flaky = room.say("Ben", "why is the test flaky?").await;
    room.react(&["Ben", "Cleo", "Dan", "Eve", "Finn"], &flaky, "👍")
        .await;
    // The same person once more, in other ways; and what is no vote.
    room.react(&["Finn"], &flaky, "👍🏽").await;
    room.react(&["Finn"], &flaky, "+1").await;
    room.react(&["Gus", "Hana"], &flaky, "❤️").await;
    let link = room
        .say("Cleo", "https://github.com/rust-lang/rust/pull/1")
        .await;
    let other = room
        .say("Dan", "https://github.com/tokio-rs/tokio/issues/7")
        .await;
    // For both, which is one thing.
    room.react(&["Hana"], &link, ":+1:").await;
    room.react(&["Hana"], &other, "👍️").await;
    room.say("Eve", "please pin the toolchain").await;
    room.say("Finn", "Pin the toolchain!").await;
    let typo = room
        .say("Ivo", "run them on amr64, see www.rust-lang.org/tools")
        .await;
    room.react(&["Jun"], &typo, "👍").await;
    room.who("Ivo")
        .edit(
            &room.room,
            &typo,
            "run them on arm64, see www.rust-lang.org/tools",
        )
        .await
        .unwrap();
    room.react(&["Kim"], &typo, "👍").await;
    room.say("Gus", "wow, nice").await;
    room.send("Hana", json!({"msgtype": "m.emote", "body": "is dancing"}))
        .await;
    room.say("Mia", "how do I run this locally").await;
    let (olga, rita) = (room.who("Olga").user_id(), room.who("Rita").user_id());
    room.say("Nils", &format!("{olga} and {rita} know the cache"))
        .await;
    room.leave_some_out(&flaky).await;
    let last = room.say("Jun", "the docs are out of date").await;
    has_heard(&room.bot, &last).await;

    let first = digest(&room.bot, Some(since)).await;
    let cache = format!("@{} and @someone know the cache", super::handle(olga));
    let expected = [
        upvoted(room.item("Ben", "why is the test flaky?", "question"), 4),
        upvoted(
            repeated(room.item("Cleo", "a link to github.com", "suggestion"), 2),
            1,
        ),
        upvoted(
            room.item(
                "Ivo",
                "run them on arm64, see a link to rust-lang.org",
                "suggestion",
            ),
            1,
        ),
        repeated(
            room.item("Eve", "please pin the toolchain", "suggestion"),
            2,
        ),
        room.item("Mia", "how do I run this locally", "question"),
        room.item("Nils", &cache, "suggestion"),
        room.item("Jun", "the docs are out of date", "suggestion"),
        room.item("Gus", "wow, nice", "reaction"),
        room.item("Hana", "is dancing", "reaction"),
    ];
    assert_tells(&first, Some(since), &expected);

    // A vote and an edit bring nothing back; what is new is told.
    room.react(&["Olga"], &flaky, "👍").await;
    room.who("Dan")
        .edit(&room.room, &other, "https://crates.io/crates/tokio")
        .await
        .unwrap();
    let plan = room.say("Kim", "run `cargo test --workspace` first").await;
    let with_quote = room
        .who("Leo")
        .reply_with_fallback(&room.room, &plan, "that takes an hour");
    with_quote.await.unwrap();
    let thread = room
        .who("Pia")
        .in_thread(&room.room, &plan, "does it work offline?");
    let thread = thread.await.unwrap();
    has_heard(&room.bot, &thread).await;
    let second = digest(&room.bot, Some(until(&first))).await;
    let expected = [
        room.item("Pia", "does it work offline?", "question"),
        room.item("Kim", "run `cargo test --workspace` first", "suggestion"),
        room.item("Leo", "that takes an hour", "suggestion"),
    ];
    assert_tells(&second, Some(until(&first)), &expected);
    assert_tells(
        &digest(&room.bot, Some(until(&second))).await,
        Some(until(&second)),
        &[],
    );

    // Asked again, the first window holds what it held, as it stands now.
    let again = digest(&room.bot, Some(since)).await;
    assert_eq!(
        said(&again),
        [
            "why is the test flaky?",
            "a link to github.com",
            "run them on arm64, see a link to rust-lang.org",
            "please pin the toolchain",
            "how do I run this locally",
            "does it work offline?",
            "a link to crates.io",
            &cache,
            "the docs are out of date",
            "run `cargo test --workspace` first",
        ]
    );
    assert_eq!(again["items"][0]["upvotes"], 5);
    assert_eq!(again["truncated"], true);
}
