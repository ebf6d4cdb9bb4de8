//! What holds for every text and all options.

use proptest::prelude::*;

use super::super::text;
use super::{COLOURS, options, outcome};
use crate::contract::CardOption;
use crate::reply::{Choice, MatchedBy, Options, read_option};

/// Text that comes near an answer more often than chance would.
pub(super) fn near_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "1", "2", "3", "#", "red", "Green", "BLUE", "or", "and", ",", "/", "&", "the", "one",
            "first", "last", "option", "no.", "please", "pick", "i choose", "not", "?", "!", ".",
            "(", ")", "*", "`", ">", "-", "\u{200D}", "️", "①", "۲", "²", "👍🏽", "q1", ":", "\n",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,3}",
    ];
    prop::collection::vec((piece, prop::bool::ANY), 0..8).prop_map(|pieces| {
        let mut text = String::new();
        for (piece, blank) in pieces {
            text.push_str(&piece);
            text.push_str(if blank { " " } else { "" });
        }
        text
    })
}

fn any_options() -> impl Strategy<Value = Vec<CardOption>> {
    let name = prop_oneof![near_text(), "[a-c1-4]{1,2}", "\\PC{0,6}"];
    prop::collection::vec((name.clone(), name), 0..6).prop_map(|list| {
        list.into_iter()
            .map(|(id, label)| CardOption { id, label })
            .collect()
    })
}

fn normal(text: &str) -> String {
    text::folded(&text::shown(text))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_and_no_options_break_the_reading(list in any_options(), text in any::<String>(), near in near_text()) {
        for text in [text, near] {
            for directed in [false, true] {
                let _ = outcome(&list, &text, directed);
            }
            prop_assert!(crate::reply::suggest(&text, &Options::new(&list)).len() <= 3);
        }
    }

    #[test]
    fn the_normal_form_is_at_rest(text in any::<String>(), near in near_text()) {
        for text in [text, near] {
            let once = normal(&text);
            prop_assert_eq!(normal(&once), once);
        }
    }

    #[test]
    fn the_strict_reading_chooses_only_what_the_text_is(list in any_options(), near in near_text()) {
        let options = Options::new(&list);
        if let Choice::Choose { index, .. } = read_option(&near, &options, false).choice {
            let said = normal(&near);
            let (start, end) = text::core(&said);
            let core = &said[start..end];
            let number = (index + 1).to_string();
            let fits = |name: &str| {
                let name = normal(name);
                let (start, end) = text::core(&name);
                name == said || name[start..end] == *core
            };
            prop_assert!(
                core == number || core == format!("#{number}")
                    || fits(&list[index].id) || fits(&list[index].label),
                "{near:?} chose {index} of {list:?}"
            );
        }
    }

    #[test]
    fn a_directed_reading_never_chooses_another_option_than_the_strict_one(list in any_options(), near in near_text()) {
        let options = Options::new(&list);
        let strict = read_option(&near, &options, false).choice;
        if strict != Choice::None {
            prop_assert_eq!(read_option(&near, &options, true).choice, strict);
        }
    }

    /// Pain: dot.
    #[test]
    fn a_printed_number_chooses_its_option(count in 1_usize..=50, nth in 0_usize..50) {
        let index = nth % count;
        let list: Vec<CardOption> = (0..count)
            .map(|i| CardOption { id: format!("id-{i}x"), label: format!("Label {i}x") })
            .collect();
        let options = Options::new(&list);
        let number = index + 1;
        let chosen = Choice::Choose { index, by: MatchedBy::Number };
        for text in [format!("{number}"), format!("#{number}"), format!("{number}."), format!(" ({number}) ")] {
            prop_assert_eq!(&read_option(&text, &options, false).choice, &chosen, "{}", text);
        }
        let by_id = read_option(&list[index].id, &options, false).choice;
        prop_assert_eq!(by_id, Choice::Choose { index, by: MatchedBy::Id });
        let by_label = read_option(&list[index].label.to_uppercase(), &options, false).choice;
        prop_assert_eq!(by_label, Choice::Choose { index, by: MatchedBy::Label });
    }

    #[test]
    fn wrapping_marks_change_no_choice(
        inner in prop::sample::select(vec!["1", "red", "Green", "#2", "BLUE"]),
        open in "[(\\[{\"'*_`“«„]{0,3}",
        close in "[)\\]}\"'*_`”»!.,:;]{0,3}",
    ) {
        let list = options(&COLOURS);
        let bare = outcome(&list, inner, false);
        prop_assert_eq!(outcome(&list, &format!("{open}{inner}{close}"), false), bare);
    }

    #[test]
    fn one_more_word_never_chooses(
        inner in prop::sample::select(vec!["1", "red", "option 2", "the last one", "go with green"]),
        word in "[a-z]{1,8}",
        first in prop::bool::ANY,
    ) {
        const GRAMMAR: [&str; 10] = [
            "please", "pls", "thanks", "the", "option", "one", "pick", "number", "choice", "no",
        ];
        prop_assume!(!GRAMMAR.contains(&word.as_str()));
        let text = if first { format!("{word} {inner}") } else { format!("{inner} {word}") };
        let read = outcome(&options(&COLOURS), &text, true);
        prop_assert!(read == "none" || read.starts_with("ask"), "{text} was read as {read}");
    }
}
