//! What the bot answers to a command.

use serde_json::Value;

use super::draft::{Draft, Span};
use super::notices::{listed, notice};
use super::{Place, moment};
use crate::elicitation::Elicitation;
use crate::reply::Commands;

/// How to talk to the bot.
pub fn help(place: &Place<'_>, commands: &Commands) -> Value {
    let mut draft = Draft::default();
    draft.paragraph(&[
        "I carry questions from agents. To answer one, type the number or the text of an option, \
         and nothing else. A ✓ on your message means that your answer is taken."
            .into(),
    ]);
    draft.paragraph(&[
        "When several questions are open, put the tag of the one you mean in front, like ".into(),
        Span::Code("q2 1".to_owned()),
        ", or reply to its message.".into(),
    ]);
    draft.paragraph(&[
        Span::Code(commands.cards()),
        " lists what is open here.".into(),
        Span::Break,
        Span::Code(commands.decline()),
        " says that you will not answer, where a question allows that.".into(),
        Span::Break,
        Span::Code(format!("{} off", commands.agents())),
        " keeps what you say in rooms from agents, everywhere.".into(),
        Span::Break,
        Span::Code(commands.help()),
        " says this.".into(),
    ]);
    draft.paragraph(&[
        "Agents work in threads. To give one something to do, write its name first, like ".into(),
        Span::Code("scout: look at the flaky test".to_owned()),
        "; what you write in its thread goes to it.".into(),
    ]);
    draft.paragraph(&[
        Span::Code(commands.stop()),
        " in a thread makes its agent stop.".into(),
        Span::Break,
        Span::Code(commands.undelegate()),
        " takes the work away from it, ".into(),
        Span::Code(format!("{} scout", commands.delegate())),
        " gives it to another.".into(),
        Span::Break,
        Span::Code(format!("{} scout …", commands.new_session())),
        " begins something as well.".into(),
    ]);
    notice(place, draft)
}

/// Whether agents may read what a person says in rooms. `unclear`: they said something of it that
/// is not understood.
pub fn agents(place: &Place<'_>, unread: bool, unclear: bool, commands: &Commands) -> Value {
    let written = |word: &str| Span::Code(format!("{} {word}", commands.agents()));
    let mut draft = Draft::default();
    if unclear {
        draft.paragraph(&["I did not understand that, and changed nothing.".into()]);
    }
    if unread {
        draft.paragraph(&[
            "Agents don't read what you say: nothing of it is kept for them or shown to them, in \
             no room. What you answer to an agent's question still goes to that agent."
                .into(),
        ]);
        draft.paragraph(&[written("on"), " lets them read it again.".into()]);
    } else {
        draft.paragraph(&[
            "Agents may read what you say in rooms where one of them listens: they get a short \
             digest of the last hours, with your name."
                .into(),
        ]);
        draft.paragraph(&[
            written("off"),
            " keeps what you say from all of them, also what you said before.".into(),
        ]);
    }
    notice(place, draft)
}

/// What is open in the room.
pub fn cards(place: &Place<'_>, open: &[&Elicitation]) -> Value {
    let mut draft = Draft::default();
    if open.is_empty() {
        draft.paragraph(&["No question is open here.".into()]);
        return notice(place, draft);
    }
    let mut spans: Vec<Span> = vec!["Open here:".into()];
    listed(&mut spans, open, |elicitation| {
        let deadline = elicitation.question.expires_at;
        deadline.map(|at| format!(" (until {})", moment(at)))
    });
    draft.paragraph(&spans);
    draft.paragraph(&[
        "To answer one, reply to its message, or put its tag in front of your answer.".into(),
    ]);
    notice(place, draft)
}

/// The question cannot be declined.
pub fn not_declinable(place: &Place<'_>, elicitation: &Elicitation) -> Value {
    let gist = super::gist(elicitation);
    let mut draft = Draft::default();
    draft.paragraph(&[format!(
        "“{gist}” cannot be declined. It stays open until somebody answers it{}.",
        if elicitation.question.expires_at.is_some() {
            " or its time is up"
        } else {
            ""
        }
    )
    .into()]);
    notice(place, draft)
}

/// The command to decline could mean several questions, or says more than is understood.
/// `command` is how it is written.
pub fn how_to_decline(place: &Place<'_>, questions: &[&Elicitation], command: &str) -> Value {
    let mut draft = Draft::default();
    let mut spans: Vec<Span> = vec!["Open here:".into()];
    listed(&mut spans, questions, |_| None);
    draft.paragraph(&spans);
    let tag = questions.first().map_or("q1", |first| first.tag.as_str());
    draft.paragraph(&[
        "Which one do you decline? Put its tag behind the command, and nothing else, like ".into(),
        Span::Code(format!("{command} {tag}")),
        ", or reply to its message with ".into(),
        Span::Code(command.to_owned()),
        ".".into(),
    ]);
    notice(place, draft)
}
