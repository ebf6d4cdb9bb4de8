//! The one place that reads the ambient clock and randomness.
//!
//! Everything that decides takes time and identifiers as arguments, so that it
//! can be replayed; `clippy.toml` bans the ambient sources elsewhere.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: milliseconds since the Unix epoch, UTC.
pub type Millis = i64;

/// The time now.
///
/// A clock before 1970 reads as 0, one past the year 292 million as the largest value.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the module that owns the clock"
)]
pub fn now() -> Millis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    millis(since)
}

/// A duration in whole milliseconds, saturating.
pub fn millis(duration: Duration) -> Millis {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// How long it is until then, at most `at_most`; nothing when it has passed.
pub fn until(then: Millis, at_most: Duration) -> Duration {
    let left = u64::try_from(then.saturating_sub(now())).unwrap_or(0);
    Duration::from_millis(left).min(at_most)
}

/// A fresh identifier: the prefix and a ULID of this moment, for example `elc_01J…`.
pub fn fresh_id(prefix: &str) -> String {
    let time = u64::try_from(now()).unwrap_or(0);
    let ulid = ulid::Ulid::from_parts(time, rand::random());
    format!("{prefix}{ulid}")
}

/// By how much the program waits less for a homeserver than it is meant to, from the environment: a
/// test of its patience must not take as long. Release builds do not look at it.
pub const HURRY: &str = "MATRIX_ELICIT_HURRY";

/// How long to wait for what is meant to be waited for so long.
#[cfg(debug_assertions)]
pub fn patience(meant: Duration) -> Duration {
    use std::sync::OnceLock;

    static HURRIED: OnceLock<u32> = OnceLock::new();
    let times = HURRIED.get_or_init(|| {
        let set = std::env::var(HURRY).ok();
        set.and_then(|times| times.parse().ok()).unwrap_or(1).max(1)
    });
    meant / *times
}

/// How long to wait for what is meant to be waited for so long.
#[cfg(not(debug_assertions))]
pub fn patience(meant: Duration) -> Duration {
    meant
}
