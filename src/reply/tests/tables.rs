//! Texts and what they choose, beyond the corpus.

use super::{COLOURS, all_read, none_chosen, options, outcome};

#[test]
fn numbers_in_words_and_forms_choose() {
    all_read(
        &COLOURS,
        &[
            ("Option two", "number green"),
            ("option #2", "number green"),
            ("number one", "number red"),
            ("No. 2", "number green"),
            ("no.2", "number green"),
            ("# 2", "number green"),
            ("the option 2", "number green"),
            ("the number 2 option", "number green"),
            ("the second option!", "number green"),
            ("2nd one", "number green"),
            ("The Last", "number blue"),
            ("the second to last one", "number green"),
            ("second-to-last", "number green"),
            ("last, please", "number blue"),
            ("three", "number blue"),
            ("the two one", "number green"),
            ("**option 2**", "number green"),
        ],
    );
}

#[test]
fn lead_ins_and_courtesies_leave_what_they_surround() {
    all_read(
        &COLOURS,
        &[
            ("Let’s go with RED", "id red"),
            ("lets go with the first one, please", "number red"),
            ("pick **2**", "number green"),
            ("answer:2", "number green"),
            ("Answer: green.", "id green"),
            ("my answer is: blue", "id blue"),
            ("I choose “red”, pls!", "id red"),
            ("please go with #3, thanks", "number blue"),
            ("my answer is one", "number red"),
            ("Please, red", "id red"),
        ],
    );
    all_read(
        &[("A", "Upper"), ("a", "Lower")],
        &[
            ("I choose A", "id A"),
            ("`a`", "id a"),
            ("a please", "id a"),
        ],
    );
}

#[test]
fn what_is_left_over_never_chooses() {
    none_chosen(
        &COLOURS,
        &[
            "the one",
            "pick one",
            "pick one please",
            "any one",
            "one of them",
            "one second",
            "just a second",
            "a second",
            "two one",
            "no 2",
            "not 2",
            "no, 2",
            "not the first one",
            "the first one?",
            "2?",
            "2؟",
            "red\u{37E}",
            "red?!",
            "(red?)",
            "red, not blue",
            "neither red nor blue",
            "I choose not red",
            "I would choose red",
            "please don't",
            "please",
            "thanks",
            "go with",
            "go with it",
            "answer",
            "both",
            "2 minutes please",
            "in 2",
            "+1",
            "1%",
            "$1",
            "/1",
            ".1",
            ",2",
            "-2",
            "−2",
            "1-2",
            "1–3",
            "1st2nd",
            "1th",
            "2st",
            "½",
            "01",
            "007",
            "#01",
            "option 02",
            "99999999999999999999999",
            "#99999999999999999999999",
            "fourth",
            "option 4",
            "ten",
            "1 or 4",
            "red or purple",
            "red red",
            "red, red",
            "1 or red",
            "red blue",
            "red - blue",
            "red+blue",
            "red and",
            "or red",
            "~~red~~",
            "!red",
            "> red",
            "> quoted\n\nred",
            "1. Red",
            "red (1)",
            "the red one",
            "yes",
            "👍",
            "👍 1",
            "ｒｅｄ　ｉｓｈ",
            "rеd", // with a Cyrillic letter
        ],
    );
}

#[test]
fn two_or_more_options_ask() {
    all_read(
        &COLOURS,
        &[
            ("1 or 2", "ask red green"),
            ("3, 1", "ask red blue"),
            ("1,2", "ask red green"),
            ("1/2.", "ask red green"),
            ("#1 #3", "ask red blue"),
            ("1 2 3", "ask red green blue"),
            ("①②", "ask red green"),
            ("red, green, or maybe blue", "ask red green blue"),
            ("red, and blue please", "ask red blue"),
            ("let's go with red or blue", "ask red blue"),
            ("first or last", "ask red blue"),
            ("one or two", "ask red green"),
            ("the red or the blue one", "ask red blue"),
            ("2 & blue", "ask green blue"),
            ("(red/blue)", "ask red blue"),
        ],
    );
    let list = options(&COLOURS);
    for text in ["1 or 2", "1 2", "red and blue", "①②"] {
        assert_eq!(outcome(&list, text, false), "none", "{text}");
    }
}

#[test]
fn a_label_may_hold_joiners() {
    let list = [
        ("go", "Save and exit"),
        ("keep", "Save, or keep"),
        ("no", "Do nothing"),
    ];
    all_read(
        &list,
        &[
            ("save and exit", "label go"),
            ("save or keep", "label keep"),
            ("save and exit or do nothing", "ask go no"),
            ("save, or keep, or save and exit", "ask go keep"),
            ("save and", "none"),
            ("save", "none"),
        ],
    );
}

#[test]
fn a_name_that_speaks_of_another_place_asks() {
    let list = options(&[
        ("a", "2nd"),
        ("b", "No. 1"),
        ("c", "Option Two"),
        ("d", "Fourth"),
    ]);
    for directed in [false, true] {
        for (text, expected) in [
            ("2nd", "ask a b"),
            ("no. 1", "ask a b"),
            ("option two", "ask b c"),
            ("fourth", "label d"),
            ("#2", "number b"),
        ] {
            assert_eq!(outcome(&list, text, directed), expected, "{text}");
        }
    }
    all_read(
        &[("x", "(2)"), ("y", "Second"), ("z", "#1")],
        &[
            ("(2)", "ask x y"),
            ("2.", "number y"),
            ("#1", "number x"),
            ("second", "label y"),
        ],
    );
}

#[test]
fn number_words_yield_to_names() {
    let list = [("both", "Both"), ("x", "First"), ("y", "Second")];
    all_read(
        &list,
        &[
            ("first", "label x"),
            ("first, please", "label x"),
            ("the first one", "ask both x"),
            ("the first option", "number both"),
            ("option two", "number x"),
            ("last", "number y"),
        ],
    );
    all_read(
        &[("y", "Yes"), ("n", "No")],
        &[("no. 1", "ask y n"), ("no, thanks", "label n")],
    );
}

#[test]
fn labels_may_be_typed_without_their_marks_where_that_is_harmless() {
    all_read(
        &[
            ("a", "Don’t deploy!"),
            ("b", "✅ Ship it"),
            ("c", "Re-run (all)"),
            ("d", "Node.js"),
        ],
        &[
            ("dont deploy", "label a"),
            ("don't deploy", "label a"),
            ("I choose ship it", "label b"),
            ("rerun all", "label c"),
            ("re run all", "label c"),
            ("nodejs", "label d"),
            ("deploy", "none"),
        ],
    );
    let list = [
        ("x", "C++"),
        ("y", "v1.2"),
        ("z", "-5"),
        ("w", "!prod"),
        ("p", "80%"),
        ("q", "Step 1.5"),
    ];
    none_chosen(
        &list,
        &["c", "v12", "v1 2", "prod", "80", "step 15", "step 1 5"],
    );
    all_read(
        &list,
        &[("5", "number p"), ("c++", "label x"), ("80%", "label p")],
    );
    let compared = [("lt", "A < B"), ("gt", "A > B"), ("unk", "A ??? B")];
    none_chosen(&compared, &["a b", "A B"]);
    none_chosen(&[("x", "Yes, go"), ("y", "Yes: go")], &["yes go"]);
    none_chosen(
        &[("no", "No deploy"), ("yes", "Go")],
        &["no, deploy", "no. deploy"],
    );
}

#[test]
fn undirected_talk_needs_the_bare_name() {
    let list = options(&[("keep", "Yes, keep it"), ("delete", "Yes, delete it")]);
    for text in [
        "yes delete it",
        "option 2",
        "2nd",
        "second",
        "2 please",
        "answer: 2",
        "# 2",
    ] {
        assert_eq!(outcome(&list, text, false), "none", "{text}");
        assert_eq!(
            outcome(&list, text, true).split(' ').nth(1),
            Some("delete"),
            "{text}"
        );
    }
}

#[test]
fn marks_of_a_label_count_until_they_are_trimmed() {
    let list = options(&[("a", "Yes!"), ("b", "Yes"), ("c", "..."), ("d", "\u{200B}")]);
    for (text, expected) in [
        ("yes", "label b"),
        ("Yes!", "label a"),
        ("**Yes**", "label b"),
        ("**Yes!**", "ask a b"),
        ("...", "label c"),
        ("....", "none"),
        ("\u{200B}", "none"),
    ] {
        assert_eq!(outcome(&list, text, false), expected, "{text:?}");
    }
}

#[test]
fn ids_and_labels_of_different_options_ask() {
    let list = options(&[("A", "a"), ("a", "b"), ("b", "C")]);
    for (text, expected) in [
        ("a", "ask A a"),
        ("A", "id A"),
        ("b", "ask a b"),
        ("c", "label b"),
        ("3", "number b"),
    ] {
        assert_eq!(outcome(&list, text, false), expected, "{text}");
    }
}

#[test]
fn a_very_long_text_is_no_option_and_costs_little() {
    let list = options(&COLOURS);
    for text in [
        "red ".repeat(20_000),
        "(".repeat(100_000) + "1",
        "1,".repeat(2000),
        "1 or ".repeat(800) + "2",
        "please ".repeat(500) + "1",
        "\u{200B}".repeat(50_000) + "1",
    ] {
        assert_eq!(outcome(&list, &text, true), "none");
    }
}
