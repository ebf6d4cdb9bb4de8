//! How long to wait after a delivery failed.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
/// Two tries of one delivery are never further apart, whatever the receiver asks for.
pub const LONGEST: Duration = Duration::from_mins(5);
/// The longest wait before its jitter is added, which is at most a quarter.
const LONGEST_STEADY: Duration = Duration::from_mins(4);

/// The wait after the `failures`th failure in a row (from 1): a second, then twice as long each
/// time, with up to a quarter more so that many do not come back at once, at most [`LONGEST`].
///
/// `random` is any number, evenly spread. What the receiver asked for (`Retry-After`) makes the
/// wait longer, never shorter.
pub fn wait(failures: u32, random: u64, asked_for: Option<Duration>) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let steady = FIRST.saturating_mul(1 << doublings).min(LONGEST_STEADY);
    let quarter = u64::try_from(steady.as_millis() / 4).unwrap_or(u64::MAX);
    let jitter = Duration::from_millis(random % quarter.saturating_add(1));
    (steady + jitter)
        .max(asked_for.unwrap_or_default())
        .min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(failures: u32) -> (u128, u128) {
        let waits: Vec<_> = (0..=60_000)
            .map(|random| wait(failures, random, None).as_millis())
            .collect();
        (*waits.iter().min().unwrap(), *waits.iter().max().unwrap())
    }

    #[test]
    fn it_begins_with_a_second_and_doubles() {
        assert_eq!(range(1), (1_000, 1_250));
        assert_eq!(range(2), (2_000, 2_500));
        assert_eq!(range(3), (4_000, 5_000));
        assert_eq!(range(8), (128_000, 160_000));
    }

    #[test]
    fn it_never_passes_five_minutes_and_is_spread_there_too() {
        assert_eq!(range(9), (240_000, 300_000));
        assert_eq!(range(u32::MAX), (240_000, 300_000));
    }

    #[test]
    fn a_count_that_was_lost_is_a_first_failure() {
        assert_eq!(wait(0, 0, None), FIRST);
    }

    #[test]
    fn the_receiver_may_ask_for_more_but_not_for_less() {
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(wait(1, 0, asked(40)), Duration::from_secs(40));
        assert_eq!(wait(6, 0, asked(1)), Duration::from_secs(32));
        assert_eq!(wait(1, 0, asked(86_400)), LONGEST);
        assert_eq!(wait(1, 0, asked(u64::MAX)), LONGEST);
    }
}
