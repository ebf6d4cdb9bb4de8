//! Greetings (digest.md, 6): they say nothing to do, and the contract drops them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::letters::is_han;
use super::lexicon::{LEXICON, past_blank, word_at};

/// Whether a line is a greeting, as far as it can be known without the room's people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum Greeting {
    /// It is none, whoever is there.
    #[default]
    No,
    /// It is one, whoever is there.
    Yes,
    /// This match text is one if the rest of it names people.
    With(Box<str>),
}

/// More words than a greeting and a name have.
const MOST_WORDS: usize = 16;

impl Greeting {
    pub(super) fn is_no(&self) -> bool {
        *self == Self::No
    }

    /// What the match text of a line without links and code is.
    pub(super) fn of(matched: &str) -> Self {
        if !LEXICON.greeting.any_in(matched) {
            return Self::No;
        }
        if is_wholly_greeting(matched, &Names::default()) {
            return Self::Yes;
        }
        if matched.split(' ').count() > MOST_WORDS {
            return Self::No;
        }
        Self::With(matched.into())
    }

    /// Whether it is one where these people are.
    pub(super) fn among(&self, names: &Names) -> bool {
        match self {
            Self::No => false,
            Self::Yes => true,
            Self::With(matched) => is_wholly_greeting(matched, names),
        }
    }
}

/// What the people of a room are called, as match text.
#[derive(Default)]
pub(super) struct Names {
    known: HashSet<String>,
    /// How many words the longest has.
    words: usize,
    /// How many characters the longest has that is written without blanks.
    han: usize,
}

impl Names {
    pub(super) fn add(&mut self, name: String) {
        if name.is_empty() {
            return;
        }
        self.words = self.words.max(name.split(' ').count());
        if name.contains(is_han) {
            self.han = self.han.max(name.chars().count());
        }
        self.known.insert(name);
    }

    /// Where names end that stand at a place.
    fn ends_at(&self, text: &str, at: usize) -> Vec<usize> {
        let rest = &text[at..];
        let mut ends = Vec::new();
        if rest.starts_with(is_han) {
            let places = rest.char_indices().map(|(place, c)| place + c.len_utf8());
            ends.extend(places.take(self.han));
        } else {
            let mut end = 0;
            for _ in 0..self.words {
                end += word_at(rest, end).len();
                ends.push(end);
                end = past_blank(rest, end);
                if end >= rest.len() || rest[end..].starts_with(is_han) {
                    break;
                }
            }
        }
        ends.retain(|&end| self.known.contains(&rest[..end]));
        for end in &mut ends {
            *end += at;
        }
        ends
    }
}

/// Whether the text can be read as nothing but greetings (one at least), those greeted, and names.
fn is_wholly_greeting(matched: &str, names: &Names) -> bool {
    // Places reached, and whether a greeting was passed on the way.
    let mut reached = HashSet::from([(0, false)]);
    let mut open = vec![(0, false)];
    while let Some((at, greeted)) = open.pop() {
        if at == matched.len() {
            if greeted {
                return true;
            }
            continue;
        }
        let mut reach = |end: usize, greets: bool| {
            let place = (past_blank(matched, end), greeted || greets);
            if reached.insert(place) {
                open.push(place);
            }
        };
        for end in LEXICON.greeting.all_at(matched, at) {
            reach(end, true);
        }
        for end in LEXICON.vocative.all_at(matched, at) {
            reach(end, false);
        }
        for end in names.ends_at(matched, at) {
            reach(end, false);
        }
    }
    false
}
