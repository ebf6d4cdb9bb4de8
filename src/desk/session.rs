//! What happens in a session, and what follows.

mod asking;
mod saying;
mod timing;

use serde_json::Value;

pub use asking::QuestionPlace;
use asking::asks;
pub use saying::said_to_session;
pub use timing::{session_due, session_tick};

use super::change::{Change, EventDraft, SendDraft, SendKind, close, taken};
use crate::clock::Millis;
use crate::contract::signals;
use crate::elicitation::{Answer, Elicitation, Key, State};
use crate::prose::{self, Place};
use crate::session::{Activity, ActivityType, Author, EndReason, Session, Signal, Status, event};

/// The root of a session is edited no more often than this.
pub const BETWEEN_EDITS: Millis = 2_000;

/// What a person says to a session, before it is decided what follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The session.
    pub session_id: String,
    /// What is said; of a choice the option's value.
    pub body: String,
    /// Who says it.
    pub author: Author,
    /// The room it is said in: the session's, or one whose place that took.
    pub room_id: String,
    /// The message.
    pub event_id: String,
    /// The thread that the message stands in, if it does.
    pub thread: Option<String>,
    /// What it is as an answer to the session's open question.
    pub answer: Option<Answer>,
}

/// Why an agent's activity was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityRefusal {
    /// The session is over for good.
    Ended,
    /// A person wants it to stop: it is no time to ask.
    Stopping,
}

/// What an agent is to be called, and where, when a session begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// The session's id.
    pub id: String,
    /// The agent.
    pub agent: String,
    /// Its name for people.
    pub agent_name: String,
    /// The room.
    pub room_id: String,
    /// What it is about.
    pub title: Option<String>,
    /// For whom it is.
    pub user_id: Option<String>,
}

/// A session that has just begun.
pub fn begin(beginning: Beginning, now: Millis) -> Session {
    Session {
        id: beginning.id,
        agent: beginning.agent,
        agent_name: beginning.agent_name,
        room_id: beginning.room_id,
        title: beginning.title,
        user_id: beginning.user_id,
        status: Status::Active,
        ending: None,
        root: None,
        doing: None,
        silent: false,
        heard: false,
        connecting: None,
        created_at: now,
        updated_at: now,
        ended_at: None,
        edited_at: now,
        edit_at: None,
    }
}

/// What follows from the beginning of a session. `prompt` is what a person said with it; `tell`:
/// whether the agent is told of it, because somebody else began it. `reply_to` is the message that
/// began it.
pub fn begun(
    session: &Session,
    prompt: Option<Activity>,
    tell: bool,
    reply_to: Option<&str>,
) -> Vec<Change> {
    let mut root = prose::session_root(&shown(session));
    if let Some(event_id) = reply_to {
        root["m.relates_to"] = serde_json::json!({ "m.in_reply_to": { "event_id": event_id } });
    }
    let mut changes = vec![
        Change::Begin(Box::new(session.clone())),
        Change::Send(draft(session, SendKind::Root, root)),
    ];
    if let Some(prompt) = prompt {
        if tell {
            changes.push(tell_agent("created", session, &prompt, false));
        }
        changes.push(record(session, prompt));
    }
    changes
}

/// A person's words as an activity.
pub fn prompt_of(id: String, prompt: &Prompt, signal: Option<Signal>, now: Millis) -> Activity {
    Activity {
        id,
        kind: ActivityType::Prompt,
        body: prompt.body.clone(),
        signal,
        signal_metadata: None,
        author: Some(prompt.author.clone()),
        event_id: Some(prompt.event_id.clone()),
        ephemeral: false,
        created_at: now,
    }
}

/// What follows from what an agent does in its session. `open` is the session's question that waits
/// for an answer, `connect` the direct room with the person who is to connect an account.
///
/// # Errors
/// When the session takes no such activity; then nothing follows.
pub fn acted(
    session: &Session,
    said: &signals::Activity,
    open: Option<&Elicitation>,
    connect: Option<String>,
    place: QuestionPlace,
    id: String,
    now: Millis,
) -> Result<(Activity, Vec<Change>), ActivityRefusal> {
    if session.has_ended() {
        return Err(ActivityRefusal::Ended);
    }
    let stopping = session.status == Status::Stopping;
    let kind = said.kind;
    if stopping && kind == ActivityType::Elicitation {
        return Err(ActivityRefusal::Stopping);
    }
    let activity = Activity {
        id,
        kind,
        body: said.body.clone(),
        signal: said.signal(),
        signal_metadata: said.signal_metadata.clone(),
        author: None,
        event_id: None,
        ephemeral: said.ephemeral,
        created_at: now,
    };
    let mut next = touched(session, now);
    next.heard = true;
    next.silent = false;
    let mut changes = Vec::new();
    changes.extend(connected(session, &mut next));
    match kind {
        ActivityType::Thought | ActivityType::Action => {
            if !stopping {
                next.status = Status::Active;
                next.doing = Some(said.body.clone());
            }
        }
        ActivityType::Elicitation => {
            next.status = Status::AwaitingInput;
            next.doing = None;
            changes.extend(open.map(|open| {
                let reason = format!("asked again as {}", activity.id);
                close(open, State::Superseded, Some(&reason), None, now)
            }));
            changes.extend(asks(
                session, &mut next, said, &activity, connect, place, now,
            ));
        }
        ActivityType::Response | ActivityType::Error => {
            next.doing = None;
            changes.extend(open.map(|open| close(open, State::Cancelled, None, None, now)));
            let parts = if kind == ActivityType::Response {
                prose::session_message(&said.body)
            } else {
                prose::session_error(&said.body)
            };
            let parts = parts
                .into_iter()
                .map(|content| Change::Send(draft(session, SendKind::InThread, content)));
            changes.extend(parts);
            next.status = match (stopping, kind) {
                (false, ActivityType::Error) => Status::Error,
                _ => Status::Complete,
            };
            if stopping {
                next.ended_at = Some(now);
            }
        }
        // The reader refuses it: only people write prompts.
        ActivityType::Prompt => {}
    }
    if !activity.ephemeral {
        changes.push(record(session, activity.clone()));
    }
    changes.extend(shown_anew(session, next, now));
    Ok((activity, changes))
}

/// What follows from what a person says to a session. `open` is its question that waits for an
/// answer.
pub fn prompted(
    session: &Session,
    prompt: &Prompt,
    open: Option<&Elicitation>,
    id: String,
    now: Millis,
) -> Vec<Change> {
    if session.has_ended() {
        return vec![over(session, prompt)];
    }
    let activity = prompt_of(id, prompt, None, now);
    let mut next = touched(session, now);
    if session.status != Status::Stopping {
        next.status = Status::Active;
    }
    let mut changes: Vec<Change> = connected(session, &mut next).into_iter().collect();
    if let (Some(open), Some(answer)) = (open, &prompt.answer) {
        changes.push(close(
            open,
            State::Answered,
            None,
            Some(answer.clone()),
            now,
        ));
        changes.push(taken(&prompt.room_id, open, &prompt.event_id));
    }
    changes.push(tell_agent("prompted", &next, &activity, false));
    changes.push(record(session, activity));
    changes.extend(shown_anew(session, next, now));
    changes
}

/// What follows when a person takes a session away, by a command or by giving it to another agent.
pub fn stopped(
    session: &Session,
    prompt: &Prompt,
    reason: EndReason,
    open: Option<&Elicitation>,
    id: String,
    now: Millis,
) -> Vec<Change> {
    if session.has_ended() {
        return vec![over(session, prompt)];
    }
    if session.status == Status::Stopping {
        return Vec::new();
    }
    let activity = prompt_of(id, prompt, Some(Signal::Stop), now);
    let mut next = touched(session, now);
    next.status = Status::Stopping;
    next.ending = Some(reason);
    next.doing = None;
    let mut changes: Vec<Change> = connected(session, &mut next).into_iter().collect();
    changes.extend(open.map(|open| {
        let why = "the session is stopped";
        close(open, State::Cancelled, Some(why), None, now)
    }));
    changes.push(tell_agent("prompted", &next, &activity, true));
    changes.push(record(session, activity));
    let content = prose::reaction(&prompt.event_id, prose::TAKEN);
    changes.push(Change::Send(SendDraft {
        room_id: prompt.room_id.clone(),
        ..draft(session, SendKind::Reaction, content)
    }));
    changes.extend(shown_anew(session, next, now));
    changes
}

/// What follows when a session is removed: it ends at once, and nobody is asked.
pub fn deleted(session: &Session, open: Option<&Elicitation>, now: Millis) -> Vec<Change> {
    if session.has_ended() {
        return Vec::new();
    }
    let mut next = touched(session, now);
    next.status = Status::Complete;
    next.ending = Some(EndReason::Deleted);
    next.ended_at = Some(now);
    next.doing = None;
    let mut changes: Vec<Change> = connected(session, &mut next).into_iter().collect();
    changes.extend(open.map(|open| {
        let why = "the session is over";
        close(open, State::Cancelled, Some(why), None, now)
    }));
    changes.extend(shown_anew(session, next, now));
    changes
}

/// A session goes on in the room that took the place of its own, under a root of that room.
pub fn session_moved(session: &Session, room_id: &str, now: Millis) -> Vec<Change> {
    let moved = Session {
        room_id: room_id.to_owned(),
        root: None,
        edited_at: now,
        edit_at: None,
        ..session.clone()
    };
    let root = prose::session_root(&shown(&moved));
    let root = draft(&moved, SendKind::Root, root);
    vec![Change::Session(Box::new(moved)), Change::Send(root)]
}

/// The title of a session was the words of a prompt that is redacted: it has none any more.
pub fn untitled(session: &Session, now: Millis) -> Vec<Change> {
    let next = Session {
        title: None,
        ..session.clone()
    };
    shown_anew(session, next, now)
}

fn touched(session: &Session, now: Millis) -> Session {
    Session {
        updated_at: now,
        ..session.clone()
    }
}

/// Whoever was asked to connect an account need not any more: the link goes away.
fn connected(session: &Session, next: &mut Session) -> Option<Change> {
    let asked = next.connecting.take()?;
    Some(Change::Send(SendDraft {
        room_id: asked.room_id,
        key: Key::new(Key::of_session(&session.id).origin, asked.activity),
        also: Vec::new(),
        kind: SendKind::ConnectOver,
        content: prose::connect_over(&session.agent_name, &asked.provider),
    }))
}

/// Keeps a session, and lets the room see what is new about it: at once, or as soon as an edit is
/// no nuisance.
fn shown_anew(was: &Session, mut next: Session, now: Millis) -> Vec<Change> {
    let news = shown(was) != shown(&next) || was.edit_at.is_some();
    let next_edit = was.edited_at.saturating_add(BETWEEN_EDITS);
    let mut edit = None;
    if news && (next_edit <= now || next.edited_at > now) {
        next.edited_at = now;
        next.edit_at = None;
        edit = Some(prose::session_edit(&shown(&next)));
    } else if news {
        next.edit_at = Some(next_edit);
    }
    let edit = edit.map(|content| Change::Send(draft(&next, SendKind::RootEdit, content)));
    std::iter::once(Change::Session(Box::new(next)))
        .chain(edit)
        .collect()
}

fn shown(session: &Session) -> prose::Shown<'_> {
    prose::Shown {
        agent: &session.agent_name,
        title: session.title.as_deref(),
        status: session.status,
        doing: session.doing.as_deref(),
        silent: session.silent,
        end: session.ending.filter(|_| session.has_ended()),
    }
}

fn tell_agent(action: &str, session: &Session, prompt: &Activity, urgent: bool) -> Change {
    Change::Announce(EventDraft {
        key: Key::new(session.agent.as_str(), session.id.as_str()),
        event_type: format!("agent_session.{action}"),
        body: event(action, session, prompt),
        urgent,
    })
}

fn record(session: &Session, activity: Activity) -> Change {
    Change::Record {
        session_id: session.id.clone(),
        activity: Box::new(activity),
    }
}

/// The session is over for good: whoever still speaks to it is told so, once.
fn over(session: &Session, prompt: &Prompt) -> Change {
    let place = Place {
        to: &prompt.event_id,
        thread: prompt.thread.as_deref(),
    };
    let end = session.ending.unwrap_or(EndReason::Deleted);
    let content = prose::session_over(&place, &session.agent_name, end);
    Change::SayOnce {
        user_id: prompt.author.user_id.clone(),
        what: "session_over".to_owned(),
        notice: SendDraft {
            room_id: prompt.room_id.clone(),
            ..draft(session, SendKind::Notice, content)
        },
    }
}

fn draft(session: &Session, kind: SendKind, content: Value) -> SendDraft {
    SendDraft {
        room_id: session.room_id.clone(),
        key: Key::of_session(&session.id),
        also: Vec::new(),
        kind,
        content,
    }
}

#[cfg(test)]
mod tests;
