//! digest.md, 11: display names and handles.

use super::super::{Standing, handle};
use super::Room;

#[test]
fn a_display_name_is_clean_and_nobodys_address() {
    for (name, expected) in [
        (Some("Mira"), "Mira"),
        (Some(" Mira\u{202E}\n K "), "Mira K"),
        (None, "xy"),
        (Some(""), "xy"),
        (Some("\u{200B} \u{2800}"), "xy"),
        (Some("@mira:example.org"), "xy"),
        (Some("Mira (@mira:example.org)"), "xy"),
        (Some("mira@example.org"), "xy"),
        (Some("Mira https://a.example/x"), "Mira a link to a.example"),
        (Some("q\u{300}\u{301}\u{302}\u{303}"), "q\u{300}\u{301}"),
        (Some("❤\u{FE0F}"), "❤\u{FE0F}"),
        (Some("..."), "..."),
        (Some("https://matrix.to/#/%40alice%3Aexample.org"), "xy"),
        (Some("I am matrix.to/#/@alice:example.org"), "xy"),
        (Some("matrix:u/alice:example.org"), "xy"),
        (Some("@alice%3Aexample.org"), "xy"),
        (Some("%40alice:example.org"), "xy"),
        (Some("x@alice:example.org"), "xy"),
        (Some("ｆｏｏ＠ｅｘａｍｐｌｅ．ｃｏｍ"), "xy"),
        (Some("𝐟oo@example.com"), "xy"),
        (Some("foo@example。com"), "xy"),
        (Some("\"a b\"@example.com"), "xy"),
        (Some("mailto:alice%40example.com"), "xy"),
        (Some("foo@example.com.1"), "xy"),
        (Some("Mira @ work"), "Mira @ work"),
        (Some("100% Mira"), "100% Mira"),
    ] {
        let room = Room::new().with("@xy:example.org", name, Standing::In);
        let digest = room.says("@xy:example.org", "use it").digest();
        assert_eq!(digest.items[0].display_name, expected, "{name:?}");
    }
    let long = "x".repeat(81);
    let room = Room::new().with("@xy:example.org", Some(&long), Standing::In);
    let digest = room.says("@xy:example.org", "use it").digest();
    assert_eq!(digest.items[0].display_name, format!("{}…", "x".repeat(79)));
    assert_eq!(digest.chars, 6 + 80 + 2);
}

#[test]
fn a_display_name_that_cannot_be_cut_is_cut_all_the_same() {
    let called = |name: &str| {
        let room = Room::new().with("@xy:example.org", Some(name), Standing::In);
        let digest = room.says("@xy:example.org", "use it").digest();
        digest.items[0].display_name.clone()
    };
    let family = "👨\u{200D}".repeat(200) + "👨";
    let cut = called(&family);
    assert_eq!(cut, format!("{}👨…", "👨\u{200D}".repeat(39)));
    let label = "a".repeat(60);
    let long_site = format!("https://{label}.{label}/");
    assert_eq!(called(&long_site), "xy", "a link is never cut");
}

#[test]
fn a_handle_is_the_localpart_made_to_fit() {
    for (user, expected) in [
        ("@mira:example.org", "mira"),
        ("@a_1:example.org", "a_1"),
        ("@__:example.org", "__"),
        ("@mira.k-1:example.org", "mira_k_1"),
        ("@José:example.org", "jose"),
        ("@MIRA:example.org", "mira"),
        ("@.mira.:example.org", "mira"),
        ("@a..b:example.org", "a_b"),
        ("@ﬁn:example.org", "fin"),
        ("@x:example.org", "user_bd8f0026"),
        ("@علی:example.org", "user_b7ceaf4e"),
        ("@here:example.org", "here_468b4bea"),
    ] {
        assert_eq!(handle(user, |_| false), expected, "{user}");
    }
    let long = format!("@{}:example.org", "ab".repeat(20));
    assert_eq!(handle(&long, |_| false), "ab".repeat(16));
    let taken = handle(&long, |handle| handle == "ab".repeat(16));
    assert_eq!(
        (taken.len(), &taken[..24]),
        (32, "abababababababababababa_")
    );
}

#[test]
fn a_taken_handle_is_told_apart_however_often() {
    assert_eq!(
        handle("@mira:other.example", |handle| handle == "mira"),
        "mira_c1b0cfe9"
    );
    let mut gone = vec!["mira".to_owned(), "mira_c1b0cfe9".to_owned()];
    for _ in 0..3 {
        let next = handle("@mira:other.example", |handle| {
            gone.iter().any(|gone| gone == handle)
        });
        assert!(!gone.contains(&next));
        gone.push(next);
    }
    for name in ["everyone", "here", "room", "someone", "all", "agent"] {
        let given = handle(&format!("@{name}:example.org"), |_| false);
        assert!(given.starts_with(&format!("{name}_")), "{given}");
    }
}
