//! The front of the ledger over real files.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};

use super::{Book, GROUP, Job, Note};
use crate::elicitation::Elicitation;
use crate::ledger::conformance::{AGENT, NOON, ROOM, draft, question};
use crate::ledger::{Ledger, LedgerError, SendKind, SqliteLedger, open};

/// Opens a ledger, also one that was closed a moment ago and is still finishing.
pub(super) fn reopen(folder: &Path) -> Book {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        match open(folder) {
            Err(LedgerError::InUse(_)) if Instant::now() < patience => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.unwrap(),
        }
    }
}

pub(super) fn new_book() -> (TempDir, Book) {
    let folder = tempfile::tempdir().unwrap();
    let book = open(folder.path()).unwrap();
    (folder, book)
}

pub(super) fn database(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("ledger.sqlite3")
}

/// What a request says that changes its mind.
#[derive(Debug, PartialEq)]
struct Refused;

impl From<LedgerError> for Refused {
    fn from(error: LedgerError) -> Self {
        panic!("the ledger fails where it should not: {error}")
    }
}

/// A question in a room of the same name, so that its notes can be told apart.
pub(super) fn named(id: &str) -> Elicitation {
    let mut elicitation = question(AGENT, id);
    elicitation.question.room_id = id.to_owned();
    elicitation
}

pub(super) fn ask(ledger: &mut dyn Ledger, id: &str) -> Result<(), LedgerError> {
    assert!(ledger.insert(&named(id), "fingerprint", None)?);
    Ok(())
}

/// Asks, queued behind what the writer is at.
pub(super) async fn queue_ask(
    book: &Book,
    id: &'static str,
) -> JoinHandle<Result<(), LedgerError>> {
    queue(book, move |ledger| ask(ledger, id)).await
}

/// Queues a request and does not wait for it.
async fn queue<T, E, F>(book: &Book, work: F) -> JoinHandle<Result<T, E>>
where
    T: Send + 'static,
    E: From<LedgerError> + Send + 'static,
    F: FnOnce(&mut dyn Ledger) -> Result<T, E> + Send + 'static,
{
    let book = book.clone();
    let request = tokio::spawn(async move { book.write(work).await });
    // Spawned tasks of a test's one thread run in order: this one has sent its job then.
    yield_now().await;
    request
}

/// The writer, kept inside a transaction: what is queued meanwhile shares it.
pub(super) struct Held {
    pub(super) go_on: mpsc::Sender<()>,
    pub(super) request: JoinHandle<Result<(), LedgerError>>,
}

impl Held {
    pub(super) async fn start(book: &Book) -> Self {
        let (go_on, told) = mpsc::channel();
        let (inside, is_inside) = oneshot::channel();
        let request = queue(book, move |_| {
            inside.send(()).unwrap();
            told.recv().unwrap();
            Ok(())
        })
        .await;
        is_inside.await.unwrap();
        Self { go_on, request }
    }

    async fn go_on(self) -> Result<(), LedgerError> {
        self.go_on.send(()).unwrap();
        self.request.await.unwrap()
    }
}

/// Does to the writer what no request can.
pub(super) fn tamper(book: &Book, with: impl FnOnce(&SqliteLedger) + Send + 'static) {
    let job: Job = Box::new(move |ledger| {
        with(ledger.unwrap());
        Box::new(|_| ())
    });
    book.writer.send(job).unwrap();
}

pub(super) async fn asked(book: &Book) -> Vec<String> {
    let rooms = book.read(|ledger| ledger.rooms(i64::MAX)).await;
    let mut rooms: Vec<String> = rooms.unwrap().into_iter().map(|(room, _)| room).collect();
    rooms.sort();
    rooms
}

fn noted(notes: &mut tokio::sync::broadcast::Receiver<Note>) -> Vec<Note> {
    std::iter::from_fn(|| notes.try_recv().ok()).collect()
}

fn asked_in(rooms: &[&str]) -> Vec<Note> {
    rooms
        .iter()
        .map(|room| Note::Asked((*room).to_owned()))
        .collect()
}

fn is_store<T: std::fmt::Debug>(outcome: &Result<T, LedgerError>) -> bool {
    matches!(outcome, Err(LedgerError::Store(_)))
}

#[tokio::test]
async fn a_request_that_errs_takes_nothing_else_with_it() {
    let (_folder, book) = new_book();
    let mut notes = book.notes();
    let held = Held::start(&book).await;
    let first = queue_ask(&book, "a").await;
    let refused = queue(&book, |ledger| {
        ask(ledger, "b")?;
        ledger.send(&draft(&named("b"), SendKind::Card, "b"), NOON)?;
        Err::<(), _>(Refused)
    })
    .await;
    let last = queue_ask(&book, "c").await;
    held.go_on().await.unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(refused.await.unwrap(), Err(Refused));
    last.await.unwrap().unwrap();
    assert_eq!(asked(&book).await, ["a", "c"]);
    assert_eq!(noted(&mut notes), asked_in(&["a", "c"]));
}

#[tokio::test]
async fn a_request_that_panics_takes_nothing_else_with_it() {
    let (_folder, book) = new_book();
    let mut notes = book.notes();
    let held = Held::start(&book).await;
    let first = queue_ask(&book, "a").await;
    let panicking = queue(&book, |ledger| {
        ask(ledger, "b")?;
        panic!("a bug");
        #[expect(unreachable_code, reason = "says what the request would give")]
        Ok::<(), LedgerError>(())
    })
    .await;
    let last = queue_ask(&book, "c").await;
    held.go_on().await.unwrap();
    first.await.unwrap().unwrap();
    // The bug shows where it was made.
    let panic = panicking.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug"));
    last.await.unwrap().unwrap();
    assert_eq!(asked(&book).await, ["a", "c"]);
    assert_eq!(noted(&mut notes), asked_in(&["a", "c"]));
}

#[tokio::test]
async fn a_reader_that_panics_hurts_nobody_else() {
    let (_folder, book) = new_book();
    let reading = book.clone();
    let panicking = tokio::spawn(async move {
        reading
            .read::<(), LedgerError, _>(|_| panic!("a bug"))
            .await
    });
    assert!(panicking.await.unwrap_err().is_panic());
    book.write(|ledger| ask(ledger, "a")).await.unwrap();
    assert_eq!(asked(&book).await, ["a"]);
}

#[tokio::test]
async fn nothing_is_seen_or_noted_before_the_commit() {
    let (_folder, book) = new_book();
    let mut notes = book.notes();
    let (written, is_written) = oneshot::channel();
    let (go_on, told) = mpsc::channel();
    let request = queue(&book, move |ledger| {
        ask(ledger, "a")?;
        written.send(()).unwrap();
        told.recv().unwrap();
        Ok::<_, LedgerError>(())
    })
    .await;
    is_written.await.unwrap();
    assert_eq!(asked(&book).await, Vec::<String>::new());
    assert_eq!(notes.try_recv(), Err(TryRecvError::Empty));
    assert!(!request.is_finished());
    go_on.send(()).unwrap();
    // Whoever is woken by the note sees what it is about.
    assert_eq!(notes.recv().await, Ok(Note::Asked("a".to_owned())));
    assert_eq!(asked(&book).await, ["a"]);
    request.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_read_sees_one_moment() {
    let (_folder, book) = new_book();
    book.write(|ledger| ledger.set_sync_token("before"))
        .await
        .unwrap();
    let (inside, is_inside) = oneshot::channel();
    let (go_on, told) = mpsc::channel();
    let reader = book.clone();
    let reading = tokio::spawn(async move {
        reader
            .read(move |ledger| {
                let first = ledger.sync_token()?;
                inside.send(()).unwrap();
                told.recv().unwrap();
                Ok::<_, LedgerError>((first, ledger.sync_token()?))
            })
            .await
    });
    is_inside.await.unwrap();
    // A reader keeps no writer waiting.
    book.write(|ledger| ledger.set_sync_token("after"))
        .await
        .unwrap();
    go_on.send(()).unwrap();
    let before = Some("before".to_owned());
    assert_eq!(reading.await.unwrap().unwrap(), (before.clone(), before));
    let token = book.read(|ledger| ledger.sync_token()).await.unwrap();
    assert_eq!(token.as_deref(), Some("after"));
}

#[tokio::test]
async fn a_read_changes_nothing() {
    let (_folder, book) = new_book();
    let outcome = book.read(|ledger| ask(ledger, "a")).await;
    assert!(is_store(&outcome), "{outcome:?}");
    assert_eq!(asked(&book).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_request_is_carried_out_though_its_caller_is_gone() {
    let (_folder, book) = new_book();
    let held = Held::start(&book).await;
    let abandoned = queue_ask(&book, "a").await;
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    held.go_on().await.unwrap();
    book.write(|ledger| ask(ledger, "b")).await.unwrap();
    assert_eq!(asked(&book).await, ["a", "b"]);
}

#[tokio::test]
async fn more_requests_than_fit_into_one_transaction_are_all_answered() {
    let (_folder, book) = new_book();
    let held = Held::start(&book).await;
    let mut requests = Vec::new();
    for n in 0..GROUP * 2 + 10 {
        requests.push(queue(&book, move |ledger| ask(ledger, &format!("{n:04}"))).await);
    }
    held.go_on().await.unwrap();
    let many = requests.len();
    for request in requests {
        request.await.unwrap().unwrap();
    }
    assert_eq!(asked(&book).await.len(), many);
}

#[tokio::test]
async fn when_a_commit_fails_everybody_in_it_is_told_and_nothing_is_kept() {
    let (folder, book) = new_book();
    let mut notes = book.notes();
    let held = Held::start(&book).await;
    let first = queue_ask(&book, "a").await;
    // A delivery of an event that does not exist, which only the commit finds out.
    tamper(&book, |ledger| {
        let broken = "PRAGMA defer_foreign_keys = ON;
            INSERT INTO deliveries (event_seq, origin, id, next_at, created_at)
                VALUES (99, 'x', 'x', 0, 0)";
        ledger.connection().execute_batch(broken).unwrap();
    });
    let last = queue_ask(&book, "b").await;
    let outcomes = [
        held.go_on().await,
        first.await.unwrap(),
        last.await.unwrap(),
    ];
    assert!(outcomes.iter().all(is_store), "{outcomes:?}");
    assert_eq!(asked(&book).await, Vec::<String>::new());
    // The transaction is over, and locks nobody out.
    let outsider = Connection::open(database(&folder)).unwrap();
    outsider.busy_timeout(Duration::ZERO).unwrap();
    outsider.execute_batch("BEGIN IMMEDIATE; COMMIT").unwrap();

    book.write(|ledger| ask(ledger, "b")).await.unwrap();
    assert_eq!(asked(&book).await, ["b"]);
    assert_eq!(noted(&mut notes), asked_in(&["b"]));
}

#[tokio::test]
async fn when_the_disk_is_full_everybody_is_told_and_nothing_is_kept() {
    let (_folder, book) = new_book();
    let mut notes = book.notes();
    book.write(|ledger| ledger.set_sync_token("before"))
        .await
        .unwrap();
    let held = Held::start(&book).await;
    let first = queue_ask(&book, "a").await;
    tamper(&book, |ledger| {
        let connection = ledger.connection();
        let pages: i64 = connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        connection
            .pragma_update(None, "max_page_count", pages)
            .unwrap();
    });
    // Here SQLite gives the whole transaction up, not only the statement.
    let too_big = queue(&book, |ledger| {
        // A request that does not care about its error makes nothing worse.
        let _ = ledger.defer(ROOM, "$big", &"x".repeat(100_000));
        ledger.set_sync_token("in between")
    })
    .await;
    // This one would need no new page.
    let small = queue(&book, |ledger| ledger.set_sync_token("after")).await;
    let outcomes = [
        held.go_on().await,
        first.await.unwrap(),
        too_big.await.unwrap(),
        small.await.unwrap(),
    ];
    assert!(outcomes.iter().all(is_store), "{outcomes:?}");
    assert_eq!(asked(&book).await, Vec::<String>::new());
    let token = book.read(|ledger| ledger.sync_token()).await.unwrap();
    assert_eq!(token.as_deref(), Some("before"));

    tamper(&book, |ledger| {
        let plenty = 1_000_000;
        ledger
            .connection()
            .pragma_update(None, "max_page_count", plenty)
            .unwrap();
    });
    book.write(|ledger| ask(ledger, "b")).await.unwrap();
    assert_eq!(asked(&book).await, ["b"]);
    assert_eq!(noted(&mut notes), asked_in(&["b"]));
}

#[tokio::test]
async fn when_no_transaction_can_begin_all_that_wait_are_told_at_once() {
    let (folder, book) = new_book();
    tamper(&book, |ledger| {
        let patience = Duration::from_millis(400);
        ledger.connection().busy_timeout(patience).unwrap();
    });
    book.write(|_| Ok::<_, LedgerError>(())).await.unwrap();
    let outsider = Connection::open(database(&folder)).unwrap();
    outsider.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    let mut requests = Vec::new();
    for id in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        requests.push(queue_ask(&book, id).await);
    }
    for request in requests {
        let outcome = request.await.unwrap();
        assert!(is_store(&outcome), "{outcome:?}");
    }
    // One after the other they would take 3.2 seconds.
    assert!(began.elapsed() < Duration::from_secs(2));
    outsider.execute_batch("COMMIT").unwrap();
    book.write(|ledger| ask(ledger, "a")).await.unwrap();
    assert_eq!(asked(&book).await, ["a"]);
}
