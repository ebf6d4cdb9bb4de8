//! What an agent says in a session of its own, and asks with a signal.
//!
//! An activity carries the words; a signal says what is wanted of the person who reads them, and
//! `signal_metadata` how. [`Activity::read`] refuses what belongs nowhere by the field's name.
//! What people say to an agent, and the signal `stop`, only ever go the other way.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
use url::Url;

/// The longest body of an activity, in bytes.
pub const MAX_BODY: usize = 64 * 1024;

/// The most options of a `select`.
pub const MAX_CHOICES: usize = 10;

/// The longest value of an option, and the longest `user_id`, in bytes.
pub const MAX_VALUE: usize = 256;

/// The longest label of an option, in bytes.
pub const MAX_LABEL: usize = 512;

/// The longest address of an `auth`, in bytes.
pub const MAX_URL: usize = 2048;

/// The longest name of a provider, in characters.
pub const MAX_PROVIDER: usize = 100;

/// The longest foreign name that a fault repeats, in characters.
const SHOWN_NAME: usize = 64;

/// What an activity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivityType {
    /// What the agent thinks.
    Thought,
    /// What it does.
    Action,
    /// What it asks.
    Elicitation,
    /// What came out.
    Response,
    /// What went wrong.
    Error,
    /// What a person says to it; never from an agent.
    Prompt,
}

impl ActivityType {
    const ALL: [Self; 6] = [
        Self::Thought,
        Self::Action,
        Self::Elicitation,
        Self::Response,
        Self::Error,
        Self::Prompt,
    ];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Thought => "thought",
            Self::Action => "action",
            Self::Elicitation => "elicitation",
            Self::Response => "response",
            Self::Error => "error",
            Self::Prompt => "prompt",
        }
    }

    /// The type of this word, exactly as it is written on the wire.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// What is wanted of whoever reads an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// The agent is to stop; on a prompt only.
    Stop,
    /// The person is to connect an account; on an elicitation only.
    Auth,
    /// The person may choose; on an elicitation only.
    Select,
}

impl Signal {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Auth => "auth",
            Self::Select => "select",
        }
    }

    /// The signal of this word, exactly as it is written on the wire.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Stop, Self::Auth, Self::Select]
            .into_iter()
            .find(|signal| signal.word() == word)
    }
}

/// One option of a `select`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Choice {
    /// What comes back when it is chosen; not blank, unique in its list.
    pub value: String,
    /// What people read, if that is something else; not blank.
    pub label: Option<String>,
}

impl Choice {
    /// What people read: the label, or without one the value.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.value)
    }
}

/// What an `auth` asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Connect {
    /// Where the account is connected: `https`, with a host, without a user or a password.
    pub url: Url,
    /// Who is to do it, as the agent knows them; not blank.
    pub user_id: String,
    /// Where the account is, as people call it; one line, not blank.
    pub provider_name: String,
}

/// What an activity asks with a signal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Asks {
    /// Nothing; as an elicitation, it asks for a free answer.
    Nothing,
    /// To choose: 1 to [`MAX_CHOICES`] options.
    Select(Vec<Choice>),
    /// To connect an account.
    Auth(Connect),
}

/// What an agent says in its session. Valid however it came to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// What it is; never a prompt.
    pub kind: ActivityType,
    /// The words, Markdown; not blank.
    pub body: String,
    /// What it asks with a signal; only an elicitation does.
    pub asks: Asks,
    /// Whether it is gone when the next one comes; only a thought or an action is.
    pub ephemeral: bool,
    /// The details of the signal as they came, unknown members included: they go back unchanged.
    pub signal_metadata: Option<Value>,
}

/// A rule that an activity breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {rule}")]
pub struct SignalFault {
    /// The field: `signal_metadata.options[2].value`.
    pub field: String,
    /// The rule, to be read after the field's name: `must not be blank`.
    pub rule: String,
}

impl SignalFault {
    fn new(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            rule: rule.into(),
        }
    }
}

impl Activity {
    /// Reads what an agent sends. A member that is `null` is as good as absent.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn read(value: &Value) -> Result<Self, SignalFault> {
        let whole = value.as_object().ok_or_else(|| {
            let shape =
                r#"must be a JSON object like {"content": {"type": "thought", "body": "…"}}"#;
            SignalFault::new("activity", shape)
        })?;
        only(
            whole,
            "",
            &["content", "signal", "signal_metadata", "ephemeral"],
        )?;
        let content = object(whole, "", "content")?;
        only(content, "content.", &["type", "body"])?;
        let kind = kind(&string(content, "content.", "type")?)?;
        let body = string(content, "content.", "body")?;
        not_blank("content.body", &body)?;
        at_most("content.body", &body, MAX_BODY)?;

        let signal = match given(whole, "signal") {
            None => None,
            Some(_) => Some(signal(&string(whole, "", "signal")?, kind)?),
        };
        let asks = match signal {
            None if given(whole, "signal_metadata").is_some() => {
                let rule = "belongs to a signal, and there is none";
                return Err(SignalFault::new("signal_metadata", rule));
            }
            None => Asks::Nothing,
            Some(Wanted::Select) => Asks::Select(choices(object(whole, "", "signal_metadata")?)?),
            Some(Wanted::Auth) => Asks::Auth(connect(object(whole, "", "signal_metadata")?)?),
        };
        Ok(Self {
            kind,
            body,
            asks,
            ephemeral: ephemeral(whole, kind)?,
            signal_metadata: given(whole, "signal_metadata").cloned(),
        })
    }

    /// The signal that it carries.
    pub fn signal(&self) -> Option<Signal> {
        match self.asks {
            Asks::Nothing => None,
            Asks::Select(_) => Some(Signal::Select),
            Asks::Auth(_) => Some(Signal::Auth),
        }
    }
}

/// The signals that an agent may send.
#[derive(Clone, Copy)]
enum Wanted {
    Select,
    Auth,
}

fn kind(word: &str) -> Result<ActivityType, SignalFault> {
    let fault = |rule| Err(SignalFault::new("content.type", rule));
    match ActivityType::from_word(word) {
        Some(ActivityType::Prompt) => fault("must not be `prompt`: only people write prompts"),
        Some(kind) => Ok(kind),
        None => fault("must be `thought`, `action`, `elicitation`, `response` or `error`"),
    }
}

fn signal(word: &str, on: ActivityType) -> Result<Wanted, SignalFault> {
    let fault = |rule| Err(SignalFault::new("signal", rule));
    let wanted = match Signal::from_word(word) {
        Some(Signal::Stop) => return fault("must not be `stop`: only people stop a session"),
        Some(Signal::Auth) => Wanted::Auth,
        Some(Signal::Select) => Wanted::Select,
        None => return fault("must be `auth` or `select`"),
    };
    if on != ActivityType::Elicitation {
        return fault("belongs to an `elicitation` only");
    }
    Ok(wanted)
}

fn ephemeral(whole: &Map<String, Value>, kind: ActivityType) -> Result<bool, SignalFault> {
    let ephemeral = match given(whole, "ephemeral") {
        None => false,
        Some(Value::Bool(ephemeral)) => *ephemeral,
        Some(_) => return Err(SignalFault::new("ephemeral", "must be true or false")),
    };
    if ephemeral && !matches!(kind, ActivityType::Thought | ActivityType::Action) {
        let rule = "belongs to a `thought` or an `action` only";
        return Err(SignalFault::new("ephemeral", rule));
    }
    Ok(ephemeral)
}

fn choices(metadata: &Map<String, Value>) -> Result<Vec<Choice>, SignalFault> {
    const FIELD: &str = "signal_metadata.options";
    let rule = format!("must be a list of 1 to {MAX_CHOICES} options");
    let options = given(metadata, "options")
        .and_then(Value::as_array)
        .filter(|options| (1..=MAX_CHOICES).contains(&options.len()))
        .ok_or_else(|| SignalFault::new(FIELD, rule))?;
    let mut seen = HashMap::new();
    let mut choices = Vec::with_capacity(options.len());
    for (at, option) in options.iter().enumerate() {
        let option = option.as_object().ok_or_else(|| {
            let rule = r#"must be an object like {"value": "…", "label": "…"}"#;
            SignalFault::new(format!("{FIELD}[{at}]"), rule)
        })?;
        let under = format!("{FIELD}[{at}].");
        let value = string(option, &under, "value")?;
        let field = format!("{under}value");
        not_blank(&field, &value)?;
        at_most(&field, &value, MAX_VALUE)?;
        if let Some(first) = seen.insert(value.clone(), at) {
            let rule = format!("must not repeat options[{first}].value");
            return Err(SignalFault::new(field, rule));
        }
        let label = match given(option, "label") {
            None => None,
            Some(_) => Some(string(option, &under, "label")?),
        };
        if let Some(label) = &label {
            at_most(&format!("{under}label"), label, MAX_LABEL)?;
        }
        choices.push(Choice {
            value,
            label: label.filter(|label| !is_blank(label)),
        });
    }
    Ok(choices)
}

fn connect(metadata: &Map<String, Value>) -> Result<Connect, SignalFault> {
    const UNDER: &str = "signal_metadata.";
    let url = address(&string(metadata, UNDER, "url")?)?;
    let user_id = string(metadata, UNDER, "user_id")?;
    not_blank("signal_metadata.user_id", &user_id)?;
    at_most("signal_metadata.user_id", &user_id, MAX_VALUE)?;
    let provider_name = string(metadata, UNDER, "provider_name")?;
    let fault = |rule| Err(SignalFault::new("signal_metadata.provider_name", rule));
    not_blank("signal_metadata.provider_name", &provider_name)?;
    if provider_name.chars().count() > MAX_PROVIDER {
        return fault(format!("must be at most {MAX_PROVIDER} characters"));
    }
    if provider_name.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return fault("must be one line, without control characters".to_owned());
    }
    Ok(Connect {
        url,
        user_id,
        provider_name,
    })
}

/// An address that a person can be sent to with a good conscience. The standard's parser mends
/// what is written strangely; here it is refused, so that what is shown is what was sent.
fn address(text: &str) -> Result<Url, SignalFault> {
    const FIELD: &str = "signal_metadata.url";
    at_most(FIELD, text, MAX_URL)?;
    let fault = |rule| Err(SignalFault::new(FIELD, rule));
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return fault("must not hold white space, control characters or backslashes");
    }
    let is_https = text
        .get(..8)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
    let url = match Url::parse(text) {
        Ok(url) if is_https && url.has_host() && !text[8..].starts_with('/') => url,
        _ => return fault("must be an address like https://example.org/connect"),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return fault("must not name a user or a password");
    }
    Ok(url)
}

/// Refuses members of other names.
fn only(from: &Map<String, Value>, under: &str, known: &[&str]) -> Result<(), SignalFault> {
    let Some(foreign) = from.keys().find(|name| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let mut shown: String = foreign.chars().take(SHOWN_NAME).collect();
    if shown.len() < foreign.len() {
        shown.push('…');
    }
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let rule = format!("is no field here; there are {}", known.join(", "));
    Err(SignalFault::new(format!("{under}{shown}"), rule))
}

/// A member that is there and not null.
fn given<'a>(from: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    from.get(name).filter(|value| !value.is_null())
}

fn object<'a>(
    from: &'a Map<String, Value>,
    under: &str,
    name: &str,
) -> Result<&'a Map<String, Value>, SignalFault> {
    match given(from, name) {
        Some(Value::Object(members)) => Ok(members),
        Some(_) => Err(SignalFault::new(
            format!("{under}{name}"),
            "must be an object",
        )),
        None => Err(SignalFault::new(
            format!("{under}{name}"),
            "is required, an object",
        )),
    }
}

fn string(from: &Map<String, Value>, under: &str, name: &str) -> Result<String, SignalFault> {
    match given(from, name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(SignalFault::new(
            format!("{under}{name}"),
            "must be a string",
        )),
        None => Err(SignalFault::new(
            format!("{under}{name}"),
            "is required, a string",
        )),
    }
}

fn not_blank(field: &str, text: &str) -> Result<(), SignalFault> {
    if is_blank(text) {
        return Err(SignalFault::new(field, "must not be blank"));
    }
    Ok(())
}

fn at_most(field: &str, text: &str, bytes: usize) -> Result<(), SignalFault> {
    if text.len() > bytes {
        let rule = format!("must be at most {bytes} bytes");
        return Err(SignalFault::new(field, rule));
    }
    Ok(())
}

/// Whether nothing of the text can be seen.
fn is_blank(text: &str) -> bool {
    text.chars().all(is_unseen)
}

/// White space, controls, and what Unicode draws nothing for: a skin tone alone is none of the
/// text's own either.
fn is_unseen(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_whitespace() || c.is_ascii_control();
    }
    c.is_whitespace()
        || matches!(
            c.general_category(),
            GeneralCategory::Control | GeneralCategory::Format
        )
        || matches!(c,
            '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
            | '\u{2065}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFF8}' | '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests;
