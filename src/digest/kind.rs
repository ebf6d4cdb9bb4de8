//! What a line is: a question, a suggestion or a reaction (digest.md, 8).

use super::Kind;
use super::letters;
use super::letters::{is_han, is_letter};
use super::lexicon::{Entries, LEXICON, past_blank, word_at};

/// What the kind of a line depends on.
pub(super) struct Asked<'a> {
    /// The text without code and links.
    pub(super) words: &'a str,
    /// The match text of the same.
    pub(super) matched: &'a str,
    /// Whether the text has a link or code.
    pub(super) linked_or_code: bool,
    /// Whether the text has nothing but emoji and signs, `@names` aside.
    pub(super) wordless: bool,
    /// Whether it is an `m.emote`.
    pub(super) emote: bool,
}

/// The kind of a line.
pub(super) fn kind(asked: &Asked<'_>) -> Kind {
    if has_question_mark(asked.words) {
        return Kind::Question;
    }
    let start = past_opening(asked.matched);
    let exclaims = LEXICON
        .exclaim_start
        .longest_at(asked.matched, start)
        .is_some();
    if !exclaims && asks_in_words(asked.words, asked.matched, start) {
        return Kind::Question;
    }
    if asked.emote {
        return Kind::Reaction;
    }
    let brief = || asked.matched[start..].split(' ').count() <= 8;
    let reacts = !asked.linked_or_code
        && (asked.wordless || (exclaims && brief()) || is_wholly_cheering(asked.matched));
    if reacts {
        Kind::Reaction
    } else {
        Kind::Suggestion
    }
}

/// A letter, and a mark that asks. A `?` before a letter, a digit, `=`, `&` or `.x` is a part of
/// an address or of a pattern.
fn has_question_mark(words: &str) -> bool {
    let asks = words.char_indices().any(|(at, c)| match c {
        '?' => {
            let mut after = words[at + 1..].chars();
            match after.next() {
                Some('=' | '&') => false,
                Some('.') => !after.next().is_some_and(is_letter),
                Some(c) => !c.is_ascii_alphanumeric(),
                None => true,
            }
        }
        c => letters::asks(c),
    });
    asks && words.contains(is_letter)
}

/// Past what a question may begin with: a greeting with those greeted, the agent's name, a
/// please, a filler.
fn past_opening(matched: &str) -> usize {
    let lexicon = &*LEXICON;
    let mut at = 0;
    loop {
        if let Some(end) = lexicon.greeting_prefix.longest_at(matched, at) {
            at = past_blank(matched, end);
            while let Some(end) = lexicon.vocative.longest_at(matched, at) {
                at = past_blank(matched, end);
            }
            continue;
        }
        let lists = [&lexicon.agent_names, &lexicon.please, &lexicon.filler];
        let Some(end) = lists.iter().find_map(|list| list.longest_at(matched, at)) else {
            return at;
        };
        at = past_blank(matched, end);
    }
}

/// Whether a match text is a question by its words, whatever is said around it.
pub(super) fn is_question(matched: &str) -> bool {
    asks_in_words(matched, matched, past_opening(matched))
}

fn asks_in_words(words: &str, matched: &str, start: usize) -> bool {
    let lexicon = &*LEXICON;
    if lexicon.start.longest_at(matched, start).is_some() || asks_by_verb(matched, start) {
        return true;
    }
    if words.is_ascii() {
        // The lists below have no word in ASCII (a test holds it).
        return false;
    }
    matched
        .split(' ')
        .any(|word| lexicon.anywhere_word.contains(word))
        || (words.contains(is_han) && asks_in_chinese(words))
}

/// By two words of English or German: a verb before its subject, or a question word before a verb.
fn asks_by_verb(matched: &str, start: usize) -> bool {
    let lexicon = &*LEXICON;
    let first = word_at(matched, start);
    let second = word_at(matched, past_blank(matched, start + first.len()));
    if first.is_empty() || second.is_empty() {
        return false;
    }

    (lexicon.en_wh.contains(first) && lexicon.en_aux.contains(second))
        || (lexicon.en_aux.contains(first)
            && (lexicon.en_person.contains(second)
                || (lexicon.en_thing.contains(second)
                    && !lexicon.en_not_before_thing.contains(first))))
        || (lexicon.de_verb.contains(first) && lexicon.de_subject.contains(second))
        || (first == "was" && lexicon.de_was_next.contains(second))
}

fn asks_in_chinese(words: &str) -> bool {
    let lexicon = &*LEXICON;
    let mut text = words.to_owned();
    for entry in &lexicon.contains_not {
        if text.contains(entry.as_str()) {
            text = text.replace(entry.as_str(), "");
        }
    }
    if lexicon
        .contains
        .iter()
        .any(|entry| text.contains(entry.as_str()))
    {
        return true;
    }
    lexicon.clause_end.iter().any(|entry| {
        words
            .match_indices(entry.as_str())
            .any(|(at, _)| !words[at + entry.len()..].starts_with(is_letter))
    })
}

/// Nothing but greetings, cheers, laughter, intensifiers and vocatives, and at least one cheer or
/// laugh.
fn is_wholly_cheering(matched: &str) -> bool {
    let lexicon = &*LEXICON;
    let mut cheered = false;
    let mut at = 0;
    while at < matched.len() {
        let end = |list: &Entries| list.longest_at(matched, at);
        let (end, cheers) = if let Some(end) = end(&lexicon.greeting) {
            (end, false)
        } else if let Some(end) = end(&lexicon.cheer).or_else(|| laughter_at(matched, at)) {
            (end, true)
        } else if let Some(end) = end(&lexicon.intensifier).or_else(|| end(&lexicon.vocative)) {
            (end, false)
        } else {
            return false;
        };
        cheered |= cheers;
        at = past_blank(matched, end);
    }
    cheered
}

/// Where the laughter ends that stands at a place where a word may begin.
pub(super) fn laughter_at(matched: &str, at: usize) -> Option<usize> {
    let rest = &matched[at..];
    if rest.starts_with(is_han) {
        return LEXICON.laugh_start.find(rest).map(|laugh| at + laugh.end());
    }
    let word = word_at(matched, at);
    LEXICON.laughs(word).then_some(at + word.len())
}
