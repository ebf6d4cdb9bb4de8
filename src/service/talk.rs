//! Taking in what is said in streams, with everything else and in the same transaction.

use super::hearing::{Batch, Hearing};
use crate::desk::{self, Bot, Change, Chat, Heard, What};
use crate::digest::{self, Choice, Prepared, Written};
use crate::elicitation::State;
use crate::ledger::{KeptLine, KeptText, LedgerError};
use crate::reply::{Command, Wish};

/// What is known of the text of a line, whoever is in the room.
pub(super) fn prepare(line: &KeptLine, prefix: &str) -> Option<Prepared> {
    digest::prepare(&Written {
        body: &line.text.body,
        emote: line.emote,
        reply: line.in_reply_to.is_some(),
        prefix,
    })
}

/// What is prepared of a text as the ledger keeps it, and the key that votes hang on.
pub(super) fn kept_form(
    prepared: Option<&Prepared>,
) -> Result<(Option<String>, Option<String>), LedgerError> {
    let Some(prepared) = prepared else {
        return Ok((None, None));
    };
    let kept = serde_json::to_string(prepared).map_err(|error| LedgerError::Unreadable {
        what: "prepared line",
        why: error.to_string(),
    })?;
    Ok((Some(kept), Some(prepared.said())))
}

impl Hearing<'_> {
    /// Does at once what must not wait until a hole before it is filled: that agents must not read
    /// somebody, and that something was taken back. It is done again in its place.
    pub(super) fn hear_ahead(&mut self, heard: &Heard, batch: &Batch) -> Result<(), LedgerError> {
        match &heard.what {
            What::Redaction { redacts } => self.unsay(&heard.room_id, redacts),
            What::Message(said) => {
                let nobody = Bot::default();
                let room = batch.rooms.get(&heard.room_id);
                let bot = room.map_or(&nobody, |(_, bot)| bot);
                let off = Some(Command::Agents(Wish::Off));
                if desk::command(said, self.commands, bot) == off {
                    self.ledger.opt_out(&heard.sender.user_id, self.now)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes back what was redacted in a stream.
    pub(super) fn unsay(&mut self, room_id: &str, event_id: &str) -> Result<(), LedgerError> {
        if !self.config.streams.is_empty() {
            let stamp = self.ledger.stamp(self.now)?;
            self.ledger.unsay(room_id, event_id, stamp)?;
        }
        Ok(())
    }

    /// Keeps what an event is in the talk of a stream. `changes` is what followed from it.
    pub(super) fn talk(
        &mut self,
        heard: &Heard,
        chat: &Chat,
        changes: &[Change],
    ) -> Result<(), LedgerError> {
        let stamp = self.ledger.stamp(self.now)?;
        let (room_id, event_id) = (&heard.room_id, &heard.event_id);
        let sender = &heard.sender.user_id;
        match chat {
            Chat::Vote { target } => {
                self.ledger.vote(room_id, event_id, target, sender, stamp)?;
            }
            Chat::Line {
                body,
                emote,
                in_reply_to,
                mentions,
                replaces,
            } => {
                let mut line = KeptLine {
                    room_id: room_id.clone(),
                    event_id: event_id.clone(),
                    sender: sender.clone(),
                    stamp,
                    sent_at: heard.sent_at,
                    emote: *emote,
                    in_reply_to: in_reply_to.clone(),
                    replied_to: None,
                    mentions: mentions.clone(),
                    text: KeptText {
                        event_id: event_id.clone(),
                        sent_at: heard.sent_at,
                        body: body.clone().unwrap_or_default(),
                        prepared: None,
                        key: None,
                    },
                };
                if let Some(replaces) = replaces {
                    // What it edits says what it is a reply to.
                    let Some(before) = self.ledger.line(room_id, replaces)? else {
                        if self.is_locked(room_id, replaces, sender)? {
                            // What it says counts already, whatever was said first.
                            line.event_id.clone_from(replaces);
                            self.read_line(&mut line)?;
                            self.ledger.keep_line(&line)?;
                        }
                        return Ok(());
                    };
                    line.in_reply_to = before.line.in_reply_to;
                    self.read_line(&mut line)?;
                    self.ledger
                        .edit_line(room_id, replaces, sender, &line.text)?;
                    return Ok(());
                }
                if is_answer(changes) || self.names_an_option(&line)? {
                    return Ok(());
                }
                if let Some(replied_to) = &line.in_reply_to {
                    let replied_to = self.ledger.line(room_id, replied_to)?;
                    line.replied_to = replied_to.map(|stored| stored.line.sender);
                }
                self.read_line(&mut line)?;
                self.ledger.keep_line(&line)?;
            }
        }
        Ok(())
    }

    /// Whether a message of this sender waits for its key.
    fn is_locked(
        &mut self,
        room_id: &str,
        event_id: &str,
        sender: &str,
    ) -> Result<bool, LedgerError> {
        if self.ledger.undecrypted_since(room_id, event_id)?.is_none() {
            return Ok(false);
        }
        let locked = self.ledger.undecrypted()?;
        Ok(locked.iter().any(|kept| {
            kept.room_id == room_id && kept.event_id == event_id && kept.sender == sender
        }))
    }

    /// Prepares what a line says. One that answers a card says nothing.
    fn read_line(&mut self, line: &mut KeptLine) -> Result<(), LedgerError> {
        if self.names_an_option(line)? {
            line.text.body.clear();
            return Ok(());
        }
        let prepared = prepare(line, &self.config.matrix.prefix);
        (line.text.prepared, line.text.key) = kept_form(prepared.as_ref())?;
        Ok(())
    }

    /// Whether a line is the number, id or label of an option of a card (`digest.md` 3): plainly of one
    /// that is open in the room, or in reply of the one that it replies to.
    fn names_an_option(&mut self, line: &KeptLine) -> Result<bool, LedgerError> {
        let mut asked = Vec::new();
        if let Some(replied_to) = &line.in_reply_to {
            for key in self.ledger.about(&line.room_id, replied_to)? {
                asked.extend(self.ledger.find(&key)?);
            }
        } else {
            asked = self.ledger.open_in(&line.room_id)?;
            asked.retain(|open| open.state == State::Open);
        }
        let (body, reply) = (line.text.body.as_str(), line.in_reply_to.is_some());
        Ok(asked.iter().any(|elicitation| {
            let options = elicitation.question.options.iter();
            let options: Vec<Choice> = options
                .map(|option| Choice {
                    id: option.id.clone(),
                    label: option.label.clone(),
                })
                .collect();
            digest::answers(body, reply, &options)
        }))
    }
}

/// Whether something that was said was taken as an answer.
fn is_answer(changes: &[Change]) -> bool {
    changes.iter().any(|change| match change {
        Change::Close { .. } | Change::Submit { .. } => true,
        Change::Prompt(prompt) => prompt.answer.is_some(),
        _ => false,
    })
}
