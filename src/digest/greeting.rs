//! Greetings (digest.md, 6): they say nothing to do, and the contract drops them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::kind::is_question;
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
/// More characters than they have.
const MOST_CHARS: usize = 200;
/// The most words of a name that count: more say something, and a name must not make what others
/// say a greeting.
const MOST_NAME_WORDS: usize = 4;
/// The most characters of a name that is written without blanks.
const MOST_HAN: usize = 16;

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
        if matched.split(' ').count() > MOST_WORDS || matched.chars().nth(MOST_CHARS).is_some() {
            return Self::No;
        }
        Self::With(matched.into())
    }

    /// Whether it is one where these people are.
    pub(super) fn among<'a>(&self, names: impl FnOnce() -> &'a Names) -> bool {
        match self {
            Self::No => false,
            Self::Yes => true,
            Self::With(matched) => is_wholly_greeting(matched, names()),
        }
    }
}

/// What the people of a room are called in greetings, as match text.
#[derive(Default)]
pub(super) struct Names {
    known: HashSet<String>,
    /// How many words the longest has.
    words: usize,
    /// How many characters those have that are written without blanks, as bits.
    han: u32,
}

impl Names {
    /// Room for the names of so many people.
    pub(super) fn with_room_for(people: usize) -> Self {
        Self {
            known: HashSet::with_capacity(2 * people),
            ..Self::default()
        }
    }

    /// Adds what someone is called: all of it, and its first word. What is too long for a name is
    /// left out.
    pub(super) fn add(&mut self, name: String) {
        let first = word_at(&name, 0);
        if !first.is_empty() && first.len() < name.len() && !self.known.contains(first) {
            self.words = self.words.max(1);
            self.known.insert(first.to_owned());
        }
        let words = name.split(' ').count();
        if name.is_empty() || words > MOST_NAME_WORDS {
            return;
        }
        if !name.is_ascii() && name.contains(is_han) {
            let length = name.chars().count();
            if length > MOST_HAN {
                return;
            }
            self.han |= 1 << length;
        }
        self.words = self.words.max(words);
        self.known.insert(name);
    }

    /// Where names end that stand at a place. What asks is none, whoever is called so.
    fn ends_at(&self, text: &str, at: usize) -> Vec<usize> {
        let rest = &text[at..];
        let mut ends = Vec::new();
        if rest.starts_with(is_han) {
            let places = rest.char_indices().map(|(place, c)| place + c.len_utf8());
            let lengths = (1..=MOST_HAN).zip(places);
            ends.extend(
                lengths
                    .filter(|(length, _)| self.han >> length & 1 == 1)
                    .map(|(_, end)| end),
            );
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
        // Whether a name asks is seen only where it stands: few of a room's names do.
        ends.retain(|&end| self.known.contains(&rest[..end]) && !is_question(&rest[..end]));
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
