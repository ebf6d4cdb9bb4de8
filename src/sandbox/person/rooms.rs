//! Rooms, who is in them, and their state.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Person, SandboxError, event_id};

/// How a room is made. By default: private, unencrypted, no name, the server's own version.
#[derive(Debug, Clone, Default)]
pub struct RoomOptions {
    /// The room's name.
    pub name: Option<String>,
    /// The local part of an alias, without `#` and server.
    pub alias: Option<String>,
    /// Whether messages are end-to-end encrypted from the first one on.
    pub encrypted: bool,
    /// User ids to invite.
    pub invite: Vec<String>,
    /// `private_chat`, `public_chat` or `trusted_private_chat`; the first one if not given.
    pub preset: Option<String>,
    /// A room version, such as `11`.
    pub version: Option<String>,
    /// The content of `m.room.power_levels`, as far as it differs from the default.
    pub power_levels: Option<Value>,
}

impl Person {
    /// Makes a room and joins it; the room id.
    ///
    /// # Errors
    /// [`SandboxError::Refused`], [`SandboxError::Unreachable`]: as every request below.
    pub async fn create_room(&self, options: &RoomOptions) -> Result<String, SandboxError> {
        let mut body = json!({
            "preset": options.preset.as_deref().unwrap_or("private_chat"),
            "invite": options.invite,
        });
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                body[key] = value;
            }
        };
        set("name", options.name.as_ref().map(|name| json!(name)));
        set(
            "room_alias_name",
            options.alias.as_ref().map(|alias| json!(alias)),
        );
        set(
            "room_version",
            options.version.as_ref().map(|version| json!(version)),
        );
        set("power_level_content_override", options.power_levels.clone());
        set("initial_state", options.encrypted.then(encryption_state));
        let answer = self
            .call(Method::POST, &["createRoom"], Some(&body))
            .await?;
        answer["room_id"]
            .as_str()
            .map(str::to_owned)
            .ok_or(SandboxError::Incomplete("room_id"))
    }

    /// Upgrades the room to another version; the id of its successor, which this person has
    /// joined. Nobody else is invited there.
    ///
    /// # Errors
    /// As every request.
    pub async fn upgrade(&self, room: &str, version: &str) -> Result<String, SandboxError> {
        let path = ["rooms", room, "upgrade"];
        let body = json!({"new_version": version});
        let answer = self.call(Method::POST, &path, Some(&body)).await?;
        answer["replacement_room"]
            .as_str()
            .map(str::to_owned)
            .ok_or(SandboxError::Incomplete("replacement_room"))
    }

    /// Invites a user.
    ///
    /// # Errors
    /// As every request.
    pub async fn invite(&self, room: &str, user_id: &str) -> Result<(), SandboxError> {
        self.membership(room, "invite", json!({"user_id": user_id}))
            .await
    }

    /// Joins by id or alias; the room id.
    ///
    /// # Errors
    /// As every request.
    pub async fn join(&self, room: &str) -> Result<String, SandboxError> {
        let answer = self
            .call(Method::POST, &["join", room], Some(&json!({})))
            .await?;
        answer["room_id"]
            .as_str()
            .map(str::to_owned)
            .ok_or(SandboxError::Incomplete("room_id"))
    }

    /// Leaves the room, or declines the invitation to it.
    ///
    /// # Errors
    /// As every request.
    pub async fn leave(&self, room: &str) -> Result<(), SandboxError> {
        self.membership(room, "leave", json!({})).await
    }

    /// Removes a user, who may be invited again.
    ///
    /// # Errors
    /// As every request.
    pub async fn kick(&self, room: &str, user_id: &str) -> Result<(), SandboxError> {
        self.membership(room, "kick", json!({"user_id": user_id}))
            .await
    }

    /// Removes a user for good.
    ///
    /// # Errors
    /// As every request.
    pub async fn ban(&self, room: &str, user_id: &str) -> Result<(), SandboxError> {
        self.membership(room, "ban", json!({"user_id": user_id}))
            .await
    }

    /// The content of a state event, or `None` if there is none.
    ///
    /// # Errors
    /// As every request.
    pub async fn state(
        &self,
        room: &str,
        event_type: &str,
        state_key: &str,
    ) -> Result<Option<Value>, SandboxError> {
        let path = ["rooms", room, "state", event_type, state_key];
        match self.call(Method::GET, &path, None).await {
            Err(error) if error.errcode() == Some("M_NOT_FOUND") => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Sets a state event.
    ///
    /// # Errors
    /// As every request.
    pub async fn set_state(
        &self,
        room: &str,
        event_type: &str,
        state_key: &str,
        content: &Value,
    ) -> Result<String, SandboxError> {
        let path = ["rooms", room, "state", event_type, state_key];
        event_id(&self.call(Method::PUT, &path, Some(content)).await?)
    }

    /// The ids of the rooms this person is in.
    ///
    /// # Errors
    /// As every request.
    pub async fn joined_rooms(&self) -> Result<Vec<String>, SandboxError> {
        let answer = self.call(Method::GET, &["joined_rooms"], None).await?;
        let rooms = answer["joined_rooms"].as_array().into_iter().flatten();
        Ok(rooms.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// User ids with their membership (`join`, `invite`, `leave`, `ban`), by user id.
    ///
    /// # Errors
    /// As every request.
    pub async fn room_members(&self, room: &str) -> Result<Vec<(String, String)>, SandboxError> {
        let answer = self
            .call(Method::GET, &["rooms", room, "members"], None)
            .await?;
        let events = answer["chunk"].as_array().into_iter().flatten();
        let mut members: Vec<_> = events
            .filter_map(|event| {
                let user = event["state_key"].as_str()?;
                Some((
                    user.to_owned(),
                    event["content"]["membership"].as_str()?.to_owned(),
                ))
            })
            .collect();
        members.sort();
        Ok(members)
    }

    /// Waits until a user has joined.
    ///
    /// # Errors
    /// [`SandboxError::Timeout`]; else as every request.
    pub async fn wait_for_member(
        &self,
        room: &str,
        user_id: &str,
        limit: Duration,
    ) -> Result<(), SandboxError> {
        let joined = |event: &Value| {
            event["type"] == "m.room.member"
                && event["state_key"] == user_id
                && event["content"]["membership"] == "join"
        };
        self.wait_for(room, &format!("{user_id} to join"), limit, joined)
            .await
            .map(drop)
    }

    /// Waits until this user has invited the person; the id of the room, which the person has not
    /// joined yet.
    ///
    /// # Errors
    /// [`SandboxError::Timeout`]; else as every request.
    pub async fn wait_for_invitation(
        &self,
        from: &str,
        limit: Duration,
    ) -> Result<String, SandboxError> {
        let invited = tokio::time::timeout(limit, self.next_invitation(from));
        invited.await.unwrap_or_else(|_| {
            Err(SandboxError::Timeout {
                what: format!("an invitation by {from}"),
                seconds: limit.as_secs(),
            })
        })
    }

    async fn next_invitation(&self, from: &str) -> Result<String, SandboxError> {
        let is_invitation = |event: &Value| {
            event["type"] == "m.room.member"
                && event["state_key"] == self.user_id()
                && event["sender"] == from
        };
        let mut since = None;
        loop {
            let (next, rooms) = self.sync_invitations(since.as_deref()).await?;
            for (room, invited) in rooms.as_object().into_iter().flatten() {
                let mut events = invited["invite_state"]["events"].as_array().into_iter();
                if events.any(|events| events.iter().any(is_invitation)) {
                    return Ok(room.clone());
                }
            }
            since = Some(next);
        }
    }

    /// Sets the name that others see.
    ///
    /// # Errors
    /// As every request.
    pub async fn set_display_name(&self, name: &str) -> Result<(), SandboxError> {
        let path = ["profile", self.user_id(), "displayname"];
        self.call(Method::PUT, &path, Some(&json!({"displayname": name})))
            .await
            .map(drop)
    }

    async fn membership(&self, room: &str, verb: &str, body: Value) -> Result<(), SandboxError> {
        self.call(Method::POST, &["rooms", room, verb], Some(&body))
            .await
            .map(drop)
    }
}

fn encryption_state() -> Value {
    json!([{
        "type": "m.room.encryption",
        "state_key": "",
        "content": {"algorithm": "m.megolm.v1.aes-sha2"},
    }])
}
