//! Near misses, for the reply that asks again. A suggestion never chooses.

use super::option::{Options, Typed};
use super::why::{holds_words, negates};

/// At most so many are suggested.
const MOST: usize = 3;
/// A longer text (bytes) is no near miss of anything.
const LONGEST_TEXT: usize = 256;
/// Names longer than this (characters) are not compared letter by letter.
const LONGEST_NAME: usize = 64;

/// How near a name is; the smaller the nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// Some letters wrong: `gren`.
    Misspelt(usize),
    /// The name begins so: `yes` of `Yes, keep it`.
    Beginning,
    /// The text is some words of the name, or the end of a word: `1.2` of `v1.2`.
    Part,
    /// The text holds the name and more: `staging, but only after 6pm`.
    Within,
}

/// The options (from 0) that a text which chose none may have meant: at most three,
/// the nearest first, and none where the text says "not".
pub fn suggest(text: &str, options: &Options) -> Vec<usize> {
    if text.len() > LONGEST_TEXT {
        return Vec::new();
    }
    let typed = Typed::new(text);
    let said = typed.core().trim_end_matches('?').trim_end();
    if said.is_empty() {
        return Vec::new();
    }
    let negated = negates(said);
    let mut near: Vec<(Nearness, usize)> = options
        .entries()
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| {
            let names = [entry.id.normal.as_str(), entry.label.normal.as_str()];
            let nearest = names
                .into_iter()
                .filter_map(|name| nearness(said, name))
                .filter(|&nearness| !(negated && nearness == Nearness::Within))
                .min()?;
            Some((nearest, index))
        })
        .collect();
    near.sort_unstable();
    near.truncate(MOST);
    near.into_iter().map(|(_, index)| index).collect()
}

fn nearness(said: &str, name: &str) -> Option<Nearness> {
    if name.is_empty() {
        return None;
    }
    let length = said.chars().count();
    let allowed = match length {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    // One digit off is another number, not a slip.
    let is_word = said.chars().any(char::is_alphabetic) && digits(said) == digits(name);
    if is_word && let Some(distance) = distance(said, name, allowed) {
        return Some(Nearness::Misspelt(distance));
    }
    if name.starts_with(said) && length > 1 {
        return Some(Nearness::Beginning);
    }
    if holds_words(name, said) || (length > 2 && name.ends_with(said)) {
        return Some(Nearness::Part);
    }
    // A bare number inside a sentence is hardly the option's name.
    let named = name.chars().any(|c| !c.is_ascii_digit());
    (named && holds_words(said, name)).then_some(Nearness::Within)
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// The letters to change, add, drop or swap with a neighbour, if at most `allowed`.
fn distance(a: &str, b: &str, allowed: usize) -> Option<usize> {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    if a.len().abs_diff(b.len()) > allowed || a.len().max(b.len()) > LONGEST_NAME {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|&distance| distance <= allowed)
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;

    fn suggested(list: &[(&str, &str)], text: &str) -> Vec<usize> {
        suggest(text, &Options::new(&options(list)))
    }

    const COLOURS: [(&str, &str); 3] = [("red", "Red"), ("green", "Green"), ("blue", "Blue")];

    #[test]
    fn slips_and_parts_are_suggested() {
        assert_eq!(suggested(&COLOURS, "gren"), [1]);
        assert_eq!(suggested(&COLOURS, "bleu"), [2]);
        assert_eq!(suggested(&COLOURS, "red?"), [0]);
        assert_eq!(suggested(&COLOURS, "2. Green"), [1]);
        assert_eq!(suggested(&COLOURS, "red, but a dark one"), [0]);
        let versions = [("v12", "v1.2"), ("v13", "v1.3"), ("v20", "v2.0")];
        assert_eq!(suggested(&versions, "1.2"), [0]);
        let answers = [("keep", "Yes, keep it"), ("delete", "Yes, delete it")];
        assert_eq!(suggested(&answers, "yes"), [0, 1]);
        let tests = [("run_them", "Run the tests"), ("skip", "Skip them")];
        assert_eq!(suggested(&tests, "run them"), [0]);
        let grades = [("g5", "Grade 5"), ("g9", "Grade 9")];
        assert_eq!(suggested(&grades, "9"), [1]);
        assert_eq!(suggested(&grades, "grade 8"), Vec::<usize>::new());
    }

    #[test]
    fn at_most_three_and_never_what_was_negated() {
        let many = ["Allow a", "Allow b", "Allow c", "Allow d"].map(|label| (label, label));
        assert_eq!(suggested(&many, "allow"), [0, 1, 2]);
        assert_eq!(suggested(&COLOURS, "not red"), Vec::<usize>::new());
        assert_eq!(suggested(&COLOURS, "anything but red"), Vec::<usize>::new());
        assert_eq!(suggested(&COLOURS, "purple"), Vec::<usize>::new());
        assert_eq!(suggested(&COLOURS, ""), Vec::<usize>::new());
        assert_eq!(
            suggested(&COLOURS, &"red ".repeat(200)),
            Vec::<usize>::new()
        );
    }
}
