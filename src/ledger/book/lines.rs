//! What was said in streams' rooms, in the ledger's files.

use std::sync::mpsc;

use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::files::holds;
use super::tests::{database, new_book, reopen};
use crate::clock::Millis;
use crate::ledger::conformance::streams::{line, text};
use crate::ledger::conformance::{NOON, ROOM};
use crate::ledger::{Book, KeptLine, KeptText, Ledger, LedgerError, SqliteLedger, Streams};

const SECRET: &str = "the key is under the mat";
const MIRA: &str = "@mira:example.org";

/// Keeps a line that says the secret, and whose edit says it once more.
async fn say(book: &Book) {
    let secret = |event_id: &str, key: &str| KeptText {
        body: SECRET.to_owned(),
        prepared: Some(format!("{{\"what\":\"{SECRET}\"}}")),
        ..text(event_id, 1, Some(key))
    };
    let kept = KeptLine {
        text: secret("$a", SECRET),
        ..line("$a", 1)
    };
    let edited = secret("$edit", SECRET);
    let said = book.write(move |ledger| {
        assert!(ledger.keep_line(&kept)?);
        assert!(ledger.edit_line(ROOM, "$a", MIRA, &edited)?);
        Ok::<_, LedgerError>(())
    });
    said.await.unwrap();
}

/// Somebody who reads, and so keeps the log from being emptied.
struct Reading {
    go_on: mpsc::Sender<()>,
    task: JoinHandle<()>,
}

impl Reading {
    async fn start(book: &Book) -> Self {
        let (inside, is_inside) = oneshot::channel();
        let (go_on, told) = mpsc::channel::<()>();
        let book = book.clone();
        let task = tokio::spawn(async move {
            let reading = book.read(move |ledger| {
                ledger.sync_token()?;
                inside.send(()).unwrap();
                told.recv().unwrap();
                Ok::<_, LedgerError>(())
            });
            reading.await.unwrap();
        });
        is_inside.await.unwrap();
        Self { go_on, task }
    }

    async fn end(self) {
        self.go_on.send(()).unwrap();
        self.task.await.unwrap();
    }
}

/// Waits for what the ledger does after its answer: the next one finds it done.
async fn settle(book: &Book) {
    for token in ["s1", "s2"] {
        let next = book.write(move |ledger| ledger.set_sync_token(token));
        next.await.unwrap();
    }
}

#[tokio::test]
async fn the_clock_of_streams_goes_on_where_it_was_after_a_restart() {
    let (folder, book) = new_book();
    let stamp = |book: &Book, now: Millis| {
        let book = book.clone();
        async move { book.write(move |ledger| ledger.stamp(now)).await.unwrap() }
    };
    assert_eq!(stamp(&book, NOON + 7).await, NOON + 7);
    drop(book);
    let book = reopen(folder.path());
    assert_eq!(stamp(&book, NOON).await, NOON + 8);
    assert_eq!(stamp(&book, NOON + 30).await, NOON + 30);
}

/// A way in which a text is deleted.
type Delete = fn(&mut dyn Ledger) -> Result<(), LedgerError>;

#[tokio::test]
async fn a_text_that_was_deleted_is_in_no_file() {
    let ways: [(&str, Delete); 6] = [
        ("redacted", |ledger| {
            assert!(ledger.unsay(ROOM, "$a", NOON)?);
            Ok(())
        }),
        ("opted out", |ledger| {
            assert!(ledger.opt_out(MIRA, NOON)?);
            Ok(())
        }),
        ("old", |ledger| {
            assert_eq!(ledger.forget_lines(ROOM, NOON + 2)?, 1);
            Ok(())
        }),
        ("of no stream", |ledger| {
            assert_eq!(ledger.forget_rooms_but(&[])?, 1);
            Ok(())
        }),
        ("edited, and the edit redacted", |ledger| {
            // What the message itself says is the secret too: only the edit's may stay.
            let last = text("$last", 2, None);
            assert!(ledger.edit_line(ROOM, "$a", MIRA, &last)?);
            assert!(ledger.unsay(ROOM, "$edit", NOON)?);
            assert!(ledger.unsay(ROOM, "$a", NOON)?);
            Ok(())
        }),
        (
            "without a place in the room that took the place",
            |ledger| {
                let there = KeptLine {
                    room_id: "!next:example.org".to_owned(),
                    ..line("$a", 2)
                };
                assert!(ledger.keep_line(&there)?);
                ledger.move_lines(ROOM, "!next:example.org")
            },
        ),
    ];
    for (way, delete) in ways {
        let (folder, book) = new_book();
        say(&book).await;
        assert!(holds(&folder, SECRET), "{way}");
        book.write(delete).await.unwrap();
        settle(&book).await;
        assert!(!holds(&folder, SECRET), "{way}");
    }
}

#[tokio::test]
async fn the_text_of_an_edit_that_was_redacted_is_in_no_file() {
    let (folder, book) = new_book();
    let edited = KeptText {
        body: SECRET.to_owned(),
        ..text("$edit", 1, None)
    };
    let said = book.write(move |ledger| {
        assert!(ledger.keep_line(&line("$a", 1))?);
        assert!(ledger.edit_line(ROOM, "$a", MIRA, &edited)?);
        Ok::<_, LedgerError>(())
    });
    said.await.unwrap();
    assert!(holds(&folder, SECRET));
    let unsaid = book.write(|ledger| ledger.unsay(ROOM, "$edit", NOON));
    assert!(unsaid.await.unwrap());
    settle(&book).await;
    assert!(!holds(&folder, SECRET));
    assert!(holds(&folder, "the words of $a"));
}

#[tokio::test]
async fn a_text_that_was_deleted_while_somebody_reads_is_in_no_file_afterwards() {
    let (folder, book) = new_book();
    say(&book).await;
    let reading = Reading::start(&book).await;
    let unsaid = book.write(|ledger| ledger.unsay(ROOM, "$a", NOON));
    assert!(unsaid.await.unwrap());
    settle(&book).await;
    assert!(holds(&folder, SECRET));
    reading.end().await;
    settle(&book).await;
    assert!(!holds(&folder, SECRET));
}

#[tokio::test]
async fn a_text_that_was_deleted_just_before_a_crash_is_in_no_file_after_the_start() {
    let (folder, book) = new_book();
    say(&book).await;
    let reading = Reading::start(&book).await;
    let unsaid = book.write(|ledger| ledger.unsay(ROOM, "$a", NOON));
    assert!(unsaid.await.unwrap());
    // What the disk would hold if the process died now.
    let left = tempfile::tempdir().unwrap();
    copy(&folder, &left);
    reading.end().await;
    assert!(holds(&left, SECRET));
    let started = reopen(left.path());
    let kept = started.read(|ledger| ledger.lines(ROOM, None, Millis::MAX));
    assert_eq!(kept.await.unwrap(), []);
    assert!(!holds(&left, SECRET));
}

/// Copies the database and its log.
fn copy(from: &TempDir, to: &TempDir) {
    let (from, to) = (database(from), database(to));
    std::fs::copy(&from, &to).unwrap();
    let log = |path: std::path::PathBuf| path.with_extension("sqlite3-wal");
    std::fs::copy(log(from), log(to)).unwrap();
}

#[test]
fn opting_out_deletes_what_there_is_also_of_who_is_out_already() {
    let mut ledger = SqliteLedger::in_memory().unwrap();
    assert!(ledger.keep_line(&line("$a", 1)).unwrap());
    let out = "INSERT INTO opted_out (user_id, at) VALUES (?1, 1)";
    ledger.connection().execute(out, [MIRA]).unwrap();
    let ledger: &mut dyn Ledger = &mut ledger;
    assert!(!ledger.opt_out(MIRA, NOON).unwrap());
    assert_eq!(ledger.lines(ROOM, None, Millis::MAX).unwrap(), []);
}

#[test]
fn of_a_line_that_is_gone_no_row_is_left() {
    let mut ledger = SqliteLedger::in_memory().unwrap();
    let rows = |ledger: &SqliteLedger| {
        ["lines", "texts", "votes"].map(|table| {
            let count = format!("SELECT COUNT(*) FROM {table}");
            let row = ledger.connection().query_row(&count, [], |row| row.get(0));
            row.unwrap()
        })
    };
    assert!(ledger.keep_line(&line("$a", 1)).unwrap());
    let edited = text("$edit", 1, Some("$a"));
    assert!(ledger.edit_line(ROOM, "$a", MIRA, &edited).unwrap());
    assert!(ledger.vote(ROOM, "$1", "$a", "@sam:x.org", NOON).unwrap());
    let before: [i64; 3] = rows(&ledger);
    assert_eq!(before, [1, 2, 1]);
    assert!(ledger.unsay(ROOM, "$a", NOON).unwrap());
    assert_eq!(rows(&ledger), [0, 0, 0]);
}
