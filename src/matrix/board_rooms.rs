//! The rooms that are made for boards.

use matrix_sdk::ruma::api::client::room::Visibility;
use matrix_sdk::ruma::api::client::room::create_room::v3::{Request, RoomPreset};
use matrix_sdk::ruma::api::client::state::get_state_event_for_key::{self, v3::StateEventFormat};
use matrix_sdk::ruma::api::error::ErrorKind;
use matrix_sdk::ruma::events::{AnyInitialStateEvent, StateEventType};
use matrix_sdk::ruma::serde::Raw;
use matrix_sdk::ruma::{OwnedUserId, RoomId, UserId};
use matrix_sdk::{Client, Room, RoomState};
use serde_json::{Value, json};

use crate::service::{BoardRoom, RoomTrouble};

/// The state by which a room that the bot made is known again; its key is the board.
const MARK: &str = "dev.superpipeline.board";
const ALGORITHM: &str = "m.megolm.v1.aes-sha2";

/// The room of a board: one that was made before, also by a process that ended before it could
/// note that, or else a new one.
pub(super) async fn find_or_make(
    client: &Client,
    wanted: &BoardRoom,
) -> Result<String, RoomTrouble> {
    for room in client.joined_rooms() {
        if is_marked(&room, &wanted.board).await {
            return Ok(room.room_id().to_string());
        }
    }
    let made = client.create_room(request(wanted)?).await;
    let room = made.map_err(|error| RoomTrouble::Away(error.to_string()))?;
    let room_id = room.room_id().to_string();
    tracing::info!(
        board.id = %wanted.board, room.id = %room_id,
        "made {room_id} for {}", wanted.board
    );
    Ok(room_id)
}

fn request(wanted: &BoardRoom) -> Result<Request, RoomTrouble> {
    let mut state = vec![json!({ "type": MARK, "state_key": wanted.board, "content": {} })];
    if wanted.encrypted {
        let content = json!({ "algorithm": ALGORITHM });
        state.push(json!({ "type": "m.room.encryption", "state_key": "", "content": content }));
    }
    let mut request = Request::new();
    request.name.clone_from(&wanted.name);
    request.topic = Some(topic(wanted));
    request.preset = Some(RoomPreset::PrivateChat);
    request.visibility = Visibility::Private;
    // Whoever is in it may name it as they like. What the map does not name stays with its creator.
    let powers = json!({ "events": {
        "m.room.name": 0, "m.room.topic": 0, "m.room.avatar": 0,
        "m.room.power_levels": 100, "m.room.history_visibility": 100, "m.room.encryption": 100,
        "m.room.server_acl": 100, "m.room.tombstone": 150,
    } });
    request.power_level_content_override =
        Some(Raw::new(&powers).map_err(unwritable)?.cast_unchecked());
    request.invite = wanted
        .invite
        .iter()
        .filter_map(|user| UserId::parse(user).ok())
        .collect::<Vec<OwnedUserId>>();
    request.initial_state = state
        .iter()
        .map(|event| Raw::new(event).map(Raw::cast_unchecked::<AnyInitialStateEvent>))
        .collect::<Result<_, _>>()
        .map_err(unwritable)?;
    Ok(request)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of `map_err`")]
fn unwritable(error: serde_json::Error) -> RoomTrouble {
    RoomTrouble::Away(error.to_string())
}

fn topic(wanted: &BoardRoom) -> String {
    let board = wanted.name.as_deref().unwrap_or(&wanted.board);
    format!(
        "Questions of agents that work on the board {board}. Answer one by typing the number or the \
         text of an option."
    )
}

/// Whether this is the room that the bot itself made for a board.
async fn is_marked(room: &Room, board: &str) -> bool {
    let own = room.own_user_id();
    let by_us = room
        .creators()
        .is_some_and(|creators| creators.iter().any(|creator| creator == own));
    if !by_us || room.state() != RoomState::Joined {
        return false;
    }
    let mark = room.get_state_event(MARK.into(), board).await;
    mark.is_ok_and(|mark| mark.is_some())
}

/// Gives a room a name, unless it has one that is not `before`, or that somebody else gave it.
pub(super) async fn name(
    client: &Client,
    room_id: &RoomId,
    name: &str,
    before: Option<&str>,
) -> Result<(), RoomTrouble> {
    let joined = client.get_room(room_id);
    let Some(room) = joined.filter(|room| room.state() == RoomState::Joined) else {
        return Err(RoomTrouble::Unknown(room_id.to_string()));
    };
    // As the homeserver has it: what came by the last sync may be older than somebody's new name.
    let mut request = get_state_event_for_key::v3::Request::new(
        room_id.to_owned(),
        StateEventType::RoomName,
        String::new(),
    );
    request.format = StateEventFormat::Event;
    let event: Value = match client.send(request).await {
        Ok(state) => serde_json::from_str(state.event_or_content.get()).unwrap_or_default(),
        Err(error) => match error.as_client_api_error().and_then(|e| e.error_kind()) {
            Some(ErrorKind::NotFound) => Value::Null,
            _ => return Err(RoomTrouble::Away(error.to_string())),
        },
    };
    let current = event["content"]["name"].as_str();
    let ours = event["sender"] == room.own_user_id().as_str();
    let may_be_renamed = match current.filter(|name| !name.is_empty()) {
        None => true,
        Some(current) => ours && Some(current) == before,
    };
    if may_be_renamed {
        let renamed = room.set_name(name.to_owned()).await;
        renamed.map_err(|error| RoomTrouble::Away(error.to_string()))?;
    }
    Ok(())
}
