//! What follows from a command.

use serde_json::Value;

use super::change::{Change, SendDraft, SendKind};
use super::hear::{Heard, Said, Trust};
use super::judge::{Bot, Judge, Known, place, read_with};
use super::rules::Rules;
use crate::clock::Millis;
use crate::elicitation::{Elicitation, Key, State};
use crate::prose;
use crate::reply::{self, Command, Commands, Reading, Wish};

/// The command that a message is, if it is one.
pub fn command<'a>(said: &'a Said, commands: &Commands, bot: &Bot) -> Option<Command<'a>> {
    // Most messages are none, and this is asked of every one.
    if !commands.may_be_in(&said.body) {
        return None;
    }
    let message = reply::Message {
        body: &said.body,
        in_reply_to: said.in_reply_to.as_deref(),
        ..reply::Message::default()
    };
    commands.read(&message, &bot.named())
}

/// Does what a command says. `known` are the questions as for [`super::judge`].
#[expect(
    clippy::too_many_arguments,
    reason = "a message and all that it is read by"
)]
pub fn obey(
    heard: &Heard,
    said: &Said,
    command: &Command<'_>,
    known: &[Known],
    rules: &Rules,
    bot: &Bot,
    commands: &Commands,
    now: Millis,
) -> Vec<Change> {
    if !heard.sender.joined {
        return Vec::new();
    }
    let open: Vec<&Elicitation> = known
        .iter()
        .map(|known| &known.elicitation)
        .filter(|elicitation| {
            elicitation.state == State::Open && elicitation.question.room_id == heard.room_id
        })
        .collect();
    let place = place(heard, said);
    match command {
        // Those to sessions, and about all agents, are obeyed elsewhere.
        Command::Stop
        | Command::Undelegate
        | Command::Delegate { .. }
        | Command::New { .. }
        | Command::Agents(_) => Vec::new(),
        Command::Help => vec![answer(heard, &[], prose::help(&place, commands))],
        Command::Cards => vec![answer(heard, &open, prose::cards(&place, &open))],
        Command::Decline { rest } => {
            let read = |message: &reply::Message<'_>,
                        questions: &[reply::Question<'_>],
                        _: &reply::Bot<'_>| {
                reply::read_decline(message, rest, questions)
            };
            let written = commands.decline();
            match read_with(heard, said, known, rules, bot, now, read) {
                (Reading::Silence { .. }, _) if open.is_empty() => {
                    vec![answer(heard, &[], prose::cards(&place, &[]))]
                }
                (Reading::Silence { .. }, _) => {
                    vec![answer(
                        heard,
                        &open,
                        prose::how_to_decline(&place, &open, &written),
                    )]
                }
                (reading, refusals) => Judge {
                    heard,
                    said,
                    known,
                    rules,
                    refusals: &refusals,
                    declining: Some(&written),
                    now,
                }
                .follow(reading),
            }
        }
    }
}

/// Does what somebody says of agents that read what people say (`digest.md` 2). `unread` says that
/// they may not read this person now.
///
/// Not to be read anybody may say, from anywhere: who has left the room, or whose device is new,
/// too. To be read again takes a message that is theirs.
pub fn agents(
    heard: &Heard,
    said: &Said,
    wish: Wish,
    unread: bool,
    commands: &Commands,
) -> Vec<Change> {
    let user_id = heard.sender.user_id.clone();
    let unread = match wish {
        Wish::Off => true,
        Wish::On if heard.trust != Trust::Refused => false,
        Wish::On | Wish::Asked | Wish::Unclear => unread,
    };
    let mut changes = Vec::new();
    if matches!(wish, Wish::Off | Wish::On) {
        changes.push(Change::LetRead {
            user_id,
            may: !unread,
        });
    }
    // A reply to whoever is not there reaches nobody.
    if heard.sender.joined {
        let unclear = wish == Wish::Unclear;
        let notice = prose::agents(&place(heard, said), unread, unclear, commands);
        changes.push(answer(heard, &[], notice));
    }
    changes
}

/// A notice that answers a command. A reply to it may be about any of these questions.
fn answer(heard: &Heard, about: &[&Elicitation], content: Value) -> Change {
    let keys: Vec<Key> = about
        .iter()
        .map(|elicitation| elicitation.key().clone())
        .collect();
    Change::AnswerCommand {
        user_id: heard.sender.user_id.clone(),
        notice: SendDraft {
            room_id: heard.room_id.clone(),
            key: keys
                .first()
                .cloned()
                .unwrap_or_else(|| Key::of_room(&heard.room_id)),
            also: keys,
            kind: SendKind::Notice,
            content,
        },
    }
}
