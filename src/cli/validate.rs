//! `matrix-elicit validate FILE`: is this a card, or a digest, and if not, why not.

use std::fs;
use std::io::{Read as _, Write};

use anyhow::Context as _;
use serde_json::Value;

use crate::contract::schema::{Contract, Fault, Layer, push_key, validate_at};

/// Validates the file at `path`, or standard input where it is `-`, and writes one line per
/// fault: the path in the document, `schema` or `unique`, and what is wrong. Valid is
/// silence, and `true`.
///
/// The document is the value itself or, of what rides in Matrix events, a message's content or a
/// whole event that carries it.
///
/// # Errors
/// Only if `out` cannot be written to. A file that cannot be read, or is no JSON, is a fault
/// of the document.
pub fn run(path: &str, contract: Contract, out: &mut impl Write) -> anyhow::Result<bool> {
    let faults = match text_of(path) {
        Ok(text) => faults(contract, &text),
        Err(error) => vec![whole(format!("{path} cannot be read: {error}"))],
    };
    for fault in &faults {
        writeln!(out, "{fault}").context("cannot write the faults")?;
    }
    Ok(faults.is_empty())
}

/// Reads the name of a contract, for the command line.
pub(super) fn contract(name: &str) -> Result<Contract, String> {
    Contract::of_name(name).ok_or_else(|| {
        let known = Contract::ALL.map(Contract::name);
        format!(
            "is no contract known here; there are {}",
            known.join(" and ")
        )
    })
}

/// What stands in a file, or comes from standard input where the path is `-`.
pub(super) fn text_of(path: &str) -> std::io::Result<String> {
    if path == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        Ok(text)
    } else {
        fs::read_to_string(path)
    }
}

fn faults(contract: Contract, text: &str) -> Vec<Fault> {
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(error) => return vec![whole(format!("is not JSON: {error}"))],
    };
    let (path, value) = carried(contract, &document);
    validate_at(contract, value, &path)
}

/// The value to judge and its path, looked for under the content key in an event or in a
/// content; otherwise it is the document itself.
fn carried(contract: Contract, document: &Value) -> (String, &Value) {
    let mut path = "$".to_owned();
    let Some(key) = contract.content_key() else {
        return (path, document);
    };
    let content = match document.get("content") {
        Some(content) if content.get(key).is_some() => {
            push_key(&mut path, "content");
            content
        }
        _ => document,
    };
    match content.get(key) {
        Some(value) => {
            push_key(&mut path, key);
            (path, value)
        }
        None => (path, document),
    }
}

fn whole(message: String) -> Fault {
    Fault {
        path: "$".to_owned(),
        layer: Layer::Schema,
        message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(text: &str) -> Vec<String> {
        lines_as(Contract::Card, text)
    }

    fn lines_as(contract: Contract, text: &str) -> Vec<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        said(contract, file.path().to_str().unwrap())
    }

    fn said(contract: Contract, path: &str) -> Vec<String> {
        let mut out = Vec::new();
        let valid = run(path, contract, &mut out).unwrap();
        let lines: Vec<String> = String::from_utf8(out)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        assert_eq!(valid, lines.is_empty());
        lines
    }

    fn card(change: impl FnOnce(&mut Value)) -> Value {
        let mut card = json!({
            "schema_version": 1, "board_id": "", "card_id": "", "elicitation_id": "elc_1",
            "run_id": "", "stage_key": "", "card_title": "", "asked_by": "", "prompt": "",
            "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }],
        });
        change(&mut card);
        card
    }

    #[test]
    fn a_valid_card_says_nothing_wherever_it_rides() {
        let sound = card(|_| {});
        let content = json!({ "body": "1", "dev.superpipeline.elicitation": sound });
        let event = json!({ "type": "m.room.message", "content": content });
        for document in [sound, content, event] {
            assert_eq!(lines(&document.to_string()), [""; 0]);
        }
    }

    #[test]
    fn each_fault_is_a_line_with_path_and_layer() {
        let broken = card(|card| {
            card["schema_version"] = json!(0);
            card["options"][1]["id"] = json!("a");
        });
        assert_eq!(
            lines(&broken.to_string()),
            [
                "$.schema_version: schema: must be at least 1",
                "$.options[1].id: unique: repeats the value of $.options[0].id",
            ]
        );
        let event = json!({ "content": { "dev.superpipeline.elicitation": broken } });
        assert_eq!(
            lines(&event.to_string()),
            [
                r#"$.content["dev.superpipeline.elicitation"].schema_version: schema: must be at least 1"#,
                r#"$.content["dev.superpipeline.elicitation"].options[1].id: unique: repeats the value of $.content["dev.superpipeline.elicitation"].options[0].id"#,
            ]
        );
        let content = json!({ "dev.superpipeline.elicitation": 5 });
        assert_eq!(
            lines(&content.to_string()),
            [r#"$["dev.superpipeline.elicitation"]: schema: must be of type object, is number"#]
        );
    }

    #[test]
    fn a_digest_is_judged_as_one_when_that_is_asked_for() {
        let folder = "tests/fixtures/chat.agent-digest";
        let digest = |name: &str| said(Contract::AgentDigest, &format!("{folder}/{name}.json"));
        assert_eq!(digest("valid/empty"), [""; 0]);
        assert_eq!(digest("valid/full"), [""; 0]);
        assert_eq!(
            digest("rejected/eleven-items"),
            ["$.items: schema: must have at most 10 items"]
        );
        assert_eq!(
            digest("rejected/room-not-an-agent-room"),
            ["$.room: schema: must match ^agent:ags_[0-9A-HJKMNP-TV-Z]{26}$"]
        );
        assert_eq!(
            digest("rejected/unknown-kind"),
            [r#"$.items[0].kind: schema: must be one of "question", "suggestion", "reaction""#]
        );
    }

    #[test]
    fn every_fault_of_a_digest_is_told() {
        let who = json!({ "display_name": "Mira", "handle": "Mira", "id": "@mira:example.org" });
        let item =
            json!({ "who": who, "what": 5, "kind": "question", "upvotes": -1, "a": 1, "b c": 2 });
        let digest = json!({ "room": "lobby", "until": "today", "chars": 1501, "items": [item] });
        let mut told = lines_as(Contract::AgentDigest, &digest.to_string());
        told.sort();
        assert_eq!(
            told,
            [
                "$.chars: schema: must be at most 1500",
                "$.items[0].a: schema: is not known",
                "$.items[0].upvotes: schema: must be at least 0",
                "$.items[0].what: schema: must be of type string, is number",
                "$.items[0].who.handle: schema: must match ^[a-z0-9_]{2,32}$",
                "$.items[0].who.id: schema: is not known",
                "$.items[0][\"b c\"]: schema: is not known",
                "$.room: schema: must match ^agent:ags_[0-9A-HJKMNP-TV-Z]{26}$",
                "$.since: schema: is missing",
                "$.until: schema: must be a date-time of RFC 3339 with an offset",
            ]
        );
        // No Matrix event carries one.
        let content = json!({ "content": { "chat.agent-digest@1": digest } });
        assert_eq!(
            lines_as(Contract::AgentDigest, &content.to_string()).len(),
            4
        );
    }

    #[test]
    fn a_contract_is_known_by_its_name() {
        assert_eq!(contract("chat.agent-digest@1"), Ok(Contract::AgentDigest));
        assert_eq!(
            contract("dev.superpipeline.elicitation"),
            Ok(Contract::Card)
        );
        let unknown = "is no contract known here; there are dev.superpipeline.elicitation and \
                       chat.agent-digest@1";
        assert_eq!(contract("digest"), Err(unknown.to_owned()));
    }

    #[test]
    fn what_is_no_json_or_cannot_be_read_is_told_in_a_line() {
        assert_eq!(
            lines("{\"a\":}"),
            ["$: schema: is not JSON: expected value at line 1 column 6"]
        );
        assert_eq!(
            lines(""),
            ["$: schema: is not JSON: EOF while parsing a value at line 1 column 0"]
        );
        let gone = said(Contract::Card, "no/such/card.json");
        assert_eq!(gone.len(), 1);
        assert!(
            gone[0].starts_with("$: schema: no/such/card.json cannot be read: No such file"),
            "{gone:?}"
        );
    }
}
