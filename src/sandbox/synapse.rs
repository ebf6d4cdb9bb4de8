//! One running Synapse, in a folder of its own.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use rand::Rng as _;

use super::{
    Account, Homeserver, Installed, Person, RateLimits, SandboxError,
    homeserver_config::{ConfigParts, homeserver_config, log_config},
    provision::{WATCHED, last_complaint},
};

/// Below the range from which systems take the ports of outgoing connections. While the server
/// is down, a client that keeps trying could otherwise be given the server's own port, and talk
/// to itself.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const PORT_TRIES: u32 = 5;
/// A start takes two seconds, and many times that on a machine that is busy compiling.
const START_LIMIT: Duration = Duration::from_mins(2);
const STOP_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(30);

/// What may differ between one throwaway server and the next.
#[derive(Debug, Clone, Default)]
pub struct SynapseOptions {
    /// How many requests it stands.
    pub rate_limits: RateLimits,
    /// How long an access token lasts for those who asked for a refresh token; whole seconds.
    /// Without it: five minutes, Synapse's own.
    pub token_lifetime: Option<Duration>,
}

/// A Synapse on loopback. Its process ends when this is dropped, and also when our process is
/// killed; the folder stays, and belongs to whoever gave it.
#[derive(Debug)]
pub struct Synapse {
    installed: Installed,
    folder: PathBuf,
    options: SynapseOptions,
    port: u16,
    child: Option<Child>,
}

impl Synapse {
    /// Starts one with its files in `folder`, which is created, and waits until it answers.
    ///
    /// # Errors
    /// [`SandboxError::Start`] with the server's last words, or [`SandboxError::Io`].
    pub async fn start(
        installed: &Installed,
        folder: &Path,
        options: SynapseOptions,
    ) -> Result<Self, SandboxError> {
        let making = || SandboxError::io(format!("writing to {}", folder.display()));
        fs::create_dir_all(folder).map_err(making())?;
        let folder = fs::canonicalize(folder).map_err(making())?;
        if !folder.join("signing.key").exists() {
            fs::write(folder.join("signing.key"), signing_key()).map_err(making())?;
        }
        fs::write(folder.join("log.yaml"), log_config(&folder).to_string()).map_err(making())?;
        let mut server = Self {
            installed: installed.clone(),
            folder,
            options,
            port: 0,
            child: None,
        };
        for _ in 1..PORT_TRIES {
            server.port = free_port()?;
            match server.launch().await {
                // Somebody else took the port between our look and the server's.
                Err(SandboxError::Start { .. }) if server.lost_its_port() => {}
                outcome => return outcome.map(|()| server),
            }
        }
        server.port = free_port()?;
        server.launch().await.map(|()| server)
    }

    /// The base URL, such as `http://127.0.0.1:20123`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Where its files and logs are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the process is there.
    pub fn is_running(&mut self) -> bool {
        self.child
            .as_mut()
            .is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Stops it in good order. What it stored is kept for [`Synapse::restart`].
    ///
    /// # Errors
    /// [`SandboxError::Io`] if the process can be neither waited for nor killed.
    pub async fn stop(&mut self) -> Result<(), SandboxError> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        // Closing its standard input asks it to end.
        drop(child.stdin.take());
        let ended = tokio::time::timeout(STOP_LIMIT, async {
            while let Ok(None) = child.try_wait() {
                tokio::time::sleep(POLL).await;
            }
        });
        if ended.await.is_err() {
            child.kill().map_err(SandboxError::io("killing Synapse"))?;
        }
        child
            .wait()
            .map(drop)
            .map_err(SandboxError::io("waiting for Synapse to end"))
    }

    /// Starts it again, or for the first time since [`Synapse::stop`]: same port, same content.
    ///
    /// # Errors
    /// As [`Synapse::start`]; also if another process has taken the port meanwhile.
    pub async fn restart(&mut self) -> Result<(), SandboxError> {
        self.stop().await?;
        self.launch().await
    }

    /// Makes an account, already logged in on a device of its own.
    ///
    /// # Errors
    /// [`SandboxError::Refused`] if the name is taken or no user name at all.
    pub async fn register(&self, localpart: &str, password: &str) -> Result<Account, SandboxError> {
        Homeserver::new(&self.url())?
            .register(localpart, password)
            .await
    }

    /// An account of that name, and the person who uses it.
    ///
    /// # Errors
    /// As [`Synapse::register`].
    pub async fn person(&self, localpart: &str) -> Result<Person, SandboxError> {
        let account = self
            .register(localpart, &format!("{localpart}-password"))
            .await?;
        Person::new(&self.url(), account)
    }

    async fn launch(&mut self) -> Result<(), SandboxError> {
        let starting = || SandboxError::io("starting Synapse");
        let instance = format!("{:032x}", rand::random::<u128>());
        let config = homeserver_config(&ConfigParts {
            folder: &self.folder,
            port: self.port,
            instance: &instance,
            rate_limits: self.options.rate_limits,
            token_lifetime: self.options.token_lifetime,
        });
        let config_path = self.folder.join("homeserver.yaml");
        fs::write(&config_path, format!("{config:#}\n")).map_err(starting())?;
        let output = File::create(self.output_path()).map_err(starting())?;
        let mut command = Command::new(self.installed.python());
        command
            .args(["-c", WATCHED, "synapse.app.homeserver", "--config-path"])
            .arg(&config_path)
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(output.try_clone().map_err(starting())?)
            .stderr(output);
        // Ctrl-C in a terminal reaches the whole group: we mean to end the server ourselves,
        // after those who still talk to it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(starting())?;
        let ready = tokio::time::timeout(START_LIMIT, self.until_ready(&mut child, &instance));
        let outcome = ready.await.unwrap_or_else(|_| {
            Err(self.start_error(format!("no answer within {} s", START_LIMIT.as_secs())))
        });
        // Stored in any case, so that it is ended with us.
        self.child = Some(child);
        outcome
    }

    /// Polls until *this* server answers: another one may be listening on the port already, and
    /// then ours is about to give up.
    async fn until_ready(&self, child: &mut Child, instance: &str) -> Result<(), SandboxError> {
        let server = Homeserver::new(&self.url())?;
        loop {
            if let Some(status) = child
                .try_wait()
                .map_err(SandboxError::io("watching Synapse"))?
            {
                return Err(self.start_error(format!("it ended with {status}")));
            }
            if server.instance().await.as_deref() == Some(instance) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn start_error(&self, what: String) -> SandboxError {
        let output = fs::read_to_string(self.output_path()).unwrap_or_default();
        let reason = if output.is_empty() {
            what
        } else {
            format!("{what}: {}", last_complaint(&output))
        };
        SandboxError::Start {
            reason,
            log: self.output_path(),
        }
    }

    fn lost_its_port(&self) -> bool {
        fs::read_to_string(self.output_path())
            .is_ok_and(|output| output.contains("Address already in use"))
    }

    fn output_path(&self) -> PathBuf {
        self.folder.join("output.log")
    }
}

impl Drop for Synapse {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Nothing can be done about a failure here, and the server watches us besides.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A key as Synapse would have made it; its own way takes a second start of Python.
fn signing_key() -> String {
    let seed: [u8; 32] = rand::random();
    format!("ed25519 a_demo {}\n", STANDARD_NO_PAD.encode(seed))
}

/// A port of loopback that nobody listens on at this moment, and that no outgoing connection is
/// given.
///
/// # Errors
/// [`SandboxError::Io`] if none is found.
pub fn free_port() -> Result<u16, SandboxError> {
    let mut last = None;
    for _ in 0..100 {
        let port = rand::rng().random_range(PORTS);
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    let source = last.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(SandboxError::Io {
        what: "looking for a free port".to_owned(),
        source,
    })
}
