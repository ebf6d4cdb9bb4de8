//! Validation against the embedded JSON Schemas, with every fault and where it is.
//!
//! Two layers, named in each [`Fault`]: `schema` is JSON Schema itself, `unique` is the
//! one rule it cannot state, `x-uniqueBy`: a list of paths whose values must not repeat.
//! In such a path `a[].b` is field `b` of each item of list `a`.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::digest::MOMENT_RULE;
use crate::clock::read_timestamp;

/// A contract whose schema is embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contract {
    /// The card, `dev.superpipeline.elicitation`.
    Card,
    /// The digest, `chat.agent-digest@1`.
    AgentDigest,
}

impl Contract {
    /// Every contract there is.
    pub const ALL: [Self; 2] = [Self::Card, Self::AgentDigest];

    /// The name of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Card => super::CARD_KEY,
            Self::AgentDigest => super::DIGEST_CONTRACT,
        }
    }

    /// The contract of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The key under which it rides in the content of a Matrix event, if it does.
    pub fn content_key(self) -> Option<&'static str> {
        match self {
            Self::Card => Some(super::CARD_KEY),
            Self::AgentDigest => None,
        }
    }

    /// The JSON Schema, as text.
    pub fn schema_text(self) -> &'static str {
        match self {
            Self::Card => include_str!("../../schemas/matrix/dev.superpipeline.elicitation.json"),
            Self::AgentDigest => include_str!("../../schemas/chat/agent-digest.v1.json"),
        }
    }

    fn compiled(self) -> &'static Compiled {
        static CARD: LazyLock<Compiled> = LazyLock::new(|| Compiled::new(Contract::Card));
        static DIGEST: LazyLock<Compiled> = LazyLock::new(|| Compiled::new(Contract::AgentDigest));
        match self {
            Self::Card => &CARD,
            Self::AgentDigest => &DIGEST,
        }
    }
}

/// The layer of validation that refuses something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// JSON Schema.
    Schema,
    /// The values that `x-uniqueBy` names.
    Unique,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Schema => "schema",
            Self::Unique => "unique",
        })
    }
}

/// One rule broken at one place. Shown as `PATH: LAYER: MESSAGE`; it never repeats the
/// offending value, which may be anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where: `$` is the whole, then like `$.options[1].id`.
    pub path: String,
    /// Which layer refuses it.
    pub layer: Layer,
    /// What is wrong, as the end of a sentence that begins with the path.
    pub message: String,
}

impl Fault {
    fn of_schema(path: String, error: &ValidationError<'_>) -> Self {
        Self {
            path,
            layer: Layer::Schema,
            message: wording(error),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path, self.layer, self.message)
    }
}

/// Every fault of `value` under `contract`; none means valid. Both layers are always
/// run; the faults of the schema come first.
pub fn validate(contract: Contract, value: &Value) -> Vec<Fault> {
    validate_at(contract, value, "$")
}

/// Like [`validate`], for a value that stands at `root` in a larger document.
pub fn validate_at(contract: Contract, value: &Value, root: &str) -> Vec<Fault> {
    let compiled = contract.compiled();
    let mut faults: Vec<Fault> = compiled
        .validator
        .iter_errors(value)
        .flat_map(|error| schema_faults(&error, root))
        .collect();
    for path in &compiled.unique_by {
        faults.extend(repeats(value, path, root));
    }
    faults
}

struct Compiled {
    validator: Validator,
    unique_by: Vec<String>,
}

impl Compiled {
    fn new(contract: Contract) -> Self {
        // The text is part of the binary, so neither can fail at run time where a test
        // has compiled it once: `every_embedded_schema_compiles`.
        let schema: Value =
            serde_json::from_str(contract.schema_text()).expect("the embedded schema is JSON");
        // A moment is what our own readers take for one.
        let validator = jsonschema::draft202012::options()
            .should_validate_formats(true)
            .with_format("date-time", |text: &str| read_timestamp(text).is_some())
            .build(&schema)
            .expect("and a valid schema");
        let unique_by = schema["x-uniqueBy"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|path| path.as_str().map(str::to_owned))
            .collect();
        Self {
            validator,
            unique_by,
        }
    }
}

/// The faults of one error: each property that is missing or not known is one of its own, rather
/// than the object around it.
fn schema_faults(error: &ValidationError<'_>, root: &str) -> Vec<Fault> {
    let path = dotted(error.instance_path(), root);
    let keys: Vec<&str> = match error.kind() {
        ValidationErrorKind::Required { property } => vec![property.as_str().unwrap_or_default()],
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            unexpected.iter().map(String::as_str).collect()
        }
        _ => return vec![Fault::of_schema(path, error)],
    };
    let faults = keys.into_iter().map(|key| {
        let mut path = path.clone();
        push_key(&mut path, key);
        Fault::of_schema(path, error)
    });
    faults.collect()
}

fn wording(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Required { .. } => "is missing".to_owned(),
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(only) => only.to_string(),
                TypeKind::Multiple(types) => {
                    let names: Vec<String> = types.iter().map(|one| one.to_string()).collect();
                    names.join(" or ")
                }
            };
            let found = type_name(error.instance());
            format!("must be of type {expected}, is {found}")
        }
        ValidationErrorKind::AdditionalProperties { .. } => "is not known".to_owned(),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::MinLength { limit } => {
            format!("must have at least {}", counted(*limit, "character"))
        }
        ValidationErrorKind::MaxItems { limit } => {
            format!("must have at most {}", counted(*limit, "item"))
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("must have at most {}", counted(*limit, "character"))
        }
        ValidationErrorKind::Pattern { pattern } => format!("must match {pattern}"),
        ValidationErrorKind::Format { .. } => MOMENT_RULE.to_owned(),
        ValidationErrorKind::Enum { options } => {
            let words = options.as_array().into_iter().flatten();
            let words: Vec<String> = words.map(Value::to_string).collect();
            format!("must be one of {}", words.join(", "))
        }
        _ => error.masked_with("the value").to_string(),
    }
}

fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `/options/1/id` under `$` as `$.options[1].id`.
fn dotted(location: &Location, root: &str) -> String {
    let mut path = root.to_owned();
    for segment in location {
        match segment {
            LocationSegment::Property(key) => push_key(&mut path, &key),
            LocationSegment::Index(at) => push_index(&mut path, at),
        }
    }
    path
}

/// Adds a property to a path: `.key`, or `["a key"]` where the key is no plain word.
pub(crate) fn push_key(path: &mut String, key: &str) {
    let plain = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain {
        path.push('.');
        path.push_str(key);
    } else {
        path.push_str(&["[", &Value::from(key).to_string(), "]"].concat());
    }
}

pub(super) fn push_index(path: &mut String, at: usize) {
    path.push_str(&["[", &at.to_string(), "]"].concat());
}

/// The faults of one `x-uniqueBy` path: each value that was there before, at the place
/// of its repetition.
fn repeats(value: &Value, path: &str, root: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    collect(value, path, root.to_owned(), &mut found);
    let mut first_at: HashMap<Value, String> = HashMap::new();
    let mut faults = Vec::new();
    for (at, value) in found {
        let same = comparable(value);
        match first_at.get(&same) {
            Some(first) => faults.push(Fault {
                path: at,
                layer: Layer::Unique,
                message: format!("repeats the value of {first}"),
            }),
            None => {
                first_at.insert(same, at);
            }
        }
    }
    faults
}

/// Walks `rest` (`a[].b[].c`) from `value`, collecting what it ends at. Whatever has not
/// the shape of the path is passed over: the schema layer speaks about that.
fn collect<'a>(value: &'a Value, rest: &str, at: String, found: &mut Vec<(String, &'a Value)>) {
    if rest.is_empty() {
        found.push((at, value));
    } else if let Some(rest) = rest.strip_prefix("[]") {
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let mut at = at.clone();
            push_index(&mut at, index);
            collect(item, rest, at, found);
        }
    } else {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (key, rest) = rest.split_at(end);
        if let Some(inner) = value.get(key) {
            let mut at = at;
            push_key(&mut at, key);
            collect(inner, rest.strip_prefix('.').unwrap_or(rest), at, found);
        }
    }
}

/// JSON Schema compares numbers by what they are worth: 1 and 1.0 are the same.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            // Exact up to 2^53; larger floats are left as they are.
            #[allow(clippy::cast_possible_truncation)]
            Some(float) if float.fract() == 0.0 && float.abs() < 9.0e15 => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(comparable).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, inner)| (key.clone(), comparable(inner)))
                .collect(),
        ),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests;
