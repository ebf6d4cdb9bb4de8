//! The rooms that are agents' streams, as far as listening to them differs: what is said there before
//! the bot came is not said to it, and of everybody who is heard it is noted when that was first.

use std::sync::PoisonError;

use matrix_sdk::Room;
use matrix_sdk::deserialized_responses::TimelineEvent;
use matrix_sdk::ruma::UserId;
use matrix_sdk::ruma::events::StateEventType;
use matrix_sdk_base::deserialized_responses::RawAnySyncOrStrippedState;
use serde::Deserialize;
use serde_json::Value;

use super::Listener;
use crate::clock::Millis;
use crate::service::Batch;

impl Listener {
    /// Whether any room is an agent's stream.
    pub(super) fn has_streams(&self) -> bool {
        !self.service.config().streams.is_empty()
    }

    /// Watches the streams among the rooms the bot is in, before anything is heard: a response that
    /// cannot be taken in is read from the history of watched rooms.
    pub(super) fn watch_streams(&self) {
        for room in self.client.joined_rooms() {
            if self.rooms.stream_of(room.room_id()).is_some() {
                self.service.watch_stream(room.room_id().as_str());
            }
        }
    }

    /// Notes whose events these are, whatever they are: an account is as old as its first one
    /// (`digest.md` 2).
    pub(super) fn meet(&self, events: &[TimelineEvent], batch: &mut Batch) {
        if !self.has_streams() {
            return;
        }
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            let sender = event.raw().get_field::<String>("sender").ok().flatten();
            if let Some(sender) = sender
                && !met.contains(&sender)
            {
                batch.met.push(sender.clone());
                met.insert(sender);
            }
        }
    }
}

/// A membership of the bot itself.
#[derive(Deserialize)]
struct Membership {
    #[serde(rename = "type")]
    event_type: String,
    sender: String,
    #[serde(default)]
    state_key: Option<String>,
    #[serde(default)]
    origin_server_ts: Millis,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    unsigned: Value,
}

impl Membership {
    /// Whether the bot came into the room with this: it joined, and had not been joined before.
    fn is_coming_of(&self, own: &UserId) -> bool {
        let before = self.unsigned.pointer("/prev_content/membership");
        self.event_type == "m.room.member"
            && self.sender == own.as_str()
            && self.state_key.as_deref() == Some(own.as_str())
            && self.content["membership"] == "join"
            && before.is_none_or(|before| before != "join")
    }
}

/// Where in a list of events the talk begins that the bot was there for: behind the last time it
/// came. `None` when it did not come in them.
pub(super) fn joined_at(events: &[TimelineEvent], own: &UserId) -> Option<usize> {
    let came = events.iter().rposition(|event| {
        let raw = event.raw();
        // Most events are none, and this is asked of every one.
        raw.json().get().contains("m.room.member")
            && raw
                .deserialize_as_unchecked::<Membership>()
                .is_ok_and(|event| event.is_coming_of(own))
    });
    came.map(|index| index + 1)
}

/// The same for events of the past, in which its coming may not be: by what the homeserver says of
/// when it came, unless the bot changed its profile since.
pub(super) async fn said_since_join(room: &Room, events: &[TimelineEvent]) -> usize {
    let own = room.own_user_id();
    if let Some(index) = joined_at(events, own) {
        return index;
    }
    let client = room.client();
    let state = client.state_store();
    let member = state
        .get_state_event(room.room_id(), StateEventType::RoomMember, own.as_str())
        .await;
    let came = match member {
        Ok(Some(RawAnySyncOrStrippedState::Sync(raw))) => raw
            .deserialize_as_unchecked::<Membership>()
            .ok()
            .filter(|member| member.is_coming_of(own))
            .map(|member| member.origin_server_ts),
        _ => None,
    };
    let Some(came) = came else {
        return 0;
    };
    let since = events.iter().position(|event| {
        let sent = event.raw().get_field::<Millis>("origin_server_ts");
        sent.ok().flatten().is_some_and(|sent| sent >= came)
    });
    since.unwrap_or(events.len())
}

#[cfg(test)]
mod tests {
    use matrix_sdk::ruma::serde::Raw;
    use matrix_sdk::ruma::user_id;
    use serde_json::json;

    use super::*;

    fn event(json: &Value) -> TimelineEvent {
        TimelineEvent::from_plaintext(Raw::new(json).unwrap().cast_unchecked())
    }

    fn member(sender: &str, membership: &str, before: Option<&str>) -> TimelineEvent {
        let unsigned = match before {
            Some(before) => json!({"prev_content": {"membership": before}}),
            None => json!({}),
        };
        event(&json!({
            "type": "m.room.member", "event_id": "$m", "sender": sender,
            "state_key": "@elicit:x.org", "origin_server_ts": 1,
            "content": {"membership": membership, "displayname": "m.room.member"},
            "unsigned": unsigned,
        }))
    }

    fn said() -> TimelineEvent {
        event(&json!({
            "type": "m.room.message", "event_id": "$s", "sender": "@ada:x.org",
            "origin_server_ts": 1,
            "content": {"msgtype": "m.text", "body": "the type is m.room.member"},
        }))
    }

    #[test]
    fn the_talk_begins_behind_the_last_time_the_bot_came() {
        let came = |before| member("@elicit:x.org", "join", before);
        let begins = |events: &[TimelineEvent]| joined_at(events, user_id!("@elicit:x.org"));
        assert_eq!(begins(&[said(), said()]), None);
        assert_eq!(begins(&[said(), came(None), said()]), Some(2));
        assert_eq!(begins(&[said(), came(Some("invite")), said()]), Some(2));
        let again = [came(Some("leave")), said(), came(Some("leave"))];
        assert_eq!(begins(&again), Some(3));
        // A new name, and being asked to come, are no coming.
        assert_eq!(begins(&[came(Some("join")), said()]), None);
        let invited = member("@ada:x.org", "invite", None);
        assert_eq!(begins(&[invited, said()]), None);
        assert_eq!(
            joined_at(&[came(None), said()], user_id!("@other:x.org")),
            None
        );
    }
}
