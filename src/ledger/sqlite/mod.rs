//! The ledger on SQLite: WAL, `synchronous=FULL`, one process at a time.

mod announcements;
mod boards;
mod inbox;
mod outbox;
mod people;
mod questions;
mod sessions;
mod streams;

use std::fs::{File, OpenOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, ToSql};
use rusqlite_migration::{M, Migrations};

use super::{Book, Ledger, LedgerError, Note};
use crate::clock::Millis;

/// The migrations, in order. One that was released is never changed.
const MIGRATIONS: &[M<'_>] = &[
    M::up(include_str!("../migrations/001_first.sql")),
    M::up(include_str!("../migrations/002_talk.sql")),
    M::up(include_str!("../migrations/003_upgrades.sql")),
    M::up(include_str!("../migrations/004_boards.sql")),
    M::up(include_str!("../migrations/005_sessions.sql")),
    M::up(include_str!("../migrations/006_streams.sql")),
];

/// A room as `?1` and all that took its place, one after the other, as `rooms`.
const SUCCESSION: &str = "WITH RECURSIVE rooms (id) AS
    (VALUES (?1) UNION SELECT successor FROM successors JOIN rooms ON room_id = id)";

/// How long another program that has the database may keep us waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// One connection to the ledger.
pub struct SqliteLedger {
    connection: Connection,
    notes: Vec<Note>,
    /// Whether statements belong to a transaction that was begun here.
    in_transaction: bool,
    /// Whether something was deleted that must not stay in the log either.
    forgot: bool,
    /// Held as long as the ledger is open; the writer's keeps other processes out.
    _lock: Option<File>,
}

/// Opens (and if need be creates or migrates) the ledger in a folder and starts its threads.
///
/// # Errors
/// [`LedgerError::InUse`] when another process has it, [`LedgerError::TooNew`] when a newer
/// version wrote it, else what the disk says.
pub fn open(folder: &Path) -> Result<Book, LedgerError> {
    std::fs::create_dir_all(folder).map_err(|error| disk(folder, &error))?;
    let lock = lock(folder)?;
    let path = folder.join("ledger.sqlite3");
    let mut writer = SqliteLedger::connect(&path, Some(lock))?;
    writer.migrate()?;
    writer.release_claims()?;
    // A process that died may have left in its log what it had deleted.
    writer.forgot = true;
    writer.clean_log();
    let reader = SqliteLedger::connect(&path, None)?;
    reader.connection.pragma_update(None, "query_only", true)?;
    Book::start(writer, reader)
}

fn disk(path: &Path, error: &std::io::Error) -> LedgerError {
    LedgerError::Store(format!("{}: {error}", path.display()))
}

/// Takes the exclusive lock that goes away with the process, however it ends.
fn lock(folder: &Path) -> Result<File, LedgerError> {
    let path = folder.join("ledger.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| disk(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(LedgerError::InUse(folder.display().to_string()))
        }
        Err(std::fs::TryLockError::Error(error)) => Err(disk(&path, &error)),
    }
}

impl SqliteLedger {
    fn connect(path: &Path, lock: Option<File>) -> Result<Self, LedgerError> {
        Self::set_up(Connection::open(path)?, lock)
    }

    fn set_up(connection: Connection, lock: Option<File>) -> Result<Self, LedgerError> {
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // Redacted texts are overwritten, not only unlinked.
        connection.pragma_update(None, "secure_delete", true)?;
        connection.set_prepared_statement_cache_capacity(128);
        Ok(Self {
            connection,
            notes: Vec::new(),
            in_transaction: false,
            forgot: false,
            _lock: lock,
        })
    }

    fn migrate(&mut self) -> Result<(), LedgerError> {
        Migrations::from_slice(MIGRATIONS)
            .to_latest(&mut self.connection)
            .map_err(|error| match error {
                rusqlite_migration::Error::MigrationDefinition(_) => {
                    LedgerError::TooNew(error.to_string())
                }
                other => LedgerError::Store(other.to_string()),
            })
    }

    /// Work put off by a process that is gone need not wait out its time.
    fn release_claims(&mut self) -> Result<(), LedgerError> {
        self.change("UPDATE outbox SET next_at = 0 WHERE state = 'pending'", [])?;
        self.change(
            "UPDATE submissions SET next_at = 0, in_hand = 0 WHERE state = 'pending'",
            [],
        )?;
        Ok(())
    }

    /// A ledger that lives as long as its value, inside a transaction that is never committed.
    #[cfg(test)]
    pub(super) fn in_memory() -> Result<Self, LedgerError> {
        let mut ledger = Self::set_up(Connection::open_in_memory()?, None)?;
        ledger.migrate()?;
        ledger.begin()?;
        Ok(ledger)
    }

    /// The connection itself, to look at or to break what no caller can.
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn begin(&mut self) -> Result<(), LedgerError> {
        self.notes.clear();
        // What an earlier rollback may have left behind.
        self.roll_back();
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        self.in_transaction = true;
        Ok(())
    }

    pub(super) fn commit(&mut self) -> Result<(), LedgerError> {
        let committed = self.batch("COMMIT");
        // Nothing of a group that could not be committed may leak into the next.
        self.roll_back();
        committed
    }

    /// Empties the log when it may hold what was deleted for good. Somebody who is reading is not
    /// waited for; then it is tried again after the next commit.
    pub(super) fn clean_log(&mut self) {
        if !self.forgot {
            return;
        }
        let emptied = self.connection.busy_timeout(Duration::ZERO).and_then(|()| {
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            self.connection
                .query_row(checkpoint, [], |row| row.get::<_, i64>(0))
        });
        self.forgot = !matches!(emptied, Ok(0));
        let restored = self.connection.busy_timeout(PATIENCE);
        debug_assert!(restored.is_ok(), "setting a timeout does not fail");
    }

    fn roll_back(&mut self) {
        self.in_transaction = false;
        if !self.connection.is_autocommit() {
            // If this fails, the transaction is still there, and `begin` tries again.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// Runs work that is undone as a whole when it errs or panics. The outer error is its panic.
    pub(super) fn in_savepoint<T, E, F>(&mut self, work: F) -> thread::Result<Result<T, E>>
    where
        E: From<LedgerError>,
        F: FnOnce(&mut dyn Ledger) -> Result<T, E>,
    {
        let notes = self.notes.len();
        if let Err(error) = self.batch("SAVEPOINT job") {
            return Ok(Err(error.into()));
        }
        // What a panic leaves half-done is undone here, like what an error leaves.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        let done = matches!(outcome, Ok(Ok(_)));
        let end = if done {
            "RELEASE job"
        } else {
            self.notes.truncate(notes);
            "ROLLBACK TO job; RELEASE job"
        };
        match self.batch(end) {
            Ok(()) => outcome,
            Err(error) => {
                // It can be neither kept nor undone alone: then the whole transaction goes, and
                // every request in it is told so by the commit.
                if !self.connection.is_autocommit() {
                    let _ = self.connection.execute_batch("ROLLBACK");
                }
                if done { Ok(Err(error.into())) } else { outcome }
            }
        }
    }

    /// Runs work that sees one moment of what is committed. The outer error is its panic.
    pub(super) fn in_snapshot<T, E, F>(&mut self, work: F) -> thread::Result<Result<T, E>>
    where
        E: From<LedgerError>,
        F: FnOnce(&mut dyn Ledger) -> Result<T, E>,
    {
        if let Err(error) = self.batch("BEGIN") {
            return Ok(Err(error.into()));
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        self.roll_back();
        outcome
    }

    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.dedup();
        notes
    }

    /// On a full or failing disk SQLite may roll back on its own. What came after would then be
    /// committed by itself, statement by statement.
    fn still_in_transaction(&self) -> Result<(), LedgerError> {
        if self.in_transaction && self.connection.is_autocommit() {
            let why = "the disk is full or failing, and the transaction was rolled back";
            return Err(LedgerError::Store(why.to_owned()));
        }
        Ok(())
    }

    fn batch(&self, sql: &str) -> Result<(), LedgerError> {
        self.still_in_transaction()?;
        Ok(self.connection.execute_batch(sql)?)
    }

    fn statement(&self, sql: &str) -> Result<CachedStatement<'_>, LedgerError> {
        self.still_in_transaction()?;
        Ok(self.connection.prepare_cached(sql)?)
    }

    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Runs a statement and gives the number of rows it changed.
    fn change(&self, sql: &str, params: impl Params) -> Result<usize, LedgerError> {
        Ok(self.statement(sql)?.execute(params)?)
    }

    /// The first row of a query, if any.
    fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, LedgerError> {
        Ok(self.statement(sql)?.query_row(params, read).optional()?)
    }

    /// All rows of a query.
    fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, LedgerError> {
        let mut statement = self.statement(sql)?;
        let rows = statement
            .query_map(params, read)?
            .collect::<rusqlite::Result<_>>()?;
        Ok(rows)
    }

    /// One number; `NULL` is `None`.
    fn number(&self, sql: &str, params: impl Params) -> Result<Option<i64>, LedgerError> {
        Ok(self.first(sql, params, |row| row.get(0))?.flatten())
    }
}

impl Ledger for SqliteLedger {
    fn prune(&mut self, before: Millis) -> Result<u64, LedgerError> {
        // A question whose last words are still to be sent is needed to send them.
        let over = "SELECT origin, id FROM elicitations WHERE closed_at < ?1
             AND (origin, id) NOT IN (SELECT origin, id FROM outbox WHERE state = 'pending')";
        // One that nobody has spoken in for so long is not taken up again.
        let still = "session ->> '$.updated_at' < ?1
             AND (ended_at IS NOT NULL OR status IN ('complete', 'error', 'stale'))
             AND 'session:' || id NOT IN
                 (SELECT origin FROM outbox WHERE state = 'pending'
                  UNION ALL SELECT origin FROM elicitations WHERE state IN ('queued', 'open'))";
        let mut gone = 0;
        for sql in [
            &format!("DELETE FROM own_events WHERE (origin, id) IN ({over})"),
            &format!("DELETE FROM told WHERE (origin, id) IN ({over})"),
            &format!("DELETE FROM submissions WHERE (origin, id) IN ({over})"),
            &format!("DELETE FROM elicitations WHERE (origin, id) IN ({over})"),
            &format!(
                "DELETE FROM activities WHERE session_id IN (SELECT id FROM sessions WHERE {still})"
            ),
            &format!(
                "DELETE FROM own_events WHERE origin IN (SELECT 'session:' || id FROM sessions WHERE {still})"
            ),
            &format!(
                "DELETE FROM told WHERE origin IN (SELECT 'session:' || id FROM sessions WHERE {still})"
            ),
            &format!("DELETE FROM sessions WHERE {still}"),
            "DELETE FROM outbox WHERE state <> 'pending' AND created_at < ?1",
            "DELETE FROM events WHERE at < ?1 AND seq NOT IN
                 (SELECT event_seq FROM deliveries WHERE state <> 'delivered')",
            "DELETE FROM seen WHERE seen_at < ?1",
            "DELETE FROM undecrypted WHERE heard_at < ?1",
            "DELETE FROM commands WHERE at < ?1",
        ] {
            gone += self.change(sql, [before])? as u64;
        }
        Ok(gone)
    }
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.to_string())
    }
}

/// A row's JSON column as a type.
fn from_json<T: serde::de::DeserializeOwned>(
    what: &'static str,
    json: &str,
) -> Result<T, LedgerError> {
    serde_json::from_str(json).map_err(|error| LedgerError::Unreadable {
        what,
        why: error.to_string(),
    })
}

/// A type as a row's JSON column.
fn to_json<T: serde::Serialize>(what: &'static str, value: &T) -> Result<String, LedgerError> {
    serde_json::to_string(value).map_err(|error| LedgerError::Unreadable {
        what,
        why: error.to_string(),
    })
}

/// Parameters of statements that take a key first.
fn key_params(key: &crate::elicitation::Key) -> [&dyn ToSql; 2] {
    [&key.origin, &key.id]
}
