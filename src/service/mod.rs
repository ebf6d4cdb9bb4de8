//! What the program does for its users, one method a wish: ask, find, wait, cancel, take in what
//! was heard, note what was posted, let expire.
//!
//! Every change is one transaction of the ledger; what comes back is committed.

mod asking;
mod boards;
mod carried;
mod health;
mod hearing;
mod moving;
mod posting;
mod sessions;
mod streams;
mod talk;
mod talking;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

pub use asking::{AskError, Asked, CancelError};
pub use boards::{BoardError, BoardRoom, Reconciled, Taken};
pub use health::{Health, Readiness};
pub use hearing::{Batch, Filled};
pub use sessions::{NewSession, SessionError};
pub use streams::{DigestError, RoomPerson};

use crate::accounts::Accounts;
use crate::clock::{self, Millis};
use crate::config::Config;
use crate::desk::{Interest, Said, Watch};
use crate::digest;
use crate::elicitation::{Elicitation, Key};
use crate::ledger::{Book, LedgerError, Note, Page, Sought};
use crate::reply::{self, Commands};

/// How often it is looked whether the first sync has come.
const FIRST_SYNC: Duration = Duration::from_millis(10);

/// A room as the bot stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomFacts {
    /// Its id.
    pub room_id: String,
    /// Its aliases, as far as they are known, and the ids of the rooms whose place it took.
    pub aliases: Vec<String>,
    /// Whether the bot is in it.
    pub joined: bool,
    /// Who invited the bot, while it is only invited.
    pub invited_by: Option<String>,
    /// Whether the bot's power suffices to send messages.
    pub may_send: bool,
}

/// Why nothing can be said about a room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoomTrouble {
    /// Not the name of a room that exists, as far as the homeserver knows.
    #[error("there is no room {0}")]
    Unknown(String),
    /// The homeserver does not answer.
    #[error("the homeserver does not answer: {0}")]
    Away(String),
}

/// What comes of asking about a room, later.
pub type Looking<'a, T> = Pin<Box<dyn Future<Output = Result<T, RoomTrouble>> + Send + 'a>>;

/// What the service wants to know of the bot's rooms.
pub trait Rooms: Send + Sync {
    /// Finds a room by id or alias.
    fn locate<'a>(&'a self, room: &'a str) -> Looking<'a, RoomFacts>;

    /// The room that was made for a board; it is made if there is none.
    fn make_board_room<'a>(&'a self, wanted: &'a BoardRoom) -> Looking<'a, String>;

    /// Whether somebody is in a room.
    fn is_in<'a>(&'a self, room_id: &'a str, user_id: &'a str) -> Looking<'a, bool>;

    /// The encrypted room in which one person alone is spoken to: the one that is known, as long as
    /// the bot is in it and they are in it or invited, else a new one.
    fn direct_room<'a>(&'a self, user_id: &'a str, known: Option<&'a str>) -> Looking<'a, String>;

    /// Gives a room a name, unless it has one that is not `before`, or not the bot's doing.
    fn name_room<'a>(
        &'a self,
        room_id: &'a str,
        name: &'a str,
        before: Option<&'a str>,
    ) -> Looking<'a, ()>;

    /// Everybody who is or was in a room, without the bot. `lists` are the rooms, by id or alias, of
    /// the policy lists that count there.
    fn people<'a>(&'a self, room_id: &'a str, lists: &'a [String]) -> Looking<'a, Vec<RoomPerson>>;

    /// The bot's user id.
    fn bot(&self) -> &str;
}

/// The service. One for the process, behind an [`Arc`].
pub struct Service {
    config: Arc<Config>,
    book: Book,
    rooms: Arc<dyn Rooms>,
    watch: Arc<RwLock<Watch>>,
    health: Health,
    stopping: watch::Receiver<bool>,
    commands: Commands,
    /// What people call the agents.
    calls: Vec<String>,
    boards: BTreeMap<String, boards::Board>,
    /// What is known of the homeserver's accounts, where its admin API may be asked.
    accounts: Option<Accounts>,
}

impl Service {
    /// A service over an open ledger. `stopping` turns `true` when the process is to end.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn start(
        config: Arc<Config>,
        book: Book,
        rooms: Arc<dyn Rooms>,
        stopping: watch::Receiver<bool>,
    ) -> Result<Arc<Self>, LedgerError> {
        let since = clock::now().saturating_sub(hearing::STILL_WATCHED);
        let known: Vec<(String, bool)> = book.read(move |ledger| ledger.rooms(since)).await?;
        let mut watch = Watch::default();
        for (room_id, pending) in known {
            watch.note(
                &room_id,
                if pending {
                    Interest::Pending
                } else {
                    Interest::Over
                },
            );
        }
        if !config.streams.is_empty() {
            // The first text takes longer than all others: the tables are made for it. Nothing waits.
            tokio::task::spawn_blocking(digest::make_ready);
        }
        Ok(Arc::new(Self {
            commands: Commands::new(&config.matrix.prefix),
            calls: (config.agents.keys())
                .map(|agent| config.call_of(agent).to_owned())
                .collect(),
            boards: boards::boards_of(&config),
            accounts: config.synapse_admin.as_ref().map(Accounts::new),
            config,
            book,
            rooms,
            watch: Arc::new(RwLock::new(watch)),
            health: Health::new(),
            stopping,
        }))
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The ledger.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The health of the process.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Whether the bot can hear and speak.
    pub fn readiness(&self) -> Readiness {
        self.health.readiness(clock::now())
    }

    /// Waits for the first committed sync; `false` when the process is to end before it.
    pub async fn first_sync(&self) -> bool {
        let mut stopping = self.stopping();
        while self.health.synced_at().is_none() {
            tokio::select! {
                _ = stopping.wait_for(|&stopping| stopping) => return false,
                () = tokio::time::sleep(FIRST_SYNC) => {}
            }
        }
        true
    }

    /// Turns `true` when the process is to end.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.clone()
    }

    /// Whether a message may matter. Cheap: asked of every message of every room.
    pub fn wants(&self, room_id: &str, said: &Said) -> bool {
        self.watching(|watch| watch.wants(room_id, said))
            || self.commands.may_be_in(&said.body)
            || self.calls_somebody(&said.body)
    }

    /// Whether a message addresses an agent.
    fn calls_somebody(&self, body: &str) -> bool {
        let calls: Vec<&str> = self.calls.iter().map(String::as_str).collect();
        reply::addressed(body, &calls).is_some()
    }

    /// Whether a message may begin a session.
    fn may_begin(&self, said: &Said) -> bool {
        self.commands.may_be_in(&said.body) || self.calls_somebody(&said.body)
    }

    /// Whether a raw event may hold a command or address an agent.
    pub fn may_matter(&self, raw: &str) -> bool {
        self.commands.may_be_in(raw) || self.calls.iter().any(|call| may_call(raw, call))
    }

    /// The commands that people may give.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// What may matter in a room.
    pub fn interest(&self, room_id: &str) -> Option<Interest> {
        self.watching(|watch| watch.interest(room_id))
    }

    /// The rooms in which a question is queued or open, as far as is known without looking.
    pub fn pending_rooms(&self) -> Vec<String> {
        self.watching(Watch::pending)
    }

    /// The rooms in which something was asked, as far as is known without looking.
    pub fn watched_rooms(&self) -> Vec<String> {
        self.watching(Watch::rooms)
    }

    /// Watches a room in which whatever is said matters to an agent, and nothing need be asked.
    pub fn watch_stream(&self, room_id: &str) {
        if self.interest(room_id).is_none() {
            self.watch_mut(|watch| watch.note(room_id, Interest::Over));
        }
    }

    /// Watches a room in which something is about to be found.
    pub fn watch_room(&self, room_id: &str) {
        self.watch_mut(|watch| watch.note(room_id, Interest::Pending));
    }

    fn watching<T>(&self, look: impl FnOnce(&Watch) -> T) -> T {
        // A poisoned lock only means that a reader panicked; the map itself is whole.
        look(
            &self
                .watch
                .read()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }

    fn watch_mut<T>(&self, change: impl FnOnce(&mut Watch) -> T) -> T {
        change(
            &mut self
                .watch
                .write()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }

    /// Whether an agent has a webhook.
    fn has_webhook(config: &Config, origin: &str) -> bool {
        config
            .agents
            .get(origin)
            .is_some_and(|agent| agent.webhook.is_some())
    }

    /// The elicitation that an agent knows by an id: its own, or one whose answer is routed to it.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn find_of(&self, agent: &str, id: &str) -> Result<Option<Elicitation>, LedgerError> {
        let (agent, id) = (agent.to_owned(), id.to_owned());
        self.book
            .read(move |ledger| ledger.find_of(&agent, &id))
            .await
    }

    /// One elicitation of an origin.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn find(&self, key: &Key) -> Result<Option<Elicitation>, LedgerError> {
        let key = key.clone();
        self.book.read(move |ledger| ledger.find(&key)).await
    }

    /// One page of the elicitations that an agent may read.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn list(&self, sought: Sought) -> Result<Page, LedgerError> {
        self.book.read(move |ledger| ledger.list(&sought)).await
    }

    /// An elicitation once it is closed, or as it stands when the time is up or the process ends.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn wait(
        &self,
        key: &Key,
        at_most: Duration,
    ) -> Result<Option<Elicitation>, LedgerError> {
        // Listening begins before the first look: what is committed in between is not missed.
        let mut notes = self.book.notes();
        let mut stopping = self.stopping.clone();
        let deadline = tokio::time::sleep(at_most);
        tokio::pin!(deadline);
        let mut found = self.find(key).await?;
        while found
            .as_ref()
            .is_some_and(|elicitation| !elicitation.state.is_closed())
        {
            let look_again = tokio::select! {
                () = &mut deadline => None,
                _ = stopping.wait_for(|&stopping| stopping) => None,
                note = notes.recv() => match note {
                    Ok(Note::Closed(closed)) => Some(closed == *key),
                    Ok(_) => Some(false),
                    Err(RecvError::Lagged(_)) => Some(true),
                    Err(RecvError::Closed) => None,
                },
            };
            match look_again {
                Some(true) => found = self.find(key).await?,
                Some(false) => {}
                // It may have come to the room meanwhile: that is no end, but it is news.
                None => return self.find(key).await,
            }
        }
        Ok(found)
    }

    /// The id of a room that is given by id or alias; `None` if there is none.
    ///
    /// # Errors
    /// When the homeserver does not answer.
    pub async fn room_id_of(&self, room: &str) -> Result<Option<String>, RoomTrouble> {
        if room.starts_with('!') {
            return Ok(Some(room.to_owned()));
        }
        match self.rooms.locate(room).await {
            Ok(facts) => Ok(Some(facts.room_id)),
            Err(RoomTrouble::Unknown(_)) => Ok(None),
            Err(away @ RoomTrouble::Away(_)) => Err(away),
        }
    }

    /// Deletes what is older than the configuration keeps.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn prune(&self, now: Millis) -> Result<u64, LedgerError> {
        let before = now.saturating_sub(clock::millis(self.config.ledger.keep));
        self.book.write(move |ledger| ledger.prune(before)).await
    }
}

/// Whether the body in a raw event may begin with what an agent is called. Asked of every message
/// of every room, before anything is parsed: it may say yes too often, never too seldom.
fn may_call(raw: &str, call: &str) -> bool {
    const BODY: &str = "\"body\":\"";
    // What is not plain letters may be written in more ways than one.
    if !call.is_ascii() {
        return raw.contains(BODY);
    }
    raw.match_indices(BODY).any(|(at, _)| {
        let body = raw[at + BODY.len()..].trim_start_matches(['@', ' ']);
        body.get(..call.len())
            .is_none_or(|start| start.eq_ignore_ascii_case(call) || !start.is_ascii())
    })
}

#[cfg(test)]
mod tests;
