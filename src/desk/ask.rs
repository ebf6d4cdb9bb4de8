//! Asking: what an agent wants to know, checked against every limit.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

use crate::clock::Millis;
use crate::contract::CardOption;
use crate::elicitation::{Answerers, Elicitation, Key, Question, State};
use crate::prose;

/// The longest prompt, in bytes.
pub const MAX_PROMPT: usize = 8 * 1024;
/// The longest label, in bytes.
pub const MAX_LABEL: usize = 512;
/// The longest id (of an option, an elicitation, a board …), in bytes.
pub const MAX_ID: usize = 256;
/// The most options.
pub const MAX_OPTIONS: usize = 50;
/// The largest metadata, in bytes of JSON.
pub const MAX_METADATA: usize = 4 * 1024;
/// The most people named in `mention` or `answerers.users`.
pub const MAX_PEOPLE: usize = 100;
/// The longest deadline: a year of 366 days.
pub const MAX_EXPIRES_IN: Millis = 366 * 24 * 60 * 60 * 1000;
/// The longest link, in bytes.
const MAX_LINK: usize = 2048;

/// A request to ask something, as the HTTP layer read it: the shapes are right,
/// the rules are not checked yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ask {
    /// The id the asker knows it by; made up when absent.
    pub elicitation_id: Option<String>,
    /// The `Idempotency-Key` header.
    pub idempotency_key: Option<String>,
    /// Room id or alias.
    pub room: String,
    /// The question.
    pub prompt: String,
    /// All options.
    pub options: Vec<CardOption>,
    /// Whether a text is an answer; by default only where there are no options.
    pub free_text: Option<bool>,
    /// Whether people may decline to answer.
    pub decline: bool,
    /// Who may answer.
    pub answerers: Answerers,
    /// Milliseconds until it expires.
    pub expires_in: Option<Millis>,
    /// User ids to mention.
    pub mention: Vec<String>,
    /// The thread's root event.
    pub thread: Option<String>,
    /// The board.
    pub board_id: Option<String>,
    /// The card.
    pub card_id: Option<String>,
    /// The run.
    pub run_id: Option<String>,
    /// The stage.
    pub stage_key: Option<String>,
    /// The card's title.
    pub card_title: Option<String>,
    /// A link to more.
    pub deep_link: Option<String>,
    /// Given back as it is.
    pub metadata: Option<Value>,
}

/// A rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {rule}")]
pub struct Fault {
    /// The field, as in the request: `options[2].label`.
    pub field: String,
    /// The rule, to be read after the field's name: `must not be blank`.
    pub rule: String,
}

impl Fault {
    fn new(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            rule: rule.into(),
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The agent's id.
    pub agent: String,
    /// Its name for people.
    pub name: Option<String>,
    /// The command by which people decline, where its questions allow that.
    pub decline: String,
}

impl Ask {
    /// Whether a text is an answer.
    pub fn takes_text(&self) -> bool {
        self.free_text.unwrap_or(self.options.is_empty())
    }

    /// SHA-256 (hex) of what is asked, whatever id it goes by: the same question asked again has
    /// the same fingerprint.
    pub fn fingerprint(&self) -> String {
        let mut meaning = json!([
            self.room,
            self.prompt,
            self.options,
            self.takes_text(),
            self.answerers,
            self.expires_in,
            self.mention,
            self.thread,
            self.board_id,
            self.card_id,
            self.run_id,
            self.stage_key,
            self.card_title,
            self.deep_link,
            self.metadata,
        ]);
        // What was stored before there was this field has the same fingerprint as without it.
        if let (true, Value::Array(meaning)) = (self.decline, &mut meaning) {
            meaning.push(json!("decline"));
        }
        hex::encode(Sha256::digest(meaning.to_string()))
    }

    /// Checks every rule that needs nothing but the request.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_text()?;
        self.check_options()?;
        self.check_people()?;
        self.check_ids()?;
        if let Some(expires_in) = self.expires_in
            && !(1..=MAX_EXPIRES_IN).contains(&expires_in)
        {
            return Err(Fault::new(
                "expires_in",
                "must be more than nothing and at most 366 days",
            ));
        }
        if let Some(metadata) = &self.metadata
            && metadata.to_string().len() > MAX_METADATA
        {
            return Err(Fault::new(
                "metadata",
                format!("must be at most {MAX_METADATA} bytes of JSON"),
            ));
        }
        Ok(())
    }

    fn check_text(&self) -> Result<(), Fault> {
        if self.room.trim().is_empty() {
            return Err(Fault::new("room", "must be a room id or alias"));
        }
        not_blank("prompt", &self.prompt)?;
        at_most("prompt", &self.prompt, MAX_PROMPT)?;
        if let Some(title) = &self.card_title {
            at_most("card_title", title, MAX_LABEL)?;
        }
        if let Some(link) = &self.deep_link {
            at_most("deep_link", link, MAX_LINK)?;
            let url = Url::parse(link).ok();
            let scheme = url.as_ref().map(Url::scheme);
            if !matches!(scheme, Some("https" | "http" | "matrix")) {
                return Err(Fault::new(
                    "deep_link",
                    "must be an https, http or matrix link",
                ));
            }
            // `https://bank.example@evil.example/` reads like another place than it leads to.
            if url.is_some_and(|url| !url.username().is_empty() || url.password().is_some()) {
                return Err(Fault::new("deep_link", "must not name a user"));
            }
        }
        Ok(())
    }

    fn check_options(&self) -> Result<(), Fault> {
        if self.options.len() > MAX_OPTIONS {
            return Err(Fault::new(
                "options",
                format!("must be at most {MAX_OPTIONS}"),
            ));
        }
        if self.options.is_empty() && self.free_text == Some(false) {
            let rule = "must not be false without options: nobody could answer";
            return Err(Fault::new("free_text", rule));
        }
        for (index, option) in self.options.iter().enumerate() {
            let (id, label) = (
                format!("options[{index}].id"),
                format!("options[{index}].label"),
            );
            not_blank(&id, &option.id)?;
            at_most(&id, &option.id, MAX_ID)?;
            not_blank(&label, &option.label)?;
            at_most(&label, &option.label, MAX_LABEL)?;
            if let Some(first) = self.options[..index].iter().position(|o| o.id == option.id) {
                return Err(Fault::new(
                    id,
                    format!("must not repeat options[{first}].id"),
                ));
            }
        }
        Ok(())
    }

    fn check_people(&self) -> Result<(), Fault> {
        let lists = [
            ("mention", Some(&self.mention)),
            ("answerers.users", self.answerers.users.as_ref()),
        ];
        for (field, list) in lists {
            let Some(list) = list else { continue };
            if list.len() > MAX_PEOPLE {
                return Err(Fault::new(field, format!("must be at most {MAX_PEOPLE}")));
            }
            for (index, user) in list.iter().enumerate() {
                if !is_user_id(user) {
                    let rule = "must be a user id like @mira:example.org";
                    return Err(Fault::new(format!("{field}[{index}]"), rule));
                }
            }
        }
        if let Some(thread) = &self.thread
            && (!thread.starts_with('$') || thread.len() < 2 || thread.len() > 255)
        {
            return Err(Fault::new("thread", "must be an event id like $abc"));
        }
        Ok(())
    }

    fn check_ids(&self) -> Result<(), Fault> {
        let ids = [
            ("elicitation_id", &self.elicitation_id, true),
            ("Idempotency-Key", &self.idempotency_key, true),
            ("board_id", &self.board_id, false),
            ("card_id", &self.card_id, false),
            ("run_id", &self.run_id, false),
            ("stage_key", &self.stage_key, false),
        ];
        for (field, id, needed) in ids {
            let Some(id) = id else { continue };
            at_most(field, id, MAX_ID)?;
            if needed {
                not_blank(field, id)?;
            }
            if id.chars().any(char::is_control) {
                return Err(Fault::new(field, "must not hold control characters"));
            }
        }
        Ok(())
    }

    /// The question as it is stored, once its room is known. Call [`Ask::check`] first.
    ///
    /// # Errors
    /// When its card would be too large for an event.
    pub fn into_elicitation(
        self,
        asker: Asker,
        room_id: String,
        id: String,
        tag: String,
        now: Millis,
    ) -> Result<Elicitation, Fault> {
        let free_text = self.takes_text();
        let elicitation = Elicitation {
            question: Question {
                key: Key::new(asker.agent.clone(), id),
                asked_by: asker.agent,
                routed_to: None,
                abridged: false,
                asked_at: None,
                asker_name: asker.name,
                room_id,
                thread: self.thread,
                prompt: self.prompt,
                options: self.options,
                free_text,
                decline: self.decline.then_some(asker.decline),
                answerers: self.answerers,
                mention: self.mention,
                board_id: self.board_id,
                card_id: self.card_id,
                run_id: self.run_id,
                stage_key: self.stage_key,
                card_title: self.card_title,
                deep_link: self.deep_link,
                metadata: self.metadata,
                created_at: now,
                expires_at: self.expires_in.map(|span| now.saturating_add(span)),
            },
            tag,
            state: State::Queued,
            event_id: None,
            visible: false,
            closed_at: None,
            reason: None,
            answer: None,
        };
        if prose::fits(&elicitation) {
            Ok(elicitation)
        } else {
            Err(Fault::new(
                "options",
                "are together with the prompt too large for one message",
            ))
        }
    }
}

fn not_blank(field: &str, text: &str) -> Result<(), Fault> {
    if crate::reply::is_blank(text) {
        Err(Fault::new(field, "must not be blank"))
    } else {
        Ok(())
    }
}

fn at_most(field: &str, text: &str, bytes: usize) -> Result<(), Fault> {
    if text.len() > bytes {
        return Err(Fault::new(field, format!("must be at most {bytes} bytes")));
    }
    Ok(())
}

/// Whether this is written like a user id: `@localpart:server`, at most 255 bytes.
pub fn is_user_id(text: &str) -> bool {
    text.len() <= 255
        && text
            .strip_prefix('@')
            .and_then(|rest| rest.split_once(':'))
            .is_some_and(|(_, server)| {
                !server.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control())
            })
}

#[cfg(test)]
mod tests;
