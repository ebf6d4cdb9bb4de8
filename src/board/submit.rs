//! Hands people's answers in to a board, as themselves, until the board has decided.
//!
//! pending → in hand → ended, or → pending again after a failure that may pass. A crash while an
//! answer is in hand hands it in again: then a board that no longer asks may have it already, and
//! the room is told that this cannot be known.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{BoardClient, Given, NoCredential, People};
use crate::clock;
use crate::contract::board::Verdict;
use crate::crash;
use crate::delivery::backoff;
use crate::elicitation::{Key, Outcome};
use crate::ledger::{self, LedgerError, Note, Submission};
use crate::service::Service;

/// The counter of answers handed in, by `board` and `outcome`: `retried`, or how it ended.
pub const SUBMISSIONS: &str = "elicit_board_submissions_total";

/// So many answers are handed in at a time.
const PARALLEL: usize = 8;
/// So many are looked up at once.
const AT_A_LOOK: usize = 64;
/// After so long the person sees that it takes its time.
const SLOW: Duration = Duration::from_secs(3);
/// The ledger is looked at this often even when nothing wakes us: the clock may have been set.
const AT_LEAST_EVERY: Duration = Duration::from_mins(1);

/// Whoever hands in the answers to one board.
pub(super) struct Clerk {
    pub(super) service: Arc<Service>,
    pub(super) board: String,
    pub(super) client: Arc<BoardClient>,
    pub(super) people: People,
}

/// What came of handing an answer in once.
enum Tried {
    Ended(Outcome),
    Failed {
        why: String,
        retry_after: Option<Duration>,
    },
    /// It is not to be handed in any more.
    Withdrawn,
}

impl Clerk {
    /// Hands in until `stopping` becomes true. What is in hand then is handed in again after the
    /// next start.
    ///
    /// # Errors
    /// When the ledger fails, or a task panicked.
    pub(super) async fn work(
        self: Arc<Self>,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<(), LedgerError> {
        let origin = Key::of_board(&self.board, "").origin;
        let mine = |note: &Note| matches!(note, Note::Submission(of) if *of == origin);
        // Listening begins before reading: what is committed in between is seen by one or the other.
        let mut notes = self.service.book().notes();
        let mut calls: JoinSet<(i64, Result<(), LedgerError>)> = JoinSet::new();
        let mut in_hand: HashSet<i64> = HashSet::new();
        loop {
            let (due, next) = self.service.submissions_due(&self.board, AT_A_LOOK).await?;
            for submission in due {
                if in_hand.len() < PARALLEL && in_hand.insert(submission.seq) {
                    let clerk = Arc::clone(&self);
                    calls.spawn(async move {
                        let seq = submission.seq;
                        (seq, clerk.carry(submission).await)
                    });
                }
            }
            let sleep = next.map_or(AT_LEAST_EVERY, |at| clock::until(at, AT_LEAST_EVERY));
            tokio::select! {
                Some(done) = calls.join_next() => {
                    // A task that panics is a bug that must not go unseen.
                    let (seq, outcome) = done.map_err(|error| LedgerError::Store(error.to_string()))?;
                    in_hand.remove(&seq);
                    outcome?;
                }
                open = ledger::woken(&mut notes, mine) => if !open { return Ok(()) },
                () = tokio::time::sleep(sleep) => {}
                _ = stopping.wait_for(|&stopping| stopping) => break,
            }
        }
        calls.shutdown().await;
        Ok(())
    }

    /// Hands an answer in once, and notes what came of it.
    async fn carry(&self, submission: Submission) -> Result<(), LedgerError> {
        crash::point("submit.due");
        let (id, seq) = (submission.key.id.clone(), submission.seq);
        let board = self.board.as_str();
        let tried = {
            let trying = self.try_once(&submission);
            tokio::pin!(trying);
            tokio::select! {
                tried = &mut trying => tried?,
                () = tokio::time::sleep(SLOW) => {
                    self.service.show_waiting(&submission).await?;
                    trying.await?
                }
            }
        };
        match tried {
            Tried::Withdrawn => return Ok(()),
            Tried::Ended(outcome) => {
                let word = outcome.word();
                self.count(word);
                tracing::info!(
                    board.id = board, elicitation.id = %id, outcome = word,
                    "the answer to {id} of {board}: {word}"
                );
                self.service.handed_in(submission, outcome).await?;
            }
            Tried::Failed { why, retry_after } => {
                self.count("retried");
                let attempt = submission.attempts.saturating_add(1);
                let wait = backoff::wait(attempt, rand::random(), retry_after);
                let wait_ms = clock::millis(wait);
                tracing::warn!(
                    board.id = board, elicitation.id = %id, submission.seq = seq,
                    submission.attempt = attempt, wait_ms, error = %why,
                    "the answer to {id} could not be handed in to {board} ({why}); next try in {wait_ms} ms"
                );
                let until = clock::now().saturating_add(wait_ms);
                self.service.put_off(&submission, until, why).await?;
            }
        }
        crash::point("submit.ended");
        Ok(())
    }

    async fn try_once(&self, submission: &Submission) -> Result<Tried, LedgerError> {
        let answer = &submission.answer;
        let given = match (&answer.option, &answer.text) {
            (Some(option), _) => Given::Option(option.id.clone()),
            (None, Some(text)) => Given::Text(text.clone()),
            // Its text is gone, and so is what could be handed in.
            (None, None) => return Ok(Tried::Ended(Outcome::Invalid)),
        };
        let who = answer.answered_by.as_str();
        let mut begun = false;
        // What a board does not know any more of a credential that was kept, it may of a new one.
        let mut fresh = !self.people.is_cached_kind();
        loop {
            let credential = match self.people.credential_of(who, clock::now()).await {
                Ok(credential) => credential,
                Err(NoCredential::Unknown) => return Ok(Tried::Ended(Outcome::UnknownPerson)),
                // What was promised to be tried again is.
                Err(NoCredential::Down { why, retry_after }) if submission.tried || begun => {
                    return Ok(Tried::Failed { why, retry_after });
                }
                Err(NoCredential::Down { why, .. }) => {
                    let board = self.board.as_str();
                    tracing::warn!(
                        board.id = board, error = %why,
                        "nobody says who people are on {board}: {why}"
                    );
                    return Ok(Tried::Ended(Outcome::IdentityDown));
                }
            };
            if !begun && !self.service.hand_in(submission.seq).await? {
                return Ok(Tried::Withdrawn);
            }
            begun = true;
            crash::point("submit.in_hand");
            let id = submission.key.id.as_str();
            let verdict = self.client.answer(id, &given, &credential).await;
            crash::point("submit.posted");
            if verdict == Verdict::UnknownPerson && !fresh {
                self.people.forget(who);
                fresh = true;
                continue;
            }
            return Ok(tried(verdict, submission));
        }
    }

    fn count(&self, outcome: &'static str) {
        metrics::counter!(SUBMISSIONS, "board" => self.board.clone(), "outcome" => outcome)
            .increment(1);
    }
}

/// What a board's verdict means for an answer.
fn tried(verdict: Verdict, submission: &Submission) -> Tried {
    Tried::Ended(match verdict {
        Verdict::Taken => Outcome::Taken,
        Verdict::Settled => Outcome::Settled {
            uncertain: submission.tried,
        },
        Verdict::Invalid => Outcome::Invalid,
        Verdict::SeparationOfDuties => Outcome::SeparationOfDuties,
        Verdict::UnknownPerson => Outcome::UnknownPerson,
        Verdict::NotAllowed { code } => Outcome::Refused { code },
        Verdict::Failed { why, retry_after } => return Tried::Failed { why, retry_after },
    })
}
