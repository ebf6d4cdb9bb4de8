//! The rooms in which one person alone is spoken to.

use std::time::Duration;

use matrix_sdk::config::RequestConfig;
use matrix_sdk::ruma::api::client::room::create_room::v3::{Request, RoomPreset};
use matrix_sdk::ruma::api::client::state::get_state_event_for_key;
use matrix_sdk::ruma::api::error::ErrorKind;
use matrix_sdk::ruma::events::{AnyInitialStateEvent, StateEventType};
use matrix_sdk::ruma::serde::Raw;
use matrix_sdk::ruma::{OwnedUserId, RoomId, UserId};
use matrix_sdk::{Client, RoomState};
use serde_json::{Value, json};

use crate::service::RoomTrouble;

/// The state by which such a room is known again; its key is the person, without the `@`: a key
/// that begins with one is that user's alone to set.
const MARK: &str = "dev.superpipeline.direct";
const ALGORITHM: &str = "m.megolm.v1.aes-sha2";
/// How long the homeserver may take to say who is in a room.
const WITHIN: Duration = Duration::from_secs(10);

/// Whether somebody has joined a room.
pub(super) async fn is_in(
    client: &Client,
    room_id: &str,
    user_id: &str,
) -> Result<bool, RoomTrouble> {
    Ok(membership(client, room_id, user_id).await?.as_deref() == Some("join"))
}

/// The encrypted room with one person: the one that is known, or that a process made that ended
/// before it could note that, or else a new one.
pub(super) async fn find_or_make(
    client: &Client,
    user_id: &str,
    known: Option<&str>,
) -> Result<String, RoomTrouble> {
    if let Some(known) = known
        && is_direct(client, known, user_id).await?
    {
        return Ok(known.to_owned());
    }
    for room in client.joined_rooms() {
        let marked = room.get_state_event(MARK.into(), mark_of(user_id)).await;
        let own = room.own_user_id();
        let by_us = room
            .creators()
            .is_some_and(|creators| creators.iter().any(|creator| creator == own));
        if by_us
            && marked.is_ok_and(|mark| mark.is_some())
            && is_direct(client, room.room_id().as_str(), user_id).await?
        {
            return Ok(room.room_id().to_string());
        }
    }
    let person = UserId::parse(user_id).map_err(|_| RoomTrouble::Unknown(user_id.to_owned()))?;
    let made = client.create_room(request(person)?).await;
    let room = made.map_err(|error| RoomTrouble::Away(error.to_string()))?;
    Ok(room.room_id().to_string())
}

/// Whether the bot is in a room that is encrypted and in which the person is, or to which they are
/// invited, and nobody else.
async fn is_direct(client: &Client, room_id: &str, user_id: &str) -> Result<bool, RoomTrouble> {
    let Some(room) = RoomId::parse(room_id)
        .ok()
        .and_then(|id| client.get_room(&id))
    else {
        return Ok(false);
    };
    let alone = room.joined_members_count() + room.invited_members_count() <= 2;
    if room.state() != RoomState::Joined || !room.encryption_state().is_encrypted() || !alone {
        return Ok(false);
    }
    let membership = membership(client, room_id, user_id).await?;
    Ok(matches!(membership.as_deref(), Some("join" | "invite")))
}

/// How somebody stands in a room, as the homeserver says.
async fn membership(
    client: &Client,
    room_id: &str,
    user_id: &str,
) -> Result<Option<String>, RoomTrouble> {
    let Ok(room_id) = RoomId::parse(room_id) else {
        return Ok(None);
    };
    let member = StateEventType::RoomMember;
    let request = get_state_event_for_key::v3::Request::new(room_id, member, user_id.to_owned());
    let at_once = RequestConfig::new().timeout(WITHIN).disable_retry();
    match client.send(request).with_request_config(at_once).await {
        Ok(state) => {
            let content: Value =
                serde_json::from_str(state.event_or_content.get()).unwrap_or_default();
            Ok(content["membership"].as_str().map(str::to_owned))
        }
        Err(error) => match error.as_client_api_error().and_then(|e| e.error_kind()) {
            Some(ErrorKind::Forbidden | ErrorKind::NotFound) => Ok(None),
            _ => Err(RoomTrouble::Away(error.to_string())),
        },
    }
}

fn mark_of(user_id: &str) -> &str {
    user_id.trim_start_matches('@')
}

fn request(person: OwnedUserId) -> Result<Request, RoomTrouble> {
    let state = [
        json!({ "type": MARK, "state_key": mark_of(person.as_str()), "content": {} }),
        json!({ "type": "m.room.encryption", "state_key": "", "content": { "algorithm": ALGORITHM } }),
    ];
    let mut request = Request::new();
    request.preset = Some(RoomPreset::PrivateChat);
    request.is_direct = true;
    request.invite = vec![person];
    request.initial_state = state
        .iter()
        .map(|event| Raw::new(event).map(Raw::cast_unchecked::<AnyInitialStateEvent>))
        .collect::<Result<_, _>>()
        .map_err(|error| RoomTrouble::Away(error.to_string()))?;
    Ok(request)
}
