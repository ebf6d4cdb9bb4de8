//! `/v1/sessions`: begin one, look at it, act in it, end it.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::auth::Caller;
use super::elicitations::{Body, Parameters};
use super::query;
use super::request::{Members, json_of};
use super::{Api, ApiError};
use crate::contract::signals::Activity;
use crate::ledger::SoughtSessions;
use crate::service::NewSession;
use crate::session::{activity, object};

/// The members of a request for a session.
const MEMBERS: [&str; 4] = ["room", "title", "user_id", "prompt"];
/// The longest title, in bytes.
const MAX_TITLE: usize = 512;
/// The longest prompt, in bytes.
const MAX_PROMPT: usize = 64 * 1024;

/// `POST /v1/sessions`: begins a session and answers once it is stored; its root need not be in the
/// room yet. 201 with `Location`.
pub async fn begin(
    State(api): State<Api>,
    Caller(agent): Caller,
    Parameters(pairs): Parameters,
    Body(body): Body,
) -> Result<Response, ApiError> {
    query::read(pairs, [])?;
    let mut members = Members::of(&body, &MEMBERS)?;
    let new = NewSession {
        room: members.required_text("room")?,
        title: members.text("title")?,
        user_id: members.text("user_id")?,
        prompt: members.text("prompt")?,
    };
    for (field, text, most) in [
        ("title", &new.title, MAX_TITLE),
        ("prompt", &new.prompt, MAX_PROMPT),
    ] {
        let Some(text) = text else { continue };
        if crate::reply::is_blank(text) {
            return Err(ApiError::invalid(field, "must not be blank"));
        }
        if text.len() > most {
            let rule = format!("must be at most {most} bytes");
            return Err(ApiError::invalid(field, rule));
        }
    }
    let session = api.service.begin_session(&agent, new).await?;
    let location = format!("/v1/sessions/{}", session.id);
    Ok((
        StatusCode::CREATED,
        [(LOCATION, location)],
        Json(object(&session)),
    )
        .into_response())
}

/// `GET /v1/sessions`: the agent's own, newest first, a page at a time.
pub async fn list(
    State(api): State<Api>,
    Caller(agent): Caller,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    let [status, limit, cursor] = query::read(pairs, ["status", "limit", "cursor"])?;
    let sought = SoughtSessions {
        agent,
        status: status.as_deref().map(query::status).transpose()?,
        below: cursor.as_deref().map(query::cursor).transpose()?,
        limit: query::limit(limit.as_deref())?,
    };
    let (sessions, next) = api.service.sessions(sought).await?;
    let sessions: Vec<Value> = sessions.iter().map(object).collect();
    Ok(Json(
        json!({ "sessions": sessions, "next": next.map(query::cursor_of) }),
    ))
}

/// `GET /v1/sessions/{id}`: one session.
pub async fn read(
    State(api): State<Api>,
    Caller(agent): Caller,
    SessionId(id): SessionId,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    query::read(pairs, [])?;
    match api.service.session(&agent, &id).await? {
        Some(session) => Ok(Json(object(&session))),
        None => Err(ApiError::SessionNotFound { id }),
    }
}

/// `GET /v1/sessions/{id}/activities`: what was said in it, oldest first, a page at a time.
pub async fn activities(
    State(api): State<Api>,
    Caller(agent): Caller,
    SessionId(id): SessionId,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    let [limit, cursor] = query::read(pairs, ["limit", "cursor"])?;
    let after = cursor.as_deref().map(query::cursor).transpose()?;
    let limit = query::limit(limit.as_deref())?;
    let found = api
        .service
        .activities(&agent, &id, after.unwrap_or(0), limit)
        .await?;
    let Some((activities, next)) = found else {
        return Err(ApiError::SessionNotFound { id });
    };
    let activities: Vec<Value> = activities.iter().map(activity).collect();
    Ok(Json(
        json!({ "activities": activities, "next": next.map(query::cursor_of) }),
    ))
}

/// `POST /v1/sessions/{id}/activities`: what the agent thinks, does, asks, or has come to. 201 once
/// it is stored.
pub async fn act(
    State(api): State<Api>,
    Caller(agent): Caller,
    SessionId(id): SessionId,
    Parameters(pairs): Parameters,
    Body(body): Body,
) -> Result<Response, ApiError> {
    query::read(pairs, [])?;
    let said = Activity::read(&json_of(&body)?)
        .map_err(|fault| ApiError::invalid(fault.field, fault.rule))?;
    match api.service.act(&agent, &id, said).await {
        Ok(taken) => Ok((StatusCode::CREATED, Json(activity(&taken))).into_response()),
        Err(error) => Err(ApiError::from_session(&id, error)),
    }
}

/// `DELETE /v1/sessions/{id}`: ends it at once, without stop, and gives back the object.
pub async fn end(
    State(api): State<Api>,
    Caller(agent): Caller,
    SessionId(id): SessionId,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    query::read(pairs, [])?;
    match api.service.delete_session(&agent, &id).await {
        Ok(session) => Ok(Json(object(&session))),
        Err(error) => Err(ApiError::from_session(&id, error)),
    }
}

/// The id in the path.
pub struct SessionId(String);

impl FromRequestParts<Api> for SessionId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let Path(id) = Path::from_request_parts(parts, api)
            .await
            .map_err(|_: PathRejection| {
                ApiError::invalid("session id", "must be percent-encoded UTF-8")
            })?;
        Ok(Self(id))
    }
}
