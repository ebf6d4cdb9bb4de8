//! Holes in timelines: what was said while the bot was away and one response did not hold.
//!
//! A hole is filled before anything after it is decided, so that an older reply is never
//! overtaken by a newer one. One that cannot be filled now is a row of the ledger, and is tried
//! again until it is filled, the homeserver refuses for good, or an hour has passed.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use matrix_sdk::deserialized_responses::TimelineEvent;
use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::api::error::ErrorKind;
use matrix_sdk::ruma::{RoomId, UInt};
use matrix_sdk::{Room, RoomState};

use super::{Listener, TIMELINE};
use crate::clock::{self, Millis};
use crate::desk::Interest;
use crate::ledger::{Gap, LedgerError};
use crate::service::Batch;

/// How many pages of history are asked for to fill one hole.
const PAGES: usize = 200;
/// The same where every question is over: only corrections of answers can matter there.
const PAGES_WHEN_OVER: usize = 5;
/// The types of events that can matter.
const READ: [&str; 4] = [
    "m.room.message",
    "m.room.encrypted",
    "m.room.redaction",
    "m.reaction",
];
/// How soon a hole that could not be filled is tried again.
pub(super) const FILL_AGAIN: Duration = Duration::from_secs(10);
/// A hole that could not be filled for so long never will be.
const FILL_WITHIN: Duration = Duration::from_hours(1);

/// What came of filling a hole.
pub(super) enum Filling {
    /// What it held, oldest first.
    Filled(Vec<TimelineEvent>),
    /// The homeserver will never tell.
    Never(String),
    /// It cannot be said now.
    Later,
}

impl Listener {
    /// Reads back what a hole holds, oldest first.
    pub(super) async fn fill(&self, room: &Room, from: &str, to: Option<&str>) -> Filling {
        let mut events = Vec::new();
        let mut from = from.to_owned();
        let pending = self.service.interest(room.room_id().as_str()) == Some(Interest::Pending);
        let pages = if pending { PAGES } else { PAGES_WHEN_OVER };
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

    /// Whether holes are to be tried again now.
    fn may_fill(&self) -> bool {
        let mut tried = self
            .filled_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let due = tried.is_none_or(|at| now.duration_since(at) >= FILL_AGAIN);
        if due {
            *tried = Some(now);
        }
        due
    }

    /// Fills a room's holes at once, from the newest end to the oldest: what was kept meanwhile
    /// lies between them and is recognised.
    pub(super) async fn fill_again(&self, gaps: &[Gap], now: Millis, batch: &mut Batch) {
        if gaps.is_empty() || !self.may_fill() {
            return;
        }
        for (index, oldest) in gaps.iter().enumerate() {
            let room_id = &oldest.room_id;
            if gaps[..index]
                .iter()
                .any(|earlier| earlier.room_id == *room_id)
            {
                continue;
            }
            let newest = gaps
                .iter()
                .rfind(|gap| gap.room_id == *room_id)
                .unwrap_or(oldest);
            let room = RoomId::parse(room_id)
                .ok()
                .and_then(|id| self.client.get_room(&id));
            let Some(room) = room.filter(|room| room.state() == RoomState::Joined) else {
                batch.filled.push(room_id.clone());
                batch.unfillable.push(room_id.clone());
                continue;
            };
            let filling = self.fill(&room, &newest.prev_batch, oldest.since.as_deref());
            let too_old = now.saturating_sub(oldest.found_at) >= clock::millis(FILL_WITHIN);
            match filling.await {
                Filling::Later if !too_old => {}
                Filling::Filled(events) => {
                    self.listen(&room, &events, batch).await;
                    batch.filled.push(room_id.clone());
                }
                Filling::Never(_) | Filling::Later => {
                    tracing::warn!(
                        room.id = %room_id,
                        "what was said in {room_id} while the bot was away cannot be read"
                    );
                    self.listen(&room, &[], batch).await;
                    batch.filled.push(room_id.clone());
                    batch.unfillable.push(room_id.clone());
                }
            }
        }
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
