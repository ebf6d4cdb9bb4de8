//! Streams' rooms before anything is read of them: the bot comes into them, and looks once through
//! their history for when each of their people was first there (`digest.md` 2). Only that is kept of
//! it, nothing of what was said.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::{RoomOrAliasId, UInt};
use matrix_sdk::{Client, Room, RoomState};
use tokio::sync::watch;

use super::people;
use super::rooms::{self, JoinedRooms};
use crate::clock::{self, Millis};
use crate::ledger::LedgerError;
use crate::service::{RoomTrouble, Rooms as _, Service};

/// How many pages of a room's history are looked through, and how many events each has.
const PAGES: usize = 20;
const PAGE: u32 = 500;
/// How soon it is looked again at what is not done.
const AGAIN: Duration = Duration::from_secs(2);
/// How soon a room that could not be joined is tried again.
const JOIN_AGAIN: Duration = Duration::from_mins(1);
/// How often it is looked whether something is to be done anew: the bot may be removed, and
/// invited again.
const LOOK: Duration = Duration::from_secs(20);

/// Makes streams' rooms ready until the process is to end.
pub(crate) async fn prepare_streams(
    client: Client,
    service: Arc<Service>,
    rooms: Arc<JoinedRooms>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), LedgerError> {
    if service.config().streams.is_empty() || !service.first_sync().await {
        let _ = stopping.wait_for(|&stopping| stopping).await;
        return Ok(());
    }
    let mut refused: HashMap<String, tokio::time::Instant> = HashMap::new();
    loop {
        let mut wait = LOOK;
        for (stream, name) in service.streams() {
            match rooms.locate(name).await {
                Ok(facts) if facts.joined => {
                    if !service.ages_read(&facts.room_id).await?
                        && let Some(room) = rooms::by_id(&client, &facts.room_id)
                        && read_ages(&service, &room).await?.is_err()
                    {
                        wait = AGAIN;
                    }
                }
                // Whoever made it go must not find it back by itself: it waits to be invited.
                Ok(facts) if was_there(&client, &facts.room_id) => {}
                Ok(_) | Err(RoomTrouble::Unknown(_)) => {
                    let due = refused
                        .get(stream)
                        .is_none_or(|at| at.elapsed() > JOIN_AGAIN);
                    if due {
                        let first = !refused.contains_key(stream);
                        join(&client, stream, name, first).await;
                        refused.insert(stream.to_owned(), tokio::time::Instant::now());
                        wait = AGAIN;
                    }
                }
                Err(RoomTrouble::Away(_)) => wait = AGAIN,
            }
        }
        tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
            () = tokio::time::sleep(clock::patience(wait)) => {}
        }
    }
}

/// Whether the bot was in a room and is no more.
fn was_there(client: &Client, room_id: &str) -> bool {
    let state = rooms::by_id(client, room_id).map(|room| room.state());
    matches!(state, Some(RoomState::Left | RoomState::Banned))
}

/// Joins the room of a stream: the operator named it.
async fn join(client: &Client, stream: &str, name: &str, first: bool) {
    let Ok(room) = RoomOrAliasId::parse(name) else {
        return;
    };
    match client.join_room_by_id_or_alias(&room, &[]).await {
        Ok(_) => tracing::info!(stream.id = stream, "joined the room of {stream}"),
        Err(error) if first => tracing::warn!(
            stream.id = stream, error = %error,
            "the room of {stream} cannot be joined, and is tried again every minute; an invitation \
             helps: {error}"
        ),
        Err(_) => {}
    }
}

/// Looks through the history of a room, and notes since when its people are known. The inner result
/// says whether the homeserver told all that it will.
async fn read_ages(service: &Service, room: &Room) -> Result<Result<(), RoomTrouble>, LedgerError> {
    let ages = match ages(room).await {
        Ok(ages) => ages,
        Err(trouble) => {
            let room_id = room.room_id();
            tracing::warn!(
                room.id = %room_id, error = %trouble,
                "since when the people of {room_id} are known cannot be read now: {trouble}"
            );
            return Ok(Err(trouble));
        }
    };
    let (room_id, people) = (room.room_id().as_str(), ages.len());
    service
        .note_ages(room_id, ages.into_iter().collect())
        .await?;
    tracing::info!(
        room.id = room_id,
        people,
        "{people} people of {room_id} are known"
    );
    Ok(Ok(()))
}

async fn ages(room: &Room) -> Result<HashMap<String, Millis>, RoomTrouble> {
    let mut ages: HashMap<String, Millis> = HashMap::new();
    let mut note = |user_id: String, at: Millis| {
        if at > 0 {
            let known = ages.entry(user_id).or_insert(at);
            *known = at.min(*known);
        }
    };
    for member in people::members(room).await? {
        note(member.sender, member.origin_server_ts);
    }
    let mut from: Option<String> = None;
    for _ in 0..PAGES {
        if room.state() != RoomState::Joined {
            break;
        }
        let mut options = MessagesOptions::backward().from(from.as_deref());
        options.limit = UInt::from(PAGE);
        let page = match room.messages(options).await {
            Ok(page) => page,
            // Whoever came later may not be allowed to look back: then nobody was seen there.
            Err(error) if error.as_client_api_error().is_some_and(is_no) => break,
            Err(error) => return Err(RoomTrouble::Away(error.to_string())),
        };
        for event in &page.chunk {
            let raw = event.raw();
            let sender = raw.get_field::<String>("sender").ok().flatten();
            let sent = raw.get_field::<Millis>("origin_server_ts").ok().flatten();
            if let (Some(sender), Some(sent)) = (sender, sent) {
                note(sender, sent);
            }
        }
        match page.end {
            Some(end) if from.as_deref() != Some(end.as_str()) => from = Some(end),
            _ => break,
        }
    }
    Ok(ages)
}

fn is_no(answer: &matrix_sdk::ruma::api::error::Error) -> bool {
    answer.status_code == 403 || answer.status_code == 404
}
