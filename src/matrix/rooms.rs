//! The bot's rooms: finding them, their rules, joining where it is invited.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use matrix_sdk::ruma::api::error::ErrorKind;
use matrix_sdk::ruma::events::MessageLikeEventType;
use matrix_sdk::ruma::{OwnedRoomId, RoomAliasId, RoomId};
use matrix_sdk::{Client, Room, RoomState};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::hear::known_member;
use super::{board_rooms, direct_rooms, people};
use crate::clock;
use crate::config::{AnswerRules, Config, MatrixConfig};
use crate::ledger::{Book, LedgerError};
use crate::service::{BoardRoom, Looking, RoomFacts, RoomPerson, RoomTrouble, Rooms};

/// How often the configured aliases are looked up again.
const ALIASES_AFTER: Duration = Duration::from_mins(5);
/// The longest wait between two tries to join a room.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// A room by its id as the ledger has it.
pub(super) fn by_id(client: &Client, room_id: &str) -> Option<Room> {
    client.get_room(&RoomId::parse(room_id).ok()?)
}

/// The bot's name in a room.
pub(super) async fn own_name(room: &Room) -> Option<String> {
    known_member(room, room.own_user_id()).await?.display_name
}

/// The rooms the bot is in.
pub struct JoinedRooms {
    client: Client,
    bot: String,
    config: Arc<Config>,
    /// Where aliases lead, as the homeserver resolves them. What a room says of its own aliases
    /// proves nothing: any room may claim any alias.
    aliases: RwLock<BTreeMap<String, OwnedRoomId>>,
    /// Upgraded rooms, and what took the place of each, as far as that was verified.
    successors: RwLock<BTreeMap<OwnedRoomId, OwnedRoomId>>,
}

impl JoinedRooms {
    /// The rooms of a session.
    pub fn new(client: Client, config: Arc<Config>) -> Self {
        let bot = client
            .user_id()
            .map(ToString::to_string)
            .unwrap_or_default();
        Self {
            client,
            bot,
            config,
            aliases: RwLock::default(),
            successors: RwLock::default(),
        }
    }

    /// Recalls which upgrades were followed before a restart.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn recall_upgrades(&self, book: &Book) -> Result<(), LedgerError> {
        let known: Vec<(String, String)> = book.read(|ledger| ledger.successors()).await?;
        for (room_id, successor) in known {
            if let (Ok(room_id), Ok(successor)) = (RoomId::parse(room_id), RoomId::parse(successor))
            {
                self.note_upgrade(room_id, successor);
            }
        }
        Ok(())
    }

    /// From now on one room means another, which took its place.
    pub(super) fn note_upgrade(&self, room_id: OwnedRoomId, successor: OwnedRoomId) {
        let mut known = self
            .successors
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(room_id, successor);
    }

    /// Whether the upgrade of a room was followed.
    pub(super) fn is_upgraded(&self, room_id: &RoomId) -> bool {
        let known = self
            .successors
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        known.contains_key(room_id)
    }

    /// The room that a room means now: itself, or the last that took its place.
    pub(super) fn current(&self, room_id: OwnedRoomId) -> OwnedRoomId {
        let known = self
            .successors
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        last_of(&known, room_id)
    }

    /// Asks the homeserver where the configured aliases lead. One that leads nowhere, or cannot
    /// be asked for, keeps its last answer, also over a restart: rules that are given by alias
    /// must not go away with it.
    ///
    /// # Errors
    /// When the homeserver did not answer for one of them.
    pub(crate) async fn look_up_aliases(&self, book: &Book) -> Result<(), RoomTrouble> {
        let mut trouble = Ok(());
        for alias in self.config.aliases().into_iter().map(str::to_owned) {
            let before = self.last_known(&alias, book).await?;
            match self.ask_for(&alias).await {
                Ok(room_id) if before.as_ref() == Some(&room_id) => {}
                Ok(room_id) => {
                    let kept = book.write(move |ledger| ledger.set_alias(&alias, room_id.as_str()));
                    kept.await.map_err(unkept)?;
                }
                Err(RoomTrouble::Unknown(_)) => tracing::warn!(
                    room.alias = alias,
                    "the configured alias {alias} leads to no room{}",
                    if before.is_some() {
                        "; its last one counts"
                    } else {
                        ""
                    }
                ),
                Err(away) => trouble = Err(away),
            }
        }
        trouble
    }

    /// Where an alias led when it was last looked up.
    async fn last_known(
        &self,
        alias: &str,
        book: &Book,
    ) -> Result<Option<OwnedRoomId>, RoomTrouble> {
        let known = |aliases: &RwLock<BTreeMap<String, OwnedRoomId>>| {
            let aliases = aliases.read().unwrap_or_else(PoisonError::into_inner);
            aliases.get(alias).cloned()
        };
        if let Some(room_id) = known(&self.aliases) {
            return Ok(Some(room_id));
        }
        let name = alias.to_owned();
        let kept = book.read(move |ledger| ledger.alias(&name)).await;
        let kept = kept.map_err(unkept)?.and_then(|id| RoomId::parse(id).ok());
        if let Some(room_id) = &kept {
            let mut aliases = self.aliases.write().unwrap_or_else(PoisonError::into_inner);
            aliases.insert(alias.to_owned(), room_id.clone());
        }
        Ok(kept)
    }

    /// Asks the homeserver where an alias leads, and remembers the answer.
    async fn ask_for(&self, alias: &str) -> Result<OwnedRoomId, RoomTrouble> {
        let unknown = || RoomTrouble::Unknown(alias.to_owned());
        let parsed = RoomAliasId::parse(alias).map_err(|_| unknown())?;
        let found = match self.client.resolve_room_alias(&parsed).await {
            Ok(found) => found.room_id,
            // Only the homeserver itself knows that there is none; a page of a proxy does not.
            Err(error) => {
                let answer = error.as_client_api_error();
                return Err(match answer.and_then(|answer| answer.error_kind()) {
                    Some(ErrorKind::NotFound) => unknown(),
                    _ => RoomTrouble::Away(error.to_string()),
                });
            }
        };
        let mut known = self.aliases.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(alias.to_owned(), found.clone());
        Ok(found)
    }

    /// What a room is called beside its id, what counts most first: the ids of the rooms whose
    /// place it took, the latest first, then the known aliases that lead to any of them.
    fn other_names(&self, room_id: &RoomId) -> Vec<String> {
        let predecessors = {
            let known = self
                .successors
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            predecessors_of(&known, room_id)
        };
        let known = self.aliases.read().unwrap_or_else(PoisonError::into_inner);
        let here = known
            .iter()
            .filter(|(_, leads_to)| *leads_to == room_id || predecessors.contains(leads_to));
        let ids = predecessors.iter().map(ToString::to_string);
        ids.chain(here.map(|(alias, _)| alias.clone())).collect()
    }

    /// What a room is called beside its id: aliases that lead to it, and the rooms before it.
    pub(super) fn names(&self, room_id: &RoomId) -> Vec<String> {
        self.other_names(&self.current(room_id.to_owned()))
    }

    /// The rules of a room. What the configuration says of a room holds in its successor too, so
    /// that an upgrade lets nobody answer who might not before; and what it says of the successor,
    /// to which aliases move, holds in the room.
    pub(super) fn rules(&self, room_id: &RoomId) -> AnswerRules {
        let room_id = self.current(room_id.to_owned());
        let names = self.other_names(&room_id);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.config.answers_for(room_id.as_str(), &names)
    }

    /// The stream whose room this is. A room that was upgraded has none any more: what is said
    /// there is said beside it.
    pub(super) fn stream_of(&self, room_id: &RoomId) -> Option<&str> {
        if self.config.streams.is_empty() || self.is_upgraded(room_id) {
            return None;
        }
        let names = self.other_names(room_id);
        let is_it = |name: &str| name == room_id.as_str() || names.iter().any(|it| it == name);
        let mut streams = self.config.streams.iter();
        streams
            .find(|(_, stream)| is_it(&stream.room))
            .map(|(id, _)| id.as_str())
    }

    async fn find(&self, name: &str) -> Result<RoomFacts, RoomTrouble> {
        let room_id = self.current(self.room_id(name).await?);
        let aliases = self.other_names(&room_id);
        let known = self.client.get_room(&room_id);
        let Some(room) = known
            .as_ref()
            .filter(|room| room.state() == RoomState::Joined)
        else {
            let invited = known.filter(|room| room.state() == RoomState::Invited);
            let invited_by = match invited {
                Some(room) => room.invite_details().await.ok(),
                None => None,
            };
            return Ok(RoomFacts {
                room_id: room_id.to_string(),
                aliases,
                invited_by: invited_by.map(|invite| invite.inviter_id.to_string()),
                joined: false,
                may_send: false,
            });
        };
        // Until the room's state is here the homeserver has the last word.
        let levels = room
            .power_levels()
            .await
            .ok()
            .filter(|_| room.is_state_fully_synced());
        let may_send = levels.is_none_or(|levels| {
            let sent_as = if room.encryption_state().is_encrypted() {
                MessageLikeEventType::RoomEncrypted
            } else {
                MessageLikeEventType::RoomMessage
            };
            levels.user_can_send_message(room.own_user_id(), sent_as)
        });
        Ok(RoomFacts {
            room_id: room_id.to_string(),
            aliases,
            invited_by: None,
            joined: true,
            may_send,
        })
    }

    /// The room's id. While the homeserver is away an alias leads where it last led.
    async fn room_id(&self, name: &str) -> Result<OwnedRoomId, RoomTrouble> {
        if name.starts_with('!') {
            return RoomId::parse(name).map_err(|_| RoomTrouble::Unknown(name.to_owned()));
        }
        match self.ask_for(name).await {
            Err(RoomTrouble::Away(why)) => {
                let known = self.aliases.read().unwrap_or_else(PoisonError::into_inner);
                known.get(name).cloned().ok_or(RoomTrouble::Away(why))
            }
            outcome => outcome,
        }
    }
}

/// The end of the chain of upgrades that begins at a room.
fn last_of(successors: &BTreeMap<OwnedRoomId, OwnedRoomId>, room_id: OwnedRoomId) -> OwnedRoomId {
    let mut room_id = room_id;
    // The ledger takes no circles; the bound is for whoever gets around it.
    for _ in 0..successors.len() {
        match successors.get(&room_id) {
            Some(successor) => room_id = successor.clone(),
            None => break,
        }
    }
    room_id
}

/// The rooms whose place a room took, the latest first.
fn predecessors_of(
    successors: &BTreeMap<OwnedRoomId, OwnedRoomId>,
    room_id: &RoomId,
) -> Vec<OwnedRoomId> {
    let mut found: Vec<OwnedRoomId> = Vec::new();
    let mut latest = vec![room_id.to_owned()];
    while !latest.is_empty() {
        let before = successors
            .iter()
            .filter(|(_, successor)| latest.contains(successor))
            .map(|(before, _)| before.clone())
            .filter(|before| !found.contains(before) && before != room_id)
            .collect::<Vec<_>>();
        found.extend(before.iter().cloned());
        latest = before;
    }
    found
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of `map_err`")]
fn unkept(error: LedgerError) -> RoomTrouble {
    RoomTrouble::Away(error.to_string())
}

impl Rooms for JoinedRooms {
    fn locate<'a>(&'a self, room: &'a str) -> Looking<'a, RoomFacts> {
        Box::pin(self.find(room))
    }

    fn make_board_room<'a>(&'a self, wanted: &'a BoardRoom) -> Looking<'a, String> {
        Box::pin(board_rooms::find_or_make(&self.client, wanted))
    }

    fn is_in<'a>(&'a self, room_id: &'a str, user_id: &'a str) -> Looking<'a, bool> {
        Box::pin(direct_rooms::is_in(&self.client, room_id, user_id))
    }

    fn direct_room<'a>(&'a self, user_id: &'a str, known: Option<&'a str>) -> Looking<'a, String> {
        Box::pin(direct_rooms::find_or_make(&self.client, user_id, known))
    }

    fn name_room<'a>(
        &'a self,
        room_id: &'a str,
        name: &'a str,
        before: Option<&'a str>,
    ) -> Looking<'a, ()> {
        Box::pin(async move {
            let unknown = |_| RoomTrouble::Unknown(room_id.to_owned());
            let room_id = self.current(RoomId::parse(room_id).map_err(unknown)?);
            board_rooms::name(&self.client, &room_id, name, before).await
        })
    }

    fn people<'a>(&'a self, room_id: &'a str, lists: &'a [String]) -> Looking<'a, Vec<RoomPerson>> {
        Box::pin(async move {
            let unknown = || RoomTrouble::Unknown(room_id.to_owned());
            let room = by_id(&self.client, room_id).ok_or_else(unknown)?;
            let mut found = Vec::with_capacity(lists.len());
            for list in lists {
                found.push(self.current(self.room_id(list).await?));
            }
            people::people(&room, &found).await
        })
    }

    fn bot(&self) -> &str {
        &self.bot
    }
}

/// Joins the rooms the bot is invited to, by whom the configuration allows. A join that fails is
/// tried again; invitations from before a restart are found again.
pub(crate) async fn accept_invites(
    client: Client,
    config: Arc<Config>,
    invited: Arc<Notify>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut waiting: HashMap<OwnedRoomId, (u32, Instant)> = HashMap::new();
    loop {
        for room in client.invited_rooms() {
            let due = waiting
                .get(room.room_id())
                .is_none_or(|(_, at)| *at <= Instant::now());
            if due {
                join(&room, &config.matrix, &mut waiting).await;
            }
        }
        waiting.retain(|room_id, _| {
            client
                .get_room(room_id)
                .is_some_and(|room| room.state() == RoomState::Invited)
        });
        let next = waiting.values().map(|(_, at)| *at).min();
        let next = next.unwrap_or_else(|| Instant::now() + LONGEST_WAIT);
        tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => return,
            () = invited.notified() => {}
            () = tokio::time::sleep_until(next) => {}
        }
    }
}

async fn join(
    room: &Room,
    config: &MatrixConfig,
    waiting: &mut HashMap<OwnedRoomId, (u32, Instant)>,
) {
    let room_id = room.room_id().to_owned();
    let attempt = waiting
        .get(&room_id)
        .map_or(1, |(attempt, _)| attempt.saturating_add(1));
    let outcome = match room.invite_details().await {
        Ok(invite) if !config.joins_for(invite.inviter_id.as_str()) => {
            let inviter = invite.inviter_id;
            if attempt == 1 {
                tracing::info!(
                    room.id = %room_id, inviter = %inviter,
                    "invitation to {room_id} left open: {inviter} is not in matrix.join"
                );
            }
            waiting.insert(room_id, (attempt, Instant::now() + LONGEST_WAIT));
            return;
        }
        Ok(_) => room.join().await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => {
            tracing::info!(room.id = %room_id, "joined {room_id}");
            waiting.remove(&room_id);
        }
        Err(error) => {
            let wait = Duration::from_secs(1 << attempt.min(9)).min(LONGEST_WAIT);
            let wait_ms = clock::millis(wait);
            tracing::warn!(
                room.id = %room_id, join.attempt = attempt, wait_ms, error = %error,
                "joining {room_id} failed; next try in {wait_ms} ms"
            );
            waiting.insert(room_id, (attempt, Instant::now() + wait));
        }
    }
}

/// Looks the configured aliases up again now and then: an alias may be moved to another room.
pub(crate) async fn follow_aliases(
    rooms: Arc<JoinedRooms>,
    book: Book,
    mut stopping: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => return,
            () = tokio::time::sleep(ALIASES_AFTER) => {}
        }
        // While the homeserver is away the last answers hold.
        let _ = rooms.look_up_aliases(&book).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(names: &[&str]) -> Vec<OwnedRoomId> {
        let parsed = names.iter().map(RoomId::parse);
        parsed.map(Result::unwrap).collect()
    }

    fn upgrades(pairs: &[(&str, &str)]) -> BTreeMap<OwnedRoomId, OwnedRoomId> {
        let parse = |name| RoomId::parse(name).unwrap();
        let pairs = pairs
            .iter()
            .map(|(before, after)| (parse(*before), parse(*after)));
        pairs.collect()
    }

    #[test]
    fn a_room_means_the_last_that_took_its_place() {
        let known = upgrades(&[("!a:x", "!b:x"), ("!b:x", "!c:x"), ("!d:x", "!e:x")]);
        for (name, means) in [("!a:x", "!c:x"), ("!b:x", "!c:x"), ("!c:x", "!c:x")] {
            let means = rooms(&[means]).remove(0);
            assert_eq!(last_of(&known, rooms(&[name]).remove(0)), means, "{name}");
        }
    }

    #[test]
    fn the_latest_predecessor_comes_first() {
        let known = upgrades(&[("!a:x", "!b:x"), ("!b:x", "!c:x"), ("!d:x", "!e:x")]);
        let before = |name| predecessors_of(&known, &rooms(&[name])[0]);
        assert_eq!(before("!c:x"), rooms(&["!b:x", "!a:x"]));
        assert_eq!(before("!a:x"), rooms(&[]));
    }

    #[test]
    fn a_circle_comes_to_an_end() {
        let known = upgrades(&[("!a:x", "!b:x"), ("!b:x", "!a:x")]);
        let a = rooms(&["!a:x"]);
        assert_eq!(predecessors_of(&known, &a[0]), rooms(&["!b:x"]));
        assert_eq!(last_of(&known, a[0].clone()), a[0]);
    }
}
