//! From the text of a file to a [`Config`], or to everything that is wrong with it.
//!
//! TOML with positions → `env:` and `file:` resolved → the checks of [`super::check`] →
//! the types. Syntax errors do not hide the rest: what can still be judged is.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::{self, Found, Kind};
use super::example::toml_key;
use super::{Config, HttpConfig};

/// How the parser calls an error that stands for itself wherever it is.
const DUPLICATE: &str = "duplicate key";

/// One mistake in a configuration. Shown as `FILE:LINE: KEY: MESSAGE`; neither key nor
/// message repeats a value, so it may be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The file, as it was named.
    pub source: String,
    /// The line of the key, or, where a key is missing, of its table; from 1. `None` where
    /// the file could not be read at all.
    pub line: Option<usize>,
    /// The key, like `agents.agt_31d0.webhook.url`; empty where the line is not valid TOML.
    pub key: String,
    /// What is wrong, as the end of a sentence that begins with the key.
    pub message: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl Config {
    /// Reads and checks the file at `path`, with this process's environment.
    ///
    /// # Errors
    /// Every mistake at once; see [`Config::read`].
    pub fn load(path: &Path) -> Result<Self, Vec<ConfigFault>> {
        let (text, source) = text_of(path)?;
        Self::read(&text, &source, &|name| std::env::var(name).ok())
    }

    /// Reads and checks a configuration. `source_name` is what faults call the file; `env`
    /// gives the value of an environment variable. Relative `file:` paths start in the
    /// folder that the process runs in.
    ///
    /// # Errors
    /// Every mistake at once, in the order of the file. Where a line is not valid TOML, what
    /// may be a mere consequence of that (a key that seems missing) is left out.
    pub fn read(
        text: &str,
        source_name: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<ConfigFault>> {
        read_as(text, source_name, env, "", |_| true)
    }
}

impl HttpConfig {
    /// Reads and checks what the file at `path` says under `[http]`. The rest of it only has to
    /// be TOML: whoever speaks to a running bot need not have its other secrets.
    ///
    /// # Errors
    /// Every mistake of that table at once, and every line that is not TOML.
    pub fn load(path: &Path) -> Result<Self, Vec<ConfigFault>> {
        let (text, source) = text_of(path)?;
        Self::read(&text, &source, &|name| std::env::var(name).ok())
    }

    /// As [`Config::read`], of `[http]` alone.
    ///
    /// # Errors
    /// As those of [`HttpConfig::load`].
    pub fn read(
        text: &str,
        source_name: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<ConfigFault>> {
        let matters = |fault: &ConfigFault| {
            fault.key.is_empty() || fault.key == "http" || fault.key.starts_with("http.")
        };
        let http: Option<Self> = read_as(text, source_name, env, "/http", matters)?;
        Ok(http.unwrap_or_default())
    }
}

fn text_of(path: &Path) -> Result<(String, String), Vec<ConfigFault>> {
    let source = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => Ok((text, source)),
        Err(error) => Err(vec![ConfigFault {
            source,
            line: None,
            key: String::new(),
            message: format!("cannot be read: {error}"),
        }]),
    }
}

/// Reads what stands at a JSON Pointer (a missing value is null), unless there is a fault in the
/// text that matters.
fn read_as<T: DeserializeOwned>(
    text: &str,
    source_name: &str,
    env: &dyn Fn(&str) -> Option<String>,
    pointer: &str,
    matters: impl Fn(&ConfigFault) -> bool,
) -> Result<T, Vec<ConfigFault>> {
    let lines = Lines::of(text);
    let Sound {
        text: sound,
        mut faults,
        broken,
    } = Sound::part_of(text, &lines);
    let (table, _) = DeTable::parse_recoverable(&sound);
    let document = Document::of(table.get_ref(), &lines, env);
    let found = check::faults(&document)
        .into_iter()
        .filter(|found| document.is_usable(&found.pointer))
        // What seems missing may stand on a line that could not be read.
        .filter(|found| broken.is_empty() || found.kind != Kind::Missing)
        .map(|found| document.fault(found));
    let told = document.unresolved.iter().cloned().chain(found);
    faults.extend(told.filter(|fault| !broken.iter().any(|line| fault.line == Some(*line))));
    faults.retain(matters);
    for fault in &mut faults {
        source_name.clone_into(&mut fault.source);
    }
    if !faults.is_empty() {
        faults.sort_by(|a, b| (a.line, &a.key).cmp(&(b.line, &b.key)));
        return Err(faults);
    }
    // The checks leave nothing for the types to refuse. Should the two ever differ, serde
    // would say how by repeating a value, so it is not asked.
    let value = document.value.pointer(pointer).cloned();
    serde_json::from_value(value.unwrap_or_default()).map_err(|_| {
        vec![ConfigFault {
            source: source_name.to_owned(),
            line: None,
            key: String::new(),
            message: "passes every check and still cannot be used: a fault of this program"
                .to_owned(),
        }]
    })
}

/// What is left of a text when the lines that are not TOML are taken out of it.
struct Sound {
    /// As long as the text it was made from, so that positions stay.
    text: String,
    /// One for each line taken out, and what else is no TOML.
    faults: Vec<ConfigFault>,
    /// The lines about which nothing more is said.
    broken: HashSet<usize>,
}

impl Sound {
    /// The parser gives up at some errors, so the line of the first one is blanked and the
    /// rest is parsed again, until there are no more. A line that is sound by itself, and
    /// wrong only for what is before it, ends that: a bracket is open somewhere.
    fn part_of(text: &str, lines: &Lines) -> Self {
        let mut sound = Self {
            text: text.to_owned(),
            faults: Vec::new(),
            broken: HashSet::new(),
        };
        loop {
            let (_, errors) = DeTable::parse_recoverable(&sound.text);
            let mut errors: Vec<(usize, String)> = errors
                .iter()
                .map(|error| {
                    let start = error.span().map_or(0, |span| span.start);
                    (lines.at(start), error.message().to_owned())
                })
                .collect();
            errors.sort_by_key(|(line, _)| *line);
            let local = |line: usize| {
                let alone = sound.text.lines().nth(line - 1).unwrap_or_default();
                DeTable::parse(alone).is_err().then_some(alone)
            };
            // The parser gets over a repetition by itself.
            let first = errors.iter().find(|(_, message)| message != DUPLICATE);
            let Some((line, message, alone)) =
                first.and_then(|(line, message)| Some((line, message, local(*line)?)))
            else {
                for error in &errors {
                    sound.broken.insert(error.0);
                    if error.1 == DUPLICATE || Some(error) == first {
                        sound.fault(error.0, &error.1);
                    }
                }
                sound.faults.dedup();
                return sound;
            };
            let is_header = alone.trim_start().starts_with('[');
            sound.fault(*line, message);
            sound.broken.insert(*line);
            sound.blank(*line, is_header);
        }
    }

    fn fault(&mut self, line: usize, message: &str) {
        self.faults.push(ConfigFault {
            source: String::new(),
            line: Some(line),
            key: String::new(),
            message: format!("not valid TOML: {message}"),
        });
    }

    /// Without its header a table's keys would go to the table before: they go too.
    fn blank(&mut self, line: usize, whole_table: bool) {
        let mut parts: Vec<String> = self.text.split_inclusive('\n').map(str::to_owned).collect();
        for (at, part) in parts.iter_mut().enumerate().skip(line - 1) {
            if at >= line && (!whole_table || part.trim_start().starts_with('[')) {
                break;
            }
            let end = if part.ends_with('\n') { "\n" } else { "" };
            *part = " ".repeat(part.len() - end.len()) + end;
        }
        self.text = parts.concat();
    }
}

/// The lines of a text, counted from 1.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    fn at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }
}

/// Where a value stands and what TOML calls it.
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) key: String,
    pub(super) found: &'static str,
    /// `env:NAME` or `file:PATH`, if the value came from there.
    origin: Option<String>,
}

/// A configuration as JSON, with the place of every value by its JSON Pointer.
pub(super) struct Document {
    pub(super) value: Value,
    places: HashMap<String, Place>,
    /// Values that are not what the file means; nothing more is said about them.
    unusable: HashSet<String>,
    unresolved: Vec<ConfigFault>,
}

impl Document {
    fn of(table: &DeTable<'_>, lines: &Lines, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut conversion = Conversion {
            lines,
            env,
            document: Self {
                value: Value::Null,
                places: HashMap::new(),
                unusable: HashSet::new(),
                unresolved: Vec::new(),
            },
        };
        conversion.place("", "", 1, "a table");
        let value = conversion.table(table, "", "");
        let mut document = conversion.document;
        document.value = value;
        document
    }

    /// What stands at this JSON Pointer.
    pub(super) fn found(&self, pointer: &str) -> &'static str {
        self.places
            .get(pointer)
            .map_or("nothing", |place| place.found)
    }

    fn is_usable(&self, pointer: &str) -> bool {
        !self.unusable.iter().any(|bad| {
            pointer
                .strip_prefix(bad.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// A fault at its place; one about a key that is not there stands at the table that
    /// should have it.
    fn fault(&self, found: Found) -> ConfigFault {
        let (line, key, origin) = if let Some(place) = self.places.get(&found.pointer) {
            (place.line, place.key.clone(), place.origin.as_deref())
        } else {
            let (parent, name) = found.pointer.rsplit_once('/').unwrap_or_default();
            let parent = self.places.get(parent);
            let key = join(parent.map_or("", |place| &place.key), &unescape(name));
            (parent.map_or(1, |place| place.line), key, None)
        };
        let message = match origin {
            Some(origin) => format!("{} (it comes from {origin})", found.message),
            None => found.message,
        };
        ConfigFault {
            source: String::new(),
            line: Some(line),
            key,
            message,
        }
    }
}

/// Adds a key to the pointer of its table, as RFC 6901 escapes it.
pub(super) fn pointer_to(table: &str, key: &str) -> String {
    format!("{table}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

fn join(table: &str, key: &str) -> String {
    let key = toml_key(key);
    if table.is_empty() {
        key
    } else {
        format!("{table}.{key}")
    }
}

struct Conversion<'a> {
    lines: &'a Lines,
    env: &'a dyn Fn(&str) -> Option<String>,
    document: Document,
}

impl Conversion<'_> {
    fn place(&mut self, pointer: &str, key: &str, line: usize, found: &'static str) {
        let place = Place {
            line,
            key: key.to_owned(),
            found,
            origin: None,
        };
        self.document.places.insert(pointer.to_owned(), place);
    }

    fn table(&mut self, table: &DeTable<'_>, pointer: &str, key: &str) -> Value {
        let mut fields = Map::new();
        for (name, value) in table {
            let line = self.lines.at(name.span().start);
            let pointer = pointer_to(pointer, name.get_ref());
            let key = join(key, name.get_ref());
            let value = self.value(value, &pointer, &key, line);
            fields.insert(name.get_ref().to_string(), value);
        }
        Value::Object(fields)
    }

    fn value(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        pointer: &str,
        key: &str,
        line: usize,
    ) -> Value {
        let value = value.get_ref();
        let found = match value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.place(pointer, key, line, found);
        match value {
            DeValue::String(text) => self.string(text, pointer, key, line),
            DeValue::Integer(digits) => {
                match i64::from_str_radix(digits.as_str(), digits.radix()) {
                    Ok(number) => number.into(),
                    Err(_) => self.unusable(pointer, key, line, "is too large a number"),
                }
            }
            DeValue::Boolean(truth) => (*truth).into(),
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    let line = self.lines.at(item.span().start);
                    let pointer = format!("{pointer}/{at}");
                    list.push(self.value(item, &pointer, &format!("{key}[{at}]"), line));
                }
                list.into()
            }
            DeValue::Table(table) => self.table(table, pointer, key),
            // No key takes one; as null it is refused wherever it stands.
            DeValue::Float(_) | DeValue::Datetime(_) => Value::Null,
        }
    }

    fn string(&mut self, text: &str, pointer: &str, key: &str, line: usize) -> Value {
        let resolved = if let Some(name) = text.strip_prefix("env:") {
            (self.env)(name).ok_or_else(|| format!("the environment variable {name} is not set"))
        } else if let Some(path) = text.strip_prefix("file:") {
            fs::read_to_string(path)
                .map(|text| without_last_break(&text).to_owned())
                .map_err(|error| format!("the file {path} cannot be read: {error}"))
        } else {
            return text.into();
        };
        match resolved {
            Ok(resolved) => {
                if let Some(place) = self.document.places.get_mut(pointer) {
                    place.origin = Some(text.to_owned());
                }
                resolved.into()
            }
            Err(message) => self.unusable(pointer, key, line, &message),
        }
    }

    fn unusable(&mut self, pointer: &str, key: &str, line: usize, message: &str) -> Value {
        self.document.unusable.insert(pointer.to_owned());
        self.document.unresolved.push(ConfigFault {
            source: String::new(),
            line: Some(line),
            key: key.to_owned(),
            message: message.to_owned(),
        });
        Value::Null
    }
}

fn without_last_break(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}
