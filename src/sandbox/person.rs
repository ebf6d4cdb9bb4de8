//! Somebody in unencrypted rooms, doing what a Matrix client does: saying things here, making
//! and leaving rooms in `rooms`, listening in `timeline`.

use std::fmt::Write as _;

use reqwest::Method;
use serde_json::{Value, json};

mod rooms;
mod timeline;

use super::{Account, Homeserver, SandboxError};

pub use rooms::RoomOptions;
pub use timeline::Following;

/// A person with a client, in rooms without encryption. Keeps no state: every question goes to
/// the homeserver.
#[derive(Debug, Clone)]
pub struct Person {
    account: Account,
    server: Homeserver,
}

impl Person {
    /// The person behind an account of the homeserver at `url`.
    ///
    /// # Errors
    /// [`SandboxError::Address`].
    pub fn new(url: &str, account: Account) -> Result<Self, SandboxError> {
        Ok(Self {
            server: Homeserver::new(url)?.as_account(&account),
            account,
        })
    }

    /// The account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Such as `@ada:elicit.test`.
    pub fn user_id(&self) -> &str {
        &self.account.user_id
    }

    /// Sends a text message; the event id, as for everything that is sent below.
    ///
    /// # Errors
    /// As every request.
    pub async fn send_text(&self, room: &str, body: &str) -> Result<String, SandboxError> {
        self.send_content(room, "m.room.message", &text(body)).await
    }

    /// Sends an event of any type.
    ///
    /// # Errors
    /// As every request.
    pub async fn send_content(
        &self,
        room: &str,
        event_type: &str,
        content: &Value,
    ) -> Result<String, SandboxError> {
        let path = ["rooms", room, "send", event_type, &transaction_id()];
        event_id(&self.call(Method::PUT, &path, Some(content)).await?)
    }

    /// Sends a rich reply as today's clients do: a relation, and only the own words as body.
    ///
    /// # Errors
    /// As every request.
    pub async fn reply(&self, room: &str, to: &str, body: &str) -> Result<String, SandboxError> {
        let mut content = text(body);
        content["m.relates_to"] = json!({"m.in_reply_to": {"event_id": to}});
        self.send_content(room, "m.room.message", &content).await
    }

    /// Sends a rich reply as older clients do: the message replied to is quoted in front of the
    /// own words, in the plain body and in the HTML.
    ///
    /// # Errors
    /// As every request; [`SandboxError::Incomplete`] if the message has no body or sender.
    pub async fn reply_with_fallback(
        &self,
        room: &str,
        to: &str,
        body: &str,
    ) -> Result<String, SandboxError> {
        let original = self.event(room, to).await?;
        let sender = original["sender"]
            .as_str()
            .ok_or(SandboxError::Incomplete("sender"))?;
        let quoted = original["content"]["body"]
            .as_str()
            .ok_or(SandboxError::Incomplete("body"))?;
        self.send_content(
            room,
            "m.room.message",
            &fallback_reply(to, sender, quoted, body),
        )
        .await
    }

    /// Sends a message into the thread that `thread` starts.
    ///
    /// # Errors
    /// As every request.
    pub async fn in_thread(
        &self,
        room: &str,
        thread: &str,
        body: &str,
    ) -> Result<String, SandboxError> {
        let mut content = text(body);
        content["m.relates_to"] = json!({
            "rel_type": "m.thread",
            "event_id": thread,
            "is_falling_back": true,
            "m.in_reply_to": {"event_id": thread},
        });
        self.send_content(room, "m.room.message", &content).await
    }

    /// Replaces the text of an own message.
    ///
    /// # Errors
    /// As every request.
    pub async fn edit(&self, room: &str, event: &str, body: &str) -> Result<String, SandboxError> {
        let mut content = text(&format!("* {body}"));
        content["m.new_content"] = text(body);
        content["m.relates_to"] = json!({"rel_type": "m.replace", "event_id": event});
        self.send_content(room, "m.room.message", &content).await
    }

    /// Reacts to a message, with `👍` for instance.
    ///
    /// # Errors
    /// As every request.
    pub async fn react(&self, room: &str, event: &str, key: &str) -> Result<String, SandboxError> {
        let relation = json!({"rel_type": "m.annotation", "event_id": event, "key": key});
        self.send_content(room, "m.reaction", &json!({"m.relates_to": relation}))
            .await
    }

    /// Redacts a message; the id of the redaction.
    ///
    /// # Errors
    /// As every request.
    pub async fn redact(&self, room: &str, event: &str) -> Result<String, SandboxError> {
        let path = ["rooms", room, "redact", event, &transaction_id()];
        event_id(&self.call(Method::PUT, &path, Some(&json!({}))).await?)
    }

    /// Ends this device's session: its token is good for nothing afterwards.
    ///
    /// # Errors
    /// As every request.
    pub async fn log_out(&self) -> Result<(), SandboxError> {
        self.call(Method::POST, &["logout"], Some(&json!({})))
            .await
            .map(drop)
    }

    async fn call(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&Value>,
    ) -> Result<Value, SandboxError> {
        self.server.call(method, path, &[], body).await
    }
}

fn text(body: &str) -> Value {
    json!({"msgtype": "m.text", "body": body})
}

/// The content of a rich reply with its fallback ("Fallbacks for rich replies" in the
/// client-server API up to version 1.12).
fn fallback_reply(to: &str, sender: &str, quoted: &str, body: &str) -> Value {
    let mut lines = quoted.lines();
    let first = lines.next().unwrap_or_default();
    let mut plain = format!("> <{sender}> {first}\n");
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(plain, "> {line}");
    }
    let html = format!(
        "<mx-reply><blockquote><a href=\"https://matrix.to/#/{to}\">In reply to</a> \
         <a href=\"https://matrix.to/#/{sender}\">{sender}</a><br>{}</blockquote></mx-reply>{}",
        escape(quoted),
        escape(body),
    );
    json!({
        "msgtype": "m.text",
        "body": format!("{plain}\n{body}"),
        "format": "org.matrix.custom.html",
        "formatted_body": html,
        "m.relates_to": {"m.in_reply_to": {"event_id": to}},
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\n', "<br>")
}

fn transaction_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn event_id(answer: &Value) -> Result<String, SandboxError> {
    answer["event_id"]
        .as_str()
        .map(str::to_owned)
        .ok_or(SandboxError::Incomplete("event_id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_reply_quotes_every_line_before_its_own_words() {
        let content = fallback_reply("$card", "@bot:elicit.test", "May I?\n1. <Yes>", "1");
        assert_eq!(
            content["body"],
            "> <@bot:elicit.test> May I?\n> 1. <Yes>\n\n1"
        );
        assert_eq!(
            content["formatted_body"],
            "<mx-reply><blockquote><a href=\"https://matrix.to/#/$card\">In reply to</a> \
             <a href=\"https://matrix.to/#/@bot:elicit.test\">@bot:elicit.test</a><br>\
             May I?<br>1. &lt;Yes&gt;</blockquote></mx-reply>1"
        );
    }
}
