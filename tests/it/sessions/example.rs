//! The example agent, as a process of its own: what it takes, and that it needs no webhook.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, ChildStdin, Command, Stdio},
};

use matrix_elicit::clock;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use super::{Team, id};
use crate::support::{installed, soon};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/agent.py");

/// The example agent, until this is dropped.
struct Example {
    child: Child,
    /// It ends when this is closed.
    _stdin: Option<ChildStdin>,
    /// What it told first; only where it listens to the stream.
    told: String,
    /// Where it serves, if it does.
    url: Option<String>,
}

impl Example {
    /// Runs it as the builder of a team, and waits until it serves and listens.
    async fn start(team: &Team, arguments: &[&str]) -> Self {
        let python = installed().await.python();
        let mut child = Command::new(python)
            .args(["-I", "-B", "-X", "utf8", PROGRAM, "--end-with-stdin"])
            .args(["--pace", "0.02"])
            .args(arguments)
            .env("ELICIT_URL", team.bot.url())
            .env("AGENT_TOKEN", team.bot.config().token())
            .env("WEBHOOK_SECRET", team.builder.sink.secret())
            .env("no_proxy", "*")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let streams = arguments.contains(&"--events");
        let serves = !streams || arguments.contains(&"--public-url");
        let stdin = child.stdin.take();
        let (told, url) = tokio::task::spawn_blocking(move || {
            let (mut stdout, mut stderr) = (BufReader::new(stdout), BufReader::new(stderr));
            let (mut first, mut told) = (String::new(), String::new());
            if serves {
                stdout.read_line(&mut first).unwrap();
            }
            if streams {
                stderr.read_line(&mut told).unwrap();
            }
            // What is told later is not read, and must not fill the pipe.
            std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
            let said: Value = serde_json::from_str(&first).unwrap_or_default();
            (told, said["url"].as_str().map(str::to_owned))
        })
        .await
        .unwrap();
        Self {
            child,
            _stdin: stdin,
            told,
            url,
        }
    }

    /// The address of something that it serves.
    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url.as_deref().unwrap())
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The types of what was said in a session once the last of them is this.
async fn said_until(team: &Team, session: &Value, last: &str) -> Vec<String> {
    soon(&format!("the example agent's {last}"), async || {
        let activities = team.builder.activities(session).await;
        let kinds: Vec<String> = activities
            .iter()
            .map(|activity| activity["content"]["type"].as_str().unwrap().to_owned())
            .collect();
        (kinds.last().is_some_and(|kind| kind == last)).then_some(kinds)
    })
    .await
}

#[tokio::test]
async fn the_example_agent_works_without_a_webhook() {
    let team = Team::new().await;
    let example = Example::start(&team, &["--events"]).await;
    assert_eq!(example.told, "listening\n");
    let session = team.begin("deploy the release").await;
    said_until(&team, &session, "elicitation").await;
    team.in_thread(&session, "Which environment").await;
    team.says(&team.ben, &session, "staging").await;
    let kinds = said_until(&team, &session, "response").await;
    let expected = [
        "prompt",
        "action",
        "elicitation",
        "prompt",
        "action",
        "response",
    ];
    assert_eq!(kinds, expected);
    // It is told of what is said after that as well, and of a stop.
    team.says(&team.ben, &session, "once more").await;
    said_until(&team, &session, "elicitation").await;
    team.says(&team.ben, &session, "!stop").await;
    let ended = team.builder.until(&session, "complete").await;
    assert_eq!(ended["end_reason"], "stopped");
}

#[tokio::test]
async fn the_example_agent_takes_a_signed_webhook_and_takes_it_once() {
    let team = Team::new().await;
    let example = Example::start(&team, &["--listen", "127.0.0.1:0"]).await;
    let session = team.begin("deploy the release").await;
    let created = team.builder.told(0, "created").await;
    let (body, now) = (created.body.clone(), clock::now() / 1000);
    let signer = Webhook::new(team.builder.sink.secret()).unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    let post = async |event: &str, at: i64, signed: &[u8], body: &[u8]| {
        let signature = signer.sign(event, at, signed).unwrap();
        let request = client
            .post(example.at("/webhook"))
            .header("webhook-id", event)
            .header("webhook-timestamp", at)
            .header("webhook-signature", format!("v1,bm90aGluZw== {signature}"));
        let response = request.body(body.to_vec()).send().await.unwrap();
        response.status()
    };
    assert_eq!(
        post("evt_1", now, b"{}", &body).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        post("evt_1", now - 600, &body, &body).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        post("evt_2", now, b"[", b"[").await,
        StatusCode::BAD_REQUEST
    );
    let other = br#"{"type": "elicitation.answered", "data": {}}"#;
    assert_eq!(
        post("evt_3", now, other, other).await,
        StatusCode::NO_CONTENT
    );
    for _ in 0..3 {
        assert_eq!(
            post("evt_1", now, &body, &body).await,
            StatusCode::NO_CONTENT
        );
    }
    said_until(&team, &session, "elicitation").await;
    // Taken again it would be an answer to what the agent asks.
    let mut stop: Value = serde_json::from_slice(&body).unwrap();
    stop["action"] = json!("prompted");
    stop["agent_activity"]["signal"] = json!("stop");
    let stop = stop.to_string();
    assert_eq!(
        post("evt_4", now, stop.as_bytes(), stop.as_bytes()).await,
        StatusCode::NO_CONTENT
    );
    let kinds = said_until(&team, &session, "response").await;
    assert_eq!(kinds, ["prompt", "action", "elicitation", "response"]);
    let activities = team.builder.activities(&session).await;
    let last_word = activities[3]["content"]["body"].as_str().unwrap();
    assert!(last_word.starts_with("Stopped."), "{last_word}");
    assert_eq!(
        team.builder.session(id(&session)).await["status"],
        "complete"
    );
}

#[tokio::test]
async fn the_example_agent_goes_on_when_its_page_has_connected_the_account() {
    let team = Team::new().await;
    let ours = "https://agent.example.org";
    let arguments = ["--events", "--listen", "127.0.0.1:0", "--public-url", ours];
    let example = Example::start(&team, &arguments).await;
    let session = team.begin("deploy the release").await;
    said_until(&team, &session, "elicitation").await;
    team.in_thread(&session, "Which environment").await;
    team.says(&team.ben, &session, "2").await;
    let url = soon("the request to connect", async || {
        let activities = team.builder.activities(&session).await;
        let asked = &activities.last()?["signal_metadata"];
        assert!(asked["user_id"].is_null() || asked["user_id"] == team.ben.user_id());
        asked["url"].as_str().map(str::to_owned)
    })
    .await;
    let path = url.strip_prefix(ours).unwrap();
    let state = path.strip_prefix("/connect/github?state=").unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    let posted = async |state: &str| {
        let request = client.post(example.at("/connect/github"));
        let response = request.body(format!("state={state}")).send().await.unwrap();
        response.status()
    };
    let page = client.get(example.at(path)).send().await.unwrap();
    assert!(page.text().await.unwrap().contains(state));
    // Not for whoever guesses, and only once.
    assert_eq!(posted("guessed").await, StatusCode::NOT_FOUND);
    assert_eq!(posted(state).await, StatusCode::OK);
    assert_eq!(posted(state).await, StatusCode::NOT_FOUND);
    let kinds = said_until(&team, &session, "response").await;
    assert_eq!(
        kinds[3..],
        ["prompt", "elicitation", "thought", "action", "response"]
    );
}
