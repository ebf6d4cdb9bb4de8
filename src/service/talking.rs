//! What people say to sessions: prompts, and the commands that end or begin one.

use std::borrow::Cow;

use serde_json::Value;

use super::hearing::{Batch, Hearing};
use super::sessions::name_of;
use crate::clock;
use crate::desk::{
    self, Beginning, Bot, Change, Heard, Known, Prompt, Rules, Said, SendDraft, SendKind,
    may_answer,
};
use crate::elicitation::{Answerers, Key};
use crate::ledger::LedgerError;
use crate::prose::{self, NotDelegated};
use crate::reply::{self, Command};
use crate::session::{Activity, Author, EndReason, Session, Status};

/// Characters of a prompt that become a session's title.
const TITLE: usize = 80;

impl Hearing<'_> {
    /// The session that a message is said to: its thread, a reply to what stands in it, or an edit of
    /// what was said to it before. One that went on in another room is still meant.
    pub(super) fn session_of(
        &mut self,
        heard: &Heard,
        said: &Said,
    ) -> Result<Option<Session>, LedgerError> {
        if let Some(root) = &said.thread
            && let Some(session) = self.ledger.session_by_root(&heard.room_id, root)?
        {
            return Ok(Some(session));
        }
        let replied_to = said.in_reply_to.as_ref().filter(|_| !said.falling_back);
        for event_id in said.thread.iter().chain(replied_to) {
            for key in self.ledger.about(&heard.room_id, event_id)? {
                if let Some(id) = key.session()
                    && let Some(session) = self.ledger.session(id)?
                    // What only one person sees stands in another room, and is no place to talk.
                    && self.leads_to(&heard.room_id, &session.room_id)?
                {
                    return Ok(Some(session));
                }
            }
        }
        let Some(edited) = &said.replaces else {
            return Ok(None);
        };
        let mut prompted = self.prompted_by(&heard.room_id, edited)?;
        // The newest that lives: what was given to another agent is that one's now.
        let living = prompted.iter().rposition(|(it, _)| !it.has_ended());
        let last = prompted.len().checked_sub(1);
        let meant = living.or(last).map(|index| prompted.swap_remove(index).0);
        Ok(meant)
    }

    /// The sessions to which a message of a room was a prompt, each with the first of it.
    fn prompted_by(
        &mut self,
        room_id: &str,
        event_id: &str,
    ) -> Result<Vec<(Session, Activity)>, LedgerError> {
        let mut here = Vec::new();
        for (session, activity) in self.ledger.prompted_by(event_id)? {
            // Whoever names a message of another room has no say in it.
            if self.leads_to(room_id, &session.room_id)? {
                here.push((session, activity));
            }
        }
        Ok(here)
    }

    /// Forgets a prompt whose message was redacted, and what was called after it. `None` when it was
    /// no prompt.
    pub(super) fn prompt_redacted(
        &mut self,
        heard: &Heard,
        redacts: &str,
    ) -> Result<Option<Vec<Change>>, LedgerError> {
        let prompted = self.prompted_by(&heard.room_id, redacts)?;
        if prompted.is_empty() {
            return Ok(None);
        }
        self.ledger.forget_prompt(redacts)?;
        let mut changes = Vec::new();
        for (session, prompt) in prompted {
            if session.title == Some(prose::title_of(&prompt.body, TITLE)) {
                self.ledger.forget_title(&session.id)?;
                changes.extend(desk::untitled(&session, self.now));
            }
        }
        Ok(Some(changes))
    }

    /// What follows from what is said to a session.
    pub(super) fn said_to_session(
        &mut self,
        heard: &Heard,
        said: &Said,
        session: &Session,
        rules: &Rules,
        bot: &Bot,
    ) -> Result<Vec<Change>, LedgerError> {
        if let Some(refused) = refused(heard, said, rules, Some(session)) {
            return Ok(refused);
        }
        let mut directed = Cow::Borrowed(said);
        let mut open = self.ledger.question_of(&session.id)?;
        if let Some(edited) = &said.replaces
            && !self.prompted_by(&heard.room_id, edited)?.is_empty()
        {
            // It was said before, and is said again: no answer to what was asked since.
            open = None;
            if said.thread.is_none() {
                directed.to_mut().body = self.without_call(said);
            }
        }
        let said = &*directed;
        let open = open.map(|mut elicitation| {
            elicitation.question.thread.clone_from(&session.root);
            elicitation.visible = true;
            Known {
                own_events: Vec::new(),
                submission: None,
                manners: self.manners(&elicitation.question),
                elicitation,
            }
        });
        let prompt = desk::said_to_session(
            heard,
            said,
            &session.id,
            open.as_ref(),
            rules,
            bot,
            self.now,
        );
        Ok(prompt.into_iter().collect())
    }

    /// Does what a command to a session says.
    pub(super) fn session_command(
        &mut self,
        heard: &Heard,
        said: &Said,
        command: &Command<'_>,
        rules: &Rules,
        bot: &Bot,
        batch: &Batch,
    ) -> Result<Option<Vec<Change>>, LedgerError> {
        let place = desk::place(heard, said);
        let (reason, written) = match command {
            Command::Help | Command::Cards | Command::Decline { .. } => return Ok(None),
            Command::Agents(wish) => {
                let unread = self.ledger.is_opted_out(&heard.sender.user_id)?;
                let changes = desk::agents(heard, said, *wish, unread, self.commands);
                return Ok(Some(changes));
            }
            Command::New { agent, text } => {
                // What began a session is edited: that is said to the session, and begins no other.
                if said.replaces.is_some()
                    && said.thread.is_none()
                    && let Some(session) = self.session_of(heard, said)?
                {
                    let changes = self.said_to_session(heard, said, &session, rules, bot)?;
                    return Ok(Some(changes));
                }
                let changes = self.new_session(heard, said, agent, text, rules, batch)?;
                return Ok(Some(changes));
            }
            Command::Stop => (EndReason::Stopped, self.commands.stop()),
            Command::Undelegate => (EndReason::Undelegated, self.commands.undelegate()),
            Command::Delegate { .. } => (EndReason::Undelegated, self.commands.delegate()),
        };
        let Some(session) = self.session_of(heard, said)? else {
            let notice = prose::no_session(&place, &written);
            return Ok(Some(vec![answered(heard, notice)]));
        };
        if let Some(refused) = refused(heard, said, rules, Some(&session)) {
            return Ok(Some(refused));
        }
        let mut other = None;
        if let Command::Delegate { to } = command {
            match self.delegate_to(&session, to, &written, heard, said, batch) {
                Ok(agent) => other = Some(agent),
                Err(notice) => return Ok(Some(vec![answered(heard, notice)])),
            }
        }
        let mut begun = Vec::new();
        let goes_on = session.has_ended() || session.status == Status::Stopping;
        if let Some(other) = other.filter(|_| !goes_on) {
            let Some(first) = self.handed_over(heard, said, &session)? else {
                // What nobody takes over is not taken away.
                let calls = self.calls(batch, heard);
                let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
                let notice = prose::no_such_agent(&place, "", &calls);
                return Ok(Some(vec![answered(heard, notice)]));
            };
            begun = self.begin(heard, said, &other, first)?;
        }
        let open = self.ledger.question_of(&session.id)?;
        let prompt = Prompt {
            session_id: session.id.clone(),
            ..prompt(heard, said, said.body.trim())
        };
        let id = clock::fresh_id("act_");
        let mut changes = desk::stopped(&session, &prompt, reason, open.as_ref(), id, self.now);
        changes.extend(begun);
        Ok(Some(changes))
    }

    /// What another agent is given of a session: what was said first, or what it is about. `None`
    /// where nothing was said.
    fn handed_over(
        &mut self,
        heard: &Heard,
        said: &Said,
        session: &Session,
    ) -> Result<Option<Prompt>, LedgerError> {
        let first = self.ledger.first_prompt(&session.id)?;
        let title = session.title.as_deref().unwrap_or_default();
        let mut prompt = prompt(heard, said, title);
        if let Some(first) = first.filter(|first| !reply::is_blank(&first.body)) {
            prompt.body = first.body;
            // They stay the words of whoever said them, who may still redact them.
            prompt.author = first.author.unwrap_or(prompt.author);
            prompt.event_id = first.event_id.unwrap_or(prompt.event_id);
        }
        Ok(Some(prompt).filter(|prompt| !reply::is_blank(&prompt.body)))
    }

    /// Begins a session by command, or says why none begins.
    fn new_session(
        &mut self,
        heard: &Heard,
        said: &Said,
        call: &str,
        text: &str,
        rules: &Rules,
        batch: &Batch,
    ) -> Result<Vec<Change>, LedgerError> {
        if let Some(refused) = refused(heard, said, rules, None) {
            return Ok(refused);
        }
        if let Some(agent) = self.agent_called(call)
            && !reply::is_blank(text)
            && self.works_in(&agent, heard, batch)
        {
            let prompt = prompt(heard, said, text);
            return self.begin(heard, said, &agent, prompt);
        }
        let calls = self.calls(batch, heard);
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        // Whoever is named and said nothing to is named again.
        let call = if calls.contains(&call) { "" } else { call };
        let notice = prose::no_such_agent(&desk::place(heard, said), call, &calls);
        Ok(vec![answered(heard, notice)])
    }

    /// The agent that a session is given to, or what is said when it cannot be.
    fn delegate_to(
        &self,
        session: &Session,
        call: &str,
        written: &str,
        heard: &Heard,
        said: &Said,
        batch: &Batch,
    ) -> Result<String, Value> {
        let place = desk::place(heard, said);
        if reply::is_blank(call) {
            let why = NotDelegated::Nobody { command: written };
            return Err(prose::cannot_delegate(&place, &why));
        }
        let calls = self.calls(batch, heard);
        let Some(agent) = self.agent_called(call) else {
            let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
            return Err(prose::no_such_agent(&place, call, &calls));
        };
        let name = name_of(self.config, &agent);
        if agent == session.agent {
            let why = NotDelegated::Same { agent: &name };
            return Err(prose::cannot_delegate(&place, &why));
        }
        if !self.works_in(&agent, heard, batch) {
            let why = NotDelegated::NotHere { agent: &name };
            return Err(prose::cannot_delegate(&place, &why));
        }
        Ok(agent)
    }

    /// A message that addresses an agent by its call: it answers what that agent asks here, or
    /// begins a session. `None` when it addresses nobody.
    pub(super) fn addressed(
        &mut self,
        heard: &Heard,
        said: &Said,
        rules: &Rules,
        bot: &Bot,
        batch: &Batch,
    ) -> Result<Option<Vec<Change>>, LedgerError> {
        let config = self.config;
        let agents: Vec<&String> = config.agents.keys().collect();
        let calls: Vec<&str> = agents.iter().map(|agent| config.call_of(agent)).collect();
        let Some((index, rest)) = reply::addressed(&said.body, &calls) else {
            return Ok(None);
        };
        let agent = agents[index].clone();
        // To somebody who replies to something else, that is what they mean.
        if said.in_reply_to.is_some() && !said.falling_back {
            return Ok(None);
        }
        let asked: Vec<Known> = self
            .known(heard, said, true)?
            .into_iter()
            .filter(|known| {
                let question = &known.elicitation.question;
                known.elicitation.state == crate::elicitation::State::Open
                    && question.asked_by == agent
                    && may_answer(&heard.sender, rules, &question.answerers).is_ok()
            })
            .collect();
        let directed = Said {
            body: rest.to_owned(),
            mentions_bot: true,
            ..said.clone()
        };
        if !asked.is_empty() {
            return Ok(Some(desk::judge(
                heard, &directed, &asked, rules, bot, self.now,
            )));
        }
        // What it asks in plain words is a question as well, where it cannot be another.
        let mut waiting = self.ledger.living_in(&heard.room_id)?;
        waiting.retain(|session| session.agent == agent && session.status == Status::AwaitingInput);
        if let [session] = waiting.as_slice() {
            let changes = self.said_to_session(heard, &directed, session, rules, bot)?;
            return Ok(Some(changes));
        }
        if !self.works_in(&agent, heard, batch) {
            return Ok(None);
        }
        if refused(heard, said, rules, None).is_some() {
            return Ok(Some(Vec::new()));
        }
        let prompt = prompt(heard, said, rest);
        self.begin(heard, said, &agent, prompt).map(Some)
    }

    /// Whether an agent has any business in the room of a message.
    fn works_in(&self, agent: &str, heard: &Heard, batch: &Batch) -> bool {
        let names = batch.names.get(&heard.room_id);
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        let config = self.config.agents.get(agent);
        config.is_some_and(|config| config.may_ask_in(&heard.room_id, &names))
    }

    /// Begins a session of an agent with what a person said.
    fn begin(
        &mut self,
        heard: &Heard,
        said: &Said,
        agent: &str,
        prompt: Prompt,
    ) -> Result<Vec<Change>, LedgerError> {
        // What was said in a room before its upgrade may be heard after it.
        let successor = self.ledger.successor(&heard.room_id)?;
        let asked = desk::message_id(heard, said);
        let reply_to = successor.is_none().then_some(asked);
        let session = desk::begin(
            Beginning {
                id: clock::fresh_id("sess_"),
                agent: agent.to_owned(),
                agent_name: name_of(self.config, agent),
                room_id: successor.unwrap_or_else(|| heard.room_id.clone()),
                title: Some(prose::title_of(&prompt.body, TITLE)),
                user_id: Some(heard.sender.user_id.clone()),
            },
            self.now,
        );
        let prompt = Prompt {
            session_id: session.id.clone(),
            ..prompt
        };
        let activity = desk::prompt_of(clock::fresh_id("act_"), &prompt, None, self.now);
        Ok(desk::begun(&session, Some(activity), true, reply_to))
    }

    /// What is said to an agent, without its call or the command before it.
    fn without_call(&self, said: &Said) -> String {
        let calls: Vec<&str> = (self.config.agents.keys())
            .map(|agent| self.config.call_of(agent))
            .collect();
        let body = said.body.as_str();
        let bot = Bot::default();
        match desk::command(said, self.commands, &bot) {
            Some(Command::New { text, .. }) => text.to_owned(),
            // A reply is said to whom it replies to, whatever it begins with.
            _ if said.in_reply_to.is_some() => body.to_owned(),
            _ => reply::addressed(body, &calls)
                .map_or(body, |(_, rest)| rest)
                .to_owned(),
        }
    }

    /// The agent that people call like that.
    fn agent_called(&self, call: &str) -> Option<String> {
        let wanted = reply::normal_form(call);
        let mut agents = self.config.agents.keys();
        agents
            .find(|agent| reply::normal_form(self.config.call_of(agent)) == wanted)
            .cloned()
    }

    /// What the agents are called that may work in a room.
    fn calls(&self, batch: &Batch, heard: &Heard) -> Vec<String> {
        let agents = self.config.agents.keys();
        let here = agents.filter(|agent| self.works_in(agent, heard, batch));
        here.map(|id| self.config.call_of(id).to_owned()).collect()
    }

    /// The sessions of a room that the bot was removed from are over.
    pub(super) fn lose_sessions(&mut self, room_id: &str) -> Result<(), LedgerError> {
        for session in self.ledger.living_in(room_id)? {
            super::sessions::delete(self.ledger, &session, self.config, self.now)?;
        }
        Ok(())
    }
}

/// What a person says, to a session that is still to be named.
fn prompt(heard: &Heard, said: &Said, body: &str) -> Prompt {
    Prompt {
        session_id: String::new(),
        body: body.to_owned(),
        author: Author {
            user_id: heard.sender.user_id.clone(),
            display_name: heard.sender.display_name.clone(),
        },
        room_id: heard.room_id.clone(),
        event_id: desk::message_id(heard, said).to_owned(),
        thread: said.thread.clone(),
        answer: None,
    }
}

/// What somebody is told who has no say in a session, once; `None` for those who have. Of a session
/// that has not begun nothing is said.
fn refused(
    heard: &Heard,
    said: &Said,
    rules: &Rules,
    session: Option<&Session>,
) -> Option<Vec<Change>> {
    let allowed = heard.sender.joined
        && may_answer(&heard.sender, rules, &Answerers::default()).is_ok()
        && desk::untrusted(heard, rules).is_none();
    if allowed {
        return None;
    }
    let Some(session) = session.filter(|_| heard.sender.joined) else {
        return Some(Vec::new());
    };
    let place = desk::place(heard, said);
    Some(vec![Change::SayOnce {
        user_id: heard.sender.user_id.clone(),
        what: "may_not_steer".to_owned(),
        notice: SendDraft {
            room_id: heard.room_id.clone(),
            key: Key::of_session(&session.id),
            also: Vec::new(),
            kind: SendKind::Notice,
            content: prose::may_not_steer(&place, &session.agent_name),
        },
    }])
}

/// A notice that answers a command.
fn answered(heard: &Heard, content: Value) -> Change {
    Change::AnswerCommand {
        user_id: heard.sender.user_id.clone(),
        notice: SendDraft {
            room_id: heard.room_id.clone(),
            key: Key::of_room(&heard.room_id),
            also: Vec::new(),
            kind: SendKind::Notice,
            content,
        },
    }
}
