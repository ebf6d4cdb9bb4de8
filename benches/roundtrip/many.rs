//! Very many open questions.

use std::fs::File;
use std::time::Duration;

use matrix_elicit::contract::CardOption;
use matrix_elicit::desk::{Ask, Asker};
use matrix_elicit::elicitation::Elicitation;
use matrix_elicit::ledger::{self, LedgerError};

use crate::latency::one_by_one;
use crate::row;
use crate::stand::{AGENT, Stand, mib, spread};

const STARTS: usize = 5;
const ANSWERS: usize = 200;
/// Questions stored in one transaction.
const STORED: usize = 1_000;

pub async fn measure(open: usize, rooms: usize) {
    let mut resident = Vec::new();
    for count in [0, open] {
        let mut stand = Stand::set_up(rooms + 1).await;
        let quiet = stand.rooms.pop().expect("a room");
        fill(&stand, count).await;
        stand.start().await;
        let mut starts: Vec<Duration> = Vec::new();
        for _ in 0..STARTS {
            stand.kill();
            starts.push(stand.start().await);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        resident.push(stand.resident());
        let open = format!("{count} open in {rooms} rooms");
        row(&format!("{open}: ready after a restart"), &spread(starts));
        let busy = stand.rooms[0].clone();
        for (room, where_to) in [
            (&quiet, "in a room without others"),
            (&busy, "in one of them"),
        ] {
            one_by_one(&stand, room, "warm", 20).await;
            let times = one_by_one(&stand, room, "turn", ANSWERS).await;
            row(&format!("{open}: asking {where_to}"), &spread(times.asked));
            row(
                &format!("{open}: sync → webhook {where_to}"),
                &spread(times.told),
            );
            row(
                &format!("{open}: sync → ✓ and edit {where_to}"),
                &spread(times.shown),
            );
        }
    }
    let [empty, full] = resident[..] else { return };
    let each = full.saturating_sub(empty) / u64::try_from(open.max(1)).expect("a number");
    row(
        &format!("{open} open: resident memory after a restart"),
        &format!("{}, with none {}: {each} bytes each", mib(full), mib(empty)),
    );
}

/// Stores open questions, evenly over the rooms, in the ledger of a bot that was never started.
async fn fill(stand: &Stand, count: usize) {
    std::fs::create_dir_all(stand.stored()).expect("a folder");
    let book = ledger::open(&stand.stored()).expect("a ledger");
    let asked: Vec<(usize, String)> = stand
        .rooms
        .iter()
        .cycle()
        .take(count)
        .cloned()
        .enumerate()
        .collect();
    for some in asked.chunks(STORED) {
        let some: Vec<Elicitation> = some
            .iter()
            .map(|(number, room)| question(*number, room, number / stand.rooms.len() + 1))
            .collect();
        let stored = book.write(move |ledger| {
            let now = matrix_elicit::clock::now();
            for asked in &some {
                let key = asked.key();
                let card = format!("$card{}", key.id);
                ledger.next_tag(&asked.question.room_id)?;
                assert!(ledger.insert(asked, &key.id, None)?);
                ledger.mark_posted(key, &card)?;
                ledger.mark_visible(&asked.question.room_id, &card, now)?;
            }
            Ok::<_, LedgerError>(())
        });
        stored.await.expect("a commit");
    }
    drop(book);
    // The bot can have the ledger once the writer has let go of it.
    let lock = File::open(stand.stored().join("ledger.lock"));
    let let_go = tokio::task::spawn_blocking(move || lock.and_then(|lock| lock.lock()));
    let_go.await.expect("no panic").expect("the lock");
}

/// A question like most: four options, a line of prompt.
fn question(number: usize, room: &str, tag: usize) -> Elicitation {
    let options = [
        "Run the tests",
        "Skip them",
        "Ask me later",
        "Something else",
    ];
    let id = format!("filled-{number}");
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
        ..Ask::default()
    };
    let asker = Asker {
        agent: AGENT.to_owned(),
        name: None,
        decline: "!decline".to_owned(),
    };
    ask.into_elicitation(
        asker,
        room.to_owned(),
        id,
        format!("q{tag}"),
        matrix_elicit::clock::now(),
    )
    .expect("a question that fits")
}
