//! A room's events as lines on a terminal.

use serde_json::Value;

use crate::contract::CARD_KEY;

/// What an event turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Somebody said something.
    Message,
    /// A reaction, or an edit: what the bot does once a question is closed.
    Aftermath,
    /// Nothing that a person would see.
    Nothing,
}

/// The kind of an event, and its text if there is any.
pub fn shown(event: &Value) -> (Shown, String) {
    let sender = local_part(event["sender"].as_str().unwrap_or_default());
    let content = &event["content"];
    let relation = &content["m.relates_to"];
    match event["type"].as_str() {
        Some("m.room.message") if relation["rel_type"] == "m.replace" => {
            let body = content["m.new_content"]["body"]
                .as_str()
                .unwrap_or_default();
            (Shown::Aftermath, said(&format!("{sender} (edited)"), body))
        }
        Some("m.room.message") => match content["body"].as_str() {
            Some(body) => (Shown::Message, said(sender, body)),
            None => (Shown::Nothing, String::new()),
        },
        Some("m.reaction") => {
            let key = relation["key"].as_str().unwrap_or_default();
            (Shown::Aftermath, format!("{sender} reacted: {key}"))
        }
        _ => (Shown::Nothing, String::new()),
    }
}

/// Whether an event carries the card of this elicitation.
pub fn is_card(event: &Value, id: &str) -> bool {
    event["content"][CARD_KEY]["elicitation_id"] == id
}

/// A user id without its `@` and server, which are the same for everybody here.
pub fn local_part(user_id: &str) -> &str {
    let bare = user_id.strip_prefix('@').unwrap_or(user_id);
    bare.split_once(':').map_or(bare, |(local, _)| local)
}

/// What somebody said, line by line.
pub fn said(who: &str, body: &str) -> String {
    let lines: Vec<String> = body
        .lines()
        .map(|line| format!("  │ {line}").trim_end().to_owned())
        .collect();
    format!("{who}\n{}", lines.join("\n"))
}

/// Without what could move the cursor or change the terminal: people's text is not ours.
pub fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| *c == '\n' || !c.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn show(event_type: &str, content: &Value) -> (Shown, String) {
        let event = json!({"sender": "@ada:elicit.test", "type": event_type, "content": content});
        shown(&event)
    }

    #[test]
    fn a_message_is_shown_line_by_line_under_its_sender() {
        assert_eq!(
            show("m.room.message", &json!({"body": "May I?\n\n1. Yes"})),
            (
                Shown::Message,
                "ada\n  │ May I?\n  │\n  │ 1. Yes".to_owned()
            )
        );
    }

    #[test]
    fn an_edit_is_shown_with_its_new_text() {
        let content = json!({
            "body": "* Yes",
            "m.new_content": {"body": "Yes"},
            "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"},
        });
        assert_eq!(
            show("m.room.message", &content),
            (Shown::Aftermath, "ada (edited)\n  │ Yes".to_owned())
        );
    }

    #[test]
    fn a_reaction_is_shown_with_its_key_and_a_redacted_message_not_at_all() {
        let content = json!({"m.relates_to": {"rel_type": "m.annotation", "key": "✓"}});
        let reaction = (Shown::Aftermath, "ada reacted: ✓".to_owned());
        assert_eq!(show("m.reaction", &content), reaction);
        assert_eq!(
            show("m.room.message", &json!({})),
            (Shown::Nothing, String::new())
        );
        assert_eq!(
            show("m.room.topic", &json!({"topic": "a"})),
            (Shown::Nothing, String::new())
        );
    }

    #[test]
    fn nothing_that_is_shown_can_move_the_cursor() {
        assert_eq!(printable("a\u{1b}[2J\r\nb\u{9b}c"), "a[2J\nbc");
    }
}
