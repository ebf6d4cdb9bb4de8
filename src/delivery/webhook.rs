//! One call of a webhook: signed as Standard Webhooks, bounded in time, no
//! redirects, and what its outcome means.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, StatusCode};
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook, WebhookError,
};
use url::Url;

use super::{envelope, is_of_session};
use crate::calls;
use crate::clock::Millis;
use crate::config::WebhookConfig;
use crate::ledger::Event;

const WHOLE: Duration = Duration::from_secs(15);
/// How long an agent may take to acknowledge what happens in its session.
const SOON: Duration = Duration::from_secs(5);

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// 2xx: the agent has it.
    Taken,
    /// 410: the receiver wants no more of this.
    Gone,
    /// Anything else; it may go better later.
    Failed {
        /// In a few words, without anything secret.
        why: String,
        /// How long the receiver asked to be left alone.
        retry_after: Option<Duration>,
    },
}

/// The client for all webhooks.
pub fn client() -> reqwest::Result<Client> {
    calls::client(WHOLE)
}

/// The webhook of one agent.
pub struct Hook {
    client: Client,
    url: Url,
    signers: Vec<Webhook>,
}

impl Hook {
    /// The webhook that a configuration describes.
    pub fn new(client: Client, config: &WebhookConfig) -> Result<Self, WebhookError> {
        let secrets = config.secret.as_slice().iter();
        let signers = secrets
            .map(|secret| Webhook::new(secret.expose()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            client,
            url: config.url.clone(),
            signers,
        })
    }

    /// Posts an event. Its id is the same on every try, the time is that of this one.
    pub async fn post(&self, event: &Event, now: Millis) -> Outcome {
        let body = envelope(event);
        let at = now.div_euclid(1000);
        let signatures: Result<Vec<_>, _> = self
            .signers
            .iter()
            .map(|signer| signer.sign(&event.id, at, body.as_bytes()))
            .collect();
        let signatures = match signatures {
            Ok(signatures) => signatures.join(" "),
            Err(error) => {
                return Outcome::Failed {
                    why: error.to_string(),
                    retry_after: None,
                };
            }
        };
        let sent = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(HEADER_WEBHOOK_ID, &event.id)
            .header(HEADER_WEBHOOK_TIMESTAMP, at)
            .header(HEADER_WEBHOOK_SIGNATURE, signatures)
            .body(body)
            .timeout(patience(event))
            .send()
            .await;
        match sent {
            Ok(response) => judge(&response),
            Err(error) => Outcome::Failed {
                why: calls::cause(error),
                retry_after: None,
            },
        }
    }
}

/// How long an agent may take to acknowledge an event.
fn patience(event: &Event) -> Duration {
    if is_of_session(event) { SOON } else { WHOLE }
}

fn judge(response: &Response) -> Outcome {
    let status = response.status();
    if status.is_success() {
        return Outcome::Taken;
    }
    if status == StatusCode::GONE {
        return Outcome::Gone;
    }
    Outcome::Failed {
        why: format!("HTTP {}", status.as_u16()),
        retry_after: calls::retry_after(response),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elicitation::Key;

    /// "Webhooks expect an answer within 5 s."
    #[test]
    fn an_agent_has_five_seconds_for_what_happens_in_its_sessions() {
        let event = |event_type: &str| Event {
            seq: 1,
            id: "evt_1".to_owned(),
            key: Key::new("builder", "e1"),
            event_type: event_type.to_owned(),
            at: 0,
            body: serde_json::Value::Null,
        };
        for (event_type, seconds) in [
            ("agent_session.created", 5),
            ("agent_session.prompted", 5),
            ("elicitation.answered", 15),
            ("answer.edited", 15),
        ] {
            let expected = Duration::from_secs(seconds);
            assert_eq!(patience(&event(event_type)), expected, "{event_type}");
        }
    }
}
