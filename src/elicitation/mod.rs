//! An elicitation: what was asked, where it stands, what was answered.
//!
//! `queued → open`; from `open`: `answered | declined | cancelled | superseded |
//! expired | undeliverable`; from `queued` all of these but the first two. A
//! closed state never changes.

mod model;
mod object;
mod outcome;

pub use model::{
    Answer, AnswerKind, Answerers, Elicitation, Key, NumberedOption, Question, Source, State,
};
pub use object::{card, object};
pub use outcome::{Outcome, SETTLED};

pub use crate::clock::timestamp;
