//! Following room upgrades: what is pending in a room goes on in the one that took its place.

use super::Service;
use super::asking::Asking;
use super::carried;
use crate::clock::{self, Millis};
use crate::desk;
use crate::elicitation::{Key, Source};
use crate::ledger::{self, HasWebhook, Ledger, LedgerError, SendDraft, SendKind};
use crate::session::Session;

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
    /// by whoever carries it; and so does every session that has not ended, under a new root.
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
            let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
            if !config.streams.is_empty() {
                ledger.move_lines(&room_id, &here)?;
            }
            // The sessions first: what one asks stands in the thread that it has there.
            for session in ledger.living_in(&room_id)? {
                move_session(ledger, &session, &here, &has_webhook, now)?;
            }
            let pending = ledger.pending_in(&room_id)?;
            let several = pending.len() > 1 || ledger.any_pending_in(&here)?;
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

/// Lets a session go on in another room. What it said and is not in the old room yet is said there.
fn move_session(
    ledger: &mut dyn Ledger,
    session: &Session,
    here: &str,
    has_webhook: HasWebhook<'_>,
    now: Millis,
) -> Result<(), LedgerError> {
    let kinds = [SendKind::Root, SendKind::RootEdit, SendKind::InThread];
    let origin = Key::of_session(&session.id).origin;
    let unsent = ledger.take_unsent(&session.room_id, &origin, &kinds)?;
    let mut changes = desk::session_moved(session, here, now);
    let messages = unsent
        .into_iter()
        .filter(|draft| draft.kind == SendKind::InThread);
    changes.extend(messages.map(|draft| {
        desk::Change::Send(SendDraft {
            room_id: here.to_owned(),
            ..draft
        })
    }));
    ledger::apply(ledger, &changes, has_webhook, now)?;
    Ok(())
}
