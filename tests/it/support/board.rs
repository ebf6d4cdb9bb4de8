//! A Superpipeline board as a process of its own: `tests/board/superpipeline.py`, whose head
//! says what it keeps to. Here is how tests start it, what they do on its side, and how they
//! make it misbehave.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Api, BoardFault, BoardRoute, SOON, installed, soon, unique};

/// Who the board's agent token belongs to: the agent that subscribes and reads.
pub const BOARD_AGENT: &str = "agt_carrier";

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/board/superpipeline.py");

/// How a board is set up. People have a way to be believed each: a bearer token, the dev
/// headers, or a token of the identity service.
#[derive(Debug, Clone)]
pub struct BoardOptions {
    arguments: Vec<String>,
    bearers: Vec<String>,
    id: String,
}

impl Default for BoardOptions {
    fn default() -> Self {
        Self {
            arguments: Vec::new(),
            bearers: Vec::new(),
            id: "brd_7c1f".to_owned(),
        }
        .with_retry_unit(Duration::from_millis(50))
    }
}

impl BoardOptions {
    /// Another id than `brd_7c1f`.
    pub fn with_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// What the board is called; without, it has no name.
    pub fn with_name(self, name: &str) -> Self {
        self.with(&["--name", name])
    }

    /// Knows this person (`usr_mira`) by a bearer token.
    pub fn with_bearer(mut self, token: &str, user: &str) -> Self {
        self.bearers.push(format!("{token}={user}"));
        self
    }

    /// Knows this person without any token: enough for the dev headers.
    pub fn with_person(self, user: &str) -> Self {
        self.with(&["--person", user])
    }

    /// Knows this person, for whom the identity service issues tokens.
    pub fn with_matrix_person(self, user: &str, matrix_user: &str) -> Self {
        self.with(&["--person", &format!("{user}={matrix_user}")])
    }

    /// Takes the dev headers for this tenant.
    pub fn with_tenant(self, tenant: &str) -> Self {
        self.with(&["--tenant", tenant])
    }

    /// Tokens are issued for this audience alone.
    pub fn with_audience(self, audience: &str) -> Self {
        self.with(&["--audience", audience])
    }

    /// How long the first retry of a push waits; the others 2, 4, 8 and 16 times that. 50 ms
    /// unless said otherwise.
    pub fn with_retry_unit(self, unit: Duration) -> Self {
        self.with(&["--retry-unit", &unit.as_secs_f64().to_string()])
    }

    /// Starts it.
    pub async fn start(self) -> Board {
        Board::start(self).await
    }

    fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }
}

/// A board that runs, or ran, and may be started again on the same port.
pub struct Board {
    options: BoardOptions,
    port: u16,
    agent_token: String,
    identity_token: String,
    control_token: String,
    control: Api,
    child: Option<Child>,
    /// Holds what it told.
    folder: tempfile::TempDir,
}

impl Board {
    /// Starts it and waits until it listens.
    pub async fn start(options: BoardOptions) -> Self {
        let control_token = unique("token-of-the-test");
        let mut board = Self {
            options,
            port: 0,
            agent_token: unique("spa_token-of-the-carrier"),
            identity_token: unique("token-of-the-identity-client"),
            control: Api::new("", &control_token),
            control_token,
            child: None,
            folder: tempfile::tempdir().unwrap(),
        };
        // Another process may take the port before the board has it.
        for _ in 0..3 {
            board.port = free_port();
            board.control = Api::new(&format!("{}/control", board.url()), &board.control_token);
            if board.launch().await {
                return board;
            }
        }
        panic!("the board did not start");
    }

    /// The board's id.
    pub fn id(&self) -> &str {
        &self.options.id
    }

    /// Its `base_url`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Reads and subscribes, as [`BOARD_AGENT`].
    pub fn agent_token(&self) -> &str {
        &self.agent_token
    }

    /// Where tokens for people are issued.
    pub fn identity_url(&self) -> String {
        format!("{}/identity/assertions", self.url())
    }

    /// What the identity service wants to be asked with.
    pub fn identity_token(&self) -> &str {
        &self.identity_token
    }

    /// Asks a question, with the fields of a push, all optional, and `elicitationId`; its id.
    pub async fn ask(&self, question: &Value) -> String {
        let asked = self.told("/ask", question).await;
        asked["elicitationId"].as_str().unwrap().to_owned()
    }

    /// The run that asked this ends: it is cancelled, and nothing is pushed.
    pub async fn cancel(&self, id: &str) {
        let answer = self
            .told(&format!("/elicitations/{id}/cancel"), &json!({}))
            .await;
        assert_eq!(answer["cancelled"], json!([id]), "it was not pending");
    }

    /// The card moves: what is pending about it is cancelled. Which that was.
    pub async fn move_card(&self, card: &str) -> Value {
        let mut answer = self.told(&format!("/cards/{card}/move"), &json!({})).await;
        answer["cancelled"].take()
    }

    /// Somebody answers in the board's web app, with `{"option"}` or `{"text"}`.
    pub async fn answer_as_web(&self, id: &str, user: &str, answer: &Value) -> (StatusCode, Value) {
        let mut fields = answer.clone();
        fields["user"] = user.into();
        let path = format!("/elicitations/{id}/answer");
        self.call(Method::POST, &path, Some(&fields)).await
    }

    /// A question: the fields of a push, `state`, `answer` and `cancelledBecause`.
    pub async fn elicitation(&self, id: &str) -> Value {
        self.seen(&format!("/elicitations/{id}")).await
    }

    /// All of them, in the order in which they were asked.
    pub async fn elicitations(&self) -> Vec<Value> {
        self.listed("elicitations").await
    }

    /// What came from outside, as it came: `route`, `method`, `path`, `by` (who, in the place of
    /// their token), `headers`, `body`, the `status` it was answered with, or null if it was not.
    pub async fn requests(&self) -> Vec<Value> {
        self.listed("requests").await
    }

    /// What came on one route.
    pub async fn requests_for(&self, route: BoardRoute) -> Vec<Value> {
        let mut requests = self.requests().await;
        requests.retain(|request| request["route"] == route.name());
        requests
    }

    /// What was pushed to whom: `elicitationId`, `event`, `url`, `body`, `state` (`queued`,
    /// `retrying`, `delivered`, `dead`, `dropped`) and `attempts` with a `status` or an `error`.
    pub async fn pushes(&self) -> Vec<Value> {
        self.listed("pushes").await
    }

    /// Who is subscribed: `url`, `agentId`, `events` and `tokenSha256`.
    pub async fn subscriptions(&self) -> Vec<Value> {
        self.listed("subscriptions").await
    }

    /// Subscribes [`BOARD_AGENT`] to questions at this URL, or changes the key of its
    /// subscription.
    pub async fn subscribe(&self, url: &str, secret: &str) {
        self.told("/subscriptions", &json!({"url": url, "token": secret}))
            .await;
    }

    /// Pushes go to nobody from now on.
    pub async fn forget_subscriptions(&self) {
        self.fine(Method::DELETE, "/subscriptions", None).await;
    }

    /// Pushes any event with any body to whoever is subscribed to the event.
    pub async fn push(&self, event: &str, body: &Value) {
        self.push_fields(&json!({"event": event, "body": body}))
            .await;
    }

    /// Pushes a body that need not be JSON.
    pub async fn push_raw(&self, event: &str, body: &str) {
        self.push_fields(&json!({"event": event, "raw": body}))
            .await;
    }

    /// Pushes a question once more, whatever has become of it.
    pub async fn push_again(&self, id: &str) {
        self.told(&format!("/elicitations/{id}/push"), &json!({}))
            .await;
    }

    /// Renames the board, or takes its name away.
    pub async fn rename(&self, name: Option<&str>) {
        self.told("/board", &json!({"name": name})).await;
    }

    /// The board knows this person from now on, or no longer; whatever tokens they have.
    pub async fn knows(&self, user: &str, known: bool) {
        self.told("/people", &json!({"user": user, "known": known}))
            .await;
    }

    /// A bearer token is good no longer.
    pub async fn revoke_bearer(&self, token: &str) {
        self.fine(Method::DELETE, "/people", Some(&json!({"bearer": token})))
            .await;
    }

    /// Every token that the identity service has issued is good no longer.
    pub async fn revoke_issued(&self) {
        self.told("/identity", &json!({"revoke": true})).await;
    }

    /// What issued tokens are said to live, in seconds, and what they do live.
    pub async fn issue_for(&self, said: u64, life: Duration) {
        let fields = json!({"expiresIn": said, "life": life.as_secs_f64()});
        self.told("/identity", &fields).await;
    }

    /// Misbehaves like this, once each in this order. What was set for the route before is gone.
    pub async fn fault(&self, route: BoardRoute, faults: &[BoardFault]) {
        self.set_faults(route, faults, false).await;
    }

    /// Misbehaves like this until [`Board::clear_faults`].
    pub async fn fault_forever(&self, route: BoardRoute, fault: BoardFault) {
        self.set_faults(route, &[fault], true).await;
    }

    /// Behaves again.
    pub async fn clear_faults(&self) {
        self.fine(Method::DELETE, "/faults", None).await;
    }

    /// From now on closes every connection as soon as something is asked on it. What is pushed
    /// still goes out.
    pub async fn down(&self) {
        self.told("/down", &json!({"down": true})).await;
    }

    /// Answers again.
    pub async fn up(&self) {
        self.told("/down", &json!({"down": false})).await;
    }

    /// Ends it: nobody listens on its port.
    pub fn stop(&mut self) {
        let mut child = self.child.take().expect("the board runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Starts it after [`Board::stop`], on the same port, with what its options say and nothing
    /// of what was asked, answered, subscribed or set.
    pub async fn start_again(&mut self) {
        assert!(self.child.is_none(), "the board runs already");
        assert!(self.launch().await, "the board did not start again");
    }

    /// Stops it and starts it again, with nothing kept.
    pub async fn restart(&mut self) {
        self.stop();
        self.start_again().await;
    }

    /// The question once it is answered; fails if it ends otherwise.
    pub async fn until_answered(&self, id: &str) -> Value {
        self.until_state(id, "answered").await
    }

    /// The question once it is in this state; fails if it ends in another.
    pub async fn until_state(&self, id: &str, state: &str) -> Value {
        soon(&format!("{id} to be {state} on the board"), async || {
            let found = self.elicitation(id).await;
            if found["state"] == state {
                return Some(found);
            }
            assert_eq!(found["state"], "pending", "{id} should be {state}");
            None
        })
        .await
    }

    /// What came on a route, once it is at least so many.
    pub async fn until_requests(&self, route: BoardRoute, count: usize) -> Vec<Value> {
        soon(
            &format!("{count} requests for {}", route.name()),
            async || {
                let requests = self.requests_for(route).await;
                (requests.len() >= count).then_some(requests)
            },
        )
        .await
    }

    /// The pushes of a question, once none of them is on its way.
    pub async fn until_pushed(&self, id: &str) -> Vec<Value> {
        soon(&format!("the pushes of {id}"), async || {
            let mut pushes = self.pushes().await;
            pushes.retain(|push| push["elicitationId"] == id);
            let is_over =
                |push: &Value| !["queued", "retrying"].contains(&push["state"].as_str().unwrap());
            (!pushes.is_empty() && pushes.iter().all(is_over)).then_some(pushes)
        })
        .await
    }

    /// The subscription for this URL, once there is one.
    pub async fn until_subscribed(&self, url: &str) -> Value {
        soon(&format!("a subscription for {url}"), async || {
            let subscriptions = self.subscriptions().await;
            subscriptions.into_iter().find(|each| each["url"] == url)
        })
        .await
    }

    /// What happened on its side, a line each, over all its starts.
    pub fn story(&self) -> String {
        std::fs::read_to_string(self.story_file()).unwrap_or_default()
    }

    /// Whether it came up. What kept it from that is in its story.
    async fn launch(&mut self) -> bool {
        let mut child = self.spawn(installed().await.python().to_owned());
        let stdout = child.stdout.take().unwrap();
        let first_line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).unwrap();
            line
        });
        self.child = Some(child);
        let Ok(line) = tokio::time::timeout(SOON, first_line).await else {
            panic!("waited in vain for the board to start");
        };
        let said: Value = serde_json::from_str(&line.unwrap()).unwrap_or_default();
        let is_up = said == json!({"url": self.url()});
        if !is_up {
            self.stop();
        }
        is_up
    }

    fn story_file(&self) -> PathBuf {
        self.folder.path().join("story")
    }

    fn spawn(&self, python: PathBuf) -> Child {
        let story = File::options()
            .append(true)
            .create(true)
            .open(self.story_file())
            .unwrap();
        Command::new(python)
            .args(["-B", PROGRAM, "--story", "--allow-private"])
            .args(["--board", &self.options.id, "--agent", BOARD_AGENT])
            .args(["--port", &self.port.to_string()])
            .args(&self.options.arguments)
            .env("BOARD_AGENT_TOKEN", &self.agent_token)
            .env("BOARD_IDENTITY_TOKEN", &self.identity_token)
            .env("BOARD_CONTROL_TOKEN", &self.control_token)
            .env("BOARD_BEARERS", self.options.bearers.join(" "))
            // It ends by itself when this pipe is closed, however we end.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(story)
            .spawn()
            .unwrap()
    }

    async fn set_faults(&self, route: BoardRoute, faults: &[BoardFault], forever: bool) {
        let behaviours: Vec<Value> = faults.iter().map(BoardFault::to_json).collect();
        let fields = json!({
            "route": route.name(),
            "behaviours": behaviours,
            "forever": forever,
        });
        self.told("/faults", &fields).await;
    }

    async fn push_fields(&self, fields: &Value) {
        let answer = self.told("/push", fields).await;
        assert_ne!(answer["subscriptions"], 0, "nobody is subscribed to that");
    }

    async fn listed(&self, what: &str) -> Vec<Value> {
        let mut answer = self.seen(&format!("/{what}")).await;
        serde_json::from_value(answer[what].take()).unwrap()
    }

    async fn seen(&self, path: &str) -> Value {
        self.fine(Method::GET, path, None).await
    }

    async fn told(&self, path: &str, body: &Value) -> Value {
        self.fine(Method::POST, path, Some(body)).await
    }

    async fn fine(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) = self.call(method, path, body).await;
        assert_eq!(status, StatusCode::OK, "the board, on {path}: {answer:#}");
        answer
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let mut request = self.control.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("on the board's side:\n{}", self.story());
        }
    }
}

/// Below the range of outgoing connections, which would take it while the board is down.
fn free_port() -> u16 {
    loop {
        let port = rand::random_range(20_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
