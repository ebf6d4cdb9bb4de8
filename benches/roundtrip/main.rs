//! How fast an answer is on its way through the whole program, and what it takes in memory. Runs
//! the release build against a scripted homeserver in this process, with the ledger on the disk and
//! every commit synced, and prints a table.
//!
//! `cargo bench --bench roundtrip`, or a part of it: `cargo bench --bench roundtrip -- latency`,
//! `burst`, `memory`, `many`, `pushes`,
//! `sessions` or `double`. Sizes can be changed: `-- burst rooms=100 each=4`.

mod burst;
mod double;
mod latency;
mod many;
mod memory;
mod pushes;
#[path = "../../tests/scripted/mod.rs"]
mod scripted;
mod sessions;
mod sink;
mod stand;

/// What was asked for on the command line.
struct Wish {
    words: Vec<String>,
}

impl Wish {
    /// Whether a part is to be run: all are, if none is named.
    fn part(&self, name: &str) -> bool {
        let mut named = self.words.iter().filter(|word| !word.contains('='));
        let none = named.clone().next().is_none();
        none || named.any(|word| word == name)
    }

    /// A size, if it was given.
    fn size(&self, name: &str, otherwise: usize) -> usize {
        let prefix = format!("{name}=");
        let given = self
            .words
            .iter()
            .find_map(|word| word.strip_prefix(&prefix));
        given.map_or(otherwise, |size| size.parse().expect("a size is a number"))
    }
}

fn main() {
    // Cargo says `--bench` to every benchmark.
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let wish = Wish {
        words: words.collect(),
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        if wish.part("double") {
            double::measure(wish.size("sends", 20_000)).await;
        }
        if wish.part("latency") {
            latency::measure(wish.size("answers", 500)).await;
        }
        if wish.part("burst") {
            burst::measure(wish.size("rooms", 500), wish.size("each", 10)).await;
        }
        if wish.part("pushes") {
            pushes::measure(wish.size("pushes", 1_000)).await;
        }
        if wish.part("sessions") {
            sessions::measure(wish.size("sessions", 1_000), wish.size("stops", 200)).await;
        }
        if wish.part("memory") {
            memory::measure(wish.size("messages", 1_000_000)).await;
        }
        if wish.part("many") {
            many::measure(wish.size("open", 100_000), wish.size("rooms", 500)).await;
        }
    });
}

/// Prints a line of the table.
fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}
