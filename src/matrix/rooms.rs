//! The bot's rooms: finding them, their rules, joining where it is invited.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use matrix_sdk::ruma::events::MessageLikeEventType;
use matrix_sdk::ruma::{OwnedRoomId, RoomAliasId, RoomId};
use matrix_sdk::{Client, Room, RoomState};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::clock;
use crate::config::{AnswerRules, Config, MatrixConfig};
use crate::service::{RoomFacts, RoomTrouble, Rooms};

/// The longest wait between two tries to join a room.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// The rules of a room.
pub(super) fn rules(config: &Config, room: &Room) -> AnswerRules {
    let aliases = aliases(room);
    let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
    config.answers_for(room.room_id().as_str(), &aliases)
}

/// The bot's name in a room.
pub(super) async fn own_name(room: &Room) -> Option<String> {
    let own = room
        .get_member_no_sync(room.own_user_id())
        .await
        .ok()
        .flatten()?;
    own.display_name().map(str::to_owned)
}

fn aliases(room: &Room) -> Vec<String> {
    room.canonical_alias()
        .into_iter()
        .chain(room.alt_aliases())
        .map(|alias| alias.to_string())
        .collect()
}

/// The rooms the bot is in.
pub struct JoinedRooms {
    client: Client,
    bot: String,
}

impl JoinedRooms {
    /// The rooms of a session.
    pub fn new(client: Client) -> Self {
        let bot = client
            .user_id()
            .map(ToString::to_string)
            .unwrap_or_default();
        Self { client, bot }
    }

    async fn find(&self, name: &str) -> Result<RoomFacts, RoomTrouble> {
        let room_id = self.room_id(name).await?;
        let room = self
            .client
            .get_room(&room_id)
            .filter(|room| room.state() == RoomState::Joined);
        let Some(room) = room else {
            return Ok(RoomFacts {
                room_id: room_id.to_string(),
                aliases: Vec::new(),
                joined: false,
                may_send: false,
            });
        };
        // Until the room's state is here the homeserver has the last word.
        let levels = room
            .power_levels()
            .await
            .ok()
            .filter(|_| room.is_state_fully_synced());
        let may_send = levels.is_none_or(|levels| {
            let sent_as = if room.encryption_state().is_encrypted() {
                MessageLikeEventType::RoomEncrypted
            } else {
                MessageLikeEventType::RoomMessage
            };
            levels.user_can_send_message(room.own_user_id(), sent_as)
        });
        Ok(RoomFacts {
            room_id: room_id.to_string(),
            aliases: aliases(&room),
            joined: true,
            may_send,
        })
    }

    /// The room's id; an alias of a room the bot is in is known without asking.
    async fn room_id(&self, name: &str) -> Result<OwnedRoomId, RoomTrouble> {
        if name.starts_with('!') {
            return RoomId::parse(name).map_err(|_| RoomTrouble::Unknown(name.to_owned()));
        }
        let alias = RoomAliasId::parse(name).map_err(|_| RoomTrouble::Unknown(name.to_owned()))?;
        let known = self
            .client
            .joined_rooms()
            .into_iter()
            .find(|room| room.canonical_alias().is_some_and(|known| known == alias));
        if let Some(room) = known {
            return Ok(room.room_id().to_owned());
        }
        match self.client.resolve_room_alias(&alias).await {
            Ok(found) => Ok(found.room_id),
            Err(error) => Err(match error.as_client_api_error() {
                Some(answer)
                    if answer.status_code.is_client_error() && answer.status_code != 429 =>
                {
                    RoomTrouble::Unknown(name.to_owned())
                }
                _ => RoomTrouble::Away(error.to_string()),
            }),
        }
    }
}

impl Rooms for JoinedRooms {
    fn locate<'a>(
        &'a self,
        room: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<RoomFacts, RoomTrouble>> + Send + 'a>> {
        Box::pin(self.find(room))
    }

    fn bot(&self) -> &str {
        &self.bot
    }
}

/// Joins the rooms the bot is invited to, by whom the configuration allows. A join that fails is
/// tried again; invitations from before a restart are found again.
pub(crate) async fn accept_invites(
    client: Client,
    config: Arc<Config>,
    invited: Arc<Notify>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut waiting: HashMap<OwnedRoomId, (u32, Instant)> = HashMap::new();
    loop {
        for room in client.invited_rooms() {
            let due = waiting
                .get(room.room_id())
                .is_none_or(|(_, at)| *at <= Instant::now());
            if due {
                join(&room, &config.matrix, &mut waiting).await;
            }
        }
        waiting.retain(|room_id, _| {
            client
                .get_room(room_id)
                .is_some_and(|room| room.state() == RoomState::Invited)
        });
        let next = waiting.values().map(|(_, at)| *at).min();
        let next = next.unwrap_or_else(|| Instant::now() + LONGEST_WAIT);
        tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => return,
            () = invited.notified() => {}
            () = tokio::time::sleep_until(next) => {}
        }
    }
}

async fn join(
    room: &Room,
    config: &MatrixConfig,
    waiting: &mut HashMap<OwnedRoomId, (u32, Instant)>,
) {
    let room_id = room.room_id().to_owned();
    let attempt = waiting
        .get(&room_id)
        .map_or(1, |(attempt, _)| attempt.saturating_add(1));
    let outcome = match room.invite_details().await {
        Ok(invite) if !config.joins_for(invite.inviter_id.as_str()) => {
            let inviter = invite.inviter_id;
            if attempt == 1 {
                tracing::info!(
                    room.id = %room_id, inviter = %inviter,
                    "invitation to {room_id} left open: {inviter} is not in matrix.join"
                );
            }
            waiting.insert(room_id, (attempt, Instant::now() + LONGEST_WAIT));
            return;
        }
        Ok(_) => room.join().await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => {
            tracing::info!(room.id = %room_id, "joined {room_id}");
            waiting.remove(&room_id);
        }
        Err(error) => {
            let wait = Duration::from_secs(1 << attempt.min(9)).min(LONGEST_WAIT);
            let wait_ms = clock::millis(wait);
            tracing::warn!(
                room.id = %room_id, join.attempt = attempt, wait_ms, error = %error,
                "joining {room_id} failed; next try in {wait_ms} ms"
            );
            waiting.insert(room_id, (attempt, Instant::now() + wait));
        }
    }
}
