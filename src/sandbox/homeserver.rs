//! The client-server protocol, as far as the sandbox speaks it. Works against any homeserver.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::SandboxError;

/// Longer than the longest long-poll that is asked for here.
const REQUEST_LIMIT: Duration = Duration::from_mins(1);
/// A throwaway server never limits us for longer; a real one that does is not worth waiting for.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// An account, and the device that it is logged in on.
#[derive(Clone)]
pub struct Account {
    /// Such as `@ada:elicit.test`.
    pub user_id: String,
    /// The device that the token belongs to.
    pub device_id: String,
    /// Good for everything this account may do.
    pub access_token: String,
    /// For further logins.
    pub password: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("user_id", &self.user_id)
            .field("device_id", &self.device_id)
            .finish_non_exhaustive()
    }
}

/// A homeserver's address, and a token if one is needed.
#[derive(Debug, Clone)]
pub struct Homeserver {
    base: Url,
    http: reqwest::Client,
    token: Option<Token>,
}

#[derive(Clone)]
struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Homeserver {
    /// At this base URL. Nothing is asked yet.
    ///
    /// # Errors
    /// [`SandboxError::Address`] unless it is an `http` or `https` URL.
    pub fn new(url: &str) -> Result<Self, SandboxError> {
        let base = Url::parse(url)
            .ok()
            .filter(|base| matches!(base.scheme(), "http" | "https"))
            .ok_or_else(|| SandboxError::Address(url.to_owned()))?;
        let mut builder = reqwest::Client::builder().timeout(REQUEST_LIMIT);
        if base.host_str() == Some("127.0.0.1") {
            // A proxy could not reach our loopback; and to trust nobody saves reading the
            // system's certificates, once for every person in every test.
            builder = builder.no_proxy().tls_certs_only([]);
        }
        Ok(Self {
            base,
            http: builder.build()?,
            token: None,
        })
    }

    /// The same homeserver, asked as this account.
    #[must_use]
    pub fn as_account(&self, account: &Account) -> Self {
        Self {
            token: Some(Token(account.access_token.clone())),
            ..self.clone()
        }
    }

    /// Makes an account, logged in on a device of its own. Needs open registration.
    ///
    /// # Errors
    /// [`SandboxError::Refused`] if registration is closed, or the name taken.
    pub async fn register(&self, localpart: &str, password: &str) -> Result<Account, SandboxError> {
        let mut body = json!({
            "username": localpart,
            "password": password,
            "auth": {"type": "m.login.dummy"},
        });
        let (status, mut answer) = self
            .send(&Method::POST, &["register"], &[], Some(&body))
            .await?;
        // Some servers insist on the session of the first answer (user-interactive
        // authentication in the client-server API).
        if status == StatusCode::UNAUTHORIZED && answer["session"].is_string() {
            body["auth"]["session"] = answer["session"].clone();
            answer = self
                .call(Method::POST, &["register"], &[], Some(&body))
                .await?;
        } else if !status.is_success() {
            return Err(refused(&Method::POST, &["register"], status, &answer));
        }
        account(&answer, password)
    }

    /// Logs in with a password, on a new device.
    ///
    /// # Errors
    /// [`SandboxError::Refused`] if name or password are wrong.
    pub async fn login(&self, user: &str, password: &str) -> Result<Account, SandboxError> {
        let body = json!({
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": user},
            "password": password,
        });
        account(
            &self
                .call(Method::POST, &["login"], &[], Some(&body))
                .await?,
            password,
        )
    }

    /// One request to `/_matrix/client/v3/…`, each part of the path encoded. Waits and asks
    /// again when told that it was too much.
    ///
    /// # Errors
    /// [`SandboxError::Refused`] with the `errcode`, or [`SandboxError::Unreachable`].
    pub async fn call(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, SandboxError> {
        let (status, answer) = self.send(&method, path, query, body).await?;
        if status.is_success() {
            Ok(answer)
        } else {
            Err(refused(&method, path, status, &answer))
        }
    }

    async fn send(
        &self,
        method: &Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), SandboxError> {
        let mut url = self.at(&["_matrix", "client", "v3"])?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        loop {
            let mut request = self.http.request(method.clone(), url.clone());
            if let Some(Token(token)) = &self.token {
                request = request.bearer_auth(token);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            let response = request.send().await?;
            let status = response.status();
            let text = response.text().await?;
            let answer = serde_json::from_str(&text)
                .unwrap_or_else(|_| json!({"error": text.chars().take(200).collect::<String>()}));
            let backoff = Duration::from_millis(answer["retry_after_ms"].as_u64().unwrap_or(1000));
            if status != StatusCode::TOO_MANY_REQUESTS || backoff > LONGEST_BACKOFF {
                return Ok((status, answer));
            }
            tokio::time::sleep(backoff).await;
        }
    }

    /// What a throwaway server of ours tells of itself; see `homeserver_config`.
    pub(super) async fn instance(&self) -> Option<String> {
        let url = self.at(&[".well-known", "matrix", "client"]).ok()?;
        let answer: Value = self.http.get(url).send().await.ok()?.json().await.ok()?;
        answer["test.elicit.instance"].as_str().map(str::to_owned)
    }

    fn at(&self, path: &[&str]) -> Result<Url, SandboxError> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| SandboxError::Address(self.base.to_string()))?
            .pop_if_empty()
            .extend(path);
        Ok(url)
    }
}

fn account(answer: &Value, password: &str) -> Result<Account, SandboxError> {
    let field = |name: &'static str| {
        answer[name]
            .as_str()
            .map(str::to_owned)
            .ok_or(SandboxError::Incomplete(name))
    };
    Ok(Account {
        user_id: field("user_id")?,
        device_id: field("device_id")?,
        access_token: field("access_token")?,
        password: password.to_owned(),
    })
}

fn refused(method: &Method, path: &[&str], status: StatusCode, answer: &Value) -> SandboxError {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    SandboxError::Refused {
        what: format!("{method} {}", path.join("/")),
        status: status.as_u16(),
        errcode: text("errcode"),
        message: text("error"),
    }
}
