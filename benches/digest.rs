//! What a digest costs: preparing runs on every message of a room, the digest on a whole window.

use std::time::Duration;

use divan::{Bencher, black_box};
use matrix_elicit::digest::{
    Line, Person, Prepared, Settings, Standing, Window, Written, digest, prepare,
};

fn main() {
    divan::main();
}

const DAY: i64 = 24 * 60 * 60 * 1000;
const NOW: i64 = 1_800_000_000_000;
const PEOPLE: usize = 400;

/// What rooms say, more or less in proportion; `{}` is a number, so that few lines repeat.
const TALK: [&str; 40] = [
    "why is the test {} flaky?",
    "can we use tokio for part {} of this, or is async-std still the one to take?",
    "I think the parser {} should not panic on empty input",
    "hi all",
    "hello, why is build {} red",
    "ok",
    "lgtm 👍",
    "hahaha",
    "thanks, that fixed number {} for me!",
    "see https://github.com/rust-lang/rust/pull/{} and the docs at www.bbc.co.uk/news/{}",
    "docs.rs/tokio/{} has an example",
    "run `cargo test -- --nocapture` first, then look at line {}",
    "این تست {} چرا خراب می‌شود",
    "لطفاً نسخه‌ی {} را روی لینوکس هم امتحان کن، روی ویندوز کار نمی‌کند",
    "سلام دوستان",
    "دمت گرم!",
    "هل يعمل الإصدار {} على ويندوز",
    "جرّب إعادة التشغيل أولاً ثم أخبرنا بالنتيجة رقم {}",
    "为什么测试{}失败了",
    "建议用 Rust 重写第{}部分，性能会好很多",
    "太棒了！",
    "warum ist der Test {} rot",
    "bitte Tabs benutzen, nicht Leerzeichen, in Datei {}",
    "¿por qué falla el número {} en CI?",
    "creo que falta un punto en la línea {}",
    "почему тест {} падает на сервере?",
    "@mira can you look at number {} please",
    "ask @user7:example.org or https://matrix.to/#/@user9:example.org about {}",
    "🎉🎉🎉",
    "the release {} is out 🚀🚀 congratulations to everyone who helped with it",
    "mail me at sam.p+{}@example.org",
    "the telegram bridge drops {}% of the messages, message me if you need the logs",
    "no",
    "I would rather have two small functions here than one with {} flags, but that is taste",
    "+1",
    "> quoted by hand\nI agree with this, see point {}",
    "ควรเพิ่มการทดสอบ {} ก่อน",
    "テスト{}が失敗する理由を教えてください",
    "nên viết lại phần kiểm thử {} trước",
    "```\nfn main() {\n    println!(\"{}\");\n}\n```\nthis does not compile",
];

/// A long paste, as there is one in some hundred messages.
fn paste(number: usize) -> String {
    let line =
        "error[E0308]: mismatched types at src/main.rs:12:5 expected `u32`, found `String`\n";
    format!("log {number}\n```\n{}```", line.repeat(25))
}

fn body(number: usize) -> String {
    if number % 300 == 299 {
        return paste(number);
    }
    TALK[number % TALK.len()].replace("{}", &(number / 3).to_string())
}

fn written(body: &str) -> Written<'_> {
    Written {
        body,
        emote: false,
        reply: false,
        prefix: "!",
    }
}

/// A room, and what was said in it.
struct Room {
    people: Vec<Person>,
    ids: Vec<String>,
    prepared: Vec<Option<Prepared>>,
    votes: Vec<String>,
}

impl Room {
    fn of(count: usize) -> Self {
        let people = (0..PEOPLE)
            .map(|number| Person {
                user: format!("@user{number}:example.org"),
                display_name: Some(format!("User {number}")),
                first_seen: Some(NOW - 30 * DAY),
                handle: format!("user{number}"),
                standing: if number % 50 == 49 {
                    Standing::OptedOut
                } else {
                    Standing::In
                },
            })
            .collect();
        Self {
            people,
            ids: (0..count).map(|number| format!("$event{number}")).collect(),
            prepared: (0..count)
                .map(|number| prepare(&written(&body(number))))
                .collect(),
            votes: (0..3)
                .map(|number| format!("@user{number}:example.org"))
                .collect(),
        }
    }

    fn window(&self) -> Window<'_> {
        let step = (DAY / i64::try_from(self.ids.len()).unwrap_or(1)).max(1);
        let lines = self
            .prepared
            .iter()
            .enumerate()
            .filter_map(|(number, prepared)| {
                let stamp = NOW - DAY + i64::try_from(number).ok()? * step;
                Some(Line {
                    event_id: &self.ids[number],
                    sender: &self.people[number * 7 % PEOPLE].user,
                    stamp,
                    sent_at: None,
                    prepared: prepared.as_ref()?,
                    replied_to: None,
                    mentions: &[],
                    votes: if number % 10 == 0 { &self.votes } else { &[] },
                })
            });
        Window {
            since: None,
            until: NOW,
            people: &self.people,
            lines: lines.collect(),
        }
    }
}

fn settings() -> Settings {
    Settings {
        agents: vec!["@agent:example.org".to_owned()],
        min_age: DAY,
    }
}

/// At most 1 ms for a thousand lines, 50 ms for a hundred thousand.
#[divan::bench(args = [1_000, 100_000], min_time = Duration::from_secs(1))]
fn prepared_lines_to_a_digest(bencher: Bencher, count: usize) {
    let room = Room::of(count);
    let window = room.window();
    let settings = settings();
    bencher.bench_local(|| digest(black_box(&window), black_box(&settings)));
}

/// At most a second.
#[divan::bench(args = [100_000], sample_count = 5, sample_size = 1)]
fn raw_texts_to_a_digest(bencher: Bencher, count: usize) {
    let bodies: Vec<String> = (0..count).map(body).collect();
    let mut room = Room::of(1);
    room.ids = (0..count).map(|number| format!("$event{number}")).collect();
    let settings = settings();
    bencher.bench_local(|| {
        room.prepared = bodies.iter().map(|body| prepare(&written(body))).collect();
        digest(black_box(&room.window()), black_box(&settings))
    });
}

/// At most 10 µs a message: the time below is for a thousand.
#[divan::bench]
fn a_thousand_messages_prepared(bencher: Bencher) {
    let bodies: Vec<String> = (0..1_000).map(body).collect();
    bencher.bench_local(|| {
        for body in &bodies {
            black_box(prepare(&written(black_box(body))));
        }
    });
}

/// One of each kind.
#[divan::bench(args = TALK)]
fn a_message_prepared(bencher: Bencher, body: &str) {
    bencher.bench_local(|| prepare(&written(black_box(body))));
}

#[divan::bench]
fn a_long_paste_prepared(bencher: Bencher) {
    let body = paste(7);
    bencher.bench_local(|| prepare(&written(black_box(&body))));
}
