//! How handing an answer in to a board ended.

/// Why a question was closed that its board no longer asks.
pub const SETTLED: &str = "settled on the board";

/// How handing an answer in ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The board has it.
    Taken,
    /// The board no longer asks. `uncertain`: an earlier try may have reached it, so that it may be
    /// this answer that settled it.
    Settled {
        /// Whether this answer may have been taken before.
        uncertain: bool,
    },
    /// The board takes no such answer to this question.
    Invalid,
    /// The agent that asks may not answer.
    SeparationOfDuties,
    /// The board does not know the person, or nobody says who they are there.
    UnknownPerson,
    /// It cannot be said now who the person is on the board.
    IdentityDown,
    /// Any other refusal, by its code.
    Refused {
        /// As the board names it.
        code: String,
    },
}

impl Outcome {
    /// Its word in the ledger.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Settled { .. } => "settled",
            Self::Invalid => "invalid",
            Self::SeparationOfDuties => "separation_of_duties",
            Self::UnknownPerson => "unknown_person",
            Self::IdentityDown => "identity_down",
            Self::Refused { .. } => "refused",
        }
    }
}
