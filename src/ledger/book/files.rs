//! The ledger's files: who may open them, and what is in them.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::tests::{Held, ask, asked, database, named, new_book, queue_ask, reopen, tamper};
use crate::elicitation::{Elicitation, Key, State};
use crate::ledger::conformance::sessions::session;
use crate::ledger::conformance::{AGENT, NOON, answer, draft, news, question};
use crate::ledger::{Book, EventDraft, LedgerError, SendKind, Sought, open};
use crate::session::{self, Activity, ActivityType, Session};

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
async fn an_answer_that_was_in_hand_is_due_at_the_next_start_and_may_have_come_there() {
    let (folder, book) = new_book();
    let about = question("board:brd_1", "a");
    let put_off = question("board:brd_1", "b");
    book.write(move |ledger| {
        for about in [about, put_off] {
            let key = about.key().clone();
            ledger.insert(&about, "", None)?;
            ledger.mark_posted(&key, "$card")?;
            ledger.submit(&key, &answer("$said", None), NOON)?;
        }
        let (due, _) = ledger.submissions_due("board:brd_1", NOON, 10)?;
        ledger.mark_in_hand(due[0].seq)?;
        ledger.postpone_submission(due[1].seq, NOON + 60_000, "timeout")
    })
    .await
    .unwrap();
    let due = |book: &Book| {
        let book = book.clone();
        async move {
            let due = book.read(|ledger| ledger.submissions_due("board:brd_1", NOON, 10));
            let (due, _) = due.await.unwrap();
            let facts = due
                .into_iter()
                .map(|it| (it.key.id, it.in_hand, it.tried, it.attempts));
            facts.collect::<Vec<_>>()
        }
    };
    assert_eq!(due(&book).await, []);
    drop(book);
    let expected = [
        ("a".to_owned(), false, true, 0),
        ("b".to_owned(), false, false, 1),
    ];
    assert_eq!(due(&reopen(folder.path())).await, expected);
}

/// A question as it was stored before there were boards.
fn stored_before_boards(about: &Elicitation, event_id: Option<&str>) -> [Option<String>; 8] {
    let mut question = serde_json::to_value(&about.question).unwrap();
    let fields = question.as_object_mut().unwrap();
    for field in ["routed_to", "abridged", "asked_at"] {
        fields.remove(field);
    }
    [
        Some(about.key().origin.clone()),
        Some(about.key().id.clone()),
        Some(format!("key of {}", about.key().id)),
        Some(about.question.room_id.clone()),
        Some(about.tag.clone()),
        Some(about.state.word().to_owned()),
        event_id.map(str::to_owned),
        Some(question.to_string()),
    ]
}

#[tokio::test]
async fn what_was_asked_before_there_were_boards_is_found_listed_and_answered() {
    let folder = tempfile::tempdir().unwrap();
    let queued = question(AGENT, "queued");
    let mut open = question(AGENT, "open");
    open.state = State::Open;
    open.event_id = Some("$card".to_owned());
    let other = question("agt_other", "queued");
    {
        let old = Connection::open(database(&folder)).unwrap();
        for migration in [
            include_str!("../migrations/001_first.sql"),
            include_str!("../migrations/002_talk.sql"),
            include_str!("../migrations/003_upgrades.sql"),
        ] {
            old.execute_batch(migration).unwrap();
        }
        old.pragma_update(None, "user_version", 3).unwrap();
        for row in [
            stored_before_boards(&queued, None),
            stored_before_boards(&open, Some("$card")),
            stored_before_boards(&other, None),
        ] {
            let insert = "INSERT INTO elicitations (origin, id, idempotency_key, room_id, tag,
                 state, event_id, question, fingerprint, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'fingerprint', 1)";
            old.execute(insert, row).unwrap();
        }
    }
    let book = reopen(folder.path());
    let expected = [open.clone(), queued.clone()];
    book.write(move |ledger| {
        let sought = Sought {
            owner: AGENT.to_owned(),
            state: None,
            room_id: None,
            below: None,
            limit: 10,
        };
        assert_eq!(ledger.list(&sought)?.elicitations, expected);
        for asked in expected {
            let id = asked.key().id.clone();
            assert_eq!(ledger.find_of(AGENT, &id)?, Some(asked));
        }
        assert_eq!(ledger.find_of("agt_other", "open")?, None);
        assert_eq!(ledger.find_of("agt_other", "queued")?, Some(other));
        assert_eq!(ledger.pending_of(AGENT)?, [queued, open.clone()]);
        // And they go on as they would have.
        let mut answered = open;
        answered.state = State::Answered;
        answered.closed_at = Some(NOON);
        answered.answer = Some(answer("$said", None));
        assert!(ledger.settle(&answered)?);
        assert_eq!(ledger.find(answered.key())?, Some(answered));
        Ok::<_, LedgerError>(())
    })
    .await
    .unwrap();
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
    assert!(holds(&folder, secret));
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
    assert!(!holds(&folder, secret));
}

#[tokio::test]
async fn the_text_of_an_answer_that_was_not_taken_is_in_no_file() {
    let (folder, book) = new_book();
    let secret = "the key is under the mat";
    let seq = book.write(move |ledger| {
        let about = question("board:brd_1", "a");
        ledger.insert(&about, "", None)?;
        ledger.mark_posted(about.key(), "$card")?;
        ledger.submit(about.key(), &answer("$said", Some(secret)), NOON)?;
        let submission = ledger.submission(about.key())?;
        Ok::<_, LedgerError>(submission.unwrap().seq)
    });
    let seq = seq.await.unwrap();
    assert!(holds(&folder, secret));
    let ended = book.write(move |ledger| ledger.end_submission(seq, "invalid"));
    assert!(ended.await.unwrap());
    // The second finds the first one's work done, also what it did after its answer.
    for token in ["s1", "s2"] {
        book.write(move |ledger| ledger.set_sync_token(token))
            .await
            .unwrap();
    }
    assert!(!holds(&folder, secret));
}

#[tokio::test]
async fn a_redacted_prompt_and_its_title_are_in_no_file() {
    let (folder, book) = new_book();
    let secret = "the key is under the mat";
    book.write(move |ledger| {
        let session = Session {
            title: Some(secret.to_owned()),
            ..session("sess_1")
        };
        let prompt = Activity {
            id: "act_1".to_owned(),
            kind: ActivityType::Prompt,
            body: secret.to_owned(),
            signal: None,
            signal_metadata: None,
            author: None,
            event_id: Some("$said".to_owned()),
            ephemeral: false,
            created_at: NOON,
        };
        ledger.begin_session(&session)?;
        ledger.record("sess_1", &prompt)?;
        let told = EventDraft {
            key: Key::new(AGENT, "sess_1"),
            event_type: "agent_session.created".to_owned(),
            body: session::event("created", &session, &prompt),
            urgent: false,
        };
        ledger.announce(&told, true, NOON)
    })
    .await
    .unwrap();
    assert!(holds(&folder, secret));
    book.write(|ledger| {
        assert!(ledger.forget_prompt("$said")?);
        ledger.forget_title("sess_1")?;
        let untitled = ledger.session("sess_1")?.map(|session| Session {
            title: None,
            ..session
        });
        assert!(ledger.change_session(&untitled.unwrap())?);
        Ok::<_, LedgerError>(())
    })
    .await
    .unwrap();
    // The second finds the first one's work done, also what it did after its answer.
    for token in ["s1", "s2"] {
        book.write(move |ledger| ledger.set_sync_token(token))
            .await
            .unwrap();
    }
    assert!(!holds(&folder, secret));
}

#[tokio::test]
async fn what_was_to_be_delivered_before_there_were_sessions_is_and_is_not_urgent() {
    let folder = tempfile::tempdir().unwrap();
    {
        let old = Connection::open(database(&folder)).unwrap();
        for migration in [
            include_str!("../migrations/001_first.sql"),
            include_str!("../migrations/002_talk.sql"),
            include_str!("../migrations/003_upgrades.sql"),
            include_str!("../migrations/004_boards.sql"),
        ] {
            old.execute_batch(migration).unwrap();
        }
        old.pragma_update(None, "user_version", 4).unwrap();
        let event = "INSERT INTO events (seq, event_id, origin, id, event_type, at, body)
             VALUES (7, 'evt_1', ?1, 'a', 'elicitation.open', 1, '{}')";
        old.execute(event, [AGENT]).unwrap();
        let delivery = "INSERT INTO deliveries (event_seq, origin, id, next_at, created_at)
             VALUES (7, ?1, 'a', 1, 1)";
        old.execute(delivery, [AGENT]).unwrap();
    }
    let book = reopen(folder.path());
    book.write(|ledger| {
        let (due, _) = ledger.deliveries_due(AGENT, NOON, 10)?;
        let due: Vec<(&str, bool)> = (due.iter())
            .map(|delivery| (delivery.event.id.as_str(), delivery.urgent))
            .collect();
        assert_eq!(due, [("evt_1", false)]);
        assert_eq!(ledger.urgent_due(AGENT, NOON, 10)?, (Vec::new(), None));
        // And sessions begin in it.
        ledger.begin_session(&session("sess_1"))?;
        assert_eq!(ledger.session("sess_1")?, Some(session("sess_1")));
        Ok::<_, LedgerError>(())
    })
    .await
    .unwrap();
}

/// Whether a text stands in any of the ledger's files.
pub(super) fn holds(folder: &TempDir, text: &str) -> bool {
    std::fs::read_dir(folder.path()).unwrap().any(|file| {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let mut parts = bytes.windows(text.len());
        parts.any(|part| part == text.as_bytes())
    })
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
