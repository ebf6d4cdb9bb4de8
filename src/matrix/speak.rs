//! Speaking: outbox → room, one row a room at a time, no room waiting for another.
//!
//! pending → attempted → sent, or → dropped when the room refuses it for good. A crash between
//! the homeserver's answer and the mark leaves the row attempted: it is then looked for in the
//! room, and sent again under the same transaction id only if it is not there.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::{EventId, OwnedTransactionId, UInt};
use matrix_sdk::{Client, EncryptionState, Room, RoomState};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{rooms, upgrades};
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
const LONGEST_PAUSE: Millis = 60_000;
/// The most rooms that are spoken in at once.
const AT_ONCE: usize = 64;
/// How often it is looked in which rooms something is to be said, whatever was heard of it.
const LOOK_AT_ALL: Duration = Duration::from_secs(30);
/// How often it is looked whether something is stuck.
const LOOK_FOR_STUCK: Duration = Duration::from_secs(1);
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
        let mut rooms = Rooms::default();
        let mut tasks: JoinSet<(String, Result<Option<Millis>, LedgerError>)> = JoinSet::new();
        let mut look = tokio::time::interval(LOOK_AT_ALL);
        let mut watch = tokio::time::interval(LOOK_FOR_STUCK);
        loop {
            rooms.wake_due(clock::now());
            while tasks.len() < AT_ONCE
                && let Some(room_id) = rooms.next()
            {
                let speaker = self.clone();
                tasks.spawn(async move {
                    let outcome = speaker.speak_in(&room_id).await;
                    (room_id, outcome)
                });
            }
            let wait = rooms.next_due().map_or(PATIENCE, |at| {
                at.saturating_sub(clock::now()).clamp(10, PATIENCE)
            });
            tokio::select! {
                () = told_to_stop(&mut stopping) => break,
                Some(done) = tasks.join_next() => {
                    // A task that panics is a bug that must not go unseen.
                    let (room_id, outcome) = done.map_err(|error| LedgerError::Store(error.to_string()))?;
                    rooms.done(room_id, outcome?);
                }
                note = notes.recv() => match note {
                    Ok(Note::Outbox(room_id)) => rooms.wake(room_id),
                    Ok(_) => {}
                    // Whoever falls behind looks at everything.
                    Err(RecvError::Lagged(_)) => look.reset_immediately(),
                    Err(RecvError::Closed) => break,
                },
                _ = look.tick() => {
                    let now = clock::now();
                    let heads = self.service.book().read(move |ledger| ledger.sendings_due(now));
                    for head in heads.await?.0 {
                        rooms.wake(head.draft.room_id);
                    }
                }
                _ = watch.tick() => {
                    let stuck = self.service.book().read(|ledger| ledger.oldest_attempted());
                    self.service.health().stuck(stuck.await?);
                }
                () = tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())) => {}
            }
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| LedgerError::Store(error.to_string()))?
                .1?;
        }
        Ok(())
    }

    /// Sends what is due in one room, in order. When the next thing there is due, if there is one.
    async fn speak_in(&self, room_id: &str) -> Result<Option<Millis>, LedgerError> {
        let stopping = self.service.stopping();
        loop {
            let (room, now) = (room_id.to_owned(), clock::now());
            let next = self
                .service
                .book()
                .read(move |ledger| ledger.next_sending(&room, now));
            let Some((sending, due)) = next.await? else {
                return Ok(None);
            };
            let ending = *stopping.borrow();
            if due > now || ending {
                return Ok(Some(due));
            }
            self.say(sending).await?;
        }
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
        let room = rooms::by_id(&self.client, &sending.draft.room_id);
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
        Ok(
            match send(&room, sending.draft.kind, content, txn_id).await {
                Ok(event_id) => Outcome::Sent(event_id),
                Err(error) => match failed(&error) {
                    // Its question goes on in the room's successor, unless that is no true one.
                    Outcome::Refused(_)
                        if matches!(sending.draft.kind, SendKind::Card | SendKind::Root)
                            && upgrades::may_move(&room, now).await =>
                    {
                        Outcome::NotYet("the room was upgraded")
                    }
                    outcome => outcome,
                },
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
            EncryptionState::Encrypted
                if matches!(kind, SendKind::Card | SendKind::Root | SendKind::Connect) =>
            {
                Some(Outcome::NotYet("waiting for a person to join"))
            }
            EncryptionState::Encrypted => Some(Outcome::Refused(
                "nobody is left in the room to read it".to_owned(),
            )),
            EncryptionState::Unknown => Some(Outcome::NotYet("the room's encryption is not known")),
        }
    }

    /// The root of the thread of the session that something is about.
    async fn root_of(&self, sending: &Sending) -> Result<Option<String>, LedgerError> {
        match sending.draft.key.session() {
            Some(id) => self.service.root_of(id).await,
            None => Ok(None),
        }
    }

    /// The event of this kind about the same message, if it is in the room.
    async fn said_before(
        &self,
        kind: SendKind,
        sending: &Sending,
    ) -> Result<Option<String>, LedgerError> {
        self.service.said_before(kind, &sending.draft).await
    }

    /// The content to send; an edit gets the event it edits. `None` if there is none.
    async fn content(&self, sending: &Sending) -> Result<Option<Value>, LedgerError> {
        let mut content = sending.draft.content.clone();
        let edited = match sending.draft.kind {
            SendKind::Card | SendKind::InThread if sending.draft.key.session().is_some() => {
                let root = self.root_of(sending).await?;
                return Ok(root.map(|root| {
                    prose::relate_thread(&mut content, &root);
                    content
                }));
            }
            SendKind::Card
            | SendKind::Reaction
            | SendKind::Notice
            | SendKind::Waiting
            | SendKind::Root
            | SendKind::InThread
            | SendKind::Connect => return Ok(Some(content)),
            SendKind::WaitingOver => {
                let shown = self.said_before(SendKind::Waiting, sending).await?;
                return Ok(shown.map(|event_id| json!({ "redacts": event_id })));
            }
            SendKind::CardEdit => {
                let found = self.service.find(&sending.draft.key).await?;
                found.and_then(|elicitation| elicitation.event_id)
            }
            SendKind::RootEdit => self.root_of(sending).await?,
            SendKind::ConnectOver => {
                self.service
                    .sent_as(SendKind::Connect, &sending.draft)
                    .await?
            }
            SendKind::NoticeEdit => self.said_before(SendKind::Notice, sending).await?,
        };
        Ok(edited.map(|event_id| {
            prose::relate_edit(&mut content, &event_id);
            content
        }))
    }
}

/// Waits until the process is to end.
async fn told_to_stop(stopping: &mut watch::Receiver<bool>) {
    // That nobody can tell any more is an end as well.
    let _ = stopping.wait_for(|&stopping| stopping).await;
}

/// The rooms in which something is to be said.
#[derive(Default)]
struct Rooms {
    /// Those to be spoken in now, in the order they were woken.
    ready: VecDeque<String>,
    /// Those that are spoken in, and whether something came up there meanwhile.
    busy: HashMap<String, bool>,
    /// Those that wait, and until when.
    waiting: BTreeSet<(Millis, String)>,
    /// Those in `ready`.
    listed: HashSet<String>,
}

impl Rooms {
    /// There may be something to be said in a room.
    fn wake(&mut self, room_id: String) {
        if let Some(again) = self.busy.get_mut(&room_id) {
            *again = true;
        } else if self.listed.insert(room_id.clone()) {
            self.ready.push_back(room_id);
        }
    }

    /// Wakes those whose time has come.
    fn wake_due(&mut self, now: Millis) {
        while self.next_due().is_some_and(|due| due <= now)
            && let Some((_, room_id)) = self.waiting.pop_first()
        {
            self.wake(room_id);
        }
    }

    /// The next room to be spoken in; it is busy until [`Rooms::done`].
    fn next(&mut self) -> Option<String> {
        let room_id = self.ready.pop_front()?;
        self.listed.remove(&room_id);
        self.busy.insert(room_id.clone(), false);
        Some(room_id)
    }

    /// A room has been spoken in; `until` is when there is more to be said.
    fn done(&mut self, room_id: String, until: Option<Millis>) {
        let again = self.busy.remove(&room_id).unwrap_or(false);
        if again {
            self.wake(room_id);
        } else if let Some(until) = until {
            self.waiting.insert((until, room_id));
        }
    }

    fn next_due(&self) -> Option<Millis> {
        self.waiting.first().map(|&(due, _)| due)
    }
}

/// Sends a content, or redacts what it names; the event that came of it.
async fn send(
    room: &Room,
    kind: SendKind,
    content: Value,
    txn_id: OwnedTransactionId,
) -> matrix_sdk::Result<String> {
    if kind == SendKind::WaitingOver
        && let Some(Ok(event_id)) = content["redacts"].as_str().map(EventId::parse)
    {
        let redacted = room.redact(&event_id, None, Some(txn_id)).await?;
        return Ok(redacted.event_id.to_string());
    }
    let sending = room.send_raw(kind.event_type(), content);
    let sent = sending.with_transaction_id(&txn_id).await?;
    Ok(sent.response.event_id.to_string())
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
    // A card names its question; what has none is known by its transaction id alone.
    let (card, key) = (&event["content"][CARD_KEY], &sending.draft.key);
    let is_asker = if let Some(board) = key.board() {
        card["board_id"] == board
    } else {
        key.session().is_some() || card["asked_by"] == key.origin.as_str()
    };
    sending.draft.kind == SendKind::Card && card["elicitation_id"] == key.id.as_str() && is_asker
}

/// Doubling from 1 s; a room's rows wait for one another, so no jitter is needed.
fn backoff(attempt: u32) -> Millis {
    (1_000_i64 << attempt.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
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
