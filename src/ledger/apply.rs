//! Carries out what the desk decided, inside the transaction in which it was decided.

use super::{Ledger, LedgerError};
use crate::clock::{self, Millis};
use crate::desk::{self, Change, SendKind};

/// Which agents have a webhook, and so get deliveries beside their events.
pub type HasWebhook<'a> = &'a dyn Fn(&str) -> bool;

/// Carries out a decision. `false` when a question it closes or moves was closed already, or takes no
/// answer to be handed in now: then neither that change nor any after it was done.
///
/// # Errors
/// When the ledger fails; then the transaction must not be committed.
pub fn apply(
    ledger: &mut dyn Ledger,
    changes: &[Change],
    has_webhook: HasWebhook<'_>,
    now: Millis,
) -> Result<bool, LedgerError> {
    for change in changes {
        match change {
            Change::Close {
                closed,
                edit,
                event,
            } => {
                if !ledger.settle(closed)? {
                    return Ok(false);
                }
                ledger.withdraw_unsent(SendKind::Card, closed.key())?;
                // A card that is in the room, or may be, gets its last words.
                if let Some(edit) = edit
                    && (closed.event_id.is_some() || ledger.pending_card(closed.key())?.is_some())
                {
                    ledger.send(edit, now)?;
                }
                if let Some(event) = event {
                    ledger.announce(event, has_webhook(&event.key.origin), now)?;
                }
            }
            Change::Move { moved, card } => {
                if !ledger.relocate(moved)? {
                    return Ok(false);
                }
                if let Some(card) = card {
                    ledger.send(card, now)?;
                }
            }
            Change::Begin(session) => ledger.begin_session(session)?,
            Change::Session(session) => {
                if !ledger.change_session(session)? {
                    return Ok(false);
                }
            }
            Change::Record {
                session_id,
                activity,
            } => ledger.record(session_id, activity)?,
            Change::Ask { elicitation, card } => {
                if !ledger.insert(elicitation, "", None)? {
                    return Ok(false);
                }
                ledger.send(card, now)?;
            }
            Change::Prompt(prompt) => {
                let Some(session) = ledger.session(&prompt.session_id)? else {
                    return Ok(false);
                };
                let open = ledger.question_of(&session.id)?;
                let id = clock::fresh_id("act_");
                let follows = desk::prompted(&session, prompt, open.as_ref(), id, now);
                if !apply(ledger, &follows, has_webhook, now)? {
                    return Ok(false);
                }
            }
            Change::Submit { key, answer } => {
                if !ledger.submit(key, answer, now)? {
                    return Ok(false);
                }
            }
            // What was never asked of anybody need not be taken back.
            Change::Send(draft)
                if draft.kind == SendKind::ConnectOver
                    && ledger.withdraw_unsent(SendKind::Connect, &draft.key)? => {}
            Change::Send(draft) => {
                // Only the newest is worth showing: what waited for its room would come all at once.
                if draft.kind == SendKind::RootEdit {
                    ledger.withdraw_unsent(SendKind::RootEdit, &draft.key)?;
                }
                ledger.send(draft, now)?;
            }
            Change::SayOnce {
                user_id,
                what,
                notice,
            } => {
                if ledger.first_time(&notice.key, user_id, what)? {
                    ledger.send(notice, now)?;
                }
            }
            Change::AnswerCommand { user_id, notice } => {
                if ledger.may_command(user_id, now)? {
                    ledger.send(notice, now)?;
                }
            }
            Change::Announce(event) => {
                ledger.announce(event, has_webhook(&event.key.origin), now)?;
            }
            Change::ForgetText(key) => ledger.forget_answer_text(key)?,
            Change::LetRead { user_id, may: true } => {
                ledger.opt_in(user_id)?;
            }
            Change::LetRead {
                user_id,
                may: false,
            } => {
                ledger.opt_out(user_id, now)?;
            }
        }
    }
    Ok(true)
}
