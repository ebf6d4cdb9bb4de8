//! Points at which the process can be told to die, so that a test can look at what each of them
//! leaves behind.
//!
//! `MATRIX_ELICIT_DIE_AT=send.sent#2` ends the process the second time it passes `send.sent`, at
//! once and with nothing put in order, as a power cut would. Release builds hold none of this.

/// The points, in the order in which one question passes them first.
pub const POINTS: [&str; 15] = [
    // Logged in, and nothing of it kept yet; then kept.
    "login.done",
    "login.kept",
    // A sync response is here, and the client has kept its token; then it is in the ledger.
    "sync.received",
    "sync.taken_in",
    // A request to ask is read; then the question is stored, and nobody has been told so.
    "ask.received",
    "ask.stored",
    // Before and after each commit of the ledger.
    "commit.before",
    "commit.after",
    // Something is to go to a room; the ledger says that it was tried; the homeserver has it; the
    // ledger says so.
    "send.due",
    "send.attempted",
    "send.sent",
    "send.marked",
    // Something is to go to an agent; the agent has it; the ledger says so.
    "deliver.due",
    "deliver.posted",
    "deliver.marked",
];

/// The points that only the question of a board passes.
pub const BOARD_POINTS: [&str; 6] = [
    // A push is read; then the question is stored, and the board has not been told so.
    "push.received",
    "push.stored",
    // An answer is to be handed in; the ledger says that it is being handed in; the board has
    // answered; the ledger says how it ended.
    "submit.due",
    "submit.in_hand",
    "submit.posted",
    "submit.ended",
];

/// Where the process is to die, from the environment.
pub const DIE_AT: &str = "MATRIX_ELICIT_DIE_AT";

/// Passes a point. The process ends here if it was told to.
#[cfg(debug_assertions)]
pub fn point(name: &'static str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static WANTED: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);
    debug_assert!(
        POINTS.contains(&name) || BOARD_POINTS.contains(&name),
        "{name} is not in the list"
    );
    let wanted = WANTED.get_or_init(|| read(&std::env::var(DIE_AT).ok()?));
    if let Some((point, time)) = wanted
        && point == name
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *time
    {
        std::process::abort();
    }
}

/// Passes a point.
#[cfg(not(debug_assertions))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "nothing of it is to be left")]
pub fn point(_name: &'static str) {}

#[cfg(debug_assertions)]
fn read(wanted: &str) -> Option<(String, u32)> {
    let (point, time) = wanted.split_once('#').unwrap_or((wanted, "1"));
    Some((point.to_owned(), time.parse().ok()?))
}
