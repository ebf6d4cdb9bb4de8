//! The sweep beneath the pushes: what is pending on a board is read at the start and every now and
//! then, so that a push that was lost costs time and nothing else.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use url::Url;

use super::BoardClient;
use crate::clock;
use crate::contract::board::PENDING;
use crate::ledger::LedgerError;
use crate::service::Service;

/// The counter of looks at what is pending, by `board` and `outcome`: `read`, `unread`.
pub const SWEEPS: &str = "elicit_board_sweeps_total";
/// 1 while a board could not be read the last time, by `board`.
pub const UNREAD: &str = "elicit_board_unread";
/// The counter of questions that a look found, by `board` and `outcome`: `posted`, `settled`,
/// `malformed`.
pub const FOUND: &str = "elicit_board_found_total";
/// The counter of subscriptions to pushes, by `board` and `outcome`: `subscribed`, `failed`.
pub const SUBSCRIPTIONS: &str = "elicit_board_subscriptions_total";

/// How soon a board that could not be read, or whose room is not ready, is looked at again first.
const SOON: Duration = Duration::from_secs(5);
/// So many looks at a board that is back hurry the answers that were put off: one of them may have
/// been on its way, and in vain, while the first look was taken.
const HURRIES: u32 = 2;
/// How long those are gathered who ask for a look at the same time.
const GATHER: Duration = Duration::from_millis(200);

/// What the log was told last: that it works is said once, and again after it did not.
#[derive(Default)]
struct Told {
    is_read: bool,
    is_subscribed: bool,
}

/// Whoever looks at the pending questions of one board.
pub(super) struct Sweeper {
    pub(super) service: Arc<Service>,
    pub(super) board: String,
    pub(super) client: Arc<BoardClient>,
    /// How often.
    pub(super) every: Duration,
    /// Where the board is to push, if it can reach the bot.
    pub(super) push_url: Option<Url>,
}

/// What came of one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    /// Everything that is pending there is here.
    InLine,
    /// Some of it waits for a room.
    NoRoom,
    /// The board could not be read.
    Unread,
}

impl Sweeper {
    /// Looks at the start, and then until `stopping` becomes true.
    ///
    /// # Errors
    /// When the ledger fails.
    pub(super) async fn work(self, mut stopping: watch::Receiver<bool>) -> Result<(), LedgerError> {
        // A room that was made before the process ended is known again by then.
        if !self.service.first_sync().await {
            return Ok(());
        }
        let mut failures = 0;
        // What was put off before the start may have been put off by a board that is back by now.
        let mut to_hurry = HURRIES;
        let mut told = Told::default();
        loop {
            let looked = self.sweep(&mut told).await?;
            if looked == Looked::Unread {
                to_hurry = HURRIES;
            } else if to_hurry > 0 {
                to_hurry -= 1;
                self.service.board_is_back(&self.board).await?;
            }
            failures = match looked {
                Looked::InLine => 0,
                Looked::Unread | Looked::NoRoom => failures + 1,
            };
            let asked = async {
                self.service.asked_to_look(&self.board).await;
                tokio::time::sleep(GATHER).await;
            };
            tokio::select! {
                _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
                () = asked => {}
                () = tokio::time::sleep(wait(self.every, failures, rand::random())) => {}
            }
        }
    }

    async fn sweep(&self, told: &mut Told) -> Result<Looked, LedgerError> {
        let board = self.board.as_str();
        if let Some(url) = &self.push_url {
            self.subscribe(url, told).await;
        }
        let read_at = clock::now();
        let listed = match self.client.pending().await {
            Ok(listed) => listed,
            Err(error) => {
                told.is_read = false;
                self.count(SWEEPS, "unread", 1);
                metrics::gauge!(UNREAD, "board" => self.board.clone()).set(1);
                tracing::warn!(
                    board.id = board, error = %error,
                    "what is pending on {board} could not be read: {error}"
                );
                return Ok(Looked::Unread);
            }
        };
        self.count(SWEEPS, "read", 1);
        metrics::gauge!(UNREAD, "board" => self.board.clone()).set(0);
        if !std::mem::replace(&mut told.is_read, true) {
            let pending = listed.len();
            tracing::info!(
                board.id = board,
                pending,
                "{board} is read; pending there: {pending}"
            );
        }
        let done = self.service.reconcile(board, &listed, read_at).await?;
        self.count(FOUND, "posted", done.posted);
        self.count(FOUND, "settled", done.settled);
        self.count(FOUND, "malformed", done.malformed);
        if done.posted + done.settled > 0 {
            tracing::info!(
                board.id = board,
                posted = done.posted,
                settled = done.settled,
                "{board}: questions that were unknown here: {}, that are settled there: {}",
                done.posted,
                done.settled
            );
        }
        if let Some(why) = &done.not_posted {
            tracing::warn!(
                board.id = board,
                why,
                "questions of {board} wait for a room: {why}"
            );
        }
        self.service.name_board_room(board).await?;
        Ok(match done.not_posted {
            None => Looked::InLine,
            Some(_) => Looked::NoRoom,
        })
    }

    async fn subscribe(&self, url: &Url, told: &mut Told) {
        let board = self.board.as_str();
        match self.client.subscribe(url, &[PENDING]).await {
            Ok(()) => {
                self.count(SUBSCRIPTIONS, "subscribed", 1);
                if !std::mem::replace(&mut told.is_subscribed, true) {
                    tracing::info!(board.id = board, url = %url, "{board} pushes to {url}");
                }
            }
            Err(error) => {
                told.is_subscribed = false;
                self.count(SUBSCRIPTIONS, "failed", 1);
                tracing::warn!(
                    board.id = board, error = %error,
                    "the pushes of {board} could not be subscribed to: {error}"
                );
            }
        }
    }

    fn count(&self, counter: &'static str, outcome: &'static str, by: usize) {
        metrics::counter!(counter, "board" => self.board.clone(), "outcome" => outcome)
            .increment(by as u64);
    }
}

/// How long until the next look: `every`, a tenth more or less, so that many bots do not come at
/// once; after failures sooner, at first.
fn wait(every: Duration, failures: u32, random: u64) -> Duration {
    let steady = match failures {
        0 => every,
        failures => SOON.saturating_mul(1 << (failures - 1).min(10)).min(every),
    };
    let fifth = u64::try_from(steady.as_millis() / 5).unwrap_or(u64::MAX);
    let jitter = Duration::from_millis(random % fifth.saturating_add(1));
    steady.mul_f64(0.9) + jitter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_spread_around_their_interval() {
        let every = Duration::from_mins(5);
        let waits: Vec<Duration> = (0..=60_000).map(|random| wait(every, 0, random)).collect();
        assert_eq!(waits.iter().min(), Some(&Duration::from_secs(270)));
        assert_eq!(waits.iter().max(), Some(&Duration::from_secs(330)));
    }

    #[test]
    fn after_a_failure_it_is_looked_sooner_and_never_later_than_usual() {
        let every = Duration::from_mins(5);
        let half = |failures| wait(every, failures, 0).as_millis() * 10 / 9;
        assert_eq!(half(1), 5_000);
        assert_eq!(half(2), 10_000);
        assert_eq!(half(7), 300_000);
        assert_eq!(half(u32::MAX), 300_000);
        assert_eq!(
            wait(Duration::from_secs(1), 3, 0),
            Duration::from_millis(900)
        );
    }
}
