//! The service over a real ledger. The homeserver is played by the tests: they say which rooms
//! there are, post what the outbox holds, and let people speak.

mod answering;
mod asking;
mod boards;
mod carriers;
mod deciding;
mod ending;
mod hearing;
mod moving;
mod outcomes;
mod restarting;
mod sessions;
mod streams;
mod talking;
mod waiting;

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::contract::CardOption;
use crate::desk::{Ask, Bot, Heard, Rules, SendKind, Sender, Trust, What};
use crate::elicitation::{Answerers, State, object};
use crate::ledger::{self, Event, Gap, Sending, Undecrypted};

const ROOM: &str = "!deploys:x.org";

/// The rooms as the bot finds them, and what was made and named for boards.
struct KnownRooms(
    Mutex<HashMap<String, Result<RoomFacts, RoomTrouble>>>,
    Mutex<Vec<String>>,
    Mutex<Vec<RoomPerson>>,
    Gate,
);

/// Where whoever asks for people waits, once it is closed, until it is opened again.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    reached: tokio::sync::Notify,
    opened: tokio::sync::Notify,
}

impl Rooms for KnownRooms {
    fn make_board_room<'a>(&'a self, wanted: &'a BoardRoom) -> Looking<'a, String> {
        let invited = wanted.invite.join(" ");
        self.note(format!("{} {:?} {invited}", wanted.board, wanted.name));
        Box::pin(async { Ok(format!("!{}", wanted.board)) })
    }

    fn is_in<'a>(&'a self, _: &'a str, user_id: &'a str) -> Looking<'a, bool> {
        Box::pin(async move { Ok(!user_id.starts_with("@nobody")) })
    }

    fn direct_room<'a>(&'a self, user_id: &'a str, _: Option<&'a str>) -> Looking<'a, String> {
        Box::pin(async move { Ok(format!("!direct-{}", &user_id[1..])) })
    }

    fn name_room<'a>(
        &'a self,
        room_id: &'a str,
        name: &'a str,
        before: Option<&'a str>,
    ) -> Looking<'a, ()> {
        self.note(format!("{room_id} {name} {before:?}"));
        Box::pin(async { Ok(()) })
    }

    fn locate<'a>(&'a self, room: &'a str) -> Looking<'a, RoomFacts> {
        let unknown = || Err(RoomTrouble::Unknown(room.to_owned()));
        let found = self.0.lock().unwrap().get(room).cloned();
        Box::pin(async move { found.unwrap_or_else(unknown) })
    }

    fn people<'a>(&'a self, _: &'a str, lists: &'a [String]) -> Looking<'a, Vec<RoomPerson>> {
        let people = match lists.first() {
            None => Ok(self.2.lock().unwrap().clone()),
            Some(list) => Err(RoomTrouble::Away(format!("{list} cannot be read"))),
        };
        Box::pin(async move {
            let closed = *self.3.closed.lock().unwrap();
            if closed {
                self.3.reached.notify_one();
                self.3.opened.notified().await;
            }
            people
        })
    }

    fn bot(&self) -> &'static str {
        "@elicit:x.org"
    }
}

impl KnownRooms {
    fn note(&self, done: String) {
        self.1.lock().unwrap().push(done);
    }
}

fn facts(room_id: &str) -> RoomFacts {
    RoomFacts {
        room_id: room_id.to_owned(),
        aliases: Vec::new(),
        invited_by: None,
        joined: true,
        may_send: true,
    }
}

/// Something the bot posted.
#[derive(Debug, Clone)]
struct Posted {
    event_id: String,
    sending: Sending,
}

impl Posted {
    fn kind(&self) -> SendKind {
        self.sending.draft.kind
    }

    fn body(&self) -> &str {
        let content = &self.sending.draft.content;
        let newest = content.get("m.new_content").unwrap_or(content);
        newest["body"].as_str().unwrap_or_default()
    }
}

/// The service, its ledger on a disk, and the homeserver around it.
struct House {
    folder: TempDir,
    config: Arc<Config>,
    rooms: Arc<KnownRooms>,
    service: Arc<Service>,
    stop: watch::Sender<bool>,
    events: u32,
}

impl House {
    async fn start() -> Self {
        Self::with("").await
    }

    /// With more in its configuration.
    async fn with(more: &str) -> Self {
        let config = r##"
            [matrix]
            homeserver = "https://x.org"
            user = "@elicit:x.org"
            password = "correct horse battery"
            [agents.builder]
            token = "a-token-of-the-builder"
            [agents.tester]
            token = "a-token-of-the-tester"
            rooms = ["!deploys:x.org", "#team:x.org"]
            [agents.hooked]
            token = "a-token-of-the-hooked"
            webhook = { url = "https://hooked.x.org/", secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }
            "##;
        let config = Config::read(&format!("{config}{more}"), "test", &|_| None).unwrap();
        let rooms = [ROOM, "!other:x.org"]
            .map(|room_id| (room_id.to_owned(), Ok(facts(room_id))))
            .into();
        Self::open(
            tempfile::tempdir().unwrap(),
            Arc::new(config),
            Arc::new(KnownRooms(
                Mutex::new(rooms),
                Mutex::default(),
                Mutex::default(),
                Gate::default(),
            )),
            0,
        )
        .await
    }

    async fn open(
        folder: TempDir,
        config: Arc<Config>,
        rooms: Arc<KnownRooms>,
        events: u32,
    ) -> Self {
        // The threads of a ledger that was dropped just now are still closing it.
        let book = loop {
            match ledger::open(folder.path()) {
                Ok(book) => break book,
                Err(LedgerError::InUse(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
                Err(error) => panic!("{error}"),
            }
        };
        let (stop, stopping) = watch::channel(false);
        let service = Service::start(config.clone(), book, rooms.clone(), stopping)
            .await
            .unwrap();
        Self {
            folder,
            config,
            rooms,
            service,
            stop,
            events,
        }
    }

    /// Everything that is not on the disk is gone.
    async fn restart(self) -> Self {
        let Self {
            folder,
            config,
            rooms,
            service,
            events,
            ..
        } = self;
        assert_eq!(Arc::strong_count(&service), 1);
        drop(service);
        Self::open(folder, config, rooms, events).await
    }

    /// What was closed until now was closed a minute ago.
    fn a_minute_passes(&self) {
        let ledger = rusqlite::Connection::open(self.folder.path().join("ledger.sqlite3")).unwrap();
        ledger.busy_timeout(Duration::from_secs(10)).unwrap();
        let back = "UPDATE elicitations SET closed_at = closed_at - 60000";
        ledger.execute(back, []).unwrap();
    }

    /// How the bot finds a room from now on.
    fn room(&self, name: &str, found: Result<RoomFacts, RoomTrouble>) {
        self.rooms.0.lock().unwrap().insert(name.to_owned(), found);
    }

    async fn ask(&self, agent: &str, ask: Ask) -> Result<Asked, AskError> {
        self.service.ask(agent, ask).await
    }

    /// The builder asks, and the card is posted and seen.
    async fn open_question(&mut self, id: &str) -> String {
        self.ask("builder", question(id)).await.unwrap();
        let posted = self.post().await;
        let card = posted
            .iter()
            .find(|posted| posted.kind() == SendKind::Card)
            .expect("a card is posted");
        self.hear(vec![echo(card)]).await;
        card.event_id.clone()
    }

    /// Sends everything that is to be sent, and gives it back in order.
    async fn post(&mut self) -> Vec<Posted> {
        let mut all = Vec::new();
        while let Some(sending) = self.attempt().await {
            self.events += 1;
            let event_id = format!("$own{}", self.events);
            let sent = self.service.sent(sending.clone(), event_id.clone());
            sent.await.unwrap();
            all.push(Posted { event_id, sending });
        }
        all
    }

    /// Begins to send the next thing; the homeserver has not answered yet.
    async fn attempt(&self) -> Option<Sending> {
        let attempted = self.service.book().write(|ledger| {
            let (mut due, _) = ledger.sendings_due(Millis::MAX)?;
            if due.is_empty() {
                return Ok(None);
            }
            let sending = due.remove(0);
            ledger.mark_attempted(sending.seq, clock::now())?;
            Ok::<_, LedgerError>(Some(sending))
        });
        attempted.await.unwrap()
    }

    async fn hear(&self, heard: Vec<Heard>) {
        self.take_in(Batch {
            heard,
            ..Batch::default()
        })
        .await;
    }

    async fn take_in(&self, mut batch: Batch) {
        for room_id in [ROOM, "!other:x.org"] {
            let here = batch.heard.iter().any(|heard| heard.room_id == room_id)
                || batch
                    .filled
                    .as_ref()
                    .is_some_and(|filled| filled.room_id == room_id);
            if here {
                let bot = Bot {
                    user_id: "@elicit:x.org".to_owned(),
                    display_name: None,
                };
                let known = (Rules::default(), bot);
                batch.rooms.entry(room_id.to_owned()).or_insert(known);
            }
        }
        self.service.take_in(batch).await.unwrap();
    }

    async fn found(&self, id: &str) -> Elicitation {
        let found = self.service.find(&Key::new("builder", id)).await.unwrap();
        found.expect("it was asked")
    }

    async fn state(&self, id: &str) -> State {
        self.found(id).await.state
    }

    /// Who answered, with which option.
    async fn answer(&self, id: &str) -> Option<(String, String)> {
        let answer = self.found(id).await.answer?;
        Some((answer.answered_by, answer.option?.id))
    }

    async fn events(&self, agent: &str) -> Vec<Event> {
        let agent = agent.to_owned();
        let events = self
            .service
            .book()
            .read(move |ledger| ledger.events_after(&agent, 0, 1_000));
        events.await.unwrap()
    }

    /// The types of the events of one question, in order.
    async fn told(&self, id: &str) -> Vec<String> {
        let events = self.events("builder").await.into_iter();
        events
            .filter(|event| event.key.id == id)
            .map(|event| event.event_type)
            .collect()
    }
}

fn question(id: &str) -> Ask {
    Ask {
        elicitation_id: Some(id.to_owned()),
        room: ROOM.to_owned(),
        prompt: format!("What about {id}?"),
        options: vec![
            CardOption::new("deploy", "Deploy"),
            CardOption::new("wait", "Wait"),
        ],
        ..Ask::default()
    }
}

/// A question that is answered in words.
fn in_words(id: &str) -> Ask {
    Ask {
        options: Vec::new(),
        ..question(id)
    }
}

fn heard(user_id: &str, event_id: &str, what: What) -> Heard {
    Heard {
        room_id: ROOM.to_owned(),
        event_id: event_id.to_owned(),
        sender: Sender {
            user_id: user_id.to_owned(),
            display_name: None,
            joined: true,
            power: 0,
            alone: false,
        },
        sent_at: clock::now(),
        trust: Trust::Plain,
        what,
        chat: None,
    }
}

/// A message in the room.
fn says(user_id: &str, event_id: &str, body: &str) -> Heard {
    let said = Said {
        body: body.to_owned(),
        ..Said::default()
    };
    heard(user_id, event_id, What::Message(said))
}

fn mira(event_id: &str, body: &str) -> Heard {
    says("@mira:x.org", event_id, body)
}

fn ben(event_id: &str, body: &str) -> Heard {
    says("@ben:x.org", event_id, body)
}

/// The same message as a rich reply.
fn to(event_id: &str, mut heard: Heard) -> Heard {
    if let What::Message(said) = &mut heard.what {
        said.in_reply_to = Some(event_id.to_owned());
    }
    heard
}

/// The same message as an edit.
fn editing(event_id: &str, mut heard: Heard) -> Heard {
    if let What::Message(said) = &mut heard.what {
        said.replaces = Some(event_id.to_owned());
    }
    heard
}

fn redaction(event_id: &str, redacts: &str) -> Heard {
    let redacts = redacts.to_owned();
    heard("@mira:x.org", event_id, What::Redaction { redacts })
}

/// What the bot posted, coming back in the room's timeline.
fn echo(posted: &Posted) -> Heard {
    let own = What::Own {
        txn_id: Some(posted.sending.txn_id.clone()),
        card: None,
        board_id: None,
    };
    heard("@elicit:x.org", &posted.event_id, own)
}

/// What takes longer than this hangs.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), future)
        .await
        .expect("it should not take so long")
}
