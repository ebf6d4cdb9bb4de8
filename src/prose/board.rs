//! What people are told of an answer that goes to a board, which decides.

use serde_json::Value;

use super::card::instruction;
use super::closed::person;
use super::draft::Draft;
use super::notices::{SHOWN_LABEL, notice};
use super::text::line_of;
use super::{Place, gist, labels};
use crate::elicitation::{Answer, Elicitation, Outcome};

/// Another answer is being handed in: nobody else's is taken until the board has decided.
pub fn handing_in(place: &Place<'_>, elicitation: &Elicitation, before: &Answer) -> Value {
    let (gist, who) = (gist(elicitation), person(before));
    let mut draft = Draft::default();
    draft.paragraph(&[format!(
        "An answer of {who} to “{gist}” is on its way to the board. Should the board not take it, please answer again."
    )
    .into()]);
    notice(place, draft)
}

/// The board did not take the person's answer, and why.
pub fn not_taken(place: &Place<'_>, elicitation: &Elicitation, outcome: &Outcome) -> Value {
    let gist = gist(elicitation);
    let words = match outcome {
        Outcome::Taken => format!("The board has taken your answer to “{gist}”."),
        Outcome::Settled { uncertain: false } => format!(
            "“{gist}” was settled on the board before your answer came there, so it was not taken."
        ),
        Outcome::Settled { uncertain: true } => format!(
            "“{gist}” is settled on the board. The connection broke while I handed your answer in, so I cannot say whether it was yours that settled it."
        ),
        Outcome::Invalid => {
            format!("Sorry, the board does not take that as an answer to “{gist}”.")
        }
        Outcome::SeparationOfDuties => format!(
            "Sorry, the board does not take your answer to “{gist}”: who asks may not answer. Somebody else has to."
        ),
        Outcome::UnknownPerson => format!(
            "Sorry, I cannot hand in your answer to “{gist}”: the board does not know you. Its operator can add you; until then somebody else has to answer."
        ),
        Outcome::IdentityDown => format!(
            "Sorry, I cannot hand in your answer to “{gist}” now: the service that says who you are on the board does not answer. The question stays open; please try again in a while."
        ),
        Outcome::Refused { code } => format!(
            "Sorry, the board does not take your answer to “{gist}” ({}).",
            line_of(code, 64)
        ),
    };
    let mut draft = Draft::default();
    draft.paragraph(&[words.into()]);
    if *outcome == Outcome::Invalid {
        if !elicitation.question.options.is_empty() {
            draft.list("Options:", &labels(elicitation, SHOWN_LABEL));
        }
        draft.paragraph(&[instruction(elicitation).into()]);
    }
    notice(place, draft)
}

/// The first words to somebody who replies to what only the board can take an answer to.
pub(super) fn only_there(elicitation: &Elicitation) -> String {
    let gist = gist(elicitation);
    format!("Sorry, I cannot take an answer to “{gist}”.")
}
