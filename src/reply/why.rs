//! A few words on why a text was read as it was, for whoever wonders.

use super::option::{Options, Typed};
use super::{MatchedBy, text};

pub(crate) fn chosen(by: MatchedBy) -> &'static str {
    match by {
        MatchedBy::Number => "the number of one option",
        MatchedBy::Id => "the id of one option",
        MatchedBy::Label => "the label of one option",
        MatchedBy::Text => "the text itself",
    }
}

/// Why a text said to the bot names no option.
pub(crate) fn nothing(typed: &Typed, written: &str, options: &Options) -> &'static str {
    const AGREEMENT: [&str; 12] = [
        "yes",
        "y",
        "yep",
        "ok",
        "okay",
        "sure",
        "go ahead",
        "do it",
        "yes please",
        "fine",
        "agreed",
        "sounds good",
    ];
    let said = typed.core();
    if text::asks(written) {
        "a question is no answer"
    } else if said.is_empty() {
        "nothing but punctuation"
    } else if said.bytes().all(|byte| byte.is_ascii_digit()) {
        if said.starts_with('0') {
            "no number as printed"
        } else {
            "no option has this number"
        }
    } else if negates(said) {
        "a negation chooses nothing"
    } else if AGREEMENT.contains(&said) {
        "agreement names no option"
    } else if typed.normal.starts_with('>') {
        "a quotation is no answer"
    } else if names_among_more(said, options) {
        "an option and something more"
    } else {
        "names no option"
    }
}

/// Whether the words say "not".
pub(crate) fn negates(said: &str) -> bool {
    const NEGATIONS: [&str; 15] = [
        "not", "no", "never", "none", "neither", "nor", "without", "except", "dont", "don't",
        "don’t", "cannot", "can't", "can’t", "nope",
    ];
    let words = said.split([' ', ',', '.', ';', ':', '!']);
    let excepted = words
        .clone()
        .zip(words.clone().skip(1))
        .any(|pair| matches!(pair, ("anything" | "everything" | "all" | "any", "but")));
    excepted || words.into_iter().any(|word| NEGATIONS.contains(&word))
}

/// Whether the text holds an option's id or label as whole words.
fn names_among_more(said: &str, options: &Options) -> bool {
    options
        .entries()
        .iter()
        .any(|entry| holds_words(said, &entry.id.normal) || holds_words(said, &entry.label.normal))
}

/// Whether `name` stands in the text with no letter or digit right before or after it.
pub(crate) fn holds_words(text: &str, name: &str) -> bool {
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            ![before, after]
                .into_iter()
                .flatten()
                .any(char::is_alphanumeric)
        })
}
