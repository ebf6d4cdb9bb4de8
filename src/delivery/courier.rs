//! The deliveries of one agent.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::webhook::{Hook, Outcome};
use super::{backoff, woken};
use crate::clock::{self, Millis};
use crate::crash;
use crate::ledger::{Book, Delivery, Ledger, LedgerError};

/// So many calls to one agent at a time.
pub const PARALLEL: usize = 8;
/// So many deliveries are looked up at once; more than [`PARALLEL`], since those in hand are among
/// them.
const AT_A_LOOK: usize = 256;
/// The counter of calls, by `outcome`.
pub const ATTEMPTS: &str = "elicit_delivery_attempts_total";
/// How long calls in hand may take to finish when the service stops.
const GRACE: Duration = Duration::from_secs(2);
/// The ledger is looked at this often even when nothing wakes us: the clock may have been set.
const AT_LEAST_EVERY: Duration = Duration::from_mins(1);
/// How long to wait before the ledger is asked again after it failed.
const LEDGER_PAUSE: Duration = Duration::from_secs(1);

/// What becomes of a delivery after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    Delivered,
    Retry { wait: Duration, why: String },
    Park { why: String },
}

/// Decides what becomes of a delivery. `failures` are those before this call, `age` is how long ago
/// it was recorded or asked for again.
fn decide(outcome: Outcome, failures: u32, age: Millis, park_after: Millis, random: u64) -> Next {
    match outcome {
        Outcome::Taken => Next::Delivered,
        Outcome::Gone => Next::Park {
            why: "HTTP 410: the receiver wants no more".to_owned(),
        },
        Outcome::Failed { why, .. } if age >= park_after => Next::Park { why },
        Outcome::Failed { why, retry_after } => Next::Retry {
            wait: backoff::wait(failures.saturating_add(1), random, retry_after),
            why,
        },
    }
}

/// Whoever carries one agent's events to its webhook.
pub struct Courier {
    pub(super) book: Book,
    pub(super) agent: String,
    pub(super) hook: Hook,
    pub(super) park_after: Millis,
}

impl Courier {
    /// Delivers until `stopping` becomes true, or the ledger is closed. Errs when a call panicked.
    pub(super) async fn work(
        self: Arc<Self>,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<(), JoinError> {
        // Listening begins before reading: what is committed in between is seen by one or the other.
        let mut notes = self.book.notes();
        let mut calls: JoinSet<(String, String, bool)> = JoinSet::new();
        // By question, not by delivery: what the operator asks for again may be older than what is
        // on its way, and waits until that is over.
        let mut in_hand: HashSet<String> = HashSet::new();
        // What goes ahead of everything else waits for no place, nor for what is on its way.
        let mut urgent: HashSet<String> = HashSet::new();
        let mut ready: VecDeque<Delivery> = VecDeque::new();
        let mut sleep = AT_LEAST_EVERY;
        // When there is to be looked for it again; at once when a note comes or one of it is done.
        let mut look_at = Instant::now();
        loop {
            if look_at <= Instant::now() {
                let wait = if urgent.len() < PARALLEL {
                    let (due, wait) = self.urgent_due().await;
                    for delivery in due {
                        if urgent.len() < PARALLEL && urgent.insert(delivery.event.id.clone()) {
                            calls.spawn(Arc::clone(&self).carry(delivery));
                        }
                    }
                    wait
                } else {
                    AT_LEAST_EVERY
                };
                look_at = Instant::now() + wait;
            }
            // Looking costs as much as there is pending, so it is done for many calls at once.
            if ready.is_empty() {
                match self.due().await {
                    Ok((due, next)) => {
                        let free = |delivery: &Delivery| {
                            !delivery.urgent && !in_hand.contains(&delivery.event.key.id)
                        };
                        ready.extend(due.into_iter().filter(free));
                        sleep = next.map_or(AT_LEAST_EVERY, |at| clock::until(at, AT_LEAST_EVERY));
                    }
                    Err(LedgerError::Closed) => break,
                    Err(error) => {
                        self.complain(&error);
                        sleep = LEDGER_PAUSE;
                    }
                }
            }
            while in_hand.len() < PARALLEL
                && let Some(delivery) = ready.pop_front()
            {
                in_hand.insert(delivery.event.key.id.clone());
                calls.spawn(Arc::clone(&self).carry(delivery));
            }
            tokio::select! {
                // What waited behind it may be due now.
                Some(done) = calls.join_next() => {
                    let (question, event, was_urgent) = done?;
                    if was_urgent {
                        urgent.remove(&event);
                        look_at = Instant::now();
                    } else {
                        in_hand.remove(&question);
                    }
                }
                open = woken(&mut notes, &self.agent) => {
                    if !open { break }
                    look_at = Instant::now();
                }
                () = tokio::time::sleep(sleep) => {}
                () = tokio::time::sleep_until(look_at) => {}
                _ = stopping.wait_for(|stopping| *stopping) => break,
            }
        }
        let finished = async { while calls.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, finished).await.is_err() {
            // They are sent again after the start, under the same ids.
            calls.shutdown().await;
        }
        Ok(())
    }

    /// The oldest pending delivery of each elicitation whose time has come, at most [`AT_A_LOOK`],
    /// and when the next one is due. Questions in hand are among them.
    async fn due(&self) -> Result<(Vec<Delivery>, Option<Millis>), LedgerError> {
        let agent = self.agent.clone();
        let now = clock::now();
        self.book
            .read(move |ledger| ledger.deliveries_due(&agent, now, AT_A_LOOK))
            .await
    }

    /// The urgent deliveries whose time has come, those in hand among them, and how long it is until
    /// there is to be looked again.
    async fn urgent_due(&self) -> (Vec<Delivery>, Duration) {
        let agent = self.agent.clone();
        let now = clock::now();
        let due = move |ledger: &mut dyn Ledger| ledger.urgent_due(&agent, now, 2 * PARALLEL);
        match self.book.read(due).await {
            Ok((due, next)) => (
                due,
                next.map_or(AT_LEAST_EVERY, |at| clock::until(at, AT_LEAST_EVERY)),
            ),
            Err(error) => {
                self.complain(&error);
                (Vec::new(), LEDGER_PAUSE)
            }
        }
    }

    /// Calls the webhook once and notes how it went. Gives back the question's id, the event's, and
    /// whether it was urgent.
    async fn carry(self: Arc<Self>, delivery: Delivery) -> (String, String, bool) {
        crash::point("deliver.due");
        let outcome = self.hook.post(&delivery.event, clock::now()).await;
        crash::point("deliver.posted");
        let now = clock::now();
        let age = now.saturating_sub(delivery.since);
        let next = decide(
            outcome,
            delivery.attempts,
            age,
            self.park_after,
            rand::random(),
        );
        self.log(&delivery, &next);
        // A mark that fails is tried again here, not by another call.
        while let Err(error) = self.mark(delivery.seq, next.clone(), now).await {
            if matches!(error, LedgerError::Closed) {
                break;
            }
            self.complain(&error);
            tokio::time::sleep(LEDGER_PAUSE).await;
        }
        crash::point("deliver.marked");
        let Delivery { event, urgent, .. } = delivery;
        (event.key.id, event.id, urgent)
    }

    async fn mark(&self, seq: i64, next: Next, now: Millis) -> Result<(), LedgerError> {
        let mark = move |ledger: &mut dyn Ledger| match next {
            Next::Delivered => ledger.mark_delivered(seq, now),
            Next::Park { why } => ledger.park_delivery(seq, &why),
            Next::Retry { wait, why } => {
                ledger.retry_delivery(seq, now.saturating_add(clock::millis(wait)), &why)
            }
        };
        self.book.write(mark).await
    }

    fn log(&self, delivery: &Delivery, next: &Next) {
        let (id, agent) = (&delivery.event.id, &self.agent);
        let attempt = delivery.attempts.saturating_add(1);
        let outcome = match next {
            Next::Delivered => {
                tracing::debug!(
                    delivery.id = %id, agent.id = %agent, delivery.attempt = attempt,
                    "{id} delivered to {agent}"
                );
                "delivered"
            }
            Next::Retry { wait, why } => {
                let wait_ms = clock::millis(*wait);
                tracing::warn!(
                    delivery.id = %id, agent.id = %agent, delivery.attempt = attempt, wait_ms, error = %why,
                    "delivering {id} to {agent} failed ({why}); next try in {wait_ms} ms"
                );
                "retried"
            }
            Next::Park { why } => {
                tracing::warn!(
                    delivery.id = %id, agent.id = %agent, delivery.attempt = attempt, error = %why,
                    "delivering {id} to {agent} is given up ({why})"
                );
                "parked"
            }
        };
        metrics::counter!(ATTEMPTS, "outcome" => outcome).increment(1);
    }

    fn complain(&self, error: &LedgerError) {
        tracing::error!(
            agent.id = %self.agent,
            error = error as &dyn std::error::Error,
            "the deliveries of {} wait for the ledger: {error}",
            self.agent
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(retry_after: Option<Duration>) -> Outcome {
        Outcome::Failed {
            why: "HTTP 503".to_owned(),
            retry_after,
        }
    }

    fn retry(wait: Duration) -> Next {
        Next::Retry {
            wait,
            why: "HTTP 503".to_owned(),
        }
    }

    #[test]
    fn what_was_taken_is_delivered_however_old() {
        assert_eq!(decide(Outcome::Taken, 9, 1_000, 10, 0), Next::Delivered);
    }

    #[test]
    fn a_failure_waits_longer_each_time() {
        assert_eq!(
            decide(failed(None), 0, 0, 1_000, 0),
            retry(Duration::from_secs(1))
        );
        assert_eq!(
            decide(failed(None), 3, 0, 1_000, 0),
            retry(Duration::from_secs(8))
        );
    }

    #[test]
    fn the_receiver_may_ask_for_time() {
        let asked = failed(Some(Duration::from_secs(90)));
        assert_eq!(
            decide(asked, 0, 0, 1_000, 0),
            retry(Duration::from_secs(90))
        );
    }

    #[test]
    fn what_is_too_old_is_parked_at_its_next_failure() {
        let parked = Next::Park {
            why: "HTTP 503".to_owned(),
        };
        assert_eq!(
            decide(failed(None), 3, 999, 1_000, 0),
            retry(Duration::from_secs(8))
        );
        assert_eq!(decide(failed(None), 3, 1_000, 1_000, 0), parked);
    }

    #[test]
    fn a_receiver_that_is_gone_is_not_asked_again() {
        let parked = Next::Park {
            why: "HTTP 410: the receiver wants no more".to_owned(),
        };
        assert_eq!(decide(Outcome::Gone, 0, 0, 1_000, 0), parked);
    }
}
