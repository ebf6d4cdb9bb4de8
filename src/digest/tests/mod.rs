//! The corpus, and how the other tests write a room.

mod cards;
mod cleaning;
mod crowds;
mod groups;
mod hostile;
mod kinds;
mod links;
mod names;
mod properties;
mod spam;
mod windows;

use serde_json::{Value, json};

use super::{
    Digest, Dropped, Kind, Line, Person, Prepared, Settings, Standing, Window, Written, digest,
    handle, prepare, written_window,
};
use crate::clock::Millis;

const DAY: Millis = 24 * 60 * 60 * 1000;
const SINCE: Millis = 1_800_000_000_000;
const UNTIL: Millis = SINCE + 3_600_000;
const AGENT: &str = "@agent:example.org";

/// A room, as a test writes it: who is there, what is said.
#[derive(Debug, Clone)]
struct Room {
    people: Vec<Person>,
    said: Vec<Said>,
}

#[derive(Debug, Clone)]
struct Said {
    event_id: String,
    sender: String,
    stamp: Millis,
    sent_at: Option<Millis>,
    prepared: Option<Prepared>,
    replied_to: Option<String>,
    mentions: Vec<String>,
    votes: Vec<String>,
}

fn id(name: &str) -> String {
    format!("@{name}:example.org")
}

fn written_as(body: &str) -> Written<'_> {
    Written {
        body,
        emote: false,
        reply: false,
        prefix: "!",
    }
}

impl Room {
    /// Mira, Sam, Ana, Lea, Tom, Kim and Joe are there; Quiet has opted out.
    fn new() -> Self {
        let mut room = Self {
            people: Vec::new(),
            said: Vec::new(),
        };
        for name in ["Mira", "Sam", "Ana", "Lea", "Tom", "Kim", "Joe", "Quiet"] {
            room = room.with(&id(&name.to_lowercase()), Some(name), Standing::In);
        }
        room.person("quiet").standing = Standing::OptedOut;
        room
    }

    fn with(mut self, user: &str, name: Option<&str>, standing: Standing) -> Self {
        let taken: Vec<String> = self.people.iter().map(|p| p.handle.clone()).collect();
        self.people.push(Person {
            user: user.to_owned(),
            display_name: name.map(str::to_owned),
            first_seen: Some(SINCE - 30 * DAY),
            handle: handle(user, |handle| taken.iter().any(|taken| taken == handle)),
            standing,
        });
        self
    }

    fn person(&mut self, name: &str) -> &mut Person {
        let id = id(name);
        self.people.iter_mut().find(|p| p.user == id).unwrap()
    }

    /// Someone says something, a minute and a second after whatever was said before.
    fn says(self, name: &str, body: &str) -> Self {
        self.sends(name, prepare(&written_as(body)))
    }

    fn sends(mut self, name: &str, prepared: Option<Prepared>) -> Self {
        let number = self.said.len();
        let sender = if name.starts_with('@') {
            name.to_owned()
        } else {
            id(name)
        };
        self.said.push(Said {
            event_id: format!("$e{number:03}"),
            sender,
            stamp: SINCE + 61_000 * Millis::try_from(number).unwrap(),
            sent_at: None,
            prepared,
            replied_to: None,
            mentions: Vec::new(),
            votes: Vec::new(),
        });
        self
    }

    /// Changes what was said last.
    fn but(mut self, change: impl FnOnce(&mut Said)) -> Self {
        change(self.said.last_mut().unwrap());
        self
    }

    fn with_votes(self, names: &[&str]) -> Self {
        self.but(|said| said.votes = names.iter().map(|name| id(name)).collect())
    }

    fn digest(&self) -> Digest {
        let window = Window {
            since: Some(SINCE),
            until: UNTIL,
            people: &self.people,
            lines: self.said.iter().filter_map(Said::line).collect(),
        };
        digest(&window, &settings())
    }

    /// The digest in short: `mira: question: is it red? +2 x3`.
    fn said_in_short(&self) -> Vec<String> {
        let digest = self.digest();
        digest.items.iter().map(short).collect()
    }
}

impl Said {
    fn line(&self) -> Option<Line<'_>> {
        Some(Line {
            event_id: &self.event_id,
            sender: &self.sender,
            stamp: self.stamp,
            sent_at: self.sent_at,
            prepared: self.prepared.as_ref()?,
            replied_to: self.replied_to.as_deref(),
            mentions: &self.mentions,
            votes: &self.votes,
        })
    }
}

fn settings() -> Settings {
    Settings {
        agents: vec![AGENT.to_owned()],
        min_age: DAY,
    }
}

fn short(item: &super::Item) -> String {
    let kind = match item.kind {
        Kind::Question => "question",
        Kind::Suggestion => "suggestion",
        Kind::Reaction => "reaction",
    };
    let votes = match item.upvotes {
        0 => String::new(),
        votes => format!(" +{votes}"),
    };
    let people = item.repeated.map(|people| format!(" x{people}"));
    let people = people.unwrap_or_default();
    format!("{}: {kind}: {}{votes}{people}", item.handle, item.what)
}

/// What is shown of a line that Mira says; nothing if it is not in the digest.
fn shown(body: &str) -> Option<String> {
    let digest = Room::new().says("mira", body).digest();
    digest.items.into_iter().next().map(|item| item.what)
}

fn kind(body: &str) -> Option<Kind> {
    let digest = Room::new().says("mira", body).digest();
    digest.items.first().map(|item| item.kind)
}

/// Why a line that Mira says is not in the digest.
fn dropped(body: &str) -> Dropped {
    Room::new().says("mira", body).digest().dropped
}

/// Whether two lines count as one.
fn are_one(a: &str, b: &str) -> bool {
    let digest = Room::new().says("mira", a).says("sam", b).digest();
    match digest.items.as_slice() {
        [one] => {
            assert_eq!(one.repeated, Some(2), "{a:?} and {b:?} must both be said");
            true
        }
        [_, _] => false,
        _ => panic!("{a:?} and {b:?} must both be said"),
    }
}

fn written(digest: &Digest) -> Value {
    let items: Vec<Value> = digest
        .items
        .iter()
        .map(|item| {
            let mut written = json!({
                "handle": item.handle,
                "what": item.what,
                "kind": item.kind,
                "upvotes": item.upvotes,
            });
            if let Some(repeated) = item.repeated {
                written["repeated"] = repeated.into();
            }
            written
        })
        .collect();
    json!({"items": items, "truncated": digest.truncated})
}

#[test]
fn every_line_of_the_corpus_gives_the_digest_it_expects() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/digest.jsonl");
    let corpus = std::fs::read_to_string(path).unwrap();
    let mut failures = Vec::new();
    let mut lines = 0;
    for line in corpus.lines().filter(|line| !line.trim().is_empty()) {
        lines += 1;
        let entry: Value = serde_json::from_str(line).unwrap();
        let read = written_window::read(line).unwrap();
        let digest = written(&digest(&read.window(), &read.settings()));
        if digest != entry["expect"] {
            failures.push(format!(
                "{}\n    expected: {}\n    given:    {digest}",
                entry["name"], entry["expect"]
            ));
        }
    }
    assert_eq!(lines, 44);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
