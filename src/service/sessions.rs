//! Agents' sessions: what their agents do in them, and what time does.

use super::asking::Asking;
use super::{AskError, RoomTrouble, Service};
use crate::clock::{self, Millis};
use crate::config::{AgentConfig, Config};
use crate::contract::signals::{self, Asks};
use crate::desk::{self, ActivityRefusal, Beginning, Change, QuestionPlace};
use crate::ledger::{self, Ledger, LedgerError, SoughtSessions};
use crate::session::{Activity, ActivityType, Author, Session, Status};

/// So many sessions are looked after in one transaction.
const AT_A_LOOK: usize = 200;

/// What an agent wants a session to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Room id or alias.
    pub room: String,
    /// What it is about.
    pub title: Option<String>,
    /// For whom it is: a user id, or what the agent calls a person.
    pub user_id: Option<String>,
    /// What that person said to begin with.
    pub prompt: Option<String>,
}

/// Why a session does not take what its agent wants.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The agent has no such session.
    #[error("no such session")]
    NotFound,
    /// It is over for good.
    #[error("the session has ended")]
    Ended,
    /// A person wants it to stop.
    #[error("the session is to stop: only thoughts, actions, a response or an error are taken")]
    Stopping,
    /// A field breaks a rule.
    #[error("{field} {rule}")]
    Invalid {
        /// The field.
        field: String,
        /// The rule.
        rule: String,
    },
    /// It cannot be said now whether it can be done.
    #[error("{0}")]
    Unavailable(String),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl SessionError {
    fn invalid(field: &str, rule: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.to_owned(),
            rule: rule.into(),
        }
    }
}

impl Service {
    /// Begins a session that its agent wants.
    ///
    /// # Errors
    /// As for asking: the room may not be one to speak in.
    pub async fn begin_session(&self, agent: &str, new: NewSession) -> Result<Session, AskError> {
        let invalid = |field: &str, rule: &str| AskError::Invalid {
            field: field.to_owned(),
            rule: rule.to_owned(),
        };
        let config = self
            .config
            .agents
            .get(agent)
            .ok_or_else(|| AskError::RoomNotAllowed {
                message: format!("there is no agent {agent}"),
            })?;
        let user_id = match &new.user_id {
            None => None,
            Some(given) => Some(person_of(config, given).ok_or_else(|| {
                invalid("user_id", "must be a user id, or one of the agent's people")
            })?),
        };
        if new.prompt.is_some() && user_id.is_none() {
            let rule = "must say whose prompt it is: only people write prompts";
            return Err(invalid("user_id", rule));
        }
        let facts = self.room_to_ask_in(config, &new.room).await?;
        let mut asking = Asking::begin(self.watch.clone(), &facts.room_id);
        let beginning = Beginning {
            id: clock::fresh_id("sess_"),
            agent: agent.to_owned(),
            agent_name: name_of(&self.config, agent),
            room_id: facts.room_id,
            title: new.title,
            user_id: user_id.clone(),
        };
        let (config, watch) = (self.config.clone(), self.watch.clone());
        let now = clock::now();
        let store = move |ledger: &mut dyn Ledger, asking: &mut Asking| {
            let mut beginning = beginning;
            if let Some(successor) = ledger.successor(&beginning.room_id)? {
                *asking = Asking::begin(watch, &successor);
                beginning.room_id = successor;
            }
            let session = desk::begin(beginning, now);
            let prompt = new.prompt.zip(user_id).map(|(body, user_id)| Activity {
                id: clock::fresh_id("act_"),
                kind: ActivityType::Prompt,
                body,
                signal: None,
                signal_metadata: None,
                author: Some(Author {
                    user_id,
                    display_name: None,
                }),
                event_id: None,
                ephemeral: false,
                created_at: now,
            });
            // Whoever begins a session need not be told that it has begun.
            let changes = desk::begun(&session, prompt, false, None);
            let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
            ledger::apply(ledger, &changes, &has_webhook, now)?;
            Ok::<_, AskError>(session)
        };
        let (session, _asking) = self
            .book
            .write(move |ledger| store(ledger, &mut asking).map(|session| (session, asking)))
            .await?;
        Ok(session)
    }

    /// One session of an agent.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn session(&self, agent: &str, id: &str) -> Result<Option<Session>, LedgerError> {
        let (agent, id) = (agent.to_owned(), id.to_owned());
        self.book
            .read(move |ledger| {
                Ok(ledger
                    .session(&id)?
                    .filter(|session| session.agent == agent))
            })
            .await
    }

    /// One page of an agent's sessions, newest first, and where the next one begins.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn sessions(
        &self,
        sought: SoughtSessions,
    ) -> Result<(Vec<Session>, Option<i64>), LedgerError> {
        self.book
            .read(move |ledger| ledger.list_sessions(&sought))
            .await
    }

    /// What was said in a session, oldest first, and where the next page begins. `None` when the
    /// agent has no such session.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn activities(
        &self,
        agent: &str,
        id: &str,
        after: i64,
        limit: usize,
    ) -> Result<Option<(Vec<Activity>, Option<i64>)>, LedgerError> {
        let (agent, id) = (agent.to_owned(), id.to_owned());
        self.book
            .read(move |ledger| {
                let found = ledger.session(&id)?;
                if found.is_none_or(|session| session.agent != agent) {
                    return Ok(None);
                }
                ledger.activities(&id, after, limit).map(Some)
            })
            .await
    }

    /// The root of a session's thread, once it is in the room.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn root_of(&self, id: &str) -> Result<Option<String>, LedgerError> {
        let id = id.to_owned();
        let session = self.book.read(move |ledger| ledger.session(&id)).await?;
        Ok(session.and_then(|session| session.root))
    }

    /// Takes what an agent does in its session.
    ///
    /// # Errors
    /// See [`SessionError`]; nothing of it was kept then.
    pub async fn act(
        &self,
        agent: &str,
        id: &str,
        mut said: signals::Activity,
    ) -> Result<Activity, SessionError> {
        let Some(session) = self.session(agent, id).await? else {
            return Err(SessionError::NotFound);
        };
        let connect = match &mut said.asks {
            // Nobody is bothered for what will be refused.
            Asks::Auth(wanted) if !session.has_ended() && session.status != Status::Stopping => {
                let (person, room_id) = self.to_connect(&session, &wanted.user_id).await?;
                wanted.user_id = person;
                Some(room_id)
            }
            _ => None,
        };
        let (config, id) = (self.config.clone(), id.to_owned());
        let asking = Asking::begin(self.watch.clone(), &session.room_id);
        let now = clock::now();
        let taken = self.book.write(move |ledger| {
            let session = ledger.session(&id)?.ok_or(SessionError::NotFound)?;
            let open = ledger.question_of(&id)?;
            let place = if matches!(said.asks, Asks::Select(_)) {
                QuestionPlace {
                    others_open: ledger.any_pending_in(&session.room_id)?,
                    tag: ledger.next_tag(&session.room_id)?,
                }
            } else {
                QuestionPlace::default()
            };
            let act = clock::fresh_id("act_");
            let acted = desk::acted(&session, &said, open.as_ref(), connect, place, act, now);
            let (activity, changes) = acted.map_err(|refusal| match refusal {
                ActivityRefusal::Ended => SessionError::Ended,
                ActivityRefusal::Stopping => SessionError::Stopping,
            })?;
            let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
            if !ledger::apply(ledger, &changes, &has_webhook, now)? {
                return Err(SessionError::Ended);
            }
            Ok((activity, asking))
        });
        taken.await.map(|(activity, _asking)| activity)
    }

    /// The person who is to connect an account, who has to be in the session's room, and the room in
    /// which they alone are asked.
    async fn to_connect(
        &self,
        session: &Session,
        given: &str,
    ) -> Result<(String, String), SessionError> {
        const FIELD: &str = "signal_metadata.user_id";
        let person = self
            .config
            .agents
            .get(&session.agent)
            .and_then(|config| person_of(config, given))
            .ok_or_else(|| {
                SessionError::invalid(FIELD, "must be a user id, or one of the agent's people")
            })?;
        let away = |trouble: RoomTrouble| SessionError::Unavailable(trouble.to_string());
        let is_here = self.rooms.is_in(&session.room_id, &person).await;
        if !is_here.map_err(away)? {
            let rule = "must be somebody in the session's room";
            return Err(SessionError::invalid(FIELD, rule));
        }
        let who = person.clone();
        let known = self
            .book
            .read(move |ledger| ledger.direct_room(&who))
            .await?;
        let room_id = self
            .rooms
            .direct_room(&person, known.as_deref())
            .await
            .map_err(away)?;
        if known.as_ref() != Some(&room_id) {
            let (who, made) = (person.clone(), room_id.clone());
            self.book
                .write(move |ledger| ledger.set_direct_room(&who, &made))
                .await?;
        }
        Ok((person, room_id))
    }

    /// Ends a session at once, without a word to anybody.
    ///
    /// # Errors
    /// When the agent has no such session, or it is over.
    pub async fn delete_session(&self, agent: &str, id: &str) -> Result<Session, SessionError> {
        let (agent, id, config) = (agent.to_owned(), id.to_owned(), self.config.clone());
        let now = clock::now();
        self.book
            .write(move |ledger| {
                let found = ledger.session(&id)?;
                let session = found
                    .filter(|session| session.agent == agent)
                    .ok_or(SessionError::NotFound)?;
                if session.has_ended() {
                    return Err(SessionError::Ended);
                }
                delete(ledger, &session, &config, now)?;
                ledger.session(&id)?.ok_or(SessionError::NotFound)
            })
            .await
    }

    /// Ends the sessions of agents that the configuration does not name any more.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn end_orphaned_sessions(&self) -> Result<(), LedgerError> {
        let config = self.config.clone();
        let now = clock::now();
        self.book
            .write(move |ledger| {
                for agent in ledger.living_agents()? {
                    if config.agents.contains_key(&agent) {
                        continue;
                    }
                    for session in ledger.living_of(&agent)? {
                        delete(ledger, &session, &config, now)?;
                    }
                }
                Ok(())
            })
            .await
    }

    /// Does what time does to sessions: one that is to stop ends, a silent one goes stale, a root is
    /// edited. Gives the moment at which there is more to be done.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn tick_sessions(&self, now: Millis) -> Result<Option<Millis>, LedgerError> {
        let config = self.config.clone();
        self.book
            .write(move |ledger| {
                let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
                let (due, next) = ledger.sessions_due(now, AT_A_LOOK)?;
                let more = due.len() == AT_A_LOOK;
                for session in due {
                    let changes = desk::session_tick(&session, now);
                    ledger::apply(ledger, &changes, &has_webhook, now)?;
                }
                Ok(if more { Some(now) } else { next })
            })
            .await
    }
}

/// Ends a session, and withdraws what it asks.
pub(super) fn delete(
    ledger: &mut dyn Ledger,
    session: &Session,
    config: &Config,
    now: Millis,
) -> Result<(), LedgerError> {
    let open = ledger.question_of(&session.id)?;
    let changes: Vec<Change> = desk::deleted(session, open.as_ref(), now);
    let has_webhook = |origin: &str| Service::has_webhook(config, origin);
    ledger::apply(ledger, &changes, &has_webhook, now)?;
    Ok(())
}

/// The name of an agent for people.
pub(super) fn name_of(config: &Config, agent: &str) -> String {
    let named = config.agents.get(agent);
    named
        .and_then(|config| config.name.clone())
        .unwrap_or_else(|| agent.to_owned())
}

/// A person by their user id, or by what an agent calls them.
fn person_of(config: &AgentConfig, given: &str) -> Option<String> {
    if desk::is_user_id(given) {
        return Some(given.to_owned());
    }
    config.people.get(given).cloned()
}
