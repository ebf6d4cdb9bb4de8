//! Spans of time as people write them: `90s`, `30m`, `1h`, `30d`, or a number of seconds.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest span, in seconds: a hundred years. Whatever moment one is added to stays
/// far inside `i64` milliseconds.
pub const LONGEST_SECONDS: u64 = 36_500 * 86_400;

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// Why a text is no span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// Neither a whole number with a unit nor a whole number.
    #[error("must be a span of time like \"90s\", \"30m\", \"1h\" or \"7d\", or whole seconds")]
    Shape,
    /// No time at all.
    #[error("must be longer than nothing")]
    Zero,
    /// Longer than [`LONGEST_SECONDS`].
    #[error("must not be longer than 100 years")]
    TooLong,
}

/// Reads a whole number and one of the units `s`, `m`, `h`, `d`, without a space between
/// them; without a unit it is seconds.
///
/// # Errors
/// [`SpanError`], which says what is expected and does not repeat `text`.
pub fn parse_span(text: &str) -> Result<Duration, SpanError> {
    let unit = UNITS.iter().find(|(letter, _)| text.ends_with(*letter));
    let (digits, seconds_each) = match unit {
        Some((letter, seconds)) => (text.strip_suffix(*letter).unwrap_or(text), *seconds),
        None => (text, 1),
    };
    // `u64::from_str` takes a leading plus, which nobody means here.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SpanError::Shape);
    }
    let count: u64 = digits.parse().map_err(|_| SpanError::TooLong)?;
    from_seconds(count.checked_mul(seconds_each).ok_or(SpanError::TooLong)?)
}

fn from_seconds(seconds: u64) -> Result<Duration, SpanError> {
    match seconds {
        0 => Err(SpanError::Zero),
        1..=LONGEST_SECONDS => Ok(Duration::from_secs(seconds)),
        _ => Err(SpanError::TooLong),
    }
}

/// A span as a field of the configuration or of a request: whole seconds, at least one,
/// at most [`LONGEST_SECONDS`]. Read from a string or from a number of seconds, written
/// as the shortest string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Duration);

impl Span {
    /// As a duration.
    pub fn duration(self) -> Duration {
        self.0
    }
}

/// Reads a [`Span`] into a field that is a [`Duration`].
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Span::deserialize(deserializer).map(Span::duration)
}

/// Reads a [`Span`] into a field that may be left out, but not be null.
pub(crate) fn read_some<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    read(deserializer).map(Some)
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        parse_span(text).map(Self)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let whole = UNITS
            .iter()
            .find(|(_, each)| seconds.is_multiple_of(*each))
            .unwrap_or(&('s', 1));
        write!(f, "{}{}", seconds / whole.1, whole.0)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a span of time like \"30m\", or whole seconds")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Span, E> {
                from_seconds(seconds).map(Span).map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Span, E> {
                match u64::try_from(seconds) {
                    Ok(seconds) => self.visit_u64(seconds),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(seconds), &self)),
                }
            }
        }
        deserializer.deserialize_any(Written)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "format": "span",
            "minimum": 1,
            "maximum": LONGEST_SECONDS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_and_bare_seconds_are_read() {
        for (text, seconds) in [
            ("90s", 90),
            ("30m", 1_800),
            ("1h", 3_600),
            ("30d", 2_592_000),
            ("007d", 604_800),
            ("45", 45),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_for_what_it_is() {
        for text in [
            "", "s", "d", "-1s", "+1s", "1.5h", "1 h", "1h30m", "1w", "1H", "٣s", "1d ",
        ] {
            assert_eq!(parse_span(text), Err(SpanError::Shape), "{text:?}");
        }
        for text in ["0", "0s", "000d"] {
            assert_eq!(parse_span(text), Err(SpanError::Zero), "{text:?}");
        }
        for text in [
            "36501d",
            "18446744073709551615d",
            "99999999999999999999s",
            "3153600001",
        ] {
            assert_eq!(parse_span(text), Err(SpanError::TooLong), "{text:?}");
        }
        assert_eq!(
            parse_span("36500d").map(|span| span.as_secs()),
            Ok(LONGEST_SECONDS)
        );
    }

    #[test]
    fn a_span_is_written_in_its_largest_whole_unit_and_read_back() {
        for (given, written) in [
            ("30d", "30d"),
            ("24h", "1d"),
            ("90m", "90m"),
            ("120s", "2m"),
            ("61", "61s"),
        ] {
            let span: Span = given.parse().unwrap();
            assert_eq!(span.to_string(), written);
            assert_eq!(written.parse(), Ok(span));
        }
    }

    #[test]
    fn json_may_give_a_string_or_whole_seconds() {
        let read = |json: &str| {
            let span = serde_json::from_str::<Span>(json);
            span.map(Span::duration).map_err(|error| error.to_string())
        };
        assert_eq!(read("\"2m\""), Ok(Duration::from_mins(2)));
        assert_eq!(read("120"), Ok(Duration::from_mins(2)));
        for refused in ["0", "-5", "1.5", "true", "null", "\"soon\"", "3153600001"] {
            assert!(read(refused).is_err(), "{refused}");
        }
    }
}
