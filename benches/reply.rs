//! What reading costs: it runs on every message of every room.

use divan::{Bencher, black_box};
use matrix_elicit::contract::CardOption;
use matrix_elicit::desk::{Interest, Said, Watch};
use matrix_elicit::reply::{Bot, Message, Options, Question, read, read_option};

fn main() {
    divan::main();
}

const BOT: Bot<'static> = Bot {
    user_id: "@elicit:example.org",
    display_name: Some("Elicit"),
};

fn options() -> Options {
    let options = [
        ("run_them", "Run the tests"),
        ("skip", "Skip them"),
        ("later", "Ask me again later"),
        ("other", "Something else"),
    ]
    .map(|(id, label)| CardOption {
        id: id.to_owned(),
        label: label.to_owned(),
    });
    Options::new(&options)
}

fn message(body: &str) -> Message<'_> {
    Message {
        body,
        ..Message::default()
    }
}

/// Twenty characters that name none of four options.
#[divan::bench(args = ["see you at the lunch", "Wir sehen uns später", "فردا ظهر می‌بینمت جان"])]
fn strict_reading_of_chatter(bencher: Bencher, text: &str) {
    let options = options();
    bencher.bench_local(|| read_option(black_box(text), black_box(&options), false));
}

#[divan::bench(args = ["2", "Run the tests", "(skip them!)"])]
fn strict_reading_of_an_answer(bencher: Bencher, text: &str) {
    let options = options();
    bencher.bench_local(|| read_option(black_box(text), black_box(&options), false));
}

#[divan::bench(args = ["let's go with the second one, please", "see you at the lunch"])]
fn lenient_reading(bencher: Bencher, text: &str) {
    let options = options();
    bencher.bench_local(|| read_option(black_box(text), black_box(&options), true));
}

/// The quick way out, before the ledger: the bot watches a thousand rooms, this is none of them.
#[divan::bench]
fn a_message_in_a_room_without_a_question(bencher: Bencher) {
    let mut watch = Watch::default();
    for room in 0..1000 {
        watch.note(&format!("!room{room}:example.org"), Interest::Pending);
    }
    let said = Said {
        body: "see you at the lunch".to_owned(),
        ..Said::default()
    };
    let room = "!quiet:example.org";
    bencher.bench_local(|| black_box(&watch).wants(black_box(room), black_box(&said)));
}

/// The same in a room whose questions are all over.
#[divan::bench]
fn a_message_in_a_room_whose_questions_are_over(bencher: Bencher) {
    let room = "!done:example.org";
    let mut watch = Watch::default();
    watch.note(room, Interest::Over);
    let said = Said {
        body: "see you at the lunch".to_owned(),
        ..Said::default()
    };
    bencher.bench_local(|| black_box(&watch).wants(black_box(room), black_box(&said)));
}

#[divan::bench]
fn a_message_in_a_room_with_one_open_question(bencher: Bencher) {
    let options = options();
    let events = ["$card".to_owned()];
    let questions = [Question {
        open: true,
        visible: true,
        tag: "q1",
        options: &options,
        free_text: false,
        declinable: false,
        may_answer: true,
        events: &events,
    }];
    let message = message("see you at the lunch");
    bencher.bench_local(|| read(black_box(&message), black_box(&questions), black_box(&BOT)));
}
