//! Listening: sync → inbox, one response and one transaction after the other.

mod gaps;
mod locked;
mod talk;

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use matrix_sdk::config::SyncSettings;
use matrix_sdk::deserialized_responses::TimelineEvent;
use matrix_sdk::ruma::api::client::filter::FilterDefinition;
use matrix_sdk::ruma::api::client::sync::sync_events::v3::Filter;
use matrix_sdk::ruma::presence::PresenceState;
use matrix_sdk::ruma::{RoomId, UInt, UserId};
use matrix_sdk::sync::{JoinedRoomUpdate, SyncResponse, Timeline};
use matrix_sdk::{Client, Room, RoomState};
use matrix_sdk_base::{StateStoreDataKey, StateStoreDataValue};
use tokio::sync::{Notify, OnceCell, watch};

use super::hear::{Away, Ear, Listened, known_member};
use super::rooms::{self, JoinedRooms};
use super::upgrades::Upgrades;
use crate::clock;
use crate::crash;
use crate::desk::{Bot, Interest};
use crate::ledger::{Gap, LedgerError};
use crate::service::{Batch, Service};

/// How long the homeserver may hold a sync open.
const LONG_POLL: Duration = Duration::from_secs(30);
/// The shortest time for which it is asked to.
const SHORT_POLL: Duration = Duration::from_millis(100);
/// A sync that has not ended by then never will.
const DEADLINE: Duration = Duration::from_mins(3);
/// The most events of a room in one response.
const TIMELINE: u32 = 100;

/// How many rooms of a response are read at once.
const ROOMS_AT_ONCE: usize = 8;
/// How often a response may fail to be taken in before the process gives up.
const MOST_BROKEN: u32 = 5;
/// Sync responses that held something malformed.
const MALFORMED: &str = "elicit_sync_malformed_total";

/// Why the bot can listen no longer. The process ends; a restart rewinds to what is committed.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The SDK cannot take responses in; its store fails.
    #[error("a sync response could not be taken in: {0}")]
    Broken(String),
    /// A sync did not come to its end.
    #[error("a sync did not end within {} s", DEADLINE.as_secs())]
    Hung,
    /// The ledger does not take it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Hears what is said in the rooms.
pub struct Listener {
    client: Client,
    service: Arc<Service>,
    rooms: Arc<JoinedRooms>,
    agents: Vec<String>,
    /// Other carriers, whose cards are read.
    carriers: BTreeSet<String>,
    /// Told when there may be invitations.
    invited: Arc<Notify>,
    upgrades: Arc<Upgrades>,
    /// Told when there may be holes to be filled.
    holes: Notify,
    /// Those of whom it is noted already that they were met, where that matters.
    met: Mutex<HashSet<String>>,
}

impl Listener {
    /// A listener for a session; `invited` is told when there may be invitations.
    pub fn new(
        client: Client,
        service: Arc<Service>,
        rooms: Arc<JoinedRooms>,
        invited: Arc<Notify>,
        upgrades: Arc<Upgrades>,
    ) -> Self {
        let agents = service
            .config()
            .agents
            .values()
            .filter_map(|agent| agent.matrix_user.clone())
            .collect();
        let carriers = service.config().carriers.keys().cloned().collect();
        Self {
            client,
            service,
            rooms,
            agents,
            carriers,
            invited,
            upgrades,
            holes: Notify::new(),
            met: Mutex::default(),
        }
    }

    /// Listens until the process is to end.
    ///
    /// # Errors
    /// When it cannot go on; see [`ListenError`].
    pub async fn run(self, stopping: watch::Receiver<bool>) -> Result<(), ListenError> {
        let listener = Arc::new(self);
        let filling = listener.clone().fill_holes(stopping.clone());
        let unlocking = listener.unlock_on_keys(stopping.clone());
        tokio::try_join!(listener.hear(stopping), filling, unlocking)?;
        Ok(())
    }

    /// One sync after the other.
    async fn hear(&self, mut stopping: watch::Receiver<bool>) -> Result<(), ListenError> {
        let mut failures = 0_u32;
        // Nothing is decided by rules that are not known yet.
        while let Err(error) = self.rooms.look_up_aliases(self.service.book()).await {
            failures += 1;
            if !pause(failures, &error, &mut stopping).await {
                return Ok(());
            }
        }
        self.watch_streams();
        let mut token = self.sdk_token().await?;
        // Without one its store is new, and the next response tells everything from the
        // beginning, whatever the ledger knows already.
        let mut anew = token.is_none();
        // The first response comes at once, so that a restart is ready at once.
        let mut settings = settings(Duration::ZERO);
        loop {
            let asked_at = clock::now();
            let synced = tokio::select! {
                _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
                synced = tokio::time::timeout(clock::patience(DEADLINE), self.client.sync_once(settings.clone())) => synced,
            };
            let synced = synced.map_err(|_| ListenError::Hung)?;
            if synced.is_err() {
                self.service.health().sync_failed();
            }
            let invited = match synced {
                Ok(response) => {
                    crash::point("sync.received");
                    token = Some(response.next_batch.clone());
                    self.take_in(&response, anew).await?;
                    crash::point("sync.taken_in");
                    self.upgrades.heard(Some(&response));
                    !response.rooms.invited.is_empty()
                }
                // The token has not moved: it is asked for again.
                Err(matrix_sdk::Error::Http(error)) => {
                    failures += 1;
                    if !pause(failures, &error, &mut stopping).await {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => {
                    let moved = self.sdk_token().await?;
                    failures += 1;
                    if moved == token || moved.is_none() {
                        // It was not taken in by the SDK at all, and comes again.
                        if failures > MOST_BROKEN {
                            return Err(ListenError::Broken(error.to_string()));
                        }
                        if !pause(failures, &error, &mut stopping).await {
                            return Ok(());
                        }
                        continue;
                    }
                    self.step_over(moved.as_deref().unwrap_or_default(), &error)
                        .await?;
                    token = moved;
                    self.upgrades.heard(None);
                    true
                }
            };
            failures = 0;
            anew = false;
            self.service.health().heard_until(asked_at);
            self.service.health().synced(clock::now());
            if invited {
                self.invited.notify_one();
            }
            settings = self::settings(self.look_again().await?);
        }
    }

    /// The token at which the SDK goes on.
    async fn sdk_token(&self) -> Result<Option<String>, ListenError> {
        let token = self
            .client
            .state_store()
            .get_kv_data(StateStoreDataKey::SyncToken)
            .await
            .map_err(|error| ListenError::Broken(error.to_string()))?;
        Ok(token.and_then(StateStoreDataValue::into_sync_token))
    }

    /// The token up to which everything is committed.
    async fn ledger_token(&self) -> Result<Option<String>, LedgerError> {
        self.service.book().read(|ledger| ledger.sync_token()).await
    }

    /// A response held something malformed: the SDK has taken it in and moved on, but does not
    /// say what was in it. What was said in the rooms is read from their history instead, so that
    /// only what is malformed is lost.
    async fn step_over(&self, token: &str, error: &matrix_sdk::Error) -> Result<(), ListenError> {
        metrics::counter!(MALFORMED).increment(1);
        tracing::error!(
            error = %error,
            "a sync response held something malformed ({error}); the rooms' history is read instead"
        );
        let since = self.ledger_token().await?;
        let mut batch = Batch {
            token: Some(token.to_owned()),
            ..Batch::default()
        };
        for room_id in self.service.watched_rooms() {
            let room = rooms::by_id(&self.client, &room_id);
            if room.is_some_and(|room| room.state() == RoomState::Joined) {
                batch.gaps.push(hole(&room_id, token, since.as_deref()));
            } else {
                batch.lost.push(room_id);
            }
        }
        self.commit(batch).await
    }

    /// Takes one response in: everything it holds and what it decides is one commit. `anew` says
    /// that it tells everything from the beginning.
    async fn take_in(&self, response: &SyncResponse, anew: bool) -> Result<(), ListenError> {
        let mut batch = Batch {
            token: Some(response.next_batch.clone()),
            ..Batch::default()
        };
        let since = self.ledger_token().await?;
        // Rooms do not wait for one another's lookups; within a room everything stays in order.
        let since = since.as_deref();
        let mut rooms = Vec::with_capacity(response.rooms.joined.len());
        for (room_id, update) in &response.rooms.joined {
            rooms.push(self.joined(room_id, update, &response.next_batch, since, anew));
        }
        let rooms = stream::iter(rooms).buffered(ROOMS_AT_ONCE);
        tokio::pin!(rooms);
        while let Some(part) = rooms.next().await {
            batch.heard.extend(part.heard);
            batch.undecrypted.extend(part.undecrypted);
            batch.gaps.extend(part.gaps);
            batch.rooms.extend(part.rooms);
            batch.names.extend(part.names);
            batch.met.extend(part.met);
        }
        if anew {
            // It names every room the bot is in; what is asked in another reaches nobody.
            let joined = |room_id: &String| {
                let mut rooms = response.rooms.joined.keys();
                rooms.any(|room| room.as_str() == room_id)
            };
            let pending = self.service.pending_rooms();
            batch
                .lost
                .extend(pending.into_iter().filter(|room_id| !joined(room_id)));
        }
        for (room_id, update) in &response.rooms.left {
            if self.service.interest(room_id.as_str()).is_some() {
                // What was said before the bot had to go was said to it.
                let said = &update.timeline.events;
                if let Some(room) = self.client.get_room(room_id)
                    && let Err(away) = self.listen(&room, said, 0, &mut batch).await
                {
                    tracing::warn!(room.id = %room_id, error = %away, "{room_id} is left: {away}");
                }
                batch.lost.push(room_id.to_string());
            }
        }
        self.commit(batch).await
    }

    /// What one joined room brings.
    async fn joined(
        &self,
        room_id: &RoomId,
        update: &JoinedRoomUpdate,
        next_batch: &str,
        since: Option<&str>,
        anew: bool,
    ) -> Batch {
        let mut batch = Batch::default();
        let Some(room) = self.client.get_room(room_id) else {
            return batch;
        };
        let timeline = &update.timeline;
        self.who_came(&room, timeline);
        self.meet(&timeline.events, &mut batch);
        let stream = self.rooms.stream_of(room_id).is_some();
        if stream {
            self.service.watch_stream(room_id.as_str());
        }
        if self.service.interest(room_id.as_str()).is_none()
            && self.may_hold_card(&room, timeline).await
        {
            // What is said after a card may be meant for it.
            self.service.watch_room(room_id.as_str());
        }
        if self.service.interest(room_id.as_str()).is_none() {
            let commands = self.commands_in(&timeline.events);
            // A command that cannot be read now is not worth a hole.
            if !commands.is_empty() && !anew {
                let _ = self
                    .listen(&room, &commands, commands.len(), &mut batch)
                    .await;
            }
            return batch;
        }
        if anew && since.is_some() {
            // What the response holds of the timeline may be older than the ledger's token,
            // and older than a card that would seem to be answered by it.
            batch.gaps.push(hole(room_id.as_str(), next_batch, since));
            return batch;
        }
        let joined_at = talk::joined_at(&timeline.events, room.own_user_id());
        // What was said in a stream before the bot came is not said to it.
        let said_before = stream
            && self.service.interest(room_id.as_str()) == Some(Interest::Over)
            && (joined_at.is_some() || since.is_none());
        if timeline.limited
            && !said_before
            && let Some(prev_batch) = &timeline.prev_batch
        {
            batch.gaps.push(hole(room_id.as_str(), prev_batch, since));
        }
        let from = match since {
            Some(_) => joined_at.unwrap_or(0),
            None => timeline.events.len(),
        };
        if let Err(away) = self.listen(&room, &timeline.events, from, &mut batch).await {
            tracing::warn!(
                room.id = %room_id, error = %away,
                "what was said in {room_id} is read later: {away}"
            );
            batch.gaps.push(hole(room_id.as_str(), next_batch, since));
        }
        batch
    }

    /// Lets the service know when somebody, or the bot itself, has come into a room.
    fn who_came(&self, room: &Room, timeline: &Timeline) {
        if self.service.config().boards.is_empty() {
            return;
        }
        let joins = timeline.events.iter().any(|event| {
            let raw = event.raw().json().get();
            // Most events are none, and this is asked of every one.
            raw.contains("m.room.member")
                && serde_json::from_str::<serde_json::Value>(raw).is_ok_and(|event| {
                    event["type"] == "m.room.member" && event["content"]["membership"] == "join"
                })
        });
        if joins {
            self.service.somebody_joined(room.room_id().as_str());
        }
    }

    /// Whether the timeline of a room in which nothing was asked may hold another carrier's card.
    async fn may_hold_card(&self, room: &Room, timeline: &Timeline) -> bool {
        if self.carriers.is_empty() {
            return false;
        }
        let by_carrier = timeline.events.iter().any(|event| {
            let field = |name| event.raw().get_field::<String>(name).ok().flatten();
            let is_state = matches!(event.raw().get_field::<String>("state_key"), Ok(Some(_)));
            !is_state && field("sender").is_some_and(|sender| self.carriers.contains(&sender))
        });
        if by_carrier || !timeline.limited {
            return by_carrier;
        }
        // It may lie in the hole, where a carrier is in the room.
        for carrier in &self.carriers {
            if let Ok(carrier) = UserId::parse(carrier)
                && known_member(room, &carrier).await.is_some()
            {
                return true;
            }
        }
        false
    }

    /// Those among the events of a room without questions that may hold a command. Nothing else of
    /// such a room is read.
    fn commands_in(&self, events: &[TimelineEvent]) -> Vec<TimelineEvent> {
        events
            .iter()
            .filter(|event| {
                self.service.may_matter(event.raw().json().get())
                    || (self.has_streams() && event.kind.is_utd())
            })
            .cloned()
            .collect()
    }

    /// Reads the events of a room into a batch. In a stream, those from `talk_from` on are part of
    /// what is said there.
    ///
    /// # Errors
    /// When the homeserver does not say now what it takes; then nothing of them is in the batch.
    async fn listen(
        &self,
        room: &Room,
        events: &[TimelineEvent],
        talk_from: usize,
        batch: &mut Batch,
    ) -> Result<(), Away> {
        let room_id = room.room_id().to_string();
        let stream = self.rooms.stream_of(room.room_id()).is_some();
        let rules = self.rooms.rules(room.room_id());
        let wants = |said: &crate::desk::Said| self.service.wants(&room_id, said);
        let ear = Ear {
            room,
            rules: &rules,
            agents: &self.agents,
            carriers: &self.carriers,
            pending: self.service.interest(&room_id) == Some(Interest::Pending),
            wants: &wants,
            commands: self.service.commands(),
            keep_locked: self.has_streams() && !stream,
            senders: Mutex::default(),
            levels: OnceCell::new(),
        };
        let now = clock::now();
        let before = (batch.heard.len(), batch.undecrypted.len());
        for (index, event) in events.iter().enumerate() {
            let talk = stream && index >= talk_from;
            match ear.listen(event, talk, now).await {
                Ok(Listened::Heard(heard)) => batch.heard.push(*heard),
                Ok(Listened::Locked(locked)) => batch.undecrypted.push(*locked),
                Ok(Listened::Nothing) => {}
                Err(away) => {
                    batch.heard.truncate(before.0);
                    batch.undecrypted.truncate(before.1);
                    return Err(away);
                }
            }
        }
        let bot = Bot {
            user_id: room.own_user_id().to_string(),
            display_name: rooms::own_name(room).await,
        };
        batch
            .names
            .insert(room_id.clone(), self.rooms.names(room.room_id()));
        batch.rooms.insert(room_id, (rules.for_desk(), bot));
        Ok(())
    }

    /// Tries messages again whose keys were missing. How long the next sync may be held open: a
    /// room is told in time what cannot be read.
    async fn look_again(&self) -> Result<Duration, ListenError> {
        let now = clock::now();
        let heard_until = self.service.health().all_heard_until();
        let due = self
            .service
            .book()
            .read(move |ledger| {
                let (due, next) = ledger.due(now)?;
                let unheard = due
                    .iter()
                    .any(|elicitation| elicitation.question.expires_at > heard_until);
                Ok::<_, LedgerError>(if unheard { Some(now) } else { next })
            })
            .await?;
        let mut hold = LONG_POLL;
        if let Some(deadline) = due {
            // Whether an answer came in time is known once the homeserver was asked after it.
            let left = deadline.saturating_sub(now).max(0).unsigned_abs();
            hold = Duration::from_millis(left).clamp(SHORT_POLL, LONG_POLL);
        }
        if let Some(patience) = self.unlock_all().await? {
            hold = patience.clamp(SHORT_POLL, hold.max(SHORT_POLL));
        }
        Ok(hold)
    }

    /// Commits a batch; a ledger that fails once may not fail twice.
    async fn commit(&self, batch: Batch) -> Result<(), ListenError> {
        let holes = !batch.gaps.is_empty();
        let mut wait = Duration::from_millis(200);
        loop {
            match self.service.take_in(batch.clone()).await {
                Ok(()) if holes => {
                    self.holes.notify_one();
                    return Ok(());
                }
                Ok(()) => return Ok(()),
                Err(error @ LedgerError::Store(_)) if wait < Duration::from_secs(10) => {
                    let wait_ms = clock::millis(wait);
                    tracing::error!(wait_ms, error = %error, "the ledger took nothing in; next try in {wait_ms} ms");
                    tokio::time::sleep(wait).await;
                    wait *= 3;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A hole in a room's timeline that ends at a token.
fn hole(room_id: &str, prev_batch: &str, since: Option<&str>) -> Gap {
    Gap {
        room_id: room_id.to_owned(),
        prev_batch: prev_batch.to_owned(),
        since: since.map(str::to_owned),
        found_at: clock::now(),
    }
}

/// Waits before the homeserver is asked again: 1 s, doubling up to 16 s. `false` when the process
/// is to end.
async fn pause(
    failures: u32,
    error: &(dyn std::fmt::Display + Sync),
    stopping: &mut watch::Receiver<bool>,
) -> bool {
    let wait = Duration::from_secs(1 << (failures.clamp(1, 5) - 1));
    let wait_ms = clock::millis(wait);
    tracing::warn!(
        sync.failures = failures,
        wait_ms,
        error = %error,
        "the homeserver does not answer ({failures} in a row); next try in {wait_ms} ms"
    );
    tokio::select! {
        _ = stopping.wait_for(|&stopping| stopping) => false,
        () = tokio::time::sleep(wait) => true,
    }
}

fn settings(long_poll: Duration) -> SyncSettings {
    let mut filter = FilterDefinition::default();
    filter.presence.types = Some(Vec::new());
    filter.room.ephemeral.types = Some(Vec::new());
    filter.room.timeline.limit = Some(UInt::from(TIMELINE));
    filter.room.state.lazy_load_options =
        matrix_sdk::ruma::api::client::filter::LazyLoadOptions::Enabled {
            include_redundant_members: false,
        };
    SyncSettings::new()
        .timeout(clock::patience(long_poll))
        .filter(Filter::FilterDefinition(filter))
        .set_presence(PresenceState::Offline)
}
