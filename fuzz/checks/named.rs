//! Whether a text really names an option: a judge of choices that knows nothing of how they are
//! made. It is coarser than the rules (it looks at letters and digits alone), so what it objects
//! to is a wrong choice, while not everything that it lets pass would be chosen.

use icu_normalizer::DecomposingNormalizerBorrowed;

use crate::contract::CardOption;
use crate::reply::normal_form;

/// The words that may stand around what is named, each in letters alone.
const AROUND: [&str; 22] = [
    "the",
    "one",
    "option",
    "number",
    "choice",
    "no",
    "please",
    "pls",
    "thanks",
    "ichoose",
    "gowith",
    "letsgowith",
    "pick",
    "myansweris",
    "answer",
    "letgowith",
    "st",
    "nd",
    "rd",
    "th",
    "i",
    "let",
];
const CARDINALS: [&str; 10] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
];
const ORDINALS: [&str; 10] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
];

/// Letters and digits of the normal form, accents taken apart and left out.
fn bare(text: &str) -> String {
    DecomposingNormalizerBorrowed::new_nfkd()
        .normalize(&normal_form(text))
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}

/// The normal form without whatever stands around its letters and digits.
fn trimmed(text: &str) -> String {
    let normal = normal_form(text);
    let inner = normal.trim_matches(|c: char| !c.is_alphanumeric());
    if inner.is_empty() {
        normal
    } else {
        inner.to_owned()
    }
}

/// Whether the whole text, marks around it aside, is the option's number, id or label.
pub fn is_whole(text: &str, options: &[CardOption], index: usize) -> bool {
    let said = trimmed(text);
    let option = &options[index];
    let number = (index + 1).to_string();
    said == number
        || [&option.id, &option.label]
            .into_iter()
            // A name of marks alone, as `**`, is typed with more marks around it.
            .any(|name| {
                said == trimmed(name)
                    || (bare(name).is_empty() && normal_form(text).contains(&normal_form(name)))
            })
}

/// Whether the text, with `more` words allowed around it, is a way to say the option.
pub fn is_said(text: &str, options: &[CardOption], index: usize, more: &[String]) -> bool {
    let option = &options[index];
    let mut names = vec![
        (index + 1).to_string(),
        bare(&option.id),
        bare(&option.label),
    ];
    names.extend(CARDINALS.get(index).map(|word| (*word).to_owned()));
    names.extend(ORDINALS.get(index).map(|word| (*word).to_owned()));
    if index + 1 == options.len() {
        names.push("last".to_owned());
    }
    if index + 2 == options.len() {
        names.push("secondtolast".to_owned());
    }
    let said = bare(text);
    let more: Vec<String> = more.iter().map(|word| bare(word)).collect();
    names.iter().any(|name| {
        (0..=said.len()).any(|at| {
            let (Some(before), Some(rest)) = (said.get(..at), said.get(at..)) else {
                return false;
            };
            rest.strip_prefix(name.as_str())
                .is_some_and(|after| is_around(before, &more) && is_around(after, &more))
        })
    })
}

/// Whether these letters are words that may stand around a name, one after the other.
fn is_around(letters: &str, more: &[String]) -> bool {
    // `ends[at]`: the letters up to there are such words.
    let mut ends = vec![false; letters.len() + 1];
    ends[0] = true;
    for at in 0..letters.len() {
        if !ends[at] {
            continue;
        }
        let words = AROUND
            .iter()
            .copied()
            .chain(more.iter().map(String::as_str));
        for word in words.filter(|word| !word.is_empty()) {
            if letters[at..].starts_with(word) {
                ends[at + word.len()] = true;
            }
        }
    }
    ends[letters.len()]
}

/// A mark that asks, in any of the scripts that have one.
pub fn asks(text: &str) -> bool {
    text.contains([
        '?', '¿', '？', '؟', '\u{37E}', '՞', '፧', '⁇', '⁈', '⁉', '‽', '⸮', '﹖',
    ])
}
