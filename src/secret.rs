//! Secrets as types: what may not be shown cannot be printed by accident.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A password, token or key. `Debug` and `Display` say `[redacted]`, it does not
/// serialise, and two are compared in constant time.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the one place that must send or use it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Its digest, for storing and for comparing with what a caller presents.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest::of(&self.0)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1 })
    }
}

/// The SHA-256 of a token: the only form in which one is stored or compared. Equality
/// takes the same time wherever two digests first differ.
#[derive(Clone, Copy)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of a token as a caller presents it.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// The 32 bytes, for storing.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for TokenDigest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl PartialEq for TokenDigest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenDigest {}

// A digest of a guessable token gives the token away, so it is not shown either.
impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::from("open sesame");
        let shown = format!(
            "{secret} {secret:?} {secret:#?} {:?} {:?}",
            Some(&secret),
            secret.digest()
        );
        assert_eq!(
            shown,
            "[redacted] [redacted] [redacted] Some([redacted]) [redacted]"
        );
        assert_eq!(secret.expose(), "open sesame");
    }

    #[test]
    fn secrets_and_digests_are_equal_when_their_texts_are() {
        assert_eq!(Secret::from("a"), Secret::from("a".to_owned()));
        assert_ne!(Secret::from("a"), Secret::from("b"));
        assert_eq!(TokenDigest::of("a"), Secret::from("a").digest());
        assert_ne!(TokenDigest::of("a"), TokenDigest::of("A"));
        assert_eq!(
            TokenDigest::from(*TokenDigest::of("a").as_bytes()),
            TokenDigest::of("a")
        );
    }

    #[test]
    fn a_digest_is_the_sha_256_of_the_text() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            hex::encode(TokenDigest::of("abc").as_bytes()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_secret_is_read_from_a_plain_string() {
        let secret: Secret = serde_json::from_str("\"open sesame\"").unwrap();
        assert_eq!(secret.expose(), "open sesame");
    }
}
