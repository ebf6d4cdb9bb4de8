//! The one place that reads the ambient clock and randomness, and how a moment is written.
//!
//! Everything that decides takes time and identifiers as arguments, so that it
//! can be replayed; `clippy.toml` bans the ambient sources elsewhere.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;
use ::time::macros::format_description;

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

/// The moments that RFC 3339 can write in UTC: the years 0000 to 9999.
pub const WRITABLE: RangeInclusive<Millis> = -62_167_219_200_000..=253_402_300_799_999;

/// A time as RFC 3339 in UTC with milliseconds: `2026-03-01T09:30:00.000Z`. One that is not
/// [`WRITABLE`] is written as no such text, or as the year 1970.
pub fn timestamp(at: Millis) -> String {
    let shape =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000)
        .ok()
        .and_then(|time| time.format(&shape).ok())
        .unwrap_or_else(|| "1970-01-01T00:00:00.000Z".to_owned())
}

/// Reads a date-time of RFC 3339, which has an offset, down to the millisecond before it. Every
/// [`timestamp`] of a [`WRITABLE`] moment is read as that moment; what is not writable in UTC is
/// not read.
pub fn read_timestamp(text: &str) -> Option<Millis> {
    // RFC 3339, section 5.6: whoever wants another sign than `T` goes without the grammar.
    if !matches!(text.as_bytes().get(10), Some(b'T' | b't')) {
        return None;
    }
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let millis = time.unix_timestamp_nanos().div_euclid(1_000_000);
    let millis = Millis::try_from(millis).ok()?;
    WRITABLE.contains(&millis).then_some(millis)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_and_read_back() {
        for (at, written) in [
            (1_794_122_400_000, "2026-11-08T07:20:00.000Z"),
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (*WRITABLE.start(), "0000-01-01T00:00:00.000Z"),
            (*WRITABLE.end(), "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(timestamp(at), written);
            assert_eq!(read_timestamp(written), Some(at));
        }
    }

    #[test]
    fn an_offset_and_a_fraction_are_read() {
        for (text, same) in [
            ("2026-11-08T08:20:00+01:00", "2026-11-08T07:20:00.000Z"),
            ("2026-11-08t07:20:00z", "2026-11-08T07:20:00.000Z"),
            ("2026-11-08T07:20:00.0019Z", "2026-11-08T07:20:00.001Z"),
            ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
            ("2026-06-30T23:59:60Z", "2026-06-30T23:59:59.999Z"),
        ] {
            assert_eq!(
                read_timestamp(text).map(timestamp).as_deref(),
                Some(same),
                "{text}"
            );
        }
    }

    #[test]
    fn what_has_no_offset_or_is_no_moment_is_not_read() {
        for text in [
            "",
            "2026-11-08",
            "2026-11-08T07:20:00",
            "2026-11-08T07:20Z",
            "2026-11-08 07:20:00Z",
            "2026-11-08T08:20:00 01:00",
            "2026-02-30T07:20:00Z",
            "2026-11-08T24:00:00Z",
            "1794122400",
            " 2026-11-08T07:20:00Z",
            "2026-11-08T07:20:00Z ",
            "2026-11-08é07:20:00Z",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert_eq!(read_timestamp(text), None, "{text:?}");
        }
    }
}
