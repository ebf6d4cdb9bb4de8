//! The example file, and the schema it is made from.

use std::collections::BTreeSet;

use super::*;
use crate::config::example::schema;

/// The example with every setting uncommented.
fn uncommented() -> String {
    let lines: Vec<String> = example()
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => setting.to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    lines.join("\n")
}

/// Without one key of one table.
fn without(text: &str, header: &str, key: &str) -> String {
    let prefix = format!("{key} = ");
    without_lines(text, header, |line| line.starts_with(&prefix))
}

/// Without a table, its header and its keys.
fn without_table(text: &str, header: &str) -> String {
    without_lines(text, header, |_| true)
}

fn without_lines(text: &str, header: &str, goes: impl Fn(&str) -> bool) -> String {
    let mut inside = false;
    text.lines()
        .filter(|line| {
            if line.starts_with('[') {
                inside = *line == format!("[{header}]");
            }
            !(inside && goes(line))
        })
        .fold(String::new(), |text, line| text + line + "\n")
}

const BOARD: &str = "boards.brd_7c1f";
const PEOPLE: &str = "boards.brd_7c1f.people";

const ASSERTION: &str = "boards.brd_7c1f.people.assertion";
const DEV: &str = "boards.brd_7c1f.people.dev";

/// Everything set, except what something else excludes: the first way of each choice counts.
fn all_that_goes_together() -> String {
    let all = without(&uncommented(), "matrix", "access_token");
    let all = without(&all, BOARD, "room");
    without_table(&without_table(&all, ASSERTION), DEV)
}

fn read_example(text: &str) -> Config {
    // The one file that the example names need not exist here.
    let text = text.replace("file:/etc/matrix-elicit/recovery", "a passphrase");
    read(&text).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

#[test]
fn the_example_file_is_what_the_types_say() {
    let file = include_str!("../../../config.example.toml");
    assert!(
        file == example(),
        "config.example.toml is not what config::example() generates; it should be:\n{}",
        example()
    );
}

#[test]
fn the_example_works_as_it_is_and_with_everything_set() {
    let config = read_example(&example());
    assert_eq!(config.agents.len(), 1);
    assert!(config.matrix.password.is_some());
    assert_eq!(config.synapse_admin, None);

    let config = read_example(&all_that_goes_together());
    assert_eq!(config.rooms.len(), 1);
    assert!(config.agents["agt_31d0"].webhook.is_some());
    assert!(config.boards["brd_7c1f"].people.bearer.is_some());
    assert_eq!(config.carriers.len(), 1);
    assert_eq!(config.streams.len(), 1);
    assert!(config.synapse_admin.is_some());
}

#[test]
fn the_example_shows_every_way_of_a_choice_and_each_works() {
    let all = uncommented();
    let refused = faults(&all.replace("file:/etc/matrix-elicit/recovery", "a passphrase"));
    let keys: Vec<&str> = refused
        .iter()
        .filter_map(|fault| fault.split(": ").nth(1))
        .collect();
    assert_eq!(
        keys,
        [
            "matrix.access_token",
            "boards.brd_7c1f.invite",
            ASSERTION,
            DEV,
        ]
    );

    let all = without(&without(&all, "matrix", "password"), BOARD, "invite");
    let all = without(&without(&all, BOARD, "encrypted"), PEOPLE, "bearer");
    let board = |text: &str| read_example(text).boards.remove("brd_7c1f").unwrap();
    let asserted = board(&without_table(&all, DEV));
    assert_eq!(asserted.room.as_deref(), Some("#release:example.org"));
    assert!(asserted.people.assertion.is_some());
    assert!(board(&without_table(&all, ASSERTION)).people.dev.is_some());
}

#[test]
fn whatever_passes_the_checks_can_be_used() {
    let all = all_that_goes_together();
    let junk = [
        "\"\"",
        "\"x\"",
        "\"*\"",
        "0",
        "-1",
        "9223372036854775807",
        "true",
        "1.5",
        "nan",
        "1979-05-27",
        "[]",
        "[1]",
        "[\"x\"]",
        "[[]]",
        "{}",
        "{ x = 1 }",
        "{ x = \"y\" }",
    ];
    let settings = all.lines().enumerate().filter_map(|(at, line)| {
        let (key, _) = line.split_once(" = ")?;
        Some((at, key))
    });
    let mut tried = 0;
    for (at, key) in settings {
        for junk in junk {
            let mut lines: Vec<&str> = all.lines().collect();
            let changed = format!("{key} = {junk}");
            lines[at] = &changed;
            let text = lines.join("\n");
            if let Err(faults) = read(&text.replace("file:/etc/matrix-elicit/recovery", "x")) {
                // Each is a mistake at that line, and none is ours.
                assert!(
                    faults.iter().all(|fault| fault.line == Some(at + 1)),
                    "{changed}: {faults:#?}"
                );
            }
            tried += 1;
        }
    }
    assert!(tried > 400, "{tried}");
}

#[test]
fn the_example_shows_true_defaults() {
    let least = read_example(&example());
    let mut shown = read_example(&all_that_goes_together());
    let agent = &least.agents["agt_31d0"];
    let shown_agent = shown.agents.remove("agt_31d0").unwrap();
    assert_eq!(least.matrix.data_dir, shown.matrix.data_dir);
    assert_eq!(least.matrix.prefix, shown.matrix.prefix);
    assert_eq!(least.http.listen, shown.http.listen);
    assert_eq!(least.ledger, shown.ledger);
    assert_eq!(agent.rooms, shown_agent.rooms);
    assert_eq!(
        shown_agent.webhook.unwrap().park_after,
        WebhookConfig::default_park_after()
    );
    let board = &shown.boards["brd_7c1f"];
    assert_eq!(board.sweep, BoardConfig::default_sweep());
    assert!(!board.encrypted && !board.free_text);
    let stream = &shown.streams["ags_01JAB2C3D4E5F6G7H8J9K0MNPQ"];
    assert_eq!(stream.keep, StreamConfig::default_keep());
    assert_eq!(stream.min_age, StreamConfig::default_min_age());
    let carrier = &shown.carriers["@hub:example.org"];
    assert!(!carrier.notices && !carrier.react);
    let (least, shown) = (least.answers_for("!x", &[]), shown.answers_for("!x", &[]));
    assert_eq!(least.require_verified, shown.require_verified);
    assert_eq!(least.unreadable_after, shown.unreadable_after);
}

/// Every property of a schema, by its key wherever it stands.
fn properties(schema: &serde_json::Value, found: &mut BTreeSet<String>) {
    if let Some(named) = schema["properties"].as_object() {
        for (name, inner) in named {
            assert!(
                inner["description"].is_string(),
                "{name} has no description"
            );
            found.insert(name.clone());
            properties(inner, found);
        }
        let order = schema["x-order"].as_array().map(Vec::len);
        assert_eq!(order, Some(named.len()), "{schema:#}");
        assert_eq!(schema["additionalProperties"], false, "{schema:#}");
    }
    if schema["additionalProperties"].is_object() {
        properties(&schema["additionalProperties"], found);
    }
}

#[test]
fn every_key_is_documented_shown_and_closed_to_strangers() {
    let mut keys = BTreeSet::new();
    let schema = schema().to_value();
    properties(&schema, &mut keys);
    assert!(keys.len() > 25, "{keys:?}");
    let all = uncommented();
    for key in &keys {
        assert!(
            all.contains(&format!("\n{key} = "))
                || all.contains(&format!("\n[{key}"))
                || all.contains(&format!(".{key}]")),
            "{key} is not in the example"
        );
    }
    // What TOML cannot say is not in the schema, and nothing is left to be looked up.
    let text = schema.to_string();
    for gone in ["null", "$ref", "anyOf"] {
        assert!(!text.contains(gone), "{gone}");
    }
}

#[test]
fn every_format_of_the_schema_has_its_rule() {
    let text = schema().to_value().to_string();
    let used: BTreeSet<&str> = text
        .split("\"format\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let unknown: Vec<&&str> = used
        .iter()
        .filter(|format| !values::FORMATS.contains(format))
        .collect();
    // `int64` is a Rust number, which the reader bounds by itself.
    assert_eq!(unknown, [&"int64", &"span"]);
    assert!(values::FORMATS.iter().all(|format| used.contains(format)));
}
