//! The shared front of the ledger: one writer with group commit, one reader.
//!
//! Requests queue up while a commit is on its way to the disk; all that are
//! waiting then share the next transaction. Each request has a savepoint of its
//! own, so that one that fails takes nothing else with it. Answers go out only
//! after the commit.
//!
//! A request that panics is undone like one that errs; the panic goes on in the
//! task that asked, and the ledger serves everybody else. When a commit fails,
//! every request in it is told so and nothing of it is kept.

use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot};

use super::{Ledger, LedgerError, SqliteLedger};
use crate::crash;
use crate::elicitation::Key;

#[cfg(test)]
mod files;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod tests;

/// The most requests that share one transaction.
const GROUP: usize = 256;
/// How many notes a slow listener may fall behind before it has to look for itself.
const NOTES: usize = 8192;

/// What a commit changed, for those who wait for it. Only a hint to look: whoever lags behind
/// looks at everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A question came to be, in this room.
    Asked(String),
    /// A question was closed.
    Closed(Key),
    /// Something is to be sent to this room.
    Outbox(String),
    /// There is an event for this origin.
    Event(String),
    /// Something about a session changed, or is to be done by itself.
    Session,
    /// There is an answer to be handed in to this origin, a board.
    Submission(String),
}

/// Waits until something is noted that is `mine`, or may be. `false` when the ledger is closed.
pub async fn woken(notes: &mut broadcast::Receiver<Note>, mine: impl Fn(&Note) -> bool) -> bool {
    loop {
        match notes.recv().await {
            Ok(note) if mine(&note) => return true,
            Ok(_) => {}
            // Some notes were missed; what is waited for may be among them.
            Err(RecvError::Lagged(_)) => return true,
            Err(RecvError::Closed) => return false,
        }
    }
}

/// What a job does once its transaction is committed, or could not be.
type Reply = Box<dyn FnOnce(Result<(), String>) + Send>;
/// Work to be done in a transaction, or told why there is none.
type Job = Box<dyn FnOnce(Result<&mut SqliteLedger, String>) -> Reply + Send>;

/// A handle on the ledger; clones share it. After the last one is dropped, what was asked of the
/// ledger is still done, and then it is closed.
#[derive(Clone)]
pub struct Book {
    writer: mpsc::Sender<Job>,
    reader: mpsc::Sender<Job>,
    notes: broadcast::Sender<Note>,
}

impl Book {
    /// Starts the writer and the reader over two connections to the same ledger.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(writer: SqliteLedger, reader: SqliteLedger) -> Result<Self, LedgerError> {
        let (notes, _) = broadcast::channel(NOTES);
        let (write_jobs, incoming) = mpsc::channel::<Job>();
        let (read_jobs, reading) = mpsc::channel::<Job>();
        let told = notes.clone();
        let reads = spawn("ledger-reader", move || read_all(reader, &reading))?;
        spawn("ledger-writer", move || {
            let ledger = write_all(writer, &incoming, &told);
            // Whoever closes last, alone, leaves no log behind.
            let _ = reads.join();
            drop(ledger);
        })?;
        Ok(Self {
            writer: write_jobs,
            reader: read_jobs,
            notes,
        })
    }

    /// Runs `work` inside a transaction and returns once it is on the disk.
    ///
    /// When `work` errs, nothing it did is kept.
    ///
    /// # Errors
    /// What `work` says, or that the commit failed, or that the ledger is closed.
    ///
    /// # Panics
    /// When `work` does; then nothing it did is kept.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<LedgerError> + Send + 'static,
        F: FnOnce(&mut dyn Ledger) -> Result<T, E> + Send + 'static,
    {
        run(&self.writer, work, true).await
    }

    /// Runs `work` on what is committed. It sees one moment, and cannot change anything.
    ///
    /// # Errors
    /// What `work` says, or that the ledger is closed.
    ///
    /// # Panics
    /// When `work` does.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<LedgerError> + Send + 'static,
        F: FnOnce(&mut dyn Ledger) -> Result<T, E> + Send + 'static,
    {
        run(&self.reader, work, false).await
    }

    /// What changes from now on.
    pub fn notes(&self) -> broadcast::Receiver<Note> {
        self.notes.subscribe()
    }
}

async fn run<T, E, F>(jobs: &mpsc::Sender<Job>, work: F, savepoint: bool) -> Result<T, E>
where
    T: Send + 'static,
    E: From<LedgerError> + Send + 'static,
    F: FnOnce(&mut dyn Ledger) -> Result<T, E> + Send + 'static,
{
    let (done, result) = oneshot::channel::<thread::Result<Result<T, E>>>();
    let job: Job = Box::new(move |ledger| {
        let outcome = match ledger {
            Ok(ledger) if savepoint => ledger.in_savepoint(work),
            Ok(ledger) => ledger.in_snapshot(work),
            Err(why) => Ok(Err(E::from(LedgerError::Store(why)))),
        };
        Box::new(move |committed| {
            // A caller that went away no longer cares; its work is committed all the same.
            let _ = done.send(match (outcome, committed) {
                (Ok(_), Err(why)) => Ok(Err(E::from(LedgerError::Store(why)))),
                (outcome, _) => outcome,
            });
        })
    });
    jobs.send(job).map_err(|_| E::from(LedgerError::Closed))?;
    match result.await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => Err(E::from(LedgerError::Closed)),
    }
}

fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Result<thread::JoinHandle<()>, LedgerError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| LedgerError::Store(error.to_string()))
}

fn write_all(
    mut ledger: SqliteLedger,
    jobs: &mpsc::Receiver<Job>,
    notes: &broadcast::Sender<Note>,
) -> SqliteLedger {
    while let Ok(first) = jobs.recv() {
        let begun = ledger.begin().map_err(|error| error.to_string());
        let mut replies = Vec::new();
        let mut waiting = Some(first);
        while let Some(job) = waiting {
            // A transaction that cannot begin may have taken long to fail: nobody waits for another.
            replies.push(job(match &begun {
                Ok(()) => Ok(&mut ledger),
                Err(why) => Err(why.clone()),
            }));
            waiting = if replies.len() < GROUP {
                jobs.try_recv().ok()
            } else {
                None
            };
        }
        crash::point("commit.before");
        let committed = begun.and_then(|()| ledger.commit().map_err(|error| error.to_string()));
        crash::point("commit.after");
        if committed.is_ok() {
            for note in ledger.take_notes() {
                let _ = notes.send(note);
            }
        }
        for reply in replies {
            reply(committed.clone());
        }
        ledger.clean_log();
    }
    ledger
}

fn read_all(mut ledger: SqliteLedger, jobs: &mpsc::Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        job(Ok(&mut ledger))(Ok(()));
    }
}
