//! Every rule a configuration may break: those of its schema, in plain words, and those
//! that hold between keys.

use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::types::JsonType;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::read::{Document, pointer_to};
use super::{example, values};

/// What sort of mistake it is: where a line is not valid TOML, only some are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Missing,
    Unknown,
    Value,
}

/// A mistake at a JSON Pointer.
pub(super) struct Found {
    pub(super) pointer: String,
    pub(super) kind: Kind,
    pub(super) message: String,
}

impl Found {
    fn new(pointer: impl Into<String>, kind: Kind, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            kind,
            message: message.into(),
        }
    }
}

struct Rules {
    schema: Value,
    validator: Validator,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let schema = example::schema().to_value();
    let mut options = jsonschema::options().should_validate_formats(true);
    for format in values::FORMATS.into_iter().chain(["span"]) {
        options = options.with_format(format, move |text: &str| {
            values::complaint(format, text).is_none()
        });
    }
    // The schema is made from the types alone, so this holds for every run if for one.
    let validator = options
        .build(&schema)
        .expect("the types make a valid schema");
    Rules { schema, validator }
});

/// Every mistake, in no order.
pub(super) fn faults(document: &Document) -> Vec<Found> {
    let mut found = Vec::new();
    for error in RULES.validator.iter_errors(&document.value) {
        by_schema(&error, document, &mut found);
    }
    login(&document.value, &mut found);
    tokens(&document.value, &mut found);
    calls(&document.value, &mut found);
    boards(&document.value, &mut found);
    carriers(&document.value, &mut found);
    streams(&document.value, &mut found);
    found
}

fn by_schema(error: &ValidationError<'_>, document: &Document, found: &mut Vec<Found>) {
    let pointer = error.instance_path().as_str();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_beside(error);
            for key in unexpected {
                let message = match nearest(key, &known) {
                    Some(near) => format!("is not known; did you mean {near}?"),
                    None => "is not known".to_owned(),
                };
                found.push(Found::new(pointer_to(pointer, key), Kind::Unknown, message));
            }
        }
        ValidationErrorKind::Required { property } => {
            let pointer = pointer_to(pointer, property.as_str().unwrap_or_default());
            found.push(Found::new(pointer, Kind::Missing, "is missing"));
        }
        ValidationErrorKind::PropertyNames { error } => {
            let name = error.instance().as_str().unwrap_or_default();
            let message = wording(error, document.found(pointer));
            found.push(Found::new(pointer_to(pointer, name), Kind::Value, message));
        }
        _ => {
            let message = wording(error, document.found(pointer));
            found.push(Found::new(pointer, Kind::Value, message));
        }
    }
}

fn wording(error: &ValidationError<'_>, found: &str) -> String {
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(only) => in_words(*only).to_owned(),
                TypeKind::Multiple(types) => {
                    let words: Vec<&str> = types.iter().map(in_words).collect();
                    words.join(" or ")
                }
            };
            format!("must be {expected}, not {found}")
        }
        ValidationErrorKind::Format { format } => {
            let text = error.instance().as_str().unwrap_or_default();
            values::complaint(format, text).unwrap_or_else(|| format!("is no {format}"))
        }
        ValidationErrorKind::MinLength { .. } => "is empty".to_owned(),
        ValidationErrorKind::MinItems { .. } => "is an empty list".to_owned(),
        ValidationErrorKind::MinProperties { .. } => "is an empty table".to_owned(),
        ValidationErrorKind::Enum { options } => {
            let words: Vec<String> = options
                .as_array()
                .into_iter()
                .flatten()
                .map(Value::to_string)
                .collect();
            format!("must be {}", words.join(" or "))
        }
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        _ => error.masked_with("the value").to_string(),
    }
}

fn in_words(kind: JsonType) -> &'static str {
    match kind {
        JsonType::String => "a string",
        JsonType::Integer | JsonType::Number => "a whole number",
        JsonType::Boolean => "true or false",
        JsonType::Array => "a list",
        JsonType::Object => "a table",
        JsonType::Null => "nothing",
    }
}

/// The keys that the table of an unknown key has.
fn known_beside(error: &ValidationError<'_>) -> Vec<String> {
    error
        .schema_path()
        .as_str()
        .rsplit_once('/')
        .and_then(|(table, _)| RULES.schema.pointer(table))
        .and_then(|table| table["properties"].as_object())
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default()
}

fn nearest<'a>(key: &str, known: &'a [String]) -> Option<&'a str> {
    let allowed = key.chars().count().div_ceil(4).min(3);
    known
        .iter()
        .map(|name| (distance(key, name), name.as_str()))
        .filter(|(steps, _)| *steps <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// How many letters must be changed, added, left out or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let same = from[i - 1] == to[j - 1];
            let mut least = (rows[i - 1][j - 1] + usize::from(!same))
                .min(rows[i - 1][j] + 1)
                .min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

/// One way to log in, and a token never without its device.
fn login(config: &Value, found: &mut Vec<Found>) {
    let Some(matrix) = config["matrix"].as_object() else {
        return;
    };
    let given = |key| matrix.contains_key(key);
    match (given("password"), given("access_token")) {
        (true, true) => found.push(Found::new(
            "/matrix/access_token",
            Kind::Value,
            "cannot be given together with password",
        )),
        (false, false) => found.push(Found::new(
            "/matrix/password",
            Kind::Missing,
            "is missing: give it, or access_token with device_id",
        )),
        (false, true) if !given("device_id") => found.push(Found::new(
            "/matrix/device_id",
            Kind::Missing,
            "is missing: an access_token needs the device it belongs to",
        )),
        _ => {}
    }
}

/// A token tells agents, and the operator, apart.
fn tokens(config: &Value, found: &mut Vec<Found>) {
    let mut holders: HashMap<&str, String> = HashMap::new();
    if let Some(token) = config["http"]["operator_token"].as_str() {
        holders.insert(token, "http.operator_token".to_owned());
    }
    for (id, agent) in config["agents"].as_object().into_iter().flatten() {
        let Some(token) = agent["token"].as_str() else {
            continue;
        };
        let own = format!("agents.{}.token", example::toml_key(id));
        if let Some(other) = holders.get(token) {
            let pointer = pointer_to(&pointer_to("/agents", id), "token");
            let message = format!("is the same as {other}; each needs its own");
            found.push(Found::new(pointer, Kind::Value, message));
        } else {
            holders.insert(token, own);
        }
    }
}

/// What people call an agent names one agent, whatever the case they write it in.
fn calls(config: &Value, found: &mut Vec<Found>) {
    let agents = || config["agents"].as_object().into_iter().flatten();
    let mut named: HashMap<String, &str> = HashMap::new();
    for (id, agent) in agents() {
        if agent.get("call").is_none() {
            named.insert(id.to_lowercase(), id);
        }
    }
    for (id, agent) in agents() {
        let Some(call) = agent["call"].as_str() else {
            continue;
        };
        if let Some(other) = named.get(&call.to_lowercase()) {
            let pointer = pointer_to(&pointer_to("/agents", id), "call");
            let message = format!("is what agent {other} is called as well");
            found.push(Found::new(pointer, Kind::Value, message));
        } else {
            named.insert(call.to_lowercase(), id);
        }
    }
}

/// A board's questions have one room, and its people one way to prove who they are.
fn boards(config: &Value, found: &mut Vec<Found>) {
    for (id, board) in config["boards"].as_object().into_iter().flatten() {
        let own = pointer_to("/boards", id);
        one_of(board, &own, &["room", "invite"], found);
        if board.get("encrypted").is_some() && board.get("invite").is_none() {
            let message = "is only for a room that is made: give invite, or leave this out";
            found.push(Found::new(
                pointer_to(&own, "encrypted"),
                Kind::Missing,
                message,
            ));
        }
        if let Some(people) = board.get("people") {
            let own = pointer_to(&own, "people");
            one_of(people, &own, &["bearer", "assertion", "dev"], found);
        }
    }
}

/// Exactly one of these keys.
fn one_of(table: &Value, pointer: &str, keys: &[&str], found: &mut Vec<Found>) {
    let (Some(table), [first, others @ ..]) = (table.as_object(), keys) else {
        return;
    };
    let mut given = keys.iter().filter(|key| table.contains_key(**key));
    let Some(counts) = given.next() else {
        let message = format!("is missing: give it, or {}", others.join(", or "));
        found.push(Found::new(
            pointer_to(pointer, first),
            Kind::Missing,
            message,
        ));
        return;
    };
    for key in given {
        let message = format!("cannot be given together with {counts}");
        found.push(Found::new(pointer_to(pointer, key), Kind::Value, message));
    }
}

/// The bot's own cards are no other carrier's.
fn carriers(config: &Value, found: &mut Vec<Found>) {
    if let Some(bot) = config["matrix"]["user"].as_str()
        && config["carriers"].get(bot).is_some()
    {
        let message = "is the bot's own account; a carrier is another one";
        let pointer = pointer_to("/carriers", bot);
        found.push(Found::new(pointer, Kind::Value, message));
    }
}

/// A stream is a room of its own, and is read by agents that there are.
fn streams(config: &Value, found: &mut Vec<Found>) {
    let mut taken: HashMap<&str, &str> = HashMap::new();
    for (id, stream) in config["streams"].as_object().into_iter().flatten() {
        let own = pointer_to("/streams", id);
        if let Some(room) = stream["room"].as_str() {
            if let Some(other) = taken.get(room) {
                let other = example::toml_key(other);
                let message = format!("is the room of streams.{other} as well");
                found.push(Found::new(pointer_to(&own, "room"), Kind::Value, message));
            } else {
                taken.insert(room, id);
            }
        }
        for (at, agent) in stream["agents"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let Some(agent) = agent.as_str() else {
                continue;
            };
            if values::complaint("agent-id", agent).is_none()
                && config["agents"].get(agent).is_none()
            {
                // Its table may be what could not be read.
                let pointer = pointer_to(&pointer_to(&own, "agents"), &at.to_string());
                let message = "is none of [agents]";
                found.push(Found::new(pointer, Kind::Missing, message));
            }
        }
    }
}
