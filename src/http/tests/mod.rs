//! The API over real HTTP, with a real service and ledger behind it. Only the
//! rooms are made up.

mod auth;
mod boards;
mod connections;
mod deliveries;
mod elicitations;
mod events;
mod health;
mod sessions;
mod streams;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::metrics_recorder;
use super::places::Limits;
use super::serve;
use crate::clock;
use crate::config::Config;
use crate::desk::EventDraft;
use crate::digest::Standing;
use crate::elicitation::Key;
use crate::ledger::{self, LedgerError};
use crate::service::{BoardRoom, Looking, RoomFacts, RoomPerson, RoomTrouble, Rooms, Service};

const BUILDER: &str = "builder-token-0123";
const TESTER: &str = "tester-token-4567";

/// The bot's rooms as the tests want them.
struct FewRooms;

impl Rooms for FewRooms {
    fn make_board_room<'a>(&'a self, wanted: &'a BoardRoom) -> Looking<'a, String> {
        Box::pin(async { Ok(format!("!{}", wanted.board)) })
    }

    fn is_in<'a>(&'a self, _: &'a str, user_id: &'a str) -> Looking<'a, bool> {
        Box::pin(async move { Ok(!user_id.starts_with("@nobody")) })
    }

    fn direct_room<'a>(&'a self, user_id: &'a str, _: Option<&'a str>) -> Looking<'a, String> {
        Box::pin(async move { Ok(format!("!direct-{}", &user_id[1..])) })
    }

    fn name_room<'a>(&'a self, _: &'a str, _: &'a str, _: Option<&'a str>) -> Looking<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn locate<'a>(&'a self, room: &'a str) -> Looking<'a, RoomFacts> {
        let facts = |room_id: &str, joined, may_send| RoomFacts {
            room_id: room_id.to_owned(),
            aliases: Vec::new(),
            invited_by: None,
            joined,
            may_send,
        };
        let found = match room {
            "!elsewhere:x.org" => Ok(facts(room, false, false)),
            "!mute:x.org" => Ok(facts(room, true, false)),
            "#deploys:x.org" => Ok(facts("!deploys:x.org", true, true)),
            room if room.starts_with('!') => Ok(facts(room, true, true)),
            "#away:x.org" => Err(RoomTrouble::Away("timed out".to_owned())),
            room => Err(RoomTrouble::Unknown(room.to_owned())),
        };
        Box::pin(async { found })
    }

    fn people<'a>(&'a self, _: &'a str, _: &'a [String]) -> Looking<'a, Vec<RoomPerson>> {
        let people = ["@ada:x.org", "@sam:x.org"].map(|user_id| RoomPerson {
            user_id: user_id.to_owned(),
            display_name: Some("<b>Somebody</b>".to_owned()),
            standing: Standing::In,
        });
        Box::pin(async { Ok(people.into()) })
    }

    fn bot(&self) -> &'static str {
        "@elicit:x.org"
    }
}

/// A served API and a client for it.
struct Api {
    base: String,
    client: Client,
    service: Arc<Service>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    _folder: TempDir,
}

impl Api {
    async fn start() -> Self {
        Self::with("").await
    }

    /// With more in its configuration.
    async fn with(more: &str) -> Self {
        Self::within_and_with(Limits::of_this_process(), more).await
    }

    async fn within(limits: Limits) -> Self {
        Self::within_and_with(limits, "").await
    }

    async fn within_and_with(limits: Limits, more: &str) -> Self {
        let config = format!(
            r#"
            [matrix]
            homeserver = "https://x.org"
            user = "@elicit:x.org"
            [agents.builder]
            token = "{BUILDER}"
            [agents.tester]
            token = "{TESTER}"
            rooms = ["!deploys:x.org"]
            {more}
            "#
        );
        let config: Config = toml::from_str(&config).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let book = ledger::open(folder.path()).unwrap();
        let (stop, stopping) = watch::channel(false);
        let service = Service::start(Arc::new(config), book, Arc::new(FewRooms), stopping.clone())
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let served = serve::serve_within(
            Arc::clone(&service),
            listener,
            metrics_recorder(),
            stopping,
            limits,
        );
        let serving = tokio::spawn(served);
        let client = Client::builder().no_proxy().build().unwrap();
        Self {
            base,
            client,
            service,
            stop,
            serving,
            _folder: folder,
        }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(BUILDER)
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.request(Method::GET, path).send().await.unwrap()).await
    }

    async fn delete(&self, path: &str) -> (u16, Value) {
        answer(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    async fn ask(&self, body: &Value) -> (u16, Value) {
        let request = self.request(Method::POST, "/v1/elicitations").json(body);
        answer(request.send().await.unwrap()).await
    }

    /// Asks a plain question under an id.
    async fn asked(&self, id: &str) {
        let body = json!({ "room": "!deploys:x.org", "prompt": "Ship it?", "elicitation_id": id });
        assert_eq!(self.ask(&body).await.0, 201);
    }

    /// Tells an agent something, and gives back the event's id.
    async fn announce(&self, agent: &str, word: &str) -> String {
        let draft = EventDraft {
            urgent: false,
            key: Key::new(agent, "e1"),
            event_type: "elicitation.open".to_owned(),
            body: json!({ "word": word }),
        };
        let agent = agent.to_owned();
        let written = self.service.book().write(move |ledger| {
            let before = ledger.last_event_seq()?;
            ledger.announce(&draft, false, clock::now())?;
            let mut events = ledger.events_after(&agent, before, 1)?;
            Ok::<_, LedgerError>(events.remove(0).id)
        });
        written.await.unwrap()
    }
}

async fn answer(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let content_type = response.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(content_type, "application/json");
    (status, response.json().await.unwrap())
}

fn refused(status: u16, code: &str, message: &str) -> (u16, Value) {
    (
        status,
        json!({ "error": { "code": code, "message": message } }),
    )
}

fn refused_field(field: &str, rule: &str) -> (u16, Value) {
    let message = format!("{field} {rule}");
    let error = json!({ "code": "INVALID_REQUEST", "message": message, "field": field });
    (400, json!({ "error": error }))
}

/// What takes longer than this hangs.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), future)
        .await
        .expect("it should not take so long")
}
