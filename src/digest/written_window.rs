//! A window written down as JSON (digest.md, 13): what `digest --window` and the tests read.
//!
//! Strict: what is not known is refused by name, so that a misspelled key is no silent nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::answers::{Choice, answers};
use super::handles::handle;
use super::votes::is_thumbs_up;
use super::{Line, Person, Prepared, Settings, Standing, Window, Written, prepare};
use crate::clock::{Millis, read_timestamp};

/// The agent of every written window.
pub const AGENT: &str = "@agent:example.org";

/// How old an account must be in a written window, in milliseconds.
pub const MIN_AGE: Millis = 24 * 60 * 60 * 1000;

/// Why a written window cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no JSON.
    #[error("this is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// One field breaks a rule.
    #[error("{field}: {rule}")]
    Field {
        /// The field, as `window.messages[2].ts`.
        field: String,
        /// What it should be.
        rule: String,
    },
}

/// A window that was written down.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenWindow {
    /// When the agent last read.
    pub since: Option<Millis>,
    /// When the digest is made.
    pub until: Millis,
    people: Vec<Person>,
    said: Vec<Said>,
}

/// A line of it.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    event_id: String,
    sender: String,
    stamp: Millis,
    prepared: Prepared,
    replied_to: Option<String>,
    votes: Vec<String>,
}

impl WrittenWindow {
    /// The window itself.
    pub fn window(&self) -> Window<'_> {
        Window {
            since: self.since,
            until: self.until,
            people: &self.people,
            lines: self.said.iter().map(Said::line).collect(),
        }
    }

    /// What it is read with: the one agent, and an account's day.
    pub fn settings(&self) -> Settings {
        Settings {
            agents: vec![AGENT.to_owned()],
            min_age: MIN_AGE,
        }
    }
}

impl Said {
    fn line(&self) -> Line<'_> {
        Line {
            event_id: &self.event_id,
            sender: &self.sender,
            stamp: self.stamp,
            sent_at: None,
            prepared: &self.prepared,
            replied_to: self.replied_to.as_deref(),
            mentions: &[],
            votes: &self.votes,
        }
    }
}

/// Reads a window, or a line of the corpus that holds one under `window`.
pub fn read(json: &str) -> Result<WrittenWindow, Error> {
    let value: Value = serde_json::from_str(json)?;
    let nested = value.get("window");
    let mut window = Object::of(nested.unwrap_or(&value), "window".to_owned())?;
    let since = window.maybe("since", time_of)?;
    let until = window.must("until", time_of)?;
    let people = window.list("people")?;
    let messages = window.list("messages")?;
    window.end()?;
    if since.is_some_and(|since| since > until) {
        return Err(fault("window.since".to_owned(), "must not be after until"));
    }
    Ok(WrittenWindow {
        since,
        until,
        people: people_of(people)?,
        said: lines_of(&messages_of(messages)?),
    })
}

fn people_of(written: Vec<Object<'_>>) -> Result<Vec<Person>, Error> {
    let mut people = BTreeMap::new();
    let mut listed = HashSet::new();
    for mut object in written {
        let user = object.must("mxid", user_of)?;
        let display_name = object.maybe("display_name", text_of)?;
        let first_seen = object.maybe("first_seen", time_of)?;
        let mut standing = Standing::In;
        for (name, meaning) in [
            ("opted_out", Standing::OptedOut),
            ("muted", Standing::Muted),
            ("banned", Standing::Banned),
        ] {
            if object.maybe(name, truth_of)?.unwrap_or(false) {
                standing = meaning;
            }
        }
        if user == AGENT {
            return Err(object.fault("mxid", "the agent is none of the people"));
        }
        if !listed.insert(user.clone()) {
            return Err(object.fault("mxid", "is listed twice"));
        }
        object.end()?;
        // Handles go by age, unknown ages last: who is surely older keeps the plain name.
        people.insert(
            (first_seen.is_none(), first_seen, user.clone()),
            Person {
                user,
                display_name,
                first_seen,
                handle: String::new(),
                standing,
            },
        );
    }
    let mut handles = HashSet::new();
    Ok(people
        .into_values()
        .map(|mut person| {
            person.handle = handle(&person.user, |handle| handles.contains(handle));
            handles.insert(person.handle.clone());
            person
        })
        .collect())
}

/// A message as it is written down.
struct Message {
    event_id: String,
    sender: String,
    stamp: Millis,
    text: String,
    votes: Vec<String>,
    redacted: bool,
    msgtype: String,
    in_reply_to: Option<String>,
    card: Option<Vec<Choice>>,
}

fn messages_of(written: Vec<Object<'_>>) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::new();
    let mut listed = HashSet::new();
    for mut object in written {
        let event_id = object.must("event_id", text_of)?;
        if !listed.insert(event_id.clone()) {
            return Err(object.fault("event_id", "is listed twice"));
        }
        let sender = object.must("sender", user_of)?;
        let stamp = object.must("ts", time_of)?;
        let original = object.must("text", text_of)?;
        let edited = object.maybe("edited_to", text_of)?;
        let redacted = object.maybe("redacted", truth_of)?.unwrap_or(false);
        let msgtype = object.maybe("msgtype", text_of)?;
        let in_reply_to = object.maybe("in_reply_to", text_of)?;
        let card = object.maybe_object("card")?;
        if card.is_some() && sender != AGENT {
            return Err(object.fault("card", "only the agent has cards"));
        }
        let votes = votes_of(object.list("reactions")?)?;
        object.end()?;
        messages.push(Message {
            event_id,
            sender,
            stamp,
            text: edited.unwrap_or(original),
            votes,
            redacted,
            msgtype: msgtype.unwrap_or_else(|| "m.text".to_owned()),
            in_reply_to,
            card: card.map(options_of).transpose()?,
        });
    }
    Ok(messages)
}

fn votes_of(written: Vec<Object<'_>>) -> Result<Vec<String>, Error> {
    let mut votes = Vec::new();
    for mut object in written {
        let sender = object.must("sender", user_of)?;
        let key = object.must("key", text_of)?;
        object.end()?;
        if is_thumbs_up(&key) {
            votes.push(sender);
        }
    }
    Ok(votes)
}

fn options_of(mut card: Object<'_>) -> Result<Vec<Choice>, Error> {
    let mut options = Vec::new();
    for mut object in card.list("options")? {
        options.push(Choice {
            id: object.must("id", text_of)?,
            label: object.must("label", text_of)?,
        });
        object.end()?;
    }
    card.end()?;
    Ok(options)
}

/// The lines among the messages: texts that say something and do not answer a card (digest.md, 3).
fn lines_of(messages: &[Message]) -> Vec<Said> {
    let senders: HashMap<&str, &str> = messages
        .iter()
        .map(|message| (message.event_id.as_str(), message.sender.as_str()))
        .collect();
    let cards: Vec<(&Message, &[Choice])> = messages
        .iter()
        .filter_map(|message| Some((message, message.card.as_deref()?)))
        .collect();
    let line = |message: &Message| {
        let emote = message.msgtype == "m.emote";
        let reply = message.in_reply_to.is_some();
        if message.redacted || !(emote || message.msgtype == "m.text") {
            return None;
        }
        let meant = |card: &Message| {
            card.stamp <= message.stamp
                && message
                    .in_reply_to
                    .as_ref()
                    .is_none_or(|event_id| *event_id == card.event_id)
        };
        if cards
            .iter()
            .any(|(card, options)| meant(card) && answers(&message.text, reply, options))
        {
            return None;
        }
        let prepared = prepare(&Written {
            body: &message.text,
            emote,
            reply,
            prefix: "!",
        })?;
        let replied_to = message
            .in_reply_to
            .as_ref()
            .and_then(|event_id| senders.get(event_id.as_str()));
        Some(Said {
            event_id: message.event_id.clone(),
            sender: message.sender.clone(),
            stamp: message.stamp,
            prepared,
            replied_to: replied_to.map(|&sender| sender.to_owned()),
            votes: message.votes.clone(),
        })
    };
    messages.iter().filter_map(line).collect()
}

/// An object whose keys are taken one by one; what is left in the end is not known.
struct Object<'a> {
    field: String,
    keys: BTreeMap<&'a str, &'a Value>,
}

impl<'a> Object<'a> {
    fn of(value: &'a Value, field: String) -> Result<Self, Error> {
        let Value::Object(map) = value else {
            return Err(fault(field, "must be an object"));
        };
        let keys = map
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect();
        Ok(Self { field, keys })
    }

    fn fault(&self, key: &str, rule: &str) -> Error {
        fault(format!("{}.{key}", self.field), rule)
    }

    /// `null` is as nothing.
    fn take(&mut self, key: &str) -> Option<&'a Value> {
        self.keys.remove(key).filter(|value| !value.is_null())
    }

    fn maybe<T>(
        &mut self,
        key: &str,
        read: fn(&Value) -> Result<T, &'static str>,
    ) -> Result<Option<T>, Error> {
        let value = self.take(key).map(read).transpose();
        value.map_err(|rule| self.fault(key, rule))
    }

    fn must<T>(
        &mut self,
        key: &str,
        read: fn(&Value) -> Result<T, &'static str>,
    ) -> Result<T, Error> {
        self.maybe(key, read)?
            .ok_or_else(|| self.fault(key, "is missing"))
    }

    fn maybe_object(&mut self, key: &str) -> Result<Option<Object<'a>>, Error> {
        let field = format!("{}.{key}", self.field);
        self.take(key)
            .map(|value| Object::of(value, field))
            .transpose()
    }

    /// A list of objects, empty where it is missing.
    fn list(&mut self, key: &str) -> Result<Vec<Object<'a>>, Error> {
        let field = format!("{}.{key}", self.field);
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => list
                .iter()
                .enumerate()
                .map(|(place, value)| Object::of(value, format!("{field}[{place}]")))
                .collect(),
            Some(_) => Err(fault(field, "must be a list")),
        }
    }

    fn end(self) -> Result<(), Error> {
        match self.keys.first_key_value() {
            None => Ok(()),
            Some((key, _)) => Err(self.fault(key, "is not known here")),
        }
    }
}

fn fault(field: String, rule: &str) -> Error {
    Error::Field {
        field,
        rule: rule.to_owned(),
    }
}

fn text_of(value: &Value) -> Result<String, &'static str> {
    value.as_str().map(str::to_owned).ok_or("must be a string")
}

fn truth_of(value: &Value) -> Result<bool, &'static str> {
    value.as_bool().ok_or("must be true or false")
}

fn user_of(value: &Value) -> Result<String, &'static str> {
    let id = text_of(value)?;
    let parts = id.strip_prefix('@').and_then(|id| id.split_once(':'));
    if parts.is_some_and(|(name, server)| !name.is_empty() && !server.is_empty()) {
        Ok(id)
    } else {
        Err("must be a Matrix id, as @mira:example.org")
    }
}

fn time_of(value: &Value) -> Result<Millis, &'static str> {
    let rule = "must be a time of RFC 3339, as 2026-11-06T10:00:00.000Z";
    let text = value.as_str().ok_or(rule)?;
    read_timestamp(text).ok_or(rule)
}
