//! The demo with a session: a person addresses an agent, which works in a thread of the room, asks
//! with signals, and can be stopped. The agent is `examples/agent.py`, a process beside the bot.

mod conversation;

use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use self::conversation::Conversation;
use super::{
    beside::{Beside, Program},
    progress,
    screen::Screen,
    stage::{Settings, Stage},
};
use crate::sandbox::free_port;

const PROGRAM: &str = include_str!("../../../examples/agent.py");
/// The agent, as the bot knows it and as people call it.
const ID: &str = "agt_31d0";
const CALL: &str = "builder";
/// What the person says to begin with, unless they think of something else.
const OPENING: &str = "builder: deploy the release";
/// How many seconds a step of the agent's work takes: time enough to type `!stop`, where somebody
/// types.
const PACE: &str = "1.5";
const PACE_OF_A_SCRIPT: &str = "0.1";
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// More than are ever said in the demo.
const ACTIVITIES: &str = "200";

/// A person lets an agent work.
pub async fn perform(
    reply: Option<String>,
    stage: &mut Stage,
    screen: &Screen,
) -> anyhow::Result<()> {
    let python = stage
        .python
        .clone()
        .context("the example agent needs Python")?;
    // The agent has to know where the bot is before the bot runs, and the bot where the agent is.
    let address = format!("127.0.0.1:{}", free_port()?);
    let (api, secret) = (Api::new(&address)?, fresh_secret());
    let program = Program {
        name: "the agent",
        file: "agent.py",
        source: PROGRAM,
        args: &[
            "--listen",
            "127.0.0.1:0",
            "--pace",
            if screen.is_scripted() {
                PACE_OF_A_SCRIPT
            } else {
                PACE
            },
            "--end-with-stdin",
        ],
        variables: &[
            ("ELICIT_URL", Some(&api.url)),
            ("AGENT_TOKEN", Some(&api.token)),
            ("WEBHOOK_SECRET", Some(&secret)),
            // All of it is on loopback.
            ("no_proxy", Some("*")),
        ],
    };
    let mut agent = Beside::start(&program, &python, stage.folder(), screen).await?;
    progress(&format!(
        "agent {CALL} at {}, examples/agent.py in a process beside",
        agent.url()
    ));
    let settings = Settings {
        config: json!({
            "http": {"listen": address},
            "agents": {ID: {
                "name": "Builder",
                "call": CALL,
                "token": "env:AGENT_TOKEN",
                "rooms": ["*"],
                "webhook": {
                    "url": format!("{}/webhook", agent.url()),
                    "secret": "env:WEBHOOK_SECRET",
                },
            }},
        }),
        secrets: vec![
            ("AGENT_TOKEN", api.token.clone()),
            ("WEBHOOK_SECRET", secret.clone()),
        ],
    };
    stage.start_bot(&settings, &progress).await?;
    let outcome = talk(reply, &api, stage, screen).await;
    // What it has still to tell comes before the end, also of a demo that has failed.
    agent.stop().await;
    let object = outcome?;
    screen.title("The session and its activities, as the agent has them");
    screen.result(&object);
    match object["session"]["status"].as_str().unwrap_or_default() {
        "complete" => Ok(()),
        status => bail!("the session is {status}, and not complete"),
    }
}

/// The session and what was said in it, once it is over.
async fn talk(
    reply: Option<String>,
    api: &Api,
    stage: &Stage,
    screen: &Screen,
) -> anyhow::Result<Value> {
    let room_id = stage.open_room("Release", &progress).await?;
    screen.title("The room, as the person sees it");
    let bot = stage.bot.user_id();
    let mut conversation = Conversation::enter(&stage.person, bot, &room_id, screen).await?;
    let object = conversation.until_over(api, reply).await?;
    conversation.until_settled(&object["session"]).await?;
    Ok(object)
}

/// The bot's API, as the agent sees it.
struct Api {
    url: String,
    token: String,
    http: reqwest::Client,
}

impl Api {
    fn new(address: &str) -> anyhow::Result<Self> {
        Ok(Self {
            url: format!("http://{address}"),
            token: STANDARD.encode(rand::random::<[u8; 32]>()),
            http: reqwest::Client::builder()
                .no_proxy()
                .timeout(REQUEST_LIMIT)
                .build()?,
        })
    }

    /// The newest session with all of its activities, if there is one.
    async fn newest(&self) -> anyhow::Result<Option<Value>> {
        let found = self.get("/v1/sessions?limit=1").await?;
        let session = &found["sessions"][0];
        let Some(id) = session["id"].as_str() else {
            return Ok(None);
        };
        let path = format!("/v1/sessions/{id}/activities?limit={ACTIVITIES}");
        let said = self.get(&path).await?;
        Ok(Some(
            json!({"session": session, "activities": said["activities"]}),
        ))
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let request = self.http.get(format!("{}{path}", self.url));
        let response = request.bearer_auth(&self.token).send().await;
        let response = response.context("asking the bot for the session")?;
        let found = response.status().is_success();
        let object: Value = response.json().await.context("reading the bot's answer")?;
        if !found {
            bail!("the bot does not tell of the session: {object}");
        }
        Ok(object)
    }
}

fn fresh_secret() -> String {
    format!("whsec_{}", STANDARD.encode(rand::random::<[u8; 32]>()))
}
