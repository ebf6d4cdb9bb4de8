//! A room with the bot in it and somebody who answers, plain or encrypted alike; and what can be
//! said of a room and of the ledger once everything has come to rest.

use std::collections::BTreeMap;

use matrix_elicit::sandbox::{Person, RoomOptions, Synapse};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    Api, BotConfig, BotProcess, EncryptedPerson, SOON, WebhookSink, soon, unique,
};

/// The key under which a message carries its card.
pub const CARD: &str = "dev.superpipeline.elicitation";

/// A person with a client fit for the room.
pub enum Someone {
    Plain(Box<Person>),
    Encrypting(Box<EncryptedPerson>),
}

impl Someone {
    /// Somebody new; `encrypting` with a client that can be in encrypted rooms.
    pub async fn new(synapse: &Synapse, name: &str, encrypting: bool) -> Self {
        if encrypting {
            let person = EncryptedPerson::register(synapse, &unique(name)).await;
            Self::Encrypting(Box::new(person))
        } else {
            Self::Plain(Box::new(synapse.person(&unique(name)).await.unwrap()))
        }
    }

    /// The same person without encryption.
    pub fn plain(&self) -> &Person {
        match self {
            Self::Plain(person) => person,
            Self::Encrypting(person) => person.plain(),
        }
    }

    pub fn user_id(&self) -> &str {
        self.plain().user_id()
    }

    /// Makes a room of the kind this person's client is for, with these invited.
    pub async fn make_room(&self, invite: &[&str]) -> String {
        let options = RoomOptions {
            encrypted: matches!(self, Self::Encrypting(_)),
            invite: invite.iter().map(|&user| user.to_owned()).collect(),
            ..RoomOptions::default()
        };
        self.plain().create_room(&options).await.unwrap()
    }

    pub async fn say(&self, room: &str, body: &str) -> String {
        match self {
            Self::Plain(person) => person.send_text(room, body).await.unwrap(),
            Self::Encrypting(person) => person.send_text(room, body).await,
        }
    }

    pub async fn reply(&self, room: &str, to: &str, body: &str) -> String {
        match self {
            Self::Plain(person) => person.reply(room, to, body).await.unwrap(),
            Self::Encrypting(person) => person.reply(room, to, body).await,
        }
    }

    pub async fn in_thread(&self, room: &str, root: &str, body: &str) -> String {
        match self {
            Self::Plain(person) => person.in_thread(room, root, body).await.unwrap(),
            Self::Encrypting(person) => person.in_thread(room, root, body).await,
        }
    }

    /// Waits for an event that `wanted` holds for; where this person's client encrypts, for one
    /// that was encrypted and that they can read.
    pub async fn reads(&self, room: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        match self {
            Self::Plain(person) => person.wait_for(room, what, SOON, wanted).await.unwrap(),
            Self::Encrypting(person) => person.wait_for_decrypted(room, what, wanted).await,
        }
    }

    /// Waits until the card of a question can be read in the room; its event.
    pub async fn reads_card(&self, room: &str, id: &str) -> Value {
        let carries = |event: &Value| event["content"][CARD]["elicitation_id"] == id;
        self.reads(room, "the card", carries).await
    }
}

/// A request for a question with three options.
pub fn question(room: &str, id: &str) -> Value {
    json!({
        "room": room,
        "elicitation_id": id,
        "prompt": format!("Where does {id} go?"),
        "options": [
            {"id": "staging", "label": "To staging"},
            {"id": "production", "label": "To production"},
            {"id": "nowhere", "label": "It stays"},
        ],
    })
}

/// Asks as soon as the bot has joined the room; the object.
pub async fn ask_once_joined(api: &Api, request: &Value) -> Value {
    soon("the bot to join the room", async || {
        let (status, body) = api.ask(request).await;
        if body["error"]["code"] == "ROOM_NOT_JOINED" {
            return None;
        }
        assert_eq!(status, StatusCode::CREATED, "{body:#}");
        Some(body)
    })
    .await
}

/// Asks, and waits until the card can be read by this person; the object.
pub async fn ask_and_show(bot: &BotProcess, who: &Someone, request: &Value) -> Value {
    let api = bot.api();
    let asked = ask_once_joined(&api, request).await;
    let id = asked["elicitation_id"].as_str().unwrap();
    let open = opened(&api, id).await;
    who.reads_card(request["room"].as_str().unwrap(), id).await;
    open
}

/// The object once its card is in the room. A long poll would not end at that.
pub async fn opened(api: &Api, id: &str) -> Value {
    soon(&format!("{id} to be open"), async || {
        let (status, object) = api.get(id).await;
        assert_eq!(status, StatusCode::OK, "{object:#}");
        (object["state"] == "open").then_some(object)
    })
    .await
}

/// The bot's ledger, to look at and, while the bot is down, to set back.
pub fn ledger(bot: &BotProcess) -> rusqlite::Connection {
    let path = bot.config().folder().join("stored/ledger.sqlite3");
    let ledger = rusqlite::Connection::open(path).unwrap();
    ledger.busy_timeout(SOON).unwrap();
    ledger
}

/// One number of the ledger.
pub fn count(bot: &BotProcess, sql: &str) -> i64 {
    ledger(bot).query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Waits until nothing is left to be sent to rooms or agents.
pub async fn at_rest(bot: &BotProcess) {
    soon("everything to be sent", async || rests(bot).then_some(())).await;
}

/// Whether nothing is left to be sent to rooms or agents.
pub fn rests(bot: &BotProcess) -> bool {
    let left = "SELECT (SELECT COUNT(*) FROM outbox WHERE state = 'pending')
                     + (SELECT COUNT(*) FROM deliveries WHERE state = 'pending')";
    count(bot, left) == 0
}

/// What the bot has put into a room, by what it is about.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// Messages that stand for themselves: cards.
    pub cards: Vec<String>,
    /// Edits, by the event they edit.
    pub edits: BTreeMap<String, usize>,
    /// ✓ reactions, by the event they are about.
    pub ticks: BTreeMap<String, usize>,
    /// Replies: what the bot says to somebody.
    pub notices: Vec<String>,
}

/// Reads what the bot has put into a room from what the homeserver stores; relations are never
/// encrypted, so this works for every room.
pub async fn traces(reader: &Person, room: &str, bot: &str) -> Traces {
    traces_in(&reader.timeline(room).await.unwrap(), bot)
}

/// The same from the events of a room.
pub fn traces_in(timeline: &[Value], bot: &str) -> Traces {
    let mut traces = Traces::default();
    for event in timeline {
        let kind = event["type"].as_str().unwrap_or_default();
        if event["sender"] != bot || event.get("state_key").is_some() {
            continue;
        }
        let id = event["event_id"].as_str().unwrap().to_owned();
        let relation = &event["content"]["m.relates_to"];
        let target = relation["event_id"].as_str().unwrap_or_default().to_owned();
        match (kind, relation["rel_type"].as_str()) {
            ("m.reaction", Some("m.annotation")) => *traces.ticks.entry(target).or_default() += 1,
            (_, Some("m.replace")) => *traces.edits.entry(target).or_default() += 1,
            _ if relation.get("m.in_reply_to").is_some() => traces.notices.push(id),
            _ => traces.cards.push(id),
        }
    }
    traces
}

/// What a room holds in which each of these questions was answered by one message: (card, answer).
pub fn one_of_each(questions: &[(String, String)]) -> Traces {
    Traces {
        cards: questions.iter().map(|(card, _)| card.clone()).collect(),
        edits: questions
            .iter()
            .map(|(card, _)| (card.clone(), 1))
            .collect(),
        ticks: questions
            .iter()
            .map(|(_, answer)| (answer.clone(), 1))
            .collect(),
        notices: Vec::new(),
    }
}

/// A person and a room of their own.
pub struct Corner {
    pub who: Someone,
    pub room: String,
}

/// A bot with a webhook, and two rooms with somebody in each: a plain one and an encrypted one.
pub struct Stage {
    pub bot: BotProcess,
    pub sink: WebhookSink,
    pub corners: [Corner; 2],
}

impl Stage {
    pub async fn set_up(synapse: &Synapse) -> Self {
        Self::set_up_over(synapse, &synapse.url()).await
    }

    /// The bot reaches the homeserver at another address.
    pub async fn set_up_over(synapse: &Synapse, address: &str) -> Self {
        let sink = WebhookSink::start().await;
        let config = BotConfig::new(synapse)
            .await
            .with_webhook(&sink)
            .with("matrix.homeserver", json!(address));
        let mut corners = Vec::new();
        for encrypting in [false, true] {
            let who = Someone::new(synapse, "ada", encrypting).await;
            let room = who.make_room(&[config.user_id()]).await;
            corners.push(Corner { who, room });
        }
        let corners = corners.try_into().ok().unwrap();
        let bot = BotProcess::start(config).await;
        Self { bot, sink, corners }
    }

    /// Asks one question in each room, and waits until both can be read; their cards' events.
    pub async fn ask_everywhere(&self) -> Vec<String> {
        let mut cards = Vec::new();
        for (index, corner) in self.corners.iter().enumerate() {
            let request = question(&corner.room, &format!("question-{index}"));
            let open = ask_and_show(&self.bot, &corner.who, &request).await;
            cards.push(open["event_id"].as_str().unwrap().to_owned());
        }
        cards
    }

    /// Makes sure that the bot has joined, by asking something and withdrawing it; the cards that
    /// are in each room by now.
    pub async fn cards_of_the_past(&self) -> Vec<Vec<String>> {
        let mut cards = Vec::new();
        for corner in &self.corners {
            let asked = ask_and_show(
                &self.bot,
                &corner.who,
                &question(&corner.room, &corner.room),
            )
            .await;
            let id = asked["elicitation_id"].as_str().unwrap();
            self.bot.api().cancel(id).await;
            at_rest(&self.bot).await;
            cards.push(
                traces(corner.who.plain(), &corner.room, self.bot.user_id())
                    .await
                    .cards,
            );
        }
        cards
    }

    /// Says the same in each room; the events.
    pub async fn say_everywhere(&self, body: &str) -> Vec<String> {
        let mut events = Vec::new();
        for corner in &self.corners {
            events.push(corner.who.say(&corner.room, body).await);
        }
        events
    }

    /// Waits until both questions are answered, and everything about them has been sent. Each
    /// must have been answered by this event, and must have left in its room and at the agent
    /// what one question leaves.
    pub async fn ends_with(&self, cards: Vec<String>, answers: Vec<String>) {
        for (index, answer) in answers.iter().enumerate() {
            let object = self
                .bot
                .api()
                .until_answered(&format!("question-{index}"))
                .await;
            assert_eq!(object["answer"]["event_id"], **answer, "{object:#}");
            assert_eq!(object["event_id"], *cards[index]);
            assert_eq!(object["answer"]["encrypted"], index == 1);
        }
        at_rest(&self.bot).await;
        for (corner, pair) in self.corners.iter().zip(cards.into_iter().zip(answers)) {
            let left = traces(corner.who.plain(), &corner.room, self.bot.user_id()).await;
            assert_eq!(left, one_of_each(&[pair]));
        }
        let told = told(&self.sink);
        let expected = [
            ("question-0", "elicitation.answered"),
            ("question-0", "elicitation.open"),
            ("question-1", "elicitation.answered"),
            ("question-1", "elicitation.open"),
        ];
        let told_of: Vec<(&str, &str)> = told
            .iter()
            .map(|(id, kind, _)| (id.as_str(), kind.as_str()))
            .collect();
        assert_eq!(told_of, expected, "{told:#?}");
    }
}

/// What the agent was told: elicitation, type and webhook id, each once however often it came.
pub fn told(sink: &WebhookSink) -> Vec<(String, String, String)> {
    let mut told: Vec<_> = sink
        .received()
        .into_iter()
        .map(|received| {
            assert_eq!(received.signature, Ok(()));
            let id = received.json["data"]["elicitation_id"].as_str().unwrap();
            let kind = received.json["type"].as_str().unwrap();
            (id.to_owned(), kind.to_owned(), received.id)
        })
        .collect();
    told.sort();
    told.dedup();
    told
}
