//! A board of the demo's own, as a process of its own. Its program says what it keeps to.

use std::{fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, bail};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStderr, Command},
    task::JoinHandle,
};

use crate::cli::demo::{SOON, screen::Screen};

const PROGRAM: &str = include_str!("../../../../tests/board/superpipeline.py");
/// Whose the agent token is: the agent that subscribes and reads.
const AGENT: &str = "agt_elicit";
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
const STOP_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);

/// A board that runs. Its process ends when this is dropped, and by itself when ours is gone.
pub struct Double {
    url: String,
    agent_token: String,
    person_token: String,
    control_token: String,
    http: reqwest::Client,
    child: Child,
    story: JoinHandle<()>,
}

impl Double {
    /// Starts it, with its program in `folder`, and waits until it listens. What happens on its
    /// side is shown on the screen.
    pub async fn start(
        python: &Path,
        folder: &Path,
        id: &str,
        user: &str,
        screen: &Screen,
    ) -> anyhow::Result<Self> {
        let program = folder.join("superpipeline.py");
        fs::write(&program, PROGRAM).context("writing the board's program")?;
        let token = |prefix: &str| format!("{prefix}{:032x}", rand::random::<u128>());
        let (agent_token, person_token, control_token) = (token("spa_"), token(""), token(""));
        let mut command = Command::new(python);
        command
            .args(["-I", "-B", "-X", "utf8"])
            .arg(&program)
            .args(["--story", "--allow-private", "--retry-unit", "1"])
            .args(["--board", id, "--name", "Image builds", "--agent", AGENT])
            .env("BOARD_AGENT_TOKEN", &agent_token)
            .env("BOARD_CONTROL_TOKEN", &control_token)
            .env("BOARD_BEARERS", format!("{person_token}={user}"))
            .env_remove("BOARD_IDENTITY_TOKEN")
            // It ends by itself when this pipe is closed, however we end.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // Ctrl-C in a terminal reaches the whole group: we mean to end it ourselves.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .spawn()
            .with_context(|| format!("starting the board with {}", python.display()))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let story = tokio::spawn(tell(stderr, screen.clone()));
        let mut first_line = String::new();
        if let Some(stdout) = stdout {
            let mut stdout = BufReader::new(stdout);
            let listening = stdout.read_line(&mut first_line);
            tokio::time::timeout(SOON, listening)
                .await
                .context("the board did not start in time")?
                .context("reading what the board says")?;
        }
        let said: Value = serde_json::from_str(&first_line).unwrap_or_default();
        let Some(url) = said["url"].as_str() else {
            // Why not is what it told.
            let _ = tokio::time::timeout(STOP_LIMIT, story).await;
            bail!("the board did not start");
        };
        Ok(Self {
            url: url.to_owned(),
            agent_token,
            person_token,
            control_token,
            http: reqwest::Client::builder()
                .no_proxy()
                .timeout(REQUEST_LIMIT)
                .build()?,
            child,
            story,
        })
    }

    /// Its `base_url`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the bot reads and subscribes with.
    pub fn agent_token(&self) -> &str {
        &self.agent_token
    }

    /// What proves the person to the board.
    pub fn person_token(&self) -> &str {
        &self.person_token
    }

    /// Waits until somebody has subscribed to its pushes.
    pub async fn until_subscribed(&self) -> anyhow::Result<()> {
        let subscribed = async {
            loop {
                let seen = self.control(Method::GET, "subscriptions", None).await?;
                if seen["subscriptions"] != json!([]) {
                    return Ok(());
                }
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::time::timeout(SOON, subscribed)
            .await
            .unwrap_or_else(|_| {
                let seconds = SOON.as_secs();
                bail!("the bot did not subscribe to the board's pushes within {seconds} s")
            })
    }

    /// An agent asks; the question's id.
    pub async fn ask(&self, question: &Value) -> anyhow::Result<String> {
        let asked = self.control(Method::POST, "ask", Some(question)).await?;
        let id = asked["elicitationId"].as_str();
        id.map(str::to_owned)
            .context("the board gave the question no id")
    }

    /// The question as the board has it, once it is not pending any more.
    pub async fn until_over(&self, id: &str) -> anyhow::Result<Value> {
        let path = format!("elicitations/{id}");
        loop {
            let mut found = self.control(Method::GET, &path, None).await?;
            if found["state"] != "pending" {
                // Of the push, and not of the question.
                if let Some(found) = found.as_object_mut() {
                    found.remove("event");
                }
                return Ok(found);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Ends it, once it has told everything.
    pub async fn stop(&mut self) {
        // It ends when its standard input does.
        drop(self.child.stdin.take());
        let ended = async {
            let _ = self.child.wait().await;
            let _ = (&mut self.story).await;
        };
        // Whatever is left then is killed when this is dropped.
        let _ = tokio::time::timeout(STOP_LIMIT, ended).await;
    }

    async fn control(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let url = format!("{}/control/{path}", self.url);
        let mut request = self.http.request(method, url);
        request = request.bearer_auth(&self.control_token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.context("asking the board")?;
        let status = response.status();
        let answer: Value = response
            .json()
            .await
            .context("reading the board's answer")?;
        if !status.is_success() {
            bail!("the board refused {path}: {answer}");
        }
        Ok(answer)
    }
}

/// Shows what the board tells, until it ends.
async fn tell(stderr: Option<ChildStderr>, screen: Screen) {
    let Some(stderr) = stderr else { return };
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        screen.interject(&format!("the board │ {line}"));
    }
}
