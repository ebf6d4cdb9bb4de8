//! The program under measure, its homeserver, its agent.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::scripted::{ScriptedServer, World};
use crate::sink::Sink;

pub const AGENT: &str = "agt_bench";
const TOKEN: &str = "token-of-the-benchmark-agent";
const PASSWORD: &str = "bot-password";
/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_mins(10);
/// How many requests an agent makes side by side.
const AT_ONCE: usize = 64;

/// A bot that runs, and everything around it.
pub struct Stand {
    pub server: ScriptedServer,
    pub sink: Sink,
    pub ada: String,
    pub rooms: Vec<String>,
    folder: tempfile::TempDir,
    api: String,
    http: reqwest::Client,
    running: Option<Running>,
}

impl Stand {
    /// A bot in so many rooms, with three people in each of them. Not started yet.
    pub async fn set_up(rooms: usize) -> Self {
        Self::set_up_with(rooms, |_, _| {}).await
    }

    /// The same with its configuration changed; the change is told the rooms.
    pub async fn set_up_with(rooms: usize, change: impl FnOnce(&mut Value, &[String])) -> Self {
        let server = ScriptedServer::start().await;
        let user = server.account("elicit", PASSWORD);
        let people = ["ada", "ben", "mira"].map(|name| server.account(name, ""));
        let [ada, ben, mira] = people;
        let joined = [user.as_str(), &ben, &mira];
        let rooms: Vec<String> = (0..rooms).map(|_| server.room(&ada, &joined)).collect();
        let sink = Sink::start().await;
        let folder = tempfile::tempdir().expect("a folder");
        // Below the range of outgoing connections, which would take it while the bot is down.
        let port = loop {
            let port = rand::random_range(20_000..32_000_u16);
            if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
                break port;
            }
        };
        let mut config = json!({
            "matrix": {
                "homeserver": server.url(), "user": user, "password": PASSWORD,
                "data_dir": folder.path().join("stored"),
            },
            "http": { "listen": format!("127.0.0.1:{port}") },
            "agents": { AGENT: {
                "token": TOKEN,
                "webhook": { "url": sink.url, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
            } },
        });
        change(&mut config, &rooms);
        let text = toml::to_string(&config);
        std::fs::write(folder.path().join("config.toml"), text.expect("TOML")).expect("a file");
        let http = reqwest::Client::builder().no_proxy().build();
        Self {
            server,
            sink,
            ada,
            rooms,
            folder,
            api: format!("http://127.0.0.1:{port}"),
            http: http.expect("a client"),
            running: None,
        }
    }

    /// The address of a path of its API.
    pub fn address(&self, path: &str) -> String {
        format!("{}{path}", self.api)
    }

    /// Where the bot keeps what it stores.
    pub fn stored(&self) -> PathBuf {
        self.folder.path().join("stored")
    }

    /// Starts the bot; how long it took to be ready.
    pub async fn start(&mut self) -> Duration {
        let log = File::create(self.folder.path().join("log")).expect("a file");
        let began = Instant::now();
        let program = Command::new(program())
            .args(["run", "--config"])
            .arg(self.folder.path().join("config.toml"))
            .env("RUST_LOG", "warn,matrix_sdk=off")
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        self.running = Some(Running(program.expect("the program")));
        loop {
            let asked = self.http.get(format!("{}/readyz", self.api)).send().await;
            if asked.is_ok_and(|answer| answer.status().is_success()) {
                return began.elapsed();
            }
            let ended = self.running.as_mut().is_none_or(Running::has_ended);
            let log = || std::fs::read_to_string(self.folder.path().join("log"));
            let gone = ended || began.elapsed() > PATIENCE;
            assert!(!gone, "it is not ready: {:?}", log());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Ends the bot as a power cut would.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Asks a question; how long it took to be taken.
    pub async fn ask(&self, room: &str, id: &str) -> Duration {
        let question = json!({
            "room": room, "elicitation_id": id, "prompt": "May I run the tests?",
            "options": ["Run them", "Skip", "Later", "Never"],
        });
        let began = Instant::now();
        let request = self.http.post(format!("{}/v1/elicitations", self.api));
        let request = request.bearer_auth(TOKEN).json(&question);
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        assert!(status.is_success(), "{status}: {:?}", answer.text().await);
        began.elapsed()
    }

    /// Posts to the API as the agent; what comes back.
    pub async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(self.address(path)).bearer_auth(TOKEN);
        let answer = request.json(body).send().await.expect("an answer");
        let status = answer.status();
        let answer: Value = answer.json().await.expect("JSON");
        assert!(status.is_success(), "{status}: {answer}");
        answer
    }

    /// Reads from the API as the agent.
    pub async fn get(&self, path: &str) -> Value {
        let request = self.http.get(self.address(path)).bearer_auth(TOKEN);
        let answer = request.send().await.expect("an answer");
        answer.json().await.expect("JSON")
    }

    /// Asks so many questions in every room, many side by side; what was asked, by room.
    pub async fn ask_everywhere(&self, each: usize) -> Vec<(String, String)> {
        let asked: Vec<(String, String)> = (0..each)
            .flat_map(|number| {
                let rooms = self.rooms.iter();
                rooms.map(move |room| (room.clone(), format!("{number} in {room}")))
            })
            .collect();
        stream::iter(&asked)
            .for_each_concurrent(AT_ONCE, async |(room, id)| {
                self.ask(room, id).await;
            })
            .await;
        asked
    }

    /// The object of a question.
    pub async fn look(&self, id: &str) -> Value {
        let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
        let url = format!("{}/v1/elicitations/{}", self.api, id.replace('+', "%20"));
        let request = self.http.get(url).bearer_auth(TOKEN);
        let answer = request.send().await.expect("an answer");
        answer.json().await.expect("an object")
    }

    /// Waits until the bot has committed everything that was said: it asks for what comes after.
    pub async fn heard(&self) -> Instant {
        let began = Instant::now();
        while !self.server.look(World::is_heard) {
            assert!(began.elapsed() < PATIENCE, "the bot does not listen");
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        Instant::now()
    }

    /// The resident memory of the bot in bytes, as Linux tells it.
    pub fn resident(&self) -> u64 {
        let Running(child) = self.running.as_ref().expect("the bot runs");
        let path = format!("/proc/{}/status", child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.map(|line| line.trim().trim_end_matches(" kB"));
        kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
    }

    /// The processor time that the bot's threads have taken, by their name.
    pub fn processor_time(&self) -> BTreeMap<String, Duration> {
        let Running(child) = self.running.as_ref().expect("the bot runs");
        let mut times: BTreeMap<String, Duration> = BTreeMap::new();
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id()));
        for task in tasks.into_iter().flatten().flatten() {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            if let Some((name, time)) = read_stat(&stat) {
                *times.entry(name).or_default() += time;
            }
        }
        times
    }
}

/// The name of a thread and the time it has taken: user and system time, in hundredths.
fn read_stat(stat: &str) -> Option<(String, Duration)> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let time = Duration::from_millis((ticks(11)? + ticks(12)?) * 10);
    // The worker threads of one pool are one.
    Some((name.trim_end_matches(char::is_numeric).to_owned(), time))
}

/// The program: another one than was built with this, if the environment names one.
fn program() -> PathBuf {
    let named = std::env::var_os("MATRIX_ELICIT_PROGRAM");
    let built = || Path::new(env!("CARGO_BIN_EXE_matrix-elicit")).to_owned();
    named.map_or_else(built, PathBuf::from)
}

/// The program while it runs; it ends, as a power cut would end it, when this is dropped.
struct Running(Child);

impl Running {
    /// Whether it has ended by itself.
    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Median, 99th of a hundred, and longest.
pub fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |part: usize| ms(times[(times.len() * part / 100).min(times.len() - 1)]);
    format!("median {}, p99 {}, longest {}", at(50), at(99), at(100))
}

/// A time in milliseconds.
pub fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

/// So many in that time, by the second.
pub fn rate(count: usize, time: Duration) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let rate = count as f64 / time.as_secs_f64();
    format!("{rate:.0}/s")
}

/// An amount of memory.
pub fn mib(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let mib = bytes as f64 / 1_048_576.0;
    format!("{mib:.1} MiB")
}
