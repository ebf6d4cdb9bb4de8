//! The ledger on SQLite: WAL, `synchronous=FULL`, one process at a time.

mod announcements;
mod inbox;
mod outbox;
mod questions;

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Params, Row, ToSql};
use rusqlite_migration::{M, Migrations};

use super::{Book, Ledger, LedgerError, Note};
use crate::clock::Millis;

/// The migrations, in order. One that was released is never changed.
const MIGRATIONS: &[M<'_>] = &[M::up(include_str!("../migrations/001_first.sql"))];

/// One connection to the ledger.
pub struct SqliteLedger {
    connection: Connection,
    notes: Vec<Note>,
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
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // Redacted texts are overwritten, not only unlinked.
        connection.pragma_update(None, "secure_delete", true)?;
        connection.set_prepared_statement_cache_capacity(128);
        Ok(Self {
            connection,
            notes: Vec::new(),
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
        self.connection.execute_batch(
            "UPDATE outbox SET next_at = 0 WHERE state = 'pending';
             UPDATE deliveries SET next_at = MIN(next_at, created_at) WHERE state = 'pending' AND attempts = 0;",
        )?;
        Ok(())
    }

    pub(super) fn begin(&mut self) -> Result<(), LedgerError> {
        self.notes.clear();
        Ok(self.connection.execute_batch("BEGIN IMMEDIATE")?)
    }

    pub(super) fn commit(&mut self) -> Result<(), LedgerError> {
        let committed = self.connection.execute_batch("COMMIT");
        if committed.is_err() && !self.connection.is_autocommit() {
            // Nothing of a group that could not be committed may leak into the next.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        Ok(committed?)
    }

    /// Runs work that is undone as a whole when it errs.
    pub(super) fn in_savepoint<T, E, F>(&mut self, work: F) -> Result<T, E>
    where
        E: From<LedgerError>,
        F: FnOnce(&mut dyn Ledger) -> Result<T, E>,
    {
        let notes = self.notes.len();
        self.batch("SAVEPOINT job")?;
        match work(self) {
            Ok(value) => {
                self.batch("RELEASE job")?;
                Ok(value)
            }
            Err(error) => {
                self.notes.truncate(notes);
                self.batch("ROLLBACK TO job; RELEASE job")?;
                Err(error)
            }
        }
    }

    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.dedup();
        notes
    }

    fn batch(&self, sql: &str) -> Result<(), LedgerError> {
        Ok(self.connection.execute_batch(sql)?)
    }

    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Runs a statement and gives the number of rows it changed.
    fn change(&self, sql: &str, params: impl Params) -> Result<usize, LedgerError> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }

    /// The first row of a query, if any.
    fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, LedgerError> {
        Ok(self
            .connection
            .prepare_cached(sql)?
            .query_row(params, read)
            .optional()?)
    }

    /// All rows of a query.
    fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, LedgerError> {
        let mut statement = self.connection.prepare_cached(sql)?;
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
        let mut gone = 0;
        for sql in [
            "DELETE FROM own_events WHERE (origin, id) IN
                 (SELECT origin, id FROM elicitations WHERE closed_at < ?1)",
            "DELETE FROM told WHERE (origin, id) IN
                 (SELECT origin, id FROM elicitations WHERE closed_at < ?1)",
            "DELETE FROM outbox WHERE state <> 'pending' AND created_at < ?1",
            "DELETE FROM events WHERE at < ?1 AND seq NOT IN
                 (SELECT event_seq FROM deliveries WHERE state <> 'delivered')",
            "DELETE FROM elicitations WHERE closed_at < ?1 AND (origin, id) NOT IN
                 (SELECT origin, id FROM outbox WHERE state = 'pending')",
            "DELETE FROM seen WHERE seen_at < ?1",
            "DELETE FROM undecrypted WHERE heard_at < ?1",
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
fn key_params<'a>(key: &'a crate::elicitation::Key) -> [&'a dyn ToSql; 2] {
    [&key.origin, &key.id]
}
