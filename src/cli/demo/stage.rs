//! What the demo plays on: a homeserver, a bot and a person, and a room for both of them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use serde_json::{Value, json};

use super::DemoArgs;
use crate::{
    bot::{Bot, RunningBot},
    config::Config,
    sandbox::{
        Account, Homeserver, Installed, Person, Provision, RoomOptions, SandboxError, Synapse,
        SynapseOptions, find_python,
    },
};

/// Time for the first sync and to join, on a machine that is busy.
const JOIN_LIMIT: Duration = Duration::from_mins(1);
const STOP_LIMIT: Duration = Duration::from_secs(5);

const BOT_PASSWORD: &str = "MATRIX_ELICIT_BOT_PASSWORD";
const PERSON_PASSWORD: &str = "MATRIX_ELICIT_PERSON_PASSWORD";

/// What the bot is told beside its account.
pub struct Settings {
    /// Everything but `[matrix]`. No secret is in it: it may end up in an error message.
    pub config: Value,
    /// What the `env:` in it stand for.
    pub secrets: Vec<(&'static str, String)>,
}

/// Everything that runs during the demo. [`Stage::clear`] takes it down; dropped instead, it
/// leaves no process and no file behind either.
pub struct Stage {
    /// Who replies.
    pub person: Person,
    /// The bot's account.
    pub bot: Person,
    /// For a board or an agent to run on, where there is to be one.
    pub python: Option<PathBuf>,
    running: Option<RunningBot>,
    homeserver: HomeserverUsed,
    /// The rooms that the accounts were in before.
    rooms_before: BTreeSet<String>,
    /// Removed when dropped, and so after the server that writes to it.
    folder: TemporaryFolder,
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
    /// Provides the homeserver and the accounts, telling of it line by line.
    pub async fn set_up(
        args: &DemoArgs,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> anyhow::Result<Self> {
        let folder = TemporaryFolder::create()?;
        let mut python = None;
        let homeserver = if let Some(url) = &args.homeserver {
            if args.needs_python() {
                python = Some(find_python(&variable).await?.into());
            }
            HomeserverUsed::Given(url.trim_end_matches('/').to_owned())
        } else {
            let (synapse, installed) = throwaway(&folder, progress)
                .await
                .map_err(|error| with_a_way_out(error, args.needs_python()))?;
            python = Some(installed.python().to_owned());
            HomeserverUsed::Throwaway(synapse)
        };
        let url = homeserver.url();
        progress(&format!("homeserver at {url}"));
        let bot = homeserver
            .account("elicit", args.bot.as_deref(), BOT_PASSWORD)
            .await?;
        let bot = Person::new(&url, bot)?;
        let person = homeserver
            .account("ada", args.person.as_deref(), PERSON_PASSWORD)
            .await?;
        let person = Person::new(&url, person)?;
        let (bot_id, person_id) = (bot.user_id(), person.user_id());
        progress(&format!("bot {bot_id}, person {person_id}"));
        let mut rooms_before = BTreeSet::new();
        for account in [&bot, &person] {
            rooms_before.extend(account.joined_rooms().await?);
        }
        Ok(Self {
            person,
            bot,
            python,
            running: None,
            homeserver,
            rooms_before,
            folder,
        })
    }

    /// Starts the bot; where its API is.
    pub async fn start_bot(
        &mut self,
        settings: &Settings,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> anyhow::Result<String> {
        let account = self.bot.account();
        let mut config = settings.config.clone();
        config["matrix"] = json!({
            "homeserver": self.homeserver.url(),
            "user": account.user_id,
            // Our session, so that we can end it afterwards.
            "access_token": "env:ACCESS_TOKEN",
            "device_id": account.device_id,
            "data_dir": self.folder().join("bot"),
            "join": [self.person.user_id()],
        });
        let secrets = |name: &str| match name {
            "ACCESS_TOKEN" => Some(account.access_token.clone()),
            _ => (settings.secrets.iter())
                .find(|(known, _)| *known == name)
                .map(|(_, secret)| secret.clone()),
        };
        let text = toml::to_string(&config).context("writing the bot's configuration")?;
        let config = Config::read(&text, "demo", &secrets).map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            anyhow!(
                "the demo's own configuration is refused: {}",
                faults.join("; ")
            )
        })?;
        let running = Bot::start(config).await.context("starting the bot")?;
        let api = format!("http://{}", running.http_addr());
        progress(&format!("bot running, its API at {api}"));
        self.running = Some(running);
        Ok(api)
    }

    /// Makes the room, and waits until the bot has come in; the room's id.
    pub async fn open_room(
        &self,
        name: &str,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> anyhow::Result<String> {
        let bot = self.bot.user_id();
        let options = RoomOptions {
            name: Some(name.to_owned()),
            invite: vec![bot.to_owned()],
            ..RoomOptions::default()
        };
        let room = self
            .person
            .create_room(&options)
            .await
            .context("making a room")?;
        let joined = self.person.wait_for_member(&room, bot, JOIN_LIMIT).await;
        joined.context("the bot was invited to the room")?;
        progress(&format!("room {room}, with both of them in it"));
        Ok(room)
    }

    /// Where files of the demo may be put.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whether the homeserver is somebody's, who may have other things on it.
    pub fn is_given(&self) -> bool {
        matches!(self.homeserver, HomeserverUsed::Given(_))
    }

    /// Stops the bot, then the homeserver; on a homeserver that was given, the accounts leave the
    /// room of the demo and their sessions are ended.
    pub async fn clear(mut self) {
        // Whatever fails from here on, the demo is over.
        if let Some(running) = self.running.take() {
            let _ = tokio::time::timeout(STOP_LIMIT, running.stop()).await;
        }
        if let HomeserverUsed::Throwaway(synapse) = &mut self.homeserver {
            let _ = synapse.stop().await;
        } else {
            let leaving = async {
                for room in self.rooms_of_the_demo().await.unwrap_or_default() {
                    for account in [&self.bot, &self.person] {
                        let _ = account.leave(&room).await;
                    }
                }
                for account in [&self.bot, &self.person] {
                    let _ = account.log_out().await;
                }
            };
            let _ = tokio::time::timeout(STOP_LIMIT, leaving).await;
        }
    }

    /// The rooms that were not there before and that both are in, or invited to.
    async fn rooms_of_the_demo(&self) -> Result<BTreeSet<String>, SandboxError> {
        let mut rooms = BTreeSet::new();
        for account in [&self.bot, &self.person] {
            for room in account.joined_rooms().await? {
                if self.rooms_before.contains(&room) {
                    continue;
                }
                let members = account.room_members(&room).await?;
                let is_here =
                    |account: &Person| members.iter().any(|(user, _)| user == account.user_id());
                if is_here(&self.bot) && is_here(&self.person) {
                    rooms.insert(room);
                }
            }
        }
        Ok(rooms)
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

async fn throwaway(
    folder: &TemporaryFolder,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<(Synapse, Installed), SandboxError> {
    let installed = Provision::from_env(&variable)?.run(progress).await?;
    progress("starting a throwaway homeserver");
    let folder = folder.path().join("homeserver");
    let synapse = Synapse::start(&installed, &folder, SynapseOptions::default()).await?;
    Ok((synapse, installed))
}

/// One line, with what else would help.
fn with_a_way_out(error: SandboxError, needs_python: bool) -> anyhow::Error {
    let needs_python_anyway = needs_python && matches!(error, SandboxError::NoPython { .. });
    if error.is_missing_here() && !needs_python_anyway {
        anyhow!("{error}; or use a homeserver you have: matrix-elicit demo --homeserver URL")
    } else {
        error.into()
    }
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
