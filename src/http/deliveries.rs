//! `/v1/operator/deliveries`: what agents have not taken, and what the operator
//! does about it.
//!
//! ```text
//! GET  /v1/operator/deliveries?state=&agent=&limit=&cursor=   oldest first; parked unless asked otherwise
//! POST /v1/operator/deliveries/retry                          tries parked ones again, at once
//! POST /v1/operator/deliveries/drop                           gives parked ones up for good
//! ```
//!
//! Which ones is said by exactly one of `{"ids":[…]}`, `{"agent":"…"}` and
//! `{"all":true}`. Only an agent that has a webhook now can be tried again: of
//! another one they stay parked.

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::Operator;
use super::elicitations::{Body, Parameters};
use super::query;
use super::{Api, ApiError};
use crate::clock::{self, Millis};
use crate::config::Config;
use crate::elicitation::timestamp;
use crate::ledger::{ChosenDeliveries, DeliveryState, LedgerError, SoughtDeliveries, Undelivered};

/// `GET /v1/operator/deliveries`: those in one state, a page at a time.
pub async fn list(
    State(api): State<Api>,
    _: Operator,
    Parameters(pairs): Parameters,
) -> Result<Json<Value>, ApiError> {
    let [state, agent, limit, cursor] = query::read(pairs, ["state", "agent", "limit", "cursor"])?;
    let sought = SoughtDeliveries {
        state: match state {
            Some(word) => read_state(&word)?,
            None => DeliveryState::Parked,
        },
        origin: agent,
        above: cursor.as_deref().map(query::cursor).transpose()?,
        limit: query::limit(limit.as_deref())?,
    };
    let book = api.service.book();
    let page = book
        .read(move |ledger| ledger.undelivered(&sought))
        .await
        .map_err(|error: LedgerError| ApiError::from(error))?;
    let now = clock::now();
    let deliveries = page.deliveries.iter();
    let deliveries: Vec<Value> = deliveries.map(|one| object(one, now)).collect();
    Ok(Json(
        json!({ "deliveries": deliveries, "next": page.next.map(query::cursor_of) }),
    ))
}

/// `POST /v1/operator/deliveries/retry`: how many are tried again, and which of the ids given are
/// left as they are.
pub async fn retry(
    State(api): State<Api>,
    _: Operator,
    Parameters(pairs): Parameters,
    Body(body): Body,
) -> Result<Json<Value>, ApiError> {
    query::read(pairs, [])?;
    let choice = Choice::read(&body)?;
    let chosen = choice.to_retry(api.service.config())?;
    let ids = api
        .service
        .book()
        .write(move |ledger| ledger.retry_parked(&chosen, clock::now()))
        .await
        .map_err(|error: LedgerError| ApiError::from(error))?;
    tracing::info!(
        deliveries = ids.len(),
        "the operator asked for {} deliveries again",
        ids.len()
    );
    Ok(Json(choice.outcome("retried", &ids)))
}

/// `POST /v1/operator/deliveries/drop`: how many are dropped, and which of the ids given are left
/// as they are.
pub async fn drop_parked(
    State(api): State<Api>,
    _: Operator,
    Parameters(pairs): Parameters,
    Body(body): Body,
) -> Result<Json<Value>, ApiError> {
    query::read(pairs, [])?;
    let choice = Choice::read(&body)?;
    let chosen = choice.chosen();
    let ids = api
        .service
        .book()
        .write(move |ledger| ledger.drop_parked(&chosen))
        .await
        .map_err(|error: LedgerError| ApiError::from(error))?;
    tracing::info!(
        deliveries = ids.len(),
        "the operator dropped {} deliveries",
        ids.len()
    );
    Ok(Json(choice.outcome("dropped", &ids)))
}

fn object(delivery: &Undelivered, now: Millis) -> Value {
    json!({
        "id": delivery.event_id,
        "agent": delivery.key.origin,
        "elicitation_id": delivery.key.id,
        "type": delivery.event_type,
        "state": delivery.state.word(),
        "timestamp": timestamp(delivery.at),
        "age_seconds": now.saturating_sub(delivery.at).max(0) / 1000,
        "attempts": delivery.attempts,
        "next_try": delivery.next_at.map(timestamp),
        "last_error": delivery.last_error,
    })
}

fn read_state(word: &str) -> Result<DeliveryState, ApiError> {
    DeliveryState::from_word(word)
        .ok_or_else(|| ApiError::invalid("state", "must be `parked` or `pending`"))
}

/// Which deliveries a request means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    Ids(Vec<String>),
    Agent(String),
    All,
}

impl Choice {
    fn read(body: &[u8]) -> Result<Self, ApiError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Members {
            ids: Option<Vec<String>>,
            agent: Option<String>,
            all: Option<bool>,
        }
        let wrong = |why: &str| {
            let shapes = r#"must be {"ids": ["…"]}, {"agent": "…"} or {"all": true}"#;
            ApiError::invalid("body", format!("{shapes}{why}"))
        };
        // A list of three would do for serde too.
        if !body.trim_ascii_start().starts_with(b"{") {
            return Err(wrong(""));
        }
        let members: Members =
            serde_json::from_slice(body).map_err(|error| wrong(&format!(": {error}")))?;
        match members {
            Members {
                ids: Some(ids),
                agent: None,
                all: None,
            } if ids.is_empty() => Err(ApiError::invalid("ids", "must not be empty")),
            Members {
                ids: Some(ids),
                agent: None,
                all: None,
            } => Ok(Self::Ids(ids)),
            Members {
                ids: None,
                agent: Some(agent),
                all: None,
            } => Ok(Self::Agent(agent)),
            Members {
                ids: None,
                agent: None,
                all: Some(true),
            } => Ok(Self::All),
            _ => Err(wrong(", exactly one of them")),
        }
    }

    fn chosen(&self) -> ChosenDeliveries {
        ChosenDeliveries {
            event_ids: match self {
                Self::Ids(ids) => Some(ids.clone()),
                _ => None,
            },
            origins: match self {
                Self::Agent(agent) => Some(vec![agent.clone()]),
                _ => None,
            },
        }
    }

    /// The same among the agents that have a webhook. Of others nobody would carry what is
    /// pending, and nobody would see it either.
    fn to_retry(&self, config: &Config) -> Result<ChosenDeliveries, ApiError> {
        let with_webhook = |agent: &String| {
            let settings = config.agents.get(agent);
            settings.is_some_and(|settings| settings.webhook.is_some())
        };
        let chosen = self.chosen();
        if let Self::Agent(agent) = self {
            return if with_webhook(agent) {
                Ok(chosen)
            } else {
                let rule = "has no webhook in the configuration, so there is nowhere to try";
                Err(ApiError::invalid("agent", rule))
            };
        }
        let agents = config.agents.keys().filter(|agent| with_webhook(agent));
        Ok(ChosenDeliveries {
            origins: Some(agents.cloned().collect()),
            ..chosen
        })
    }

    /// What is answered: the number under `verb`, and the ids that were given in vain.
    fn outcome(&self, verb: &str, done: &[String]) -> Value {
        let left: Vec<&String> = match self {
            Self::Ids(ids) => {
                let done: HashSet<&String> = done.iter().collect();
                ids.iter().filter(|id| !done.contains(id)).collect()
            }
            Self::Agent(_) | Self::All => Vec::new(),
        };
        json!({ verb: done.len(), "left": left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Choice, String> {
        Choice::read(body.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn exactly_one_way_of_choosing_is_taken() {
        let ids = Choice::Ids(vec!["evt_1".to_owned(), "evt_2".to_owned()]);
        assert_eq!(read(r#"{"ids": ["evt_1", "evt_2"]}"#), Ok(ids));
        let agent = Choice::Agent("builder".to_owned());
        assert_eq!(read(r#" {"agent": "builder"}"#), Ok(agent));
        assert_eq!(read(r#"{"all": true}"#), Ok(Choice::All));

        let shapes = r#"body must be {"ids": ["…"]}, {"agent": "…"} or {"all": true}"#;
        for two in [
            "{}",
            r#"{"all": false}"#,
            r#"{"all": true, "agent": "builder"}"#,
            r#"{"ids": ["evt_1"], "all": true}"#,
        ] {
            let refused = Err(format!("{shapes}, exactly one of them"));
            assert_eq!(read(two), refused, "{two}");
        }
        assert_eq!(
            read(r#"{"ids": []}"#),
            Err("ids must not be empty".to_owned())
        );
        for other in ["", "true", r#"[["evt_1"], null, null]"#] {
            assert_eq!(read(other), Err(shapes.to_owned()), "{other}");
        }
        for (broken, why) in [
            (r#"{"agents": "a"}"#, "unknown field `agents`"),
            (r#"{"agent": "a", "agent": "b"}"#, "duplicate field `agent`"),
            (r#"{"all": "yes"}"#, "invalid type: string"),
            (r#"{"all": true} and more"#, "trailing characters"),
        ] {
            let refused = read(broken).unwrap_err();
            assert!(
                refused.starts_with(&format!("{shapes}: {why}")),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_state_is_one_of_two_words() {
        assert_eq!(read_state("parked").unwrap(), DeliveryState::Parked);
        assert_eq!(read_state("pending").unwrap(), DeliveryState::Pending);
        for other in ["", "delivered", "Parked"] {
            let refused = read_state(other).unwrap_err().to_string();
            assert_eq!(refused, "state must be `parked` or `pending`");
        }
    }
}
