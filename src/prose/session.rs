//! What a room reads of an agent's session: its root, what the agent says in it, the request to
//! connect an account, and what the bot answers to its commands.
//!
//! The root is one message, edited in place as the session goes on ([`session_edit`]); everything
//! else is in its thread.

use serde_json::{Value, json};
use url::Url;

use super::draft::{Draft, Span, joined};
use super::markdown::{Rendering, flat, parts};
use super::notices::notice;
use super::text::{cleaned, line_of, poses};
use super::{MAX_CONTENT, Place, event_size, without_html_if_too_large};
use crate::session::{EndReason, Status};

/// Characters of an agent's name, of a title, and of what the agent is doing.
const SHOWN_NAME: usize = 60;
const SHOWN_TITLE: usize = 200;
const SHOWN_DOING: usize = 300;

/// Agents that are listed by name.
const SHOWN_AGENTS: usize = 20;

/// The bytes of Markdown that one message is made of at first, and those below which its HTML is
/// rather left out than the text cut smaller.
const PART: usize = 16_000;
const SMALLEST_PART: usize = 4_000;

/// What the root of a session shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    /// What the agent is called.
    pub agent: &'a str,
    /// What the session is about.
    pub title: Option<&'a str>,
    /// Where it stands.
    pub status: Status,
    /// The agent's last thought or action; shown while it is at it.
    pub doing: Option<&'a str>,
    /// Whether the agent has said nothing yet and should have.
    pub silent: bool,
    /// Why it is over, if it is.
    pub end: Option<EndReason>,
}

/// The message whose thread is the session.
pub fn session_root(shown: &Shown<'_>) -> Value {
    let mut draft = Draft::default();
    let mut spans = heading(shown);
    spans.push(Span::Break);
    spans.push(standing(shown).into());
    let at_it = matches!(shown.status, Status::Active | Status::Stale) && shown.end.is_none();
    let doing = shown
        .doing
        .map(|doing| line_of(&flat(doing), SHOWN_DOING))
        .filter(|doing| at_it && !doing.is_empty());
    if let Some(doing) = doing {
        spans.push(Span::Break);
        // A word before it keeps it from being a line of any other kind.
        let when = match shown.status {
            Status::Stale => "Last",
            _ => "Now",
        };
        spans.push(format!("{when}: {doing}").into());
    }
    draft.paragraph(&spans);
    draft.content("m.text")
}

/// What takes the root's place. It becomes an edit by [`super::relate_edit`].
pub fn session_edit(shown: &Shown<'_>) -> Value {
    let mut spans = vec!["* ".into()];
    spans.extend(heading(shown));
    spans.push(format!(": {}", standing(shown)).into());
    let mut fallback = Draft::default();
    fallback.paragraph(&spans);
    edit(fallback, session_root(shown))
}

/// The first line: who, and what about.
fn heading(shown: &Shown<'_>) -> Vec<Span> {
    let agent = name(shown.agent);
    let mut spans = Vec::new();
    // However the agent is called, its line is none of ours.
    if poses(&agent) {
        spans.push("Agent ".into());
    }
    spans.push(Span::Strong(agent));
    let title = shown
        .title
        .map(|title| piece(title, SHOWN_TITLE))
        .filter(|title| !title.is_empty());
    if let Some(title) = title {
        spans.push(format!(" · {title}").into());
    }
    spans
}

/// Where the session stands, in a few words.
fn standing(shown: &Shown<'_>) -> &'static str {
    match shown.end {
        Some(EndReason::Stopped) => return "○ Stopped",
        Some(EndReason::Undelegated) => return "○ Taken away from the agent",
        Some(EndReason::Deleted) => return "○ Ended",
        None => {}
    }
    match shown.status {
        Status::Active if shown.silent => "● The agent has not answered yet",
        Status::Active => "● Working …",
        Status::AwaitingInput => "● Waiting for an answer",
        Status::Stopping => "● Stopping …",
        Status::Complete => "○ Done",
        Status::Error => "○ Failed",
        Status::Stale => "○ Nothing heard for a while",
    }
}

/// What the agent says, in as many messages as it takes. Each goes into the session's thread by
/// [`super::relate_thread`].
pub fn session_message(body: &str) -> Vec<Value> {
    said(body, None)
}

/// The agent says that it failed.
pub fn session_error(body: &str) -> Vec<Value> {
    said(body, Some("That did not work:"))
}

/// Somebody's Markdown in messages. Where a line of it could be taken for one of ours, all of it is
/// set apart as a quotation.
fn said(body: &str, lead: Option<&str>) -> Vec<Value> {
    let body = cleaned(body);
    let quoted = Rendering::of(&body).poses;
    let mut messages = Vec::new();
    write_messages(&body, PART, quoted, lead, &mut messages);
    if messages.is_empty() {
        let mut draft = Draft::default();
        if let Some(lead) = lead {
            draft.paragraph(&[lead.into()]);
        }
        draft.paragraph(&["(nothing readable)".into()]);
        messages.push(draft.content("m.text"));
    }
    messages
}

fn write_messages(
    text: &str,
    most: usize,
    quoted: bool,
    mut lead: Option<&str>,
    messages: &mut Vec<Value>,
) {
    for part in parts(text, most) {
        let rendering = Rendering::of(&part);
        let lead = lead.take();
        // A piece may pose where the whole did not: a fence that was cut, a line that begins anew.
        let quoted = quoted || rendering.poses;
        let mut draft = Draft::default();
        if let Some(lead) = lead {
            draft.paragraph(&[lead.into()]);
        }
        draft.markdown(&rendering, quoted);
        let mut message = draft.content("m.text");
        if rendering.is_plain && !quoted && lead.is_none() {
            without_html(&mut message);
        }
        // The relation comes on top of it.
        if event_size(&message) > MAX_CONTENT - 1_000 {
            if most > SMALLEST_PART {
                write_messages(&part, most / 2, quoted, lead, messages);
                continue;
            }
            without_html(&mut message);
        }
        messages.push(message);
    }
}

fn without_html(message: &mut Value) {
    if let Value::Object(message) = message {
        message.remove("format");
        message.remove("formatted_body");
    }
}

/// Asks a person, in the room they have for themselves, to connect an account. The link is there
/// once, its host beside it in plain words, and no client is to look at what is behind it.
pub fn connect_request(agent: &str, provider: &str, url: &Url) -> Value {
    let host = url.host_str().unwrap_or_default();
    let host = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let mut draft = Draft::default();
    draft.paragraph(&[
        "The agent ".into(),
        Span::Strong(name(agent)),
        format!(
            " asks you to connect your account at {}.",
            quotation(provider)
        )
        .into(),
    ]);
    draft.paragraph(&[
        "The page is at ".into(),
        Span::Code(host),
        ":".into(),
        Span::Break,
        Span::Link(url.as_str().to_owned()),
    ]);
    draft.paragraph(&[
        "Open it only if you expect this and know that address. Never type a password or \
         another secret into this chat: nobody here will ask for one."
            .into(),
    ]);
    let mut content = draft.content("m.text");
    content["com.beeper.linkpreviews"] = json!([]);
    without_html_if_too_large(&mut content);
    content
}

/// What takes the place of [`connect_request`] when the session has gone on: the link is gone. It
/// becomes an edit by [`super::relate_edit`].
pub fn connect_over(agent: &str, provider: &str) -> Value {
    let over = |lead: &'static str| {
        let mut draft = Draft::default();
        draft.paragraph(&[
            lead.into(),
            "The agent ".into(),
            Span::Strong(name(agent)),
            format!(
                " asked you to connect your account at {}. That is over, and the link is gone.",
                quotation(provider)
            )
            .into(),
        ]);
        draft
    };
    edit(over("* "), over("").content("m.text"))
}

/// Says in the session's thread that a person, by their user id, was asked to connect an account.
/// Without the link: it is for that person alone.
pub fn connect_asked(person: &str, agent: &str, provider: &str) -> Value {
    let mut draft = Draft::default();
    draft.paragraph(&[
        "I asked ".into(),
        Span::Person(person.to_owned()),
        " in a chat of our own to connect their account at ".into(),
        format!("{} for ", quotation(provider)).into(),
        Span::Strong(name(agent)),
        ".".into(),
    ]);
    draft.content("m.notice")
}

/// A command that needs a session, where there is none. `command` is how it is written.
pub fn no_session(place: &Place<'_>, command: &str) -> Value {
    one(
        place,
        vec![
            "No session is meant by that. Write ".into(),
            Span::Code(command.to_owned()),
            " in the session's thread, or reply to its message with it.".into(),
        ],
    )
}

/// The session is over, and nothing more is said to its agent in it.
pub fn session_over(place: &Place<'_>, agent: &str, end: EndReason) -> Value {
    let how = match end {
        EndReason::Stopped => "was stopped",
        EndReason::Undelegated => "was taken away from it",
        EndReason::Deleted => "was ended",
    };
    one(
        place,
        vec![
            "This session with ".into(),
            Span::Strong(name(agent)),
            format!(" {how}. To begin another, address the agent by its name.").into(),
        ],
    )
}

/// Who writes may not command this session.
pub fn may_not_steer(place: &Place<'_>, agent: &str) -> Value {
    one(
        place,
        vec![
            "Sorry, this session with ".into(),
            Span::Strong(name(agent)),
            " does not take that from you.".into(),
        ],
    )
}

/// Why a session is not given to another agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDelegated<'a> {
    /// Nobody was named.
    Nobody {
        /// How the command is written.
        command: &'a str,
    },
    /// It is that agent's already.
    Same {
        /// The agent.
        agent: &'a str,
    },
    /// That agent does not work in this room.
    NotHere {
        /// The agent.
        agent: &'a str,
    },
}

/// The session stays with its agent, and why.
pub fn cannot_delegate(place: &Place<'_>, why: &NotDelegated<'_>) -> Value {
    let spans = match *why {
        NotDelegated::Nobody { command } => vec![
            "To whom? Put the agent's name behind the command, like ".into(),
            Span::Code(format!("{command} builder")),
            ".".into(),
        ],
        NotDelegated::Same { agent } => vec![
            "This is a session with ".into(),
            Span::Strong(name(agent)),
            " already.".into(),
        ],
        NotDelegated::NotHere { agent } => vec![
            "Sorry, ".into(),
            Span::Strong(name(agent)),
            " does not work in this room.".into(),
        ],
    };
    one(place, spans)
}

/// No agent is called what somebody wrote. `calls` are what those here are called.
pub fn no_such_agent(place: &Place<'_>, written: &str, calls: &[&str]) -> Value {
    let written = line_of(written, SHOWN_NAME);
    let mut spans: Vec<Span> = vec![if written.is_empty() {
        "Which agent do you mean?".into()
    } else {
        format!("No agent here is called {}.", quotation(&written)).into()
    }];
    if calls.is_empty() {
        spans.push(" None works in this room.".into());
        return one(place, spans);
    }
    spans.push(" There are: ".into());
    let names = calls.iter().take(SHOWN_AGENTS);
    spans.extend(joined(
        names.map(|call| Span::Code(name(call))).collect(),
        ", ",
    ));
    if let Some(more @ 1..) = calls.len().checked_sub(SHOWN_AGENTS) {
        spans.push(format!(" and {more} more").into());
    }
    one(place, spans)
}

/// A notice of one paragraph.
fn one(place: &Place<'_>, spans: Vec<Span>) -> Value {
    let mut draft = Draft::default();
    let begins = matches!(spans.first(), Some(Span::Strong(first)) if poses(first));
    let before: Vec<Span> = if begins {
        vec!["Agent ".into()]
    } else {
        vec![]
    };
    draft.paragraph(&[before, spans].concat());
    notice(place, draft)
}

/// What an agent is called, as a part of a line.
fn name(agent: &str) -> String {
    let name = piece(agent, SHOWN_NAME);
    if name.is_empty() {
        "(no name)".to_owned()
    } else {
        name
    }
}

/// A part of a line that pretends to be neither several nor a link.
fn piece(text: &str, most: usize) -> String {
    line_of(text, most)
        .replace(['·', '∙', '⋅', '‧', '•'], "-")
        .replace("://", ": ")
}

/// Somebody's word for something, which ends where it seems to.
fn quotation(text: &str) -> String {
    format!(
        "“{}”",
        name(&text.replace(['“', '”', '„', '‟', '"', '″', '〞', '＂'], "'"))
    )
}

/// An edit, with what clients that know no edits show.
fn edit(fallback: Draft, new_content: Value) -> Value {
    let mut content = fallback.content("m.text");
    content["m.new_content"] = new_content;
    without_html_if_too_large(&mut content);
    content
}
