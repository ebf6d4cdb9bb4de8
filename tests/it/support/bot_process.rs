//! The bot as a process of its own, for tests that kill it.

use std::{
    fs::File,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use matrix_elicit::clock::HURRY;
use matrix_elicit::sandbox::{Account, Synapse};
use serde_json::{Value, json};

use super::{Api, SOON, WebhookSink, soon, unique};

/// The agent that every configuration has, and whose token [`BotProcess::api`] uses.
pub const AGENT: &str = "agt_31d0";

/// What is written into the configuration file, with the names of `config.example.toml`.
pub struct BotConfig {
    settings: Value,
    account: Account,
    token: String,
    url: String,
    hurry: u32,
    /// How many files it may have open.
    open_files: Option<u32>,
    /// Holds the file, what the bot stores, and its log.
    folder: tempfile::TempDir,
}

impl BotConfig {
    /// A fresh bot account on this homeserver, one agent that may ask everywhere, and a port
    /// that nobody listens on.
    pub async fn new(synapse: &Synapse) -> Self {
        let account = synapse
            .register(&unique("bot"), "bot-password")
            .await
            .unwrap();
        Self::at(&synapse.url(), account)
    }

    /// The same for an account that is there already, on any homeserver.
    pub fn at(homeserver: &str, account: Account) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let token = unique("token-of-the-test-agent");
        // Below the range of outgoing connections, which would take it while the bot is down.
        let port = loop {
            let port = rand::random_range(20_000..32_000);
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                break port;
            }
        };
        let mut settings = json!({
            "matrix": {
                "homeserver": homeserver,
                "user": account.user_id,
                "password": account.password,
                "data_dir": folder.path().join("stored"),
                "join": ["*"],
            },
            "http": {"listen": format!("127.0.0.1:{port}")},
        });
        settings["agents"][AGENT] = json!({"name": "Builder", "token": token, "rooms": ["*"]});
        let url = format!("http://127.0.0.1:{port}");
        Self {
            settings,
            account,
            token,
            url,
            hurry: 1,
            open_files: None,
            folder,
        }
    }

    /// The process may have this many files open and no more.
    #[must_use]
    pub fn with_open_files(mut self, most: u32) -> Self {
        self.open_files = Some(most);
        self
    }

    /// Sets a key, its tables made as needed: `("answers.min_power", json!(50))`. A part of the
    /// key that has dots itself comes with [`BotConfig::with_path`].
    #[must_use]
    pub fn with(self, key: &str, value: Value) -> Self {
        self.with_path(&key.split('.').collect::<Vec<_>>(), value)
    }

    /// Takes a key away.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        let pointer = format!("/{}", key.replace('.', "/"));
        let (table, name) = pointer.rsplit_once('/').unwrap();
        let table = self.settings.pointer_mut(table).unwrap();
        table.as_object_mut().unwrap().remove(name);
        self
    }

    /// Sets a key by its path: `(&["rooms", "!abc:elicit.test"], json!({…}))`.
    #[must_use]
    pub fn with_path(mut self, path: &[&str], value: Value) -> Self {
        let mut place = &mut self.settings;
        for part in path {
            place = &mut place[*part];
        }
        *place = value;
        self
    }

    /// The agent is told by webhook too.
    #[must_use]
    pub fn with_webhook(self, sink: &WebhookSink) -> Self {
        let webhook = json!({"url": sink.url(), "secret": sink.secret()});
        self.with_path(&["agents", AGENT, "webhook"], webhook)
    }

    /// The bot waits for the homeserver so many times less than it is meant to.
    #[must_use]
    pub fn hurried(mut self, times: u32) -> Self {
        self.hurry = times;
        self
    }

    /// One more agent that may ask everywhere.
    #[must_use]
    pub fn with_agent(self, id: &str, token: &str) -> Self {
        let agent = json!({"name": id, "token": token, "rooms": ["*"]});
        self.with_path(&["agents", id], agent)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        toml::to_string(&self.settings).unwrap()
    }

    /// Its agent's token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where its API will listen.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Who the bot is.
    pub fn user_id(&self) -> &str {
        &self.account.user_id
    }

    /// Where the file, the stored state and the log are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self) -> PathBuf {
        self.folder().join("config.toml")
    }

    fn log(&self) -> PathBuf {
        self.folder().join("bot.log")
    }
}

/// A bot that runs, or ran, and may be started again with the same state.
pub struct BotProcess {
    config: BotConfig,
    child: Option<Child>,
    /// Where the next process is to die.
    die_at: Option<String>,
}

impl BotProcess {
    /// Starts it and waits until it is ready.
    pub async fn start(config: BotConfig) -> Self {
        let mut bot = Self::start_unready(config);
        bot.wait_ready().await;
        bot
    }

    /// Starts it without waiting for anything.
    pub fn start_unready(config: BotConfig) -> Self {
        let mut bot = Self::down(config);
        bot.launch();
        bot
    }

    /// Starts it as one that dies at a point of `crash::POINTS`: `send.sent#2`.
    pub fn start_to_die_at(config: BotConfig, point: String) -> Self {
        let mut bot = Self::down(config);
        bot.die_at = Some(point);
        bot.launch();
        bot
    }

    fn down(config: BotConfig) -> Self {
        Self {
            config,
            child: None,
            die_at: None,
        }
    }

    /// Starts it again without waiting for anything.
    pub fn start_again_unready(&mut self) {
        self.launch();
    }

    /// Changes what its configuration says when it is started again.
    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.config.settings);
    }

    /// Starts it again as one that dies at a point.
    pub fn start_again_to_die_at(&mut self, point: String) {
        self.die_at = Some(point);
        self.launch();
    }

    /// Starts it again if it has ended by itself; whether it had.
    pub fn revive(&mut self) -> bool {
        let ended = self.ended().is_some();
        if ended {
            self.child = None;
            self.launch();
        }
        ended
    }

    /// Starts it after [`BotProcess::kill9`] or [`BotProcess::terminate`], and waits until it is
    /// ready; how long that took.
    pub async fn start_again(&mut self) -> Duration {
        let began = Instant::now();
        self.launch();
        self.wait_ready().await;
        began.elapsed()
    }

    /// Waits until `/readyz` answers 200.
    pub async fn wait_ready(&mut self) {
        let api = self.api();
        let ready = async {
            while !api.is_ready().await {
                if let Some(status) = self.ended() {
                    panic!("the bot ended with {status}; its log:\n{}", self.log());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(SOON, ready).await;
        assert!(
            in_time.is_ok(),
            "the bot did not become ready; its log:\n{}",
            self.log()
        );
    }

    /// Ends it as a power cut would.
    pub fn kill9(&mut self) {
        let mut child = self.child.take().expect("the bot runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Asks it to end (`SIGTERM`); how it ended and how long that took.
    pub async fn terminate(&mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        let child = self.child.as_ref().expect("the bot runs");
        let sent = Command::new("kill")
            .args(["-TERM", &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        (self.wait_ended().await, began.elapsed())
    }

    /// Waits until it ends by itself.
    pub async fn wait_ended(&mut self) -> ExitStatus {
        let ended = async {
            loop {
                if let Some(status) = self.ended() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let Ok(status) = tokio::time::timeout(SOON, ended).await else {
            panic!("the bot did not end; its log:\n{}", self.log());
        };
        self.child = None;
        status
    }

    /// The API as its agent uses it.
    pub fn api(&self) -> Api {
        Api::new(&self.config.url, &self.config.token)
    }

    /// Where its API listens.
    pub fn url(&self) -> &str {
        &self.config.url
    }

    /// Who it is in rooms.
    pub fn user_id(&self) -> &str {
        self.config.user_id()
    }

    /// The configuration, for its folder.
    pub fn config(&self) -> &BotConfig {
        &self.config
    }

    /// Everything it has logged, over all its starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.config.log()).unwrap_or_default()
    }

    /// Waits until it has logged these words.
    pub async fn logged(&self, words: &str) {
        soon(&format!("{words:?} in the log"), async || {
            self.log().contains(words).then_some(())
        })
        .await;
    }

    /// Its resident memory in bytes, on Linux.
    pub fn resident_bytes(&self) -> Option<u64> {
        let child = self.child.as_ref()?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim()
            .trim_end_matches(" kB")
            .parse::<u64>()
            .ok()
            .map(|kib| kib * 1024)
    }

    fn launch(&mut self) {
        assert!(self.child.is_none(), "the bot runs already");
        std::fs::write(self.config.file(), self.config.text()).unwrap();
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.config.log())
            .unwrap();
        let program = env!("CARGO_BIN_EXE_matrix-elicit");
        let mut command = match self.config.open_files {
            None => Command::new(program),
            Some(most) => {
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", "ulimit -n \"$1\"; shift; exec \"$@\"", "sh"])
                    .arg(most.to_string())
                    .arg(program);
                shell
            }
        };
        if let Some(point) = self.die_at.take() {
            command.env(matrix_elicit::crash::DIE_AT, point);
        }
        let child = command
            .arg("run")
            .arg("--config")
            .arg(self.config.file())
            .env(HURRY, self.config.hurry.to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child
            .as_mut()
            .and_then(|child| child.try_wait().unwrap())
    }
}

impl Drop for BotProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("the bot's log:\n{}", self.log());
        }
    }
}
