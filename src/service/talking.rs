//! What people say to sessions: prompts, and the commands that end or begin one.

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
use crate::session::{Author, EndReason, Session, Status};

/// Characters of a prompt that become a session's title.
const TITLE: usize = 80;

impl Hearing<'_> {
    /// The session that a message is said to: its thread, or a reply to what stands in it.
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
        let Some(event_id) = replied_to else {
            return Ok(None);
        };
        for key in self.ledger.about(&heard.room_id, event_id)? {
            if let Some(id) = key.session() {
                let found = self.ledger.session(id)?;
                return Ok(found.filter(|session| session.room_id == heard.room_id));
            }
        }
        Ok(None)
    }

    /// The session that a message began which is put right now, and what it says to it: the edit of
    /// a first line begins no other session.
    pub(super) fn put_right(
        &mut self,
        heard: &Heard,
        said: &Said,
        command: Option<&Command<'_>>,
    ) -> Result<Option<(Session, Said)>, LedgerError> {
        let Some(replaces) = said.replaces.as_ref().filter(|_| said.thread.is_none()) else {
            return Ok(None);
        };
        let words = match command {
            // It began nothing: to whom it is said is found by what it replies to.
            None if said.in_reply_to.is_some() => return Ok(None),
            None => {
                let agents = self.config.agents.keys();
                let calls: Vec<&str> = agents.map(|agent| self.config.call_of(agent)).collect();
                reply::addressed(&said.body, &calls).map_or(said.body.as_str(), |(_, rest)| rest)
            }
            Some(Command::New { text, .. }) => text,
            Some(_) => return Ok(None),
        };
        let session = self.ledger.session_told(&heard.room_id, replaces)?;
        Ok(session.map(|session| {
            let said = Said {
                body: words.to_owned(),
                ..said.clone()
            };
            (session, said)
        }))
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
        let open = self.ledger.question_of(&session.id)?;
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
        batch: &Batch,
    ) -> Result<Option<Vec<Change>>, LedgerError> {
        let place = desk::place(heard, said);
        let (reason, written) = match command {
            Command::Help | Command::Cards | Command::Decline { .. } => return Ok(None),
            Command::New { agent, text } => {
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
        let open = self.ledger.question_of(&session.id)?;
        let prompt = prompt(heard, said, &session.id, said.body.trim());
        let id = clock::fresh_id("act_");
        let mut changes = desk::stopped(&session, &prompt, reason, open.as_ref(), id, self.now);
        let goes_on = session.has_ended() || session.status == Status::Stopping;
        if let Some(other) = other.filter(|_| !goes_on) {
            let first = self.ledger.first_prompt(&session.id)?;
            let text = first
                .map(|first| first.body)
                .filter(|text| !reply::is_blank(text))
                .or(session.title);
            if let Some(text) = text {
                let begun = self.begin(heard, said, &other, &text, batch)?;
                changes.extend(begun.unwrap_or_default());
            }
        }
        Ok(Some(changes))
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
            && let Some(begun) = self.begin(heard, said, &agent, text, batch)?
        {
            return Ok(begun);
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
        if !calls.iter().any(|call| call == self.config.call_of(&agent)) {
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
        if !asked.is_empty() {
            let directed = Said {
                body: rest.to_owned(),
                mentions_bot: true,
                ..said.clone()
            };
            return Ok(Some(desk::judge(
                heard, &directed, &asked, rules, bot, self.now,
            )));
        }
        if refused(heard, said, rules, None).is_some() {
            return Ok(Some(Vec::new()));
        }
        self.begin(heard, said, &agent, rest, batch)
    }

    /// Begins a session of an agent with what a person said; `None` where the agent has no business.
    fn begin(
        &mut self,
        heard: &Heard,
        said: &Said,
        agent: &str,
        text: &str,
        batch: &Batch,
    ) -> Result<Option<Vec<Change>>, LedgerError> {
        let names = batch.names.get(&heard.room_id);
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        let config = self.config.agents.get(agent);
        if !config.is_some_and(|config| config.may_ask_in(&heard.room_id, &names)) {
            return Ok(None);
        }
        let session = desk::begin(
            Beginning {
                id: clock::fresh_id("sess_"),
                agent: agent.to_owned(),
                agent_name: name_of(self.config, agent),
                room_id: heard.room_id.clone(),
                title: Some(prose::title_of(text, TITLE)),
                user_id: Some(heard.sender.user_id.clone()),
            },
            self.now,
        );
        let prompt = prompt(heard, said, &session.id, text);
        let activity = desk::prompt_of(clock::fresh_id("act_"), &prompt, None, self.now);
        let changes = desk::begun(&session, Some(activity), true, Some(&prompt.event_id));
        Ok(Some(changes))
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
        let names = batch.names.get(&heard.room_id);
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        let here = self
            .config
            .agents
            .iter()
            .filter(|(_, config)| config.may_ask_in(&heard.room_id, &names));
        here.map(|(id, _)| self.config.call_of(id).to_owned())
            .collect()
    }

    /// The sessions of a room that the bot was removed from are over.
    pub(super) fn lose_sessions(&mut self, room_id: &str) -> Result<(), LedgerError> {
        for session in self.ledger.living_in(room_id)? {
            super::sessions::delete(self.ledger, &session, self.config, self.now)?;
        }
        Ok(())
    }
}

fn prompt(heard: &Heard, said: &Said, session_id: &str, body: &str) -> Prompt {
    Prompt {
        session_id: session_id.to_owned(),
        body: body.to_owned(),
        author: Author {
            user_id: heard.sender.user_id.clone(),
            display_name: heard.sender.display_name.clone(),
        },
        event_id: heard.event_id.clone(),
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
