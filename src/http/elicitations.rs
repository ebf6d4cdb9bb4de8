//! `/v1/elicitations`: ask, read and wait, list, withdraw.

use std::time::Duration;

use axum::Json;
use axum::body::{Bytes, HttpBody as _};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{EXPECT, HeaderMap, LOCATION};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::auth::Caller;
use super::query::{self, Pairs};
use super::request::{read_ask, read_idempotency_key};
use super::{Api, ApiError, MAX_BODY};
use crate::elicitation::{Key, object};
use crate::ledger::Sought;

/// How long a body may take to arrive: a request that trickles in holds nothing for long.
const BODY_TIME: Duration = Duration::from_secs(15);
/// So many bytes of a body that is too large are read before it is given up.
const MOST_THROWN_AWAY: usize = 8 * 1024 * 1024;

/// `POST /v1/elicitations`: stores the question and answers once it is stored; it need not be in
/// the room yet. 201 with `Location`, or 200 when the same was asked before.
pub async fn ask(
    State(api): State<Api>,
    Caller(agent): Caller,
    Parameters(pairs): Parameters,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, ApiError> {
    query::read(pairs, [])?;
    let asked = api
        .service
        .ask(&agent, read_ask(&body, read_idempotency_key(&headers)?)?)
        .await?;
    let status = if asked.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let location = format!("/v1/elicitations/{}", in_path(&asked.elicitation.key().id));
    Ok((
        status,
        [(LOCATION, location)],
        Json(object(&asked.elicitation)),
    )
        .into_response())
}

/// `GET /v1/elicitations/{id}`: the object; with `?wait=` when it is closed or the time is up.
pub async fn read(
    State(api): State<Api>,
    Caller(agent): Caller,
    ElicitationId(id): ElicitationId,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    let [wait] = query::read(pairs, ["wait"])?;
    let wait = wait.as_deref().map(query::wait).transpose()?;
    let mut found = api.service.find_of(&agent, &id).await?;
    if let Some(wait) = wait.filter(|wait| !wait.is_zero())
        && let Some(open) = found.as_ref().filter(|found| !found.state.is_closed())
    {
        let place = api.waiter()?;
        found = api.service.wait(open.key(), wait).await?;
        drop(place);
    }
    match found {
        Some(elicitation) => Ok(Json(object(&elicitation))),
        None => Err(ApiError::ElicitationNotFound { id }),
    }
}

/// `GET /v1/elicitations`: the agent's own, newest first, a page at a time.
pub async fn list(
    State(api): State<Api>,
    Caller(agent): Caller,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    let [state, room, limit, cursor] = query::read(pairs, ["state", "room", "limit", "cursor"])?;
    let mut sought = Sought {
        owner: agent,
        state: state.as_deref().map(query::state).transpose()?,
        room_id: None,
        below: cursor.as_deref().map(query::cursor).transpose()?,
        limit: query::limit(limit.as_deref())?,
    };
    if let Some(room) = room {
        if !room.starts_with(['!', '#']) {
            // An alias that is not escaped ends the address before it begins.
            let rule = "must be a room id or an alias; `#` is written %23 in an address";
            return Err(ApiError::invalid("room", rule));
        }
        sought.room_id = api.service.room_id_of(&room).await?;
        if sought.room_id.is_none() {
            return Ok(Json(json!({ "elicitations": [], "next": null })));
        }
    }
    let page = api.service.list(sought).await?;
    let elicitations: Vec<Value> = page.elicitations.iter().map(object).collect();
    Ok(Json(
        json!({ "elicitations": elicitations, "next": page.next.map(query::cursor_of) }),
    ))
}

/// `DELETE /v1/elicitations/{id}`: withdraws a pending question and gives back the object.
pub async fn withdraw(
    State(api): State<Api>,
    Caller(agent): Caller,
    ElicitationId(id): ElicitationId,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    query::read(pairs, [])?;
    match api.service.cancel(&Key::new(agent, id.as_str())).await {
        Ok(elicitation) => Ok(Json(object(&elicitation))),
        Err(error) => Err(ApiError::from_cancel(&id, error)),
    }
}

/// The query, whatever it names.
pub struct Parameters(pub Pairs);

impl FromRequestParts<Api> for Parameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let Query(pairs) = Query::from_request_parts(parts, api)
            .await
            .map_err(|_: QueryRejection| ApiError::invalid("query", "must be name=value pairs"))?;
        Ok(Self(pairs))
    }
}

/// The id in the path.
pub struct ElicitationId(String);

impl FromRequestParts<Api> for ElicitationId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let Path(id) = Path::from_request_parts(parts, api)
            .await
            .map_err(|_: PathRejection| {
                ApiError::invalid("elicitation_id", "must be percent-encoded UTF-8")
            })?;
        Ok(Self(id))
    }
}

/// The whole body, whatever type it says it has: `curl -d` calls it a form.
pub struct Body(pub Bytes);

impl FromRequest<Api> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &Api) -> Result<Self, ApiError> {
        whole(request, BODY_TIME).await.map(Self)
    }
}

async fn whole(request: Request, within: Duration) -> Result<Bytes, ApiError> {
    let collected = tokio::time::timeout(within, collect(request));
    collected.await.unwrap_or(Err(ApiError::TooSlow(within)))
}

/// The body, if it is not over the limit. One that is over it is read on for a while and thrown
/// away: a connection that is closed while its other end still sends is reset there, and the
/// refusal is never read.
async fn collect(request: Request) -> Result<Bytes, ApiError> {
    let asks_first = request.headers().contains_key(EXPECT);
    let body = request.into_body();
    if asks_first && body.size_hint().lower() > MAX_BODY as u64 {
        return Err(ApiError::PayloadTooLarge);
    }
    let mut pieces = body.into_data_stream();
    let mut kept = Vec::new();
    let mut thrown_away = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| ApiError::invalid("body", "must arrive whole"))?;
        if thrown_away == 0 && kept.len() + piece.len() <= MAX_BODY {
            kept.extend_from_slice(&piece);
            continue;
        }
        thrown_away += std::mem::take(&mut kept).len() + piece.len();
        if thrown_away > MOST_THROWN_AWAY {
            break;
        }
    }
    match thrown_away {
        0 => Ok(kept.into()),
        _ => Err(ApiError::PayloadTooLarge),
    }
}

/// An id as a path segment (RFC 3986, section 2.3: all but the unreserved is encoded).
fn in_path(id: &str) -> String {
    let mut path = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push('%');
            path.push_str(&hex::encode_upper([byte]));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use axum::body;
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn a_body_that_does_not_arrive_is_not_waited_for() {
        let never = body::Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let refused = whole(Request::new(never), Duration::from_secs(1));
        let refused = tokio::time::timeout(Duration::from_secs(5), refused).await;
        let refused = refused.unwrap().unwrap_err();
        assert_eq!(refused.to_string(), "the body did not arrive within 1 s");
        assert_eq!(
            refused.into_response().status(),
            StatusCode::REQUEST_TIMEOUT
        );
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_refused() {
        let broken = stream::iter([Ok(Bytes::from("{")), Err(std::io::Error::other("reset"))]);
        let request = Request::new(body::Body::from_stream(broken));
        let refused = whole(request, Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(refused.to_string(), "body must arrive whole");
    }

    #[test]
    fn an_id_in_a_path_is_one_segment() {
        assert_eq!(in_path("elc_01J-2.3~4"), "elc_01J-2.3~4");
        assert_eq!(in_path("a/b?c ü"), "a%2Fb%3Fc%20%C3%BC");
    }
}
