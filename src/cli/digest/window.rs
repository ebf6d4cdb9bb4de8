//! `matrix-elicit digest --window FILE`: the digest of a window that is written down, without a
//! room and without a bot, for whoever wonders why something is in it or not.

use std::io::Write;

use anyhow::{Context as _, anyhow};

use super::super::terminal::words;
use super::super::validate::text_of;
use super::write_json;
use crate::digest::{digest, object, written_window};

/// Reads a window in the shape of the corpus from `path`, or from standard input where that is
/// `-`, and writes the digest of it as one line of JSON.
///
/// # Errors
/// When it cannot be read, is no such window, or `out` cannot be written to.
pub(super) fn run(path: &str, stream_id: &str, out: &mut impl Write) -> anyhow::Result<()> {
    let text = text_of(path).with_context(|| format!("{path} cannot be read"))?;
    let written = written_window::read(&text)
        .map_err(|error| anyhow!("{path}: {}", words(&error.to_string())))?;
    let said = digest(&written.window(), &written.settings());
    let object = object(stream_id, written.since, written.until, &said)?;
    write_json(&object, out)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::contract::schema::{Contract, validate};

    const CORPUS: &str = include_str!("../../../tests/corpus/digest.jsonl");
    const STREAM: &str = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";

    fn made(window: &str) -> anyhow::Result<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), window).unwrap();
        let path = file.path().to_str().unwrap();
        let mut out = Vec::new();
        run(path, STREAM, &mut out).map_err(|error| {
            let told = format!("{error:#}").replace(path, "FILE");
            anyhow!(told)
        })?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_contracts_example_is_made_of_its_window() {
        let line = CORPUS.lines().next().unwrap();
        let case: Value = serde_json::from_str(line).unwrap();
        assert_eq!(case["name"], "contract-fixture");
        let full = include_str!("../../../tests/fixtures/chat.agent-digest/valid/full.json");
        let mut full: Value = serde_json::from_str(full).unwrap();
        // What the items really have: 22 and twice 4, 20 and twice 3.
        full["chars"] = json!(56);
        for window in [line.to_owned(), case["window"].to_string()] {
            let out = made(&window).unwrap();
            assert_eq!(out.lines().count(), 1);
            assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), full);
        }
    }

    #[test]
    fn every_window_of_the_corpus_makes_a_valid_digest() {
        let mut made_of = 0;
        for line in CORPUS.lines() {
            let out = made(line).unwrap();
            let digest: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(validate(Contract::AgentDigest, &digest), [], "{line}");
            made_of += 1;
        }
        assert!(made_of > 40, "{made_of}");
    }

    #[test]
    fn what_is_no_window_is_told_with_its_field() {
        let refused = |window: Value| made(&window.to_string()).unwrap_err().to_string();
        assert_eq!(
            refused(json!({ "since": null })),
            "FILE: window.until: is missing"
        );
        assert_eq!(
            refused(json!({ "until": "2026-11-06T10:05:00Z", "a\u{9b}": 1 })),
            "FILE: window.a\\u{9b}: is not known here"
        );
        let no_json = made("{").unwrap_err().to_string();
        assert!(no_json.starts_with("FILE: this is not JSON: "), "{no_json}");
        let gone = run("no/such/window.json", STREAM, &mut Vec::new()).unwrap_err();
        assert_eq!(gone.to_string(), "no/such/window.json cannot be read");
    }
}
