//! What was said in a room, and what is being said.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Person, SandboxError};

/// How long one `/sync` may hang. Short enough that a wait ends near its own limit.
const LONG_POLL_MS: &str = "5000";
const PAGE: &str = "100";

impl Person {
    /// One event as it is now.
    ///
    /// # Errors
    /// As every request.
    pub async fn event(&self, room: &str, event: &str) -> Result<Value, SandboxError> {
        self.call(Method::GET, &["rooms", room, "event", event], None)
            .await
    }

    /// Every event of the room that this person may see, the oldest first.
    ///
    /// # Errors
    /// As every request.
    pub async fn timeline(&self, room: &str) -> Result<Vec<Value>, SandboxError> {
        self.timeline_before(room, None).await
    }

    /// What is in the room now, the oldest first, and whatever comes after.
    ///
    /// # Errors
    /// As every request.
    pub async fn follow(&self, room: &str) -> Result<(Vec<Value>, Following), SandboxError> {
        let since = self.sync(room, None).await?.0;
        let known = self.timeline_before(room, Some(&since)).await?;
        let following = Following {
            person: self.clone(),
            room: room.to_owned(),
            since,
        };
        Ok((known, following))
    }

    /// The first event of the room that `wanted` holds for: from what is there already, or as it
    /// comes. `what` is for the error message.
    ///
    /// # Errors
    /// [`SandboxError::Timeout`] if there is none after `limit`; else as every request.
    pub async fn wait_for(
        &self,
        room: &str,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value, SandboxError> {
        let found = async {
            let (known, mut following) = self.follow(room).await?;
            if let Some(event) = known.into_iter().find(&wanted) {
                return Ok(event);
            }
            loop {
                if let Some(event) = following.next().await?.into_iter().find(&wanted) {
                    return Ok(event);
                }
            }
        };
        tokio::time::timeout(limit, found)
            .await
            .unwrap_or_else(|_| {
                Err(SandboxError::Timeout {
                    what: what.to_owned(),
                    seconds: limit.as_secs(),
                })
            })
    }

    /// The room's events up to a sync token, or all of them; the oldest first.
    async fn timeline_before(
        &self,
        room: &str,
        token: Option<&str>,
    ) -> Result<Vec<Value>, SandboxError> {
        let mut events = Vec::new();
        let mut from = token.map(str::to_owned);
        loop {
            let mut query = vec![("dir", "b"), ("limit", PAGE)];
            if let Some(from) = &from {
                query.push(("from", from));
            }
            let path = ["rooms", room, "messages"];
            let mut answer = self.server.call(Method::GET, &path, &query, None).await?;
            if let Value::Array(page) = answer["chunk"].take() {
                events.extend(page);
            }
            match answer["end"].as_str() {
                Some(end) => from = Some(end.to_owned()),
                None => break,
            }
        }
        events.reverse();
        Ok(events)
    }

    /// The next token, and what came in the room since the last one; at once if there is no
    /// last one.
    async fn sync(
        &self,
        room: &str,
        since: Option<&str>,
    ) -> Result<(String, Vec<Value>), SandboxError> {
        let filter = json!({
            "room": {"rooms": [room], "timeline": {"limit": 100}},
            "presence": {"types": []},
        });
        let (next, mut answer) = self.sync_with(&filter, since).await?;
        let events = match answer["rooms"]["join"][room]["timeline"]["events"].take() {
            Value::Array(events) => events,
            _ => Vec::new(),
        };
        Ok((next, events))
    }

    /// The next token, and the rooms that the person has been invited to since the last one.
    pub(super) async fn sync_invitations(
        &self,
        since: Option<&str>,
    ) -> Result<(String, Value), SandboxError> {
        let nothing = json!({"types": []});
        let filter = json!({
            "room": {"timeline": nothing, "state": nothing, "ephemeral": nothing},
            "presence": nothing,
            "account_data": nothing,
        });
        let (next, mut answer) = self.sync_with(&filter, since).await?;
        Ok((next, answer["rooms"]["invite"].take()))
    }

    async fn sync_with(
        &self,
        filter: &Value,
        since: Option<&str>,
    ) -> Result<(String, Value), SandboxError> {
        let filter = filter.to_string();
        let mut query = vec![("filter", filter.as_str())];
        if let Some(since) = since {
            query.extend([("since", since), ("timeout", LONG_POLL_MS)]);
        }
        let answer = self
            .server
            .call(Method::GET, &["sync"], &query, None)
            .await?;
        let next = answer["next_batch"]
            .as_str()
            .map(str::to_owned)
            .ok_or(SandboxError::Incomplete("next_batch"))?;
        Ok((next, answer))
    }
}

/// A place in a room's timeline, which moves on as it is read. See [`Person::follow`].
#[derive(Debug)]
pub struct Following {
    person: Person,
    room: String,
    since: String,
}

impl Following {
    /// What came since the last time, if need be waiting for it; perhaps nothing, after some
    /// seconds. A call that is abandoned loses nothing.
    ///
    /// # Errors
    /// As every request.
    pub async fn next(&mut self) -> Result<Vec<Value>, SandboxError> {
        let (next, events) = self.person.sync(&self.room, Some(&self.since)).await?;
        self.since = next;
        Ok(events)
    }
}
