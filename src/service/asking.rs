//! Asking and withdrawing.

use std::sync::{Arc, PoisonError, RwLock};

use super::{RoomFacts, RoomTrouble, Service};
use crate::clock::{self, Millis};
use crate::config::AgentConfig;
use crate::crash;
use crate::desk::{self, Ask, Asker, Fault, Watch};
use crate::elicitation::{Elicitation, Key, State};
use crate::ledger::{self, Gap, Ledger, LedgerError};

/// The longest time for which a hole in a room's timeline holds its deadlines up.
const GAP_PATIENCE: Millis = 10 * 60 * 1000;
/// How soon a deadline that was held up is looked at again.
const LOOK_AGAIN: Millis = 200;
/// The longest time for which a homeserver that does not answer holds deadlines up.
const SILENCE_PATIENCE: Millis = 60 * 1000;

/// What asking came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Whether the question is new; `false` when the same was asked under this id before.
    pub created: bool,
    /// The question as it stands.
    pub elicitation: Elicitation,
}

/// Why a question was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// A field breaks a rule.
    #[error("{field} {rule}")]
    Invalid {
        /// The field.
        field: String,
        /// The rule.
        rule: String,
    },
    /// The agent may not ask in this room.
    #[error("{message}")]
    RoomNotAllowed {
        /// Said to the agent.
        message: String,
    },
    /// The bot is not in the room.
    #[error("{message}")]
    RoomNotJoined {
        /// Said to the agent: whom to invite.
        message: String,
    },
    /// The bot may not send in the room.
    #[error("{message}")]
    NoPowerToSend {
        /// Said to the agent.
        message: String,
    },
    /// Something else was asked under this id.
    #[error("something else was asked as {id}")]
    Conflict {
        /// The id, or the idempotency key.
        id: String,
    },
    /// Another carrier asks it in a room already, and its answer does not come here.
    #[error("{id} is in a room already: {carrier} carries it")]
    Carried {
        /// The id.
        id: String,
        /// Who put its card into the room.
        carrier: String,
    },
    /// It cannot be said now whether the question can be asked.
    #[error("{message}")]
    Unavailable {
        /// Said to the agent.
        message: String,
    },
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// While it lives, its room stays on the watch: a question may be on its way into the ledger.
pub(super) struct Asking {
    watch: Arc<RwLock<Watch>>,
    room_id: String,
}

impl Asking {
    pub(super) fn begin(watch: Arc<RwLock<Watch>>, room_id: &str) -> Self {
        watch
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .begin(room_id);
        Self {
            watch,
            room_id: room_id.to_owned(),
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut watch = self.watch.write().unwrap_or_else(PoisonError::into_inner);
        watch.end(&self.room_id);
    }
}

impl From<Fault> for AskError {
    fn from(fault: Fault) -> Self {
        Self::Invalid {
            field: fault.field,
            rule: fault.rule,
        }
    }
}

/// Why a question was not withdrawn.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// The origin has no such elicitation.
    #[error("no such elicitation")]
    NotFound,
    /// It was closed already.
    #[error("it is {} already", .0.state.word())]
    NotPending(Box<Elicitation>),
    /// Another carrier asks it, and only that one can withdraw it.
    #[error("{carrier} carries it: it is withdrawn there")]
    Carried {
        /// Who put its card into the room.
        carrier: String,
    },
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Service {
    /// Takes a question. When this returns, it is on the disk.
    ///
    /// # Errors
    /// See [`AskError`]; nothing was stored then.
    pub async fn ask(&self, agent: &str, ask: Ask) -> Result<Asked, AskError> {
        ask.check()?;
        crash::point("ask.received");
        let fingerprint = ask.fingerprint();
        // A repeat is answered whatever has become of the room since.
        let repeat = {
            let (agent, ask, fingerprint) = (agent.to_owned(), ask.clone(), fingerprint.clone());
            self.book
                .read(move |ledger| asked_before(ledger, &agent, &ask, &fingerprint))
                .await?
        };
        if let Some(elicitation) = repeat {
            return Ok(Asked {
                created: false,
                elicitation,
            });
        }
        let config = self
            .config
            .agents
            .get(agent)
            .ok_or_else(|| AskError::RoomNotAllowed {
                message: format!("there is no agent {agent}"),
            })?;
        let mut facts = self.room_to_ask_in(config, &ask.room).await?;
        let asker = Asker {
            agent: agent.to_owned(),
            name: config.name.clone(),
            decline: self.commands.decline(),
        };
        // Before the commit: the watch may hold too much, never too little.
        let mut asking = Asking::begin(self.watch.clone(), &facts.room_id);
        let now = clock::now();
        let id = ask
            .elicitation_id
            .clone()
            .unwrap_or_else(|| clock::fresh_id("elc_"));
        let config = self.config.clone();
        let watch = self.watch.clone();
        let store = move |ledger: &mut dyn Ledger, asking: &mut Asking| {
            let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
            if let Some(elicitation) = asked_before(ledger, &asker.agent, &ask, &fingerprint)? {
                return Ok(Asked {
                    created: false,
                    elicitation,
                });
            }
            if let Some(card_id) = &ask.card_id {
                let older =
                    ledger.pending_about_card(&asker.agent, ask.board_id.as_deref(), card_id)?;
                for old in older {
                    let reason = format!("asked again as {id}");
                    let change = desk::close(&old, State::Superseded, Some(&reason), None, now);
                    ledger::apply(ledger, &[change], &has_webhook, now)?;
                }
            }
            // Its upgrade may have been followed since the room was found.
            if let Some(successor) = ledger.successor(&facts.room_id)? {
                *asking = Asking::begin(watch, &successor);
                facts.room_id = successor;
            }
            let others_open = ledger.any_pending_in(&facts.room_id)?;
            let tag = ledger.next_tag(&facts.room_id)?;
            let idempotency_key = ask.idempotency_key.clone();
            let elicitation = ask.into_elicitation(asker, facts.room_id, id, tag, now)?;
            let card = desk::card(&elicitation, others_open);
            if !ledger.insert(&elicitation, &fingerprint, idempotency_key.as_deref())? {
                let id = elicitation.question.key.id;
                return Err(AskError::Conflict { id });
            }
            ledger::apply(ledger, &[desk::Change::Send(card)], &has_webhook, now)?;
            Ok(Asked {
                created: true,
                elicitation,
            })
        };
        // The guard comes back with the answer, after the commit, also when nobody waits for it.
        let (asked, _asking) = self
            .book
            .write(move |ledger| store(ledger, &mut asking).map(|asked| (asked, asking)))
            .await?;
        crash::point("ask.stored");
        Ok(asked)
    }

    /// The room to ask in, if this agent may and the bot can.
    pub(super) async fn room_to_ask_in(
        &self,
        agent: &AgentConfig,
        room: &str,
    ) -> Result<RoomFacts, AskError> {
        if !room.starts_with('!') && !room.starts_with('#') {
            let rule = "must be a room id like !abc or an alias like #team:example.org".to_owned();
            return Err(AskError::Invalid {
                field: "room".to_owned(),
                rule,
            });
        }
        let everywhere = agent.rooms.iter().any(|allowed| allowed == "*");
        let not_allowed = || AskError::RoomNotAllowed {
            message: format!("this agent may not ask in {room}"),
        };
        let facts = match self.rooms.locate(room).await {
            Ok(facts) => facts,
            // Whether a room exists is nobody's business who may not ask there.
            Err(_) if !everywhere && !agent.rooms.iter().any(|allowed| allowed == room) => {
                return Err(not_allowed());
            }
            Err(RoomTrouble::Unknown(room)) => {
                let rule = format!("must be a room that exists; there is no {room}");
                return Err(AskError::Invalid {
                    field: "room".to_owned(),
                    rule,
                });
            }
            Err(RoomTrouble::Away(why)) => {
                let message = format!("the alias {room} cannot be looked up now: {why}");
                return Err(AskError::Unavailable { message });
            }
        };
        let named = |allowed: &String| {
            *allowed == facts.room_id || allowed == room || facts.aliases.contains(allowed)
        };
        if !everywhere && !agent.rooms.iter().any(named) {
            return Err(not_allowed());
        }
        let bot = self.rooms.bot();
        if !facts.joined {
            let message = match &facts.invited_by {
                None => format!("the bot is not in {room}: invite {bot}"),
                Some(inviter) if self.config.matrix.joins_for(inviter) => {
                    format!(
                        "the bot is about to follow {inviter}'s invitation to {room}: try again"
                    )
                }
                Some(inviter) => format!(
                    "the bot does not follow {inviter}'s invitation to {room}: \
                     its operator's matrix.join does not name them"
                ),
            };
            return Err(AskError::RoomNotJoined { message });
        }
        if !facts.may_send {
            let message =
                format!("the bot may not send messages in {room}: give {bot} the power to");
            return Err(AskError::NoPowerToSend { message });
        }
        Ok(facts)
    }

    /// Withdraws a question.
    ///
    /// # Errors
    /// See [`CancelError`].
    pub async fn cancel(&self, key: &Key) -> Result<Elicitation, CancelError> {
        let key = key.clone();
        let config = self.config.clone();
        let now = clock::now();
        self.book
            .write(move |ledger| {
                let found = ledger.find_of(&key.origin, &key.id)?;
                let found = found.ok_or(CancelError::NotFound)?;
                if let Some(carrier) = found.key().carrier() {
                    let carrier = carrier.to_owned();
                    return Err(CancelError::Carried { carrier });
                }
                let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
                let change = desk::close(&found, State::Cancelled, None, None, now);
                if !ledger::apply(ledger, &[change], &has_webhook, now)? {
                    return Err(CancelError::NotPending(Box::new(found)));
                }
                ledger.find(&key)?.ok_or(CancelError::NotFound)
            })
            .await
    }

    /// Lets everything expire whose deadline has passed and up to whose deadline everything was
    /// heard. Gives the next deadline.
    ///
    /// An answer sent in time may still be on its way: it is waited for until the homeserver has
    /// told everything up to the deadline, or stays silent for too long. So it is where a room
    /// has a hole in its timeline.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn expire(
        &self,
        now: Millis,
        heard_until: Option<Millis>,
    ) -> Result<Option<Millis>, LedgerError> {
        let config = self.config.clone();
        self.book
            .write(move |ledger| {
                let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
                loop {
                    let (due, next) = ledger.due(now)?;
                    let gaps = ledger.gaps()?;
                    let (held_up, due): (Vec<_>, Vec<_>) = due
                        .into_iter()
                        .partition(|elicitation| is_held_up(elicitation, &gaps, now, heard_until));
                    if due.is_empty() {
                        let soon = (!held_up.is_empty()).then(|| now.saturating_add(LOOK_AGAIN));
                        return Ok(soon.into_iter().chain(next).min());
                    }
                    for elicitation in due {
                        let change = desk::close(&elicitation, State::Expired, None, None, now);
                        ledger::apply(ledger, &[change], &has_webhook, now)?;
                    }
                }
            })
            .await
    }
}

/// Whether an answer given in time may still come to be heard.
fn is_held_up(
    elicitation: &Elicitation,
    gaps: &[Gap],
    now: Millis,
    heard_until: Option<Millis>,
) -> bool {
    let deadline = elicitation.question.expires_at.unwrap_or(now);
    let heard = heard_until.is_some_and(|until| until >= deadline);
    let on_its_way = !heard && now.saturating_sub(deadline) < SILENCE_PATIENCE;
    on_its_way
        || gaps.iter().any(|gap| {
            gap.room_id == elicitation.question.room_id
                && now.saturating_sub(gap.found_at) < GAP_PATIENCE
        })
}

/// What this agent stored under the request's ids, if it is the same question.
fn asked_before(
    ledger: &mut dyn Ledger,
    agent: &str,
    ask: &Ask,
    fingerprint: &str,
) -> Result<Option<Elicitation>, AskError> {
    let (id, idempotency_key) = (
        ask.elicitation_id.as_deref(),
        ask.idempotency_key.as_deref(),
    );
    let mut found = ledger.find_asked(agent, id, idempotency_key)?;
    let same = found.len() == 1
        && found.iter().all(|asked| {
            asked.fingerprint == fingerprint
                && id.is_none_or(|id| id == asked.elicitation.question.key.id)
        });
    match found.pop() {
        None => carried_before(ledger, agent, id),
        Some(asked) if same => Ok(Some(asked.elicitation)),
        Some(asked) => Err(AskError::Conflict {
            id: asked.elicitation.question.key.id,
        }),
    }
}

/// What another carrier asks already in this agent's name: its card is not put up a second time.
fn carried_before(
    ledger: &mut dyn Ledger,
    agent: &str,
    id: Option<&str>,
) -> Result<Option<Elicitation>, AskError> {
    let Some(id) = id else { return Ok(None) };
    let carried = ledger.carried_as(id)?;
    let Some(found) = carried
        .into_iter()
        .find(|found| found.question.asked_by == agent)
    else {
        return Ok(None);
    };
    match found.key().carrier() {
        Some(carrier) if found.question.owner() != Some(agent) => Err(AskError::Carried {
            id: id.to_owned(),
            carrier: carrier.to_owned(),
        }),
        _ => Ok(Some(found)),
    }
}
