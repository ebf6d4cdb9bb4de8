//! The small shapes of sessions: what one is called, and where its messages stand.

use serde_json::{Value, json};

use super::text::{self, line_of};

/// What a session is about, from what was said first.
pub fn title_of(prompt: &str, most: usize) -> String {
    let first = text::lines(prompt)
        .into_iter()
        .find(|line| !line.trim().is_empty());
    line_of(&first.unwrap_or_default(), most)
}

/// Puts a content into the thread with this root. A reply in it stays one.
pub fn relate_thread(content: &mut Value, root: &str) {
    let replies_to = content.pointer("/m.relates_to/m.in_reply_to").cloned();
    let falls_back = replies_to.is_none();
    content["m.relates_to"] = json!({
        "rel_type": "m.thread",
        "event_id": root,
        "is_falling_back": falls_back,
        "m.in_reply_to": replies_to.unwrap_or_else(|| json!({ "event_id": root })),
    });
}
