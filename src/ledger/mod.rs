//! The durable record: the only truth.
//!
//! Everything that must survive a crash is written here first, in one
//! transaction with whatever caused it: questions, what was heard, what is to
//! be sent to rooms (the outbox), what is to be told to agents (events and
//! their deliveries), and the sync token. A crash before the commit leaves no
//! trace; a crash after it loses nothing.
//!
//! [`Ledger`] is the view from inside one transaction, in the words of the
//! domain. [`Book`] is the shared front: it sends work to the one writer, which
//! commits many requests together, and to a reader. The trait assumes nothing
//! about there being a single process: events belong to whoever inserts them
//! first, the first writer settles a question, and unique constraints decide.

mod announcements;
mod apply;
mod boards;
mod book;
#[cfg(test)]
mod conformance;
mod inbox;
mod outbox;
mod people;
mod questions;
mod records;
mod sessions;
mod sqlite;
mod streams;

pub use announcements::{
    Announcements, ChosenDeliveries, DeliveryCount, DeliveryState, SoughtDeliveries, Undelivered,
    UndeliveredPage,
};
pub use apply::{HasWebhook, apply};
pub use boards::{Boards, Submission};
pub use book::{Book, Note, woken};
pub use inbox::{COMMANDS_WITHIN, Inbox, MOST_COMMANDS, MOST_KEPT};
pub use outbox::{LONGEST_WAIT, Outbox};
pub use people::{ChooseHandle, People};
pub use questions::{MOST_TOLD, Questions};
pub use records::{Asked, Delivery, Event, Gap, Noticed, Page, Sending, Sought, Undecrypted};
pub use sessions::{Sessions, SoughtSessions};
pub use sqlite::{SqliteLedger, open};
pub use streams::{KeptLine, KeptText, StoredLine, Streams};

use crate::clock::Millis;
pub use crate::desk::{EventDraft, SendDraft, SendKind};

/// Why the ledger could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another process holds this ledger.
    #[error("the ledger in {0} is in use by another process")]
    InUse(String),
    /// The ledger was written by a newer version of the program.
    #[error("the ledger is newer than this program: {0}")]
    TooNew(String),
    /// The disk or the database failed. Nothing of the transaction was kept; it may be tried again.
    #[error("the ledger failed: {0}")]
    Store(String),
    /// A row holds what this program does not understand.
    #[error("the ledger holds an unreadable {what}: {why}")]
    Unreadable {
        /// Which kind of row.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A handle was chosen that is another person's.
    #[error("the handle {0} is taken")]
    HandleTaken(String),
    /// The writer has ended; the process is stopping.
    #[error("the ledger is closed")]
    Closed,
}

/// One transaction's view of the ledger.
///
/// All changes made through it are committed together or not at all.
pub trait Ledger:
    Questions + Inbox + Outbox + Announcements + Boards + Sessions + Streams + People
{
    /// Deletes closed questions, seen ids, sent rows and events from before `before`. Kept are
    /// what is pending, deliveries that are parked, and what those need, and everything of
    /// [`Streams`] and [`People`]. Gives the number of rows.
    fn prune(&mut self, before: Millis) -> Result<u64, LedgerError>;
}
