//! The configuration: what an operator may set, what it means, and its defaults.
//!
//! These types are the one source. Their docs become the comments of
//! `config.example.toml` ([`example()`]), their JSON Schema is what a file is checked
//! against ([`Config::read`]), and every mistake is told at once, with line and key.
//! Any string may be `env:NAME` or `file:PATH`; that is resolved before anything is
//! checked, and no message repeats a value, so none can give a secret away.

mod boards;
mod check;
mod example;
mod read;
mod streams;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

pub use boards::{
    AssertionConfig, BoardConfig, CarrierAnswer, CarrierConfig, DevConfig, PeopleConfig,
};
pub use example::example;
pub use read::ConfigFault;
pub use streams::{StreamConfig, SynapseAdminConfig};
pub use values::{Pattern, WebhookSecrets};

use crate::desk::Rules;
use crate::secret::{Secret, TokenDigest};
use crate::span::{self, Span};
use example::in_order;

/// The whole configuration, checked. Made by [`Config::read`] or [`Config::load`]; a value
/// deserialised in any other way has not been through the rules that need more than a
/// type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct Config {
    /// The bot's account, and what it keeps on disk.
    pub matrix: MatrixConfig,
    /// The API that agents speak to.
    #[serde(default)]
    pub http: HttpConfig,
    /// The record of questions and answers.
    #[serde(default)]
    pub ledger: LedgerConfig,
    /// Who may answer, in every room. Anybody who has joined the room may, except the bot
    /// itself, the agent that asks, and the bots named here.
    #[serde(default)]
    pub answers: AnswersConfig,
    /// The keys of `[answers]` for one room, by its id or alias. What is given here replaces
    /// what is given there, except `bots`, which adds to it.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": "room" }, "x-key" = "#release:example.org"))]
    pub rooms: BTreeMap<String, AnswersConfig>,
    /// The agents that may ask, by id: at most 64 letters, digits, dots, dashes and
    /// underscores, but not `operator`. The id is what a card says in `asked_by`.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": "agent-id" }, "x-key" = "agt_31d0", "x-live" = true))]
    pub agents: BTreeMap<String, AgentConfig>,
    /// The Superpipeline boards whose questions the bot carries, by the id that the board gave
    /// them: at most 64 letters, digits, dots, dashes and underscores.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": "board-id" }, "x-key" = "brd_7c1f"))]
    pub boards: BTreeMap<String, BoardConfig>,
    /// Other services whose cards are read in the rooms that the bot is in, by their user id.
    /// Cards of nobody else are.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": "user-id" }, "x-key" = "@hub:example.org"))]
    pub carriers: BTreeMap<String, CarrierConfig>,
    /// The rooms whose digests, `chat.agent-digest@1`, agents may read: by the ids of their
    /// streams, `ags_` and a ULID.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": "stream-id" }, "x-key" = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ"))]
    pub streams: BTreeMap<String, StreamConfig>,
    /// The admin API of the Synapse that the bot is on. It tells digests how old an account there
    /// is, and whether it is locked, suspended or shadow-banned. Without it an account is as old
    /// as what is known of it.
    #[serde(default)]
    #[schemars(extend("x-live" = false))]
    pub synapse_admin: Option<SynapseAdminConfig>,
}

/// `[matrix]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct MatrixConfig {
    /// Where the homeserver answers clients.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "String", extend("format" = "http-url", "x-example" = "https://matrix.example.org"))]
    pub homeserver: Url,
    /// The bot's account, by its user id.
    #[schemars(extend("format" = "user-id", "x-example" = "@elicit:example.org"))]
    pub user: String,
    /// The account's password. Either this is given, or `access_token` with `device_id`.
    #[serde(default)]
    #[schemars(extend("x-example" = "env:MATRIX_PASSWORD", "x-live" = true))]
    pub password: Option<Secret>,
    /// An access token instead of the password. It cannot be renewed: when the homeserver
    /// ends it, the bot stops.
    #[serde(default)]
    #[schemars(extend("x-example" = "env:MATRIX_ACCESS_TOKEN"))]
    pub access_token: Option<Secret>,
    /// The device that `access_token` belongs to. With a password it may be left out: the
    /// first login makes a device, which is kept.
    #[serde(default)]
    #[schemars(extend("format" = "device-id", "x-example" = "ELICITBOT"))]
    pub device_id: Option<String>,
    /// The folder for the ledger, the session and the encryption keys, from the folder the
    /// bot is started in. Whoever reads it reads the rooms: keep it private, and keep it.
    #[serde(default = "MatrixConfig::default_data_dir")]
    #[schemars(with = "String", extend("minLength" = 1))]
    pub data_dir: PathBuf,
    /// Unlocks the account's key backup, so that a lost `data_dir` does not cost the keys.
    /// With none there yet, one is made that this passphrase opens.
    #[serde(default)]
    #[schemars(extend("x-example" = "file:/etc/matrix-elicit/recovery"))]
    pub recovery_passphrase: Option<Secret>,
    /// Whose invitations are followed: server names or user ids, with `*` for any run of
    /// characters; `["*"]` is anybody's, `[]` nobody's. Left out, it is everybody on the
    /// bot's own server.
    #[serde(default)]
    #[schemars(extend("items" = { "type": "string", "format": "inviter" }, "x-example" = ["example.org", "@*:partner.example"]))]
    pub join: Option<Vec<Pattern>>,
    /// What a command to the bot begins with: `!help`, `!cards`, `!decline`.
    #[serde(default = "MatrixConfig::default_prefix")]
    #[schemars(extend("format" = "prefix"))]
    pub prefix: String,
}

impl MatrixConfig {
    fn default_data_dir() -> PathBuf {
        PathBuf::from("data")
    }

    fn default_prefix() -> String {
        "!".to_owned()
    }

    /// Whether an invitation by this user is followed.
    pub fn joins_for(&self, inviter: &str) -> bool {
        match &self.join {
            Some(patterns) => patterns.iter().any(|pattern| pattern.matches(inviter)),
            None => values::server_of(inviter) == values::server_of(&self.user),
        }
    }
}

/// `[http]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = in_order::<Self>)]
pub struct HttpConfig {
    /// Where the API listens. It speaks plain HTTP: reach it from another machine through
    /// something that adds TLS.
    #[serde(default = "HttpConfig::default_listen")]
    #[schemars(with = "String", extend("format" = "listen"))]
    pub listen: SocketAddr,
    /// Where the API is reached from outside. Boards push to `/v1/boards/ID/push` below it; the
    /// bot subscribes itself there. Left out, it does not, and what nobody pushes is found by the
    /// next sweep.
    #[serde(deserialize_with = "values::some_url")]
    #[schemars(with = "Option<String>", extend("format" = "base-url", "x-example" = "https://elicit.example.org"))]
    pub public_url: Option<Url>,
    /// What proves the operator to the running bot: `matrix-elicit deliveries`, `digest` and
    /// `streams` take it from here, and the bot takes such commands only with it. No agent may
    /// have the same.
    #[schemars(extend("format" = "token", "x-example" = "env:ELICIT_OPERATOR_TOKEN"))]
    pub operator_token: Option<Secret>,
}

impl HttpConfig {
    fn default_listen() -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 8470))
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: Self::default_listen(),
            public_url: None,
            operator_token: None,
        }
    }
}

/// `[ledger]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct LedgerConfig {
    /// How long closed questions, the ids of messages seen and the events for agents are
    /// kept: a number with `s`, `m`, `h` or `d`. Open questions are always kept, and so are
    /// deliveries that wait for the operator.
    #[serde(
        default = "LedgerConfig::default_keep",
        deserialize_with = "span::read"
    )]
    #[schemars(with = "Span", extend("default" = "30d"))]
    pub keep: Duration,
}

impl LedgerConfig {
    fn default_keep() -> Duration {
        Duration::from_hours(30 * 24)
    }
}

impl Default for LedgerConfig {
    fn default() -> Self {
        Self {
            keep: Self::default_keep(),
        }
    }
}

/// `[answers]`, and for one room `[rooms."…"]`. What they come to is [`AnswerRules`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = in_order::<Self>)]
pub struct AnswersConfig {
    /// Bots whose messages are never read: user ids, with `*` for any run of characters.
    #[schemars(extend("items" = { "type": "string", "format": "user-pattern" }, "x-example" = ["@*bot:example.org"]))]
    pub bots: Vec<Pattern>,
    /// The power level that it takes to answer. Left out, none is needed.
    #[schemars(extend("x-example" = 50))]
    pub min_power: Option<i64>,
    /// The only people who may answer, by user id; `[]` is nobody. Where `min_power` is set
    /// too, both must hold.
    #[schemars(extend("items" = { "type": "string", "format": "user-id" }, "x-example" = ["@ada:example.org"]))]
    pub users: Option<Vec<String>>,
    /// In encrypted rooms, take answers only from devices that their owner has verified.
    #[schemars(extend("default" = false))]
    pub require_verified: Option<bool>,
    /// After how long the room is told that a message could not be decrypted.
    #[serde(deserialize_with = "span::read_some")]
    #[schemars(with = "Option<Span>", extend("default" = "2m"))]
    pub unreadable_after: Option<Duration>,
}

/// The rules for answers in one room, with `[answers]` and `[rooms]` put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRules {
    /// Bots whose messages are never read.
    pub bots: Vec<Pattern>,
    /// The least power level that may answer; `None` asks for none.
    pub min_power: Option<i64>,
    /// The only user ids that may answer; `None` is everybody, an empty list nobody.
    pub users: Option<Vec<String>>,
    /// Whether an answer in an encrypted room must come from a verified device.
    pub require_verified: bool,
    /// After how long the room is told that a message could not be decrypted.
    pub unreadable_after: Duration,
}

/// `[agents.ID]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct AgentConfig {
    /// The token that proves the agent, for no other agent. Whoever guesses it is the agent:
    /// make it with `openssl rand -hex 32`.
    #[schemars(extend("format" = "token", "x-example" = "env:AGENT_TOKEN"))]
    pub token: Secret,
    /// The name that people read. Left out, it is the id.
    #[serde(default)]
    #[schemars(extend("minLength" = 1, "x-example" = "Builder"))]
    pub name: Option<String>,
    /// The one word that people call this agent by in a room, as in `builder: look at the flaky
    /// test`, which begins a session. Left out, it is the id.
    #[serde(default)]
    #[schemars(extend("format" = "call", "x-example" = "builder"))]
    pub call: Option<String>,
    /// The rooms it may ask in: ids or aliases; `["*"]` is every room the bot is in.
    #[serde(default = "AgentConfig::default_rooms")]
    #[schemars(extend("items" = { "type": "string", "format": "room-choice" }))]
    pub rooms: Vec<String>,
    /// The agent's own Matrix account, if it has one. It never answers its own questions.
    #[serde(default)]
    #[schemars(extend("format" = "user-id", "x-example" = "@builder:example.org"))]
    pub matrix_user: Option<String>,
    /// Who is who: the agent's ids for people, and their Matrix accounts. Where an agent names a
    /// person in a session, either will do.
    #[serde(default)]
    #[schemars(extend("additionalProperties" = { "type": "string", "format": "user-id" }, "x-example" = { "U024BE7LH": "@ada:example.org" }))]
    pub people: BTreeMap<String, String>,
    /// Where outcomes are posted, signed as Standard Webhooks. Without it the agent reads
    /// them from the API.
    #[serde(default)]
    pub webhook: Option<WebhookConfig>,
}

impl AgentConfig {
    fn default_rooms() -> Vec<String> {
        vec!["*".to_owned()]
    }

    /// The digest that a presented token is compared with.
    pub fn token_digest(&self) -> TokenDigest {
        self.token.digest()
    }

    /// Whether the agent may ask in this room. The aliases are those that the *server*
    /// resolves to the room: what a room claims of itself proves nothing.
    pub fn may_ask_in(&self, room_id: &str, aliases: &[&str]) -> bool {
        self.rooms
            .iter()
            .any(|room| room == "*" || room == room_id || aliases.contains(&room.as_str()))
    }
}

/// `[agents.ID.webhook]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = in_order::<Self>)]
pub struct WebhookConfig {
    /// Where to post. Redirects are not followed.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "String", extend("format" = "http-url", "x-example" = "https://agent.example.org/outcomes"))]
    pub url: Url,
    /// What signs: `whsec_` and 24 to 64 bytes in base64, as Standard Webhooks asks. While a secret is being changed it
    /// may be a list; every one of them signs.
    #[schemars(extend("x-example" = "env:AGENT_WEBHOOK_SECRET"))]
    pub secret: WebhookSecrets,
    /// How long an outcome is tried before it is parked: set aside for the operator, who can
    /// have it tried again with `matrix-elicit deliveries`.
    #[serde(
        default = "WebhookConfig::default_park_after",
        deserialize_with = "span::read"
    )]
    #[schemars(with = "Span", extend("default" = "3d"))]
    pub park_after: Duration,
}

impl WebhookConfig {
    fn default_park_after() -> Duration {
        Duration::from_hours(3 * 24)
    }
}

impl Config {
    /// The rules for answers in one room: `[answers]`, then what `[rooms]` says under one of
    /// the aliases (the first in `aliases` counts most), then under the room id. The bots of
    /// all of them are joined.
    ///
    /// The aliases are those that the *server* resolves to the room: what a room claims of
    /// itself proves nothing.
    pub fn answers_for(&self, room_id: &str, aliases: &[&str]) -> AnswerRules {
        let mut rules = AnswerRules {
            bots: Vec::new(),
            min_power: None,
            users: None,
            require_verified: false,
            unreadable_after: Duration::from_mins(2),
        };
        rules.narrow(&self.answers);
        for name in aliases.iter().rev().chain([&room_id]) {
            if let Some(answers) = self.rooms.get(*name) {
                rules.narrow(answers);
            }
        }
        rules
    }

    /// Every room alias that something is said about.
    pub fn aliases(&self) -> BTreeSet<&str> {
        let agents = self.agents.values().flat_map(|agent| &agent.rooms);
        let boards = self.boards.values().filter_map(|board| board.room.as_ref());
        let streams = self.streams.values().flat_map(StreamConfig::rooms);
        let named = self.rooms.keys().chain(agents).chain(boards).chain(streams);
        let aliases = named.filter(|name| name.starts_with('#'));
        aliases.map(String::as_str).collect()
    }

    /// What is allowed and had better be otherwise, a line each, by key.
    pub fn cautions(&self) -> Vec<String> {
        let tokens = self.agents.iter().map(|(id, agent)| {
            let key = format!("agents.{}.token", example::toml_key(id));
            (key, Some(&agent.token))
        });
        let operator = (
            "http.operator_token".to_owned(),
            self.http.operator_token.as_ref(),
        );
        let guessable = tokens
            .chain([operator])
            .filter(|(_, token)| token.is_some_and(|token| values::is_guessable(token.expose())))
            .map(|(key, _)| {
                let advice = values::MAKE_ONE;
                format!("{key}: is short enough to be guessed; {advice}")
            });
        let secrets = self.agents.iter().filter_map(|(id, agent)| {
            let mut secrets = agent.webhook.as_ref()?.secret.as_slice().iter();
            let short = secrets.any(|secret| values::is_short_secret(secret.expose()));
            let id = example::toml_key(id);
            short.then(|| format!("agents.{id}.webhook.secret: is shorter than 24 bytes"))
        });
        let boards = self.boards.iter();
        let boards = boards.flat_map(|(id, board)| board.cautions(id));
        let streams = self.streams.iter();
        let streams = streams.filter_map(|(id, stream)| stream.caution(id));
        let admin = self.synapse_admin.as_ref();
        let admin = admin.and_then(SynapseAdminConfig::caution);
        guessable
            .chain(secrets)
            .chain(boards)
            .chain(streams)
            .chain(admin)
            .collect()
    }

    /// The word that people call an agent by: its `call`, else its id.
    pub fn call_of<'a>(&'a self, agent_id: &'a str) -> &'a str {
        self.agents
            .get(agent_id)
            .and_then(|agent| agent.call.as_deref())
            .unwrap_or(agent_id)
    }
}

impl AnswerRules {
    fn narrow(&mut self, by: &AnswersConfig) {
        for bot in &by.bots {
            if !self.bots.contains(bot) {
                self.bots.push(bot.clone());
            }
        }
        self.min_power = by.min_power.or(self.min_power);
        if by.users.is_some() {
            self.users.clone_from(&by.users);
        }
        self.require_verified = by.require_verified.unwrap_or(self.require_verified);
        self.unreadable_after = by.unreadable_after.unwrap_or(self.unreadable_after);
    }

    /// What of it decides whether somebody may answer.
    pub fn for_desk(&self) -> Rules {
        Rules {
            users: self.users.clone(),
            min_power: self.min_power,
            require_verified: self.require_verified,
        }
    }

    /// Whether this user is a bot whose messages are never read.
    pub fn is_bot(&self, user_id: &str) -> bool {
        self.bots.iter().any(|bot| bot.matches(user_id))
    }
}

#[cfg(test)]
mod tests;
