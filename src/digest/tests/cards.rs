//! digest.md, 3: answers to cards are the cards'.

use super::super::{Choice, answers};

fn options() -> Vec<Choice> {
    [
        ("run_them", "Run the tests"),
        ("skip", "Skip them"),
        ("c", "C"),
        ("cpp", "C++"),
        ("none", ""),
    ]
    .map(|(id, label)| Choice {
        id: id.to_owned(),
        label: label.to_owned(),
    })
    .to_vec()
}

#[test]
fn a_number_an_id_or_a_label_answers() {
    for text in [
        "1",
        "2.",
        "(3)",
        "#1",
        "۲",
        "２",
        "1\u{FE0F}\u{20E3}",
        "05",
        "skip",
        "SKIP!",
        "run_them",
        "run them",
        "Run the tests.",
        "run  the\ntests",
        "1. Run the tests",
        "1) run_them",
        "c++",
        "C",
        "5",
    ] {
        assert!(answers(text, false, &options()), "{text:?}");
    }
}

#[test]
fn anything_else_is_chat() {
    for text in [
        "",
        "0",
        "6",
        "1 2",
        "-1",
        "1.5",
        "2?",
        "skip?",
        "run the tests only on linux",
        "2. Run the tests",
        "c+",
        "> 1",
        "one",
        "...",
    ] {
        assert!(!answers(text, false, &options()), "{text:?}");
    }
    assert!(!answers("1", false, &[]));
}

#[test]
fn what_a_reply_quotes_does_not_answer() {
    assert!(answers(
        "> <@agent:example.org> which?\n\n2",
        true,
        &options()
    ));
    assert!(!answers("> 2\n\nlater", true, &options()));
    assert!(!answers("> which?\n\n2", false, &options()));
}
