//! What the demo plays on: a homeserver, a bot and a person, and a room for both of them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow};

use super::{DemoArgs, agent::Agent};
use crate::{
    bot::{Bot, RunningBot},
    config::Config,
    sandbox::{
        Account, Homeserver, Person, Provision, RoomOptions, SandboxError, Synapse, SynapseOptions,
    },
};

/// Time for the first sync and to join, on a machine that is busy.
const JOIN_LIMIT: Duration = Duration::from_mins(1);
const STOP_LIMIT: Duration = Duration::from_secs(5);

const BOT_PASSWORD: &str = "MATRIX_ELICIT_BOT_PASSWORD";
const PERSON_PASSWORD: &str = "MATRIX_ELICIT_PERSON_PASSWORD";

/// Everything that runs during the demo. [`Stage::clear`] takes it down; dropped instead, it
/// leaves no process and no file behind either.
pub struct Stage {
    /// Where the bot's API is.
    pub api: String,
    /// Who replies.
    pub person: Person,
    /// Once there is one.
    room: Option<String>,
    bot: RunningBot,
    bot_account: Person,
    homeserver: HomeserverUsed,
    /// Removed when dropped, and so after the server that writes to it.
    _folder: TemporaryFolder,
}

/// Whose homeserver it is.
enum HomeserverUsed {
    /// Ours, gone afterwards with everything on it.
    Throwaway(Synapse),
    /// Somebody's: to be left as it was found.
    Given(String),
}

impl HomeserverUsed {
    fn url(&self) -> String {
        match self {
            Self::Throwaway(synapse) => synapse.url(),
            Self::Given(url) => url.clone(),
        }
    }

    /// Logs in if an account is named, else registers one.
    async fn account(
        &self,
        localpart: &str,
        named: Option<&str>,
        password_variable: &str,
    ) -> anyhow::Result<Account> {
        let url = self.url();
        let server = Homeserver::new(&url)?;
        if let Some(user) = named {
            let password = std::env::var(password_variable).ok().with_context(|| {
                format!("the password of {user} is to be in {password_variable}")
            })?;
            let login = server.login(user, &password).await;
            return login.with_context(|| format!("logging in as {user}"));
        }
        let localpart = match self {
            Self::Throwaway(_) => localpart.to_owned(),
            Self::Given(_) => format!("{localpart}-{:08x}", rand::random::<u32>()),
        };
        let password = format!("{:032x}", rand::random::<u128>());
        server
            .register(&localpart, &password)
            .await
            .with_context(|| {
                format!(
                    "registering an account at {url} (where registration is closed, name two \
                 accounts with --bot and --person)"
                )
            })
    }
}

impl Stage {
    /// Provides everything but the room, telling of it line by line.
    pub async fn set_up(
        args: &DemoArgs,
        agent: &Agent,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> anyhow::Result<Self> {
        let folder = TemporaryFolder::create()?;
        let homeserver = if let Some(url) = &args.homeserver {
            HomeserverUsed::Given(url.trim_end_matches('/').to_owned())
        } else {
            let synapse = throwaway(&folder, progress).await.map_err(with_a_way_out)?;
            HomeserverUsed::Throwaway(synapse)
        };
        let url = homeserver.url();
        progress(&format!("homeserver at {url}"));
        let bot_account = homeserver
            .account("elicit", args.bot.as_deref(), BOT_PASSWORD)
            .await?;
        let person = homeserver
            .account("ada", args.person.as_deref(), PERSON_PASSWORD)
            .await?;
        let person = Person::new(&url, person)?;
        progress(&format!(
            "bot {}, person {}",
            bot_account.user_id,
            person.user_id()
        ));

        let bot = start_bot(&url, &bot_account, &person, agent, &folder).await?;
        let api = format!("http://{}", bot.http_addr());
        progress(&format!("bot running, its API at {api}"));
        let bot_account = Person::new(&url, bot_account)?;
        Ok(Self {
            api,
            person,
            room: None,
            bot,
            bot_account,
            homeserver,
            _folder: folder,
        })
    }

    /// Makes the room, and waits until the bot has come in; the room's id.
    pub async fn open_room(
        &mut self,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> anyhow::Result<String> {
        let bot = self.bot_account.user_id();
        let options = RoomOptions {
            name: Some("Upgrade the build image".to_owned()),
            invite: vec![bot.to_owned()],
            ..RoomOptions::default()
        };
        let room = self
            .person
            .create_room(&options)
            .await
            .context("making a room")?;
        self.room = Some(room.clone());
        let joined = self.person.wait_for_member(&room, bot, JOIN_LIMIT).await;
        joined.context("the bot was invited to the room")?;
        progress(&format!("room {room}, with both of them in it"));
        Ok(room)
    }

    /// Stops the bot, then the homeserver; a homeserver that was given gets its room emptied
    /// and its sessions ended.
    pub async fn clear(self) {
        // Whatever fails from here on, the demo is over.
        let _ = tokio::time::timeout(STOP_LIMIT, self.bot.stop()).await;
        match self.homeserver {
            HomeserverUsed::Throwaway(mut synapse) => {
                let _ = synapse.stop().await;
            }
            HomeserverUsed::Given(_) => {
                let leaving = async {
                    for user in [&self.bot_account, &self.person] {
                        if let Some(room) = &self.room {
                            let _ = user.leave(room).await;
                        }
                        let _ = user.log_out().await;
                    }
                };
                let _ = tokio::time::timeout(STOP_LIMIT, leaving).await;
            }
        }
    }
}

async fn throwaway(
    folder: &TemporaryFolder,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<Synapse, SandboxError> {
    let provision = Provision::from_env(&|name| std::env::var(name).ok())?;
    let installed = provision.run(progress).await?;
    progress("starting a throwaway homeserver");
    Synapse::start(
        &installed,
        &folder.path().join("homeserver"),
        SynapseOptions::default(),
    )
    .await
}

/// One line, with what else would help.
fn with_a_way_out(error: SandboxError) -> anyhow::Error {
    if error.is_missing_here() {
        anyhow!("{error}; or use a homeserver you have: matrix-elicit demo --homeserver URL")
    } else {
        error.into()
    }
}

async fn start_bot(
    url: &str,
    account: &Account,
    person: &Person,
    agent: &Agent,
    folder: &TemporaryFolder,
) -> anyhow::Result<RunningBot> {
    let mut settings = serde_json::json!({
        "matrix": {
            "homeserver": url,
            "user": account.user_id,
            // Our session, so that we can end it afterwards.
            "access_token": "env:ACCESS_TOKEN",
            "device_id": account.device_id,
            "data_dir": folder.path().join("bot"),
            "join": [person.user_id()],
        },
        "http": {"listen": "127.0.0.1:0"},
    });
    settings["agents"][Agent::ID] = serde_json::json!({
        "name": "Builder",
        "token": "env:AGENT_TOKEN",
        "rooms": ["*"],
        "webhook": {"url": agent.webhook_url, "secret": "env:WEBHOOK_SECRET"},
    });
    // No secret is in the text: it may end up in an error message.
    let secrets = |name: &str| match name {
        "ACCESS_TOKEN" => Some(account.access_token.clone()),
        "AGENT_TOKEN" => Some(agent.token.clone()),
        "WEBHOOK_SECRET" => Some(agent.secret.clone()),
        _ => None,
    };
    let text = toml::to_string(&settings).context("writing the bot's configuration")?;
    let config = Config::read(&text, "demo", &secrets).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        anyhow!(
            "the demo's own configuration is refused: {}",
            faults.join("; ")
        )
    })?;
    Bot::start(config).await.context("starting the bot")
}

/// A folder that only this user can look into, removed with its content when dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn create() -> anyhow::Result<Self> {
        let name = format!("matrix-elicit-demo-{:016x}", rand::random::<u64>());
        let path = std::env::temp_dir().join(name);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(&path)
            .with_context(|| format!("creating {}", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} could not be removed: {error}", self.0.display());
        }
    }
}
