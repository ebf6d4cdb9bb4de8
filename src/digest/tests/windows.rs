//! digest.md, 13: windows as they are written down; and what is kept of a line.

use serde_json::{Value, json};

use super::super::lexicon::WRITTEN;
use super::super::{Prepared, VERSION, prepare, written_window};

fn window() -> Value {
    json!({
        "since": null,
        "until": "2026-11-06T10:05:00Z",
        "people": [{"mxid": "@mira:example.org", "display_name": "Mira", "first_seen": "2026-10-01T08:00:00+02:00"}],
        "messages": [{
            "event_id": "$1", "sender": "@mira:example.org", "ts": "2026-11-06T10:00:00.5Z", "text": "use it",
            "reactions": [{"sender": "@sam:example.org", "key": "+1"}]
        }],
    })
}

#[test]
fn a_window_is_read_alone_and_inside_a_line_of_the_corpus() {
    let alone = written_window::read(&window().to_string()).unwrap();
    let inside = json!({"name": "x", "window": window(), "expect": {}});
    assert_eq!(written_window::read(&inside.to_string()).unwrap(), alone);
    let read = alone.window();
    assert_eq!((read.since, read.until), (None, 1_793_959_500_000));
    assert_eq!(read.lines[0].stamp, 1_793_959_200_500);
    assert_eq!(read.lines[0].votes, ["@sam:example.org"]);
    assert_eq!(read.people[0].first_seen, Some(1_790_834_400_000));
    assert_eq!(alone.settings().min_age, super::DAY);
}

#[test]
fn a_window_with_a_mistake_is_refused_by_name() {
    let wrong = |pointer: &str, value: Value| {
        let mut window = window();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match window.pointer_mut(parent).unwrap() {
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
            parent => parent[key] = value,
        }
        written_window::read(&window.to_string())
            .unwrap_err()
            .to_string()
    };
    for (pointer, value, expected) in [
        (
            "/until",
            json!("2026-11-06T10:05:00"),
            "window.until: must be a time of RFC 3339, as 2026-11-06T10:00:00.000Z",
        ),
        ("/until", json!(null), "window.until: is missing"),
        (
            "/since",
            json!("2026-11-07T10:05:00Z"),
            "window.since: must not be after until",
        ),
        ("/extra", json!(1), "window.extra: is not known here"),
        ("/people", json!({}), "window.people: must be a list"),
        (
            "/people/0/mxid",
            json!("mira"),
            "window.people[0].mxid: must be a Matrix id, as @mira:example.org",
        ),
        (
            "/people/0/mxid",
            json!("@agent:example.org"),
            "window.people[0].mxid: the agent is none of the people",
        ),
        (
            "/people/0/banned",
            json!("yes"),
            "window.people[0].banned: must be true or false",
        ),
        (
            "/people/0/baned",
            json!(true),
            "window.people[0].baned: is not known here",
        ),
        (
            "/messages/0/text",
            json!(7),
            "window.messages[0].text: must be a string",
        ),
        (
            "/messages/0/reactions/0/key",
            json!(null),
            "window.messages[0].reactions[0].key: is missing",
        ),
        (
            "/messages/0/card",
            json!({"options": []}),
            "window.messages[0].card: only the agent has cards",
        ),
        (
            "/messages/0",
            json!([]),
            "window.messages[0]: must be an object",
        ),
    ] {
        assert_eq!(wrong(pointer, value), expected);
    }
    assert!(
        written_window::read("{")
            .unwrap_err()
            .to_string()
            .starts_with("this is not JSON: ")
    );
    let mut twice = window();
    let person = twice["people"][0].clone();
    twice["people"].as_array_mut().unwrap().push(person);
    let error = written_window::read(&twice.to_string()).unwrap_err();
    assert_eq!(error.to_string(), "window.people[1].mxid: is listed twice");
}

#[test]
fn what_is_kept_of_a_line_is_brief_and_comes_back_whole() {
    let prepared = prepare(&super::written_as("is it red?")).unwrap();
    let written = serde_json::to_value(&prepared).unwrap();
    assert_eq!(
        written,
        json!({"v": VERSION, "t": "is it red?", "k": written["k"], "q": "question"})
    );
    for text in [
        "hi Nobody",
        "ask @sam:example.org `@x` https://a.example/",
        "https://t.me/+x",
        "a😀",
    ] {
        let prepared = prepare(&super::written_as(text)).unwrap();
        let json = serde_json::to_string(&prepared).unwrap();
        let back: Prepared = serde_json::from_str(&json).unwrap();
        assert_eq!(back, prepared, "{json}");
        assert!(back.is_current());
    }
    let mut old = written;
    old["v"] = json!(VERSION - 1);
    assert!(
        !serde_json::from_value::<Prepared>(old)
            .unwrap()
            .is_current()
    );
}

#[test]
fn the_lexicon_is_as_the_short_cuts_take_it() {
    let lexicon = &*super::super::lexicon::LEXICON;
    // Laughter is spelled out: no classes, ranges or escapes that could mean other letters.
    assert!(!WRITTEN.laugh_regex.contains(['[', '\\', '.', '^']));
    // Questions in English are not looked for in the lists of other scripts.
    assert!(lexicon.anywhere_word.iter().all(|word| !word.is_ascii()));
    assert!(
        lexicon
            .contains
            .iter()
            .chain(&lexicon.clause_end)
            .all(|entry| !entry.is_ascii())
    );
}
