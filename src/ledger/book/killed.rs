//! A process that is killed at any moment has kept what it acknowledged.
//!
//! The test starts this very binary again as a child that does nothing but write and say so, and
//! kills it (SIGKILL) while it is at it.

use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;

use super::tests::reopen;
use crate::elicitation::Key;
use crate::ledger::conformance::{AGENT, NOON, draft, news, question};
use crate::ledger::{Ledger, LedgerError, SendKind};

/// Tells the child where to write, and under which name.
const FOLDER: &str = "ELICIT_TEST_KILLED_IN";
const NAME: &str = "ELICIT_TEST_KILLED_AS";
/// Requests in flight at a time.
const WRITERS: usize = 4;
const KILLS: usize = 20;

/// All that asking changes, in one transaction.
fn ask(ledger: &mut dyn Ledger, id: &str) -> Result<(), LedgerError> {
    let asked = question(AGENT, id);
    assert!(ledger.insert(&asked, "fingerprint", Some(id))?);
    ledger.send(&draft(&asked, SendKind::Card, id), NOON)?;
    ledger.announce(&news(&asked), true, NOON)?;
    ledger.see(&asked.question.room_id, id, NOON)?;
    ledger.set_sync_token(id)
}

/// Not a test by itself: the child of the test below. Started by anything else it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_child_writes_until_it_is_killed() {
    let (Ok(folder), Ok(name)) = (env::var(FOLDER), env::var(NAME)) else {
        return;
    };
    // It fails when its predecessor's lock outlives its predecessor.
    let book = crate::ledger::open(Path::new(&folder)).unwrap();
    let writers = (0..WRITERS).map(|writer| {
        let (book, name) = (book.clone(), name.clone());
        tokio::spawn(async move {
            for n in 0.. {
                let id = format!("{name}-{writer}-{n}");
                let asked = id.clone();
                book.write(move |ledger| ask(ledger, &asked)).await.unwrap();
                // One write for a line: a line that was begun was acknowledged.
                let line = format!("\nkept {id}\n");
                stdout().lock().write_all(line.as_bytes()).unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

/// Lets a child write and kills it. Gives what it acknowledged.
fn killed_after(delay: Duration, folder: &Path, name: &str) -> Vec<String> {
    let helper = concat!(module_path!(), "::the_child_writes_until_it_is_killed");
    // Test names come without the crate's.
    let (_, helper) = helper.split_once("::").unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", helper, "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(NAME, name)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut kept = Vec::new();
    let mut take = |line: String| kept.extend(line.strip_prefix("kept ").map(str::to_owned));
    // The delay begins with the first write that was acknowledged.
    for line in lines.by_ref() {
        let line = line.unwrap();
        let first = line.starts_with("kept ");
        take(line);
        if first {
            break;
        }
    }
    std::thread::sleep(delay);
    child.kill().unwrap();
    lines.map_while(Result::ok).for_each(take);
    assert!(!child.wait().unwrap().success());
    kept
}

#[tokio::test]
async fn what_was_acknowledged_outlives_any_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Vec::new();
    for round in 0..KILLS {
        let delay = Duration::from_micros(rand::random_range(0..30_000));
        let now = killed_after(delay, folder.path(), &format!("{round}"));
        assert!(!now.is_empty(), "the child of round {round} wrote nothing");
        kept.extend(now);

        let database = folder.path().join("ledger.sqlite3");
        let connection = Connection::open(database).unwrap();
        let sound: String = connection
            .pragma_query_value(None, "integrity_check", |row| row.get(0))
            .unwrap();
        assert_eq!(sound, "ok");
    }

    let book = reopen(folder.path());
    let known = kept.clone();
    let (missing, asked, carried) = book
        .read(move |ledger| {
            let mut missing = Vec::new();
            for id in known {
                if ledger.find(&Key::new(AGENT, &id))?.is_none() {
                    missing.push(id);
                }
            }
            // Each is there with all that belongs to it, also those nobody heard of any more.
            let room = question(AGENT, "any").question.room_id;
            let (mut asked, mut carried) = (0, 0);
            for pending in ledger.pending_in(&room)? {
                let card = ledger.pending_card(pending.key())?.is_some();
                let seen = ledger.seen(&room, &pending.key().id)?;
                carried += usize::from(card && seen);
                asked += 1;
            }
            assert_eq!(ledger.events_after(AGENT, 0, usize::MAX)?.len(), asked);
            assert_eq!(ledger.delivery_counts()?, (asked as u64, 0));
            Ok::<_, LedgerError>((missing, asked, carried))
        })
        .await
        .unwrap();
    assert_eq!(missing, Vec::<String>::new());
    assert_eq!(carried, asked);
    assert!(asked >= kept.len());
}
