//! `[boards]` and `[carriers]`: whose questions are carried beside those of our own agents.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::example::{in_order, toml_key};
use super::values;
use crate::secret::Secret;
use crate::span::{self, Span};

/// `[boards.ID]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct BoardConfig {
    /// Where the board's API is: what comes before `/v1/boards`.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "String", extend("format" = "base-url", "x-example" = "https://superpipeline.example.org"))]
    pub base_url: Url,
    /// The agent token that the board gave the bot. It reads what is pending and subscribes to
    /// the pushes; it never answers.
    #[schemars(extend("format" = "token", "x-example" = "env:BOARD_AGENT_TOKEN"))]
    pub agent_token: Secret,
    /// What the board signs its pushes with. While a secret is being changed there are several:
    /// every one of them is taken, and the bot subscribes with the first.
    #[schemars(extend("items" = { "type": "string", "format": "filled" }, "minItems" = 1, "x-example" = ["env:BOARD_PUSH_SECRET"]))]
    pub push_secrets: Vec<Secret>,
    /// The room that the board's questions are asked in, by its id or alias. Either this is
    /// given, or `invite`.
    #[serde(default)]
    #[schemars(extend("format" = "room", "x-example" = "#release:example.org"))]
    pub room: Option<String>,
    /// The people, by user id, who are invited into a room that is made for the board when it
    /// first asks.
    #[serde(default)]
    #[schemars(extend("items" = { "type": "string", "format": "user-id" }, "minItems" = 1, "x-example" = ["@mira:example.org"]))]
    pub invite: Vec<String>,
    /// Whether the room that is made is encrypted. Only with `invite`.
    #[serde(default)]
    pub encrypted: bool,
    /// Whether a question may be answered in people's own words.
    #[serde(default)]
    pub free_text: bool,
    /// How often the board is asked for all that is pending, in case a push was lost.
    #[serde(
        default = "BoardConfig::default_sweep",
        deserialize_with = "span::read"
    )]
    #[schemars(with = "Span", extend("default" = "5m"))]
    pub sweep: Duration,
    /// How people answer under their own name: exactly one of `bearer`, `assertion` and `dev`.
    pub people: PeopleConfig,
}

impl BoardConfig {
    pub(super) fn default_sweep() -> Duration {
        Duration::from_mins(5)
    }

    /// What is allowed and had better be otherwise, a line each.
    pub(super) fn cautions(&self, id: &str) -> Vec<String> {
        let key = format!("boards.{}", toml_key(id));
        let mut cautions = Vec::new();
        if values::is_open_to_readers(&self.base_url) {
            cautions.push(format!(
                "{key}.base_url: tokens go to another machine unencrypted; use https"
            ));
        }
        let secrets = self.push_secrets.iter().enumerate();
        let named = secrets.map(|(at, secret)| (format!("push_secrets[{at}]"), secret));
        for (name, secret) in [("agent_token".to_owned(), &self.agent_token)]
            .into_iter()
            .chain(named)
        {
            if values::is_guessable(secret.expose()) {
                cautions.push(format!(
                    "{key}.{name}: is short enough to be guessed; {}",
                    values::MAKE_ONE
                ));
            }
        }
        if let Some(assertion) = &self.people.assertion
            && values::is_open_to_readers(&assertion.url)
        {
            cautions.push(format!(
                "{key}.people.assertion.url: tokens go to another machine unencrypted; use https"
            ));
        }
        if self.people.dev.is_some() && !values::is_loopback(&self.base_url) {
            cautions.push(format!(
                "{key}.people.dev: proves nothing to a board on another machine; use bearer or assertion"
            ));
        }
        cautions
    }
}

/// `[boards.ID.people]`: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct PeopleConfig {
    /// The bearer tokens that the board issued to people, by their user id.
    #[serde(default)]
    #[schemars(extend(
        "propertyNames" = { "format": "user-id" },
        "additionalProperties" = { "type": "string", "format": "token" },
        "minProperties" = 1,
        "x-example" = { "@mira:example.org": "env:MIRA_TOKEN" }
    ))]
    pub bearer: Option<BTreeMap<String, Secret>>,
    /// A service that issues a token for whoever answers. It is asked with
    /// `{"matrix_user_id","audience"}` and says `{"token","expires_in"}`; 404 means that it does
    /// not know the person.
    #[serde(default)]
    pub assertion: Option<AssertionConfig>,
    /// The headers `X-Tenant-Id` and `X-User-Id` instead of a token, for a board in development.
    #[serde(default)]
    pub dev: Option<DevConfig>,
}

/// `[boards.ID.people.assertion]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct AssertionConfig {
    /// Where the service is asked. Redirects are not followed.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "String", extend("format" = "http-url", "x-example" = "https://identity.example.org/assertions"))]
    pub url: Url,
    /// The bearer token that proves the bot to the service.
    #[schemars(extend("format" = "token", "x-example" = "env:ASSERTION_TOKEN"))]
    pub token: Secret,
}

/// `[boards.ID.people.dev]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct DevConfig {
    /// The tenant that the board belongs to.
    #[schemars(extend("format" = "header", "x-example" = "tnt_dev"))]
    pub tenant: String,
    /// The board's ids of people, by their user id here.
    #[schemars(extend(
        "propertyNames" = { "format": "user-id" },
        "additionalProperties" = { "type": "string", "format": "header" },
        "minProperties" = 1,
        "x-example" = { "@mira:example.org": "usr_mira" }
    ))]
    pub users: BTreeMap<String, String>,
}

/// `[carriers."@user:server"]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct CarrierConfig {
    /// What becomes of an answer: `observe` only notes it, `route` tells it to the agent that the
    /// card names in `asked_by`, if it is one of `[agents]`.
    #[schemars(with = "String", extend("enum" = ["observe", "route"], "x-example" = "route"))]
    pub answer: CarrierAnswer,
    /// Whether the bot says anything in the room about this carrier's questions: which one is
    /// meant, or that somebody may not answer.
    #[serde(default)]
    pub notices: bool,
    /// Whether an answer that was routed gets a ✓ from the bot.
    #[serde(default)]
    pub react: bool,
}

/// What becomes of an answer to another carrier's question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CarrierAnswer {
    /// It is noted, and nobody is told: its carrier does that.
    Observe,
    /// The agent that asks is told.
    Route,
}
