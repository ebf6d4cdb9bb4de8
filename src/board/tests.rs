//! What goes over real HTTP to a board and to whoever knows its people.

mod client;
mod people;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use url::Url;

use super::*;
use crate::config::{AssertionConfig, BoardConfig, DevConfig, PeopleConfig};
use crate::secret::Secret;

const MIRA: &str = "@mira:example.org";

/// One call as it came in.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    method: Method,
    /// The path as it was written, with the query.
    target: String,
    /// The headers that matter here, `name: value` each.
    headers: Vec<String>,
    body: Value,
}

fn call(method: Method, target: &str, headers: &[&str], body: Value) -> Call {
    Call {
        method,
        target: target.to_owned(),
        headers: headers.iter().map(|header| (*header).to_owned()).collect(),
        body,
    }
}

/// Whoever is called: gives the answers it was told to, in order, and none to what comes after.
#[derive(Clone, Default)]
struct Stub {
    calls: Arc<Mutex<Vec<Call>>>,
    answers: Arc<Mutex<VecDeque<Response>>>,
}

impl Stub {
    async fn answering(answers: impl IntoIterator<Item = Response>) -> (Self, Url) {
        let stub = Self {
            calls: Arc::default(),
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(receive).with_state(stub.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (stub, Url::parse(&url).unwrap())
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }
}

async fn receive(
    State(stub): State<Stub>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let told = ["authorization", "content-type", "x-tenant-id", "x-user-id"];
    let headers = told.into_iter().filter_map(|name| {
        let value = headers.get(name)?.to_str().unwrap();
        Some(format!("{name}: {value}"))
    });
    stub.calls.lock().unwrap().push(Call {
        method,
        target: uri.to_string(),
        headers: headers.collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    let answer = stub.answers.lock().unwrap().pop_front();
    match answer {
        Some(answer) => answer,
        None => std::future::pending().await,
    }
}

fn says(status: u16, body: impl Into<Body>) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, body.into()).into_response()
}

/// Asks to be left alone for seven seconds.
fn waits(status: u16) -> Response {
    let mut response = says(status, "secret words");
    response
        .headers_mut()
        .insert("retry-after", "7".parse().unwrap());
    response
}

/// Sends the caller elsewhere, on the same server.
fn redirects(status: u16) -> Response {
    let mut response = says(status, "");
    response
        .headers_mut()
        .insert("location", "/elsewhere".parse().unwrap());
    response
}

/// Answers one call with a body that is shorter than it says.
async fn breaking_off(status: &str) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 100\r\n\r\n{{");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = String::new();
        while !is_whole(&request) {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).await.unwrap();
            assert!(read > 0, "the request broke off");
            request.push_str(std::str::from_utf8(&part[..read]).unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    Url::parse(&url).unwrap()
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    length.map_or(0, |length| length.parse().unwrap()) == body.len()
}

/// Where nobody listens, as long as the socket is held.
fn nobody() -> (TcpSocket, Url) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/?key=shh", socket.local_addr().unwrap());
    (socket, Url::parse(&url).unwrap())
}

fn http() -> reqwest::Client {
    calls::client(WHOLE).unwrap()
}

/// Gives up soon.
fn impatient() -> reqwest::Client {
    calls::client(Duration::from_millis(200)).unwrap()
}

fn config(base_url: &Url, people: PeopleConfig) -> BoardConfig {
    BoardConfig {
        base_url: base_url.clone(),
        agent_token: Secret::from("kbn_agent"),
        push_secrets: vec![Secret::from("newer"), Secret::from("older")],
        room: Some("!abc".to_owned()),
        invite: vec![],
        encrypted: false,
        free_text: true,
        sweep: Duration::from_mins(5),
        people,
    }
}

fn bearers() -> PeopleConfig {
    PeopleConfig {
        bearer: Some([(MIRA.to_owned(), Secret::from("mira's-token"))].into()),
        assertion: None,
        dev: None,
    }
}
