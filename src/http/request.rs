//! What an agent may send to ask something: the shapes, member by member.
//!
//! Each fault names its field and the rule it breaks. Whether the values are
//! allowed (lengths, numbers, rooms) is the desk's to say.

use std::fmt;

use axum::http::HeaderMap;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::ApiError;
use crate::clock::{Millis, millis};
use crate::contract::CardOption;
use crate::desk::Ask;
use crate::elicitation::Answerers;
use crate::span::parse_span;

/// The header that makes a repeated request the same request.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const MAX_IDEMPOTENCY_KEY: usize = 256;

const FIELDS: [&str; 18] = [
    "room",
    "prompt",
    "options",
    "elicitation_id",
    "board_id",
    "card_id",
    "run_id",
    "stage_key",
    "card_title",
    "deep_link",
    "answerers",
    "free_text",
    "decline",
    "expires_in",
    "mention",
    "thread",
    "metadata",
    "asked_by",
];

/// What others call our fields.
const FOREIGN: [(&str, &str); 16] = [
    ("id", "elicitation_id"),
    ("room_id", "room"),
    ("channel", "room"),
    ("question", "prompt"),
    ("message", "prompt"),
    ("text", "prompt"),
    ("body", "prompt"),
    ("choices", "options"),
    ("answers", "options"),
    ("title", "card_title"),
    ("link", "deep_link"),
    ("url", "deep_link"),
    ("timeout", "expires_in"),
    ("ttl", "expires_in"),
    ("expires_at", "expires_in"),
    ("thread_id", "thread"),
];

/// Reads the body of a request to ask something, and the key that came in its header.
pub fn read_ask(body: &[u8], idempotency_key: Option<String>) -> Result<Ask, ApiError> {
    let mut members = Members::read(body, r#"{"room": "…", "prompt": "…"}"#)?;
    if members.take("asked_by").is_some() {
        return Err(ApiError::invalid(
            "asked_by",
            "is the token's agent and never a field",
        ));
    }
    members.refuse_unknown()?;
    let options = match members.take("options") {
        Some(value) => options(value)?,
        None => Vec::new(),
    };
    let ask = Ask {
        room: members.required_text("room")?,
        prompt: members.required_text("prompt")?,
        options,
        elicitation_id: members.text("elicitation_id")?,
        idempotency_key,
        free_text: members
            .take("free_text")
            .map(|value| boolean("free_text", &value))
            .transpose()?,
        decline: members
            .take("decline")
            .map(|value| boolean("decline", &value))
            .transpose()?
            .unwrap_or(false),
        answerers: match members.take("answerers") {
            Some(value) => answerers(value)?,
            None => Answerers::default(),
        },
        expires_in: members
            .take("expires_in")
            .map(|value| expires_in(&value))
            .transpose()?,
        mention: match members.take("mention") {
            Some(value) => texts("mention", value)?,
            None => Vec::new(),
        },
        thread: members.text("thread")?,
        board_id: members.text("board_id")?,
        card_id: members.text("card_id")?,
        run_id: members.text("run_id")?,
        stage_key: members.text("stage_key")?,
        card_title: members.text("card_title")?,
        deep_link: members.text("deep_link")?,
        metadata: members.take("metadata"),
    };
    Ok(ask)
}

/// Reads the `Idempotency-Key` header.
pub fn read_idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(ApiError::invalid(IDEMPOTENCY_KEY, "is given twice"));
    }
    match value.to_str() {
        Ok(key) if (1..=MAX_IDEMPOTENCY_KEY).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(ApiError::invalid(
            IDEMPOTENCY_KEY,
            format!("must be 1 to {MAX_IDEMPOTENCY_KEY} visible ASCII characters"),
        )),
    }
}

/// The members of the body's object, in the order they came. A JSON map would keep the last of two
/// members of one name and say nothing.
pub struct Members(Vec<(String, Value)>);

/// A body as JSON of the shape that is shown when it is not.
fn parsed<T: DeserializeOwned>(body: &[u8], shape: &str) -> Result<T, ApiError> {
    let shape = format!("must be a JSON object like {shape}");
    if body.trim_ascii().is_empty() {
        return Err(ApiError::invalid("body", shape));
    }
    serde_json::from_slice(body).map_err(|error| {
        let rule = if error.is_data() {
            shape
        } else {
            format!("must be JSON: {error}")
        };
        ApiError::invalid("body", rule)
    })
}

/// The body of an activity as JSON; what it has to be is read from that.
pub fn json_of(body: &[u8]) -> Result<Value, ApiError> {
    const SHAPE: &str = r#"{"content": {"type": "thought", "body": "…"}}"#;
    let whole: Value = parsed(body, SHAPE)?;
    if whole.is_object() {
        // Which of two of one name is meant, nobody can know.
        Members::read(body, SHAPE)?;
    }
    Ok(whole)
}

impl Members {
    /// The members of a body that may have these and no others.
    pub fn of(body: &[u8], known: &[&str]) -> Result<Self, ApiError> {
        let members = Self::read(body, r#"{"room": "…"}"#)?;
        let foreign = members
            .0
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()));
        match foreign {
            None => Ok(members),
            Some((name, _)) => Err(unknown_field(name, "", None, known)),
        }
    }

    fn read(body: &[u8], shape: &str) -> Result<Self, ApiError> {
        let members: Self = parsed(body, shape)?;
        for (place, (name, _)) in members.0.iter().enumerate() {
            if members.0[..place].iter().any(|(before, _)| before == name) {
                return Err(ApiError::invalid(shown(name), "is given twice"));
            }
        }
        Ok(members)
    }

    fn refuse_unknown(&self) -> Result<(), ApiError> {
        match self
            .0
            .iter()
            .find(|(name, _)| !FIELDS.contains(&name.as_str()))
        {
            None => Ok(()),
            Some((name, _)) => {
                let foreign = FOREIGN
                    .iter()
                    .find(|(foreign, _)| foreign == name)
                    .map(|(_, ours)| *ours);
                Err(unknown_field(
                    name,
                    "",
                    foreign,
                    &FIELDS[..FIELDS.len() - 1],
                ))
            }
        }
    }

    /// Takes a member out. `null` is as good as absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        let place = self.0.iter().position(|(member, _)| member == name)?;
        let (_, value) = self.0.swap_remove(place);
        (!value.is_null()).then_some(value)
    }

    /// A string, if it is there.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        self.take(name).map(|value| text(name, value)).transpose()
    }

    /// A string that has to be there.
    pub fn required_text(&mut self, name: &str) -> Result<String, ApiError> {
        self.text(name)?
            .ok_or_else(|| ApiError::invalid(name, "is required, a string"))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

fn options(value: Value) -> Result<Vec<CardOption>, ApiError> {
    let Value::Array(values) = value else {
        return Err(wrong("options", "an array of options", &value));
    };
    values
        .into_iter()
        .enumerate()
        .map(|(index, value)| option(index, value))
        .collect()
}

fn option(index: usize, value: Value) -> Result<CardOption, ApiError> {
    let field = format!("options[{index}]");
    match value {
        Value::String(text) => Ok(CardOption {
            id: text.clone(),
            label: text,
        }),
        Value::Object(mut members) => {
            if let Some(name) = members
                .keys()
                .find(|name| !["id", "label"].contains(&name.as_str()))
            {
                let foreign = match name.as_str() {
                    "name" | "value" => Some("id"),
                    "title" | "text" => Some("label"),
                    _ => None,
                };
                return Err(unknown_field(
                    name,
                    &format!("{field}."),
                    foreign,
                    &["id", "label"],
                ));
            }
            let mut member = |name: &str| {
                let field = format!("{field}.{name}");
                match members.remove(name) {
                    Some(value) => text(&field, value),
                    None => Err(ApiError::invalid(field, "is required, a string")),
                }
            };
            Ok(CardOption {
                id: member("id")?,
                label: member("label")?,
            })
        }
        other => Err(wrong(
            &field,
            r#"a string or an object {"id", "label"}"#,
            &other,
        )),
    }
}

fn answerers(value: Value) -> Result<Answerers, ApiError> {
    let Value::Object(members) = value else {
        return Err(wrong(
            "answerers",
            r#"an object {"users", "min_power"}"#,
            &value,
        ));
    };
    let mut answerers = Answerers::default();
    for (name, value) in members {
        match name.as_str() {
            "users" | "min_power" if value.is_null() => {}
            "users" => answerers.users = Some(texts("answerers.users", value)?),
            "min_power" => {
                let power = value
                    .as_i64()
                    .ok_or_else(|| wrong("answerers.min_power", "a whole number", &value))?;
                answerers.min_power = Some(power);
            }
            _ => {
                return Err(unknown_field(
                    &name,
                    "answerers.",
                    None,
                    &["users", "min_power"],
                ));
            }
        }
    }
    Ok(answerers)
}

fn expires_in(value: &Value) -> Result<Millis, ApiError> {
    const RULE: &str = r#"must be a whole number of seconds above 0, or a span like "30m""#;
    let broken = || ApiError::invalid("expires_in", RULE);
    let span = match value {
        Value::Number(seconds) => seconds
            .as_i64()
            .and_then(|seconds| seconds.checked_mul(1000))
            .ok_or_else(broken)?,
        Value::String(span) => parse_span(span).map(millis).map_err(|_| broken())?,
        other => {
            return Err(wrong(
                "expires_in",
                r#"seconds or a span like "30m""#,
                other,
            ));
        }
    };
    if span > 0 { Ok(span) } else { Err(broken()) }
}

fn texts(field: &str, value: Value) -> Result<Vec<String>, ApiError> {
    let Value::Array(values) = value else {
        return Err(wrong(field, "an array of strings", &value));
    };
    let texts = values.into_iter().enumerate();
    texts
        .map(|(index, value)| text(&format!("{field}[{index}]"), value))
        .collect()
}

fn text(field: &str, value: Value) -> Result<String, ApiError> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong(field, "a string", &other)),
    }
}

fn boolean(field: &str, value: &Value) -> Result<bool, ApiError> {
    value
        .as_bool()
        .ok_or_else(|| wrong(field, "true or false", value))
}

/// A value of the wrong type, named by both types.
fn wrong(field: &str, right: &str, value: &Value) -> ApiError {
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    ApiError::invalid(field, format!("must be {right}, not {is}"))
}

fn unknown_field(name: &str, under: &str, foreign: Option<&str>, known: &[&str]) -> ApiError {
    let rule = match foreign.or_else(|| nearest(name, known)) {
        Some(near) => format!("is no field here; did you mean `{near}`?"),
        None => format!("is no field here; there are {}", quoted_list(known)),
    };
    ApiError::invalid(format!("{under}{}", shown(name)), rule)
}

/// A foreign name, short enough for a message.
fn shown(name: &str) -> String {
    const LONGEST: usize = 64;
    if name.chars().count() <= LONGEST {
        name.to_owned()
    } else {
        name.chars().take(LONGEST).chain(['…']).collect()
    }
}

/// Names in backticks, the last one after an "and".
pub fn quoted_list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

/// The known name that somebody may have meant: at most two slips away, and more like it than not.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 32;
    if name.len() > LONGEST {
        return None;
    }
    let plain = |name: &str| name.to_lowercase().replace(['-', ' ', '_'], "");
    let meant = plain(name);
    known
        .iter()
        .map(|known| (slips(&meant, &plain(known)), *known))
        .filter(|(slips, known)| *slips <= 2 && slips * 3 <= known.len())
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, known)| known)
}

/// The Levenshtein distance of two short names.
fn slips(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, from) in left.chars().enumerate() {
        let mut line = vec![row + 1];
        for (column, to) in right.iter().enumerate() {
            let swapped = above[column] + usize::from(from != *to);
            line.push(swapped.min(above[column + 1] + 1).min(line[column] + 1));
        }
        above = line;
    }
    above[right.len()]
}

#[cfg(test)]
mod tests;
