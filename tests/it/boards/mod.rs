//! A board's questions from the board to a room and back: the board is a process of its own.

mod answering;
mod deaths;
mod elsewhere;
mod outages;
mod pushes;
mod refusals;
mod rooms;
mod sweeps;

use matrix_elicit::sandbox::{Person, RoomOptions};
use serde_json::{Value, json};

use crate::scene::CARD;
use crate::stage::{has_joined, people};
use crate::support::{Board, BoardOptions, BotConfig, BotProcess, SOON, homeserver};

/// The key that the board signs with.
const SECRET: &str = "a-key-for-the-pushes-of-the-board";

/// A board, the bot that carries its questions, and the room in which they are asked. Ada and Ben
/// are known to the board, by bearer tokens.
pub struct Office {
    pub bot: BotProcess,
    pub around: Around,
}

/// Everything but the bot, which may be dying.
pub struct Around {
    pub board: Board,
    pub ada: Person,
    pub ben: Person,
    pub room: String,
    bot: String,
}

impl std::ops::Deref for Office {
    type Target = Around;

    fn deref(&self) -> &Around {
        &self.around
    }
}

impl std::ops::DerefMut for Office {
    fn deref_mut(&mut self) -> &mut Around {
        &mut self.around
    }
}

impl Office {
    pub async fn new() -> Self {
        Self::with(|config| config).await
    }

    /// With the bot's configuration changed.
    pub async fn with(change: impl FnOnce(BotConfig) -> BotConfig) -> Self {
        let board = known(BoardOptions::default()).start().await;
        Self::at(board, change).await
    }

    /// With this board.
    pub async fn at(board: Board, change: impl FnOnce(BotConfig) -> BotConfig) -> Self {
        let (ada, _) = people().await;
        Self::of(board, ada, change).await
    }

    /// With this board, and with this Ada, for a board that has to know her.
    pub async fn of(
        board: Board,
        ada: Person,
        change: impl FnOnce(BotConfig) -> BotConfig,
    ) -> Self {
        let (_, ben) = people().await;
        let config = BotConfig::new(homeserver().await).await;
        let options = RoomOptions {
            invite: vec![ben.user_id().to_owned(), config.user_id().to_owned()],
            ..RoomOptions::default()
        };
        let room = ada.create_room(&options).await.unwrap();
        ben.join(&room).await.unwrap();
        let config = config
            .with_path(&["boards", board.id()], json!({
                "base_url": board.url(),
                "agent_token": board.agent_token(),
                "push_secrets": [SECRET],
                "room": room,
                "sweep": "1h",
                "people": {"bearer": {ada.user_id(): "token-of-ada", ben.user_id(): "token-of-ben"}},
            }));
        let public_url = json!(config.url());
        let config = change(config.with("http.public_url", public_url));
        let bot = BotProcess::start(config).await;
        has_joined(&bot, &room).await;
        let office = Self {
            around: Around {
                board,
                ada,
                ben,
                room,
                bot: bot.user_id().to_owned(),
            },
            bot,
        };
        if office.bot.config().text().contains("public_url") {
            office.board.until_subscribed(&office.push_url()).await;
        }
        office
    }

    /// Where the board pushes.
    pub fn push_url(&self) -> String {
        format!("{}/v1/boards/{}/push", self.bot.url(), self.board.id())
    }
}

impl Around {
    /// An agent asks on the board; the question's id and the event of its card in the room.
    pub async fn ask(&self, question: Value) -> (String, String) {
        let id = self.board.ask(&question).await;
        let card = self.card(&id).await;
        (id, event_id(&card))
    }

    /// The card of a question in the room.
    pub async fn card(&self, id: &str) -> Value {
        self.seen(&format!("the card of {id}"), |event| {
            event["content"][CARD]["elicitation_id"] == id
        })
        .await
    }

    /// The body that the card of a question was edited into.
    pub async fn last_words(&self, card: &str) -> String {
        let edit = self
            .seen(&format!("the edit of {card}"), |event| {
                let relation = &event["content"]["m.relates_to"];
                relation["rel_type"] == "m.replace" && relation["event_id"] == card
            })
            .await;
        let content = &edit["content"]["m.new_content"];
        assert_eq!(content.get(CARD), None);
        content["body"].as_str().unwrap().to_owned()
    }

    /// Waits for a reaction to a message.
    pub async fn reacted(&self, message: &str, key: &str) -> String {
        let reaction = self
            .seen(&format!("{key} on {message}"), |event| {
                let relation = &event["content"]["m.relates_to"];
                event["type"] == "m.reaction"
                    && relation["event_id"] == message
                    && relation["key"] == key
            })
            .await;
        event_id(&reaction)
    }

    /// What the bot says to a message.
    pub async fn told(&self, message: &str) -> String {
        let notice = self
            .seen(&format!("a notice to {message}"), |event| {
                let content = &event["content"];
                content["msgtype"] == "m.notice"
                    && content["m.relates_to"]["m.in_reply_to"]["event_id"] == message
            })
            .await;
        notice["content"]["body"].as_str().unwrap().to_owned()
    }

    async fn seen(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let wanted = |event: &Value| event["sender"] == self.bot.as_str() && wanted(event);
        self.ada
            .wait_for(&self.room, what, SOON, wanted)
            .await
            .unwrap()
    }

    /// How many cards there are of each question, in the order they came.
    pub async fn cards(&self) -> Vec<String> {
        let timeline = self.ada.timeline(&self.room).await.unwrap();
        let ids = timeline
            .iter()
            .filter_map(|event| event["content"][CARD]["elicitation_id"].as_str());
        ids.map(str::to_owned).collect()
    }
}

/// The board knows Ada and Ben.
pub fn known(options: BoardOptions) -> BoardOptions {
    options
        .with_bearer("token-of-ada", "usr_ada")
        .with_bearer("token-of-ben", "usr_ben")
}

/// The contract's example.
pub fn may_i_run_them() -> Value {
    json!({
        "cardTitle": "Upgrade the build image",
        "stageKey": "build",
        "agentId": "agt_31d0",
        "question": "The tests need network access. May I run them?",
        "options": [
            {"id": "run_them", "label": "Run the tests"},
            {"id": "skip", "label": "Skip them"},
        ],
    })
}

pub fn event_id(event: &Value) -> String {
    event["event_id"].as_str().unwrap().to_owned()
}
