//! The people of a room as they stand now: their names, and who of them is banned or may not speak
//! (`digest.md` 2).
//!
//! Members are asked for each time. The SDK would keep them, and its copy may be written over by an
//! older answer while a ban comes in by a sync; what decides whose words an agent reads must not.

use std::collections::HashSet;
use std::time::Duration;

use matrix_sdk::config::RequestConfig;
use matrix_sdk::ruma::api::client::membership::get_member_events;
use matrix_sdk::ruma::api::client::state::get_state_events;
use matrix_sdk::ruma::events::room::server_acl::RoomServerAclEventContent;
use matrix_sdk::ruma::{OwnedRoomId, RoomId, UserId};
use matrix_sdk::{Client, Room, RoomState};
use matrix_sdk_base::deserialized_responses::RawAnySyncOrStrippedState;
use serde::Deserialize;
use serde_json::Value;
use wildmatch::WildMatch;

use crate::clock::Millis;
use crate::digest::Standing;
use crate::service::{RoomPerson, RoomTrouble};

/// How long the homeserver may take to say who is in a room. For a very large one it takes long.
const WITHIN: Duration = Duration::from_mins(1);

/// State events that hold the rules of policy lists, with their names from before they were
/// specified ("Moderation policy lists" in the Matrix specification).
const USER_RULES: [&str; 3] = [
    "m.policy.rule.user",
    "m.room.rule.user",
    "org.matrix.mjolnir.rule.user",
];
const SERVER_RULES: [&str; 3] = [
    "m.policy.rule.server",
    "m.room.rule.server",
    "org.matrix.mjolnir.rule.server",
];
const BANS: [&str; 2] = ["m.ban", "org.matrix.mjolnir.ban"];

/// A member event as the homeserver has it.
#[derive(Debug, Deserialize)]
pub(super) struct MemberEvent {
    pub(super) sender: String,
    state_key: String,
    #[serde(default)]
    pub(super) origin_server_ts: Millis,
    content: MemberContent,
    #[serde(default)]
    unsigned: MemberUnsigned,
}

#[derive(Debug, Default, Deserialize)]
struct MemberUnsigned {
    #[serde(default)]
    prev_content: Option<MemberContent>,
}

#[derive(Debug, Deserialize)]
struct MemberContent {
    membership: String,
    #[serde(default)]
    displayname: Option<Value>,
}

/// All members of a room that ever were, as the homeserver has them now.
pub(super) async fn members(room: &Room) -> Result<Vec<MemberEvent>, RoomTrouble> {
    let request = get_member_events::v3::Request::new(room.room_id().to_owned());
    let config = RequestConfig::new().timeout(WITHIN).disable_retry();
    let answer = room.client().send(request).with_request_config(config);
    let answer = answer.await.map_err(away)?;
    let members = answer.chunk.iter();
    // What is malformed is nobody that is known.
    Ok(members
        .filter_map(|raw| raw.deserialize_as_unchecked().ok())
        .collect())
}

/// Everybody who is or was in a room, without the bot, and how they stand there. `lists` are the
/// rooms of the policy lists that count.
///
/// # Errors
/// When something of it cannot be had now: in doubt nobody is to be read.
pub(super) async fn people(
    room: &Room,
    lists: &[OwnedRoomId],
) -> Result<Vec<RoomPerson>, RoomTrouble> {
    let mut barred = Barred::default();
    for list in lists {
        barred.read(&room.client(), list).await?;
    }
    if let Some(acl) = state_of(room, "m.room.server_acl").await? {
        // Whom it denies cannot be known: in doubt nobody is read.
        let read = serde_json::from_value(acl).map_err(|_| {
            RoomTrouble::Away("the room's m.room.server_acl cannot be understood".to_owned())
        });
        barred.acl = Some(read?);
    }
    let levels = state_of(room, "m.room.power_levels").await?;
    let levels = levels.unwrap_or_default();
    let encrypted = room.encryption_state().is_encrypted();
    let own = room.own_user_id();
    let people = members(room).await?.into_iter();
    Ok(people
        .filter(|member| member.state_key != own.as_str())
        .map(|member| {
            let standing = if member.is_barred() || barred.holds(&member.state_key) {
                Standing::Banned
            } else if is_muted(&levels, &member.state_key, encrypted) {
                Standing::Muted
            } else {
                Standing::In
            };
            let name = member.content.displayname;
            RoomPerson {
                display_name: name.and_then(|name| name.as_str().map(str::to_owned)),
                user_id: member.state_key,
                standing,
            }
        })
        .collect())
}

impl MemberEvent {
    /// Whether they are banned, or were made to go and are not back. Who went by themselves may
    /// still be read. Of who knocks or is invited it is not known how they went, so they may not:
    /// nobody comes back by knocking.
    fn is_barred(&self) -> bool {
        let before = self.unsigned.prev_content.as_ref();
        let before = before.map_or("join", |before| before.membership.as_str());
        match self.content.membership.as_str() {
            "join" => false,
            "leave" => self.sender != self.state_key || before != "join",
            _ => true,
        }
    }
}

/// Whether somebody was put below what it takes to speak: by an entry of their own that is below
/// everybody's. That the whole room is raised mutes nobody in particular.
fn is_muted(levels: &Value, user_id: &str, encrypted: bool) -> bool {
    let own = levels["users"].get(user_id).map(level);
    let Some(own) = own else {
        return false;
    };
    let or_zero = |value: &Value| level(value).unwrap_or(0);
    let needed = |sent: &str| {
        let set = levels["events"].get(sent).map(level);
        set.unwrap_or_else(|| level(&levels["events_default"]))
            .unwrap_or(0)
    };
    let mut enough = needed("m.room.message");
    if encrypted {
        enough = enough.max(needed("m.room.encrypted"));
    }
    // What is no number is nothing that is known.
    let own = own.unwrap_or(i64::MIN);
    own < or_zero(&levels["users_default"]) && own < enough
}

/// A power level. In old rooms numbers may be written as strings.
fn level(value: &Value) -> Option<i64> {
    match value {
        Value::String(number) => number.trim().parse().ok(),
        number => number.as_i64(),
    }
}

/// Who is barred by policy lists and by the room's list of servers.
#[derive(Debug, Default)]
struct Barred {
    users: Rules,
    servers: Rules,
    acl: Option<RoomServerAclEventContent>,
}

/// Entities of rules: globs, and the many that are none.
#[derive(Debug, Default)]
struct Rules {
    exact: HashSet<String>,
    globs: Vec<WildMatch>,
}

impl Rules {
    fn add(&mut self, entity: &str) {
        if entity.contains(['*', '?']) {
            self.globs.push(WildMatch::new(entity));
        } else {
            self.exact.insert(entity.to_owned());
        }
    }

    fn hold(&self, name: &str) -> bool {
        self.exact.contains(name) || self.globs.iter().any(|glob| glob.matches(name))
    }
}

impl Barred {
    /// Adds the rules of one list: as the last sync had them where the bot is in its room.
    async fn read(&mut self, client: &Client, list: &RoomId) -> Result<(), RoomTrouble> {
        let known = client.get_room(list);
        let known = known.filter(|room| room.state() == RoomState::Joined);
        if let Some(room) = known.filter(|room| room.is_state_fully_synced()) {
            for event_type in USER_RULES.into_iter().chain(SERVER_RULES) {
                let rules = room.get_state_events(event_type.into()).await;
                let rules = rules.map_err(|error| RoomTrouble::Away(error.to_string()))?;
                for rule in rules {
                    if let RawAnySyncOrStrippedState::Sync(rule) = rule {
                        self.take(rule.json().get());
                    }
                }
            }
            return Ok(());
        }
        let request = get_state_events::v3::Request::new(list.to_owned());
        let config = RequestConfig::new().timeout(WITHIN).disable_retry();
        let state = client.send(request).with_request_config(config).await;
        let state = state.map_err(|error| {
            RoomTrouble::Away(format!("the policy list {list} cannot be read: {error}"))
        })?;
        for event in state.room_state {
            self.take(event.json().get());
        }
        Ok(())
    }

    /// Takes one state event of a list.
    fn take(&mut self, event: &str) {
        #[derive(Deserialize)]
        struct Rule {
            #[serde(rename = "type")]
            event_type: String,
            content: RuleContent,
        }
        #[derive(Deserialize)]
        struct RuleContent {
            // A rule that was taken back has an empty content.
            #[serde(default)]
            entity: String,
            #[serde(default)]
            recommendation: String,
        }
        let Ok(rule) = serde_json::from_str::<Rule>(event) else {
            return;
        };
        let kind = rule.event_type.as_str();
        let entity = &rule.content.entity;
        if entity.is_empty() || !BANS.contains(&rule.content.recommendation.as_str()) {
            return;
        }
        if USER_RULES.contains(&kind) {
            self.users.add(entity);
        } else if SERVER_RULES.contains(&kind) {
            self.servers.add(entity);
        }
    }

    fn holds(&self, user_id: &str) -> bool {
        let Ok(user) = UserId::parse(user_id) else {
            return true;
        };
        let server = user.server_name();
        self.users.hold(user_id)
            || self.servers.hold(server.as_str())
            || self.acl.as_ref().is_some_and(|acl| !acl.is_allowed(server))
    }
}

/// The content of a state event with an empty key, as the last sync had it.
async fn state_of(room: &Room, event_type: &str) -> Result<Option<Value>, RoomTrouble> {
    let event = room.get_state_event(event_type.into(), "").await;
    let event = event.map_err(|error| RoomTrouble::Away(error.to_string()))?;
    Ok(match event {
        Some(RawAnySyncOrStrippedState::Sync(raw)) => raw.get_field("content").ok().flatten(),
        _ => None,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of `map_err`")]
fn away(error: matrix_sdk::HttpError) -> RoomTrouble {
    RoomTrouble::Away(error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member(sender: &str, membership: &str, before: Option<&str>) -> MemberEvent {
        let unsigned = match before {
            Some(before) => json!({"prev_content": {"membership": before}}),
            None => json!({}),
        };
        serde_json::from_value(json!({
            "sender": sender, "state_key": "@sam:x.org", "unsigned": unsigned,
            "content": {"membership": membership, "displayname": null},
        }))
        .unwrap()
    }

    #[test]
    fn who_was_made_to_go_is_barred_until_they_are_back_and_who_went_is_not() {
        for (sender, membership, before, barred) in [
            ("@mod:x.org", "ban", Some("join"), true),
            ("@mod:x.org", "leave", Some("join"), true),
            ("@mod:x.org", "leave", None, true),
            ("@sam:x.org", "leave", Some("join"), false),
            ("@sam:x.org", "leave", None, false),
            ("@sam:x.org", "join", Some("leave"), false),
            // How they went before is not known any more.
            ("@sam:x.org", "knock", Some("leave"), true),
            ("@sam:x.org", "leave", Some("knock"), true),
            ("@mod:x.org", "invite", Some("leave"), true),
            ("@sam:x.org", "leave", Some("invite"), true),
        ] {
            let member = member(sender, membership, before);
            assert_eq!(
                member.is_barred(),
                barred,
                "{membership} after {before:?} by {sender}"
            );
        }
    }

    #[test]
    fn muted_is_an_own_level_below_everybodys_and_below_what_speaking_takes() {
        let muted = |levels: Value| is_muted(&levels, "@sam:x.org", false);
        assert!(muted(json!({"users": {"@sam:x.org": -1}})));
        assert!(muted(json!({"users": {"@sam:x.org": "-1"}})));
        assert!(muted(
            json!({"users": {"@sam:x.org": 0}, "users_default": 10, "events_default": 10})
        ));
        // Below others, and able to speak all the same.
        assert!(!muted(
            json!({"users": {"@sam:x.org": 0}, "users_default": 10})
        ));
        assert!(!muted(
            json!({"users": {"@sam:x.org": -5}, "events": {"m.room.message": -10}})
        ));
        // The whole room is raised.
        assert!(!muted(json!({"events_default": 50})));
        assert!(!muted(
            json!({"users": {"@sam:x.org": 0}, "events": {"m.room.message": 50}})
        ));
        assert!(!muted(json!({"users": {"@ada:x.org": -1}})));
        assert!(!muted(Value::Null));
    }

    #[test]
    fn in_an_encrypted_room_speaking_takes_what_encrypted_messages_take() {
        let levels = json!({
            "users": {"@sam:x.org": -1}, "events_default": -1, "events": {"m.room.encrypted": 0},
        });
        assert!(is_muted(&levels, "@sam:x.org", true));
        assert!(!is_muted(&levels, "@sam:x.org", false));
    }

    fn barred(rules: &[(&str, &str, &str)]) -> Barred {
        let mut barred = Barred::default();
        for (event_type, entity, recommendation) in rules {
            let rule = json!({
                "type": event_type, "state_key": "rule", "sender": "@mod:x.org",
                "content": {"entity": entity, "recommendation": recommendation, "reason": "spam"},
            });
            barred.take(&rule.to_string());
        }
        barred
    }

    #[test]
    fn bans_of_policy_lists_hold_for_whom_they_name_and_nothing_else_does() {
        let barred = barred(&[
            ("m.policy.rule.user", "@sam:x.org", "m.ban"),
            ("m.policy.rule.user", "@spam*:*", "m.ban"),
            (
                "org.matrix.mjolnir.rule.user",
                "@a?a:x.org",
                "org.matrix.mjolnir.ban",
            ),
            ("m.policy.rule.server", "*.evil.org", "m.ban"),
            ("m.policy.rule.user", "@mild:x.org", "org.x.warn"),
            ("m.policy.rule.room", "@room:x.org", "m.ban"),
            ("m.policy.rule.user", "", "m.ban"),
        ]);
        for user in [
            "@sam:x.org",
            "@spammer:y.org",
            "@ada:x.org",
            "@any:very.evil.org",
        ] {
            assert!(barred.holds(user), "{user}");
        }
        for user in [
            "@sam:y.org",
            "@nospam:y.org",
            "@mild:x.org",
            "@room:x.org",
            "@any:evil.org",
        ] {
            assert!(!barred.holds(user), "{user}");
        }
    }

    #[test]
    fn whoever_is_on_a_denied_server_is_barred() {
        let acl = json!({"allow": ["*"], "deny": ["*.evil.org"], "allow_ip_literals": false});
        let barred = Barred {
            acl: serde_json::from_value(acl).ok(),
            ..Barred::default()
        };
        assert!(barred.holds("@any:very.evil.org"));
        assert!(barred.holds("@any:192.0.2.1"));
        assert!(barred.holds("not a user id"));
        assert!(!barred.holds("@any:good.org"));
    }
}
