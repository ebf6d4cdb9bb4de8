//! What makes two lines the same line (digest.md, 9). Equal keys group; nothing is fuzzy.

use std::collections::HashSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use unicode_segmentation::UnicodeSegmentation;

use super::folded::folded;
use super::letters::{EMOJI_STYLE, is_han, is_letter, is_wide_bracket};
use super::lexicon::{LEXICON, past_blank, word_at};
use super::line_spam::is_emoji_cluster;

/// Stands for a person in a text whose people are not known yet: private use, so no clean text
/// has it.
pub(super) const PERSON: char = '\u{E000}';

/// Begins what stands for laughter of any length.
const LAUGHTER: char = '\u{E001}';
/// Follows an agent's name that a colon follows.
const ADDRESSED: char = '\u{E004}';
/// Begins the key of a line of emoji.
const EMOJI_ALONE: char = '\u{E002}';
/// Begins the key of a line of signs.
const SIGNS_ALONE: char = '\u{E003}';

/// Half a SHA-256: lines of different words do not meet by chance, nor because someone seeks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(pub(super) u128);

impl Key {
    fn of(text: &str) -> Self {
        Self::from_digest(Sha256::new().chain_update(text))
    }

    /// The key of a line in which these people are named.
    pub(super) fn with<'a>(self, names: impl Iterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new().chain_update(self.0.to_be_bytes());
        for name in names {
            hash.update(folded(name));
            hash.update([0]);
        }
        Self::from_digest(hash)
    }

    fn from_digest(hash: Sha256) -> Self {
        let half = hash.finalize();
        let bytes = half.iter().take(16);
        Self(bytes.fold(0, |key, &byte| key << 8 | u128::from(byte)))
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// The key of a reduced text, in which people are written as [`PERSON`], and which of them it
/// depends on, by their order in the text. `folded` is the same text folded.
pub(super) fn key(reduced: &str, folded: &str) -> (Key, Vec<u16>) {
    let text = joined(folded);
    let start = past_opening(&text);
    let kept = without_please(&text[start..]);
    if !kept.is_empty() {
        return with_people(kept, text[..start].matches(PERSON).count());
    }
    // Nothing but what a line may begin or end with; or nothing but emoji and signs.
    if text.contains(is_letter) {
        return with_people(&text, 0);
    }
    let emoji = distinct_emoji(reduced);
    if !emoji.is_empty() {
        return (Key::of(&emoji), Vec::new());
    }
    if !text.is_empty() {
        return with_people(&text, 0);
    }
    let mut signs = String::from(SIGNS_ALONE);
    let mut known = HashSet::new();
    signs.extend(
        folded
            .chars()
            .filter(|&c| !c.is_whitespace() && known.insert(c)),
    );
    (Key::of(&signs), Vec::new())
}

fn with_people(text: &str, before: usize) -> (Key, Vec<u16>) {
    let named = text.matches(PERSON).count();
    let places = (before..before + named).filter_map(|place| u16::try_from(place).ok());
    (Key::of(text.trim_end_matches(ADDRESSED)), places.collect())
}

/// The words of a folded text without the marks at their edges, each letter and laugh that goes
/// on and on once.
fn joined(folded: &str) -> String {
    let mut text = String::with_capacity(folded.len());
    let mut words = 0;
    for written in folded.split([' ', '\u{A0}']) {
        let word = trimmed(written);
        if word.is_empty() {
            continue;
        }
        if words > 0 {
            text.push(' ');
        }
        words += 1;
        push_even(&mut text, word);
        if written.ends_with(':') && LEXICON.folded_agent_names.contains(word) {
            text.push(ADDRESSED);
        }
    }
    if words == 1 && LEXICON.laughs(&text) {
        // `666` is laughter where nothing else is said; elsewhere it is a number.
        return laugh(&text);
    }
    text
}

/// A word without the marks at its edges. A stop right before a digit stays: `.5` is not 5.
fn trimmed(written: &str) -> &str {
    let word = written.trim_end_matches(is_edge);
    let rest = word.trim_start_matches(is_edge);
    let start = word.len() - rest.len();
    if rest.starts_with(|c: char| c.is_ascii_digit()) && word[..start].ends_with(['.', ',']) {
        return &word[start - 1..];
    }
    rest
}

fn is_edge(c: char) -> bool {
    match c {
        '.' | ',' | ';' | ':' | '!' | '?' | '¡' | '¿' | '‽' | '\'' | '"' | '(' | ')' | '['
        | ']' | '{' | '}' | '–' | '—' | '*' | '_' | '`' => true,
        c => c > '\u{7F}' && !is_letter(c) && is_wide_bracket(c),
    }
}

fn push_even(text: &mut String, word: &str) {
    let laughs = |word: &str| LEXICON.laughs(word);
    if !word.starts_with(|c: char| c.is_ascii_digit()) && laughs(word) {
        text.push_str(&laugh(word));
        return;
    }
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        let mut times = 1;
        while chars.next_if_eq(&c).is_some() {
            times += 1;
        }
        if times >= 2 && is_han(c) && laughs(&format!("{c}{c}")) {
            text.extend([LAUGHTER, c]);
        } else if times >= 3 && is_letter(c) {
            text.push(c);
        } else {
            for _ in 0..times {
                text.push(c);
            }
        }
    }
}

/// One unit of a laugh.
fn laugh(word: &str) -> String {
    let mut unit = String::from(LAUGHTER);
    if let Some(syllable) = ["ha", "he", "hi", "ja", "je"]
        .into_iter()
        .find(|&syllable| word.starts_with(syllable))
    {
        unit.push_str(syllable);
    } else if word.chars().all(|c| matches!(c, 'l' | 'o')) {
        unit.push_str("lol");
    } else {
        let mut last = LAUGHTER;
        for c in word.chars().filter(|&c| c != LAUGHTER) {
            if c != last {
                unit.push(c);
            }
            last = c;
        }
    }
    unit
}

/// Past what does not change what is said: a greeting, `agent:`, an `@name`, a please.
fn past_opening(text: &str) -> usize {
    let lexicon = &*LEXICON;
    let mut at = 0;
    while at < text.len() {
        let word = word_at(text, at);
        let named = word.chars().eq([PERSON]) || word.ends_with(ADDRESSED);
        let end = [&lexicon.folded_greeting_prefix, &lexicon.folded_please]
            .iter()
            .find_map(|list| list.longest_at(text, at))
            .or_else(|| named.then_some(at + word.len()));
        let Some(end) = end else {
            break;
        };
        at = past_blank(text, end);
    }
    at
}

fn without_please(mut text: &str) -> &str {
    while let Some(rest) = LEXICON.folded_please.off_the_end(text) {
        text = rest;
    }
    text
}

/// The emoji of a text, each once, in order.
fn distinct_emoji(text: &str) -> String {
    if text.is_ascii() {
        return String::new();
    }
    let mut known = HashSet::new();
    let mut seen = Vec::new();
    for cluster in text
        .graphemes(true)
        .filter(|cluster| is_emoji_cluster(cluster))
    {
        let shape = cluster.trim_end_matches(EMOJI_STYLE);
        if known.insert(shape) {
            seen.push(shape);
        }
    }
    if seen.is_empty() {
        return String::new();
    }
    format!("{EMOJI_ALONE}{}", seen.join("\n"))
}
