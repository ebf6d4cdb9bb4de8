//! What the admin API of a Synapse says of the accounts on its own server: how old they are, and
//! whether they are locked, suspended or shadow-banned (`digest.md` 2).
//!
//! An answer holds for five seconds. Nothing is kept beyond the process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use crate::calls::{self, body_of, cause};
use crate::clock::Millis;
use crate::config::SynapseAdminConfig;
use crate::secret::Secret;

/// How long one call may take.
const WITHIN: Duration = Duration::from_secs(10);
/// For how long an answer holds.
const HOLDS: Duration = Duration::from_secs(5);
/// How many are asked for at once.
const AT_ONCE: usize = 8;
/// The longest answer about one account, in bytes.
const MOST_BYTES: usize = 256 * 1024;
/// A time of creation that is larger is in milliseconds: in seconds it would be the year 5138.
const SECONDS_END: i64 = 100_000_000_000;

/// An account as its server knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// When it was made.
    pub created_at: Millis,
    /// Whether it is locked, suspended or shadow-banned.
    pub muted: bool,
}

/// The admin API does not say what was asked. Nobody is believed to be old enough meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the Synapse admin API does not answer: {0}")]
pub struct Untold(String);

/// Asks the admin API about accounts.
pub struct Accounts {
    /// `None` where no client can be made: then nothing is told.
    http: Option<Client>,
    url: Url,
    token: Secret,
    /// `None` for an account that does not exist.
    known: Mutex<HashMap<String, (Instant, Option<Account>)>>,
}

#[derive(Deserialize)]
struct Answer {
    creation_ts: i64,
    #[serde(default)]
    locked: Option<bool>,
    #[serde(default)]
    suspended: Option<bool>,
    #[serde(default)]
    shadow_banned: Option<bool>,
}

impl Answer {
    fn account(&self) -> Account {
        let in_seconds = self.creation_ts < SECONDS_END;
        let marks = [self.locked, self.suspended, self.shadow_banned];
        Account {
            created_at: self
                .creation_ts
                .saturating_mul(if in_seconds { 1000 } else { 1 }),
            muted: marks.contains(&Some(true)),
        }
    }
}

impl Accounts {
    /// The admin API that a configuration names.
    pub fn new(config: &SynapseAdminConfig) -> Self {
        Self {
            http: calls::client(WITHIN).ok(),
            url: config.url.clone(),
            token: config.token.clone(),
            known: Mutex::default(),
        }
    }

    /// What is known of accounts of this server. Those that do not exist are left out.
    ///
    /// # Errors
    /// When it does not say so of one of them.
    pub async fn of(&self, users: &[&str]) -> Result<HashMap<String, Account>, Untold> {
        let asked: Vec<_> = users
            .iter()
            .map(|user| self.named((*user).to_owned()).boxed())
            .collect();
        let found: Vec<_> = stream::iter(asked)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn named(&self, user: String) -> Result<Option<(String, Account)>, Untold> {
        let account = self.one(&user).await?;
        Ok(account.map(|account| (user, account)))
    }

    async fn one(&self, user: &str) -> Result<Option<Account>, Untold> {
        let now = Instant::now();
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|_, (asked_at, _)| now.duration_since(*asked_at) < HOLDS);
            if let Some((_, account)) = known.get(user) {
                return Ok(*account);
            }
        }
        let account = self.ask(user).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(user.to_owned(), (now, account));
        Ok(account)
    }

    async fn ask(&self, user: &str) -> Result<Option<Account>, Untold> {
        let mut url = self.url.clone();
        let path = ["_synapse", "admin", "v2", "users", user];
        url.path_segments_mut()
            .map_err(|()| Untold("its address has no path".to_owned()))?
            .pop_if_empty()
            .extend(path);
        let http = self.http.as_ref();
        let http = http.ok_or_else(|| Untold("no connection can be made at all".to_owned()))?;
        let request = http.get(url).bearer_auth(self.token.expose());
        let response = request.send().await.map_err(|error| Untold(cause(error)))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            status => return Err(Untold(format!("it answers {status}"))),
        }
        let body = body_of(response, MOST_BYTES).await;
        let body = body.map_err(|fault| Untold(fault.to_string()))?;
        // What the parser says of a mistake may repeat some of the text.
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|_| Untold("its answer is not that about an account".to_owned()))?;
        Ok(Some(answer.account()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::extract::{Path, State};
    use axum::http::HeaderMap;
    use axum::response::{IntoResponse as _, Response};
    use axum::routing::get;
    use serde_json::{Value, json};

    use super::*;

    /// An admin API that knows three accounts and counts who asks it.
    async fn api(asked: Arc<AtomicUsize>) -> Accounts {
        async fn user(
            State(asked): State<Arc<AtomicUsize>>,
            headers: HeaderMap,
            Path(user): Path<String>,
        ) -> Response {
            asked.fetch_add(1, Ordering::Relaxed);
            if headers
                .get("authorization")
                .is_none_or(|it| it != "Bearer secret")
            {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            let account: Value = match user.as_str() {
                "@old:x.org" => json!({"creation_ts": 1_600_000_000, "locked": false}),
                "@listed:x.org" => json!({"creation_ts": 1_600_000_000_123_i64}),
                "@locked:x.org" => json!({"creation_ts": 1, "locked": true}),
                "@odd:x.org" => json!({"creation_ts": "long ago"}),
                _ => return StatusCode::NOT_FOUND.into_response(),
            };
            axum::Json(account).into_response()
        }
        let app = Router::new()
            .route("/base/_synapse/admin/v2/users/{user}", get(user))
            .with_state(asked);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        accounts(&format!("http://{address}/base"), "secret")
    }

    fn accounts(url: &str, token: &str) -> Accounts {
        let config = SynapseAdminConfig {
            url: url.parse().unwrap(),
            token: Secret::from(token),
        };
        Accounts::new(&config)
    }

    #[tokio::test]
    async fn an_account_has_its_age_and_whether_it_may_speak() {
        let accounts = api(Arc::default()).await;
        let found = accounts
            .of(&[
                "@old:x.org",
                "@listed:x.org",
                "@locked:x.org",
                "@gone:x.org",
            ])
            .await;
        let account = |created_at, muted| Account { created_at, muted };
        let expected = HashMap::from([
            ("@old:x.org".to_owned(), account(1_600_000_000_000, false)),
            (
                "@listed:x.org".to_owned(),
                account(1_600_000_000_123, false),
            ),
            ("@locked:x.org".to_owned(), account(1000, true)),
        ]);
        assert_eq!(found, Ok(expected));
    }

    #[tokio::test]
    async fn an_answer_is_used_again_also_that_there_is_no_such_account() {
        let asked = Arc::new(AtomicUsize::new(0));
        let accounts = api(asked.clone()).await;
        for _ in 0..3 {
            accounts.of(&["@old:x.org", "@gone:x.org"]).await.unwrap();
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn what_is_not_told_is_said_without_anything_secret() {
        let right = api(Arc::default()).await;
        let wrong = accounts(right.url.as_str(), "a token that it does not know");
        assert_eq!(
            wrong.of(&["@old:x.org"]).await,
            Err(Untold("it answers 401 Unauthorized".to_owned()))
        );
        assert_eq!(
            right.of(&["@old:x.org", "@odd:x.org"]).await,
            Err(Untold("its answer is not that about an account".to_owned()))
        );
        let nobody = accounts("http://127.0.0.1:1", "secret");
        let untold = nobody.of(&["@old:x.org"]).await.unwrap_err().to_string();
        assert!(untold.contains("no connection"), "{untold}");
        assert!(!untold.contains("secret"), "{untold}");
    }
}
