//! Messages that could not be decrypted when they came: kept, and tried again.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::watch;

use super::super::rooms;
use super::gaps::FILL_AGAIN;
use super::{ListenError, Listener, talk};
use crate::clock::{self, Millis};
use crate::ledger::Undecrypted;
use crate::service::Batch;

/// For so long what cannot be read is tried again in rooms where nothing is expected; in
/// milliseconds.
const LOCKED_FOR: Millis = 60 * 60 * 1000;

impl Listener {
    /// Tries kept messages again when keys come by another way than a sync: from the backup.
    pub(super) async fn unlock_on_keys(
        &self,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<(), ListenError> {
        if !self.service.first_sync().await {
            return Ok(());
        }
        let encryption = self.client.encryption();
        let Some(keys) = encryption.room_keys_received_stream().await else {
            return Ok(());
        };
        tokio::pin!(keys);
        loop {
            tokio::select! {
                _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
                // Whoever falls behind tries everything as well.
                some = keys.next() => if some.is_none() { return Ok(()) },
            }
            self.unlock_all().await?;
        }
    }

    /// Tries all kept messages again. How long the first of them may still stay unread before its
    /// room is told.
    pub(super) async fn unlock_all(&self) -> Result<Option<Duration>, ListenError> {
        let now = clock::now();
        let locked = self
            .service
            .book()
            .read(|ledger| ledger.undecrypted())
            .await?;
        let mut batch = Batch::default();
        let mut soonest: Option<Duration> = None;
        for kept in locked {
            let patience = self.unlock(kept, now, &mut batch).await;
            soonest = soonest.into_iter().chain(patience).min();
        }
        if !batch.is_empty() {
            self.commit(batch).await?;
        }
        Ok(soonest)
    }

    /// Tries a kept message again. How long its key may still take before the room is told; `None`
    /// when there is nothing to be told.
    async fn unlock(&self, kept: Undecrypted, now: Millis, batch: &mut Batch) -> Option<Duration> {
        let room = rooms::by_id(&self.client, &kept.room_id);
        let (Some(room), Ok(raw)) = (
            room,
            serde_json::value::RawValue::from_string(kept.raw.clone()),
        ) else {
            batch.resolved.push((kept.room_id, kept.event_id));
            return None;
        };
        let raw = matrix_sdk::ruma::serde::Raw::from_json(raw);
        match room.decrypt_event(&raw, None).await {
            Ok(event) if !event.kind.is_utd() => {
                // It is decided where it is read, not where it once stood.
                let events = [event];
                let from = talk::said_since_join(&room, &events).await;
                if self.listen(&room, &events, from, batch).await.is_err() {
                    return Some(FILL_AGAIN);
                }
                batch.resolved.push((kept.room_id, kept.event_id));
                None
            }
            _ if kept.told => {
                let waited = now.saturating_sub(kept.heard_at);
                if waited > LOCKED_FOR && self.service.interest(&kept.room_id).is_none() {
                    batch.resolved.push((kept.room_id, kept.event_id));
                }
                None
            }
            _ => {
                let waited = now.saturating_sub(kept.heard_at).max(0).unsigned_abs();
                let patience = self.rooms.rules(room.room_id()).unreadable_after;
                let left = patience.saturating_sub(Duration::from_millis(waited));
                if left.is_zero() {
                    batch.unreadable.push(kept);
                    return None;
                }
                Some(left)
            }
        }
    }
}
