//! The corpus, and how the other tests write an outcome.

mod hostile;
mod messages;
mod properties;
mod tables;
mod targets;

use super::{Choice, MatchedBy, Options, read_option};
use crate::contract::CardOption;

pub(super) fn options(list: &[(&str, &str)]) -> Vec<CardOption> {
    list.iter()
        .map(|(id, label)| CardOption {
            id: (*id).to_owned(),
            label: (*label).to_owned(),
        })
        .collect()
}

/// The outcome as the corpus writes it: `number red`, `ask red blue`, `none`.
fn outcome(list: &[CardOption], text: &str, directed: bool) -> String {
    match read_option(text, &Options::new(list), directed).choice {
        Choice::Choose { index, by } => {
            let by = match by {
                MatchedBy::Number => "number",
                MatchedBy::Id => "id",
                MatchedBy::Label => "label",
                MatchedBy::Text => "text",
            };
            format!("{by} {}", list[index].id)
        }
        Choice::Ask { indexes } => {
            let ids: Vec<&str> = indexes.iter().map(|&i| list[i].id.as_str()).collect();
            format!("ask {}", ids.join(" "))
        }
        Choice::None => "none".to_owned(),
    }
}

#[test]
fn every_line_of_the_corpus_is_read_as_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/replies.jsonl");
    let corpus = std::fs::read_to_string(path).unwrap();
    let mut failures = Vec::new();
    let mut lines = 0;
    for line in corpus.lines().filter(|line| !line.trim().is_empty()) {
        lines += 1;
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let list: Vec<CardOption> = serde_json::from_value(entry["options"].clone()).unwrap();
        let directed = entry["directed"].as_bool().unwrap_or(false);
        let read = outcome(&list, entry["text"].as_str().unwrap(), directed);
        let expect = &entry["expect"];
        let as_expected = if let Some(id) = expect["choose"].as_str() {
            read == format!("{} {id}", expect["by"].as_str().unwrap())
        } else if let Some(ids) = expect["ask"].as_array() {
            let ids: Vec<&str> = ids.iter().filter_map(|id| id.as_str()).collect();
            read.starts_with("ask") && (ids.is_empty() || read == format!("ask {}", ids.join(" ")))
        } else {
            read == "none"
        };
        if !as_expected {
            failures.push(format!("{line}\n    read as: {read}"));
        }
    }
    assert!(lines >= 170, "only {lines} lines");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

const COLOURS: [(&str, &str); 3] = [("red", "Red"), ("green", "Green"), ("blue", "Blue")];

/// Asserts readings of texts said to the bot.
fn all_read(list: &[(&str, &str)], expected: &[(&str, &str)]) {
    let list = options(list);
    for (text, expected) in expected {
        assert_eq!(outcome(&list, text, true), *expected, "{text:?}");
    }
}

fn none_chosen(list: &[(&str, &str)], texts: &[&str]) {
    let list = options(list);
    for text in texts {
        assert_eq!(outcome(&list, text, true), "none", "{text:?}");
    }
}
