//! digest.md, 3 and 4: what is a line, and how it is cleaned.

use super::super::clean::{clean, without_quotation};
use super::super::{Written, prepare};
use super::shown;

#[test]
fn nothing_that_cannot_be_seen_is_left() {
    for (text, expected) in [
        (" a\t\n b\u{A0}\u{2003}c\u{2028}d\u{85} ", "a b c d"),
        ("a\u{0}b\u{1C}c\u{7F}d", "abcd"),
        ("a\u{200B}b\u{FEFF}c\u{AD}d\u{2060}e\u{180E}f", "abcdef"),
        ("a\u{E000}b\u{F8FF}c\u{100000}d", "abcd"),
        ("a\u{FFFE}b\u{FDD0}c\u{1FFFF}d", "abcd"),
        ("a\u{FFF9}b\u{FFFA}c\u{FFFB}d", "abcd"),
        ("\u{202E}gpj.exe\u{202C}", "gpj.exe"),
        ("e\u{301}", "é"),
        ("e\u{200B}\u{301}", "é"),
        ("\u{3164}\u{115F}a", "a"),
        ("\u{FFFD}\u{FFFC}", "\u{FFFD}\u{FFFC}"),
    ] {
        assert_eq!(clean(text), expected, "{text:?}");
    }
}

#[test]
fn joiners_stay_where_they_join() {
    for (text, expected) in [
        ("می\u{200C}شود", "می\u{200C}شود"),
        ("می\u{200C}\u{200C}شود", "می\u{200C}شود"),
        ("می\u{200C}\u{200B}شود", "می\u{200C}شود"),
        ("می\u{200C} شود", "می شود"),
        ("\u{200C}شود\u{200C}", "شود"),
        ("می\u{200C}a", "میa"),
        ("a\u{200D}b", "ab"),
        ("क\u{94D}\u{200D}ष", "क\u{94D}\u{200D}ष"),
        ("👨\u{200D}👩\u{200D}👧", "👨\u{200D}👩\u{200D}👧"),
        ("👁\u{FE0F}\u{200D}🗨\u{FE0F}", "👁\u{FE0F}\u{200D}🗨\u{FE0F}"),
        ("1\u{200D}2", "12"),
    ] {
        assert_eq!(clean(text), expected, "{text:?}");
    }
}

#[test]
fn styles_stay_behind_emoji_and_tags_in_flags() {
    let scotland = "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}";
    for (text, expected) in [
        ("❤\u{FE0F}", "❤\u{FE0F}"),
        ("❤\u{FE0F}\u{FE0F}", "❤\u{FE0F}"),
        ("1\u{FE0F}\u{20E3}", "1\u{FE0F}\u{20E3}"),
        ("a\u{FE0F}\u{FE0E}", "a"),
        ("❤ \u{FE0F}x", "❤ x"),
        (scotland, scotland),
        ("🏴\u{E0067}\u{E0062}\u{E007F}", "🏴"),
        (
            "🏴\u{E0061}\u{E0061}\u{E0061}\u{E0061}\u{E0061}\u{E0061}\u{E0061}\u{E007F}",
            "🏴",
        ),
        ("🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}", "🏴"),
        ("docs\u{E0064}\u{E0065}\u{E006C}\u{E007F}", "docs"),
        ("🏴\u{E0020}\u{E0021}\u{E0022}\u{E007F}", "🏴"),
    ] {
        assert_eq!(clean(text), expected, "{text:?}");
    }
}

#[test]
fn the_quotation_of_a_reply_goes_with_one_blank_line() {
    for (body, expected) in [
        ("> <@a:b.c> one\n> two\n\nyes", "yes"),
        (">one\r\n\r\nyes", "yes"),
        ("> one\nyes", "yes"),
        ("> one\n\n\nyes", "\nyes"),
        ("yes\n> one", "yes\n> one"),
        ("\n> one\n\nyes", "yes"),
        ("\r\n \n> one\n> two\nyes", "yes"),
        ("\u{200B}\n\u{2060}> one\n\u{200B}\nyes", "yes"),
        ("\u{200B}> one\n\u{FEFF}>two\n\nyes", "yes"),
        ("\n\nyes", "\n\nyes"),
        ("> one", ""),
        ("> one\n\n> mine", "> mine"),
    ] {
        assert_eq!(without_quotation(body), expected, "{body:?}");
    }
}

#[test]
fn only_a_reply_has_a_quotation() {
    let said = |reply| {
        let written = Written {
            body: "> one\n\nyes?",
            emote: false,
            reply,
            prefix: "!",
        };
        let room = super::Room::new().sends("mira", prepare(&written));
        room.said_in_short()
    };
    assert_eq!(said(true), ["mira: question: yes?"]);
    assert_eq!(said(false), ["mira: question: > one yes?"]);
}

#[test]
fn what_says_nothing_is_no_line() {
    for nothing in [
        "",
        " ",
        "...",
        "\u{200B}",
        "---",
        "😀\u{0}".trim_start_matches('😀'),
        "。。。",
        "&",
        "> ",
        "\u{2800}",
        "→",
        "*",
        "#",
        "؟",
        "¿",
        "¡",
        "‽",
        "¿؟…",
        "#\u{FE0F}",
        "\u{20E3}",
    ] {
        assert_eq!(prepare(&super::written_as(nothing)), None, "{nothing:?}");
    }
    for something in [
        "a",
        "1",
        "½",
        "?",
        "!",
        "！",
        "？",
        "⁉",
        "︖",
        "#\u{FE0F}\u{20E3}",
        "*\u{20E3}",
        "👍",
        "❤",
        "❤\u{FE0F}",
        "1\u{FE0F}\u{20E3}",
        "你",
        "🇩🇪",
    ] {
        assert!(
            prepare(&super::written_as(something)).is_some(),
            "{something:?}"
        );
    }
}

#[test]
fn a_command_about_agents_is_no_line() {
    for command in [
        "!agents",
        "!agents off",
        "!AGENTS on",
        " !agents\noff",
        "!agents: off",
        "!ag\u{200B}ents off",
    ] {
        assert_eq!(prepare(&super::written_as(command)), None, "{command:?}");
    }
    for chat in [
        "!agentsoff",
        "!deploy prod",
        "the !agents command",
        "agents off",
        "!agents-x",
    ] {
        assert!(prepare(&super::written_as(chat)).is_some(), "{chat:?}");
    }
    let written = Written {
        prefix: "bot, ",
        ..super::written_as("bot, agents off")
    };
    assert_eq!(prepare(&written), None);
}

#[test]
fn line_breaks_become_blanks() {
    assert_eq!(
        shown("one\r\n\r\ntwo\u{2029}three").unwrap(),
        "one two three"
    );
}
