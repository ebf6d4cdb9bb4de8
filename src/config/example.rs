//! `config.example.toml`, generated from the docs, defaults and examples of the types.

use std::fmt::Write as _;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde_json::{Map, Value};

use super::Config;

const WIDTH: usize = 88;

const HEADER: &str = "\
# The configuration of matrix-elicit. This file is generated from the documented types in
# src/config.rs and the folder beside it, and names every key there is.
#
# A line that begins with # and no space is a setting: take the # away to set it. It shows
# the default, or, where it says \"Not set by default\", an example.
#
# Any string may be env:NAME, the environment variable NAME, or file:PATH, what the file
# holds without its last line break. Keys that are not known are refused. Check a file with
#     matrix-elicit check --config FILE
";

/// The text of `config.example.toml`.
pub fn example() -> String {
    let mut text = HEADER.to_owned();
    for (name, schema) in properties(schema().as_value()) {
        section(&mut text, name, schema, schema["x-live"] != false);
    }
    text
}

/// The JSON Schema of a configuration: everything in one piece, without references and
/// without `null`, which TOML does not have.
pub(super) fn schema() -> Schema {
    let mut schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<Config>();
    RecursiveTransform(without_null).transform(&mut schema);
    schema
}

fn without_null(schema: &mut Schema) {
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(either)) = schema.remove("anyOf") {
        let inner = either
            .into_iter()
            .find(|one| one.get("type") != Some(&"null".into()));
        if let Some(Value::Object(inner)) = inner {
            for (key, value) in inner {
                schema.ensure_object().entry(key).or_insert(value);
            }
        }
    }
}

/// Notes the fields of `T` in the order of their declaration: a JSON object sorts them.
pub(super) fn in_order<T: DeserializeOwned>(schema: &mut Schema) {
    let names: Vec<&str> = field_names::<T>().to_vec();
    schema.insert("x-order".to_owned(), names.into());
}

/// The names that a derived `Deserialize` asks for, which are the fields of the struct.
fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Asked<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Asked<'_> {
        type Error = serde::de::value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("only asked for its fields"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes
            byte_buf option unit unit_struct newtype_struct seq tuple tuple_struct map enum
            identifier ignored_any
        }
    }

    let mut names: &'static [&'static str] = &[];
    // It errs by design; what it asked for is what is wanted.
    drop(T::deserialize(Asked(&mut names)));
    names
}

/// The properties of a table, in the order of its struct.
fn properties(schema: &Value) -> Vec<(&str, &Value)> {
    let named = schema["properties"].as_object();
    schema["x-order"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| {
            let (name, schema) = named?.get_key_value(name.as_str()?)?;
            Some((name.as_str(), schema))
        })
        .collect()
}

/// Writes one table: its doc, its header, its keys, then the tables inside it.
fn section(text: &mut String, name: &str, schema: &Value, live: bool) {
    // A table of tables is shown by one of them.
    let (header, table, live) = match schema["x-key"].as_str() {
        Some(key) => (
            format!("{name}.{}", toml_key(key)),
            &schema["additionalProperties"],
            live && schema["x-live"] == true,
        ),
        None => (name.to_owned(), schema, live),
    };
    let _ = writeln!(text, "\n{}{}[{header}]", comment(doc(schema)), hash(live));
    let mut inner = Vec::new();
    for (key, schema) in properties(table) {
        if schema.get("properties").is_some() {
            inner.push((key, schema));
        } else {
            let required = table["required"]
                .as_array()
                .is_some_and(|names| names.contains(&key.into()));
            setting(text, key, schema, live, required);
        }
    }
    for (key, schema) in inner {
        section(text, &format!("{header}.{key}"), schema, false);
    }
}

fn setting(text: &mut String, key: &str, schema: &Value, live: bool, required: bool) {
    let shown = match (required, schema.get("default")) {
        // An empty list or table says nothing that its example does not say better.
        (false, Some(default)) if !is_empty(default) => default,
        _ => &schema["x-example"],
    };
    let unset = !required && shown == &schema["x-example"];
    let active = live && (required || schema["x-live"] == true);
    let note = if unset && !active {
        " Not set by default."
    } else {
        ""
    };
    let comment = comment(&format!("{}{note}", doc(schema)));
    // `[rooms]` has the keys of `[answers]`: what they mean is said there.
    if !text.contains(&comment) {
        if !text.ends_with("]\n") {
            text.push('\n');
        }
        text.push_str(&comment);
    }
    let _ = writeln!(text, "{}{key} = {}", hash(active), toml_value(shown));
}

fn hash(active: bool) -> &'static str {
    if active { "" } else { "#" }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

fn doc(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// The text as comment lines of at most [`WIDTH`] characters.
fn comment(words: &str) -> String {
    let mut lines = String::new();
    let mut line = "#".to_owned();
    for word in words.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}

/// A key as TOML writes it: bare where it may be.
pub(super) fn toml_key(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare {
        key.to_owned()
    } else {
        toml::Value::from(key).to_string()
    }
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{} = {}", toml_key(key), toml_value(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::String(text) => toml::Value::from(text.as_str()).to_string(),
        other => other.to_string(),
    }
}
