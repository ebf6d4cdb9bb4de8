//! The room during the demo: what is said there, and what the person says.

use std::{future::Future, mem, pin::pin, time::Duration};

use anyhow::bail;
use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};

use super::{
    SOON,
    screen::Screen,
    show::{Shown, is_card, shown},
};
use crate::sandbox::{Following, Person};

/// How long to wait for the room to settle after the answer: the tick and the edited card.
const AFTERMATH: Duration = Duration::from_secs(5);

/// One question in one room, as a person follows it.
pub struct Play<'a> {
    person: &'a Person,
    /// What was in the room already and has not been shown.
    known: Vec<Value>,
    room: Following,
    room_id: String,
    screen: Screen,
    card_is_there: bool,
    /// How many signs there are that the bot is done: the tick, the edited card.
    aftermath: u32,
}

impl<'a> Play<'a> {
    /// The person looks into a room that they are in.
    pub async fn enter(person: &'a Person, room_id: &str, screen: &Screen) -> anyhow::Result<Self> {
        let (known, room) = person.follow(room_id).await?;
        Ok(Self {
            person,
            known,
            room,
            room_id: room_id.to_owned(),
            screen: screen.clone(),
            card_is_there: false,
            aftermath: 0,
        })
    }

    /// Shows the room and sends what is replied once the card is there, until the question is
    /// `closed`. A person has all the time in the world; everything else has [`SOON`].
    pub async fn until_closed(
        &mut self,
        id: &str,
        mut replies: mpsc::Receiver<String>,
        closed: impl Future<Output = anyhow::Result<Value>>,
    ) -> anyhow::Result<Value> {
        let mut closed = pin!(closed);
        let mut more_to_come = true;
        let mut has_replied = false;
        let mut give_up = Instant::now() + SOON;
        let known = mem::take(&mut self.known);
        self.take_in(&known, id, more_to_come);
        loop {
            let may_reply = self.card_is_there && more_to_come;
            tokio::select! {
                object = &mut closed => {
                    self.screen.end_prompt();
                    return object;
                }
                events = self.room.next() => self.take_in(&events?, id, more_to_come),
                line = replies.recv(), if may_reply => match line {
                    Some(line) => {
                        self.screen.end_prompt();
                        if line.trim().is_empty() {
                            self.screen.prompt();
                        } else {
                            self.person.send_text(&self.room_id, line.trim_end()).await?;
                            has_replied = true;
                        }
                    }
                    None if has_replied => {
                        self.screen.end_prompt();
                        more_to_come = false;
                        give_up = Instant::now() + SOON;
                    }
                    None => bail!("nothing was typed; `--reply TEXT` replies for you"),
                },
                () = tokio::time::sleep_until(give_up), if !may_reply => {
                    let seconds = SOON.as_secs();
                    if self.card_is_there {
                        bail!("no answer within {seconds} s: the reply was not taken as one");
                    }
                    bail!("the card did not come within {seconds} s");
                }
            }
        }
    }

    /// Shows the room until the bot has ticked the reply and edited the card. A room that stays
    /// silent is a pity, and no reason to withhold the answer.
    pub async fn until_settled(&mut self) -> anyhow::Result<()> {
        let settled = async {
            while self.aftermath < 2 {
                let events = self.room.next().await?;
                self.show(&events);
            }
            Ok(())
        };
        tokio::time::timeout(AFTERMATH, settled)
            .await
            .unwrap_or(Ok(()))
    }

    /// Shows what came, and asks for a reply when somebody else has said something.
    fn take_in(&mut self, events: &[Value], id: &str, more_to_come: bool) {
        self.card_is_there |= events.iter().any(|event| is_card(event, id));
        if self.show(events) && self.card_is_there && more_to_come {
            self.screen.prompt();
        }
    }

    /// Whether somebody else has said something.
    fn show(&mut self, events: &[Value]) -> bool {
        let mut was_spoken_to = false;
        for event in events {
            let own = event["sender"] == self.person.user_id();
            // What was typed stands on the screen already.
            if own && !self.screen.is_scripted() {
                continue;
            }
            let (kind, text) = shown(event);
            match kind {
                Shown::Nothing => continue,
                Shown::Aftermath => self.aftermath += 1,
                Shown::Message => was_spoken_to |= !own,
            }
            self.screen.interject(&text);
        }
        was_spoken_to
    }
}
