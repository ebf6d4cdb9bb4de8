//! The values a configuration holds: what they look like, and their small types.
//!
//! Every string with a shape has a `format` in the schema, and [`complaint`] is the one
//! place that says what that format takes. No complaint repeats the value.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use url::{Host, Url};

use crate::contract::digest::is_stream_id;
use crate::secret::Secret;
use crate::span::parse_span;

/// Every format that [`complaint`] knows.
pub(super) const FORMATS: [&str; 19] = [
    "http-url",
    "base-url",
    "user-id",
    "user-pattern",
    "inviter",
    "room",
    "room-choice",
    "agent-id",
    "call",
    "prefix",
    "device-id",
    "listen",
    "token",
    "webhook-secret",
    "board-id",
    "filled",
    "header",
    "stream-id",
    "day-span",
];

/// How to come by a token that nobody guesses.
pub(super) const MAKE_ONE: &str = "\"openssl rand -hex 32\" makes a good one";

/// A shorter token is taken, with a caution.
const GUESSABLE: usize = 16;
const WEBHOOK_SECRET_PREFIX: &str = "whsec_";
/// Matrix bounds every identifier so (appendix "Size limits").
const LONGEST_IDENTIFIER: usize = 255;

/// Whether a token is so short that it might be guessed.
pub(super) fn is_guessable(token: &str) -> bool {
    token.len() < GUESSABLE
}

/// What is wrong with `text` as a value of `format`, as the end of a sentence that begins
/// with its key; `None` if nothing is.
pub(super) fn complaint(format: &str, text: &str) -> Option<String> {
    let (sound, rule) = match format {
        "http-url" => (
            is_http_url(text),
            "must be an http or https URL without a user name or password in it",
        ),
        "base-url" => (
            is_base_url(text),
            "must be an http or https URL without a user name, password, query or fragment in it",
        ),
        "user-id" => (
            is_user_id(text) && !text.contains('*'),
            "must be a user id like \"@ada:example.org\"",
        ),
        "user-pattern" => (
            is_user_id(text),
            "must be a user id like \"@bot:example.org\", in which * stands for any run of characters",
        ),
        "inviter" => (
            is_user_id(text) || is_server(text),
            "must be \"*\", a server name, or a user id like \"@ada:example.org\", in which * stands for any run of characters",
        ),
        "room" => (
            is_room(text) && !text.contains('*'),
            "must be a room id like \"!abc:example.org\" or an alias like \"#room:example.org\"",
        ),
        "room-choice" => (
            text == "*" || (is_room(text) && !text.contains('*')),
            "must be \"*\", a room id like \"!abc:example.org\" or an alias like \"#room:example.org\"",
        ),
        "agent-id" if text.eq_ignore_ascii_case("operator") => (
            false,
            "must be another word: the operator is whoever runs the bot",
        ),
        "agent-id" => (
            is_agent_id(text),
            "must be 1 to 64 letters, digits, dots, dashes or underscores",
        ),
        "board-id" => (
            is_agent_id(text) && !matches!(text, "." | ".."),
            "must be 1 to 64 letters, digits, dots, dashes or underscores, and not \".\" or \"..\"",
        ),
        "filled" => (!text.trim().is_empty(), "must not be blank"),
        "header" => (
            is_graphic(text),
            "must be letters, digits and signs, without a space",
        ),
        "call" => (
            is_word(text) && text.chars().count() <= 64,
            "must be one word of at most 64 characters",
        ),
        "prefix" => (
            is_prefix(text),
            "must be at most 16 characters without a space, the first a sign such as \"!\", but not #, @, > or /",
        ),
        "device-id" => (
            text.len() <= LONGEST_IDENTIFIER && is_graphic(text),
            "must be a device id: letters and digits, no spaces",
        ),
        "listen" => (
            text.parse::<SocketAddr>().is_ok(),
            "must be an address and a port, like \"127.0.0.1:8470\" or \"[::1]:8470\"",
        ),
        "token" => (
            !text.is_empty() && is_graphic(text),
            "must be letters, digits and signs, without a space; \"openssl rand -hex 32\" makes a good one",
        ),
        "webhook-secret" => (
            is_webhook_secret(text),
            "must be \"whsec_\" and at most 64 bytes in base64; \"openssl rand -base64 32\" makes good ones",
        ),
        "stream-id" => (
            is_stream_id(text),
            "must be \"ags_\" and a ULID: 26 digits and capital letters, without I, L, O and U",
        ),
        "day-span" => match parse_span(text) {
            Ok(span) => (
                span <= Duration::from_hours(24),
                "must not be longer than 24h",
            ),
            Err(error) => return Some(error.to_string()),
        },
        "span" => return parse_span(text).err().map(|error| error.to_string()),
        // An unknown format is a slip in this crate; a test goes through all there are.
        _ => (true, ""),
    };
    (!sound).then(|| rule.to_owned())
}

fn is_http_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    })
}

/// What paths are put behind.
fn is_base_url(text: &str) -> bool {
    is_http_url(text)
        && Url::parse(text).is_ok_and(|url| url.query().is_none() && url.fragment().is_none())
}

fn is_user_id(text: &str) -> bool {
    is_identifier(text, '@')
}

fn is_room(text: &str) -> bool {
    // Room ids have no server name since room version 12.
    let is_id = text.len() > 1 && text.starts_with('!') && is_word(text);
    is_identifier(text, '#') || (is_id && text.len() <= LONGEST_IDENTIFIER)
}

/// A sigil, something, a colon and a server name; `*` passes as one of their characters.
fn is_identifier(text: &str, sigil: char) -> bool {
    text.len() <= LONGEST_IDENTIFIER
        && text
            .strip_prefix(sigil)
            .and_then(|rest| rest.split_once(':'))
            .is_some_and(|(local, server)| is_word(local) && is_server(server))
}

fn is_server(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LONGEST_IDENTIFIER
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "*.-:[]".contains(c))
}

fn is_agent_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// A command must never look like an answer (`#2`), a mention or a quotation.
fn is_prefix(text: &str) -> bool {
    let sign = |c: char| !c.is_alphanumeric() && !"#@>/".contains(c);
    is_word(text) && text.chars().count() <= 16 && text.starts_with(sign)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn is_graphic(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Standard Webhooks, "Signature scheme", asks for 24 to 64 bytes; fewer are taken, with a caution.
fn is_webhook_secret(text: &str) -> bool {
    webhook_key(text).is_some_and(|key| (1..=64).contains(&key.len()))
}

/// Whether a webhook secret is shorter than Standard Webhooks asks for.
pub(super) fn is_short_secret(text: &str) -> bool {
    webhook_key(text).is_some_and(|key| key.len() < 24)
}

fn webhook_key(text: &str) -> Option<Vec<u8>> {
    let encoded = text.strip_prefix(WEBHOOK_SECRET_PREFIX)?;
    STANDARD.decode(encoded).ok()
}

/// Whether what is sent there can be read on the way.
pub(super) fn is_open_to_readers(url: &Url) -> bool {
    url.scheme() == "http" && !is_loopback(url)
}

/// Whether it stays on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The server name of a user id: what follows the first colon.
pub(super) fn server_of(user_id: &str) -> Option<&str> {
    user_id.split_once(':').map(|(_, server)| server)
}

pub(super) fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let text = String::deserialize(deserializer)?;
    // What the parser says never repeats the text.
    Url::parse(&text).map_err(D::Error::custom)
}

pub(super) fn some_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Url>, D::Error> {
    url(deserializer).map(Some)
}

/// Whom something is about: `*` stands for any run of characters, everything else for
/// itself. With a leading `@` it is compared with the whole user id, otherwise with the
/// server name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Whether this user is meant.
    pub fn matches(&self, user_id: &str) -> bool {
        if self.0.starts_with('@') {
            matches_glob(&self.0, user_id)
        } else {
            server_of(user_id).is_some_and(|server| matches_glob(&self.0, server))
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Each part between two stars is taken where it first fits, which is never worse than
/// later, so the time is bounded whatever a user id looks like.
fn matches_glob(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = text.find(part) else {
            return false;
        };
        text = &text[at + part.len()..];
    }
    text.ends_with(tail)
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// The secrets that sign an agent's webhooks: one, or several while one replaces another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSecrets(Vec<Secret>);

impl WebhookSecrets {
    /// All of them, at least one, each `whsec_` and base64. Every one signs.
    pub fn as_slice(&self) -> &[Secret] {
        &self.0
    }
}

impl From<Vec<Secret>> for WebhookSecrets {
    fn from(secrets: Vec<Secret>) -> Self {
        Self(secrets)
    }
}

impl<'de> Deserialize<'de> for WebhookSecrets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(Secret),
            Several(Vec<Secret>),
        }
        Ok(Self(match Written::deserialize(deserializer)? {
            Written::One(only) => vec![only],
            Written::Several(all) => all,
        }))
    }
}

impl JsonSchema for WebhookSecrets {
    fn schema_name() -> Cow<'static, str> {
        "WebhookSecrets".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "array"],
            "format": "webhook-secret",
            "items": { "type": "string", "format": "webhook-secret" },
            "minItems": 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a format takes, and what it refuses.
    #[rustfmt::skip]
    const SAMPLES: [(&str, &[&str], &[&str]); 20] = [
        ("http-url", &["https://example.org", "http://127.0.0.1:8008/base", "https://[::1]/"],
            &["", "example.org", "ftp://example.org", "https://", "https://me@example.org", "https://:pw@example.org", "file:///etc"]),
        ("base-url", &["https://example.org", "http://[::1]:8080/base/"],
            &["", "example.org", "ftp://example.org", "https://me@example.org", "https://example.org?x", "https://example.org/#x"]),
        ("user-id", &["@ada:example.org", "@ada:example.org:8448", "@a/b=c:localhost"],
            &["", "ada", "@ada", "ada:example.org", "@ada:exa mple.org", "@a da:example.org", "@ada:example.org/x", "@*:example.org"]),
        ("user-pattern", &["@*:example.org", "@*bot:*", "@ada:example.org"], &["*", "example.org", "@*"]),
        ("inviter", &["*", "example.org", "*.example.org", "@ada:example.org", "@*:example.org"],
            &["", "@ada", "exa mple", "#room:example.org"]),
        ("room", &["!abc:example.org", "!Nh7qNIWvzyEAhMxGj0xm6m", "#room:example.org"],
            &["", "*", "!", "#room", "room:example.org", "@ada:example.org", "! a", "#*:example.org"]),
        ("room-choice", &["*", "!abc", "#room:example.org"], &["", "**", "room"]),
        ("agent-id", &["agt_31d0", "a", "A.b-c_9", "operators"], &["", "operator", "Operator", "a b", "é", "a:b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]),
        ("board-id", &["brd_7c1f", "operator", "..."], &["", ".", "..", "a b", "a/b", "é"]),
        ("filled", &["two words", "é"], &["", " ", "\t\n"]),
        ("header", &["tnt_dev", "a|b"], &["", "a b", "é", "a\r\nb"]),
        ("call", &["builder", "bücher"], &["", "two words", "a\u{7}"]),
        ("prefix", &["!", "!!", "!elicit", "."], &["", "a", "1", "#", "@", ">", "/", "! x", "!!!!!!!!!!!!!!!!!"]),
        ("device-id", &["ELICITBOT"], &["", "A B", "é"]),
        ("listen", &["127.0.0.1:8470", "[::]:80", "0.0.0.0:0"], &["", "8470", "localhost:8470", "127.0.0.1"]),
        ("token", &["0123456789abcdef", "short"], &["", "0123456789 abcdef", "0123456789abcdé"]),
        ("webhook-secret", &["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ="],
            &["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!fKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]),
        ("stream-id", &["ags_01JAB2C3D4E5F6G7H8J9K0MNPQ", "ags_00000000000000000000000000", "ags_ZZZZZZZZZZZZZZZZZZZZZZZZZZ"],
            &["", "ags_", "01JAB2C3D4E5F6G7H8J9K0MNPQ", "agent:ags_01JAB2C3D4E5F6G7H8J9K0MNPQ", "ags_01JAB2C3D4E5F6G7H8J9K0MNP",
                "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ0", "ags_01jab2c3d4e5f6g7h8j9k0mnpq", "ags_01JAB2C3D4E5F6G7H8J9K0MNPI",
                "ags_01JAB2C3D4E5F6G7H8J9K0MNPL", "ags_01JAB2C3D4E5F6G7H8J9K0MNPO", "ags_01JAB2C3D4E5F6G7H8J9K0MNPU",
                "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ\n", "ags_01JAB2C3D4E5F6G7H8J9K0MNé"]),
        ("day-span", &["24h", "1d", "86400", "1440m", "1s"], &["", "soon", "0s", "86401", "25h", "2d"]),
        ("span", &["30d", "5"], &["", "soon", "0s"]),
    ];

    #[test]
    fn every_format_takes_and_refuses_what_it_says() {
        for (format, sound, broken) in SAMPLES {
            for text in sound {
                assert_eq!(complaint(format, text), None, "{format} {text:?}");
            }
            for text in broken {
                let said = complaint(format, text);
                assert!(
                    said.as_deref()
                        .is_some_and(|said| said.starts_with("must ")),
                    "{format} {text:?}: {said:?}"
                );
            }
        }
        let sampled: Vec<&str> = SAMPLES.map(|(format, _, _)| format).into();
        assert!(FORMATS.iter().all(|format| sampled.contains(format)));
    }

    #[test]
    fn a_pattern_means_whole_user_ids_or_servers() {
        let matches = |pattern: &str, user: &str| Pattern::from(pattern).matches(user);
        for (pattern, user) in [
            ("*", "@ada:example.org"),
            ("example.org", "@ada:example.org"),
            ("example.org:8448", "@ada:example.org:8448"),
            ("*.example.org", "@ada:matrix.example.org"),
            ("@ada:example.org", "@ada:example.org"),
            ("@*:example.org", "@ada:example.org"),
            ("@*bot:*", "@deploy-bot:example.org"),
            ("@a*a*:*.org", "@abba:example.org"),
            ("@**:example.org", "@ada:example.org"),
        ] {
            assert!(matches(pattern, user), "{pattern} {user}");
        }
        for (pattern, user) in [
            ("example.org", "@ada:example.org.evil"),
            ("example.org", "@ada:sub.example.org"),
            ("*.example.org", "@ada:example.org"),
            ("@ada:example.org", "@adam:example.org"),
            ("@*:example.org", "@ada:example.org.evil"),
            ("@ab*ba:x", "@aba:x"),
            ("@a*b*b:x", "@ab:x"),
            ("@*bot:*", "@bott:example.org"),
            ("@Ada:example.org", "@ada:example.org"),
            ("*", "no user id"),
        ] {
            assert!(!matches(pattern, user), "{pattern} {user}");
        }
    }
}
