//! One call of a webhook: signed as Standard Webhooks, bounded in time, no
//! redirects, and what its outcome means.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, redirect};
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook, WebhookError,
};
use url::Url;

use super::envelope;
use crate::clock::Millis;
use crate::config::WebhookConfig;
use crate::ledger::Event;

const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(15);

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

/// The client for all webhooks. It goes straight to the configured address: proxies named in the
/// environment do not apply, redirects are not followed.
pub fn client() -> reqwest::Result<Client> {
    Client::builder()
        .user_agent(concat!("matrix-elicit/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .timeout(WHOLE)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .build()
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
            .send()
            .await;
        match sent {
            Ok(response) => judge(&response),
            Err(error) => Outcome::Failed {
                why: cause(error),
                retry_after: None,
            },
        }
    }
}

fn judge(response: &Response) -> Outcome {
    let status = response.status();
    if status.is_success() {
        return Outcome::Taken;
    }
    if status == StatusCode::GONE {
        return Outcome::Gone;
    }
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.trim().parse().ok())
        .map(Duration::from_secs);
    Outcome::Failed {
        why: format!("HTTP {}", status.as_u16()),
        retry_after,
    }
}

/// Why a call did not come to an answer: the innermost cause, and never the URL, whose query may
/// hold a secret.
fn cause(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    let connecting = error.is_connect();
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if connecting {
        format!("no connection: {cause}")
    } else {
        cause.to_string()
    }
}
