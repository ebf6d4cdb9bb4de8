//! Reading a reply: `(message, the questions of the room, sender) -> Reading`.
//!
//! Pure code, no I/O and no clock. Nothing is guessed: a reply that is not
//! plainly one option never chooses one, because a wrong choice is the one
//! failure this must never have, and asking again is cheap.

use serde::{Deserialize, Serialize};

mod address;
mod command;
mod lenient;
mod opening;
mod option;
mod suggest;
mod target;
#[cfg(test)]
mod tests;
mod text;
mod why;

pub use address::addressed;
pub use command::{Command, Commands, Wish};
pub use opening::without_fallback;
pub use option::{Options, read_option};
pub use suggest::suggest;
pub use target::{Bot, Message, Question, Reading, TargetedBy, read, read_decline};
pub use text::is_blank;

/// The form in which texts, ids and labels are compared: NFKC, case folded, invisible characters
/// gone, the digits of every script as ASCII, white space collapsed.
pub fn normal_form(text: &str) -> String {
    text::folded(&text::shown(text))
}

/// The rule that found an option, or `Text` for a free answer. When several name
/// the same option it is the first of them, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchedBy {
    /// The option's number, in any form.
    Number,
    /// The option's id.
    Id,
    /// The option's label.
    Label,
    /// No option: the text itself is the answer.
    Text,
}

/// What a text says about the options of one question. Indexes are from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Plainly one option.
    Choose {
        /// The option's place, from 0.
        index: usize,
        /// The rule that found it.
        by: MatchedBy,
    },
    /// Two or more options fit: ask which.
    Ask {
        /// Their places, from 0, in order.
        indexes: Vec<usize>,
    },
    /// No option.
    None,
}

/// A choice, and in a few plain words why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionReading {
    /// What the text says.
    pub choice: Choice,
    /// Why, for somebody who wonders why a reply was not understood.
    pub why: &'static str,
    /// Whether an id or a label took part; a number alone never tells which question is meant.
    pub(crate) by_name: bool,
}
