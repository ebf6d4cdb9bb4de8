//! What holds for every message of every room; the fuzz targets hold the same of what they find.

use proptest::prelude::*;

use super::properties::near_text;
use crate::fuzzed;
use crate::reply::without_fallback;

/// One question as the format of the fuzz target writes it, out of so few names that questions
/// often share them.
fn question() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        "[a-c1-4]{1,2}",
        "(red|green|blue|Yes, do it|Option [1-4]|#[1-3]|\\PC{0,4})"
    ];
    let option = (name.clone(), name).prop_map(|(id, label)| format!("\n{id}\t{label}"));
    let flags = "o?v?f?m?[1-3]{0,2}";
    (flags, "q[1-4]|", prop::collection::vec(option, 0..4))
        .prop_map(|(flags, tag, options)| format!("\n?{flags} {tag}{}", options.concat()))
}

/// What may stand before the words proper.
fn opening() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "",
        "",
        "q1 ",
        "Q2: ",
        "> <@elicit:example.org> 1. Red\n> 2. Green\n\n",
        "> ",
        ">",
        "@elicit:example.org: ",
        "Elicit Bot, ",
        "elicit ",
        "[Elicit](https://matrix.to/#/@elicit:example.org) ",
        "[not 1], [Elicit](https://matrix.to/#/@elicit:example.org) ",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn every_reading_speaks_of_what_is_there_and_of_what_was_said(
        flags in "m?a?(r[1-3])?(t[1-3])?f?",
        questions in prop::collection::vec(question(), 0..4),
        opening in opening(),
        text in near_text(),
    ) {
        let room = format!("{flags}{}\n=\n{opening}{text}", questions.concat());
        fuzzed::reply::check(room.as_bytes());
    }

    /// Pain: fallback.
    #[test]
    fn stripping_takes_a_quotation_and_no_more(opening in opening(), near in near_text(), text in any::<String>()) {
        for text in [near, text] {
            fuzzed::fallback::check(format!("{opening}{text}").as_bytes());
        }
    }

    /// Pain: fallback.
    #[test]
    fn what_is_said_after_any_quotation_is_left_as_it_is(
        quoted in prop::collection::vec("[^\n\r]{0,12}", 1..5),
        end in prop::sample::select(vec!["\n", "\r\n"]),
        text in any::<String>(),
    ) {
        let fallback: String = quoted.iter().flat_map(|line| ["> ", line, end]).collect();
        let message = format!("{fallback}{end}{text}");
        prop_assert_eq!(without_fallback(&message), text);
    }
}
