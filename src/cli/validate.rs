//! `matrix-elicit validate FILE`: is this a card, and if not, why not.

use std::fs;
use std::io::{Read as _, Write};

use anyhow::Context as _;
use serde_json::Value;

use crate::contract::schema::{Contract, Fault, Layer, push_key, validate_at};

/// Validates the file at `path`, or standard input where it is `-`, and writes one line per
/// fault: the path in the document, `schema` or `unique`, and what is wrong. Valid is
/// silence, and `true`.
///
/// The document is the value of the content key, or a message's content or a whole event
/// that carries it.
///
/// # Errors
/// Only if `out` cannot be written to. A file that cannot be read, or is no JSON, is a fault
/// of the document.
pub fn run(path: &str, out: &mut impl Write) -> anyhow::Result<bool> {
    let faults = match text_of(path) {
        Ok(text) => faults(Contract::Card, &text),
        Err(error) => vec![whole(format!("{path} cannot be read: {error}"))],
    };
    for fault in &faults {
        writeln!(out, "{fault}").context("cannot write the faults")?;
    }
    Ok(faults.is_empty())
}

fn text_of(path: &str) -> std::io::Result<String> {
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
    let content = match document.get("content") {
        Some(content) if content.get(contract.name()).is_some() => {
            push_key(&mut path, "content");
            content
        }
        _ => document,
    };
    match content.get(contract.name()) {
        Some(value) => {
            push_key(&mut path, contract.name());
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
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        said(file.path().to_str().unwrap())
    }

    fn said(path: &str) -> Vec<String> {
        let mut out = Vec::new();
        let valid = run(path, &mut out).unwrap();
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
    fn what_is_no_json_or_cannot_be_read_is_told_in_a_line() {
        assert_eq!(
            lines("{\"a\":}"),
            ["$: schema: is not JSON: expected value at line 1 column 6"]
        );
        assert_eq!(
            lines(""),
            ["$: schema: is not JSON: EOF while parsing a value at line 1 column 0"]
        );
        let gone = said("no/such/card.json");
        assert_eq!(gone.len(), 1);
        assert!(
            gone[0].starts_with("$: schema: no/such/card.json cannot be read: No such file"),
            "{gone:?}"
        );
    }
}
