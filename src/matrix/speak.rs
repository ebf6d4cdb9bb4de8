//! Speaking: outbox → room, one row a room at a time, no room waiting for another.
//!
//! pending → attempted → sent, or → dropped when the room refuses it for good. A crash between
//! the homeserver's answer and the mark leaves the row attempted: it is then looked for in the
//! room, and sent again under the same transaction id only if it is not there.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::{OwnedTransactionId, RoomId, UInt};
use matrix_sdk::{Client, EncryptionState, Room, RoomState};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::{self, Millis};
use crate::contract::CARD_KEY;
use crate::crash;
use crate::desk::SendKind;
use crate::elicitation::Key;
use crate::ledger::{LedgerError, Note, Sending};
use crate::prose;
use crate::service::Service;

/// How often a row that waits for the room (for a first person to join, say) is looked at again.
const PATIENCE: Millis = 2_000;
/// The longest wait between two tries.
const LONGEST_WAIT: Millis = 60_000;
/// The longest wait that the homeserver may ask for.
const LONGEST_ASKED_FOR: Millis = 10 * 60_000;
/// How far back a row that may have been sent already is looked for.
const PAGES: usize = 20;

/// Sends what the outbox holds.
pub struct Speaker {
    client: Client,
    service: Arc<Service>,
    /// The rows that this process attempted. Any other that was attempted was by one that is gone.
    attempted: Mutex<HashSet<i64>>,
}

/// What came of one try.
enum Outcome {
    /// It stands in the room as this event.
    Sent(String),
    /// The room refuses it for good.
    Refused(String),
    /// It failed and may succeed later.
    Failed {
        why: String,
        retry_after: Option<Millis>,
    },
    /// The room is not ready for it yet.
    NotYet(&'static str),
    /// It was withdrawn, or seen in the room, since it was due.
    Settled,
}

impl Speaker {
    /// A speaker for a session.
    pub fn new(client: Client, service: Arc<Service>) -> Arc<Self> {
        Arc::new(Self {
            client,
            service,
            attempted: Mutex::default(),
        })
    }

    /// Speaks until the process is to end; what is being sent then is finished first.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn run(
        self: Arc<Self>,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<(), LedgerError> {
        // Before the first sync nothing can be said about a room, nor whether a row is in it.
        if !self.service.first_sync().await {
            return Ok(());
        }
        let mut notes = self.service.book().notes();
        let mut busy: HashSet<String> = HashSet::new();
        let mut tasks: JoinSet<(String, Result<(), LedgerError>)> = JoinSet::new();
        loop {
            let now = clock::now();
            let (due, next, stuck) = self
                .service
                .book()
                .read(move |ledger| {
                    let (due, next) = ledger.sendings_due(now)?;
                    Ok::<_, LedgerError>((due, next, ledger.oldest_attempted()?))
                })
                .await?;
            self.service.health().stuck(stuck);
            for sending in due {
                let room_id = sending.draft.room_id.clone();
                if busy.insert(room_id.clone()) {
                    let speaker = self.clone();
                    tasks.spawn(async move { (room_id, speaker.say(sending).await) });
                }
            }
            let wait = next.map_or(PATIENCE * 5, |at| {
                at.saturating_sub(now).clamp(10, PATIENCE * 5)
            });
            let wait = Duration::from_millis(wait.unsigned_abs());
            tokio::select! {
                _ = stopping.wait_for(|&stopping| stopping) => break,
                Some(done) = tasks.join_next() => {
                    // A task that panics is a bug that must not go unseen.
                    let (room_id, outcome) = done.map_err(|error| LedgerError::Store(error.to_string()))?;
                    busy.remove(&room_id);
                    outcome?;
                }
                () = new_work(&mut notes) => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| LedgerError::Store(error.to_string()))?
                .1?;
        }
        Ok(())
    }

    /// Tries one row and notes what came of it.
    async fn say(&self, sending: Sending) -> Result<(), LedgerError> {
        let seq = sending.seq;
        let room_id = sending.draft.room_id.clone();
        crash::point("send.due");
        match self.try_to_send(&sending).await? {
            Outcome::Sent(event_id) => {
                if sending.draft.kind == SendKind::Card {
                    let Key { origin, id } = &sending.draft.key;
                    tracing::info!(
                        elicitation.id = %id, agent.id = %origin, room.id = %room_id,
                        "{id} of {origin} is in {room_id}"
                    );
                }
                crash::point("send.sent");
                self.service.sent(sending, event_id).await?;
                crash::point("send.marked");
                self.attempted_here().remove(&seq);
                Ok(())
            }
            Outcome::Refused(why) => {
                tracing::warn!(
                    room.id = %room_id, sending.seq = seq, why,
                    "{room_id} refuses a message for good: {why}"
                );
                self.attempted_here().remove(&seq);
                self.service.refused(sending, why).await
            }
            Outcome::Failed { why, retry_after } => {
                let attempt = sending.attempts.saturating_add(1);
                let asked_for = retry_after.map(|wait| wait.clamp(0, LONGEST_ASKED_FOR));
                let wait_ms = asked_for.unwrap_or_else(|| backoff(attempt));
                tracing::warn!(
                    room.id = %room_id, sending.seq = seq, sending.attempt = attempt, wait_ms, error = why,
                    "sending to {room_id} failed; next try in {wait_ms} ms"
                );
                self.put_off(seq, wait_ms, why).await
            }
            Outcome::NotYet(why) => {
                if clock::now().saturating_sub(sending.created_at) < PATIENCE {
                    tracing::info!(room.id = %room_id, sending.seq = seq, why, "{room_id}: {why}");
                }
                self.hold(seq, why).await
            }
            Outcome::Settled => Ok(()),
        }
    }

    fn attempted_here(&self) -> MutexGuard<'_, HashSet<i64>> {
        self.attempted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn hold(&self, seq: i64, why: &'static str) -> Result<(), LedgerError> {
        let until = clock::now().saturating_add(PATIENCE);
        self.service
            .book()
            .write(move |ledger| ledger.hold(seq, until, why))
            .await
    }

    async fn put_off(&self, seq: i64, wait: Millis, why: String) -> Result<(), LedgerError> {
        let until = clock::now().saturating_add(wait);
        self.service
            .book()
            .write(move |ledger| ledger.postpone(seq, until, &why))
            .await
    }

    async fn try_to_send(&self, sending: &Sending) -> Result<Outcome, LedgerError> {
        let room = RoomId::parse(&sending.draft.room_id)
            .ok()
            .and_then(|room_id| self.client.get_room(&room_id));
        let Some(room) = room.filter(|room| room.state() == RoomState::Joined) else {
            return Ok(Outcome::Refused(
                "the bot is no longer in the room".to_owned(),
            ));
        };
        if let Some(not_yet) = self.not_yet(&room, sending.draft.kind).await {
            return Ok(not_yet);
        }
        let own = self.attempted_here().contains(&sending.seq);
        if sending.attempted_at.is_some() && !own {
            // The homeserver's answer may have been lost with the process that sent it.
            match find_sent(&room, sending).await {
                Ok(Some(event_id)) => return Ok(Outcome::Sent(event_id)),
                Ok(None) => {}
                Err(error) => return Ok(may_pass(&error)),
            }
        }
        let Some(content) = self.content(sending).await? else {
            return Ok(Outcome::Refused(
                "what it is about never came to the room".to_owned(),
            ));
        };
        let (seq, now) = (sending.seq, clock::now());
        let attempted = self
            .service
            .book()
            .write(move |ledger| ledger.mark_attempted(seq, now));
        if !attempted.await? {
            return Ok(Outcome::Settled);
        }
        self.attempted_here().insert(seq);
        crash::point("send.attempted");
        let txn_id = OwnedTransactionId::from(sending.txn_id.as_str());
        let event_type = sending.draft.kind.event_type();
        Ok(
            match room
                .send_raw(event_type, content)
                .with_transaction_id(&txn_id)
                .await
            {
                Ok(sent) => Outcome::Sent(sent.response.event_id.to_string()),
                Err(error) => failed(&error),
            },
        )
    }

    /// Why this room is not ready to be spoken to.
    async fn not_yet(&self, room: &Room, kind: SendKind) -> Option<Outcome> {
        // Nothing goes into a room in plain text that may be encrypted.
        if room.encryption_state().is_unknown()
            && let Err(error) = room.request_encryption_state().await
        {
            return Some(may_pass(&error));
        }
        match room.encryption_state() {
            EncryptionState::NotEncrypted => None,
            // A message encrypted for nobody stays unreadable for ever, also for those who are
            // invited now and join later.
            EncryptionState::Encrypted if room.joined_members_count() > 1 => None,
            EncryptionState::Encrypted if kind == SendKind::Card => {
                Some(Outcome::NotYet("waiting for a person to join"))
            }
            EncryptionState::Encrypted => Some(Outcome::Refused(
                "nobody is left in the room to read it".to_owned(),
            )),
            EncryptionState::Unknown => Some(Outcome::NotYet("the room's encryption is not known")),
        }
    }

    /// The content to send; an edit gets the event it edits. `None` if there is none.
    async fn content(&self, sending: &Sending) -> Result<Option<Value>, LedgerError> {
        let mut content = sending.draft.content.clone();
        let edited = match sending.draft.kind {
            SendKind::Card | SendKind::Reaction | SendKind::Notice => return Ok(Some(content)),
            SendKind::CardEdit => {
                let found = self.service.find(&sending.draft.key).await?;
                found.and_then(|elicitation| elicitation.event_id)
            }
            SendKind::NoticeEdit => self.service.notice_in_place(&sending.draft).await?,
        };
        Ok(edited.map(|event_id| {
            prose::relate_edit(&mut content, &event_id);
            content
        }))
    }
}

/// Waits until there may be something new to send.
async fn new_work(notes: &mut tokio::sync::broadcast::Receiver<Note>) {
    loop {
        match notes.recv().await {
            Ok(Note::Outbox(_)) | Err(RecvError::Lagged(_)) => return,
            Ok(_) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Looks for a row in the room: by its transaction id, and a card also by its elicitation.
async fn find_sent(room: &Room, sending: &Sending) -> matrix_sdk::Result<Option<String>> {
    let mut from: Option<String> = None;
    for _ in 0..PAGES {
        let mut options = MessagesOptions::backward().from(from.as_deref());
        options.limit = UInt::from(100_u32);
        let page = room.messages(options).await?;
        for event in &page.chunk {
            let Ok(value) = event.raw().deserialize_as_unchecked::<Value>() else {
                continue;
            };
            if value["sender"] == room.own_user_id().as_str() && is_this(&value, sending) {
                return Ok(value["event_id"].as_str().map(str::to_owned));
            }
        }
        // A minute of grace between our clock and the homeserver's.
        let oldest = page
            .chunk
            .last()
            .and_then(|event| Some(Millis::from(event.timestamp_raw()?.get())));
        let before = oldest.is_some_and(|at| at < sending.created_at.saturating_sub(60_000));
        match page.end {
            Some(end) if !before => from = Some(end),
            _ => break,
        }
    }
    Ok(None)
}

fn is_this(event: &Value, sending: &Sending) -> bool {
    if event["unsigned"]["transaction_id"] == sending.txn_id.as_str() {
        return true;
    }
    let card = &event["content"][CARD_KEY];
    sending.draft.kind == SendKind::Card
        && card["elicitation_id"] == sending.draft.key.id.as_str()
        && card["asked_by"] == sending.draft.key.origin.as_str()
}

/// Doubling from 1 s; a room's rows wait for one another, so no jitter is needed.
fn backoff(attempt: u32) -> Millis {
    (1_000_i64 << attempt.saturating_sub(1).min(10)).min(LONGEST_WAIT)
}

/// A failure of what only leads up to sending.
fn may_pass(error: &matrix_sdk::Error) -> Outcome {
    Outcome::Failed {
        why: error.to_string(),
        retry_after: None,
    }
}

/// What a failure means: refused for good, or to be tried again.
fn failed(error: &matrix_sdk::Error) -> Outcome {
    use matrix_sdk::ruma::api::error::{ErrorKind, RetryAfter};

    let why = error.to_string();
    let Some(answer) = error.as_client_api_error() else {
        return Outcome::Failed {
            why,
            retry_after: None,
        };
    };
    match answer.error_kind() {
        Some(ErrorKind::LimitExceeded(limit)) => {
            let retry_after = match &limit.retry_after {
                Some(RetryAfter::Delay(delay)) => Some(clock::millis(*delay)),
                _ => None,
            };
            Outcome::Failed { why, retry_after }
        }
        // Only what the homeserver itself says of the message is final. Anything else, a proxy's
        // page or a limit of the account, may pass.
        Some(
            ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::TooLarge
            | ErrorKind::BadJson
            | ErrorKind::NotJson
            | ErrorKind::InvalidParam
            | ErrorKind::DuplicateAnnotation,
        ) => Outcome::Refused(why),
        Some(ErrorKind::Unknown) if answer.status_code == 400 => Outcome::Refused(why),
        _ => Outcome::Failed {
            why,
            retry_after: None,
        },
    }
}
