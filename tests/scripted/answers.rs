//! What the server answers to everything but a sync.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use serde_json::{Value, json};

use super::Inner;
use super::call::{Call, Endpoint, Refusal};
use super::faults::respond;
use super::sessions::Session;
use super::sync::{position, sync};
use super::world::{Event, Room, World};

type Answer = Result<Value, Refusal>;

/// Answers a request.
pub(super) async fn answer(State(server): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        // Whoever asked is gone.
        return Response::default();
    };
    let call = Call::read(parts.method, &parts.uri, &parts.headers, body.to_vec());
    let endpoint = call.endpoint();
    server
        .asked
        .send_modify(|asked| *asked.entry(endpoint).or_default() += 1);
    if endpoint == Endpoint::Sync {
        return sync(&server, &call).await;
    }
    let fault = server.faults.lock().unwrap().take(endpoint);
    let carried_out = fault.as_ref().is_none_or(super::Fault::is_carried_out);
    let (status, body) = if carried_out {
        let outcome = carry_out(&mut server.world.lock().unwrap(), &call);
        if matches!(
            endpoint,
            Endpoint::Send | Endpoint::Join | Endpoint::KeysUpload
        ) {
            server.wake();
        }
        match outcome {
            Ok(body) => (200, body),
            Err(refusal) => (refusal.status, refusal.body),
        }
    } else {
        (200, Value::Null)
    };
    respond(status, body.to_string(), fault.as_ref()).await
}

/// Does what is asked for.
fn carry_out(world: &mut World, call: &Call) -> Answer {
    let parts = call.parts();
    match *parts.as_slice() {
        ["versions"] => {
            let versions = ["v1.1", "v1.5", "v1.6", "v1.8", "v1.10", "v1.11"];
            return Ok(json!({"versions": versions, "unstable_features": {}}));
        }
        ["login"] if call.method == Method::GET => {
            return Ok(json!({"flows": [{"type": "m.login.password"}]}));
        }
        ["login"] => return world.sessions.log_in(&call.json()?),
        ["refresh"] => return world.sessions.refresh(&call.json()?),
        _ => {}
    }
    let Some(token) = &call.token else {
        return Err(Refusal::new(401, "M_MISSING_TOKEN", "Missing access token"));
    };
    let session = world.sessions.find(token)?;
    match *parts.as_slice() {
        ["account", "whoami"] => Ok(json!({"user_id": session.user, "device_id": session.device})),
        ["rooms", room, "send", kind, txn] => {
            let event_id = world.send(room, token, kind, txn, &call.json()?)?;
            Ok(json!({"event_id": event_id}))
        }
        ["rooms", room, "join"] | ["join", room] => {
            let room = world.aliases.get(room).cloned().unwrap_or(room.to_owned());
            let there = world.rooms.get(room.as_str());
            let Some(there) = there.filter(|room| room.membership(&session.user) != Some("ban"))
            else {
                return Err(Refusal::forbidden("You are not invited to this room."));
            };
            if !there.is_joined(&session.user) {
                world.member(&room, &session.user, &session.user, "join");
            }
            Ok(json!({"room_id": room}))
        }
        ["rooms", room, ..] => {
            let there = world.rooms.get(room);
            let Some(room) = there.filter(|room| room.is_joined(&session.user)) else {
                return Err(Refusal::forbidden("You aren't a member of the room."));
            };
            of_room(world, room, &session, call)
        }
        ["directory", "room", alias] => {
            let room = world.aliases.get(alias).ok_or_else(Refusal::not_found)?;
            Ok(json!({"room_id": room, "servers": [super::SERVER_NAME]}))
        }
        ["user", _, "filter"] => Ok(json!({"filter_id": "0"})),
        ["user", user, "account_data", kind] => {
            let key = (user.to_owned(), kind.to_owned());
            if call.method == Method::PUT {
                world.account_data.insert(key, call.json()?);
                return Ok(json!({}));
            }
            let found = world.account_data.get(&key);
            found.cloned().ok_or_else(Refusal::not_found)
        }
        ["profile", ..] => Ok(json!({})),
        ["keys" | "room_keys" | "sendToDevice", ..] => of_keys(world, &session, call),
        _ => Err(Refusal::new(404, "M_UNRECOGNIZED", "Unrecognized request")),
    }
}

fn of_room(world: &World, room: &Room, session: &Session, call: &Call) -> Answer {
    match call.parts()[2..] {
        ["messages"] => messages(world, room, session, call),
        ["members"] => {
            let members: Vec<Value> = room.members().map(|event| event.json()).collect();
            Ok(json!({"chunk": members}))
        }
        ["joined_members"] => {
            let mut joined = json!({});
            for event in room.members() {
                let user = event.state_key.clone().unwrap_or_default();
                if event.content["membership"] == "join" {
                    joined[user] = json!({"display_name": event.content["displayname"]});
                }
            }
            Ok(json!({"joined": joined}))
        }
        ["state"] => Ok(room.state.values().map(|event| event.json()).collect()),
        ["state", kind] | ["state", kind, ""] => state(room, kind, "", call),
        ["state", kind, key] => state(room, kind, key, call),
        ["event", id] => {
            let found = room.timeline.iter().find(|event| event.id == id);
            Ok(found.ok_or_else(Refusal::not_found)?.json())
        }
        _ => Err(Refusal::new(404, "M_UNRECOGNIZED", "Unrecognized request")),
    }
}

fn state(room: &Room, kind: &str, key: &str, call: &Call) -> Answer {
    let event = room.state(kind, key).ok_or_else(Refusal::not_found)?;
    let whole = call.query.get("format").is_some_and(|form| form == "event");
    Ok(if whole {
        event.json()
    } else {
        event.content.clone()
    })
}

/// A page of history, backwards.
fn messages(world: &World, room: &Room, session: &Session, call: &Call) -> Answer {
    let token = |name: &str| match call.query.get(name) {
        None => Ok(None),
        Some(token) => match position(token).filter(|position| world.knows(*position)) {
            None => Err(Refusal::new(400, "M_INVALID_PARAM", "Unknown token")),
            known => Ok(known),
        },
    };
    let from = token("from")?.unwrap_or_else(|| world.position());
    let to = token("to")?.unwrap_or(0);
    if call.query.get("dir").map(String::as_str) != Some("b") {
        return Err(Refusal::new(400, "M_INVALID_PARAM", "only backwards"));
    }
    let filter = call.filter();
    let wanted = |event: &&Arc<Event>| {
        let types = filter["types"].as_array();
        types.is_none_or(|types| types.iter().any(|kind| *kind == *event.kind))
    };
    let limit = usize::try_from(call.number("limit").unwrap_or(10)).unwrap();
    let limit = world.page_limit.map_or(limit, |most| most.min(limit));
    let between = |event: &&Arc<Event>| event.position <= from && event.position > to;
    let mut older = room.timeline.iter().rev().filter(between).filter(wanted);
    let page: Vec<&Arc<Event>> = older.by_ref().take(limit).collect();
    let chunk: Vec<Value> = page
        .iter()
        .map(|event| serde_json::from_str(&event.seen_by(&session.device)).unwrap_or_default())
        .collect();
    let mut answer = json!({"start": format!("s{from}"), "chunk": chunk});
    if let Some(last) = page.last().filter(|_| older.next().is_some()) {
        answer["end"] = json!(format!("s{}", last.position - 1));
    }
    Ok(answer)
}

fn of_keys(world: &mut World, session: &Session, call: &Call) -> Answer {
    let Session { user, device, .. } = session;
    match *call.parts().as_slice() {
        ["keys", "upload"] => Ok(world.keys.upload(user, device, &call.json()?)),
        ["keys", "query"] => Ok(world.keys.query(&call.json()?)),
        ["keys", "claim"] => Ok(world.keys.claim(&call.json()?)),
        ["keys", "changes"] => Ok(json!({"changed": [], "left": []})),
        ["keys", "device_signing", "upload"] => {
            world.keys.upload_signing(user, &call.json()?);
            Ok(json!({}))
        }
        ["keys", "signatures", "upload"] => {
            world.keys.sign(&call.json()?);
            Ok(json!({"failures": {}}))
        }
        ["sendToDevice", ..] => Ok(json!({})),
        _ => Err(Refusal::not_found()),
    }
}
