//! What people write to deceive, or by accident: read as what it shows, or not at all.

use super::{COLOURS, options, outcome};
use crate::reply::{Bot, Message, Options, Question, Reading, TargetedBy, read};

/// Texts that show an option and something else, or something that only looks like one.
const DECEIVING: [&str; 21] = [
    "<b>red</b>",
    "<p>1</p>",
    "1<br>",
    "&#49;",
    "@room red",
    "@room 1",
    "javascript:red",
    "data:text/plain,red",
    "[red](javascript:alert(1))",
    "[1](https://evil.example/)",
    "https://evil.example/#1",
    "> red",
    ">1",
    "\u{FF1E}1",
    "red\ngreen",
    "1\n2",
    "r\u{435}d",
    "\u{433}\u{435}d",
    "l",
    "red\u{37E}",
    "ԁer",
];

#[test]
fn what_only_looks_like_an_option_or_holds_more_never_chooses() {
    let list = options(&COLOURS);
    for text in DECEIVING {
        for directed in [false, true] {
            let read = outcome(&list, text, directed);
            assert!(
                read == "none" || read.starts_with("ask"),
                "{text:?} was read as {read}"
            );
        }
    }
}

#[test]
fn what_cannot_be_seen_or_turns_the_text_around_changes_nothing() {
    let list = options(&COLOURS);
    for text in [
        "\u{202E}red",
        "\u{2066}red\u{2069}",
        "r\u{200B}e\u{200D}d",
        "\0red\u{7}",
        "\u{FEFF}RED\u{2028}",
        "\r\nred\r\n",
    ] {
        assert_eq!(outcome(&list, text, false), "id red", "{text:?}");
    }
    // What is turned around for the eye is read in the order in which it was written.
    assert_eq!(outcome(&list, "\u{202E}der", true), "none");
    assert_eq!(outcome(&list, "\u{202E}1 ro 2", true), "none");
}

#[test]
fn labels_that_look_alike_are_told_apart_by_number_and_never_guessed() {
    let cyrillic = [("a", "Europe"), ("b", "\u{415}urope")];
    assert_eq!(outcome(&options(&cyrillic), "europe", false), "label a");
    assert_eq!(
        outcome(&options(&cyrillic), "\u{435}UROPE", false),
        "label b"
    );
    for alike in [
        [("a", "Europe"), ("b", "Eu\u{200B}rope")],
        [("a", "Europe"), ("b", "EUROPE")],
        [("a", "Europe"), ("b", "\u{202E}Europe")],
        [("a", "Europe"), ("b", "Ｅｕｒｏｐｅ")],
        [("a", "Europe"), ("b", " Europe\n")],
    ] {
        let list = options(&alike);
        assert_eq!(outcome(&list, "Europe", false), "ask a b", "{alike:?}");
        assert_eq!(outcome(&list, alike[1].1, true), "ask a b", "{alike:?}");
        assert_eq!(outcome(&list, "2", false), "number b", "{alike:?}");
    }
    let ids = options(&[("go", "One way"), ("GO", "Another")]);
    assert_eq!(outcome(&ids, "GO", false), "id GO");
    assert_eq!(outcome(&ids, "go", false), "id go");
    assert_eq!(outcome(&ids, "Go", false), "ask go GO");
}

#[test]
fn a_label_of_lines_is_chosen_whole_and_its_second_line_is_no_option() {
    let list = options(&[("n", "Deny\n2. Approve"), ("g", "Approve")]);
    assert_eq!(outcome(&list, "Deny 2. Approve", false), "label n");
    assert_eq!(outcome(&list, "Deny\n2. Approve", false), "label n");
    assert_eq!(outcome(&list, "2", false), "number g");
    assert_eq!(outcome(&list, "Approve", false), "label g");
    for part in ["Deny", "2. Approve"] {
        assert_eq!(outcome(&list, part, true), "none", "{part}");
    }
}

/// One open question that takes texts, and a reply to its card.
fn replied(body: &str, list: &[(&str, &str)]) -> Reading {
    let options = Options::new(&options(list));
    let events = ["$card".to_owned()];
    let question = Question {
        open: true,
        visible: true,
        tag: "q1",
        options: &options,
        free_text: true,
        declinable: false,
        may_answer: true,
        events: &events,
    };
    let message = Message {
        body,
        in_reply_to: Some("$card"),
        ..Message::default()
    };
    let bot = Bot {
        user_id: "@elicit:example.org",
        display_name: Some("Elicit Bot"),
    };
    read(&message, &[question], &bot)
}

#[test]
fn a_hostile_text_is_an_answer_as_it_was_written() {
    for text in [
        "<script>alert(1)</script>",
        "@room everybody",
        "javascript:alert(1)",
        "\u{202E}evil",
        "'; DROP TABLE questions; --",
        "{\"option\": 1}",
        "a\0b\u{1B}[2Jc",
    ] {
        assert_eq!(
            replied(text, &[]),
            Reading::Text {
                question: 0,
                text: text.to_owned(),
                targeted_by: TargetedBy::Reply,
            },
            "{text:?}"
        );
    }
}

#[test]
fn a_text_of_nothing_that_can_be_seen_is_no_answer() {
    for text in [
        "",
        " \n\t",
        "\u{200B}",
        "\u{2800}",
        "\u{3164}\u{FE0F}",
        "\0\u{7}",
        "\u{202E}\u{2069}",
        "> quoted\n\n\u{2800}",
    ] {
        assert_eq!(
            replied(text, &COLOURS),
            Reading::Silence { why: "blank" },
            "{text:?}"
        );
    }
}
