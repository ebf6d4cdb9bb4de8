//! What most tests begin with: a room with two people, the bot, and the agent that asks.

use matrix_elicit::sandbox::{Person, RoomOptions};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Api, BotConfig, BotProcess, SOON, homeserver, soon, unique};

/// A room of the shared homeserver. With two people in it nobody is alone with the bot, so what
/// is said there is not said to the bot unless it says so.
pub struct Stage {
    pub bot: BotProcess,
    pub api: Api,
    /// Made the room, and so may do everything in it.
    pub ada: Person,
    /// Is in it, with no power at all.
    pub ben: Person,
    pub room: String,
}

impl Stage {
    /// With the configuration as it is by default.
    pub async fn new() -> Self {
        Self::with(|config| config).await
    }

    /// With the configuration changed.
    pub async fn with(change: impl FnOnce(BotConfig) -> BotConfig) -> Self {
        let (ada, ben) = people().await;
        Self::of(ada, ben, change).await
    }

    /// Of these people, for a configuration that has to name them.
    pub async fn of(ada: Person, ben: Person, change: impl FnOnce(BotConfig) -> BotConfig) -> Self {
        let config = change(BotConfig::new(homeserver().await).await);
        let options = RoomOptions {
            invite: vec![ben.user_id().to_owned(), config.user_id().to_owned()],
            ..RoomOptions::default()
        };
        let room = ada.create_room(&options).await.unwrap();
        ben.join(&room).await.unwrap();
        let bot = BotProcess::start(config).await;
        has_joined(&bot, &room).await;
        let api = bot.api();
        Self {
            bot,
            api,
            ada,
            ben,
            room,
        }
    }

    /// Another room of Ada's that the bot is in.
    pub async fn another_room(&self, mut options: RoomOptions) -> String {
        options.invite.push(self.bot.user_id().to_owned());
        let room = self.ada.create_room(&options).await.unwrap();
        has_joined(&self.bot, &room).await;
        room
    }

    /// Asks in the room; the object once its card is there.
    pub async fn ask(&self, request: Value) -> Value {
        self.ask_in(&self.room, request).await
    }

    /// Asks in some room; the object once its card is there.
    pub async fn ask_in(&self, room: &str, mut request: Value) -> Value {
        request["room"] = json!(room);
        let asked = self.api.ask_fine(&request).await;
        self.api.until_open(id(&asked)).await
    }

    /// The object once it is answered.
    pub async fn answered(&self, question: &Value) -> Value {
        self.api.until_answered(id(question)).await
    }

    /// Waits for the ✓ on a message. It is the last thing that the bot sends about an answer,
    /// and nothing of the room overtakes anything.
    pub async fn ticked(&self, message: &str) -> Value {
        self.seen(&format!("the ✓ on {message}"), |event| {
            let relation = &event["content"]["m.relates_to"];
            event["type"] == "m.reaction"
                && relation["event_id"] == message
                && relation["key"] == "✓"
        })
        .await
    }

    /// The notice that replies to a message.
    pub async fn notice_to(&self, message: &str) -> Value {
        self.seen(&format!("a notice to {message}"), |event| {
            let replied_to = &event["content"]["m.relates_to"]["m.in_reply_to"]["event_id"];
            event["content"]["msgtype"] == "m.notice" && *replied_to == message
        })
        .await
    }

    /// The edit of a message of the bot.
    pub async fn edit_of(&self, message: &str) -> Value {
        self.seen(&format!("the edit of {message}"), |event| {
            is_edit_of(event, message)
        })
        .await
    }

    async fn seen(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let bot = self.bot.user_id();
        self.ada
            .wait_for(&self.room, what, SOON, |event| {
                event["sender"] == bot && wanted(event)
            })
            .await
            .unwrap()
    }

    /// Everything that the bot has said in the room so far, joining aside, each in a word.
    pub async fn said_by_bot(&self) -> Vec<&'static str> {
        let timeline = self.ada.timeline(&self.room).await.unwrap();
        let own = timeline
            .iter()
            .filter(|event| event["sender"] == self.bot.user_id() && event["state_key"].is_null());
        own.map(kind).collect()
    }

    /// Asks something else and answers it. As the bot decides and sends in order, it has by then
    /// said whatever it had to say about what came before; this adds a card, an edit and a tick.
    pub async fn everything_is_said(&self) {
        let request = json!({
            "prompt": "Is everything said?",
            "options": ["everything is said"],
        });
        let question = self.ask(request).await;
        let last = self.ada.send_text(&self.room, "everything is said").await;
        self.answered(&question).await;
        self.ticked(&last.unwrap()).await;
    }
}

/// What [`Stage::everything_is_said`] adds.
pub const ONE_MORE: [&str; 3] = ["card", "edit", "tick"];

/// Somebody called Ada and somebody called Ben.
pub async fn people() -> (Person, Person) {
    let synapse = homeserver().await;
    let ada = synapse.person(&unique("ada")).await.unwrap();
    let ben = synapse.person(&unique("ben")).await.unwrap();
    ada.set_display_name("Ada").await.unwrap();
    ben.set_display_name("Ben").await.unwrap();
    (ada, ben)
}

/// Waits until the bot knows that it is in a room.
pub async fn has_joined(bot: &BotProcess, room: &str) {
    let line = format!("joined {room}");
    soon("the bot to join", async || {
        bot.log().contains(&line).then_some(())
    })
    .await;
}

/// The question of the contract's example.
pub fn may_i_run_them() -> Value {
    json!({
        "prompt": "The tests need network access. May I run them?",
        "options": [
            {"id": "run_them", "label": "Run the tests"},
            {"id": "skip", "label": "Skip them"},
        ],
    })
}

/// The `elicitation_id` of an object.
pub fn id(object: &Value) -> &str {
    object["elicitation_id"].as_str().unwrap()
}

/// The event of an object's card.
pub fn card_of(object: &Value) -> &str {
    object["event_id"].as_str().unwrap()
}

/// The body of an event; of an edit, the new one.
pub fn body(event: &Value) -> &str {
    let content = &event["content"];
    let content = content.get("m.new_content").unwrap_or(content);
    content["body"].as_str().unwrap()
}

fn is_edit_of(event: &Value, message: &str) -> bool {
    let relation = &event["content"]["m.relates_to"];
    relation["rel_type"] == "m.replace" && relation["event_id"] == message
}

fn kind(event: &Value) -> &'static str {
    let content = &event["content"];
    match event["type"].as_str() {
        Some("m.reaction") => "tick",
        Some("m.room.message") if content["m.relates_to"]["rel_type"] == "m.replace" => "edit",
        Some("m.room.message") if content["msgtype"] == "m.notice" => "notice",
        Some("m.room.message") if content.get("dev.superpipeline.elicitation").is_some() => "card",
        _ => "something else",
    }
}

/// Status and code of a refusal.
pub fn refusal((status, body): (StatusCode, Value)) -> (u16, String) {
    let code = body["error"]["code"].as_str();
    (status.as_u16(), code.unwrap_or("none").to_owned())
}
