//! Tells agents what became of their questions: webhooks, at least once, in
//! the ledger's order per elicitation, the same id on every try.
//!
//! pending → delivered, or → parked: after `park_after`, or when the receiver
//! says 410. What waits behind a parked delivery goes on. An operator can ask
//! for a parked one again: then it is pending like a new one, and goes before
//! whatever is newer of its elicitation and not delivered yet.
//!
//! A crash after the POST but before the mark sends again under the same id:
//! the receiver tells repetitions by `webhook-id`. A restart loses nothing and
//! keeps the waits between tries.
//!
//! Every agent has a task of its own, and at most [`PARALLEL`] calls at a time,
//! each about another elicitation: a slow webhook delays nobody else.

pub(crate) mod backoff;
mod courier;
#[cfg(test)]
mod tests;
mod webhook;

use std::sync::Arc;

use serde_json::json;
use standardwebhooks::WebhookError;
use tokio::sync::broadcast::Receiver;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::clock;
use crate::config::Config;
use crate::elicitation::timestamp;
use crate::ledger::{self, Book, Event, Note};
use courier::Courier;
use webhook::Hook;

pub use courier::{ATTEMPTS, PARALLEL};

/// Why nothing can be delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The HTTP client could not be made: no usable TLS.
    #[error("the client for webhooks could not be made: {0}")]
    Client(#[from] reqwest::Error),
    /// A webhook's secret cannot sign. A checked configuration has none of these.
    #[error("a webhook secret of agent {agent} is unusable: {why}")]
    Secret {
        /// Whose it is.
        agent: String,
        /// What is wrong with it.
        why: WebhookError,
    },
    /// A task ended in a panic.
    #[error("delivering ended unexpectedly: {0}")]
    Died(#[from] JoinError),
}

/// Whether an event is of a session. It goes over the wire as it is, without an envelope.
pub fn is_of_session(event: &Event) -> bool {
    event.event_type.starts_with("agent_session.")
}

/// An event as it goes over the wire, on webhooks and streams alike: one line of JSON with
/// `type`, `timestamp` and `data`; of a session's the body alone.
pub fn envelope(event: &Event) -> String {
    if is_of_session(event) {
        return event.body.to_string();
    }
    json!({ "type": event.event_type, "timestamp": timestamp(event.at), "data": event.body })
        .to_string()
}

/// Waits until there may be a new event for this agent. `false` when the ledger is closed.
pub async fn woken(notes: &mut Receiver<Note>, agent: &str) -> bool {
    ledger::woken(
        notes,
        |note| matches!(note, Note::Event(origin) if origin == agent),
    )
    .await
}

/// Delivers to every agent that has a webhook until `stopping` becomes true or its sender is gone;
/// calls in hand then have two seconds to finish.
///
/// # Errors
/// At the start, when a webhook cannot be used at all; later only when a task died, which should
/// stop the process.
pub async fn run(
    book: Book,
    config: Arc<Config>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), DeliveryError> {
    let client = webhook::client()?;
    let mut couriers = JoinSet::new();
    for (agent, settings) in &config.agents {
        let Some(webhook) = &settings.webhook else {
            continue;
        };
        let hook = Hook::new(client.clone(), webhook).map_err(|why| DeliveryError::Secret {
            agent: agent.clone(),
            why,
        })?;
        let courier = Courier {
            book: book.clone(),
            agent: agent.clone(),
            hook,
            park_after: clock::millis(webhook.park_after),
        };
        couriers.spawn(Arc::new(courier).work(stopping.clone()));
    }
    drop(book);
    while let Some(ended) = couriers.join_next().await {
        ended??;
    }
    // Without webhooks there is nothing to do, which is no reason to end.
    let _ = stopping.wait_for(|stopping| *stopping).await;
    Ok(())
}
