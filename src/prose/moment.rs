//! A point in time as people read it.

use ::time::OffsetDateTime;
use ::time::macros::format_description;

use crate::clock::Millis;

/// A time for people, always with its date and always in UTC, because a room has
/// readers in many places: `30 Nov 2026, 14:05 UTC`.
///
/// Seconds are cut off, so that a deadline is never shown later than it is. A time
/// outside the years ±9999 is "an unknown time".
pub fn moment(at: Millis) -> String {
    let shape =
        format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute] UTC");
    OffsetDateTime::from_unix_timestamp(at.div_euclid(1000))
        .ok()
        .and_then(|time| time.format(&shape).ok())
        .unwrap_or_else(|| "an unknown time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_date_and_zone() {
        assert_eq!(moment(1_796_047_500_000), "30 Nov 2026, 14:05 UTC");
        assert_eq!(moment(1_796_047_559_999), "30 Nov 2026, 14:05 UTC");
        assert_eq!(moment(0), "1 Jan 1970, 00:00 UTC");
        assert_eq!(moment(-1), "31 Dec 1969, 23:59 UTC");
    }

    #[test]
    fn a_time_beyond_the_calendar_is_no_crash() {
        assert_eq!(moment(Millis::MAX), "an unknown time");
        assert_eq!(moment(Millis::MIN), "an unknown time");
    }
}
