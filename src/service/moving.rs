//! Following room upgrades: what is pending in a room goes on in the one that took its place.

use super::Service;
use super::asking::Asking;
use super::carried;
use crate::clock;
use crate::desk;
use crate::elicitation::Source;
use crate::ledger::{self, LedgerError};

impl Service {
    /// Whether everything that was said in a room has been decided, as far as it is here: no hole
    /// is to be filled first, and no message still waits for its key without the room having been
    /// told so.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn is_settled(&self, room_id: &str) -> Result<bool, LedgerError> {
        let room_id = room_id.to_owned();
        self.book
            .read(move |ledger| {
                let hole = ledger.gaps()?.iter().any(|gap| gap.room_id == room_id);
                let locked = ledger.undecrypted()?;
                let waits = |room: &str, told: bool| room == room_id && !told;
                Ok(!hole && !locked.iter().any(|kept| waits(&kept.room_id, kept.told)))
            })
            .await
    }

    /// Follows the upgrade of a room, once it was verified: every question that is pending there
    /// goes on in the successor (or in what took its place since), where its card is put up once,
    /// by whoever carries it.
    /// Gives the number of those questions; `None` when another successor is followed already, or
    /// this would go in a circle.
    ///
    /// # Errors
    /// When the ledger fails; then nothing was changed.
    pub async fn follow_upgrade(
        &self,
        room_id: &str,
        successor: &str,
    ) -> Result<Option<usize>, LedgerError> {
        let (room_id, successor) = (room_id.to_owned(), successor.to_owned());
        let (config, watch) = (self.config.clone(), self.watch.clone());
        let now = clock::now();
        let followed = self.book.write(move |ledger| {
            if !ledger.set_successor(&room_id, &successor)? {
                return Ok(None);
            }
            let here = ledger.successor(&room_id)?.unwrap_or(successor);
            // Before the commit: the watch may hold too much, never too little.
            let asking = Asking::begin(watch, &here);
            let pending = ledger.pending_in(&room_id)?;
            let several = pending.len() > 1 || ledger.any_pending_in(&here)?;
            let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
            for elicitation in &pending {
                let tag = ledger.next_tag(&here)?;
                let moved = desk::move_to(elicitation, &here, tag, several);
                ledger::apply(ledger, &[moved], &has_webhook, now)?;
                if elicitation.question.source() == Source::Carrier {
                    let told = carried::came_before(ledger, elicitation.key(), &here, now)?;
                    ledger::apply(ledger, told.as_slice(), &has_webhook, now)?;
                }
            }
            Ok::<_, LedgerError>(Some((pending.len(), asking)))
        });
        // The guard comes back with the answer, after the commit, also when nobody waits for it.
        Ok(followed.await?.map(|(moved, _asking)| moved))
    }
}
