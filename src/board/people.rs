//! Who somebody in a room is to a board.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use url::Url;

use crate::calls::{body_of, cause, retry_after};
use crate::clock::Millis;
use crate::config::BoardConfig;
use crate::secret::Secret;

/// The longest answer to a request for an assertion, in bytes.
const MAX_ASSERTION_BYTES: usize = 64 * 1024;
/// An assertion is not used in the last tenth of its time, but this much is always enough.
const LARGEST_MARGIN: Millis = 30_000;
/// No assertion is believed to last longer than a year.
const LONGEST: f64 = 365.0 * 86_400.0;

/// What proves somebody to a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A token that was issued for this person.
    Bearer(Secret),
    /// The headers that a board in development takes for it.
    Dev {
        /// `X-Tenant-Id`.
        tenant: String,
        /// `X-User-Id`.
        user: String,
    },
}

/// Why there is no credential for somebody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCredential {
    /// Nobody knows this person.
    #[error("is not known")]
    Unknown,
    /// Whoever would know could not be asked, so nothing is said about the person.
    #[error("{why}")]
    Down {
        /// In a few words, without anything secret.
        why: String,
        /// How long the service asked to be left alone.
        retry_after: Option<Duration>,
    },
}

/// The people of one board, by their Matrix accounts.
#[derive(Debug)]
pub struct People {
    known: Known,
}

#[derive(Debug)]
enum Known {
    Bearer(BTreeMap<String, Secret>),
    Assertion(Assertions),
    Dev {
        tenant: String,
        users: BTreeMap<String, String>,
    },
}

impl People {
    /// The people that a configuration describes.
    pub fn new(http: Client, config: &BoardConfig) -> Self {
        let people = &config.people;
        let known = if let Some(assertion) = &people.assertion {
            Known::Assertion(Assertions {
                http,
                url: assertion.url.clone(),
                token: assertion.token.clone(),
                audience: config.base_url.as_str().trim_end_matches('/').to_owned(),
                issued: Mutex::default(),
            })
        } else if let Some(dev) = &people.dev {
            Known::Dev {
                tenant: dev.tenant.clone(),
                users: dev.users.clone(),
            }
        } else {
            Known::Bearer(people.bearer.clone().unwrap_or_default())
        };
        Self { known }
    }

    /// What proves this person to the board, `now` being before the call that it may take.
    pub async fn credential_of(
        &self,
        matrix_user: &str,
        now: Millis,
    ) -> Result<Credential, NoCredential> {
        let found = match &self.known {
            Known::Bearer(tokens) => tokens.get(matrix_user).cloned().map(Credential::Bearer),
            Known::Dev { tenant, users } => users.get(matrix_user).map(|user| Credential::Dev {
                tenant: tenant.clone(),
                user: user.clone(),
            }),
            Known::Assertion(assertions) => {
                let token = assertions.token_of(matrix_user, now).await?;
                Some(Credential::Bearer(token))
            }
        };
        found.ok_or(NoCredential::Unknown)
    }

    /// Asks anew when this person's credential is wanted next: the board refused the last one.
    pub fn forget(&self, matrix_user: &str) {
        if let Known::Assertion(assertions) = &self.known {
            assertions.issued().remove(matrix_user);
        }
    }

    /// Whether a credential may be an older one, so that a refusal may be about its age.
    pub fn is_cached_kind(&self) -> bool {
        matches!(self.known, Known::Assertion(_))
    }
}

/// A service that issues a token for whoever answers.
#[derive(Debug)]
struct Assertions {
    http: Client,
    url: Url,
    token: Secret,
    audience: String,
    issued: Mutex<HashMap<String, Issued>>,
}

#[derive(Debug)]
struct Issued {
    token: Secret,
    until: Millis,
}

impl Assertions {
    async fn token_of(&self, matrix_user: &str, now: Millis) -> Result<Secret, NoCredential> {
        if let Some(issued) = self.issued().get(matrix_user)
            && now < issued.until
        {
            return Ok(issued.token.clone());
        }
        let (token, lasts) = self.ask_for(matrix_user).await?;
        let mut issued = self.issued();
        issued.retain(|_, issued| now < issued.until);
        if let Some(lasts) = lasts {
            let kept = Issued {
                token: token.clone(),
                until: now.saturating_add(lasts),
            };
            issued.insert(matrix_user.to_owned(), kept);
        }
        Ok(token)
    }

    /// A fresh token, and for how long it may be used again.
    async fn ask_for(&self, matrix_user: &str) -> Result<(Secret, Option<Millis>), NoCredential> {
        let body = json!({ "matrix_user_id": matrix_user, "audience": self.audience });
        let request = self.http.post(self.url.clone()).json(&body);
        let sent = request.bearer_auth(self.token.expose()).send().await;
        let response = sent.map_err(|error| down(cause(error)))?;
        let status = response.status();
        if matches!(status.as_u16(), 403 | 404 | 422) {
            return Err(NoCredential::Unknown);
        }
        if !status.is_success() {
            return Err(NoCredential::Down {
                why: format!("HTTP {}", status.as_u16()),
                retry_after: retry_after(&response),
            });
        }
        let body = body_of(response, MAX_ASSERTION_BYTES).await;
        let body = body.map_err(|fault| down(fault.to_string()))?;
        // What the parser says of a mistake may repeat some of the text.
        let body: Value =
            serde_json::from_slice(&body).map_err(|_| down("the answer is not JSON"))?;
        let token = body["token"].as_str().filter(|token| is_token(token));
        let token = token.ok_or_else(|| down("the answer has no token"))?;
        Ok((Secret::from(token), usable_for(&body["expires_in"])))
    }

    fn issued(&self) -> MutexGuard<'_, HashMap<String, Issued>> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn down(why: impl Into<String>) -> NoCredential {
    NoCredential::Down {
        why: why.into(),
        retry_after: None,
    }
}

/// Whether it can stand in a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// For how long a token is used that lasts so many seconds.
fn usable_for(expires_in: &Value) -> Option<Millis> {
    let seconds = expires_in.as_f64()?.min(LONGEST);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounded just above; negative is refused"
    )]
    let lasts = (seconds * 1000.0) as Millis;
    let margin = (lasts / 10).min(LARGEST_MARGIN);
    (lasts > 0).then_some(lasts - margin)
}
