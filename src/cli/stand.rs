//! Something in the bot's place, for the tests of the commands that speak to it.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use clap::Parser;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The command line of one command, without the program's name.
pub(super) trait Line: Parser {
    /// Does what it says.
    async fn run(self, out: &mut Vec<u8>) -> anyhow::Result<()>;
}

/// Remembers what it was asked, and answers as it is told.
pub(super) struct Stand<L> {
    heard: Heard,
    line: PhantomData<L>,
}

#[derive(Clone, Default)]
struct Heard {
    asked: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<VecDeque<(u16, String)>>>,
}

impl<L: Line> Stand<L> {
    pub(super) fn answering(answers: impl IntoIterator<Item = (u16, Value)>) -> Self {
        let answers = answers.into_iter();
        let answers = answers.map(|(status, answer)| (status, answer.to_string()));
        Self {
            heard: Heard {
                answers: Arc::new(Mutex::new(answers.collect())),
                ..Heard::default()
            },
            line: PhantomData,
        }
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.heard.asked.lock().unwrap().clone()
    }

    /// Runs a command against it; what it wrote, or how it failed.
    pub(super) async fn run(&self, words: &str) -> (String, Result<(), String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listen = listener.local_addr().unwrap();
        let routes = Router::new().fallback(take).with_state(self.heard.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await });
        let http = format!("[http]\nlisten = \"{listen}\"\noperator_token = \"the-token\"\n");
        let (out, result) = with_config::<L>(&http, words).await;
        serving.abort();
        let stand = format!("http://{listen}");
        (out, result.map_err(|error| error.replace(&stand, "BOT")))
    }
}

async fn take(
    State(heard): State<Heard>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    assert_eq!(headers["authorization"], "Bearer the-token");
    let body = String::from_utf8(body.to_vec()).unwrap();
    let asked = format!("{method} {uri} {body}");
    heard
        .asked
        .lock()
        .unwrap()
        .push(asked.trim_end().to_owned());
    let answer = heard.answers.lock().unwrap().pop_front();
    let (status, text) = answer.unwrap_or((500, "nothing more to say".to_owned()));
    (StatusCode::from_u16(status).unwrap(), text)
}

/// Runs a command with this configuration.
pub(super) async fn with_config<L: Line>(
    config: &str,
    words: &str,
) -> (String, Result<(), String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, config).unwrap();
    let name = file.display().to_string();
    let words = words.split_whitespace().map(str::to_owned);
    let words = ["matrix-elicit".to_owned()].into_iter().chain(words);
    let words = words.chain(["--config".to_owned(), name.clone()]);
    let line = L::try_parse_from(words).unwrap();
    let mut out = Vec::new();
    let result = line.run(&mut out).await;
    let result = result.map_err(|error| format!("{error:#}").replace(&name, "FILE"));
    (String::from_utf8(out).unwrap(), result)
}

/// An error as the API tells it.
pub(super) fn refused(status: u16, code: &str, message: &str) -> (u16, Value) {
    let error = json!({ "code": code, "message": message });
    (status, json!({ "error": error }))
}
