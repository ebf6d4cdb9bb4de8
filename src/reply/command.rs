//! Commands: what a person says to the bot itself, `!help`, `!cards`, `!decline`.
//!
//! Only the command is the signal: the word in a sentence is a word. A command is never an answer,
//! not even where an option is called like it.

use super::opening::{without_fallback, without_mention};
use super::target::{Bot, Message};
use super::text;

/// What a person wants of the bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// How to talk to it.
    Help,
    /// What is open here.
    Cards,
    /// Not to answer a question.
    Decline {
        /// What stands behind the command: a tag, or nothing.
        rest: &'a str,
    },
}

/// The commands, as this bot's people write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    prefix: String,
}

const HELP: &str = "help";
const CARDS: &str = "cards";
const DECLINE: &str = "decline";

impl Commands {
    /// The commands that begin with a prefix, like `!`.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
        }
    }

    /// `!help`, as people write it.
    pub fn help(&self) -> String {
        self.written(HELP)
    }

    /// `!cards`, as people write it.
    pub fn cards(&self) -> String {
        self.written(CARDS)
    }

    /// `!decline`, as people write it.
    pub fn decline(&self) -> String {
        self.written(DECLINE)
    }

    fn written(&self, word: &str) -> String {
        format!("{}{word}", self.prefix)
    }

    /// The command that a message is. One of another bot is none.
    pub fn read<'a>(&self, message: &Message<'a>, bot: &Bot<'_>) -> Option<Command<'a>> {
        let body = match message.in_reply_to {
            Some(_) => without_fallback(message.body),
            None => message.body,
        };
        self.command(body).or_else(|| {
            let mention = without_mention(body, bot)?;
            self.command(mention.rest)
        })
    }

    fn command<'a>(&self, body: &'a str) -> Option<Command<'a>> {
        let after = text::trim_unseen_start(body).strip_prefix(self.prefix.as_str())?;
        let end = after
            .find(|c: char| c.is_whitespace())
            .unwrap_or(after.len());
        let (word, rest) = after.split_at(end);
        if word.eq_ignore_ascii_case(HELP) {
            Some(Command::Help)
        } else if word.eq_ignore_ascii_case(CARDS) {
            Some(Command::Cards)
        } else if word.eq_ignore_ascii_case(DECLINE) {
            Some(Command::Decline { rest })
        } else {
            None
        }
    }

    /// Whether a text, or the JSON of an event, may hold a command. Cheap: asked of every message
    /// of every room.
    pub fn may_be_in(&self, text: &str) -> bool {
        let mut rest = text;
        while let Some(at) = rest.find(&self.prefix) {
            rest = &rest[at + self.prefix.len()..];
            let named = [HELP, CARDS, DECLINE].into_iter().any(|word| {
                rest.get(..word.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(word))
            });
            if named {
                return true;
            }
        }
        false
    }
}

/// Whether a reply to a card declines it in the one word that does so, beside the command.
pub(super) fn declines(said: &str) -> bool {
    super::option::Typed::new(said).core() == DECLINE
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOT: Bot<'_> = Bot {
        user_id: "@elicit:x.org",
        display_name: Some("Elicit"),
    };

    fn said(body: &str) -> Option<Command<'_>> {
        let message = Message {
            body,
            ..Message::default()
        };
        Commands::new("!").read(&message, &BOT)
    }

    #[test]
    fn a_command_is_its_word_behind_the_prefix_in_any_case() {
        assert_eq!(said("!help"), Some(Command::Help));
        assert_eq!(said("  !HELP  "), Some(Command::Help));
        assert_eq!(said("!help me please"), Some(Command::Help));
        assert_eq!(said("!Cards"), Some(Command::Cards));
        assert_eq!(said("!decline"), Some(Command::Decline { rest: "" }));
        assert_eq!(said("!decline q2"), Some(Command::Decline { rest: " q2" }));
    }

    #[test]
    fn the_bot_may_be_named_before_it() {
        assert_eq!(said("@elicit:x.org: !cards"), Some(Command::Cards));
        assert_eq!(said("Elicit, !cards"), Some(Command::Cards));
        assert_eq!(said("Ada, !cards"), None);
    }

    #[test]
    fn a_word_is_a_word_and_other_bots_have_commands_too() {
        for body in [
            "help",
            "decline",
            "I !decline",
            "!helpme",
            "!declined",
            "! help",
            "!!help",
            "!kick @ada:x.org",
            "!",
            "",
        ] {
            assert_eq!(said(body), None, "{body}");
        }
    }

    #[test]
    fn what_a_rich_reply_quotes_is_no_command() {
        let message = |body| Message {
            body,
            in_reply_to: Some("$m"),
            ..Message::default()
        };
        let commands = Commands::new("!");
        let quoting = message("> <@ada:x.org> !decline\n\nwhy?");
        assert_eq!(commands.read(&quoting, &BOT), None);
        let declining = message("> <@ada:x.org> Deploy?\n\n!decline");
        let expected = Some(Command::Decline { rest: "" });
        assert_eq!(commands.read(&declining, &BOT), expected);
    }

    #[test]
    fn the_prefix_may_be_longer_than_a_mark() {
        let commands = Commands::new("$elicit-");
        let message = |body| Message {
            body,
            ..Message::default()
        };
        assert_eq!(
            commands.read(&message("$elicit-help"), &BOT),
            Some(Command::Help)
        );
        assert_eq!(commands.read(&message("!help"), &BOT), None);
        assert_eq!(commands.decline(), "$elicit-decline");
    }

    #[test]
    fn what_is_a_command_is_never_overlooked_in_passing() {
        let commands = Commands::new("!");
        for body in ["!help", "well, Elicit: !CARDS", "!!decline q3"] {
            assert!(commands.may_be_in(body), "{body}");
            assert!(commands.may_be_in(&format!(r#"{{"content":{{"body":"{body}"}}}}"#)));
        }
        for body in ["help!", "!", "!hel", "1", "!é"] {
            assert!(!commands.may_be_in(body), "{body}");
        }
    }
}
