//! What the server knows: accounts, sessions, rooms, and one log of everything that happened.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::SERVER_NAME;
use super::call::Refusal;
use super::keys::Keys;
use super::sessions::Sessions;

/// The largest event a homeserver takes.
const LARGEST: usize = 65_536;

/// An event of a room.
#[derive(Debug)]
pub struct Event {
    pub id: String,
    pub kind: String,
    pub sender: String,
    pub state_key: Option<String>,
    pub content: Value,
    /// The access token and the transaction id it was sent with.
    pub txn: Option<(String, String)>,
    /// Its place in the log.
    pub(super) position: u64,
    /// As it is served, without what only its sender sees.
    pub(super) text: String,
}

impl Event {
    /// As it is served to whoever holds this device.
    pub(super) fn seen_by(&self, device: &str) -> String {
        match &self.txn {
            Some((sent_by, txn)) if sent_by == device => {
                let unsigned = json!({"transaction_id": txn});
                let open = &self.text[..self.text.len() - 1];
                format!("{open},\"unsigned\":{unsigned}}}")
            }
            _ => self.text.clone(),
        }
    }

    /// As JSON; for one that is malformed on purpose, nothing.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

pub(super) type StateMap = BTreeMap<(String, String), Arc<Event>>;

/// A room.
#[derive(Debug, Default)]
pub struct Room {
    /// Oldest first, from where the history begins.
    pub timeline: Vec<Arc<Event>>,
    /// The state before the timeline.
    pub(super) base: StateMap,
    /// The state now.
    pub(super) state: StateMap,
    pub(super) sent: HashMap<(String, String), String>,
    annotated: HashSet<(String, String, String)>,
}

impl Room {
    pub(super) fn state(&self, kind: &str, key: &str) -> Option<&Arc<Event>> {
        self.state.get(&(kind.to_owned(), key.to_owned()))
    }

    pub(super) fn membership(&self, user: &str) -> Option<&str> {
        self.state("m.room.member", user)?.content["membership"].as_str()
    }

    pub(super) fn is_joined(&self, user: &str) -> bool {
        self.membership(user) == Some("join")
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Arc<Event>> {
        let members = self.state.iter();
        members
            .filter(|((kind, _), _)| kind == "m.room.member")
            .map(|(_, event)| event)
    }

    pub(super) fn count(&self, membership: &str) -> usize {
        let members = self.members();
        members
            .filter(|event| event.content["membership"] == membership)
            .count()
    }

    fn power_to_send(&self, user: &str, kind: &str, is_state: bool) -> Result<(), Refusal> {
        let Some(levels) = self.state("m.room.power_levels", "") else {
            return Ok(());
        };
        let levels = &levels.content;
        let has = &levels["users"][user];
        let has = has.as_i64().or_else(|| levels["users_default"].as_i64());
        let default = if is_state {
            levels["state_default"].as_i64().unwrap_or(50)
        } else {
            levels["events_default"].as_i64().unwrap_or(0)
        };
        let needs = levels["events"][kind].as_i64().unwrap_or(default);
        if has.unwrap_or(0) >= needs {
            Ok(())
        } else {
            Err(Refusal::forbidden(
                "You don't have permission to post that to the room.",
            ))
        }
    }
}

/// Something that happened, in its order.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// An event in a room.
    Event(Arc<str>, Arc<Event>),
    /// Anything in a room's state section, as it is.
    State(Arc<str>, String),
    /// Anything in a room's account data, as it is.
    RoomAccountData(Arc<str>, String),
    /// Anything in the account data, as it is.
    AccountData(String),
    /// Anything sent to the devices, as it is.
    ToDevice(String),
}

/// Everything there is.
#[derive(Debug, Default)]
pub struct World {
    pub sessions: Sessions,
    pub(super) rooms: BTreeMap<Arc<str>, Room>,
    pub(super) aliases: BTreeMap<String, String>,
    pub(super) account_data: BTreeMap<(String, String), Value>,
    pub(super) keys: Keys,
    log: VecDeque<Entry>,
    /// How much of the log is forgotten.
    forgotten: u64,
    names: u64,
    /// The most events of a room in one sync, whatever the filter says.
    pub timeline_limit: Option<usize>,
    /// The most events in one page of history, whatever is asked for.
    pub page_limit: Option<usize>,
    /// What each device was told of a room's members.
    pub(super) told_members: HashSet<(String, Arc<str>, String)>,
    /// The last position from which a sync was asked for.
    pub(super) heard: u64,
    /// The last answer to a sync, and the token it was asked with.
    pub(super) last_sync: Option<(Option<u64>, String)>,
}

impl World {
    /// A room of `creator` with these people in it; its id.
    pub fn room(&mut self, creator: &str, joined: &[&str]) -> String {
        let id = format!("!{}:{SERVER_NAME}", self.name("room"));
        self.rooms.insert(id.as_str().into(), Room::default());
        let mut set = |kind: &str, key: &str, content: Value| {
            self.record(&id, creator, kind, Some(key), &content, None)
        };
        let create = json!({"room_version": "11"});
        set("m.room.create", "", create);
        set(
            "m.room.member",
            creator,
            json!({"membership": "join", "displayname": local(creator)}),
        );
        let levels = json!({"users": {creator: 100}, "users_default": 0, "events_default": 0});
        set("m.room.power_levels", "", levels);
        set("m.room.join_rules", "", json!({"join_rule": "invite"}));
        set(
            "m.room.history_visibility",
            "",
            json!({"history_visibility": "shared"}),
        );
        for user in joined {
            self.member(&id, user, user, "join");
        }
        id
    }

    /// Somebody sets a membership, without anybody asking whether they may.
    pub fn member(&mut self, room: &str, sender: &str, user: &str, membership: &str) -> String {
        let content = json!({"membership": membership, "displayname": local(user)});
        self.record(room, sender, "m.room.member", Some(user), &content, None)
    }

    /// Somebody says something in a room they are in; the event.
    pub fn says(&mut self, room: &str, user: &str, body: &str) -> String {
        let content = json!({"msgtype": "m.text", "body": body});
        self.sends(room, user, "m.room.message", None, &content)
    }

    /// Somebody sends an event to a room they are in; the event.
    pub fn sends(
        &mut self,
        room: &str,
        user: &str,
        kind: &str,
        state_key: Option<&str>,
        content: &Value,
    ) -> String {
        self.may_send(room, user, kind, state_key.is_some())
            .unwrap_or_else(|refusal| panic!("{user} in {room}: {refusal:?}"));
        self.record(room, user, kind, state_key, content, None)
    }

    /// Puts anything into a room's timeline as it is, malformed or not.
    pub fn inject_event(&mut self, room: &str, text: &str) {
        let parsed: Value = serde_json::from_str(text).unwrap_or_default();
        let string = |key: &str| parsed[key].as_str().unwrap_or_default().to_owned();
        let event = Event {
            id: string("event_id"),
            kind: string("type"),
            sender: string("sender"),
            state_key: None,
            content: parsed["content"].clone(),
            txn: None,
            position: self.position() + 1,
            text: text.to_owned(),
        };
        self.keep(room, event);
    }

    /// Puts anything into the state section of a room's next sync.
    pub fn inject_state(&mut self, room: &str, text: &str) {
        self.log
            .push_back(Entry::State(room.into(), text.to_owned()));
    }

    /// Puts anything into a room's account data.
    pub fn inject_room_account_data(&mut self, room: &str, text: &str) {
        self.log
            .push_back(Entry::RoomAccountData(room.into(), text.to_owned()));
    }

    /// Puts anything into the account data.
    pub fn inject_account_data(&mut self, text: &str) {
        self.log.push_back(Entry::AccountData(text.to_owned()));
    }

    /// Sends anything to the devices.
    pub fn inject_to_device(&mut self, text: &str) {
        self.log.push_back(Entry::ToDevice(text.to_owned()));
    }

    /// An alias leads to a room.
    pub fn alias(&mut self, alias: &str, room: &str) {
        self.aliases.insert(alias.to_owned(), room.to_owned());
    }

    /// Forgets what was said so far: a long run needs no history.
    pub fn forget_history(&mut self) {
        self.forgotten += u64::try_from(self.log.len()).unwrap();
        self.log.clear();
        for room in self.rooms.values_mut() {
            room.timeline.clear();
            room.base.clone_from(&room.state);
            room.sent.clear();
            room.annotated.clear();
        }
    }

    /// A room by its id.
    pub fn room_by_id(&self, room: &str) -> &Room {
        self.rooms.get(room).unwrap_or_else(|| panic!("no {room}"))
    }

    /// The events of a room, oldest first.
    pub fn timeline(&self, room: &str) -> Vec<Value> {
        let timeline = &self.room_by_id(room).timeline;
        timeline.iter().map(|event| event.json()).collect()
    }

    /// Whether somebody has asked to be told what comes after everything there is.
    pub fn is_heard(&self) -> bool {
        self.heard == self.position()
    }

    /// Up to where somebody has heard everything.
    pub fn heard_until(&self) -> u64 {
        self.heard
    }

    /// Where the log ends.
    pub fn position(&self) -> u64 {
        self.forgotten + u64::try_from(self.log.len()).unwrap()
    }

    /// Where the log begins.
    pub(super) fn begin(&self) -> u64 {
        self.forgotten
    }

    /// Whether there is a log after this position.
    pub(super) fn knows(&self, position: u64) -> bool {
        (self.forgotten..=self.position()).contains(&position)
    }

    /// What happened after a position, with its places.
    pub(super) fn since(&self, position: u64) -> impl Iterator<Item = &Entry> {
        let skip = position.saturating_sub(self.forgotten);
        self.log.range(usize::try_from(skip).unwrap()..)
    }

    /// Whether somebody may send something to a room.
    pub(super) fn may_send(
        &self,
        room: &str,
        user: &str,
        kind: &str,
        is_state: bool,
    ) -> Result<(), Refusal> {
        let room = self.rooms.get(room);
        let Some(room) = room.filter(|room| room.is_joined(user)) else {
            return Err(Refusal::forbidden(&format!("User {user} not in room")));
        };
        room.power_to_send(user, kind, is_state)
    }

    /// Takes an event that a client sends; its id. The same transaction is the same event.
    pub(super) fn send(
        &mut self,
        room: &str,
        token: &str,
        kind: &str,
        txn: &str,
        content: &Value,
    ) -> Result<String, Refusal> {
        let session = self.sessions.find(token)?;
        self.may_send(room, &session.user, kind, false)?;
        let there = &self.rooms[room];
        let by = (session.device.clone(), txn.to_owned());
        if let Some(event) = there.sent.get(&by) {
            return Ok(event.clone());
        }
        if content.to_string().len() > LARGEST {
            return Err(Refusal::new(413, "M_TOO_LARGE", "event too large"));
        }
        if !content.is_object() {
            return Err(Refusal::new(400, "M_BAD_JSON", "Content must be an object"));
        }
        let relation = &content["m.relates_to"];
        if kind == "m.reaction" {
            let part = |key: &str| relation[key].as_str().unwrap_or_default().to_owned();
            let annotation = (session.user.clone(), part("event_id"), part("key"));
            let there = self.rooms.get_mut(room).expect("looked up above");
            if !there.annotated.insert(annotation) {
                let why = "Can't send same reaction twice";
                return Err(Refusal::new(400, "M_DUPLICATE_ANNOTATION", why));
            }
        }
        let id = self.record(room, &session.user, kind, None, content, Some(by.clone()));
        let there = self.rooms.get_mut(room).expect("looked up above");
        there.sent.insert(by, id.clone());
        Ok(id)
    }

    fn record(
        &mut self,
        room: &str,
        sender: &str,
        kind: &str,
        state_key: Option<&str>,
        content: &Value,
        txn: Option<(String, String)>,
    ) -> String {
        let id = format!("${}:{SERVER_NAME}", self.name("event"));
        let mut json = json!({
            "event_id": id, "type": kind, "sender": sender, "origin_server_ts": now(),
            "content": content,
        });
        if let Some(key) = state_key {
            json["state_key"] = json!(key);
        }
        let event = Event {
            id: id.clone(),
            kind: kind.to_owned(),
            sender: sender.to_owned(),
            state_key: state_key.map(str::to_owned),
            content: content.clone(),
            txn,
            position: self.position() + 1,
            text: json.to_string(),
        };
        self.keep(room, event);
        id
    }

    fn keep(&mut self, room: &str, event: Event) {
        let (name, _) = self
            .rooms
            .get_key_value(room)
            .expect("a room of this server");
        let name = name.clone();
        let there = self.rooms.get_mut(room).expect("looked up above");
        let event = Arc::new(event);
        if let Some(key) = &event.state_key {
            let key = (event.kind.clone(), key.clone());
            there.state.insert(key, event.clone());
        }
        there.timeline.push(event.clone());
        self.log.push_back(Entry::Event(name, event));
    }

    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        let mut name = stem.to_owned();
        let _ = write!(name, "{}", self.names);
        name
    }
}

fn local(user: &str) -> &str {
    user.trim_start_matches('@')
        .split(':')
        .next()
        .unwrap_or_default()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a homeserver has a clock of its own"
)]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or(Duration::ZERO).as_millis()).unwrap_or(0)
}
