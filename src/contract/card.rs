//! The card: an agent's question as it rides inside the prose message, under
//! [`CARD_KEY`](super::CARD_KEY).
//!
//! A [`Card`] is valid however it came to be: read from a message with [`Card::read`],
//! or made with [`Card::builder`]. `schemas/matrix/dev.superpipeline.elicitation.json`
//! states the same rules for everybody else; a test holds the two together.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::CardOption;

/// The version this crate writes. Readers take it as a floor.
pub const SCHEMA_VERSION: u64 = 1;

/// The most options a card carries: a client draws four buttons.
pub const MAX_OPTIONS: usize = 4;

/// A valid `dev.superpipeline.elicitation` object.
///
/// Serialises in the order of the contract's table, without an absent `deep_link`.
/// Properties the contract does not name are ignored on reading and not kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Value")]
#[expect(clippy::struct_field_names, reason = "the names are the contract's")]
pub struct Card {
    schema_version: u64,
    board_id: String,
    card_id: String,
    elicitation_id: String,
    run_id: String,
    stage_key: String,
    card_title: String,
    asked_by: String,
    prompt: String,
    options: Vec<CardOption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deep_link: Option<String>,
}

/// Why something is no card. The paths are those of [`super::schema::Fault`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// A required property is absent.
    #[error("{path} is missing")]
    Missing {
        /// The absent property.
        path: String,
    },
    /// A property has another JSON type than the contract's. `null` is a type of its
    /// own: an optional property is left out, never null.
    #[error("{path} is not {expected}")]
    Type {
        /// The property.
        path: String,
        /// The type it should have, with its article.
        expected: &'static str,
    },
    /// `schema_version` is below 1.
    #[error("$.schema_version is below 1")]
    Version,
    /// A string that needs at least one character has none.
    #[error("{path} is empty")]
    Empty {
        /// The empty string.
        path: String,
    },
    /// More options than [`MAX_OPTIONS`].
    #[error("$.options has {count} items, more than {MAX_OPTIONS}")]
    TooManyOptions {
        /// How many there are.
        count: usize,
    },
    /// Two options share an id (the layer `unique`; all others are the layer `schema`).
    #[error("$.options[{again}].id repeats $.options[{first}].id")]
    RepeatedId {
        /// Index of the first option with the id, from 0.
        first: usize,
        /// Index of the second, from 0.
        again: usize,
    },
}

impl Card {
    /// Reads a card from the value of its content key.
    ///
    /// Takes any `schema_version` from 1 up, counting integers as JSON Schema does (`2.0`
    /// is one), and ignores properties it does not know at every level.
    ///
    /// # Errors
    /// The first rule of the contract that `value` breaks.
    pub fn read(value: &Value) -> Result<Self, CardError> {
        let card = object(value, "$")?;
        let read = Self {
            schema_version: version(required(card, "$", "schema_version")?)?,
            board_id: string(card, "$", "board_id")?,
            card_id: string(card, "$", "card_id")?,
            elicitation_id: string(card, "$", "elicitation_id")?,
            run_id: string(card, "$", "run_id")?,
            stage_key: string(card, "$", "stage_key")?,
            card_title: string(card, "$", "card_title")?,
            asked_by: string(card, "$", "asked_by")?,
            prompt: string(card, "$", "prompt")?,
            options: options(required(card, "$", "options")?)?,
            deep_link: match card.get("deep_link") {
                None => None,
                Some(_) => Some(string(card, "$", "deep_link")?),
            },
        };
        check_elicitation_id(&read.elicitation_id)?;
        check_options(&read.options)?;
        Ok(read)
    }

    /// Starts a card of [`SCHEMA_VERSION`] for this elicitation; everything not set stays
    /// an empty string, an empty list, or absent.
    pub fn builder(elicitation_id: impl Into<String>) -> CardBuilder {
        CardBuilder {
            card: Self {
                schema_version: SCHEMA_VERSION,
                board_id: String::new(),
                card_id: String::new(),
                elicitation_id: elicitation_id.into(),
                run_id: String::new(),
                stage_key: String::new(),
                card_title: String::new(),
                asked_by: String::new(),
                prompt: String::new(),
                options: Vec::new(),
                deep_link: None,
            },
        }
    }

    /// The version its sender wrote, at least 1; one past `u64` reads as `u64::MAX`.
    pub fn schema_version(&self) -> u64 {
        self.schema_version
    }

    /// The board the question belongs to; may be empty.
    pub fn board_id(&self) -> &str {
        &self.board_id
    }

    /// The board's card the question is about; may be empty.
    pub fn card_id(&self) -> &str {
        &self.card_id
    }

    /// Names the question towards whoever asked it; never empty.
    pub fn elicitation_id(&self) -> &str {
        &self.elicitation_id
    }

    /// The run that waits for the answer; may be empty.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The stage the run is in; may be empty.
    pub fn stage_key(&self) -> &str {
        &self.stage_key
    }

    /// The title of the board's card; may be empty.
    pub fn card_title(&self) -> &str {
        &self.card_title
    }

    /// The agent that asks; may be empty. As its sender claims: on a card that somebody
    /// else sent it proves nothing.
    pub fn asked_by(&self) -> &str {
        &self.asked_by
    }

    /// The question itself, as plain text; may be empty.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// The options a client draws as buttons: at most [`MAX_OPTIONS`], ids unique.
    pub fn options(&self) -> &[CardOption] {
        &self.options
    }

    /// Where the question can be seen in full. Any string at all: whether it is a link
    /// worth showing is for the reader to judge, and it need not agree with `card_id`.
    pub fn deep_link(&self) -> Option<&str> {
        self.deep_link.as_deref()
    }
}

impl TryFrom<Value> for Card {
    type Error = CardError;

    fn try_from(value: Value) -> Result<Self, CardError> {
        Self::read(&value)
    }
}

/// Makes a [`Card`]; see [`Card::builder`].
#[derive(Debug, Clone)]
#[must_use = "a builder makes nothing until `build`"]
pub struct CardBuilder {
    card: Card,
}

impl CardBuilder {
    /// Sets `board_id`.
    pub fn board_id(mut self, board_id: impl Into<String>) -> Self {
        self.card.board_id = board_id.into();
        self
    }

    /// Sets `card_id`.
    pub fn card_id(mut self, card_id: impl Into<String>) -> Self {
        self.card.card_id = card_id.into();
        self
    }

    /// Sets `run_id`.
    pub fn run_id(mut self, run_id: impl Into<String>) -> Self {
        self.card.run_id = run_id.into();
        self
    }

    /// Sets `stage_key`.
    pub fn stage_key(mut self, stage_key: impl Into<String>) -> Self {
        self.card.stage_key = stage_key.into();
        self
    }

    /// Sets `card_title`.
    pub fn card_title(mut self, card_title: impl Into<String>) -> Self {
        self.card.card_title = card_title.into();
        self
    }

    /// Sets `asked_by`.
    pub fn asked_by(mut self, asked_by: impl Into<String>) -> Self {
        self.card.asked_by = asked_by.into();
        self
    }

    /// Sets `prompt`.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.card.prompt = prompt.into();
        self
    }

    /// Gives *all* options of the question, however many. The card takes the first
    /// [`MAX_OPTIONS`]; the rules for ids hold for every one of them, since
    /// those past the fourth are answerable too.
    pub fn options(mut self, options: impl IntoIterator<Item = CardOption>) -> Self {
        self.card.options = options.into_iter().collect();
        self
    }

    /// Sets `deep_link`; `None` leaves it out.
    pub fn deep_link(mut self, deep_link: Option<String>) -> Self {
        self.card.deep_link = deep_link;
        self
    }

    /// The card.
    ///
    /// # Errors
    /// [`CardError::Empty`] for an empty elicitation id or option id, and
    /// [`CardError::RepeatedId`]; never any other.
    pub fn build(mut self) -> Result<Card, CardError> {
        check_elicitation_id(&self.card.elicitation_id)?;
        check_options(&self.card.options)?;
        self.card.options.truncate(MAX_OPTIONS);
        Ok(self.card)
    }
}

fn check_elicitation_id(elicitation_id: &str) -> Result<(), CardError> {
    if elicitation_id.is_empty() {
        return Err(CardError::Empty {
            path: "$.elicitation_id".to_owned(),
        });
    }
    Ok(())
}

/// The rules for options that hold for the full list as well as for a card's. A repeated
/// id comes last: it is the only fault there is when it is the one that is told.
fn check_options(options: &[CardOption]) -> Result<(), CardError> {
    for (at, option) in options.iter().enumerate() {
        if option.id.is_empty() {
            return Err(CardError::Empty {
                path: format!("$.options[{at}].id"),
            });
        }
    }
    let mut seen = HashMap::new();
    for (at, option) in options.iter().enumerate() {
        if let Some(first) = seen.insert(option.id.as_str(), at) {
            return Err(CardError::RepeatedId { first, again: at });
        }
    }
    Ok(())
}

fn options(value: &Value) -> Result<Vec<CardOption>, CardError> {
    let Value::Array(items) = value else {
        return Err(wrong_type("$.options", "an array"));
    };
    if items.len() > MAX_OPTIONS {
        return Err(CardError::TooManyOptions { count: items.len() });
    }
    let read = |(at, item)| {
        let path = format!("$.options[{at}]");
        let item = object(item, &path)?;
        Ok(CardOption {
            id: string(item, &path, "id")?,
            label: string(item, &path, "label")?,
        })
    };
    items.iter().enumerate().map(read).collect()
}

/// JSON Schema counts every number without a fraction as an integer, whatever its
/// notation and size. A `bool` never is one.
fn version(value: &Value) -> Result<u64, CardError> {
    let not_an_integer = || wrong_type("$.schema_version", "an integer");
    let Value::Number(number) = value else {
        return Err(not_an_integer());
    };
    if let Some(version) = number.as_u64() {
        return if version == 0 {
            Err(CardError::Version)
        } else {
            Ok(version)
        };
    }
    let version = number.as_f64().ok_or_else(not_an_integer)?;
    if version.fract() != 0.0 {
        return Err(not_an_integer());
    }
    if version < 1.0 {
        return Err(CardError::Version);
    }
    // A float past `u64` saturates in this cast; the sign was checked just above.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(version as u64)
}

fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, CardError> {
    value
        .as_object()
        .ok_or_else(|| wrong_type(path, "an object"))
}

fn required<'a>(
    from: &'a Map<String, Value>,
    path: &str,
    name: &str,
) -> Result<&'a Value, CardError> {
    from.get(name).ok_or_else(|| CardError::Missing {
        path: format!("{path}.{name}"),
    })
}

fn string(from: &Map<String, Value>, path: &str, name: &str) -> Result<String, CardError> {
    match required(from, path, name)? {
        Value::String(text) => Ok(text.clone()),
        _ => Err(wrong_type(&format!("{path}.{name}"), "a string")),
    }
}

fn wrong_type(path: &str, expected: &'static str) -> CardError {
    CardError::Type {
        path: path.to_owned(),
        expected,
    }
}

#[cfg(test)]
mod tests;
