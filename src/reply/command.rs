//! Commands: what a person says to the bot itself, `!help`, `!cards`, `!decline`, `!agents`, and of an
//! agent's session `!new`, `!stop`, `!undelegate`, `!delegate`.
//!
//! Only the command is the signal: the word in a sentence is a word, and `!stop doing that` is a
//! sentence. A command is never an answer, not even where an option is called like it.

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
    /// Whether agents may read what they say.
    Agents(Wish),
    /// That the session's agent stops. Nothing stands behind it: with more words it is no command.
    Stop,
    /// To take the session away from its agent. Nothing stands behind it either.
    Undelegate,
    /// To give the session to another agent. With more than one word behind it, it is no command.
    Delegate {
        /// What that agent is called; empty where nothing was said.
        to: &'a str,
    },
    /// A session with an agent.
    New {
        /// What the agent is called; empty where nothing was said.
        agent: &'a str,
        /// What it is to do; may be empty.
        text: &'a str,
    },
}

/// What a person says of agents that read what they say in rooms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// They are not to. Said in a hurry it counts as well, whatever stands behind it: who wants not
    /// to be read must not have to write it twice.
    Off,
    /// They may again. Only the bare word says so.
    On,
    /// Which of both holds, they want to know.
    Asked,
    /// Something else stands there: neither is done, and they are told how it is written.
    Unclear,
}

/// The commands, as this bot's people write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    prefix: String,
}

const HELP: &str = "help";
const CARDS: &str = "cards";
const DECLINE: &str = "decline";
const AGENTS: &str = "agents";
const STOP: &str = "stop";
const UNDELEGATE: &str = "undelegate";
const DELEGATE: &str = "delegate";
const NEW: &str = "new";

const WORDS: [&str; 8] = [
    HELP, CARDS, DECLINE, AGENTS, STOP, UNDELEGATE, DELEGATE, NEW,
];

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

    /// `!agents`, as people write it, alone or before `on` and `off`.
    pub fn agents(&self) -> String {
        self.written(AGENTS)
    }

    /// `!stop`, as people write it.
    pub fn stop(&self) -> String {
        self.written(STOP)
    }

    /// `!undelegate`, as people write it.
    pub fn undelegate(&self) -> String {
        self.written(UNDELEGATE)
    }

    /// `!delegate`, as people write it before an agent's name.
    pub fn delegate(&self) -> String {
        self.written(DELEGATE)
    }

    /// `!new`, as people write it before an agent's name and what it is to do.
    pub fn new_session(&self) -> String {
        self.written(NEW)
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
        let known = WORDS
            .into_iter()
            .find(|known| word.eq_ignore_ascii_case(known))?;
        match known {
            HELP => Some(Command::Help),
            CARDS => Some(Command::Cards),
            DECLINE => Some(Command::Decline { rest }),
            AGENTS => Some(Command::Agents(wish(rest))),
            STOP => text::is_blank(rest).then_some(Command::Stop),
            UNDELEGATE => text::is_blank(rest).then_some(Command::Undelegate),
            DELEGATE => {
                let (to, more) = first_word(rest);
                text::is_blank(more).then_some(Command::Delegate { to })
            }
            NEW => {
                let (agent, text) = first_word(rest);
                // `!new scout: look` is written like an address.
                let agent = agent.strip_suffix([':', ',']).unwrap_or(agent);
                Some(Command::New { agent, text })
            }
            _ => None,
        }
    }

    /// Whether a text, or the JSON of an event, may hold a command. Cheap: asked of every message
    /// of every room.
    pub fn may_be_in(&self, text: &str) -> bool {
        let mut rest = text;
        while let Some(at) = rest.find(&self.prefix) {
            rest = &rest[at + self.prefix.len()..];
            let named = WORDS.into_iter().any(|word| {
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

/// What stands behind `!agents`.
fn wish(rest: &str) -> Wish {
    let (word, more) = first_word(rest);
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    if text::is_blank(rest) {
        Wish::Asked
    } else if bare.eq_ignore_ascii_case("off") {
        Wish::Off
    } else if word.eq_ignore_ascii_case("on") && text::is_blank(more) {
        Wish::On
    } else {
        Wish::Unclear
    }
}

/// The first word of a text and what follows it, both without the blanks around them.
fn first_word(text: &str) -> (&str, &str) {
    let text = text::trim_unseen_start(text).trim_end();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, text::trim_unseen_start(rest))
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

    /// Not to be read is easy to say, to be read again is not said by accident.
    #[test]
    fn agents_are_turned_off_by_the_word_and_on_by_the_bare_word_only() {
        let agents = |wish| Some(Command::Agents(wish));
        for body in [
            "!agents off",
            "!AGENTS OFF",
            "!agents off.",
            "!agents  \"off\"",
            "!agents off please",
            "!agents \u{200B}off",
            "!agents\noff",
            "Elicit: !agents off",
        ] {
            assert_eq!(said(body), agents(Wish::Off), "{body}");
        }
        assert_eq!(said("!agents on"), agents(Wish::On));
        assert_eq!(said("!Agents On \n"), agents(Wish::On));
        assert_eq!(said("!agents"), agents(Wish::Asked));
        assert_eq!(said("!agents \u{200B} "), agents(Wish::Asked));
        for body in [
            "!agents on?",
            "!agents on and off",
            "!agents offer",
            "!agents are here",
            "!agents never off",
        ] {
            assert_eq!(said(body), agents(Wish::Unclear), "{body}");
        }
        assert_eq!(said("!agentsoff"), None);
        assert_eq!(said("agents off"), None);
    }

    #[test]
    fn stop_and_undelegate_are_commands_with_nothing_behind_them_only() {
        assert_eq!(said("!stop"), Some(Command::Stop));
        assert_eq!(said(" !STOP \n"), Some(Command::Stop));
        assert_eq!(said("!stop \u{200B}"), Some(Command::Stop));
        assert_eq!(said("!Undelegate"), Some(Command::Undelegate));
        for body in [
            "!stop doing that",
            "!stop.",
            "!stop q2",
            "!stop\n!stop",
            "!undelegate scout",
            "!undelegate it, please",
            "stop",
            "please !stop",
        ] {
            assert_eq!(said(body), None, "{body}");
        }
    }

    #[test]
    fn a_session_is_delegated_to_one_word() {
        let to = |to| Some(Command::Delegate { to });
        assert_eq!(said("!delegate builder"), to("builder"));
        assert_eq!(said("!DELEGATE  Builder \n"), to("Builder"));
        assert_eq!(said("!delegate"), to(""));
        assert_eq!(said("!delegate \u{200B} "), to(""));
        assert_eq!(said("!delegate to builder"), None);
        assert_eq!(said("!delegated"), None);
    }

    #[test]
    fn a_new_session_names_its_agent_and_then_anything() {
        let new = |agent, text| Some(Command::New { agent, text });
        assert_eq!(
            said("!new scout look at the\nflaky test "),
            new("scout", "look at the\nflaky test")
        );
        assert_eq!(said("!NEW Scout: look"), new("Scout", "look"));
        assert_eq!(said("!new scout, look"), new("scout", "look"));
        assert_eq!(said("!new\nscout\n\nlook"), new("scout", "look"));
        assert_eq!(said("!new scout"), new("scout", ""));
        assert_eq!(said("!new scout \u{200B}"), new("scout", ""));
        assert_eq!(said("!new"), new("", ""));
        assert_eq!(said("!news scout"), None);
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
        assert_eq!(
            commands.read(&message("$elicit-Stop"), &BOT),
            Some(Command::Stop)
        );
        assert_eq!(commands.read(&message("!stop"), &BOT), None);
        assert_eq!(commands.decline(), "$elicit-decline");
        assert_eq!(commands.agents(), "$elicit-agents");
        assert_eq!(commands.stop(), "$elicit-stop");
        assert_eq!(commands.undelegate(), "$elicit-undelegate");
        assert_eq!(commands.delegate(), "$elicit-delegate");
        assert_eq!(commands.new_session(), "$elicit-new");
    }

    #[test]
    fn what_is_a_command_is_never_overlooked_in_passing() {
        let commands = Commands::new("!");
        for body in [
            "!help",
            "well, Elicit: !CARDS",
            "!!decline q3",
            "!Agents off",
            "!stop",
            "!UNdelegate",
            "!delegate x",
            "Elicit !new scout x",
        ] {
            assert!(commands.may_be_in(body), "{body}");
            assert!(commands.may_be_in(&format!(r#"{{"content":{{"body":"{body}"}}}}"#)));
        }
        for body in ["help!", "!", "!hel", "1", "!é"] {
            assert!(!commands.may_be_in(body), "{body}");
        }
    }
}
