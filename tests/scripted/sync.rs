//! Answers to a sync, and the waiting for them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use serde_json::{Value, json};

use super::Inner;
use super::call::{Call, Endpoint, Refusal};
use super::faults::{Fault, respond};
use super::sessions::Session;
use super::world::{Entry, Event, Room, StateMap, World};

/// How long a sync is held open at most.
const LONGEST: u64 = 60_000;
/// The most events of a room in one response where the filter says nothing.
const TIMELINE: u64 = 20;

/// Answers a sync: at once if there is news, otherwise when there is or the time is up.
pub(super) async fn sync(server: &Inner, call: &Call) -> Response {
    let timeout = call.number("timeout").unwrap_or(0).min(LONGEST);
    let until = tokio::time::Instant::now() + Duration::from_millis(timeout);
    let mut moved = server.moved.subscribe();
    loop {
        let timed_out = tokio::time::Instant::now() >= until;
        if let Some((outcome, fault)) = look(server, call, timed_out) {
            let (status, body) = match outcome {
                Ok(body) => (200, body),
                Err(refusal) => (refusal.status, refusal.body.to_string()),
            };
            return respond(status, body, fault.as_ref()).await;
        }
        // Whatever changes while this looks is seen: the receiver is older than the look.
        let _ = tokio::time::timeout_at(until, moved.changed()).await;
    }
}

/// The answer, if there is one now, and what goes wrong with it.
fn look(
    server: &Inner,
    call: &Call,
    timed_out: bool,
) -> Option<(Result<String, Refusal>, Option<Fault>)> {
    let mut world = server.world.lock().unwrap();
    let mut faults = server.faults.lock().unwrap();
    let fault = faults.next(Endpoint::Sync);
    if let Some(fault) = &fault
        && !fault.is_carried_out()
    {
        return Some((Ok(String::new()), faults.take(Endpoint::Sync)));
    }
    let token = call.token.as_deref().unwrap_or_default();
    let session = match world.sessions.find(token) {
        Ok(session) => session,
        Err(refusal) => return Some((Err(refusal), None)),
    };
    let since = match call.query.get("since").map(|since| position(since)) {
        Some(Some(position)) if world.knows(position) => Some(position),
        Some(_) => {
            let refusal = Refusal::new(400, "M_UNKNOWN", "Unknown since token");
            return Some((Err(refusal), None));
        }
        None => None,
    };
    world.heard = since.unwrap_or(0);
    let news = since.is_none_or(|since| world.position() > since);
    let now = fault.as_ref().is_some_and(Fault::is_immediate);
    if !(news || timed_out || now) {
        return None;
    }
    let fault = faults.take(Endpoint::Sync);
    let last = world.last_sync.clone();
    let body = match (&fault, last) {
        (Some(Fault::Replay), Some((_, body))) => body,
        (Some(Fault::Overlap), Some((before, _))) => {
            answer(&mut world, &session, before, call, None)
        }
        (Some(Fault::SameToken), _) => answer(&mut world, &session, since, call, since),
        _ => answer(&mut world, &session, since, call, None),
    };
    world.last_sync = Some((since, body.clone()));
    Some((Ok(body), fault))
}

/// The position that a token names.
pub(super) fn position(token: &str) -> Option<u64> {
    token.strip_prefix('s')?.parse().ok()
}

/// What a room has to tell.
#[derive(Default)]
struct News {
    events: Vec<Arc<Event>>,
    state: Vec<String>,
    account_data: Vec<String>,
}

fn answer(
    world: &mut World,
    session: &Session,
    since: Option<u64>,
    call: &Call,
    next_batch: Option<u64>,
) -> String {
    let limit = call.filter()["room"]["timeline"]["limit"].as_u64();
    let limit = usize::try_from(limit.unwrap_or(TIMELINE)).unwrap();
    let limit = world.timeline_limit.map_or(limit, |most| most.min(limit));
    if since.is_none() {
        let device = session.device.as_str();
        world.told_members.retain(|(told, ..)| told != device);
    }
    let (mut account_data, mut to_device) = (Vec::new(), Vec::new());
    let mut rooms: BTreeMap<Arc<str>, News> = BTreeMap::new();
    for entry in world.since(since.unwrap_or(0).max(world.begin())) {
        match entry {
            Entry::Event(room, event) => {
                let news = rooms.entry(room.clone()).or_default();
                news.events.push(event.clone());
            }
            Entry::State(room, text) => {
                rooms
                    .entry(room.clone())
                    .or_default()
                    .state
                    .push(text.clone());
            }
            Entry::RoomAccountData(room, text) => {
                let news = rooms.entry(room.clone()).or_default();
                news.account_data.push(text.clone());
            }
            Entry::AccountData(text) => account_data.push(text.clone()),
            Entry::ToDevice(text) => to_device.push(text.clone()),
        }
    }
    if since.is_none() {
        for name in world.rooms.keys() {
            rooms.entry(name.clone()).or_default();
        }
    }
    let mut parts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, news) in rooms {
        let told = std::mem::take(&mut world.told_members);
        let mut telling = Telling {
            session,
            name: &name,
            room: &world.rooms[&name],
            told,
            limit,
            initial: since.is_none(),
        };
        if let Some((section, text)) = telling.tell(&news) {
            let name = Value::from(&*name);
            parts
                .entry(section)
                .or_default()
                .push(format!("{name}:{text}"));
        }
        world.told_members = telling.told;
    }
    let part = |name: &str| {
        parts
            .get(name)
            .map(|rooms| rooms.join(","))
            .unwrap_or_default()
    };
    let next_batch = next_batch.unwrap_or_else(|| world.position());
    let keys = world.keys.count(&session.user, &session.device);
    format!(
        "{{\"next_batch\":\"s{next_batch}\",\"rooms\":{{\"join\":{{{}}},\"invite\":{{{}}},\
         \"leave\":{{{}}}}},\"account_data\":{{\"events\":[{}]}},\"to_device\":{{\"events\":[{}]}},\
         \"device_one_time_keys_count\":{{\"signed_curve25519\":{keys}}},\
         \"device_unused_fallback_key_types\":[\"signed_curve25519\"]}}",
        part("join"),
        part("invite"),
        part("leave"),
        account_data.join(","),
        to_device.join(","),
    )
}

/// One room in one response.
struct Telling<'a> {
    session: &'a Session,
    name: &'a Arc<str>,
    room: &'a Room,
    told: std::collections::HashSet<(String, Arc<str>, String)>,
    limit: usize,
    initial: bool,
}

impl Telling<'_> {
    /// The section and what it says of the room.
    fn tell(&mut self, news: &News) -> Option<(&'static str, String)> {
        let user = self.session.user.as_str();
        let own = |event: &&Arc<Event>| {
            event.kind == "m.room.member" && event.state_key.as_deref() == Some(user)
        };
        let changed = news.events.iter().rfind(own);
        match self.room.membership(user)? {
            "join" => {
                let is_new =
                    self.initial || changed.is_some() && !self.was_joined(news.events.first());
                Some(("join", self.joined(news, is_new)))
            }
            "invite" if self.initial || changed.is_some() => {
                let state = self.room.state.iter().map(|((kind, key), event)| {
                    json!({"type": kind, "state_key": key, "sender": event.sender,
                        "content": event.content})
                });
                let state: Vec<Value> = state.collect();
                let invite = json!({"invite_state": {"events": state}});
                Some(("invite", invite.to_string()))
            }
            "leave" | "ban" if !self.initial => {
                // Nothing after the end is told.
                let end = changed?.position;
                let heard = News {
                    events: news
                        .events
                        .iter()
                        .filter(|event| event.position <= end)
                        .cloned()
                        .collect(),
                    ..News::default()
                };
                Some(("leave", self.joined(&heard, false)))
            }
            _ => None,
        }
    }

    /// Whether the device's user was in the room just before this event.
    fn was_joined(&self, first: Option<&Arc<Event>>) -> bool {
        let Some(first) = first else { return false };
        let state = self.state_before(first.position);
        let key = ("m.room.member".to_owned(), self.session.user.clone());
        let member = state.get(&key);
        member.is_some_and(|member| member.content["membership"] == "join")
    }

    fn state_before(&self, position: u64) -> StateMap {
        let mut state = self.room.base.clone();
        let before = self.room.timeline.iter();
        for event in before.take_while(|event| event.position < position) {
            if let Some(key) = &event.state_key {
                state.insert((event.kind.clone(), key.clone()), event.clone());
            }
        }
        state
    }

    fn joined(&mut self, news: &News, is_new: bool) -> String {
        let all = if is_new {
            &self.room.timeline
        } else {
            &news.events
        };
        let cut = all.len().saturating_sub(self.limit);
        let (left_out, shown) = all.split_at(cut);
        let begin = shown.first().map(|event| event.position);
        let mut state: StateMap = StateMap::new();
        if is_new {
            let before = match begin {
                Some(begin) => self.state_before(begin),
                None => self.room.state.clone(),
            };
            let needed =
                |kind: &str, key: &str| kind != "m.room.member" || key == self.session.user;
            state.extend(
                before
                    .into_iter()
                    .filter(|((kind, key), _)| needed(kind, key)),
            );
        } else {
            for event in left_out {
                if let Some(key) = &event.state_key {
                    state.insert((event.kind.clone(), key.clone()), event.clone());
                }
            }
        }
        self.add_senders(shown, &mut state);
        let changes = |events: &[Arc<Event>]| events.iter().any(|e| e.kind == "m.room.member");
        let summary = if is_new || changes(&news.events) {
            json!({"m.joined_member_count": self.room.count("join"),
                "m.invited_member_count": self.room.count("invite"), "m.heroes": []})
        } else {
            json!({})
        };
        let mut states: Vec<String> = state.values().map(|event| event.text.clone()).collect();
        states.extend(news.state.iter().cloned());
        let shown: Vec<String> = shown
            .iter()
            .map(|event| event.seen_by(&self.session.device))
            .collect();
        let mut text = String::new();
        let _ = write!(
            text,
            "{{\"summary\":{summary},\"state\":{{\"events\":[{}]}},\"timeline\":{{\"events\":[{}],\
             \"limited\":{}",
            states.join(","),
            shown.join(","),
            cut > 0
        );
        if let Some(begin) = begin {
            let _ = write!(text, ",\"prev_batch\":\"s{}\"", begin - 1);
        }
        let _ = write!(
            text,
            "}},\"account_data\":{{\"events\":[{}]}},\"ephemeral\":{{\"events\":[]}}}}",
            news.account_data.join(",")
        );
        text
    }

    /// Members are loaded lazily: the senders of what is shown, once for each device.
    fn add_senders(&mut self, shown: &[Arc<Event>], state: &mut StateMap) {
        for event in shown {
            let sender = &event.sender;
            let told = (
                self.session.device.clone(),
                self.name.clone(),
                sender.clone(),
            );
            let is_member = event.kind == "m.room.member";
            if is_member || !self.told.insert(told) {
                continue;
            }
            if let Some(member) = self.room.state("m.room.member", sender) {
                let key = ("m.room.member".to_owned(), sender.clone());
                state.entry(key).or_insert_with(|| member.clone());
            }
        }
    }
}
