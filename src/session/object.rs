//! Sessions and activities as agents see them.

use serde_json::{Map, Value, json};

use super::{Activity, Session};
use crate::elicitation::timestamp;

/// A session, the same in every response and event.
pub fn object(session: &Session) -> Value {
    json!({
        "id": session.id,
        "status": session.status.word(),
        "end_reason": session.end_reason().map(super::EndReason::word),
        "agent": session.agent,
        "room_id": session.room_id,
        "thread": session.root,
        "title": session.title,
        "user_id": session.user_id,
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
        "ended_at": session.ended_at.map(timestamp),
    })
}

/// An activity, the same in every response and event. What it has not is left out.
pub fn activity(activity: &Activity) -> Value {
    let mut object = Map::new();
    object.insert("id".to_owned(), json!(activity.id));
    let content = json!({ "type": activity.kind, "body": activity.body });
    object.insert("content".to_owned(), content);
    if let Some(signal) = activity.signal {
        object.insert("signal".to_owned(), json!(signal));
    }
    if let Some(metadata) = &activity.signal_metadata {
        object.insert("signal_metadata".to_owned(), metadata.clone());
    }
    if let Some(author) = &activity.author {
        object.insert("user".to_owned(), json!(author));
    }
    if activity.ephemeral {
        object.insert("ephemeral".to_owned(), json!(true));
    }
    let created_at = json!(timestamp(activity.created_at));
    object.insert("created_at".to_owned(), created_at);
    Value::Object(object)
}

/// What an agent hears of a prompt: the whole body of a webhook, and the data of a streamed event.
pub fn event(action: &str, session: &Session, prompt: &Activity) -> Value {
    json!({
        "action": action,
        "agent_session": object(session),
        "agent_activity": activity(prompt),
    })
}
