//! What became of the things that were to be sent to rooms.

use super::Service;
use crate::clock::{self, Millis};
use crate::config::Config;
use crate::desk::{self, SendDraft, SendKind};
use crate::elicitation::State;
use crate::ledger::{self, Ledger, LedgerError, Sending};

/// Notes that a row of the outbox stands in the room as an event; a card's question becomes open.
pub(super) fn sent(
    ledger: &mut dyn Ledger,
    sending: &Sending,
    event_id: &str,
    config: &Config,
    now: Millis,
) -> Result<(), LedgerError> {
    if !ledger.mark_sent(sending.seq, event_id)? {
        return Ok(());
    }
    match (sending.draft.kind, sending.draft.key.session()) {
        (SendKind::Root, Some(session)) => {
            return ledger.mark_root(session, &sending.draft.room_id, event_id);
        }
        (SendKind::Card, _) => {}
        _ => return Ok(()),
    }
    let posted = ledger.mark_posted(&sending.draft.key, event_id)?;
    let open = posted.filter(|elicitation| elicitation.state == State::Open);
    if let Some(event) = open.as_ref().and_then(desk::announcement) {
        let deliver = Service::has_webhook(config, &event.key.origin);
        ledger.announce(&event, deliver, now)?;
    }
    Ok(())
}

impl Service {
    /// Notes that a row of the outbox was sent.
    ///
    /// # Errors
    /// When the ledger fails; the row is then sent again under the same transaction id.
    pub async fn sent(&self, sending: Sending, event_id: String) -> Result<(), LedgerError> {
        let config = self.config.clone();
        let now = clock::now();
        self.book
            .write(move |ledger| sent(ledger, &sending, &event_id, &config, now))
            .await
    }

    /// The event of this kind that replies to, or reacts to, the same message as a draft, if it is
    /// in the room.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn said_before(
        &self,
        kind: SendKind,
        edit: &SendDraft,
    ) -> Result<Option<String>, LedgerError> {
        let Some(message) = edit.replies_to().map(str::to_owned) else {
            return Ok(None);
        };
        let room_id = edit.room_id.clone();
        let before = self
            .book
            .read(move |ledger| ledger.said_about(kind, &room_id, &message));
        Ok(before.await?.and_then(|before| before.event_id))
    }

    /// The event of the row of this kind under the same key as a draft, if it is in the room.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn sent_as(
        &self,
        kind: SendKind,
        draft: &SendDraft,
    ) -> Result<Option<String>, LedgerError> {
        let key = draft.key.clone();
        self.book
            .read(move |ledger| ledger.sent_as(kind, &key))
            .await
    }

    /// Gives a row of the outbox up: the room refuses it for good. A card's question cannot be
    /// put before anybody then.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn refused(&self, sending: Sending, why: String) -> Result<(), LedgerError> {
        let config = self.config.clone();
        let now = clock::now();
        self.book
            .write(move |ledger| {
                ledger.drop_sending(sending.seq, &why)?;
                let has_webhook = |origin: &str| Service::has_webhook(&config, origin);
                // A session that cannot be shown is none.
                if sending.draft.kind == SendKind::Root
                    && let Some(id) = sending.draft.key.session()
                    && let Some(session) = ledger.session(id)?
                    && session.room_id == sending.draft.room_id
                {
                    let open = ledger.question_of(id)?;
                    let changes = desk::deleted(&session, open.as_ref(), now);
                    ledger::apply(ledger, &changes, &has_webhook, now)?;
                }
                if sending.draft.kind != SendKind::Card {
                    return Ok(());
                }
                // A question whose card is in the room has it there, whatever this try came to; and
                // one that went on to another room meanwhile has a card of its own there.
                let found = ledger.find(&sending.draft.key)?.filter(|found| {
                    found.event_id.is_none() && found.question.room_id == sending.draft.room_id
                });
                if let Some(unseen) = found {
                    let closed = desk::close(&unseen, State::Undeliverable, Some(&why), None, now);
                    ledger::apply(ledger, &[closed], &has_webhook, now)?;
                }
                Ok(())
            })
            .await
    }
}
