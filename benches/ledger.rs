//! What a write costs until it is acknowledged, that is on the disk: alone, and in company, where
//! one sync of the disk serves many. The figures are those of the disk with the temporary folder.
//!
//! `cargo bench --bench ledger`

use std::sync::atomic::{AtomicU64, Ordering};

use divan::Bencher;
use divan::counter::ItemsCount;
use matrix_elicit::contract::CardOption;
use matrix_elicit::desk::{self, Ask, Asker, Change};
use matrix_elicit::elicitation::{Elicitation, State};
use matrix_elicit::ledger::{self, Book, KeptLine, KeptText, Ledger, LedgerError};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const AGENT: &str = "agt_31d0";
const NOON: i64 = 1_790_000_000_000;
/// Questions that each asker asks, one after the other.
const EACH: usize = 16;
/// Messages in one sync response, over so many rooms.
const HEARD: usize = 50;
const ROOMS: usize = 10;

fn main() {
    divan::main();
}

/// A ledger and whoever runs its requests.
struct Desk {
    runtime: Runtime,
    book: Book,
    asked: AtomicU64,
    _folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            runtime: Runtime::new().expect("a runtime"),
            book: ledger::open(folder.path()).expect("a ledger"),
            asked: AtomicU64::new(0),
            _folder: folder,
        }
    }

    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Ledger) -> Result<T, LedgerError> + Send + 'static,
    ) -> T {
        let written = self.runtime.block_on(self.book.write(work));
        written.expect("a commit")
    }

    /// An id that was not used before.
    fn fresh(&self) -> String {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        format!("elc_{number}")
    }
}

/// A question like most: four options, a line of prompt.
fn question(id: String, room: &str, card_id: Option<&str>) -> Elicitation {
    let options = [
        "Run the tests",
        "Skip them",
        "Ask me later",
        "Something else",
    ];
    let ask = Ask {
        elicitation_id: Some(id.clone()),
        room: room.to_owned(),
        prompt: "The tests take an hour. What shall I do with them?".to_owned(),
        options: options
            .map(|label| CardOption {
                id: label.to_lowercase(),
                label: label.to_owned(),
            })
            .to_vec(),
        expires_in: Some(3_600_000),
        card_id: card_id.map(str::to_owned),
        ..Ask::default()
    };
    let asker = Asker {
        agent: AGENT.to_owned(),
        name: Some("Builder".to_owned()),
        decline: "!decline".to_owned(),
    };
    ask.into_elicitation(asker, room.to_owned(), id, "q1".to_owned(), NOON)
        .expect("a question that fits")
}

/// What asking changes.
fn ask(ledger: &mut dyn Ledger, asked: &Elicitation) -> Result<(), LedgerError> {
    if let Some(card_id) = &asked.question.card_id {
        for older in ledger.pending_about_card(AGENT, None, card_id)? {
            let change = desk::close(&older, State::Superseded, None, None, NOON);
            ledger::apply(ledger, &[change], &|_| true, NOON)?;
        }
    }
    ledger.next_tag(&asked.question.room_id)?;
    assert!(ledger.insert(asked, "fingerprint", None)?);
    ledger.send(&desk::card(asked, false), NOON)
}

/// So many askers, each of whom waits for one acknowledgement before asking the next.
#[divan::bench(args = [1, 8, 64], sample_count = 20, sample_size = 1)]
fn acknowledged_questions(bencher: Bencher, askers: usize) {
    let desk = Desk::new();
    bencher
        .counter(ItemsCount::new(askers * EACH))
        .bench_local(|| {
            desk.runtime.block_on(async {
                let asking: Vec<_> = (0..askers)
                    .map(|_| {
                        let book = desk.book.clone();
                        let asked: Vec<_> = (0..EACH)
                            .map(|_| question(desk.fresh(), "!room:example.org", None))
                            .collect();
                        tokio::spawn(async move {
                            for asked in asked {
                                let write = book.write(move |ledger| ask(ledger, &asked));
                                write.await.expect("a commit");
                            }
                        })
                    })
                    .collect();
                for asking in asking {
                    asking.await.expect("an asker");
                }
            });
        });
}

/// Asking again about a card, after so many questions of the same agent that are over.
#[divan::bench(args = [0, 20_000], sample_count = 20, sample_size = 1)]
fn asking_again_after_a_long_history(bencher: Bencher, history: usize) {
    let desk = Desk::new();
    let past: Vec<_> = (0..history)
        .map(|_| question(desk.fresh(), "!room:example.org", Some("card")))
        .collect();
    desk.write(move |ledger| {
        for asked in &past {
            assert!(ledger.insert(asked, "fingerprint", None)?);
            let over = Elicitation {
                state: State::Expired,
                closed_at: Some(NOON),
                ..asked.clone()
            };
            assert!(ledger.settle(&over)?);
        }
        Ok(())
    });
    bencher
        .with_inputs(|| question(desk.fresh(), "!room:example.org", Some("card")))
        .bench_local_values(|asked| desk.write(move |ledger| ask(ledger, &asked)));
}

/// One sync response: the messages of some rooms, one of which closes a question.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn taking_in_a_sync_response(bencher: Bencher) {
    let desk = Desk::new();
    bencher
        .with_inputs(|| {
            let asked = question(desk.fresh(), "!room0:example.org", None);
            desk.write(move |ledger| {
                ask(ledger, &asked)?;
                let card = format!("$card of {}", asked.key().id);
                let open = ledger.mark_posted(asked.key(), &card)?;
                Ok(open.expect("a question that was asked"))
            })
        })
        .bench_local_values(|open| {
            desk.write(move |ledger| {
                for n in 0..HEARD {
                    let room = format!("!room{}:example.org", n % ROOMS);
                    let event = format!("${n} after {}", open.key().id);
                    assert!(ledger.see(&room, &event, NOON)?);
                    ledger.open_in(&room)?;
                }
                let changes = [
                    desk::close(&open, State::Cancelled, None, None, NOON),
                    Change::Send(desk::card(&open, false)),
                ];
                assert!(ledger::apply(ledger, &changes, &|_| true, NOON)?);
                ledger.set_sync_token(&open.key().id)
            });
        });
}

/// What a room said in one very full day, as a digest reads it: each line with one vote.
#[divan::bench(args = [1_000, 100_000], sample_count = 10, sample_size = 1)]
fn reading_the_lines_of_a_day(bencher: Bencher, lines: usize) {
    let desk = Desk::new();
    let room = "!room:example.org";
    desk.write(move |ledger| {
        for (n, stamp) in (0..lines).zip(NOON..) {
            let event_id = format!("$line_{n}");
            let body = format!("could you run the tests once more, please? ({n})");
            let kept = KeptLine {
                room_id: room.to_owned(),
                sender: format!("@person_{}:example.org", n % 5_000),
                stamp,
                sent_at: stamp,
                emote: false,
                in_reply_to: None,
                replied_to: None,
                mentions: Vec::new(),
                text: KeptText {
                    event_id: event_id.clone(),
                    sent_at: stamp,
                    prepared: Some(format!("{{\"what\":\"{body}\",\"kind\":\"question\"}}")),
                    key: Some(body.clone()),
                    body,
                },
                event_id: event_id.clone(),
            };
            assert!(ledger.keep_line(&kept)?);
            let voter = format!("@person_{}:example.org", (n + 1) % 5_000);
            assert!(ledger.vote(room, &format!("$vote_{n}"), &event_id, &voter, stamp)?);
        }
        Ok(())
    });
    bencher.counter(ItemsCount::new(lines)).bench_local(|| {
        let read = desk
            .book
            .read(move |ledger| ledger.lines(room, None, i64::MAX));
        let read = desk.runtime.block_on(read).expect("the lines");
        assert_eq!(read.len(), lines);
        read
    });
}
