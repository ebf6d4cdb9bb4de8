//! Somebody in encrypted rooms, with a client of the kind that people have.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use matrix_elicit::sandbox::{Person, Synapse};
use matrix_sdk::{
    Client, Room, SessionMeta, SessionTokens,
    authentication::matrix::MatrixSession,
    config::SyncSettings,
    deserialized_responses::TimelineEventKind,
    encryption::EncryptionSettings,
    ruma::{OwnedRoomId, RoomId, events::AnySyncTimelineEvent, serde::Raw},
    store::RoomLoadSettings,
    sync::SyncResponse,
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};

use super::SOON;

/// An event as this person's client shows it.
#[derive(Debug, Clone)]
struct Seen {
    room: OwnedRoomId,
    /// Decrypted if it can be; all its content keys, known or not.
    event: Value,
    encrypted: bool,
    readable: bool,
}

/// A person with an end-to-end-encrypting client, syncing in the background for as long as this
/// lives. Its keys are in memory only.
pub struct EncryptedPerson {
    client: Client,
    plain: Person,
    seen: Arc<Mutex<Vec<Seen>>>,
    synced: watch::Receiver<u64>,
    sync_task: JoinHandle<()>,
}

impl EncryptedPerson {
    /// Makes an account of that name, with one device, and begins to sync.
    pub async fn register(synapse: &Synapse, localpart: &str) -> Self {
        let account = synapse.register(localpart, "password").await.unwrap();
        let encryption_settings = EncryptionSettings {
            auto_enable_cross_signing: false,
            ..Default::default()
        };
        let client = Client::builder()
            .homeserver_url(synapse.url())
            .with_encryption_settings(encryption_settings)
            .build()
            .await
            .unwrap();
        let session = MatrixSession {
            meta: SessionMeta {
                user_id: account.user_id.parse().unwrap(),
                device_id: account.device_id.as_str().into(),
            },
            tokens: SessionTokens {
                access_token: account.access_token.clone(),
                refresh_token: None,
            },
        };
        client
            .matrix_auth()
            .restore_session(session, RoomLoadSettings::default())
            .await
            .unwrap();

        let seen = Arc::new(Mutex::new(Vec::new()));
        let (tell, synced) = watch::channel(0);
        let sync_task = tokio::spawn(keep_syncing(client.clone(), seen.clone(), tell));
        let plain = Person::new(&synapse.url(), account).unwrap();
        let mut person = Self {
            client,
            plain,
            seen,
            synced,
            sync_task,
        };
        // After the first sync the device has published its keys, so others can write to it.
        person.synced.wait_for(|count| *count > 0).await.unwrap();
        person
    }

    /// The same person without encryption: for making rooms, inviting, looking at state.
    pub fn plain(&self) -> &Person {
        &self.plain
    }

    /// Such as `@ada-01234567:elicit.test`.
    pub fn user_id(&self) -> &str {
        self.plain.user_id()
    }

    /// Publishes a cross-signing identity and signs this device with it, as clients do when an
    /// account is set up.
    pub async fn sign_own_device(&self) {
        self.client
            .encryption()
            .bootstrap_cross_signing(None)
            .await
            .unwrap();
    }

    /// Joins by id or alias, and waits until the client knows the room.
    pub async fn join(&self, room: &str) -> String {
        let room = self.plain.join(room).await.unwrap();
        self.room(&room).await;
        room
    }

    /// Sends a text message, encrypted if the room is; the event id.
    pub async fn send_text(&self, room: &str, body: &str) -> String {
        self.send_content(
            room,
            "m.room.message",
            json!({"msgtype": "m.text", "body": body}),
        )
        .await
    }

    /// Sends any content, encrypted if the room is; the event id.
    pub async fn send_content(&self, room: &str, event_type: &str, content: Value) -> String {
        let room = self.room(room).await;
        let sent = room.send_raw(event_type, content).await.unwrap();
        sent.response.event_id.to_string()
    }

    /// Sends a rich reply.
    pub async fn reply(&self, room: &str, to: &str, body: &str) -> String {
        let content = json!({
            "msgtype": "m.text",
            "body": body,
            "m.relates_to": {"m.in_reply_to": {"event_id": to}},
        });
        self.send_content(room, "m.room.message", content).await
    }

    /// Sends a message into the thread that `thread` starts.
    pub async fn in_thread(&self, room: &str, thread: &str, body: &str) -> String {
        let content = json!({
            "msgtype": "m.text",
            "body": body,
            "m.relates_to": {
                "rel_type": "m.thread",
                "event_id": thread,
                "is_falling_back": true,
                "m.in_reply_to": {"event_id": thread},
            },
        });
        self.send_content(room, "m.room.message", content).await
    }

    /// Replaces the text of an own message.
    pub async fn edit(&self, room: &str, event: &str, body: &str) -> String {
        let content = json!({
            "msgtype": "m.text",
            "body": format!("* {body}"),
            "m.new_content": {"msgtype": "m.text", "body": body},
            "m.relates_to": {"rel_type": "m.replace", "event_id": event},
        });
        self.send_content(room, "m.room.message", content).await
    }

    /// The first event, seen already or to come, that was encrypted, that this person can read,
    /// and that `wanted` holds for. Its JSON is what was inside, with all its content keys.
    pub async fn wait_for_decrypted(
        &self,
        room: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        self.wait_for_seen(what, |seen| {
            seen.room == room && seen.encrypted && seen.readable && wanted(&seen.event)
        })
        .await
    }

    /// The first event of any kind, seen already or to come, that `wanted` holds for.
    pub async fn wait_for(&self, room: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.wait_for_seen(what, |seen| seen.room == room && wanted(&seen.event))
            .await
    }

    /// What this person sees in a room now, the oldest first.
    pub fn timeline(&self, room: &str) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter(|seen| seen.room == room)
            .map(|seen| seen.event.clone())
            .collect()
    }

    async fn wait_for_seen(&self, what: &str, wanted: impl Fn(&Seen) -> bool) -> Value {
        let mut synced = self.synced.clone();
        let found = async {
            loop {
                synced.borrow_and_update();
                let hit = self
                    .seen
                    .lock()
                    .unwrap()
                    .iter()
                    .find(|seen| wanted(seen))
                    .cloned();
                if let Some(seen) = hit {
                    return seen.event;
                }
                synced
                    .changed()
                    .await
                    .expect("the person syncs for as long as the test runs");
            }
        };
        let Ok(event) = tokio::time::timeout(SOON, found).await else {
            let seen = self.seen.lock().unwrap();
            panic!(
                "{} waited in vain for {what}; seen: {seen:#?}",
                self.user_id()
            );
        };
        event
    }

    /// The room, once the client knows of it.
    async fn room(&self, room: &str) -> Room {
        let id = RoomId::parse(room).unwrap();
        let mut synced = self.synced.clone();
        let found = async {
            loop {
                synced.borrow_and_update();
                if let Some(room) = self.client.get_room(&id) {
                    return room;
                }
                synced.changed().await.unwrap();
            }
        };
        tokio::time::timeout(SOON, found)
            .await
            .expect("the room comes with a sync")
    }
}

impl Drop for EncryptedPerson {
    fn drop(&mut self) {
        self.sync_task.abort();
    }
}

async fn keep_syncing(client: Client, seen: Arc<Mutex<Vec<Seen>>>, tell: watch::Sender<u64>) {
    let settings = || SyncSettings::new().timeout(Duration::from_secs(10));
    loop {
        match client
            .sync_once(settings().ignore_timeout_on_first_sync(true))
            .await
        {
            Ok(response) => {
                take_in(&seen, response);
                decrypt_again(&client, &seen).await;
                tell.send_modify(|count| *count += 1);
            }
            // The homeserver may be down because the test wants it so.
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

fn take_in(seen: &Mutex<Vec<Seen>>, response: SyncResponse) {
    let mut seen = seen.lock().unwrap();
    for (room, update) in response.rooms.joined {
        for event in update.timeline.events {
            let (encrypted, readable) = match event.kind {
                TimelineEventKind::Decrypted(_) => (true, true),
                TimelineEventKind::UnableToDecrypt { .. } => (true, false),
                TimelineEventKind::PlainText { .. } => (false, true),
            };
            let event = event.raw().deserialize_as_unchecked().unwrap();
            seen.push(Seen {
                room: room.clone(),
                event,
                encrypted,
                readable,
            });
        }
    }
}

/// Keys may come after the message they are for.
async fn decrypt_again(client: &Client, seen: &Mutex<Vec<Seen>>) {
    let unreadable: Vec<(usize, Seen)> = {
        let seen = seen.lock().unwrap();
        seen.iter()
            .cloned()
            .enumerate()
            .filter(|(_, seen)| !seen.readable)
            .collect()
    };
    for (index, unread) in unreadable {
        let Some(room) = client.get_room(&unread.room) else {
            continue;
        };
        let raw = Raw::<AnySyncTimelineEvent>::from_json(
            serde_json::value::to_raw_value(&unread.event).unwrap(),
        );
        let Ok(event) = room.decrypt_event(&raw.cast_unchecked(), None).await else {
            continue;
        };
        if matches!(event.kind, TimelineEventKind::Decrypted(_)) {
            let mut seen = seen.lock().unwrap();
            seen[index].event = event.raw().deserialize_as_unchecked().unwrap();
            seen[index].readable = true;
        }
    }
}
