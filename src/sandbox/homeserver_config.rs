//! The configuration of a throwaway Synapse.
//!
//! Written as JSON, which is YAML too and leaves no question of quoting.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

/// The server's name: the part of a user id after the colon. `.test` never exists in DNS.
pub const SERVER_NAME: &str = "elicit.test";

/// How patient the server is with its users.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RateLimits {
    /// So high that nobody meets them.
    #[default]
    Raised,
    /// Synapse's own. Only registering stays unlimited, as a test makes several accounts.
    Defaults,
}

/// Everything a configuration is made of.
pub(super) struct ConfigParts<'a> {
    pub folder: &'a Path,
    pub port: u16,
    /// Told by the server at `/.well-known/matrix/client`, so that we know it is ours.
    pub instance: &'a str,
    pub rate_limits: RateLimits,
    pub token_lifetime: Option<Duration>,
}

/// The text of `homeserver.yaml`.
pub(super) fn homeserver_config(parts: &ConfigParts<'_>) -> Value {
    let path = |name: &str| parts.folder.join(name).display().to_string();
    let mut config = json!({
        "server_name": SERVER_NAME,
        "public_baseurl": format!("http://127.0.0.1:{}/", parts.port),
        "extra_well_known_client_content": {"test.elicit.instance": parts.instance},
        "listeners": [{
            "type": "http",
            "port": parts.port,
            "bind_addresses": ["127.0.0.1"],
            "resources": [{"names": ["client"]}],
        }],
        "database": {"name": "sqlite3", "args": {"database": path("homeserver.db")}},
        "log_config": path("log.yaml"),
        "media_store_path": path("media"),
        "pid_file": path("homeserver.pid"),
        "signing_key_path": path("signing.key"),
        // These guard nothing here: the server is on loopback and forgotten afterwards.
        "macaroon_secret_key": parts.instance,
        "form_secret": parts.instance,
        "enable_registration": true,
        "enable_registration_without_verification": true,
        // A password protects nobody here, and hashing it well takes a quarter of a second.
        "bcrypt_rounds": 4,
        "report_stats": false,
        "trusted_key_servers": [],
        "suppress_key_server_warning": true,
        "federation_domain_whitelist": [],
        "presence": {"enabled": false},
        "stats": {"enabled": false},
        "caches": {"global_factor": 0.25},
        "rc_registration": unlimited(),
    });
    if parts.rate_limits == RateLimits::Raised {
        for (key, value) in raised_limits() {
            config[key] = value;
        }
    }
    if let Some(lifetime) = parts.token_lifetime {
        config["refreshable_access_token_lifetime"] = json!(format!("{}s", lifetime.as_secs()));
    }
    config
}

/// The text of `log.yaml`: one file, one line an entry.
pub(super) fn log_config(folder: &Path) -> Value {
    json!({
        "version": 1,
        "disable_existing_loggers": false,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
        "handlers": {"file": {
            "class": "logging.FileHandler",
            "formatter": "line",
            "filename": folder.join("homeserver.log").display().to_string(),
        }},
        "root": {"level": "INFO", "handlers": ["file"]},
    })
}

fn unlimited() -> Value {
    json!({"per_second": 10_000, "burst_count": 10_000})
}

fn raised_limits() -> Vec<(&'static str, Value)> {
    let all = unlimited;
    vec![
        ("rc_message", all()),
        (
            "rc_login",
            json!({"address": all(), "account": all(), "failed_attempts": all()}),
        ),
        ("rc_joins", json!({"local": all(), "remote": all()})),
        ("rc_joins_per_room", all()),
        (
            "rc_invites",
            json!({"per_room": all(), "per_user": all(), "per_issuer": all()}),
        ),
        ("rc_room_creation", all()),
        ("rc_admin_redaction", all()),
        ("rc_key_requests", all()),
        ("rc_user_directory", all()),
        ("rc_profile", all()),
    ]
}
