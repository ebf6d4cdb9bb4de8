//! A homeserver that does what a script tells it, for faults that a real one cannot be asked for.
//!
//! It keeps rooms, people and sessions in memory and answers what the bot asks of a homeserver:
//! sync with real long-polling, sending, history, state, keys. Its tokens are positions in one log
//! of everything that happened, so that asking again from an older token gives the same again. It
//! refuses what a real one refuses. On top of that a script can break single answers ([`Fault`]),
//! take the server away ([`ScriptedServer::go_away`]), and put anything into a sync.
#![allow(dead_code, reason = "a kit: not every test needs every tool")]

mod answers;
mod call;
mod faults;
mod keys;
mod sessions;
mod sync;
mod world;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

#[allow(unused_imports, reason = "a kit")]
pub use self::{
    call::Endpoint,
    faults::Fault,
    sessions::Sessions,
    world::{Event, Room, World},
};

/// The server's name, the second half of every id on it.
pub const SERVER_NAME: &str = "scripted.test";
/// How long a script waits for what is bound to happen.
const PATIENCE: Duration = Duration::from_mins(1);

/// What the server knows, and what it is told to do wrong.
struct Inner {
    world: Mutex<World>,
    faults: Mutex<faults::Script>,
    /// How often each endpoint was asked.
    asked: watch::Sender<BTreeMap<Endpoint, usize>>,
    /// Changes whenever a sync that waits should look again.
    moved: watch::Sender<u64>,
}

/// The server, on loopback, for as long as this lives.
pub struct ScriptedServer {
    address: SocketAddr,
    inner: Arc<Inner>,
    serving: Mutex<Option<JoinHandle<()>>>,
}

impl ScriptedServer {
    /// An empty one.
    pub async fn start() -> Self {
        let inner = Arc::new(Inner {
            world: Mutex::default(),
            faults: Mutex::default(),
            asked: watch::Sender::default(),
            moved: watch::Sender::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve(listener, inner.clone()));
        Self {
            address,
            inner,
            serving: Mutex::new(Some(serving)),
        }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts every connection and takes no new one, as a machine that is down.
    pub async fn go_away(&self) {
        let serving = self.serving.lock().unwrap().take();
        let serving = serving.expect("it is there");
        serving.abort();
        assert!(serving.await.is_err_and(|error| error.is_cancelled()));
    }

    /// Listens again where it did, knowing what it knew.
    pub async fn come_back(&self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        let serving = tokio::spawn(serve(listener, self.inner.clone()));
        let before = self.serving.lock().unwrap().replace(serving);
        assert!(before.is_none(), "it is there already");
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.inner.world.lock().unwrap()
    }

    /// Changes several things, which the next sync shows together.
    pub fn at_once<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let outcome = change(&mut self.world());
        self.inner.wake();
        outcome
    }

    /// Looks at what there is, without changing it.
    pub fn look<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&self.world())
    }

    /// An account; its id.
    pub fn account(&self, name: &str, password: &str) -> String {
        self.at_once(|world| world.sessions.account(name, password))
    }

    /// A room of `creator`, who has power 100 in it, with these people joined; its id.
    pub fn room(&self, creator: &str, joined: &[&str]) -> String {
        self.at_once(|world| world.room(creator, joined))
    }

    /// Somebody says something in a room they are in; the event.
    pub fn says(&self, room: &str, user: &str, body: &str) -> String {
        let content = json!({"msgtype": "m.text", "body": body});
        self.sends(room, user, "m.room.message", &content)
    }

    /// Somebody replies to an event; the event.
    pub fn replies(&self, room: &str, user: &str, to: &str, body: &str) -> String {
        let relation = json!({"m.in_reply_to": {"event_id": to}});
        let content = json!({"msgtype": "m.text", "body": body, "m.relates_to": relation});
        self.sends(room, user, "m.room.message", &content)
    }

    /// Somebody sends an event of any type to a room they are in; the event.
    pub fn sends(&self, room: &str, user: &str, kind: &str, content: &Value) -> String {
        self.at_once(|world| world.sends(room, user, kind, None, content))
    }

    /// Somebody sets a state event; the event.
    pub fn sets(&self, room: &str, user: &str, kind: &str, key: &str, content: &Value) -> String {
        self.at_once(|world| world.sends(room, user, kind, Some(key), content))
    }

    /// The next answer of this endpoint goes wrong in this way; several queue up.
    pub fn fault(&self, endpoint: Endpoint, fault: Fault) {
        self.inner.faults.lock().unwrap().once(endpoint, fault);
        self.inner.wake();
    }

    /// Every answer of this endpoint goes wrong in this way, once those that are queued have, until
    /// [`ScriptedServer::heal`].
    pub fn fault_always(&self, endpoint: Endpoint, fault: Fault) {
        self.inner.faults.lock().unwrap().always(endpoint, fault);
        self.inner.wake();
    }

    /// Nothing goes wrong any longer. What hangs goes on hanging.
    pub fn heal(&self) {
        *self.inner.faults.lock().unwrap() = faults::Script::default();
    }

    /// Whether everything that was to go wrong has.
    pub fn faults_are_over(&self) -> bool {
        self.inner.faults.lock().unwrap().is_over()
    }

    /// How often an endpoint was asked, refused or broken answers included.
    pub fn asked(&self, endpoint: Endpoint) -> usize {
        self.inner
            .asked
            .borrow()
            .get(&endpoint)
            .copied()
            .unwrap_or(0)
    }

    /// Waits until an endpoint was asked so often.
    pub async fn until_asked(&self, endpoint: Endpoint, count: usize) {
        let mut asked = self.inner.asked.subscribe();
        let enough = asked.wait_for(|asked| asked.get(&endpoint).copied().unwrap_or(0) >= count);
        let waited = tokio::time::timeout(PATIENCE, enough).await;
        assert!(
            waited.is_ok(),
            "waited in vain for request {count} at {endpoint:?}: {:?}",
            self.inner.asked.borrow()
        );
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.lock().unwrap().take() {
            serving.abort();
        }
    }
}

impl Inner {
    fn wake(&self) {
        self.moved.send_modify(|count| *count += 1);
    }
}

/// Serves until it is aborted; its connections end with it.
async fn serve(listener: TcpListener, inner: Arc<Inner>) {
    let routes = Router::new().fallback(answers::answer).with_state(inner);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                // Small answers must not wait for the acknowledgement of others.
                let _ = stream.set_nodelay(true);
                let service = TowerToHyperService::new(routes.clone());
                let talk = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // A connection that was cut is no fault of the test.
                connections.spawn(async move { drop(talk.await) });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
