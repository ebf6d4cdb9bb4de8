//! From room events as the SDK gives them to what the desk wants to hear.
//!
//! Reads the raw JSON: typed content drops what it does not know. What cannot matter is dropped
//! here, before anything is looked up.

mod talk;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use matrix_sdk::Room;
use matrix_sdk::config::RequestConfig;
use matrix_sdk::deserialized_responses::{
    EncryptionInfo, MemberEvent, TimelineEvent, TimelineEventKind, VerificationLevel,
    VerificationState,
};
use matrix_sdk::ruma::api::client::state::get_state_event_for_key;
use matrix_sdk::ruma::api::error::{Error, ErrorKind};
use matrix_sdk::ruma::events::StateEventType;
use matrix_sdk::ruma::events::room::member::MembershipState;
use matrix_sdk::ruma::events::room::power_levels::{RoomPowerLevels, UserPowerLevel};
use matrix_sdk::ruma::{EventId, UserId};
use matrix_sdk_base::store::StateStoreExt as _;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::clock::Millis;
use crate::config::AnswerRules;
use crate::contract::CARD_KEY;
use crate::contract::card::Card;
use crate::desk::{Carried, Heard, Said, Sender, Trust, What};
use crate::ledger::Undecrypted;
use crate::reply::Commands;

/// How long the homeserver may take to show the message that an edit is of.
const EDITED_WITHIN: Duration = Duration::from_secs(5);

/// How long it may take to say who somebody is in a room.
const MEMBER_WITHIN: Duration = Duration::from_secs(10);

/// The homeserver does not say now what is needed to read an event.
#[derive(Debug, thiserror::Error)]
#[error("the homeserver does not say who is in the room: {0}")]
pub(super) struct Away(String);

/// The parts of a room event that may matter.
#[derive(Debug, Deserialize)]
struct RawEvent {
    #[serde(rename = "type")]
    event_type: String,
    event_id: String,
    sender: String,
    #[serde(default)]
    origin_server_ts: Millis,
    #[serde(default)]
    state_key: Option<String>,
    #[serde(default)]
    redacts: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    unsigned: Unsigned,
}

#[derive(Debug, Default, Deserialize)]
struct Unsigned {
    #[serde(default)]
    transaction_id: Option<String>,
}

/// What a room event turned out to be.
#[derive(Debug)]
pub(super) enum Listened {
    /// Something for the desk.
    Heard(Box<Heard>),
    /// It cannot be read yet.
    Locked(Box<Undecrypted>),
    /// Nothing that can matter.
    Nothing,
}

/// What is not read, whoever says it: the bot, agents, named bots.
pub(super) struct Ear<'a> {
    /// The room.
    pub(super) room: &'a Room,
    /// Its rules.
    pub(super) rules: &'a AnswerRules,
    /// Matrix users of agents.
    pub(super) agents: &'a [String],
    /// Other carriers, whose cards are read.
    pub(super) carriers: &'a BTreeSet<String>,
    /// Whether something may be pending in the room; otherwise an edit can only be one of an
    /// answer, and needs no looking up.
    pub(super) pending: bool,
    /// Whether a message may matter, by room.
    pub(super) wants: &'a (dyn Fn(&Said) -> bool + Sync),
    /// What people may say to the bot itself.
    pub(super) commands: &'a Commands,
    /// Whether what cannot be read is kept even where nothing is expected: somebody may say in it
    /// that agents must not read them.
    pub(super) keep_locked: bool,
    /// Those who were looked up already. Nothing of the room changes while this ear is used.
    pub(super) senders: Mutex<HashMap<String, Sender>>,
    /// The power levels of the room, once they were looked up.
    pub(super) levels: OnceCell<Option<RoomPowerLevels>>,
}

impl Ear<'_> {
    /// Reads one event of a timeline. `talk` says that it is part of what agents read digests of.
    ///
    /// # Errors
    /// When the homeserver does not say now who its sender is in the room.
    pub(super) async fn listen(
        &self,
        event: &TimelineEvent,
        talk: bool,
        now: Millis,
    ) -> Result<Listened, Away> {
        let raw = event.raw();
        // A malformed event is nobody's answer; it must not take others with it.
        let Ok(parsed) = raw.deserialize_as_unchecked::<RawEvent>() else {
            return Ok(Listened::Nothing);
        };
        if parsed.state_key.is_some() {
            return Ok(Listened::Nothing);
        }
        let own = parsed.sender == self.room.own_user_id().as_str();
        // An own message need not be read: its transaction id, which is not encrypted, says what
        // it is.
        if event.kind.is_utd() && !own {
            let expected = self.carriers.contains(&parsed.sender)
                || (!self.is_bot(&parsed.sender)
                    && (talk || self.keep_locked || (self.wants)(&Said::default())));
            if !expected {
                return Ok(Listened::Nothing);
            }
            return Ok(Listened::Locked(Box::new(Undecrypted {
                room_id: self.room.room_id().to_string(),
                event_id: parsed.event_id,
                sender: parsed.sender,
                raw: raw.json().get().to_owned(),
                heard_at: now,
                told: false,
            })));
        }
        let mut chat = self.chat(&parsed, talk && !own);
        let talk = chat.as_ref().map(|_| What::Talk);
        let Some(mut what) = self.what(&parsed, own).or(talk) else {
            return Ok(Listened::Nothing);
        };
        if let What::Message(said) = &mut what
            && self.pending
            && !self.read_as_edited(said, &parsed.sender).await
        {
            // Nothing to the desk; whether it edits a line that was kept, the ledger knows.
            if chat.is_none() {
                return Ok(Listened::Nothing);
            }
            what = What::Talk;
        }
        let trust = match &event.kind {
            TimelineEventKind::Decrypted(decrypted) => {
                self.trust(&decrypted.encryption_info, &parsed.sender).await
            }
            _ if self.room.encryption_state().is_encrypted() => Trust::Clear,
            _ => Trust::Plain,
        };
        if trust == Trust::Refused {
            // Not the words of whose name stands on it.
            chat = None;
        }
        if chat.is_none() && what == What::Talk {
            return Ok(Listened::Nothing);
        }
        let sender = if own {
            Sender {
                joined: true,
                ..self.nobody(&parsed.sender)
            }
        } else if what == What::Talk {
            self.nobody(&parsed.sender)
        } else {
            match self.sender(&parsed.sender).await {
                // That agents must not read somebody waits for nobody.
                Err(_) if self.turns_off(&what) => self.nobody(&parsed.sender),
                looked_up => looked_up?,
            }
        };
        Ok(Listened::Heard(Box::new(Heard {
            room_id: self.room.room_id().to_string(),
            sender,
            event_id: parsed.event_id,
            sent_at: parsed.origin_server_ts,
            trust,
            what,
            chat,
        })))
    }

    fn what(&self, event: &RawEvent, own: bool) -> Option<What> {
        if own {
            let text = |key: &str| text(event.content.get(CARD_KEY)?.get(key));
            return Some(What::Own {
                txn_id: event.unsigned.transaction_id.clone(),
                card: text("asked_by").zip(text("elicitation_id")),
                board_id: text("board_id"),
            });
        }
        if event.event_type == "m.room.redaction" {
            // Room version 11 moved the field into the content.
            let inner = event
                .content
                .get("redacts")
                .and_then(Value::as_str)
                .map(str::to_owned);
            return inner
                .or_else(|| event.redacts.clone())
                .map(|redacts| What::Redaction { redacts });
        }
        if event.event_type != "m.room.message" {
            return None;
        }
        if self.carriers.contains(&event.sender) {
            return carried(event);
        }
        if self.is_bot(&event.sender) {
            return None;
        }
        let said = said(&event.content, self.room.own_user_id())?;
        (self.wants)(&said).then_some(What::Message(said))
    }

    /// Gives an edit the relation of the message it edits: an edit does not repeat it ("Event
    /// replacements" in the Matrix specification), and yet says the same to the same. `false`
    /// when the message is somebody else's, and so no edit of it, or is a card.
    async fn read_as_edited(&self, said: &mut Said, sender: &str) -> bool {
        let replaced = said.replaces.as_deref().map(EventId::parse);
        let Some(Ok(replaced)) = replaced else {
            return true;
        };
        // Whoever waits here waits for every room.
        let at_once = RequestConfig::new().timeout(EDITED_WITHIN).disable_retry();
        let original = self.room.event(&replaced, Some(at_once)).await.ok();
        let original = original.map(|event| event.raw().deserialize_as_unchecked::<RawEvent>());
        let Some(Ok(original)) = original else {
            // Whose message it is and what it was a reply to is not known: it is read as a
            // message of its own.
            said.replaces = None;
            return true;
        };
        // The last words of another bot's card are no person's, and carry no card any more.
        if original.content.get(CARD_KEY).is_some() {
            return false;
        }
        let relation = Relation::of(&original.content);
        said.in_reply_to = relation.in_reply_to;
        said.falling_back = relation.falling_back;
        said.thread = relation.thread;
        original.sender == sender
    }

    fn is_bot(&self, user_id: &str) -> bool {
        self.rules.is_bot(user_id) || self.agents.iter().any(|agent| agent == user_id)
    }

    /// How far the sender of an encrypted message is trusted, as far as is known now. Their
    /// devices may have been looked up after the message was decrypted: with the same sync came
    /// that there was something new about them.
    async fn trust(&self, decrypted: &EncryptionInfo, sender: &str) -> Trust {
        let then = trust(decrypted);
        let (Trust::Unverified, Some(session), Ok(sender)) =
            (then, decrypted.session_id(), UserId::parse(sender))
        else {
            return then;
        };
        let now = self.room.get_encryption_info(session, &sender).await;
        now.map_or(then, |now| trust(&now))
    }

    /// A member of the room. Members are loaded lazily; of one that is not there yet the room's
    /// state is asked, without loading all the others.
    async fn member(&self, user_id: &UserId) -> Result<Option<Member>, Away> {
        if let Some(member) = known_member(self.room, user_id).await {
            return Ok(Some(member));
        }
        let request = get_state_event_for_key::v3::Request::new(
            self.room.room_id().to_owned(),
            StateEventType::RoomMember,
            user_id.to_string(),
        );
        // Whoever waits here waits for every room; what cannot be had now is read again later.
        let at_once = RequestConfig::new().timeout(MEMBER_WITHIN).disable_retry();
        let asked = self.room.client().send(request);
        match asked.with_request_config(at_once).await {
            Ok(state) => Ok(serde_json::from_str(state.event_or_content.get()).ok().map(
                |content: MemberContent| Member {
                    joined: content.membership == "join",
                    display_name: content.displayname,
                },
            )),
            Err(error) if error.as_client_api_error().is_some_and(is_refusal) => Ok(None),
            Err(error) => Err(Away(error.to_string())),
        }
    }

    /// A sender of whom nothing is known.
    fn nobody(&self, user_id: &str) -> Sender {
        Sender {
            user_id: user_id.to_owned(),
            display_name: None,
            joined: false,
            power: 0,
            alone: self.room.joined_members_count() == 2,
        }
    }

    /// The sender as they stand in the room now.
    async fn sender(&self, user_id: &str) -> Result<Sender, Away> {
        let known = |ear: &Self| {
            let senders = ear.senders.lock().unwrap_or_else(PoisonError::into_inner);
            senders.get(user_id).cloned()
        };
        if let Some(sender) = known(self) {
            return Ok(sender);
        }
        let sender = self.look_up(user_id).await?;
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        senders.insert(user_id.to_owned(), sender.clone());
        Ok(sender)
    }

    async fn look_up(&self, user_id: &str) -> Result<Sender, Away> {
        let unknown = self.nobody(user_id);
        let Ok(parsed) = UserId::parse(user_id) else {
            return Ok(unknown);
        };
        let Some(member) = self.member(&parsed).await? else {
            return Ok(unknown);
        };
        let levels = async || self.room.power_levels().await.ok();
        let levels = self.levels.get_or_init(levels).await;
        let power = match levels.as_ref().map(|levels| levels.for_user(&parsed)) {
            Some(UserPowerLevel::Infinite) => i64::MAX,
            Some(UserPowerLevel::Int(power)) => power.into(),
            _ => 0,
        };
        Ok(Sender {
            display_name: member.display_name,
            joined: member.joined,
            power,
            ..unknown
        })
    }
}

/// A member as far as it matters here.
pub(super) struct Member {
    joined: bool,
    pub(super) display_name: Option<String>,
}

/// A member of a room, if the SDK knows them already. It could say far more of them, at the price
/// of a handful of queries.
pub(super) async fn known_member(room: &Room, user_id: &UserId) -> Option<Member> {
    let client = room.client();
    let event = client
        .state_store()
        .get_member_event(room.room_id(), user_id);
    let event = event.await.ok()??.deserialize().ok()?;
    let joined = *event.membership() == MembershipState::Join;
    let display_name = match event {
        MemberEvent::Sync(event) => {
            let content = event.as_original().map(|event| &event.content);
            content.and_then(|content| content.displayname.clone())
        }
        MemberEvent::Stripped(event) => event.content.displayname,
    };
    Some(Member {
        joined,
        display_name,
    })
}

#[derive(Deserialize)]
struct MemberContent {
    membership: String,
    #[serde(default)]
    displayname: Option<String>,
}

fn is_refusal(answer: &Error) -> bool {
    matches!(
        answer.error_kind(),
        Some(ErrorKind::Forbidden | ErrorKind::NotFound)
    )
}

/// What a message relates to.
#[derive(Debug, Default)]
struct Relation {
    in_reply_to: Option<String>,
    falling_back: bool,
    thread: Option<String>,
    replaces: Option<String>,
}

impl Relation {
    fn of(content: &Value) -> Self {
        let Some(relation) = content.get("m.relates_to") else {
            return Self::default();
        };
        let kind = relation.get("rel_type").and_then(Value::as_str);
        let target = |wanted: &str| text(relation.get("event_id")).filter(|_| kind == Some(wanted));
        let falling_back = relation.get("is_falling_back").and_then(Value::as_bool);
        Self {
            in_reply_to: text(relation.pointer("/m.in_reply_to/event_id")),
            falling_back: falling_back.unwrap_or(false),
            thread: target("m.thread"),
            replaces: target("m.replace"),
        }
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

/// What a carrier's message is: a card, or the end of one. Everything else it says is not read.
fn carried(event: &RawEvent) -> Option<What> {
    let relation = Relation::of(&event.content);
    // Of an edit only the new content counts.
    let read = match relation.replaces {
        Some(_) => event.content.get("m.new_content")?,
        None => &event.content,
    };
    let Some(card) = read.get(CARD_KEY) else {
        return relation
            .replaces
            .map(|replaces| What::CardGone { replaces });
    };
    match Card::read(card) {
        Ok(card) => Some(What::Carried {
            carried: Box::new(Carried {
                card,
                body: text(read.get("body")).unwrap_or_default(),
                thread: relation.thread,
            }),
            replaces: relation.replaces,
        }),
        Err(error) => {
            tracing::debug!(
                event.id = %event.event_id, carrier = %event.sender, error = %error,
                "the card {} of {} is broken: {error}", event.event_id, event.sender
            );
            // An edit into what cannot be read leaves nothing that could be answered.
            relation
                .replaces
                .map(|replaces| What::CardGone { replaces })
        }
    }
}

/// A message as a person wrote it; `None` for what is never read: notices, emotes, files, cards.
fn said(content: &Value, bot: &UserId) -> Option<Said> {
    let relation = Relation::of(content);
    // Of an edit only the new content counts.
    let read = match relation.replaces {
        Some(_) => content.get("m.new_content")?,
        None => content,
    };
    if read.get("msgtype").and_then(Value::as_str) != Some("m.text")
        || content.get(CARD_KEY).is_some()
        || read.get(CARD_KEY).is_some()
    {
        return None;
    }
    let mentions_bot = read
        .pointer("/m.mentions/user_ids")
        .and_then(Value::as_array)
        .is_some_and(|users| users.iter().any(|user| user.as_str() == Some(bot.as_str())));
    Some(Said {
        body: text(read.get("body"))?,
        in_reply_to: relation.in_reply_to,
        falling_back: relation.falling_back,
        thread: relation.thread,
        replaces: relation.replaces,
        mentions_bot,
    })
}

fn trust(info: &EncryptionInfo) -> Trust {
    match &info.verification_state {
        // A device that its owner has signed. Whether that owner is who they say is between
        // people: the bot compares no keys with anybody.
        VerificationState::Verified
        | VerificationState::Unverified(VerificationLevel::UnverifiedIdentity) => Trust::Verified,
        VerificationState::Unverified(
            VerificationLevel::MismatchedSender | VerificationLevel::VerificationViolation,
        ) => Trust::Refused,
        VerificationState::Unverified(_) => Trust::Unverified,
    }
}

#[cfg(test)]
mod tests {
    use matrix_sdk::ruma::user_id;
    use serde_json::json;

    use super::*;

    fn read(content: &Value) -> Option<Said> {
        said(content, user_id!("@bot:example.org"))
    }

    /// Pain: blank.
    #[test]
    fn only_text_is_read() {
        assert_eq!(read(&json!({"msgtype": "m.notice", "body": "1"})), None);
        assert_eq!(read(&json!({"msgtype": "m.emote", "body": "1"})), None);
        assert_eq!(read(&json!({"msgtype": "m.image", "body": "1"})), None);
        assert_eq!(read(&json!({"body": "1"})), None);
        assert_eq!(read(&json!({"msgtype": "m.text", "body": 1})), None);
        let said = Said {
            body: "1".to_owned(),
            ..Said::default()
        };
        assert_eq!(read(&json!({"msgtype": "m.text", "body": "1"})), Some(said));
    }

    /// Pain: loop.
    #[test]
    fn a_message_that_carries_a_card_is_never_a_reply() {
        assert_eq!(
            read(&json!({"msgtype": "m.text", "body": "1", CARD_KEY: {}})),
            None
        );
    }

    /// Pain: edit.
    #[test]
    fn an_edit_is_read_from_its_new_content() {
        let edit = json!({
            "msgtype": "m.text", "body": "* 2",
            "m.new_content": {"msgtype": "m.text", "body": "2"},
            "m.relates_to": {"rel_type": "m.replace", "event_id": "$old"},
        });
        let expected = Said {
            body: "2".to_owned(),
            replaces: Some("$old".to_owned()),
            ..Said::default()
        };
        assert_eq!(read(&edit), Some(expected));
    }

    #[test]
    fn a_thread_keeps_its_root_and_says_whether_its_reply_is_only_a_fallback() {
        let threaded = json!({
            "msgtype": "m.text", "body": "2", "m.mentions": {"user_ids": ["@bot:example.org"]},
            "m.relates_to": {
                "rel_type": "m.thread", "event_id": "$card", "is_falling_back": true,
                "m.in_reply_to": {"event_id": "$last"},
            },
        });
        let expected = Said {
            body: "2".to_owned(),
            in_reply_to: Some("$last".to_owned()),
            falling_back: true,
            thread: Some("$card".to_owned()),
            replaces: None,
            mentions_bot: true,
        };
        assert_eq!(read(&threaded), Some(expected));
    }
}
