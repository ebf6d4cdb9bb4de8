//! What agents are told: events, and their deliveries to webhooks.

use super::LedgerError;
use super::records::{Delivery, Event};
use crate::clock::Millis;
use crate::desk::EventDraft;
use crate::elicitation::Key;

/// Where a delivery stands that the agent has not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is tried until it is taken, or parked.
    Pending,
    /// It was given up; only the operator can ask for it again.
    Parked,
}

impl DeliveryState {
    /// Both, in the order of a delivery's life.
    pub const ALL: [Self; 2] = [Self::Pending, Self::Parked];

    /// Its word, on the wire and in the ledger.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Parked => "parked",
        }
    }

    /// The state of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// A delivery that the agent has not taken, as an operator looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// The id of its event, which is its webhook id.
    pub event_id: String,
    /// The agent and its question.
    pub key: Key,
    /// `elicitation.open`, …
    pub event_type: String,
    /// When the event happened.
    pub at: Millis,
    /// Where it stands.
    pub state: DeliveryState,
    /// Failed attempts since it was recorded or last asked for.
    pub attempts: u32,
    /// When it is tried next, unless something older of its question is in its way. `None` when
    /// it is parked.
    pub next_at: Option<Millis>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

/// Which deliveries a listing looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoughtDeliveries {
    /// Only in this state.
    pub state: DeliveryState,
    /// Only this origin's.
    pub origin: Option<String>,
    /// Continue above this sequence number.
    pub above: Option<i64>,
    /// At most so many.
    pub limit: usize,
}

/// One page of deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndeliveredPage {
    /// Oldest first.
    pub deliveries: Vec<Undelivered>,
    /// Where the next page begins, if there is more.
    pub next: Option<i64>,
}

/// Which parked deliveries are meant: those that are in both lists, where `None` is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChosenDeliveries {
    /// The ids of their events.
    pub event_ids: Option<Vec<String>>,
    /// Whose they are.
    pub origins: Option<Vec<String>>,
}

/// How many deliveries an agent has not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryCount {
    /// The agent.
    pub origin: String,
    /// Those that are tried.
    pub pending: u64,
    /// Those that were given up.
    pub parked: u64,
}

/// What agents are told: events, and their deliveries to webhooks.
pub trait Announcements {
    /// Records an event for an agent; with `deliver` also a delivery to its webhook.
    fn announce(
        &mut self,
        draft: &EventDraft,
        deliver: bool,
        now: Millis,
    ) -> Result<(), LedgerError>;

    /// An origin's events after a sequence number, oldest first, at most `limit`.
    fn events_after(
        &mut self,
        origin: &str,
        seq: i64,
        limit: usize,
    ) -> Result<Vec<Event>, LedgerError>;

    /// The sequence number of an origin's event with this id. `None` if it is not kept (any more).
    fn event_seq(&mut self, origin: &str, event_id: &str) -> Result<Option<i64>, LedgerError>;

    /// The sequence number of the newest event of all.
    fn last_event_seq(&mut self) -> Result<i64, LedgerError>;

    /// The deliveries of one agent that can be made now, and when the next one is due: what is
    /// urgent, then the oldest pending one of each elicitation, or session, whose time has come. One
    /// that is to wait for longer than [`super::LONGEST_WAIT`] is due as well: the clock was set back.
    fn deliveries_due(
        &mut self,
        origin: &str,
        now: Millis,
        limit: usize,
    ) -> Result<(Vec<Delivery>, Option<Millis>), LedgerError>;

    /// The urgent deliveries of one agent whose time has come, oldest first, and when the next one
    /// is due; as for [`Announcements::deliveries_due`], that is at once for one that would wait too
    /// long.
    fn urgent_due(
        &mut self,
        origin: &str,
        now: Millis,
        limit: usize,
    ) -> Result<(Vec<Delivery>, Option<Millis>), LedgerError>;

    /// Notes that the agent took it.
    fn mark_delivered(&mut self, seq: i64, now: Millis) -> Result<(), LedgerError>;

    /// Puts a delivery off after a failed attempt.
    fn retry_delivery(&mut self, seq: i64, at: Millis, error: &str) -> Result<(), LedgerError>;

    /// Gives a delivery up until somebody asks for it again. What waits behind it goes on. It is
    /// kept however old it becomes, its event with it, until it is retried and taken, or dropped.
    fn park_delivery(&mut self, seq: i64, error: &str) -> Result<(), LedgerError>;

    /// Numbers of deliveries that are pending and parked.
    fn delivery_counts(&mut self) -> Result<(u64, u64), LedgerError>;

    /// How many deliveries of each origin are pending and parked, by origin. One that has neither
    /// is left out.
    fn delivery_counts_by_origin(&mut self) -> Result<Vec<DeliveryCount>, LedgerError>;

    /// One page of the deliveries that were not taken, oldest first.
    fn undelivered(&mut self, sought: &SoughtDeliveries) -> Result<UndeliveredPage, LedgerError>;

    /// Makes parked deliveries pending again, due at once, as if they were new: their attempts and
    /// their age count from now. Gives the ids of their events, oldest first.
    ///
    /// Each goes back to its place in the order of its question: before whatever is newer and still
    /// pending. What is newer and was taken meanwhile stays taken; then the older one comes late,
    /// and its event's own time says so. Parked deliveries that are not chosen stay parked and
    /// hold nothing up.
    fn retry_parked(
        &mut self,
        chosen: &ChosenDeliveries,
        now: Millis,
    ) -> Result<Vec<String>, LedgerError>;

    /// Deletes parked deliveries: nobody is told any more. Their events stay readable until they
    /// are too old. Gives the ids of their events, oldest first.
    fn drop_parked(&mut self, chosen: &ChosenDeliveries) -> Result<Vec<String>, LedgerError>;
}
