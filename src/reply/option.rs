//! Which option a text names: the strict reading.
//!
//! The whole text must be an option's number, id or label. Everything else is
//! left to the lenient reading, which only messages said to the bot get.

use std::cell::OnceCell;

use super::text;
use super::{Choice, MatchedBy, OptionReading, lenient, why};
use crate::contract::CardOption;

/// A text longer than this (bytes) is read only where a label is of that order.
const LONGEST_TEXT: usize = 4096;

const GREEK_QUESTION_MARK: char = '\u{37E}';

/// The options of one question, made comparable once.
#[derive(Debug, Clone, Default)]
pub struct Options {
    entries: Vec<Entry>,
    longest_text: usize,
}

/// One option's names.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: Name,
    pub(crate) label: Name,
    /// The label without its punctuation and symbols, if it has any.
    pub(crate) bare: Option<lenient::Bare>,
}

/// An id or a label in its comparable forms.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    written: String,
    pub(crate) normal: String,
    core: (usize, usize),
    /// The place (from 0) that the name itself speaks of, as `Option 2` does.
    place: Option<usize>,
}

impl Options {
    /// Prepares the options of a question, in the order of their numbers.
    pub fn new(options: &[CardOption]) -> Self {
        let count = options.len();
        let entries: Vec<Entry> = options
            .iter()
            .map(|option| Entry {
                id: Name::new(&option.id, count),
                label: Name::new(&option.label, count),
                bare: lenient::Bare::of(&text::shown(&option.label)),
            })
            .collect();
        let longest = options
            .iter()
            .map(|option| option.id.len().max(option.label.len()))
            .max();
        Self {
            entries,
            longest_text: longest.unwrap_or(0).saturating_mul(4).max(LONGEST_TEXT),
        }
    }

    /// How many options there are: the highest number.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the question has no options, so that only free text answers it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Name {
    fn new(written: &str, count: usize) -> Self {
        let normal = text::folded(&text::shown(written));
        Self {
            written: written.trim().to_owned(),
            core: text::core(&normal),
            place: lenient::place_named(&normal, count),
            normal,
        }
    }

    /// Whether the text is this name, more or fewer marks around the text.
    fn is_wrapped_in(&self, typed: &Typed) -> bool {
        let (start, end) = self.core;
        // A name of punctuation alone has nothing that could be wrapped.
        start < end
            && self.normal[start..end] == *typed.core()
            && typed.normal[..typed.core.0].ends_with(&self.normal[..start])
            && typed.normal[typed.core.1..].starts_with(&self.normal[end..])
    }
}

/// A text in the forms it is compared in.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) shown: String,
    pub(crate) normal: String,
    core: (usize, usize),
}

impl Typed {
    pub(crate) fn new(text: &str) -> Self {
        Self::of_shown(text::shown(text))
    }

    pub(crate) fn of_shown(shown: String) -> Self {
        let normal = text::folded(&shown);
        Self {
            core: text::core(&normal),
            shown,
            normal,
        }
    }

    /// The normal form without its wrapping marks.
    pub(crate) fn core(&self) -> &str {
        &self.normal[self.core.0..self.core.1]
    }

    /// The shown form without its wrapping marks.
    pub(crate) fn shown_core(&self) -> &str {
        let (start, end) = text::core(&self.shown);
        &self.shown[start..end]
    }
}

/// What a text names: options (from 0) and the rule that found each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Named(Vec<(usize, MatchedBy)>);

impl Named {
    pub(crate) fn one(index: usize, by: MatchedBy) -> Self {
        Self(vec![(index, by)])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, index: usize, by: MatchedBy) {
        self.0.push((index, by));
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Whether an id or a label took part, not numbers alone.
    pub(crate) fn by_name(&self) -> bool {
        self.0.iter().any(|&(_, by)| by != MatchedBy::Number)
    }

    /// The options named, each once, in their order.
    pub(crate) fn indexes(&self) -> Vec<usize> {
        let mut indexes: Vec<usize> = self.0.iter().map(|&(index, _)| index).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    }

    /// One option is chosen, by the first rule that named it; several are asked about.
    pub(crate) fn choice(&self) -> Choice {
        let indexes = self.indexes();
        match (indexes.as_slice(), self.0.iter().map(|&(_, by)| by).min()) {
            (&[index], Some(by)) => Choice::Choose { index, by },
            (&[], _) => Choice::None,
            _ => Choice::Ask { indexes },
        }
    }
}

/// Reads a text from which reply fallback, mention and tag are already taken
///. `directed` says that it was said to the bot.
pub fn read_option(text: &str, options: &Options, directed: bool) -> OptionReading {
    Spoken::new(text).read(options, directed)
}

/// A text as written, made comparable when it is first needed and then once.
#[derive(Debug)]
pub(crate) struct Spoken<'a> {
    pub(crate) written: &'a str,
    typed: OnceCell<Typed>,
}

impl<'a> Spoken<'a> {
    pub(crate) fn new(written: &'a str) -> Self {
        Self {
            written,
            typed: OnceCell::new(),
        }
    }

    /// What the text says about one question's options.
    pub(crate) fn read(&self, options: &Options, directed: bool) -> OptionReading {
        let nothing = |why| OptionReading {
            choice: Choice::None,
            why,
            by_name: false,
        };
        if options.is_empty() {
            return nothing("the question has no options");
        }
        if self.written.len() > options.longest_text {
            return nothing("too long to be an option");
        }
        let typed = self.typed.get_or_init(|| Typed::new(self.written));
        if typed.normal.is_empty() {
            return nothing("blank");
        }
        let mut named = as_it_is(typed, options);
        // NFKC makes the Greek question mark a semicolon, which would be trimmed.
        if named.is_empty() && !self.written.contains(GREEK_QUESTION_MARK) {
            named = unwrapped(typed, options);
            if named.is_empty() && directed {
                named = lenient::read(typed, options);
            }
        }
        let choice = named.choice();
        let why = match choice {
            Choice::None if directed => why::nothing(typed, self.written, options),
            Choice::None => "not a bare number, id or label",
            Choice::Ask { .. } => "more than one option fits",
            Choice::Choose { by, .. } => why::chosen(by),
        };
        OptionReading {
            by_name: named.by_name(),
            choice,
            why,
        }
    }
}

/// The strict reading: what the whole text names, as it is, else without its
/// wrapping marks.
pub(crate) fn strict(typed: &Typed, options: &Options) -> Named {
    let mut named = as_it_is(typed, options);
    if named.is_empty() {
        named = unwrapped(typed, options);
    }
    named
}

fn as_it_is(typed: &Typed, options: &Options) -> Named {
    let text = typed.normal.as_str();
    collect(text, typed, &typed.shown, options, |name| {
        name.normal == text && !text.is_empty()
    })
}

fn unwrapped(typed: &Typed, options: &Options) -> Named {
    let text = typed.core();
    if text.len() == typed.normal.len() || text.is_empty() {
        return Named::default();
    }
    collect(text, typed, typed.shown_core(), options, |name| {
        name.is_wrapped_in(typed)
    })
}

/// Every option that is `text` by its number, or of which `fits` is true of a name.
fn collect(
    text: &str,
    typed: &Typed,
    shown: &str,
    options: &Options,
    fits: impl Fn(&Name) -> bool,
) -> Named {
    let count = options.len();
    if let Some(index) = text.strip_prefix('#').and_then(|n| place(n, count)) {
        return Named::one(index, MatchedBy::Number);
    }
    let mut named = Named::default();
    if let Some(index) = place(text, count) {
        named.add(index, MatchedBy::Number);
    }
    let entries = options.entries.iter().enumerate();
    let ids: Vec<usize> = entries
        .clone()
        .filter(|(_, entry)| fits(&entry.id))
        .map(|(index, _)| index)
        .collect();
    for index in exact_case_first(ids, typed, shown, options) {
        named.add(index, MatchedBy::Id);
        add_place(&mut named, index, options.entries[index].id.place);
    }
    for (index, entry) in entries.filter(|(_, entry)| fits(&entry.label)) {
        named.add(index, MatchedBy::Label);
        add_place(&mut named, index, entry.label.place);
    }
    named
}

/// A name that speaks of another option's place (`Option 2` on the first) names both.
fn add_place(named: &mut Named, index: usize, place: Option<usize>) {
    if let Some(other) = place.filter(|&place| place != index) {
        named.add(other, MatchedBy::Number);
    }
}

/// Of several ids that differ only in case, the ones written as typed.
fn exact_case_first(ids: Vec<usize>, typed: &Typed, shown: &str, options: &Options) -> Vec<usize> {
    if ids.len() < 2 {
        return ids;
    }
    let exact: Vec<usize> = ids
        .iter()
        .copied()
        .filter(|&index| {
            let written = options.entries[index].id.written.as_str();
            written == shown || written == typed.shown
        })
        .collect();
    if exact.is_empty() { ids } else { exact }
}

/// The place (from 0) of a number as printed: `1` to the count, no leading zero.
pub(crate) fn place(text: &str, count: usize) -> Option<usize> {
    let printed =
        text.len() <= 9 && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    if !printed {
        return None;
    }
    let number: usize = text.parse().ok()?;
    (1..=count).contains(&number).then(|| number - 1)
}
