//! Holes in timelines: what was said while the bot was away and one response did not hold.
//!
//! A hole is filled before anything after it is decided, so that an older reply is never
//! overtaken by a newer one. It is a row of the ledger from the moment it is found, and is tried
//! until it is filled, the homeserver refuses for good, or an hour has passed. Meanwhile the other
//! rooms go on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use matrix_sdk::deserialized_responses::TimelineEvent;
use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::UInt;
use matrix_sdk::ruma::api::error::ErrorKind;
use matrix_sdk::{Room, RoomState};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::rooms;
use super::{ListenError, Listener, TIMELINE, talk};
use crate::clock;
use crate::desk::Interest;
use crate::ledger::{Gap, LedgerError};
use crate::service::{Batch, Filled};

/// How many rooms are read back at once.
const AT_ONCE: usize = 4;

/// How many pages of history are asked for to fill one hole.
const PAGES: usize = 200;
/// The same where every question is over: only corrections of answers can matter there.
const PAGES_WHEN_OVER: usize = 5;
/// The types of events that can matter.
const READ: [&str; 5] = [
    "m.room.message",
    "m.room.encrypted",
    "m.room.redaction",
    "m.reaction",
    // The bot's own coming: what was said in a stream before it was not said to it.
    "m.room.member",
];
/// How soon a hole that could not be filled is tried again.
pub(super) const FILL_AGAIN: Duration = Duration::from_secs(10);
/// A hole that could not be filled for so long never will be.
const FILL_WITHIN: Duration = Duration::from_hours(1);

/// What came of filling a hole.
enum Filling {
    /// What it held, oldest first.
    Filled(Vec<TimelineEvent>),
    /// The homeserver will never tell.
    Never(String),
    /// It cannot be said now.
    Later,
}

impl Listener {
    /// Reads back what a hole holds, oldest first.
    async fn fill(&self, room: &Room, from: &str, to: Option<&str>) -> Filling {
        let mut events = Vec::new();
        let mut from = from.to_owned();
        let pending = self.service.interest(room.room_id().as_str()) == Some(Interest::Pending);
        let stream = self.rooms.stream_of(room.room_id()).is_some();
        let pages = if pending || stream {
            PAGES
        } else {
            PAGES_WHEN_OVER
        };
        for _ in 0..pages {
            let mut options = MessagesOptions::backward().from(Some(from.as_str()));
            options.filter.types = Some(READ.map(str::to_owned).to_vec());
            options.limit = UInt::from(TIMELINE);
            options.to = to.map(str::to_owned);
            let page = match room.messages(options).await {
                Ok(page) => page,
                Err(error) => {
                    return match refusal(&error) {
                        Some(why) => Filling::Never(why),
                        None => Filling::Later,
                    };
                }
            };
            let known = self.reach_known(room, &page.chunk).await;
            events.extend(page.chunk);
            match page.end {
                Some(end) if end != from && !known => from = end,
                _ => {
                    events.reverse();
                    return Filling::Filled(events);
                }
            }
        }
        let (room_id, count) = (room.room_id(), events.len());
        tracing::warn!(
            room.id = %room_id, count,
            "of what was said in {room_id} while the bot was away only the last {count} events are read"
        );
        events.reverse();
        Filling::Filled(events)
    }

    /// Whether a page reaches back to what was taken in before.
    async fn reach_known(&self, room: &Room, events: &[TimelineEvent]) -> bool {
        let room_id = room.room_id().to_string();
        let ids: Vec<String> = events
            .iter()
            .filter_map(|event| event.event_id().map(|id| id.to_string()))
            .collect();
        let seen = self.service.book().read(move |ledger| {
            for id in ids {
                if ledger.seen(&room_id, &id)? {
                    return Ok::<_, LedgerError>(true);
                }
            }
            Ok(false)
        });
        seen.await.unwrap_or(false)
    }

    /// Fills holes until the process is to end. No room waits for another, and none of them for
    /// the sync.
    pub(super) async fn fill_holes(
        self: Arc<Self>,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<(), ListenError> {
        // What is in the room is only known after the first sync.
        if !self.service.first_sync().await {
            return Ok(());
        }
        let mut tasks: JoinSet<(String, Result<bool, ListenError>)> = JoinSet::new();
        let mut busy: HashSet<String> = HashSet::new();
        let mut waiting: HashMap<String, Instant> = HashMap::new();
        loop {
            let gaps = self.service.book().read(|ledger| ledger.gaps()).await?;
            waiting.retain(|room_id, until| {
                *until > Instant::now() && gaps.iter().any(|gap| gap.room_id == *room_id)
            });
            for gap in &gaps {
                let room_id = &gap.room_id;
                if tasks.len() >= AT_ONCE {
                    break;
                }
                if waiting.contains_key(room_id) || !busy.insert(room_id.clone()) {
                    continue;
                }
                let here = gaps.iter().filter(|gap| gap.room_id == *room_id);
                let (listener, here) = (self.clone(), here.cloned().collect::<Vec<_>>());
                let room_id = room_id.clone();
                tasks.spawn(async move {
                    let outcome = listener.fill_room(&room_id, &here).await;
                    (room_id, outcome)
                });
            }
            tokio::select! {
                _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
                Some(done) = tasks.join_next() => {
                    // A task that panics is a bug that must not go unseen.
                    let (room_id, outcome) = done.map_err(|error| ListenError::Broken(error.to_string()))?;
                    busy.remove(&room_id);
                    if !outcome? {
                        waiting.insert(room_id, Instant::now() + FILL_AGAIN);
                    }
                }
                () = self.holes.notified() => {}
                () = tokio::time::sleep(FILL_AGAIN) => {}
            }
        }
    }

    /// Fills a room's holes at once, from the newest end to the oldest: what was kept meanwhile
    /// lies between them and is recognised. `false` when it cannot be done now.
    async fn fill_room(&self, room_id: &str, gaps: &[Gap]) -> Result<bool, ListenError> {
        let (Some(oldest), Some(newest)) = (gaps.first(), gaps.last()) else {
            return Ok(true);
        };
        let mut batch = Batch::default();
        let room = rooms::by_id(&self.client, room_id);
        let never = match room.filter(|room| room.state() == RoomState::Joined) {
            None => true,
            Some(room) => {
                let filling = self.fill(&room, &newest.prev_batch, oldest.since.as_deref());
                let mut filling = filling.await;
                if let Filling::Filled(events) = &filling {
                    self.meet(events, &mut batch);
                    let from = talk::said_since_join(&room, events).await;
                    if self.listen(&room, events, from, &mut batch).await.is_err() {
                        filling = Filling::Later;
                    }
                }
                let age = clock::now().saturating_sub(oldest.found_at);
                match filling {
                    Filling::Filled(_) => false,
                    Filling::Later if age < clock::millis(FILL_WITHIN) => return Ok(false),
                    Filling::Never(_) | Filling::Later => {
                        let why = match filling {
                            Filling::Never(why) => why,
                            _ => "the homeserver did not answer for an hour".to_owned(),
                        };
                        tracing::warn!(
                            room.id = %room_id, why,
                            "what was said in {room_id} while the bot was away cannot be read: {why}"
                        );
                        // What was kept behind the hole is read by the room's rules, if those
                        // can be had.
                        let _ = self.listen(&room, &[], 0, &mut batch).await;
                        true
                    }
                }
            }
        };
        batch.filled = Some(Filled {
            room_id: room_id.to_owned(),
            prev_batch: newest.prev_batch.clone(),
            never,
        });
        self.commit(batch).await?;
        Ok(true)
    }
}

/// What the homeserver says when it refuses for good.
fn refusal(error: &matrix_sdk::Error) -> Option<String> {
    let answer = error.as_client_api_error()?;
    let for_good = matches!(
        answer.error_kind(),
        Some(
            ErrorKind::Forbidden
                | ErrorKind::NotFound
                | ErrorKind::InvalidParam
                | ErrorKind::Unknown
        )
    );
    (for_good && answer.status_code.is_client_error()).then(|| answer.to_string())
}
