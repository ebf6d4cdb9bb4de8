//! A board of the demo's own, as a process of its own. Its program says what it keeps to.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, bail};
use reqwest::Method;
use serde_json::{Value, json};

use crate::cli::demo::{
    SOON,
    beside::{Beside, Program},
    screen::Screen,
};

const PROGRAM: &str = include_str!("../../../../tests/board/superpipeline.py");
/// Whose the agent token is: the agent that subscribes and reads.
const AGENT: &str = "agt_elicit";
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);

/// A board that runs. Its process ends when this is dropped, and by itself when ours is gone.
pub struct Double {
    beside: Beside,
    agent_token: String,
    person_token: String,
    control_token: String,
    http: reqwest::Client,
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
        let token = |prefix: &str| format!("{prefix}{:032x}", rand::random::<u128>());
        let (agent_token, person_token, control_token) = (token("spa_"), token(""), token(""));
        let bearers = format!("{person_token}={user}");
        let program = Program {
            name: "the board",
            file: "superpipeline.py",
            source: PROGRAM,
            args: &[
                "--story",
                "--allow-private",
                "--retry-unit",
                "1",
                "--board",
                id,
                "--name",
                "Image builds",
                "--agent",
                AGENT,
            ],
            variables: &[
                ("BOARD_AGENT_TOKEN", Some(&agent_token)),
                ("BOARD_CONTROL_TOKEN", Some(&control_token)),
                ("BOARD_BEARERS", Some(&bearers)),
                ("BOARD_IDENTITY_TOKEN", None),
            ],
        };
        Ok(Self {
            beside: Beside::start(&program, python, folder, screen).await?,
            agent_token,
            person_token,
            control_token,
            http: reqwest::Client::builder()
                .no_proxy()
                .timeout(REQUEST_LIMIT)
                .build()?,
        })
    }

    /// Its `base_url`.
    pub fn url(&self) -> &str {
        self.beside.url()
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
        self.beside.stop().await;
    }

    async fn control(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let url = format!("{}/control/{path}", self.url());
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
