//! What a Superpipeline board says to us: a pending question, and what it makes of an answer.
//!
//! A question comes by push and in the list of what is pending, in the same shape, and is read
//! by [`Pending::read`]. Whoever answers learns from [`Verdict::of`] what became of it.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::CardOption;
use crate::clock::Millis;

/// The event of a push that says that a question is pending.
pub const PENDING: &str = "elicitation.pending";

/// The longest id of anything, in bytes.
pub const MAX_ID_BYTES: usize = 256;

/// The longest body of a refusal that is looked at, in bytes.
pub const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The longest code of a refusal, in characters.
const MAX_CODE: usize = 64;

/// A question that waits on a board. Where nothing else is said, a text may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pending {
    /// The board; never blank.
    pub board_id: String,
    /// What the board is called, if it says so; never blank.
    pub board_name: Option<String>,
    /// The board's card that the question is about.
    pub card_id: String,
    /// What that card is called.
    pub card_title: String,
    /// Names the question on its board; never blank, and fit to be part of an address.
    pub elicitation_id: String,
    /// The agent's run that waits for the answer.
    pub run_id: String,
    /// The stage that the card is in.
    pub stage_key: String,
    /// The agent that asks; never blank.
    pub agent_id: String,
    /// What is asked, however long.
    pub question: String,
    /// The choices, however many; each id is not blank and there once.
    pub options: Vec<CardOption>,
    /// When it was asked, if that can be told.
    pub asked_at: Option<Millis>,
}

/// Why something is no pending question: where, and which rule it breaks. What stands there is not
/// repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PendingFault {
    /// A property is absent.
    #[error("{path} is missing")]
    Missing {
        /// The absent property.
        path: String,
    },
    /// A property has another JSON type.
    #[error("{path} is not {expected}")]
    Type {
        /// The property.
        path: String,
        /// The type it should have, with its article.
        expected: &'static str,
    },
    /// Something that names something is empty or white space.
    #[error("{path} is blank")]
    Blank {
        /// The id.
        path: String,
    },
    /// An id is longer than [`MAX_ID_BYTES`].
    #[error("{path} has more than {MAX_ID_BYTES} bytes")]
    TooLong {
        /// The id.
        path: String,
    },
    /// An id has a control character in it.
    #[error("{path} has a control character in it")]
    Control {
        /// The id.
        path: String,
    },
    /// `.` and `..` are ways in an address, and name nothing there.
    #[error("$.elicitationId cannot be part of an address")]
    NoSegment,
    /// Two options share an id.
    #[error("$.options[{again}].id repeats $.options[{first}].id")]
    RepeatedId {
        /// Index of the first option with the id, from 0.
        first: usize,
        /// Index of the second, from 0.
        again: usize,
    },
}

impl Pending {
    /// Reads a question as a push or the list of what is pending has it. `event` is not looked
    /// at, and what is not known is ignored.
    ///
    /// `boardId`, `elicitationId`, `agentId`, `question` and `options` must be there. The rest is
    /// context: it may be absent or null. A `ts` that is no time is no fault either.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn read(value: &Value) -> Result<Self, PendingFault> {
        let from = value
            .as_object()
            .ok_or_else(|| wrong_type("$", "an object"))?;
        let read = Self {
            board_id: name(from, "$", "boardId")?,
            board_name: context(from, "boardName")?.filter(|name| !is_blank(name)),
            card_id: context_id(from, "cardId")?,
            card_title: context(from, "cardTitle")?.unwrap_or_default(),
            elicitation_id: name(from, "$", "elicitationId")?,
            run_id: context_id(from, "runId")?,
            stage_key: context_id(from, "stageKey")?,
            agent_id: name(from, "$", "agentId")?,
            question: required(from, "$", "question")?,
            options: options(from)?,
            asked_at: from.get("ts").and_then(time_of),
        };
        if matches!(read.elicitation_id.as_str(), "." | "..") {
            return Err(PendingFault::NoSegment);
        }
        Ok(read)
    }
}

/// The id that an entry of the pending list has, however malformed the rest of it is. A blank one
/// names nothing.
pub fn id_of(entry: &Value) -> Option<&str> {
    let id = entry.get("elicitationId")?.as_str()?;
    (!is_blank(id)).then_some(id)
}

fn options(from: &Map<String, Value>) -> Result<Vec<CardOption>, PendingFault> {
    let path = || "$.options".to_owned();
    let items = match from.get("options") {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong_type("$.options", "an array")),
        None => return Err(PendingFault::Missing { path: path() }),
    };
    let mut seen = HashMap::new();
    let mut options = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let path = format!("{}[{at}]", path());
        let item = item
            .as_object()
            .ok_or_else(|| wrong_type(&path, "an object"))?;
        let id = name(item, &path, "id")?;
        if let Some(first) = seen.insert(id.clone(), at) {
            return Err(PendingFault::RepeatedId { first, again: at });
        }
        let label = optional(item, &path, "label")?.unwrap_or_default();
        options.push(CardOption { id, label });
    }
    Ok(options)
}

/// An id that must name something.
fn name(from: &Map<String, Value>, path: &str, key: &str) -> Result<String, PendingFault> {
    let id = required(from, path, key)?;
    if is_blank(&id) {
        let path = format!("{path}.{key}");
        return Err(PendingFault::Blank { path });
    }
    bounded(id, path, key)
}

fn context_id(from: &Map<String, Value>, key: &str) -> Result<String, PendingFault> {
    let id = context(from, key)?.unwrap_or_default();
    bounded(id, "$", key)
}

fn bounded(id: String, path: &str, key: &str) -> Result<String, PendingFault> {
    let path = || format!("{path}.{key}");
    if id.len() > MAX_ID_BYTES {
        return Err(PendingFault::TooLong { path: path() });
    }
    if id.contains(char::is_control) {
        return Err(PendingFault::Control { path: path() });
    }
    Ok(id)
}

fn context(from: &Map<String, Value>, key: &str) -> Result<Option<String>, PendingFault> {
    optional(from, "$", key)
}

fn required(from: &Map<String, Value>, path: &str, key: &str) -> Result<String, PendingFault> {
    match from.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(wrong_type(&format!("{path}.{key}"), "a string")),
        None => Err(PendingFault::Missing {
            path: format!("{path}.{key}"),
        }),
    }
}

fn optional(
    from: &Map<String, Value>,
    path: &str,
    key: &str,
) -> Result<Option<String>, PendingFault> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => required(from, path, key).map(Some),
    }
}

fn wrong_type(path: &str, expected: &'static str) -> PendingFault {
    PendingFault::Type {
        path: path.to_owned(),
        expected,
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A time as RFC 3339, or as the milliseconds or seconds since 1970.
fn time_of(ts: &Value) -> Option<Millis> {
    /// In milliseconds this is 1973, in seconds the year 5138.
    const SECONDS_BELOW: f64 = 1e11;
    if let Value::String(text) = ts {
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        let millis = time.unix_timestamp_nanos().div_euclid(1_000_000);
        return plausible(i64::try_from(millis).ok()?);
    }
    let number = ts.as_f64()?;
    let millis = if number < SECONDS_BELOW {
        number * 1000.0
    } else {
        number
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates, and is bounded next"
    )]
    plausible(millis as i64)
}

/// Between 1970 and 9999: nothing that is calculated with such a time runs over.
fn plausible(at: i64) -> Option<Millis> {
    const END_OF_9999: Millis = 253_402_300_799_999;
    (1..=END_OF_9999).contains(&at).then_some(at)
}

/// What a board made of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The agent has it.
    Taken,
    /// The question is not pending, or not there: answered elsewhere, or withdrawn.
    Settled,
    /// It is no answer to this question.
    Invalid,
    /// Whoever asks may not answer.
    SeparationOfDuties,
    /// The board does not know the person, or not by this credential.
    UnknownPerson,
    /// Refused for good, for another reason.
    NotAllowed {
        /// The board's word for it, or `HTTP` and the status: at most 64 graphic ASCII
        /// characters.
        code: String,
    },
    /// The board did not come to a decision; it may later.
    Failed {
        /// In a few words, without anything secret.
        why: String,
        /// How long the board asked to be left alone.
        retry_after: Option<Duration>,
    },
}

/// The codes that decide by themselves.
const DECIDED: [(&str, Verdict); 4] = [
    ("INVALID_ANSWER", Verdict::Invalid),
    ("ELICITATION_NOT_FOUND", Verdict::Settled),
    ("ELICITATION_NOT_PENDING", Verdict::Settled),
    ("SEPARATION_OF_DUTIES", Verdict::SeparationOfDuties),
];
const NOT_ALLOWED: [&str; 2] = ["NOT_RUN_OWNER", "STALE_LEASE"];

impl Verdict {
    /// What a response means. The body may be anything.
    ///
    /// A code that is known decides whatever the status, as long as that is a refusal (4xx). A
    /// 404 without one says nothing about the question: it may be a wrong address.
    pub fn of(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        if (200..300).contains(&status) {
            return Self::Taken;
        }
        let code = code_in(body);
        let code = code.as_deref();
        if (400..500).contains(&status) {
            let decided = DECIDED.into_iter().find(|(known, _)| Some(*known) == code);
            if let Some((_, verdict)) = decided {
                return verdict;
            }
            let is_known = code.is_some_and(|code| NOT_ALLOWED.contains(&code));
            match status {
                401 | 403 if !is_known => return Self::UnknownPerson,
                404 | 408 | 429 if !is_known => {}
                _ => {
                    let code = code.map_or_else(|| format!("HTTP {status}"), str::to_owned);
                    return Self::NotAllowed { code };
                }
            }
        }
        let why = match code {
            Some(code) => format!("HTTP {status} {code}"),
            None => format!("HTTP {status}"),
        };
        Self::Failed { why, retry_after }
    }
}

/// The code of a refusal: `error.code`, or one level deeper, at most 64 graphic ASCII characters.
/// One that is known counts before one that is not.
pub fn code_in(body: &[u8]) -> Option<String> {
    if body.len() > MAX_REFUSAL_BYTES {
        return None;
    }
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error")?.as_object()?;
    let nested = error.values().filter_map(|inner| inner.get("code"));
    let codes: Vec<&str> = error
        .get("code")
        .into_iter()
        .chain(nested)
        .filter_map(Value::as_str)
        .filter(|code| is_code(code))
        .collect();
    let is_known = |code: &&&str| {
        NOT_ALLOWED.contains(code) || DECIDED.iter().any(|(known, _)| known == *code)
    };
    let code = codes.iter().find(is_known).or_else(|| codes.first())?;
    Some((*code).to_owned())
}

fn is_code(text: &str) -> bool {
    (1..=MAX_CODE).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests;
