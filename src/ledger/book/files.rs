//! The ledger's files: who may open them, and what is in them.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::tests::{Held, ask, asked, database, named, new_book, queue_ask, reopen, tamper};
use crate::elicitation::Key;
use crate::ledger::conformance::{AGENT, NOON, draft, news, question};
use crate::ledger::{Book, LedgerError, SendKind, open};

#[tokio::test]
async fn a_ledger_in_use_is_refused_until_it_is_closed() {
    let (folder, book) = new_book();
    let clone = book.clone();
    for _ in 0..2 {
        let second = open(folder.path());
        assert!(matches!(second, Err(LedgerError::InUse(_))));
    }
    drop(book);
    assert!(matches!(open(folder.path()), Err(LedgerError::InUse(_))));
    let held = Held::start(&clone).await;
    let last = queue_ask(&clone, "last").await;
    last.abort();
    let Held { go_on, request } = held;
    request.abort();
    let _ = (last.await, request.await);
    drop(clone);
    // What was asked of it is done first.
    assert!(matches!(open(folder.path()), Err(LedgerError::InUse(_))));
    go_on.send(()).unwrap();
    assert_eq!(asked(&reopen(folder.path())).await, ["last"]);
}

#[tokio::test]
async fn a_ledger_of_a_newer_version_is_refused_and_left_alone() {
    let (folder, book) = new_book();
    book.write(|ledger| ask(ledger, "a")).await.unwrap();
    drop(book);
    drop(reopen(folder.path()));
    let newer = |change: Option<i64>| {
        let connection = Connection::open(database(&folder)).unwrap();
        if let Some(version) = change {
            connection
                .pragma_update(None, "user_version", version)
                .unwrap();
        }
        connection
            .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let ours = newer(None);
    newer(Some(ours + 1));
    for _ in 0..2 {
        let patience = Instant::now() + Duration::from_secs(20);
        let refused = loop {
            let opened = open(folder.path());
            if !matches!(opened, Err(LedgerError::InUse(_))) || Instant::now() > patience {
                break opened.map(|_| ());
            }
        };
        assert!(
            matches!(refused, Err(LedgerError::TooNew(_))),
            "{refused:?}"
        );
    }
    assert_eq!(newer(None), ours + 1);
    newer(Some(ours));
    assert_eq!(asked(&reopen(folder.path())).await, ["a"]);
}

#[tokio::test]
async fn what_was_put_off_is_due_at_the_next_start() {
    let (folder, book) = new_book();
    let about = named("a");
    let card = draft(&about, SendKind::Card, "a");
    book.write(move |ledger| {
        ledger.send(&card, NOON)?;
        let (due, _) = ledger.sendings_due(NOON)?;
        ledger.postpone(due[0].seq, NOON + 60_000, "timeout")
    })
    .await
    .unwrap();
    let due = |book: &Book| {
        let book = book.clone();
        async move {
            book.read(|ledger| ledger.sendings_due(NOON))
                .await
                .unwrap()
                .0
                .len()
        }
    };
    assert_eq!(due(&book).await, 0);
    drop(book);
    assert_eq!(due(&reopen(folder.path())).await, 1);
}

#[tokio::test]
async fn a_commit_is_on_the_disk_before_it_is_acknowledged() {
    let (_folder, book) = new_book();
    let (tell, told) = oneshot::channel();
    tamper(&book, |ledger| {
        let ask = |name| {
            ledger
                .connection()
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .unwrap()
        };
        let mode: String = ledger
            .connection()
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .unwrap();
        let others = ["synchronous", "foreign_keys", "secure_delete"].map(ask);
        tell.send((mode, others)).unwrap();
    });
    // 2 is FULL: the log is synced at every commit.
    assert_eq!(told.await.unwrap(), ("wal".to_owned(), [2, 1, 1]));
}

#[tokio::test]
async fn a_redacted_text_is_in_no_file() {
    let (folder, book) = new_book();
    let secret = "the key is under the mat";
    book.write(move |ledger| {
        let mut told = news(&question(AGENT, "a"));
        told.body["answer"] = serde_json::json!({ "text": secret });
        ledger.announce(&told, true, NOON)
    })
    .await
    .unwrap();
    let holds_it = || {
        std::fs::read_dir(folder.path()).unwrap().any(|file| {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        })
    };
    assert!(holds_it());
    // A reader at the wrong moment only delays it.
    let (inside, is_inside) = oneshot::channel();
    let (go_on, told) = mpsc::channel::<()>();
    let reader = book.clone();
    let reading = tokio::spawn(async move {
        reader
            .read(move |ledger| {
                ledger.sync_token()?;
                inside.send(()).unwrap();
                told.recv().unwrap();
                Ok::<_, LedgerError>(())
            })
            .await
    });
    is_inside.await.unwrap();
    book.write(|ledger| ledger.forget_answer_text(&Key::new(AGENT, "a")))
        .await
        .unwrap();
    go_on.send(()).unwrap();
    reading.await.unwrap().unwrap();
    // The second finds the first one's work done, also what it did after its answer.
    for token in ["s1", "s2"] {
        book.write(move |ledger| ledger.set_sync_token(token))
            .await
            .unwrap();
    }
    assert!(!holds_it());
}

#[tokio::test]
async fn a_closed_ledger_leaves_no_log_behind() {
    let (folder, book) = new_book();
    book.write(|ledger| ask(ledger, "a")).await.unwrap();
    let log = folder.path().join("ledger.sqlite3-wal");
    assert!(log.exists());
    let (inside, is_inside) = oneshot::channel();
    let (go_on, told) = mpsc::channel::<()>();
    let reader = book.clone();
    let reading = tokio::spawn(async move {
        reader
            .read(move |_| {
                inside.send(()).unwrap();
                told.recv().unwrap();
                Ok::<_, LedgerError>(())
            })
            .await
    });
    is_inside.await.unwrap();
    reading.abort();
    assert!(reading.await.unwrap_err().is_cancelled());
    drop(book);
    // It is not closed as long as anything of it is open.
    for _ in 0..20 {
        assert!(matches!(open(folder.path()), Err(LedgerError::InUse(_))));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    go_on.send(()).unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    while log.exists() && Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!log.exists());
}
