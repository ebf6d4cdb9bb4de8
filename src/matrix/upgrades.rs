//! Room upgrades: a room whose tombstone names a successor is followed there.
//!
//! tombstone heard → the successor joined → verified → what is pending moved there. Nobody leads
//! the bot astray: the tombstone must come from somebody with the power to send it, the successor
//! must name the room as its predecessor, and whoever made it must have the power to upgrade the
//! room too. Whether the configuration lets the bot follow invitations does not matter here: it
//! was in the room, and the room moved.
//!
//! A restart begins again with every room that has a tombstone. That a room was followed, and that
//! its questions moved, is one commit; until then nothing of it has happened.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use matrix_sdk::deserialized_responses::RawSyncOrStrippedState;
use matrix_sdk::ruma::api::client::state::get_state_event_for_key;
use matrix_sdk::ruma::events::room::create::RoomCreateEventContent;
use matrix_sdk::ruma::events::room::power_levels::{
    RoomPowerLevels, RoomPowerLevelsEventContent, RoomPowerLevelsSource,
};
use matrix_sdk::ruma::events::room::tombstone::RoomTombstoneEventContent;
use matrix_sdk::ruma::events::{
    EmptyStateKey, False, OriginalSyncStateEvent, RedactContent, RedactedStateEventContent,
    StateEventType, StaticEventContent, StaticStateEventContent, SyncStateEvent,
};
use matrix_sdk::ruma::{OwnedRoomId, OwnedUserId, RoomId, UserId};
use matrix_sdk::sync::SyncResponse;
use matrix_sdk::{Client, Room, RoomState};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::rooms::JoinedRooms;
use crate::clock::{self, Millis};
use crate::ledger::LedgerError;
use crate::service::Service;

/// How long one try to join a successor may take.
const JOIN_WITHIN: Duration = Duration::from_mins(1);
/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_mins(10);
/// How soon it is looked again at what only has to come with the next syncs.
const SOON: Duration = Duration::from_secs(1);
/// For so long after its upgrade a question that was on its way to a room waits for its successor.
const MOVES_WITHIN: Millis = 60 * 60 * 1000;

/// Upgrades that were followed.
const FOLLOWED: &str = "elicit_upgrades_followed_total";
/// Upgrades that were not: not by who may, or to a room that is no successor.
const REFUSED: &str = "elicit_upgrades_refused_total";

/// Follows room upgrades.
pub struct Upgrades {
    client: Client,
    service: Arc<Service>,
    rooms: Arc<JoinedRooms>,
    heard: Mutex<Heard>,
    /// Told when there may be something to do.
    news: Notify,
}

/// The upgrades that were heard of and are not followed yet.
#[derive(Default)]
struct Heard {
    /// Whether those from before the start are among them.
    all: bool,
    rooms: BTreeSet<OwnedRoomId>,
}

/// How far an upgrade was followed.
#[derive(Default)]
struct Path {
    /// How often joining failed, when it is tried again, and whether the bot was invited then.
    failures: u32,
    again: Option<Instant>,
    was_invited: bool,
    /// What was joined only because of the upgrade.
    joined: Option<OwnedRoomId>,
    /// Successors that are none, by whoever named them.
    refused: HashSet<(OwnedRoomId, OwnedUserId)>,
}

/// What came of looking at an upgrade.
enum Step {
    /// There is nothing more to do.
    Over,
    /// It goes on at that time, or when something comes with a sync.
    Later(Instant),
}

impl Upgrades {
    /// For a session.
    pub fn new(client: Client, service: Arc<Service>, rooms: Arc<JoinedRooms>) -> Arc<Self> {
        Arc::new(Self {
            client,
            service,
            rooms,
            heard: Mutex::default(),
            news: Notify::new(),
        })
    }

    /// Looks for upgrades in what was taken in just now; without a response, or for the first
    /// time, in every room. Before the next sync, so that whatever was said in a room before its
    /// tombstone is decided by then.
    pub(super) fn heard(&self, response: Option<&SyncResponse>) {
        let mut heard = self.heard_of();
        let known = heard.all;
        let rooms: Vec<Room> = match response.filter(|_| known) {
            Some(response) => {
                let joined = response.rooms.joined.keys();
                joined.filter_map(|id| self.client.get_room(id)).collect()
            }
            None => self.client.joined_rooms(),
        };
        heard.all = true;
        for room in rooms {
            if room.is_tombstoned() && !self.rooms.is_upgraded(room.room_id()) {
                heard.rooms.insert(room.room_id().to_owned());
            }
        }
        if !heard.rooms.is_empty() {
            self.news.notify_one();
        }
    }

    /// Follows upgrades until the process is to end.
    pub(crate) async fn follow(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => {}
            () = self.follow_all() => {}
        }
    }

    async fn follow_all(&self) {
        let mut paths: BTreeMap<OwnedRoomId, Path> = BTreeMap::new();
        loop {
            let rooms = self.heard_of().rooms.clone();
            let steps = rooms.into_iter().map(|room_id| {
                let mut path = paths.remove(&room_id).unwrap_or_default();
                async move {
                    let step = self.step(&room_id, &mut path).await;
                    (room_id, path, step)
                }
            });
            let mut next = Instant::now() + LONGEST_WAIT;
            for (room_id, path, step) in join_all(steps).await {
                match step {
                    Step::Over => {
                        self.heard_of().rooms.remove(&room_id);
                    }
                    Step::Later(at) => next = next.min(at),
                }
                paths.insert(room_id, path);
            }
            tokio::select! {
                () = self.news.notified() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    fn heard_of(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with an upgrade as far as is possible now.
    async fn step(&self, room_id: &RoomId, path: &mut Path) -> Step {
        let room = self.client.get_room(room_id);
        let Some(room) = room.filter(|room| room.state() == RoomState::Joined) else {
            return Step::Over;
        };
        let tombstone = state::<RoomTombstoneEventContent>(&room).await;
        let Some(SyncStateEvent::Original(tombstone)) = tombstone else {
            return Step::Over;
        };
        let (successor, sender) = (tombstone.content.replacement_room, tombstone.sender);
        let named = (successor.clone(), sender.clone());
        if path.refused.contains(&named) || successor == room_id {
            return Step::Over;
        }
        // Every sync wakes this up again.
        let Some(levels) = levels(&room).await else {
            return later(LONGEST_WAIT);
        };
        let may_upgrade =
            |user: &UserId| levels.user_can_send_state(user, StateEventType::RoomTombstone);
        if !may_upgrade(&sender) {
            path.refused.insert(named);
            refuse(
                room_id,
                &successor,
                "its sender has not the power to upgrade the room",
            );
            return Step::Over;
        }
        let there = self.client.get_room(&successor);
        let Some(there) = there
            .as_ref()
            .filter(|there| there.state() == RoomState::Joined)
        else {
            let invited = there.is_some_and(|there| there.state() == RoomState::Invited);
            return self.join(room_id, &successor, &sender, invited, path).await;
        };
        let Some(create) = created(there).await else {
            return later(SOON);
        };
        let predecessor = create.content.predecessor.map(|before| before.room_id);
        let why = if predecessor.as_deref() != Some(room_id) {
            Some("it does not name the room as its predecessor")
        } else if !may_upgrade(&create.sender) {
            Some("whoever made it has not the power to upgrade the room")
        } else {
            None
        };
        if let Some(why) = why {
            path.refused.insert(named);
            refuse(room_id, &successor, why);
            if path.joined.as_ref() == Some(&successor) {
                leave(there).await;
            }
            return Step::Over;
        }
        match self.go_on_there(room_id, &successor).await {
            Ok(step) => step,
            Err(error) => {
                tracing::error!(
                    room.id = %room_id, error = %error,
                    "the upgrade of {room_id} could not be followed: {error}"
                );
                later(SOON)
            }
        }
    }

    /// Joins a successor.
    async fn join(
        &self,
        room_id: &RoomId,
        successor: &RoomId,
        sender: &UserId,
        invited: bool,
        path: &mut Path,
    ) -> Step {
        // An invitation is worth a try at once.
        let news = invited && !path.was_invited;
        if let Some(again) = path.again
            && again > Instant::now()
            && !news
        {
            return Step::Later(again);
        }
        path.was_invited = invited;
        let mut vias = vec![sender.server_name().to_owned()];
        vias.extend(room_id.server_name().map(ToOwned::to_owned));
        vias.dedup();
        let joining = self
            .client
            .join_room_by_id_or_alias(successor.into(), &vias);
        let why = match tokio::time::timeout(JOIN_WITHIN, joining).await {
            Ok(Ok(_)) => {
                tracing::info!(
                    room.id = %successor, room.predecessor = %room_id,
                    "joined {successor}, the successor of {room_id}"
                );
                path.joined = Some(successor.to_owned());
                (path.failures, path.again) = (0, None);
                return later(SOON);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", JOIN_WITHIN.as_secs()),
        };
        let wait = Duration::from_secs(1 << path.failures.min(10)).min(LONGEST_WAIT);
        path.failures = path.failures.saturating_add(1);
        let again = Instant::now() + wait;
        path.again = Some(again);
        let wait_ms = clock::millis(wait);
        tracing::warn!(
            room.id = %successor, room.predecessor = %room_id, join.attempt = path.failures, wait_ms,
            error = why,
            "joining {successor}, the successor of {room_id}, failed; next try in {wait_ms} ms"
        );
        Step::Later(again)
    }

    /// Moves what is pending to a successor that was verified.
    async fn go_on_there(&self, room_id: &RoomId, successor: &RoomId) -> Result<Step, LedgerError> {
        // What was said in the room before must be decided before.
        if !self.service.is_settled(room_id.as_str()).await? {
            return Ok(later(SOON));
        }
        if self.rooms.current(successor.to_owned()) == room_id {
            refuse(room_id, successor, "it would lead in a circle");
            return Ok(Step::Over);
        }
        // The room's rules hold there before anything is asked there.
        self.rooms
            .note_upgrade(room_id.to_owned(), successor.to_owned());
        let followed = self
            .service
            .follow_upgrade(room_id.as_str(), successor.as_str());
        if let Some(moved) = followed.await? {
            metrics::counter!(FOLLOWED).increment(1);
            tracing::info!(
                room.id = %successor, room.predecessor = %room_id, moved,
                "{room_id} was upgraded to {successor}; pending questions that moved: {moved}"
            );
        }
        Ok(Step::Over)
    }
}

fn later(wait: Duration) -> Step {
    Step::Later(Instant::now() + wait)
}

/// Says that an upgrade is not followed.
fn refuse(room_id: &RoomId, successor: &RoomId, why: &str) {
    metrics::counter!(REFUSED).increment(1);
    tracing::warn!(
        room.id = %room_id, room.successor = %successor, why,
        "{room_id} is not followed to {successor}: {why}"
    );
}

/// Leaves a room that was joined for nothing.
async fn leave(room: &Room) {
    let room_id = room.room_id();
    match room.leave().await {
        Ok(()) => tracing::info!(room.id = %room_id, "left {room_id}"),
        Err(error) => tracing::warn!(
            room.id = %room_id, error = %error,
            "leaving {room_id} failed: {error}"
        ),
    }
}

/// A state event of a room the bot has joined. What came with an invitation does not count: the
/// inviter's server may have made it up.
async fn state<C>(room: &Room) -> Option<SyncStateEvent<C>>
where
    C: StaticEventContent<IsPrefix = False>
        + StaticStateEventContent<StateKey = EmptyStateKey>
        + RedactContent,
    C::Redacted: RedactedStateEventContent,
    SyncStateEvent<C>: DeserializeOwned,
{
    match room.get_state_event_static::<C>().await {
        Ok(Some(RawSyncOrStrippedState::Sync(raw))) => raw.deserialize().ok(),
        _ => None,
    }
}

/// How a room was made.
async fn created(room: &Room) -> Option<OriginalSyncStateEvent<RoomCreateEventContent>> {
    state(room).await?.as_original().cloned()
}

/// Who has which power in a room. The creators of one of version 12 have more than any number.
async fn levels(room: &Room) -> Option<RoomPowerLevels> {
    let create = created(room).await?;
    let rules = create.content.room_version.rules()?.authorization;
    let mut creators = vec![create.sender];
    creators.extend(create.content.additional_creators);
    Some(match state::<RoomPowerLevelsEventContent>(room).await {
        Some(levels) => levels.power_levels(&rules, creators),
        None => RoomPowerLevels::new(RoomPowerLevelsSource::None, &rules, creators),
    })
}

/// Whether what a room refuses to take now may go to its successor soon: it was upgraded not long
/// ago, perhaps without a word of that yet.
pub(super) async fn may_move(room: &Room, now: Millis) -> bool {
    if let Some(tombstone) = state::<RoomTombstoneEventContent>(room).await {
        let at = Millis::from(tombstone.origin_server_ts().get());
        return now.saturating_sub(at) < MOVES_WITHIN;
    }
    let request = get_state_event_for_key::v3::Request::new(
        room.room_id().to_owned(),
        StateEventType::RoomTombstone,
        String::new(),
    );
    room.client().send(request).await.is_ok()
}
