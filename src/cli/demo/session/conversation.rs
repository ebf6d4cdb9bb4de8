//! The room during the session: what is said there, and what the person says.

use std::{collections::HashMap, pin::pin, time::Duration};

use anyhow::bail;
use serde_json::Value;
use tokio::time::Instant;

use super::{Api, OPENING};
use crate::{
    cli::demo::{
        SOON,
        screen::{self, Screen},
        show::{Shown, local_part, said, shown},
    },
    contract::CARD_KEY,
    elicitation::timestamp,
    sandbox::{Following, Person},
};

/// How often the session is looked at.
const POLL: Duration = Duration::from_millis(200);
/// How long the room may take for its last words, and how long it is silent then.
const AFTERMATH: Duration = Duration::from_secs(10);
const QUIET: Duration = Duration::from_secs(1);
/// Whoever is asked to connect an account has all the time in the world to be invited.
const INVITATION_LIMIT: Duration = Duration::from_hours(1);
/// What a script says to a request to connect an account.
const DONE: &str = "done";

/// One session in one room, as a person follows it.
pub struct Conversation<'a> {
    person: &'a Person,
    bot: String,
    room: Following,
    room_id: String,
    screen: Screen,
    /// What messages say now, by their event ids.
    bodies: HashMap<String, String>,
    /// The cards that are in the room.
    cards: Vec<Value>,
    /// The session and its activities, as they stood when last looked at.
    object: Value,
    /// When the root was last edited, as the homeserver says.
    edited_at: String,
    /// Whether the person was invited into a room of their own to connect an account.
    is_asked_alone: bool,
    /// The activities that a script has answered.
    answered: Vec<Value>,
}

impl<'a> Conversation<'a> {
    /// The person looks into a room that they are in.
    pub async fn enter(
        person: &'a Person,
        bot: &str,
        room_id: &str,
        screen: &Screen,
    ) -> anyhow::Result<Self> {
        let (_, room) = person.follow(room_id).await?;
        Ok(Self {
            person,
            bot: bot.to_owned(),
            room,
            room_id: room_id.to_owned(),
            screen: screen.clone(),
            bodies: HashMap::new(),
            cards: Vec::new(),
            object: Value::Null,
            edited_at: String::new(),
            is_asked_alone: false,
            answered: Vec::new(),
        })
    }

    /// Begins a session and shows the room until it is over: the session and its activities. With
    /// a reply given, that is said to the first question. A person has all the time in the world;
    /// everything else has [`SOON`].
    pub async fn until_over(&mut self, api: &Api, reply: Option<String>) -> anyhow::Result<Value> {
        let is_scripted = reply.is_some();
        let mut lines = screen::lines(reply);
        let mut script = None;
        if is_scripted {
            script = lines.recv().await;
            self.say(OPENING).await?;
        } else {
            self.screen.say(&format!(
                "Tell the agent what it is to do, by its name. Enter alone says:\n  {OPENING}"
            ));
            self.screen.prompt();
        }
        let mut more_to_come = !is_scripted;
        let mut give_up = Instant::now() + SOON;
        let mut looking = tokio::time::interval(POLL);
        let (person, bot) = (self.person, self.bot.clone());
        let mut invited = pin!(person.wait_for_invitation(&bot, INVITATION_LIMIT));
        loop {
            tokio::select! {
                events = self.room.next() => self.show(&events?),
                _ = looking.tick() => {
                    if self.look(api).await? {
                        give_up = Instant::now() + SOON;
                    }
                    if self.is_over() {
                        self.screen.end_prompt();
                        return Ok(self.object.clone());
                    }
                    if let Some(line) = self.scripted(script.as_deref()) {
                        self.say(&line).await?;
                    }
                }
                room_id = &mut invited, if self.is_waiting_for_account() && !self.is_asked_alone => {
                    self.asked_alone(&room_id?).await?;
                }
                line = lines.recv(), if more_to_come && self.may_speak() => {
                    more_to_come = line.is_some();
                    give_up = Instant::now() + SOON;
                    self.typed(line).await?;
                }
                () = tokio::time::sleep_until(give_up), if !more_to_come => bail!(
                    "nothing happened for {} s; the session is {}",
                    SOON.as_secs(),
                    self.object["session"]["status"].as_str().unwrap_or("not there")
                ),
            }
        }
    }

    /// Shows the room until it has its last words. A room that stays silent is a pity, and no
    /// reason to withhold the result.
    pub async fn until_settled(&mut self, session: &Value) -> anyhow::Result<()> {
        let over_at = session["updated_at"].as_str().unwrap_or_default();
        let give_up = Instant::now() + AFTERMATH;
        loop {
            let is_edited = self.edited_at.as_str() >= over_at;
            let quiet = if is_edited { QUIET } else { AFTERMATH };
            tokio::select! {
                events = self.room.next() => self.show(&events?),
                () = tokio::time::sleep(quiet), if is_edited => return Ok(()),
                () = tokio::time::sleep_until(give_up) => return Ok(()),
            }
        }
    }

    /// Looks at the session; whether anything has become of it.
    async fn look(&mut self, api: &Api) -> anyhow::Result<bool> {
        let Some(object) = api.newest().await? else {
            return Ok(false);
        };
        let had_thread = self.thread().is_some();
        let has_changed = object != self.object;
        self.object = object;
        if !had_thread && self.thread().is_some() && !self.screen.is_scripted() {
            self.screen.interject(
                "(What you type from here on goes into the session's thread; `!stop` stops the agent.)",
            );
            self.screen.prompt();
        }
        Ok(has_changed)
    }

    /// The person types a line, or will type no more.
    async fn typed(&mut self, line: Option<String>) -> anyhow::Result<()> {
        self.screen.end_prompt();
        match line.as_deref().map(str::trim_end) {
            Some("") if self.object.is_null() => self.say(OPENING).await?,
            Some("") => {}
            Some(line) => self.say(line).await?,
            None if self.object.is_null() => {
                bail!("nothing was typed; `--reply TEXT` replies for you")
            }
            None => return Ok(()),
        }
        self.screen.prompt();
        Ok(())
    }

    /// Says something in the session's thread, once there is one.
    async fn say(&self, line: &str) -> anyhow::Result<()> {
        match self.thread() {
            Some(root) => self.person.in_thread(&self.room_id, root, line).await?,
            None => self.person.send_text(&self.room_id, line).await?,
        };
        Ok(())
    }

    /// What a script says now: the reply to what the agent asks, and that an account is connected.
    fn scripted(&mut self, reply: Option<&str>) -> Option<String> {
        let reply = reply?;
        let asked = self.asked()?.clone();
        let line = match asked["signal"].as_str() {
            Some("auth") if self.is_asked_alone => DONE,
            Some("select") if self.cards.contains(&asked["id"]) => reply,
            _ => return None,
        };
        if self.answered.contains(&asked["id"]) {
            return None;
        }
        // What was no answer the first time is none the second time either.
        let is_new = asked["signal"] == "auth" || self.answered.is_empty();
        self.answered.push(asked["id"].clone());
        is_new.then(|| line.to_owned())
    }

    /// The bot has invited the person alone. There the link is, which this program cannot read.
    async fn asked_alone(&mut self, room_id: &str) -> anyhow::Result<()> {
        self.person.join(room_id).await?;
        self.is_asked_alone = true;
        let (bot, person) = (local_part(&self.bot), local_part(self.person.user_id()));
        self.screen.interject(&format!(
            "({bot} invited {person} into a room for the two of them. The link is there, encrypted: \
             your client would show it, this demo has no keys to read it with. It is an example \
             that leads nowhere, so there is nothing to connect; say `{DONE}`.)"
        ));
        Ok(())
    }

    /// Where the session is in the room.
    fn thread(&self) -> Option<&str> {
        self.object["session"]["thread"].as_str()
    }

    /// What is said goes to a session, or may begin one. In between there is no place to say it.
    fn may_speak(&self) -> bool {
        self.object.is_null() || self.thread().is_some()
    }

    /// What the agent waits for.
    fn asked(&self) -> Option<&Value> {
        let activities = self.object["activities"].as_array()?;
        let waits = self.object["session"]["status"] == "awaitingInput";
        activities.last().filter(|_| waits)
    }

    fn is_waiting_for_account(&self) -> bool {
        self.asked().is_some_and(|asked| asked["signal"] == "auth")
    }

    fn is_over(&self) -> bool {
        let status = self.object["session"]["status"].as_str();
        matches!(status, Some("complete" | "error"))
    }

    /// Shows what came; of an edit only what is new in it.
    fn show(&mut self, events: &[Value]) {
        for event in events {
            let own = event["sender"] == self.person.user_id();
            // What was typed stands on the screen already.
            if own && !self.screen.is_scripted() {
                continue;
            }
            let (kind, text) = shown(event);
            if kind == Shown::Nothing {
                continue;
            }
            let card = &event["content"][CARD_KEY]["elicitation_id"];
            if card.is_string() {
                self.cards.push(card.clone());
            }
            if let Some(text) = self.news(event, text) {
                self.screen.interject(&text);
            }
        }
    }

    /// What is to be shown of an event whose text this is: of a message that is edited only what is
    /// new, if anything is.
    fn news(&mut self, event: &Value, text: String) -> Option<String> {
        let (content, relation) = (&event["content"], &event["content"]["m.relates_to"]);
        let edits = relation["rel_type"] == "m.replace";
        let (content, id) = if edits {
            (&content["m.new_content"], &relation["event_id"])
        } else {
            (content, &event["event_id"])
        };
        let (Some(body), Some(id)) = (content["body"].as_str(), id.as_str()) else {
            return Some(text);
        };
        let before = self.bodies.insert(id.to_owned(), body.to_owned());
        if !edits {
            return Some(text);
        }
        if Some(id) == self.thread() {
            let at = event["origin_server_ts"].as_i64().unwrap_or_default();
            self.edited_at = timestamp(at);
        }
        let before = before.unwrap_or_default();
        let is_new = |line: &&str| !before.lines().any(|known| known == *line);
        let new: Vec<&str> = body.lines().filter(is_new).collect();
        let sender = local_part(event["sender"].as_str().unwrap_or_default());
        (!new.is_empty()).then(|| said(&format!("{sender} (edited)"), &new.join("\n")))
    }
}
