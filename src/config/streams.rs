//! `[streams]` and `[synapse_admin]`: which rooms' digests agents may read, and who is in them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::example::{in_order, toml_key};
use super::values;
use crate::secret::Secret;
use crate::span::{self, Span};

/// `chat.agent-digest@1`: an account younger than a day is never in a digest.
const DAY: Duration = Duration::from_hours(24);

/// `[streams.ags_…]`: a room whose digests, `chat.agent-digest@1`, some agents may read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct StreamConfig {
    /// The room that is read, by its id or alias. No other stream has it.
    #[schemars(extend("format" = "room", "x-example" = "#release:example.org"))]
    pub room: String,
    /// The agents, of those in `[agents]`, that may read the digest; at least one.
    #[schemars(extend("items" = { "type": "string", "format": "agent-id" }, "minItems" = 1, "x-example" = ["agt_31d0"]))]
    pub agents: Vec<String>,
    /// How long what was said is kept to make digests of: at most 24 hours. A digest of an older
    /// window has what is left.
    #[serde(
        default = "StreamConfig::default_keep",
        deserialize_with = "span::read"
    )]
    #[schemars(with = "Span", extend("format" = "day-span", "maximum" = 86_400, "default" = "24h"))]
    pub keep: Duration,
    /// How old an account must be to be in the digest. Less than 24 hours is less than
    /// `chat.agent-digest@1` promises, and for trying things out; more leaves out more people.
    #[serde(
        default = "StreamConfig::default_min_age",
        deserialize_with = "span::read"
    )]
    #[schemars(with = "Span", extend("default" = "24h"))]
    pub min_age: Duration,
    /// Rooms with policy lists, by their ids or aliases: whoever an `m.ban` rule in one of them
    /// names is not in the digest. The bot must be in them.
    #[serde(default)]
    #[schemars(extend("items" = { "type": "string", "format": "room" }, "x-example" = ["#bans:example.org"]))]
    pub policy_lists: Vec<String>,
}

impl StreamConfig {
    pub(super) fn default_keep() -> Duration {
        DAY
    }

    pub(super) fn default_min_age() -> Duration {
        DAY
    }

    /// Every room that it names, by id or alias.
    pub(super) fn rooms(&self) -> impl Iterator<Item = &String> {
        [&self.room].into_iter().chain(&self.policy_lists)
    }

    /// What is allowed and had better be otherwise.
    pub(super) fn caution(&self, id: &str) -> Option<String> {
        (self.min_age < DAY).then(|| {
            let id = toml_key(id);
            format!(
                "streams.{id}.min_age: is shorter than 24h: accounts younger than a day get into \
                 the digest, against chat.agent-digest@1"
            )
        })
    }
}

/// `[synapse_admin]`: the admin API of a Synapse, which knows how old the accounts of its own
/// server are, and which of them are locked, suspended or shadow-banned.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct SynapseAdminConfig {
    /// Where it is reached: what comes before `/_synapse/admin`. Redirects are not followed.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "String", extend("format" = "base-url", "x-example" = "http://127.0.0.1:8008"))]
    pub url: Url,
    /// The access token of an account that is a server admin.
    #[schemars(extend("format" = "token", "x-example" = "env:SYNAPSE_ADMIN_TOKEN"))]
    pub token: Secret,
}

impl SynapseAdminConfig {
    /// What is allowed and had better be otherwise.
    pub(super) fn caution(&self) -> Option<String> {
        values::is_open_to_readers(&self.url).then(|| {
            "synapse_admin.url: tokens go to another machine unencrypted; use https".to_owned()
        })
    }
}
