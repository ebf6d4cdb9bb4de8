//! What agents are told: events, and their deliveries to webhooks.

use super::LedgerError;
use super::records::{Delivery, Event};
use crate::clock::Millis;
use crate::desk::EventDraft;

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

    /// The oldest pending delivery of each elicitation of one agent whose time has come, and when
    /// the next one is due.
    fn deliveries_due(
        &mut self,
        origin: &str,
        now: Millis,
        limit: usize,
    ) -> Result<(Vec<Delivery>, Option<Millis>), LedgerError>;

    /// Notes that the agent took it.
    fn mark_delivered(&mut self, seq: i64, now: Millis) -> Result<(), LedgerError>;

    /// Puts a delivery off after a failed attempt.
    fn retry_delivery(&mut self, seq: i64, at: Millis, error: &str) -> Result<(), LedgerError>;

    /// Gives a delivery up until somebody asks for it again. What waits behind it goes on.
    fn park_delivery(&mut self, seq: i64, error: &str) -> Result<(), LedgerError>;

    /// Numbers of deliveries that are pending and parked.
    fn delivery_counts(&mut self) -> Result<(u64, u64), LedgerError>;
}
