//! `/api/v1/rooms/agent:{ags_…}/digest`: what a room said to an agent, `chat.agent-digest@1`; and what
//! the operator does about streams.
//!
//! ```text
//! GET    /api/v1/rooms/agent:{ags_…}/digest?since=                for the agents of the stream
//! GET    /v1/operator/streams/{ags_…}/digest?since=               the same for the operator
//! GET    /v1/operator/streams/{ags_…}/silenced                    who is kept out of it
//! PUT    /v1/operator/streams/{ags_…}/silenced/{user}             {"seconds"?}: keeps somebody out
//! DELETE /v1/operator/streams/{ags_…}/silenced/{user}             and lets them in again
//! ```
//!
//! Nothing is kept of who asked up to when: the next `since` is the `until` of the last digest, and
//! asking again with the same one is always right (`digest.md` 1).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::auth::{Caller, Operator};
use super::elicitations::{Body, Parameters};
use super::query::{self, Pairs};
use super::{Api, ApiError};
use crate::clock::{self, Millis, read_timestamp, timestamp};
use crate::contract::digest::{AgentDigest, is_stream_id, stream_of};
use crate::desk::is_user_id;
use crate::service::DigestError;

/// How many digests one agent may ask for, and within what time.
const MOST: usize = 60;
const WITHIN: Duration = Duration::from_mins(1);
/// How long an agent is told to wait for what is not here yet.
const RETRY: Duration = Duration::from_secs(5);
/// The longest time-out, in seconds: ten years.
const LONGEST: i64 = 10 * 366 * 24 * 60 * 60;

/// When each agent asked for digests last.
#[derive(Debug, Default)]
pub struct Asked(Mutex<HashMap<String, Vec<Instant>>>);

impl Asked {
    /// Notes that an agent asks; how long it has to wait if it asks too often.
    fn note(&self, agent: &str, now: Instant) -> Option<Duration> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = asked.entry(agent.to_owned()).or_default();
        times.retain(|at| now.duration_since(*at) < WITHIN);
        if let (true, Some(first)) = (times.len() >= MOST, times.first()) {
            return Some(WITHIN.saturating_sub(now.duration_since(*first)));
        }
        times.push(now);
        None
    }
}

/// `GET /api/v1/rooms/{room}/digest`. Of a room that is none, or not this agent's, nothing is said
/// but that it is not there.
pub async fn digest(
    State(api): State<Api>,
    Caller(agent): Caller,
    room: Result<Path<String>, PathRejection>,
    Parameters(pairs): Parameters,
) -> Result<Json<AgentDigest>, ApiError> {
    let room = room.map(|Path(room)| room).unwrap_or_default();
    let stream = stream_of(&room).filter(|stream| {
        let config = api.service.config().streams.get(*stream);
        config.is_some_and(|config| config.agents.contains(&agent))
    });
    let Some(stream) = stream else {
        return Err(ApiError::RoomNotFound { room });
    };
    if let Some(retry_after) = api.asked.note(&agent, Instant::now()) {
        return Err(ApiError::TooMany { retry_after });
    }
    answer(&api, &room, stream, pairs).await
}

/// `GET /v1/operator/streams/{stream}/digest`.
pub async fn digest_for_operator(
    State(api): State<Api>,
    _: Operator,
    stream: Result<Path<String>, PathRejection>,
    Parameters(pairs): Parameters,
) -> Result<Json<AgentDigest>, ApiError> {
    let stream = known(&api, stream.map(|Path(stream)| stream).unwrap_or_default())?;
    answer(&api, &stream, &stream, pairs).await
}

async fn answer(
    api: &Api,
    room: &str,
    stream: &str,
    pairs: Pairs,
) -> Result<Json<AgentDigest>, ApiError> {
    let since = since(pairs)?;
    let made = api.service.digest(stream, since).await;
    made.map(Json).map_err(|error| refusal(room, error))
}

/// Where the window begins: absent and empty are from the beginning.
fn since(pairs: Pairs) -> Result<Option<Millis>, ApiError> {
    let [since] = query::read(pairs, ["since"])?;
    let since = since.filter(|since| !since.is_empty());
    let read = since.map(|since| {
        read_timestamp(&since).ok_or_else(|| {
            ApiError::invalid(
                "since",
                "must be a date-time of RFC 3339 with an offset, like 2026-11-06T10:05:00.000Z \
                 (a + in it is written %2B)",
            )
        })
    });
    read.transpose()
}

fn refusal(room: &str, error: DigestError) -> ApiError {
    match error {
        DigestError::NotFound => ApiError::RoomNotFound {
            room: room.to_owned(),
        },
        DigestError::SinceAfterUntil { until } => {
            ApiError::invalid("since", format!("must not be after {}", timestamp(until)))
        }
        DigestError::NotCaughtUp(why) => ApiError::NotCaughtUp {
            why,
            retry_after: RETRY,
        },
        error @ DigestError::Broken(_) => {
            tracing::error!(error = %error, "{error}");
            ApiError::Unavailable("the digest could not be made; the log has the details".into())
        }
        DigestError::Ledger(error) => error.into(),
    }
}

/// A stream that is configured.
fn known(api: &Api, stream: String) -> Result<String, ApiError> {
    if is_stream_id(&stream) && api.service.config().streams.contains_key(&stream) {
        Ok(stream)
    } else {
        Err(ApiError::RoomNotFound { room: stream })
    }
}

/// `GET /v1/operator/streams/{stream}/silenced`: who is kept out, and until when; `null` is until
/// that is undone.
pub async fn silenced(
    State(api): State<Api>,
    _: Operator,
    stream: Result<Path<String>, PathRejection>,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    query::read(pairs, [])?;
    let stream = known(&api, stream.map(|Path(stream)| stream).unwrap_or_default())?;
    let silenced = api.service.silenced(&stream).await;
    let silenced = silenced.map_err(|error| refusal(&stream, error))?;
    let silenced: Vec<Value> = silenced
        .into_iter()
        .map(|(user_id, until)| json!({ "user_id": user_id, "until": until.map(timestamp) }))
        .collect();
    Ok(Json(json!({ "silenced": silenced })))
}

/// `PUT /v1/operator/streams/{stream}/silenced/{user}`: keeps somebody out of the digests, for some
/// seconds or until that is undone. What was said before is kept out, too, as long as that holds.
pub async fn silence(
    State(api): State<Api>,
    _: Operator,
    place: Result<Path<(String, String)>, PathRejection>,
    Parameters(pairs): Parameters,
    Body(body): Body,
) -> Result<Json<Value>, ApiError> {
    query::read(pairs, [])?;
    let (stream, user_id) = whom(&api, place)?;
    let until = seconds(&body)?.map(|seconds| clock::now().saturating_add(seconds * 1000));
    let silenced = api.service.silence(&stream, &user_id, until).await;
    silenced.map_err(|error| refusal(&stream, error))?;
    tracing::info!(
        stream.id = stream,
        user.id = user_id,
        "the operator keeps {user_id} out of {stream}"
    );
    Ok(Json(
        json!({ "user_id": user_id, "until": until.map(timestamp) }),
    ))
}

/// `DELETE /v1/operator/streams/{stream}/silenced/{user}`: whether there was anything to undo.
pub async fn unsilence(
    State(api): State<Api>,
    _: Operator,
    place: Result<Path<(String, String)>, PathRejection>,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    query::read(pairs, [])?;
    let (stream, user_id) = whom(&api, place)?;
    let undone = api.service.unsilence(&stream, &user_id).await;
    let undone = undone.map_err(|error| refusal(&stream, error))?;
    tracing::info!(
        stream.id = stream,
        user.id = user_id,
        "the operator lets {user_id} into {stream} again"
    );
    Ok(Json(json!({ "user_id": user_id, "undone": undone })))
}

fn whom(
    api: &Api,
    place: Result<Path<(String, String)>, PathRejection>,
) -> Result<(String, String), ApiError> {
    let Ok(Path((stream, user_id))) = place else {
        return Err(ApiError::UnknownPath);
    };
    let stream = known(api, stream)?;
    if !is_user_id(&user_id) {
        let rule = "must be a Matrix user id, like @sam:example.org";
        return Err(ApiError::invalid("user", rule));
    }
    Ok((stream, user_id))
}

/// How long a time-out is to last: nothing, and no body, is until it is undone.
fn seconds(body: &[u8]) -> Result<Option<i64>, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Request {
        #[serde(default)]
        seconds: Option<i64>,
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let wrong = || {
        let rule = format!("must be {{\"seconds\": 1 to {LONGEST}}}, or empty");
        ApiError::invalid("body", rule)
    };
    // Of a list a shape could be read, too.
    let request: Map<String, Value> = serde_json::from_slice(body).map_err(|_| wrong())?;
    let request: Request = serde_json::from_value(request.into()).map_err(|_| wrong())?;
    match request.seconds {
        None => Ok(None),
        Some(seconds) if (1..=LONGEST).contains(&seconds) => Ok(Some(seconds)),
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_asks_too_often_is_told_when_it_may_again_and_no_other_is() {
        let asked = Asked::default();
        let began = Instant::now();
        for _ in 0..MOST {
            assert_eq!(asked.note("agt_a", began), None);
        }
        let later = began + Duration::from_secs(20);
        assert_eq!(asked.note("agt_a", later), Some(Duration::from_secs(40)));
        assert_eq!(asked.note("agt_b", later), None);
        assert_eq!(asked.note("agt_a", began + WITHIN), None);
    }

    #[test]
    fn since_is_absent_empty_or_a_moment_with_an_offset() {
        let read = |values: &[&str]| {
            let pairs = values
                .iter()
                .map(|value| ("since".to_owned(), (*value).to_owned()));
            since(pairs.collect()).map_err(|error| error.to_string())
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[""]), Ok(None));
        assert_eq!(read(&["1970-01-01T00:00:01Z"]), Ok(Some(1000)));
        assert_eq!(read(&["1970-01-01T01:00:01+01:00"]), Ok(Some(1000)));
        assert_eq!(
            read(&["1970-01-01T00:00:01Z", ""]),
            Err("since is given twice".to_owned())
        );
        for wrong in [
            "now",
            "1970-01-01T00:00:01",
            "1970-01-01T01:00:01 01:00",
            "1000",
        ] {
            assert!(
                read(&[wrong])
                    .unwrap_err()
                    .starts_with("since must be a date-time"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_time_out_has_an_end_or_none() {
        let read = |body: &str| seconds(body.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("{}"), Ok(None));
        assert_eq!(read(r#"{"seconds": 3600}"#), Ok(Some(3600)));
        for wrong in [
            r#"{"seconds": 0}"#,
            r#"{"seconds": -1}"#,
            r#"{"seconds": "1h"}"#,
            r#"{"minutes": 1}"#,
            "[]",
            "1",
        ] {
            assert!(
                read(wrong).unwrap_err().starts_with("body must be"),
                "{wrong}"
            );
        }
    }
}
