//! A request, read.

use std::collections::HashMap;

use axum::http::{HeaderMap, Method, Uri, header};
use serde_json::Value;

/// What is asked of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    Versions,
    Login,
    Refresh,
    WhoAmI,
    Sync,
    Send,
    Messages,
    Members,
    State,
    Event,
    Join,
    Alias,
    Profile,
    AccountData,
    Filter,
    KeysUpload,
    KeysQuery,
    KeysClaim,
    /// Cross-signing keys, signatures, and the backup of keys.
    OtherKeys,
    /// What it does not know.
    Unknown,
}

/// A request.
pub(super) struct Call {
    pub(super) method: Method,
    /// The parts of the path after the version, decoded.
    pub(super) path: Vec<String>,
    pub(super) query: HashMap<String, String>,
    pub(super) token: Option<String>,
    pub(super) body: Vec<u8>,
}

impl Call {
    pub(super) fn read(method: Method, uri: &Uri, headers: &HeaderMap, body: Vec<u8>) -> Self {
        let query = uri.query().unwrap_or_default();
        let path = uri.path().trim_start_matches("/_matrix/client/");
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
            .map(str::to_owned);
        Self {
            method,
            // The first part is the version.
            path: path
                .split('/')
                .skip(usize::from(path != "versions"))
                .map(decode)
                .collect(),
            query: url::form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            token,
            body,
        }
    }

    pub(super) fn parts(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        let get = self.method == Method::GET;
        match *self.parts().as_slice() {
            ["versions"] => Endpoint::Versions,
            ["login"] => Endpoint::Login,
            ["refresh"] => Endpoint::Refresh,
            ["account", "whoami"] => Endpoint::WhoAmI,
            ["sync"] if get => Endpoint::Sync,
            ["rooms", _, "send", ..] => Endpoint::Send,
            ["rooms", _, "messages"] => Endpoint::Messages,
            ["rooms", _, "members" | "joined_members"] => Endpoint::Members,
            ["rooms", _, "state", ..] => Endpoint::State,
            ["rooms", _, "event", _] => Endpoint::Event,
            ["rooms", _, "join"] | ["join", _] => Endpoint::Join,
            ["directory", "room", _] => Endpoint::Alias,
            ["profile", ..] => Endpoint::Profile,
            ["user", _, "account_data", _] => Endpoint::AccountData,
            ["user", _, "filter", ..] => Endpoint::Filter,
            ["keys", "upload"] => Endpoint::KeysUpload,
            ["keys", "query"] => Endpoint::KeysQuery,
            ["keys", "claim"] => Endpoint::KeysClaim,
            ["keys" | "room_keys" | "sendToDevice", ..] => Endpoint::OtherKeys,
            _ => Endpoint::Unknown,
        }
    }

    /// The body as JSON.
    pub(super) fn json(&self) -> Result<Value, Refusal> {
        serde_json::from_slice(&self.body)
            .map_err(|_| Refusal::new(400, "M_NOT_JSON", "Content not JSON."))
    }

    /// A number of the query.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.query.get(name)?.parse().ok()
    }

    /// A parameter that holds JSON, such as a filter.
    pub(super) fn filter(&self) -> Value {
        let filter = self.query.get("filter").map(String::as_str);
        serde_json::from_str(filter.unwrap_or("{}")).unwrap_or_default()
    }
}

/// A refusal, as a homeserver words it.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Refusal {
    pub(super) fn new(status: u16, code: &str, error: &str) -> Self {
        let body = serde_json::json!({"errcode": code, "error": error});
        Self { status, body }
    }

    pub(super) fn not_found() -> Self {
        Self::new(404, "M_NOT_FOUND", "Not found.")
    }

    pub(super) fn forbidden(error: &str) -> Self {
        Self::new(403, "M_FORBIDDEN", error)
    }
}

/// Undoes percent-encoding.
fn decode(part: &str) -> String {
    let mut decoded = Vec::with_capacity(part.len());
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        let hex = |byte: Option<u8>| char::from(byte?).to_digit(16);
        if byte == b'%'
            && let (Some(high), Some(low)) = (hex(bytes.next()), hex(bytes.next()))
        {
            decoded.extend(u8::try_from(high * 16 + low));
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
