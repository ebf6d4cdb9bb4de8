//! Streams over a real homeserver: what is said in rooms, and what agents are told of it.

mod access;
mod ages;
mod cards;
mod encrypted;
mod keeping;
mod moving;
mod opting_out;
mod outages;
mod plain;

use std::collections::BTreeMap;
use std::fs;

use futures_util::future::join_all;
use matrix_elicit::clock;
use matrix_elicit::sandbox::{Person, RoomOptions, Synapse};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::scene::{count, ledger};
use crate::support::{AGENT, Api, BotConfig, BotProcess, soon, unique};

/// The stream that every test reads.
pub const STREAM: &str = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";

/// Twenty people, as they are called.
pub const TWENTY: [&str; 20] = [
    "Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana", "Ivo", "Jun", "Kim", "Leo", "Mia",
    "Nils", "Olga", "Pia", "Quinn", "Rita", "Sam", "Tom",
];

/// How many more agents read the stream. One may not ask as often as a test does.
const READERS: usize = 20;

/// The room of the stream, whose accounts need not be old: those of a test never are.
pub fn with_stream(mut config: BotConfig, room: &str) -> BotConfig {
    let mut agents = vec![AGENT.to_owned()];
    for reader in 0..READERS {
        let (id, token) = (format!("agt_reader{reader}"), token_of(&config, reader));
        config = config.with_agent(&id, &token);
        agents.push(id);
    }
    let stream = json!({"room": room, "agents": agents, "min_age": "1s"});
    config.with_path(&["streams", STREAM], stream)
}

fn token_of(config: &BotConfig, reader: usize) -> String {
    format!("{}-{reader}", config.token())
}

/// People, each with a name that they show.
pub async fn people(synapse: &Synapse, names: &[&str]) -> Vec<Person> {
    let all = names.iter().map(async |name| {
        let localpart = unique(&name.to_lowercase());
        let person = synapse.person(&localpart).await.unwrap();
        person.set_display_name(name).await.unwrap();
        person
    });
    join_all(all).await
}

/// Those people in a room that the first of them made, where anybody may come in.
pub async fn room_of(people: &[Person], options: RoomOptions) -> String {
    let options = RoomOptions {
        preset: Some("public_chat".to_owned()),
        ..options
    };
    let room = people[0].create_room(&options).await.unwrap();
    all_join(&people[1..], &room).await;
    room
}

/// A room that the bot of this configuration is asked into.
pub fn inviting(config: &BotConfig) -> RoomOptions {
    RoomOptions {
        invite: vec![config.user_id().to_owned()],
        ..RoomOptions::default()
    }
}

/// People in the room of a stream, with the bot, which listens.
pub struct Talk {
    pub people: Vec<Person>,
    pub room: String,
    pub bot: BotProcess,
}

impl Talk {
    /// Of people with these names, who are old enough; nothing is said yet.
    pub async fn begin(synapse: &Synapse, names: &[&str]) -> Self {
        Self::begin_with(synapse, names, |config| config).await
    }

    /// The same with the configuration changed.
    pub async fn begin_with(
        synapse: &Synapse,
        names: &[&str],
        change: impl FnOnce(BotConfig) -> BotConfig,
    ) -> Self {
        let people = people(synapse, names).await;
        let config = BotConfig::new(synapse).await;
        let room = room_of(&people, inviting(&config)).await;
        let bot = BotProcess::start(change(with_stream(config, &room))).await;
        assert_tells(&digest(&bot, None).await, None, &[]);
        are_old(&bot, people.len()).await;
        Self { people, room, bot }
    }
}

/// They come into a room.
pub async fn all_join(people: &[Person], room: &str) {
    let joined = people.iter().map(|person| person.join(room));
    for outcome in join_all(joined).await {
        outcome.unwrap();
    }
}

/// Waits until so many accounts are old enough for [`with_stream`].
pub async fn are_old(bot: &BotProcess, accounts: usize) {
    soon("the accounts to be old enough", async || {
        let sql = format!(
            "SELECT COUNT(*) FROM met WHERE at < {}",
            clock::now() - 1000
        );
        (count(bot, &sql) >= i64::try_from(accounts).unwrap()).then_some(())
    })
    .await;
}

/// A word that nobody else says, which stays as it is wherever it is kept.
pub fn word(stem: &str) -> String {
    unique(stem).replace('-', "")
}

/// The handle that somebody gets whose local part is nobody else's.
pub fn handle(user_id: &str) -> String {
    let localpart = user_id[1..].split(':').next().unwrap();
    localpart.replace('-', "_")
}

/// An item without votes and repeats, said by somebody who shows this name.
pub fn item(name: &str, user_id: &str, what: &str, kind: &str) -> Value {
    json!({
        "who": {"display_name": name, "handle": handle(user_id)},
        "what": what,
        "kind": kind,
        "upvotes": 0,
    })
}

/// The same with votes.
pub fn upvoted(mut item: Value, upvotes: u64) -> Value {
    item["upvotes"] = json!(upvotes);
    item
}

/// The same, said by several people.
pub fn repeated(mut item: Value, people: u64) -> Value {
    item["repeated"] = json!(people);
    item
}

/// Whether an answer is a digest: that of the stream, from and until these moments, with exactly
/// these items and nothing left out.
pub fn assert_tells(digest: &Value, since: Option<&str>, items: &[Value]) {
    let length = |text: &Value| text.as_str().unwrap().chars().count();
    let chars: usize = items
        .iter()
        .map(|item| {
            let who = &item["who"];
            length(&item["what"]) + length(&who["display_name"]) + length(&who["handle"])
        })
        .sum();
    let expected = json!({
        "room": format!("agent:{STREAM}"),
        "since": since,
        "until": digest["until"],
        "chars": chars,
        "truncated": false,
        "items": items,
    });
    assert_eq!(*digest, expected, "{digest:#}");
    assert!(until(digest) > since.unwrap_or_default(), "{digest:#}");
}

/// Where a digest ends and the next one begins.
pub fn until(digest: &Value) -> &str {
    digest["until"].as_str().unwrap()
}

/// What the items of a digest say, in their order.
pub fn said(digest: &Value) -> Vec<&str> {
    let items = digest["items"].as_array().unwrap().iter();
    items.map(|item| item["what"].as_str().unwrap()).collect()
}

/// How many people said each item of a digest.
pub fn supporters(digest: &Value) -> BTreeMap<String, u64> {
    let items = digest["items"].as_array().unwrap().iter();
    let counted = items.map(|item| {
        let what = item["what"].as_str().unwrap().to_owned();
        (what, item["repeated"].as_u64().unwrap_or(1))
    });
    counted.collect()
}

/// What asking for a digest comes to.
#[derive(Debug)]
pub struct Asked {
    pub status: StatusCode,
    pub retry_after: Option<String>,
    pub body: Value,
}

/// Asks for the digest of a room once; `None` when nobody answers.
pub async fn ask(api: &Api, room: &str, query: &str) -> Option<Asked> {
    let path = format!("/api/v1/rooms/{room}/digest{query}");
    let response = api.request(Method::GET, &path).send().await.ok()?;
    let retry_after = response.headers().get("retry-after");
    let retry_after = retry_after.map(|value| value.to_str().unwrap().to_owned());
    let status = response.status();
    assert!(
        status != StatusCode::OK || response.headers()["cache-control"] == "no-store",
        "{:?}",
        response.headers()
    );
    Some(Asked {
        status,
        retry_after,
        body: response.json().await.ok()?,
    })
}

/// Some agent of the stream asks once from a moment on, or for everything.
pub async fn ask_since(bot: &BotProcess, since: Option<&str>) -> Option<Asked> {
    let query = since.map_or_else(String::new, |since| format!("?since={since}"));
    let reader = rand::random_range(0..READERS);
    let api = bot.api().with_token(&token_of(bot.config(), reader));
    ask(&api, &format!("agent:{STREAM}"), &query).await
}

/// The digest from a moment on, or of everything, as soon as there is one. Until then it must be
/// said that there is none yet, and when to ask again.
pub async fn digest(bot: &BotProcess, since: Option<&str>) -> Value {
    soon("a digest", async || {
        let asked = ask_since(bot, since).await?;
        if asked.status == StatusCode::OK {
            return Some(asked.body);
        }
        assert_not_yet(&asked);
        None
    })
    .await
}

/// Whether an answer says that there is no digest yet, and when to ask again.
pub fn assert_not_yet(asked: &Asked) {
    let code = asked.body["error"]["code"].as_str();
    assert_eq!(
        (asked.status, code, asked.retry_after.as_deref()),
        (
            StatusCode::SERVICE_UNAVAILABLE,
            Some("UNAVAILABLE"),
            Some("5")
        ),
        "{asked:#?}"
    );
}

/// Waits until the bot has taken in an event: a message, a reaction or a redaction. What stands
/// before it in its room has been taken in by then, too.
pub async fn has_heard(bot: &BotProcess, event: &str) {
    soon(&format!("{event} to be heard"), async || {
        let sql = "SELECT COUNT(*) FROM seen WHERE event_id = ?1";
        let seen: i64 = ledger(bot)
            .query_row(sql, [event], |row| row.get(0))
            .unwrap();
        (seen > 0).then_some(())
    })
    .await;
}

/// What the bot answers to a message, in a room without encryption.
pub async fn answer_to(bot: &BotProcess, person: &Person, room: &str, message: &str) -> String {
    let answers = |event: &Value| {
        event["sender"] == bot.user_id()
            && event["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == message
    };
    let limit = crate::support::SOON;
    let notice = person.wait_for(room, "an answer", limit, answers).await;
    let notice = notice.unwrap();
    notice["content"]["body"].as_str().unwrap().to_owned()
}

/// Where these words are in the ledger: its text columns, and the bytes of its files.
pub fn holds_words(bot: &BotProcess, words: &[&str]) -> Vec<String> {
    let mut places = Vec::new();
    let ledger = ledger(bot);
    for (table, column) in columns(&ledger) {
        let sql = format!(
            "SELECT COUNT(*) FROM \"{table}\" WHERE instr(lower(CAST(\"{column}\" AS TEXT)), ?1) > 0"
        );
        for word in words {
            let found: i64 = ledger.query_row(&sql, [word], |row| row.get(0)).unwrap();
            if found > 0 {
                places.push(format!("{word} in {table}.{column}"));
            }
        }
    }
    let folder = bot.config().folder().join("stored");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let more = fs::read_dir(bot.config().folder().join("stored/matrix"))
        .unwrap()
        .map(|e| e.unwrap().path());
    for file in files.chain(more).filter(|path| path.is_file()) {
        // It may have gone meanwhile, as the write-ahead log does.
        let bytes = fs::read(&file).unwrap_or_default().to_ascii_lowercase();
        let text = String::from_utf8_lossy(&bytes);
        for word in words {
            if text.contains(word) {
                places.push(format!("{word} in {}", file.display()));
            }
        }
    }
    places
}

/// Every column of every table.
fn columns(ledger: &rusqlite::Connection) -> Vec<(String, String)> {
    let sql = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
               WHERE t.type = 'table'";
    let mut statement = ledger.prepare(sql).unwrap();
    let columns = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    columns.map(Result::unwrap).collect()
}
