//! The talk of a room that is an agent's stream: its lines and the votes for them.

use serde_json::Value;

use super::{Ear, RawEvent, Relation, text};
use crate::contract::CARD_KEY;
use crate::desk::{self, Bot, Chat, What};
use crate::digest;
use crate::reply::{Command, Wish};

impl Ear<'_> {
    /// What an event is in the talk of an agent's stream. Of those who are never read it is nothing.
    pub(super) fn chat(&self, event: &RawEvent, talk: bool) -> Option<Chat> {
        let read = talk && !self.is_bot(&event.sender) && !self.carriers.contains(&event.sender);
        if !read {
            return None;
        }
        match event.event_type.as_str() {
            "m.room.message" => line(&event.content),
            "m.reaction" => vote(&event.content),
            _ => None,
        }
    }

    /// Whether a message says that agents must not read its sender.
    pub(super) fn turns_off(&self, what: &What) -> bool {
        let What::Message(said) = what else {
            return false;
        };
        let named = Bot {
            user_id: self.room.own_user_id().to_string(),
            display_name: None,
        };
        let command = desk::command(said, self.commands, &named);
        command == Some(Command::Agents(Wish::Off))
    }
}

/// A message as a line of talk (`digest.md` 3): `m.text` and `m.emote`, and edits of what may have
/// been one. Cards are none.
fn line(content: &Value) -> Option<Chat> {
    let relation = Relation::of(content);
    let is_edit = relation.replaces.is_some();
    let read = if is_edit {
        content.get("m.new_content")?
    } else {
        content
    };
    let msgtype = read.get("msgtype").and_then(Value::as_str);
    let is_card = content.get(CARD_KEY).is_some() || read.get(CARD_KEY).is_some();
    let body = text(read.get("body"))
        .filter(|_| !is_card && matches!(msgtype, Some("m.text" | "m.emote")));
    if body.is_none() && !is_edit {
        return None;
    }
    let mentions = read.pointer("/m.mentions/user_ids");
    let mentions = mentions.and_then(Value::as_array).into_iter().flatten();
    Some(Chat::Line {
        body,
        emote: msgtype == Some("m.emote"),
        in_reply_to: relation.in_reply_to.filter(|_| !relation.falling_back),
        mentions: mentions
            .filter_map(|user| user.as_str().map(str::to_owned))
            .collect(),
        replaces: relation.replaces,
    })
}

/// A reaction as a vote (`digest.md` 9): a thumbs up. Any other is none.
fn vote(content: &Value) -> Option<Chat> {
    let relation = content.get("m.relates_to")?;
    let key = relation.get("key").and_then(Value::as_str)?;
    let annotates = relation.get("rel_type").and_then(Value::as_str) == Some("m.annotation");
    let target = text(relation.get("event_id"))?;
    (annotates && digest::is_thumbs_up(key)).then_some(Chat::Vote { target })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said_line(body: &str) -> Chat {
        Chat::Line {
            body: Some(body.to_owned()),
            emote: false,
            in_reply_to: None,
            mentions: Vec::new(),
            replaces: None,
        }
    }

    #[test]
    fn lines_are_texts_and_emotes_and_nothing_else() {
        let read = |msgtype: &str| line(&json!({"msgtype": msgtype, "body": "hm"}));
        assert_eq!(read("m.text"), Some(said_line("hm")));
        let mut waved = said_line("hm");
        if let Chat::Line { emote, .. } = &mut waved {
            *emote = true;
        }
        assert_eq!(read("m.emote"), Some(waved));
        for other in ["m.notice", "m.image", "m.file", "m.location", "org.x.poll"] {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(line(&json!({"body": "hm"})), None);
        assert_eq!(line(&json!({"msgtype": "m.text", "body": 1})), None);
        assert_eq!(
            line(&json!({"msgtype": "m.text", "body": "1", CARD_KEY: {}})),
            None
        );
    }

    #[test]
    fn an_edit_into_what_is_no_line_takes_the_line_away() {
        let edit = |msgtype: &str| {
            line(&json!({
                "msgtype": "m.text", "body": "* new",
                "m.new_content": {"msgtype": msgtype, "body": "new"},
                "m.relates_to": {"rel_type": "m.replace", "event_id": "$old"},
            }))
        };
        let expected = |body: Option<&str>| {
            Some(Chat::Line {
                body: body.map(str::to_owned),
                emote: false,
                in_reply_to: None,
                mentions: Vec::new(),
                replaces: Some("$old".to_owned()),
            })
        };
        assert_eq!(edit("m.text"), expected(Some("new")));
        assert_eq!(edit("m.notice"), expected(None));
        let without = json!({"msgtype": "m.text", "body": "* new",
            "m.relates_to": {"rel_type": "m.replace", "event_id": "$old"}});
        assert_eq!(line(&without), None);
    }

    /// `digest.md` 3: threads and replies are ordinary lines; whom a thread falls back to was not
    /// replied to.
    #[test]
    fn a_line_keeps_what_it_replies_to_and_whom_it_mentions() {
        let reply = json!({
            "msgtype": "m.text", "body": "yes",
            "m.mentions": {"user_ids": ["@ada:x.org", 7, "@sam:x.org"]},
            "m.relates_to": {"m.in_reply_to": {"event_id": "$asked"}},
        });
        let expected = Chat::Line {
            body: Some("yes".to_owned()),
            emote: false,
            in_reply_to: Some("$asked".to_owned()),
            mentions: vec!["@ada:x.org".to_owned(), "@sam:x.org".to_owned()],
            replaces: None,
        };
        assert_eq!(line(&reply), Some(expected));
        let threaded = json!({"msgtype": "m.text", "body": "yes", "m.relates_to": {
            "rel_type": "m.thread", "event_id": "$root", "is_falling_back": true,
            "m.in_reply_to": {"event_id": "$asked"},
        }});
        assert_eq!(line(&threaded), Some(said_line("yes")));
    }

    #[test]
    fn only_thumbs_up_are_votes() {
        let react = |rel_type: &str, key: &str| {
            vote(&json!({"m.relates_to": {"rel_type": rel_type, "event_id": "$m", "key": key}}))
        };
        let expected = Some(Chat::Vote {
            target: "$m".to_owned(),
        });
        assert_eq!(react("m.annotation", "👍️"), expected);
        assert_eq!(react("m.annotation", "👍🏽"), expected);
        assert_eq!(react("m.annotation", "👎"), None);
        assert_eq!(react("m.thread", "👍"), None);
        assert_eq!(vote(&json!({})), None);
    }
}
