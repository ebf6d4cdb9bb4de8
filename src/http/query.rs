//! Query parameters, each known by name.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::ApiError;
use super::request::{nearest, quoted_list};
use crate::elicitation::State;
use crate::session::Status;

/// The longest a reader is kept waiting.
pub const LONGEST_WAIT: Duration = Duration::from_secs(55);
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

/// The parameters of one request, as pairs.
pub type Pairs = Vec<(String, String)>;

/// The value of each parameter in `known`, in that order. A parameter that is not known, or is
/// given twice, is refused by name.
pub fn read<const N: usize>(
    pairs: Pairs,
    known: [&str; N],
) -> Result<[Option<String>; N], ApiError> {
    let mut values = [const { None }; N];
    for (name, value) in pairs {
        let Some(place) = known.iter().position(|known| **known == name) else {
            return Err(ApiError::invalid(&name, unknown(&name, &known)));
        };
        if values[place].replace(value).is_some() {
            return Err(ApiError::invalid(name, "is given twice"));
        }
    }
    Ok(values)
}

fn unknown(name: &str, known: &[&str]) -> String {
    let list = quoted_list(known);
    match nearest(name, known) {
        Some(near) => format!("is no parameter here; did you mean `{near}`?"),
        None if known.is_empty() => "is no parameter here; there are none".to_owned(),
        None => format!("is no parameter here; this call takes {list}"),
    }
}

/// `wait`: whole seconds, above 55 is 55.
pub fn wait(value: &str) -> Result<Duration, ApiError> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ApiError::invalid(
            "wait",
            "must be a whole number of seconds, 0 to 55",
        ));
    }
    // All digits, so what does not fit is only too large.
    let seconds = value.parse().unwrap_or(u64::MAX);
    Ok(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

/// `limit`: 1 to 200, 50 when absent.
pub fn limit(value: Option<&str>) -> Result<usize, ApiError> {
    let Some(value) = value else {
        return Ok(DEFAULT_LIMIT);
    };
    match value.parse() {
        Ok(limit @ 1..=MAX_LIMIT) => Ok(limit),
        _ => Err(ApiError::invalid(
            "limit",
            format!("must be a whole number from 1 to {MAX_LIMIT}"),
        )),
    }
}

/// `state`: one of the words.
pub fn state(value: &str) -> Result<State, ApiError> {
    State::from_word(value).ok_or_else(|| {
        ApiError::invalid(
            "state",
            format!(
                "must be one of {}",
                quoted_list(&State::ALL.map(State::word))
            ),
        )
    })
}

/// `status` of a session: one of the words.
pub fn status(value: &str) -> Result<Status, ApiError> {
    Status::from_word(value).ok_or_else(|| {
        let words = quoted_list(&Status::ALL.map(Status::word));
        ApiError::invalid("status", format!("must be one of {words}"))
    })
}

/// Where a listing goes on, as an opaque word.
pub fn cursor_of(below: i64) -> String {
    URL_SAFE_NO_PAD.encode(below.to_be_bytes())
}

/// `cursor`: only what [`cursor_of`] made.
pub fn cursor(value: &str) -> Result<i64, ApiError> {
    URL_SAFE_NO_PAD
        .decode(value)
        .ok()
        .and_then(|bytes| <[u8; 8]>::try_from(bytes).ok())
        .map(i64::from_be_bytes)
        .ok_or_else(|| {
            ApiError::invalid(
                "cursor",
                "must be the `next` of a page before, as it was given",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(&str, &str)]) -> Pairs {
        of.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn refusal<T: std::fmt::Debug>(result: Result<T, ApiError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn known_parameters_come_back_in_order() {
        let read = read(
            pairs(&[("room", "!r"), ("state", "open")]),
            ["state", "room", "limit"],
        );
        assert_eq!(
            read.unwrap(),
            [Some("open".to_owned()), Some("!r".to_owned()), None]
        );
    }

    #[test]
    fn a_foreign_or_repeated_parameter_is_refused_by_name() {
        let known = ["state", "room"];
        assert_eq!(
            refusal(read(pairs(&[("sate", "open")]), known)),
            "sate is no parameter here; did you mean `state`?"
        );
        assert_eq!(
            refusal(read(pairs(&[("colour", "red")]), known)),
            "colour is no parameter here; this call takes `state` and `room`"
        );
        assert_eq!(
            refusal(read(pairs(&[("colour", "red")]), [])),
            "colour is no parameter here; there are none"
        );
        assert_eq!(
            refusal(read(pairs(&[("room", "!r"), ("room", "!s")]), known)),
            "room is given twice"
        );
    }

    /// Pain: timeout.
    #[test]
    fn a_wait_above_the_longest_is_the_longest() {
        let seconds = |value| wait(value).map(|wait| wait.as_secs());
        assert_eq!(seconds("0").unwrap(), 0);
        assert_eq!(seconds("54").unwrap(), 54);
        assert_eq!(seconds("56").unwrap(), 55);
        assert_eq!(seconds("99999999999999999999999").unwrap(), 55);
        for wrong in ["", "-1", "1.5", "30s", "+5", "forever"] {
            assert_eq!(
                refusal(wait(wrong)),
                "wait must be a whole number of seconds, 0 to 55",
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn a_limit_outside_its_range_is_refused() {
        assert_eq!(limit(None).unwrap(), 50);
        assert_eq!(limit(Some("1")).unwrap(), 1);
        assert_eq!(limit(Some("200")).unwrap(), 200);
        for wrong in ["0", "201", "", "ten"] {
            assert_eq!(
                refusal(limit(Some(wrong))),
                "limit must be a whole number from 1 to 200"
            );
        }
    }

    #[test]
    fn a_state_is_one_of_its_words() {
        assert_eq!(state("expired").unwrap(), State::Expired);
        assert_eq!(
            refusal(state("done")),
            "state must be one of `queued`, `open`, `answered`, `declined`, `cancelled`, `superseded`, `expired` and `undeliverable`"
        );
    }

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        for below in [0, 1, 77, i64::MAX] {
            assert_eq!(cursor(&cursor_of(below)).unwrap(), below);
        }
        for wrong in ["", "77", "AAAAAAAAAAAAAAAA", "no cursor"] {
            assert_eq!(
                refusal(cursor(wrong)),
                "cursor must be the `next` of a page before, as it was given"
            );
        }
    }
}
