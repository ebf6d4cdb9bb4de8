//! What the whole program takes: memory at rest, time to be ready after a restart, and how long an
//! answer is on its way. Runs the release build against a throwaway Synapse and prints figures.
//!
//! `cargo bench --bench footprint`

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use matrix_elicit::sandbox::{Person, Provision, RoomOptions, Synapse, SynapseOptions};
use serde_json::{Value, json};

const TOKEN: &str = "token-of-the-benchmark-agent";
const ROOMS: usize = 10;
const RESTARTS: usize = 7;
const ANSWERS: usize = 20;
const PATIENCE: Duration = Duration::from_mins(1);

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let provision = Provision::from_env(&|name| std::env::var(name).ok()).expect("a cache folder");
    let installed = provision
        .run(&|line| eprintln!("{line}"))
        .await
        .expect("Synapse");
    let folder = tempfile::tempdir().expect("a folder");
    let options = SynapseOptions::default();
    let homeserver = Synapse::start(&installed, &folder.path().join("synapse"), options)
        .await
        .expect("a homeserver");
    let account = homeserver
        .register("elicit", "bot-password")
        .await
        .expect("a bot");
    let person = homeserver.person("mira").await.expect("a person");
    let bot = Bot::new(folder.path(), &homeserver.url(), &account.user_id);

    let mut running = bot.start().await;
    let rooms = bot.rooms(&person, &account.user_id).await;
    let mut on_their_way = Vec::new();
    for turn in 0..ANSWERS {
        on_their_way.push(bot.answered_by(&person, &rooms[0], turn).await);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let used = resident(&running);
    println!(
        "resident memory with {ROOMS} rooms, half of them encrypted, after {ANSWERS} answers: {used}"
    );
    println!(
        "from a typed reply to the agent's long-poll: {}",
        median(on_their_way)
    );

    let mut ready = Vec::new();
    for _ in 0..RESTARTS {
        drop(running);
        let began = Instant::now();
        running = bot.start().await;
        ready.push(began.elapsed());
    }
    println!("ready after a restart, {RESTARTS} times: {}", median(ready));
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!(
        "resident memory idle after a restart: {}",
        resident(&running)
    );
}

/// The program under measure, and an agent of it.
struct Bot {
    config: std::path::PathBuf,
    api: String,
    http: reqwest::Client,
}

impl Bot {
    fn new(folder: &std::path::Path, homeserver: &str, user: &str) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        let config = folder.join("config.toml");
        let text = toml::to_string(&json!({
            "matrix": {
                "homeserver": homeserver, "user": user, "password": "bot-password",
                "data_dir": folder.join("stored"),
            },
            "http": { "listen": format!("127.0.0.1:{port}") },
            "agents": { "agt_bench": { "token": TOKEN } },
        }))
        .expect("a configuration");
        std::fs::write(&config, text).expect("a file");
        let http = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client");
        Self {
            config,
            api: format!("http://127.0.0.1:{port}"),
            http,
        }
    }

    /// Starts it and waits until it is ready.
    async fn start(&self) -> Running {
        let program = Command::new(env!("CARGO_BIN_EXE_matrix-elicit"))
            .args(["run", "--config"])
            .arg(&self.config)
            .stderr(Stdio::null())
            .spawn()
            .expect("the program");
        let running = Running(program);
        let began = Instant::now();
        loop {
            let asked = self.http.get(format!("{}/readyz", self.api)).send().await;
            if asked.is_ok_and(|answer| answer.status().is_success()) {
                return running;
            }
            assert!(began.elapsed() < PATIENCE, "it should be ready by now");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Rooms with the bot and the person in them; every other one is encrypted.
    async fn rooms(&self, person: &Person, bot: &str) -> Vec<String> {
        let mut rooms = Vec::new();
        for number in 0..ROOMS {
            let options = RoomOptions {
                encrypted: number % 2 == 1,
                invite: vec![bot.to_owned()],
                ..RoomOptions::default()
            };
            let room = person.create_room(&options).await.expect("a room");
            person
                .wait_for_member(&room, bot, PATIENCE)
                .await
                .expect("the bot");
            self.ask(&room, &format!("card-{number}")).await;
            rooms.push(room);
        }
        rooms
    }

    async fn ask(&self, room: &str, id: &str) {
        let question = json!({
            "room": room, "elicitation_id": id, "prompt": "May I run the tests?",
            "options": ["Run them", "Skip", "Later"], "card_id": room,
        });
        let began = Instant::now();
        loop {
            let request = self.http.post(format!("{}/v1/elicitations", self.api));
            let answer = request
                .bearer_auth(TOKEN)
                .json(&question)
                .send()
                .await
                .expect("an answer");
            if answer.status().is_success() {
                return;
            }
            // The bot may hear of its own joining a moment later.
            assert!(began.elapsed() < PATIENCE, "{:?}", answer.text().await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks, answers as the person, and tells how long the answer was on its way.
    async fn answered_by(&self, person: &Person, room: &str, turn: usize) -> Duration {
        let id = format!("turn-{turn}");
        self.ask(room, &id).await;
        while self.look(&id, 0).await["state"] != "open" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let began = Instant::now();
        let (sent, seen) = tokio::join!(person.send_text(room, "1"), self.look(&id, 30));
        sent.expect("a message");
        assert_eq!(seen["state"], "answered", "{seen:#}");
        began.elapsed()
    }

    async fn look(&self, id: &str, wait: u64) -> Value {
        let url = format!("{}/v1/elicitations/{id}?wait={wait}", self.api);
        let answer = self
            .http
            .get(url)
            .bearer_auth(TOKEN)
            .send()
            .await
            .expect("an answer");
        answer.json().await.expect("an object")
    }
}

/// The program while it runs; it ends, as a power cut would end it, when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The resident memory of a process, as Linux tells it.
fn resident(Running(child): &Running) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    status
        .ok()
        .and_then(|status| {
            let kib = status
                .lines()
                .find_map(|line| line.strip_prefix("VmRSS:"))?;
            let kib: f64 = kib.trim().trim_end_matches(" kB").parse().ok()?;
            Some(format!("{:.1} MiB", kib / 1024.0))
        })
        .unwrap_or_else(|| "not told by this system".to_owned())
}

fn median(mut times: Vec<Duration>) -> String {
    times.sort();
    let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
    format!(
        "median {} ms, longest {} ms",
        middle.as_millis(),
        last.as_millis()
    )
}
