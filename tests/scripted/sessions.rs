//! Accounts and who is logged in.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::SERVER_NAME;
use super::call::Refusal;

/// A login.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) user: String,
    pub(super) device: String,
}

/// All accounts and logins.
#[derive(Debug, Default)]
pub struct Sessions {
    passwords: BTreeMap<String, String>,
    by_access_token: HashMap<String, Session>,
    by_refresh_token: HashMap<String, Session>,
    /// Whether those without a session may log in again on their device.
    soft_logout: bool,
    names: usize,
}

impl Sessions {
    /// An account; its id.
    pub fn account(&mut self, name: &str, password: &str) -> String {
        let id = format!("@{name}:{SERVER_NAME}");
        self.passwords.insert(id.clone(), password.to_owned());
        id
    }

    /// Logs somebody in without asking; user, device and tokens as a login tells them.
    pub fn open(&mut self, user: &str, device: &str, refreshable: bool) -> Value {
        // A device has one session.
        self.by_access_token
            .retain(|_, other| other.device != device);
        self.by_refresh_token
            .retain(|_, other| other.device != device);
        let token = self.name("token");
        let mut answer = json!({"user_id": user, "device_id": device, "access_token": token});
        let session = Session {
            user: user.to_owned(),
            device: device.to_owned(),
        };
        if refreshable {
            let refresh = self.name("refresh");
            answer["refresh_token"] = json!(refresh);
            answer["expires_in_ms"] = json!(3_600_000);
            self.by_refresh_token.insert(refresh, session.clone());
        }
        self.by_access_token.insert(token, session);
        answer
    }

    /// No access token is good any longer; refresh tokens are.
    pub fn expire(&mut self) {
        self.by_access_token.clear();
    }

    /// No token is good any longer; `soft` lets the devices log in again.
    pub fn log_out_all(&mut self, soft: bool) {
        self.by_access_token.clear();
        self.by_refresh_token.clear();
        self.soft_logout = soft;
    }

    /// Whose token this is.
    pub(super) fn find(&self, token: &str) -> Result<Session, Refusal> {
        let found = self.by_access_token.get(token).cloned();
        found.ok_or_else(|| self.unknown())
    }

    fn unknown(&self) -> Refusal {
        let mut refusal = Refusal::new(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.");
        if self.soft_logout {
            refusal.body["soft_logout"] = json!(true);
        }
        refusal
    }

    /// Logs somebody in by their password.
    pub(super) fn log_in(&mut self, request: &Value) -> Result<Value, Refusal> {
        let named = request["identifier"]["user"].as_str().unwrap_or_default();
        let user = if named.starts_with('@') {
            named.to_owned()
        } else {
            format!("@{named}:{SERVER_NAME}")
        };
        let password = request["password"].as_str();
        if password.is_none() || self.passwords.get(&user).map(String::as_str) != password {
            return Err(Refusal::forbidden("Invalid username or password"));
        }
        let device = request["device_id"].as_str().map(str::to_owned);
        let device = device.unwrap_or_else(|| self.name("DEVICE"));
        Ok(self.open(&user, &device, request["refresh_token"] == true))
    }

    /// Exchanges a refresh token for new ones.
    pub(super) fn refresh(&mut self, request: &Value) -> Result<Value, Refusal> {
        let refresh = request["refresh_token"].as_str().unwrap_or_default();
        let known = self.by_refresh_token.get(refresh).cloned();
        let session = known.ok_or_else(|| self.unknown())?;
        Ok(self.open(&session.user, &session.device, true))
    }

    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }
}
