//! The digest: what a room said to an agent between two of its steps,
//! [`DIGEST_CONTRACT`](super::DIGEST_CONTRACT).
//!
//! An [`AgentDigest`] is valid however it came to be: read with [`AgentDigest::read`], or made
//! with [`AgentDigest::new`] of parts that are valid themselves.
//! `schemas/chat/agent-digest.v1.json` states the same rules for everybody else; a test holds the
//! two together, down to the words in which a fault is told. Characters are Unicode code points,
//! as JSON Schema counts them.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::schema::{push_index, push_key, type_name};
use crate::clock::{Millis, WRITABLE, read_timestamp, timestamp};

/// The most items of a digest.
pub const MAX_ITEMS: usize = 10;

/// The most that `chars` may be, in characters.
pub const MAX_CHARS: u32 = 1_500;

/// The longest `what`, in characters.
pub const MAX_WHAT: usize = 200;

/// The longest `display_name`, in characters.
pub const MAX_DISPLAY_NAME: usize = 80;

/// What comes before the id of a stream in the name of its room.
const ROOM_PREFIX: &str = "agent:";

/// What a digest is told a moment must be, of the format `date-time`.
pub(super) const MOMENT_RULE: &str = "must be a date-time of RFC 3339 with an offset";

/// Whether this is the id of an agent's stream: `ags_` and a ULID in capitals.
pub fn is_stream_id(text: &str) -> bool {
    text.strip_prefix("ags_").is_some_and(|ulid| {
        ulid.len() == 26
            && ulid
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'Z') && !b"ILOU".contains(&byte))
    })
}

/// The name that the contract has for a stream's room: `agent:` and its id.
pub fn room_of(stream_id: &str) -> String {
    format!("{ROOM_PREFIX}{stream_id}")
}

/// The stream of a room as the contract names it; `None` where it is no agent's room.
pub fn stream_of(room: &str) -> Option<&str> {
    let stream_id = room.strip_prefix(ROOM_PREFIX)?;
    is_stream_id(stream_id).then_some(stream_id)
}

/// Whether this is a handle: 2 to 32 of `a` to `z`, `0` to `9` and `_`.
pub fn is_handle(text: &str) -> bool {
    let of_handles = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    (2..=32).contains(&text.len()) && text.bytes().all(of_handles)
}

/// A valid `chat.agent-digest@1`.
///
/// Serialises in the order of the contract's examples, moments in UTC with milliseconds. What the
/// contract does not name is ignored on reading and not kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct AgentDigest {
    room: String,
    #[serde(serialize_with = "write_some_moment")]
    since: Option<Millis>,
    #[serde(serialize_with = "write_moment")]
    until: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    chars: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    items: Vec<DigestItem>,
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct DigestItem {
    who: Who,
    what: String,
    kind: ItemKind,
    upvotes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<u64>,
}

/// Who said it, and nothing else about them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Who {
    display_name: String,
    handle: String,
}

/// What a line is to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// A question, which it may answer.
    Question,
    /// A suggestion, which it may take or leave.
    Suggestion,
    /// A reaction, which says nothing to do.
    Reaction,
}

/// Which rule something breaks, and where. Shown as one sentence, which never repeats the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {rule}")]
pub struct InvalidDigest {
    /// Where, as in [`super::schema::Fault`]: `$` is what was to be made or read, then like
    /// `$.items[0].who.handle`.
    pub field: String,
    /// The rule, as the end of a sentence that begins with the field.
    pub rule: String,
}

impl InvalidDigest {
    fn new(field: &str, rule: impl Into<String>) -> Self {
        let mut path = "$".to_owned();
        if !field.is_empty() {
            push_key(&mut path, field);
        }
        let rule = rule.into();
        Self { field: path, rule }
    }

    /// The same of what stands at `path`.
    fn at(self, path: &str) -> Self {
        let inner = self.field.strip_prefix('$').unwrap_or_default();
        let field = format!("{path}{inner}");
        Self { field, ..self }
    }
}

impl AgentDigest {
    /// The digest of a stream, by its id `ags_…`: of `since` to `until`, or where `since` is
    /// `None` of everything until then.
    ///
    /// `chars` is how many characters the items use together, `truncated` whether something was
    /// left out to keep to the limits. Both are always written.
    ///
    /// # Errors
    /// The first rule that is broken; `room` stands for the stream's id.
    pub fn new(
        stream_id: &str,
        since: Option<Millis>,
        until: Millis,
        items: Vec<DigestItem>,
        chars: u32,
        truncated: bool,
    ) -> Result<Self, InvalidDigest> {
        let digest = Self {
            room: room_of(stream_id),
            since,
            until,
            chars: Some(chars),
            truncated: Some(truncated),
            items,
        };
        for (field, moment) in [("since", since), ("until", Some(until))] {
            if moment.is_some_and(|moment| !WRITABLE.contains(&moment)) {
                return Err(InvalidDigest::new(field, MOMENT_RULE));
            }
        }
        digest.checked()
    }

    /// Reads a digest as any service may send it.
    ///
    /// `chars` and `truncated` may be absent, and `chars` is taken as it is: the contract's own
    /// example says another number than its items have. Numbers are integers as JSON Schema counts
    /// them (`2.0` is one).
    ///
    /// # Errors
    /// The first rule of the contract that `value` breaks.
    pub fn read(value: &Value) -> Result<Self, InvalidDigest> {
        let from = object(value)?;
        let room = text(from, "room")?.to_owned();
        let since = match required(from, "since")? {
            Value::Null => None,
            Value::String(text) => Some(moment("since", text)?),
            other => return Err(wrong_type("since", "null or string", other)),
        };
        let until = moment("until", text(from, "until")?)?;
        let chars = match from.get("chars") {
            None => None,
            Some(value) => {
                let chars = whole("chars", value, 0)?;
                // What does not fit is above the most there may be.
                Some(u32::try_from(chars).unwrap_or(u32::MAX))
            }
        };
        let truncated = match from.get("truncated") {
            None => None,
            Some(Value::Bool(truncated)) => Some(*truncated),
            Some(other) => return Err(wrong_type("truncated", "boolean", other)),
        };
        let items = match required(from, "items")? {
            Value::Array(items) => items,
            other => return Err(wrong_type("items", "array", other)),
        };
        let items = items.iter().enumerate().map(|(at, item)| {
            let mut path = "$.items".to_owned();
            push_index(&mut path, at);
            DigestItem::read(item).map_err(|invalid| invalid.at(&path))
        });
        let digest = Self {
            room,
            since,
            until,
            chars,
            truncated,
            items: items.collect::<Result<_, _>>()?,
        };
        digest.checked()
    }

    /// What neither the types nor a single part of it can see to.
    fn checked(self) -> Result<Self, InvalidDigest> {
        if stream_of(&self.room).is_none() {
            let pattern = "^agent:ags_[0-9A-HJKMNP-TV-Z]{26}$";
            return Err(InvalidDigest::new("room", format!("must match {pattern}")));
        }
        if self.chars.is_some_and(|chars| chars > MAX_CHARS) {
            let rule = format!("must be at most {MAX_CHARS}");
            return Err(InvalidDigest::new("chars", rule));
        }
        if self.items.len() > MAX_ITEMS {
            let rule = format!("must have at most {MAX_ITEMS} items");
            return Err(InvalidDigest::new("items", rule));
        }
        Ok(self)
    }

    /// The room, `agent:` and the id of the stream.
    pub fn room(&self) -> &str {
        &self.room
    }

    /// The id of the stream, `ags_…`.
    pub fn stream_id(&self) -> &str {
        // A digest has no other room.
        stream_of(&self.room).unwrap_or_default()
    }

    /// Where the window begins; `None` where it has no beginning.
    pub fn since(&self) -> Option<Millis> {
        self.since
    }

    /// Where the window ends, and the next one begins.
    pub fn until(&self) -> Millis {
        self.until
    }

    /// How many characters the items use together, as its maker counted, at most [`MAX_CHARS`].
    pub fn chars(&self) -> Option<u32> {
        self.chars
    }

    /// Whether something was left out to keep to the limits, if its maker says so.
    pub fn truncated(&self) -> Option<bool> {
        self.truncated
    }

    /// What was said, in the order of its maker, at most [`MAX_ITEMS`].
    pub fn items(&self) -> &[DigestItem] {
        &self.items
    }
}

impl TryFrom<Value> for AgentDigest {
    type Error = InvalidDigest;

    fn try_from(value: Value) -> Result<Self, InvalidDigest> {
        Self::read(&value)
    }
}

impl DigestItem {
    /// An item. `repeated` is how many people said this; `None` is not written.
    ///
    /// # Errors
    /// When `what` is longer than [`MAX_WHAT`], or `repeated` is none at all.
    pub fn new(
        who: Who,
        what: impl Into<String>,
        kind: ItemKind,
        upvotes: u64,
        repeated: Option<u64>,
    ) -> Result<Self, InvalidDigest> {
        let what = what.into();
        at_most("what", &what, MAX_WHAT)?;
        if repeated == Some(0) {
            return Err(InvalidDigest::new("repeated", "must be at least 1"));
        }
        Ok(Self {
            who,
            what,
            kind,
            upvotes,
            repeated,
        })
    }

    fn read(value: &Value) -> Result<Self, InvalidDigest> {
        let from = object(value)?;
        nothing_but(from, &["who", "what", "kind", "upvotes", "repeated"])?;
        let who = Who::read(required(from, "who")?).map_err(|invalid| invalid.at("$.who"))?;
        let kind = required(from, "kind")?;
        let kind = kind.as_str().and_then(ItemKind::from_word);
        let kind = kind.ok_or_else(|| {
            let words = ItemKind::ALL.map(|kind| format!("\"{}\"", kind.word()));
            InvalidDigest::new("kind", format!("must be one of {}", words.join(", ")))
        })?;
        let repeated = from.get("repeated");
        let repeated = repeated.map(|value| whole("repeated", value, 1));
        Self::new(
            who,
            text(from, "what")?,
            kind,
            whole("upvotes", required(from, "upvotes")?, 0)?,
            repeated.transpose()?,
        )
    }

    /// Who said it first.
    pub fn who(&self) -> &Who {
        &self.who
    }

    /// What they said, at most [`MAX_WHAT`] characters; links only as their domain.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What it is to the agent.
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// How many thumbs up it has; what is past `u64` reads as `u64::MAX`.
    pub fn upvotes(&self) -> u64 {
        self.upvotes
    }

    /// How many people said it, at least 1, if that is told.
    pub fn repeated(&self) -> Option<u64> {
        self.repeated
    }

    /// How many characters of the digest's `chars` it uses.
    pub fn chars(&self) -> usize {
        let texts = [&self.what, &self.who.display_name, &self.who.handle];
        texts.map(|text| text.chars().count()).iter().sum()
    }
}

impl Who {
    /// Somebody, by the name that the room shows and by the handle.
    ///
    /// # Errors
    /// When the name is longer than [`MAX_DISPLAY_NAME`], or the handle is none ([`is_handle`]).
    pub fn new(
        display_name: impl Into<String>,
        handle: impl Into<String>,
    ) -> Result<Self, InvalidDigest> {
        let (display_name, handle) = (display_name.into(), handle.into());
        at_most("display_name", &display_name, MAX_DISPLAY_NAME)?;
        if !is_handle(&handle) {
            let rule = "must match ^[a-z0-9_]{2,32}$";
            return Err(InvalidDigest::new("handle", rule));
        }
        Ok(Self {
            display_name,
            handle,
        })
    }

    fn read(value: &Value) -> Result<Self, InvalidDigest> {
        let from = object(value)?;
        nothing_but(from, &["display_name", "handle"])?;
        Self::new(text(from, "display_name")?, text(from, "handle")?)
    }

    /// The name that the room shows, at most [`MAX_DISPLAY_NAME`] characters; may be empty.
    pub fn display_name(&self) -> &str {
        &self.display_name
    }

    /// The handle by which the agent answers them.
    pub fn handle(&self) -> &str {
        &self.handle
    }
}

impl ItemKind {
    /// Every kind there is.
    pub const ALL: [Self; 3] = [Self::Question, Self::Suggestion, Self::Reaction];

    /// The word of the contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Suggestion => "suggestion",
            Self::Reaction => "reaction",
        }
    }

    /// The kind of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over the field as it is"
)]
fn write_moment<S: Serializer>(at: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&timestamp(*at))
}

#[expect(clippy::ref_option, reason = "serde hands over the field as it is")]
fn write_some_moment<S: Serializer>(at: &Option<Millis>, to: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => write_moment(at, to),
        None => to.serialize_none(),
    }
}

fn moment(field: &str, text: &str) -> Result<Millis, InvalidDigest> {
    read_timestamp(text).ok_or_else(|| InvalidDigest::new(field, MOMENT_RULE))
}

fn at_most(field: &str, text: &str, most: usize) -> Result<(), InvalidDigest> {
    if text.chars().count() > most {
        let rule = format!("must have at most {most} characters");
        return Err(InvalidDigest::new(field, rule));
    }
    Ok(())
}

/// JSON Schema counts every number without a fraction as an integer, whatever its notation and
/// size.
fn whole(field: &str, value: &Value, least: u64) -> Result<u64, InvalidDigest> {
    let float = value.as_f64().unwrap_or(f64::NAN);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates: what is negative is refused below, and 2^64 is past counting"
    )]
    let from_float = || (float.fract() == 0.0).then_some(float as u64);
    let number = value.as_u64().or_else(from_float);
    let number = number.ok_or_else(|| wrong_type(field, "integer", value))?;
    if number < least || float < 0.0 {
        let rule = format!("must be at least {least}");
        return Err(InvalidDigest::new(field, rule));
    }
    Ok(number)
}

fn object(value: &Value) -> Result<&Map<String, Value>, InvalidDigest> {
    value
        .as_object()
        .ok_or_else(|| wrong_type("", "object", value))
}

fn nothing_but(from: &Map<String, Value>, known: &[&str]) -> Result<(), InvalidDigest> {
    match from.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(InvalidDigest::new(key, "is not known")),
        None => Ok(()),
    }
}

fn required<'a>(from: &'a Map<String, Value>, field: &str) -> Result<&'a Value, InvalidDigest> {
    from.get(field)
        .ok_or_else(|| InvalidDigest::new(field, "is missing"))
}

fn text<'a>(from: &'a Map<String, Value>, field: &str) -> Result<&'a str, InvalidDigest> {
    let value = required(from, field)?;
    value
        .as_str()
        .ok_or_else(|| wrong_type(field, "string", value))
}

fn wrong_type(field: &str, expected: &str, found: &Value) -> InvalidDigest {
    let found = type_name(found);
    InvalidDigest::new(field, format!("must be of type {expected}, is {found}"))
}

#[cfg(test)]
mod tests;
