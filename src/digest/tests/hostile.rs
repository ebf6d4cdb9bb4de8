//! Texts and names that somebody made to cost much: none costs more than its length.

use std::time::{Duration, Instant};

use super::super::Standing;
use super::{Room, prepare, written_as};

/// Far more than any takes, and far less than it takes to look at each part of one again from
/// every other part.
const PATIENCE: Duration = Duration::from_secs(4);

fn filled_with(unit: &str) -> String {
    unit.repeat(60_000 / unit.len())
}

#[test]
fn a_long_text_of_anything_is_soon_prepared() {
    for unit in [
        ",matrix:u/%ff",
        "(matrix:u/%ff",
        ";matrix:user/%ff",
        ";matrix:u/a:b",
        "a://b,",
        "https://a。",
        "a。b/",
        "%40a",
        "%40a%3A",
        "@a.b:",
        "a@b.c.1",
        "x@h:a@b.cc",
        "{a@b.cc",
        "\"a@b.cc",
        "'!@b.cc",
        "@a.com/",
        "https:\\",
        "https:/",
        "https:/a,",
    ] {
        let text = filled_with(unit);
        let begun = Instant::now();
        let prepared = prepare(&written_as(&text));
        assert!(begun.elapsed() < PATIENCE, "{unit:?}");
        assert!(prepared.is_some(), "{unit:?}");
    }
}

#[test]
fn a_long_name_makes_no_greeting_long() {
    let hello = format!("{}龘", "你好".repeat(9_900));
    let name = "你".repeat(20_000);
    let mut room = Room::new().with("@xy:example.org", Some(&name), Standing::In);
    for _ in 0..4 {
        room = room.says("mira", &hello);
    }
    let begun = Instant::now();
    let digest = room.digest();
    assert!(begun.elapsed() < PATIENCE);
    assert_eq!((digest.items.len(), digest.dropped.greetings), (1, 0));
}
