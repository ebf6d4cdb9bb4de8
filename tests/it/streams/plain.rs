//! A room without encryption, and everything that people do in one.

use matrix_elicit::sandbox::Person;
use serde_json::{Value, json};

use super::{
    TWENTY, Talk, answer_to, assert_tells, digest, handle, has_heard, item, repeated, said, until,
    upvoted,
};
use crate::support::{BotConfig, BotProcess, homeserver, unique};

/// A room of twenty people with the bot, and somebody else's bot that is known to be one.
struct Plain {
    people: Vec<Person>,
    robot: Person,
    room: String,
    bot: BotProcess,
}

impl Plain {
    async fn new() -> Self {
        let synapse = homeserver().await;
        let robot = synapse.person(&unique("robot")).await.unwrap();
        let known =
            |config: BotConfig| config.with("answers.bots", json!(["@robot-*:elicit.test"]));
        let Talk { people, room, bot } = Talk::begin_with(synapse, &TWENTY, known).await;
        robot.join(&room).await.unwrap();
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

    async fn edit(&self, name: &str, event: &str, body: &str) {
        let edited = self.who(name).edit(&self.room, event, body).await;
        edited.unwrap();
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

    /// What is told of, in the first window: the events that are spoken of later.
    async fn say_much(&self) -> (String, String) {
        let flaky = self.say("Ben", "why is the test flaky?").await;
        self.react(&["Ben", "Cleo", "Dan", "Eve", "Finn"], &flaky, "👍")
            .await;
        // The same person once more, in other ways; and what is no vote.
        self.react(&["Finn"], &flaky, "👍🏽").await;
        self.react(&["Finn"], &flaky, "+1").await;
        self.react(&["Gus", "Hana"], &flaky, "❤️").await;
        let link = self
            .say("Cleo", "https://github.com/rust-lang/rust/pull/1")
            .await;
        let other = self
            .say("Dan", "https://github.com/tokio-rs/tokio/issues/7")
            .await;
        // For both, which is one thing.
        self.react(&["Hana"], &link, ":+1:").await;
        self.react(&["Hana"], &other, "👍️").await;
        self.say("Eve", "please pin the toolchain").await;
        self.say("Finn", "Pin the toolchain!").await;
        // A vote before an edit that says something else was for what it said before.
        let typo = self
            .say("Ivo", "run it on amr64, see www.rust-lang.org/tools")
            .await;
        self.react(&["Jun"], &typo, "👍").await;
        self.edit("Ivo", &typo, "run it on arm64, see www.rust-lang.org/tools")
            .await;
        self.react(&["Kim"], &typo, "👍").await;
        self.say("Gus", "wow, nice").await;
        self.send("Hana", json!({"msgtype": "m.emote", "body": "is dancing"}))
            .await;
        self.say("Mia", "how do I run this locally").await;
        let (olga, rita) = (self.who("Olga").user_id(), self.who("Rita").user_id());
        self.say("Nils", &format!("{olga} and {rita} know the cache"))
            .await;
        (flaky, other)
    }

    /// What the first window holds.
    fn much(&self) -> [Value; 9] {
        let link = repeated(self.item("Cleo", "a link to github.com", "suggestion"), 2);
        let arm = "run it on arm64, see a link to rust-lang.org";
        let pin = self.item("Eve", "please pin the toolchain", "suggestion");
        let cache = format!(
            "@{} and @someone know the cache",
            handle(self.who("Olga").user_id())
        );
        [
            upvoted(self.item("Ben", "why is the test flaky?", "question"), 4),
            upvoted(link, 1),
            upvoted(self.item("Ivo", arm, "suggestion"), 1),
            repeated(pin, 2),
            self.item("Mia", "how do I run this locally", "question"),
            self.item("Nils", &cache, "suggestion"),
            self.item("Jun", "the docs are out of date", "suggestion"),
            self.item("Gus", "wow, nice", "reaction"),
            self.item("Hana", "is dancing", "reaction"),
        ]
    }
}

#[tokio::test]
async fn twenty_people_talk_and_the_agent_gets_what_they_said_in_windows_that_meet() {
    let talk = Plain::new().await;
    let start = digest(&talk.bot, None).await;
    let since = until(&start);
    talk.say_nothing().await;
    let (flaky, link) = talk.say_much().await;
    talk.leave_some_out(&flaky).await;
    let last = talk.say("Jun", "the docs are out of date").await;
    has_heard(&talk.bot, &last).await;
    let first = digest(&talk.bot, Some(since)).await;
    assert_tells(&first, Some(since), &talk.much());

    // A vote and an edit bring nothing back; what is new is told.
    talk.react(&["Olga", "Pia"], &flaky, "👍").await;
    let vote = talk
        .who("Kim")
        .react(&talk.room, &flaky, "👍")
        .await
        .unwrap();
    talk.who("Kim").redact(&talk.room, &vote).await.unwrap();
    talk.edit("Dan", &link, "https://crates.io/crates/tokio")
        .await;
    let plan = talk.say("Kim", "run `cargo test --workspace` first").await;
    let (leo, pia) = (talk.who("Leo"), talk.who("Pia"));
    let quoting = leo.reply_with_fallback(&talk.room, &plan, "that takes an hour");
    quoting.await.unwrap();
    let thread = pia.in_thread(&talk.room, &plan, "does it work offline?");
    has_heard(&talk.bot, &thread.await.unwrap()).await;
    let second = digest(&talk.bot, Some(until(&first))).await;
    let expected = [
        talk.item("Pia", "does it work offline?", "question"),
        talk.item("Kim", "run `cargo test --workspace` first", "suggestion"),
        talk.item("Leo", "that takes an hour", "suggestion"),
    ];
    assert_tells(&second, Some(until(&first)), &expected);
    let third = digest(&talk.bot, Some(until(&second))).await;
    assert_tells(&third, Some(until(&second)), &[]);

    // Asked again, the first window holds what it held, as it stands now.
    let again = digest(&talk.bot, Some(since)).await;
    let much = talk.much();
    let cache = much[5]["what"].as_str().unwrap();
    let expected = [
        "why is the test flaky?",
        "a link to github.com",
        "run it on arm64, see a link to rust-lang.org",
        "please pin the toolchain",
        "how do I run this locally",
        "does it work offline?",
        "a link to crates.io",
        cache,
        "the docs are out of date",
        "run `cargo test --workspace` first",
    ];
    assert_eq!(said(&again), expected);
    assert_eq!(
        (&again["items"][0]["upvotes"], &again["truncated"]),
        (&json!(6), &json!(true))
    );
}
