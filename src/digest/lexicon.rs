//! The word lists of the digest (`lexicon.json`, normative) as they are looked up.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::folded::{folded, match_text};
use super::letters::is_han;

/// The file as it is written.
#[derive(Deserialize)]
pub(super) struct Written {
    greeting: Vec<String>,
    greeting_prefix: Vec<String>,
    vocative: Vec<String>,
    agent_names: Vec<String>,
    please: Vec<String>,
    filler: Vec<String>,
    cheer: Vec<String>,
    intensifier: Vec<String>,
    pub(super) laugh_regex: String,
    exclaim_start: Vec<String>,
    question: Question,
    pub(super) invite_regex: String,
    pub(super) solicit: Solicit,
}

#[derive(Deserialize)]
struct Question {
    start_word: Vec<String>,
    start_phrase: Vec<String>,
    anywhere_word: Vec<String>,
    contains: Vec<String>,
    contains_not: Vec<String>,
    clause_end: Vec<String>,
    en_wh: Vec<String>,
    en_aux: Vec<String>,
    en_person: Vec<String>,
    en_thing: Vec<String>,
    en_not_before_thing: Vec<String>,
    de_verb: Vec<String>,
    de_subject: Vec<String>,
    de_was_next: Vec<String>,
}

/// What tells a solicitation (digest.md, 7.9).
#[derive(Deserialize)]
pub(super) struct Solicit {
    money: Vec<String>,
    pub(super) amount_regex: String,
    pub(super) contact_regex: String,
    hook: Vec<String>,
}

/// The lists as they are written.
pub(super) static WRITTEN: LazyLock<Written> = LazyLock::new(|| {
    // Embedded, and read by every test there is.
    serde_json::from_str(include_str!("lexicon.json")).expect("the embedded lexicon is sound")
});

/// The lists as they are looked up.
pub(super) static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(&WRITTEN));

/// A pattern of the lexicon, ready to be looked for.
pub(super) fn pattern(written: &str) -> Regex {
    // Embedded too, and a test compiles each.
    Regex::new(written).expect("the embedded patterns are sound")
}

/// The lists, their entries as match text.
pub(super) struct Lexicon {
    pub(super) greeting: Entries,
    pub(super) greeting_prefix: Entries,
    pub(super) vocative: Entries,
    pub(super) agent_names: Entries,
    pub(super) please: Entries,
    pub(super) filler: Entries,
    pub(super) cheer: Entries,
    pub(super) intensifier: Entries,
    pub(super) exclaim_start: Entries,
    /// `start_word` and `start_phrase`.
    pub(super) start: Entries,
    pub(super) anywhere_word: HashSet<String>,
    pub(super) contains: Vec<String>,
    pub(super) contains_not: Vec<String>,
    pub(super) clause_end: Vec<String>,
    pub(super) en_wh: HashSet<String>,
    pub(super) en_aux: HashSet<String>,
    pub(super) en_person: HashSet<String>,
    pub(super) en_thing: HashSet<String>,
    pub(super) en_not_before_thing: HashSet<String>,
    pub(super) de_verb: HashSet<String>,
    pub(super) de_subject: HashSet<String>,
    pub(super) de_was_next: HashSet<String>,
    /// A whole word of laughter.
    laugh_word: Regex,
    /// All characters of laughter: no other word needs the pattern.
    laugh_letters: HashSet<char>,
    /// The ASCII ones among them, as bits.
    laugh_ascii: u128,
    /// Laughter at the beginning of a text, for scripts without blanks.
    pub(super) laugh_start: Regex,
    /// As keys are folded.
    pub(super) folded_greeting_prefix: Entries,
    /// As keys are folded.
    pub(super) folded_please: Entries,
    /// As keys are folded.
    pub(super) folded_agent_names: HashSet<String>,
    pub(super) money: Entries,
    /// Any of the hooks, in folded text.
    pub(super) hook: Regex,
}

impl Lexicon {
    fn new(written: &Written) -> Self {
        let entries = |list: &[String]| Entries::new(list, match_text);
        let words = |list: &[String]| Entries::new(list, match_text).into_words();
        let keyed = |list: &[String]| Entries::new(list, trimmed_fold);
        let question = &written.question;
        let mut contains_not = question.contains_not.clone();
        contains_not.sort_by_key(|entry| std::cmp::Reverse(entry.len()));
        let hooks: Vec<String> = variants(&written.solicit.hook)
            .map(|hook| regex::escape(folded(&hook).trim()))
            .collect();
        Self {
            greeting: entries(&written.greeting),
            greeting_prefix: entries(&written.greeting_prefix),
            vocative: entries(&written.vocative),
            agent_names: entries(&written.agent_names),
            please: entries(&written.please),
            filler: entries(&written.filler),
            cheer: entries(&written.cheer),
            intensifier: entries(&written.intensifier),
            exclaim_start: entries(&written.exclaim_start),
            start: entries(&[question.start_word.as_slice(), &question.start_phrase].concat()),
            anywhere_word: words(&question.anywhere_word),
            contains: question.contains.clone(),
            contains_not,
            clause_end: question.clause_end.clone(),
            en_wh: words(&question.en_wh),
            en_aux: words(&question.en_aux),
            en_person: words(&question.en_person),
            en_thing: words(&question.en_thing),
            en_not_before_thing: words(&question.en_not_before_thing),
            de_verb: words(&question.de_verb),
            de_subject: words(&question.de_subject),
            de_was_next: words(&question.de_was_next),
            laugh_word: pattern(&format!("^(?:{})$", written.laugh_regex)),
            // The pattern spells its letters out (a test holds it), so it holds all of them.
            laugh_letters: written.laugh_regex.chars().collect(),
            laugh_ascii: written
                .laugh_regex
                .bytes()
                .filter(u8::is_ascii_alphanumeric)
                .fold(0, |bits, b| bits | 1 << b),
            laugh_start: pattern(&format!("^(?:{})", written.laugh_regex)),
            folded_greeting_prefix: keyed(&written.greeting_prefix),
            folded_please: keyed(&written.please),
            folded_agent_names: keyed(&written.agent_names).into_words(),
            money: entries(&written.solicit.money),
            hook: pattern(&hooks.join("|")),
        }
    }
}

impl Lexicon {
    /// Whether a word is laughter.
    pub(super) fn laughs(&self, word: &str) -> bool {
        let of_laughter = |c: char| match u32::from(c) {
            code @ 0..128 => self.laugh_ascii >> code & 1 == 1,
            _ => self.laugh_letters.contains(&c),
        };
        word.len() > 1 && word.chars().all(of_laughter) && self.laugh_word.is_match(word)
    }
}

fn trimmed_fold(entry: &str) -> String {
    folded(entry).trim().to_owned()
}

/// The entries, and those with Persian `ی` and `ک` as Arabic keyboards write them too.
fn variants(list: &[String]) -> impl Iterator<Item = String> {
    list.iter().flat_map(|entry| {
        let mut all = vec![String::new()];
        for c in entry.chars() {
            let other = match c {
                'ی' => Some('ي'),
                'ک' => Some('ك'),
                _ => None,
            };
            let mut more = Vec::new();
            if let Some(other) = other {
                more.extend(all.iter().map(|begun| format!("{begun}{other}")));
            }
            for begun in &mut all {
                begun.push(c);
            }
            all.append(&mut more);
        }
        all
    })
}

/// A list that texts are compared with, word by word. Entries with Chinese characters are found
/// anywhere.
#[derive(Default)]
pub(super) struct Entries {
    /// By first word; the longest first.
    by_word: HashMap<String, Vec<String>>,
    /// By the first byte of a first word, the lengths there are, as bits: most words are none, and
    /// this says so soonest.
    lengths: Vec<u64>,
    /// The longest first.
    han: Vec<String>,
    /// The bytes that entries end with.
    last: Vec<u8>,
}

/// How long a word is, as a bit.
fn length_bit(word: &str) -> u64 {
    1 << word.len().min(63)
}

impl Entries {
    fn new(list: &[String], form: fn(&str) -> String) -> Self {
        let mut entries = Self::default();
        for entry in variants(list) {
            entries.add(form(&entry));
        }
        entries
    }

    /// Adds an entry in the form that texts have.
    pub(super) fn add(&mut self, entry: String) {
        self.last.extend(entry.bytes().next_back());
        let list = if entry.contains(is_han) {
            &mut self.han
        } else {
            let first = word_at(&entry, 0);
            self.lengths.resize(256, 0);
            self.lengths[usize::from(first.bytes().next().unwrap_or(0))] |= length_bit(first);
            self.by_word
                .entry(word_at(&entry, 0).to_owned())
                .or_default()
        };
        if !entry.is_empty() && !list.contains(&entry) {
            let place = list.partition_point(|other| other.len() >= entry.len());
            list.insert(place, entry);
        }
    }

    fn into_words(self) -> HashSet<String> {
        self.by_word.into_values().flatten().collect()
    }

    /// Where the longest entry ends that stands at a place where a word may begin.
    pub(super) fn longest_at(&self, text: &str, at: usize) -> Option<usize> {
        self.all_at(text, at).next()
    }

    /// Where the entries end that stand at a place where a word may begin, the longest first.
    pub(super) fn all_at<'a>(
        &'a self,
        text: &'a str,
        at: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let rest = &text[at..];
        let (list, han): (&[String], bool) = if rest.starts_with(is_han) {
            (&self.han, true)
        } else {
            (self.beginning_with(word_at(text, at)), false)
        };
        list.iter().filter_map(move |entry| {
            let after = rest.strip_prefix(entry.as_str())?;
            let whole = han || after.is_empty() || after.starts_with(|c| c == ' ' || is_han(c));
            whole.then_some(at + entry.len())
        })
    }

    /// The text without the entry at its end, if one is there.
    pub(super) fn off_the_end<'a>(&self, text: &'a str) -> Option<&'a str> {
        let last = text.bytes().next_back()?;
        if !self.last.contains(&last) {
            return None;
        }
        let whole = |rest: &str| rest.is_empty() || rest.ends_with(|c| c == ' ' || is_han(c));
        let words = self.by_word.values().flatten();
        let off = words
            .filter_map(|entry| text.strip_suffix(entry.as_str()).filter(|rest| whole(rest)))
            .chain(
                self.han
                    .iter()
                    .filter_map(|entry| text.strip_suffix(entry.as_str())),
            );
        off.min_by_key(|rest| rest.len())
            .map(|rest| rest.trim_end_matches(' '))
    }

    fn beginning_with(&self, word: &str) -> &[String] {
        let first = usize::from(word.bytes().next().unwrap_or(0));
        let lengths = self.lengths.get(first).copied().unwrap_or(0);
        if lengths & length_bit(word) == 0 {
            return &[];
        }
        self.by_word.get(word).map_or(&[], Vec::as_slice)
    }

    /// Whether an entry stands anywhere in a text.
    pub(super) fn any_in(&self, text: &str) -> bool {
        if text.is_ascii() {
            let mut at = 0;
            return text.split(' ').any(|word| {
                let here = at;
                at += word.len() + 1;
                !self.beginning_with(word).is_empty() && self.longest_at(text, here).is_some()
            });
        }
        word_starts(text).any(|at| self.longest_at(text, at).is_some())
    }
}

/// The word at a place, up to a blank or a Chinese character.
pub(super) fn word_at(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    let plain = rest.bytes().position(|b| b == b' ' || !b.is_ascii());
    let Some(end) = plain else {
        return rest;
    };
    if rest.as_bytes().get(end) == Some(&b' ') {
        return &rest[..end];
    }
    let end = rest.find(|c| c == ' ' || is_han(c)).unwrap_or(rest.len());
    &rest[..end]
}

/// Where words may begin: every Chinese character is one.
pub(super) fn word_starts(text: &str) -> impl Iterator<Item = usize> {
    let mut fresh = true;
    text.char_indices().filter_map(move |(at, c)| {
        let han = is_han(c);
        let starts = c != ' ' && (fresh || han);
        fresh = c == ' ' || han;
        starts.then_some(at)
    })
}

/// The place behind the blank that may stand at one.
pub(super) fn past_blank(text: &str, at: usize) -> usize {
    if text[at..].starts_with(' ') {
        at + 1
    } else {
        at
    }
}
