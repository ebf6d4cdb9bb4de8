//! The running bot: everything wired together, watched over, and taken down in order.
//!
//! Each part is a task of its own. One that ends before its time takes the process down with a
//! failure, so that whoever supervises it starts it again: everything that matters is in the
//! ledger.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::clock;
use crate::config::Config;
use crate::ledger::{self, LedgerError, Note};
use crate::matrix::{self, JoinedRooms, Listener, Speaker, Upgrades};
use crate::service::Service;
use crate::{board, delivery, http};

/// How long the parts may take to finish what is in hand.
const GRACE: Duration = Duration::from_secs(4);
/// How long deadlines wait for the first sync.
const FIRST_SYNC_WITHIN: Duration = Duration::from_mins(2);
/// How long new questions are gathered before their deadlines are looked at.
const FEW: Duration = Duration::from_millis(20);
/// How often what is too old is deleted.
const HOUSEKEEPING: Duration = Duration::from_hours(1);
/// How often what was said in streams is looked through for what is too old.
const FORGETTING: Duration = Duration::from_mins(1);

/// The bot.
pub struct Bot;

/// A bot that runs in this process.
pub struct RunningBot {
    http: SocketAddr,
    service: Arc<Service>,
    stop: watch::Sender<bool>,
    tasks: JoinHandle<anyhow::Result<()>>,
}

impl Bot {
    /// Opens the ledger, listens for agents, logs in or restores the session, and starts every
    /// part. A homeserver that is away at the first login is waited for.
    ///
    /// # Errors
    /// When something is wrong that waiting does not mend.
    pub async fn start(config: Config) -> anyhow::Result<RunningBot> {
        let began = Instant::now();
        let config = Arc::new(config);
        make_private(&config.matrix.data_dir)?;
        let book = ledger::open(&config.matrix.data_dir)?;
        let door = std::net::TcpListener::bind(config.http.listen)
            .with_context(|| format!("http.listen: cannot listen on {}", config.http.listen))?;
        door.set_nonblocking(true)?;
        let http_addr = door.local_addr()?;
        let metrics = http::metrics_recorder();
        let token: Option<String> = book.read(|ledger| ledger.sync_token()).await?;
        let client = connect(&config, token.as_deref(), &door).await?;
        let listener = TcpListener::from_std(door)?;
        let (stop, stopping) = watch::channel(false);
        let rooms = Arc::new(JoinedRooms::new(client.clone(), config.clone()));
        rooms.recall_upgrades(&book).await?;
        let service = Service::start(
            config.clone(),
            book.clone(),
            rooms.clone(),
            stopping.clone(),
        )
        .await?;

        let mut parts: JoinSet<(&str, anyhow::Result<()>)> = JoinSet::new();
        let invited = Arc::new(Notify::new());
        // Those who listen to the session begin before anything can happen to it.
        let session = matrix::watch_session(client.clone(), service.clone(), stopping.clone());
        parts.spawn(async { ("session", session.await.map_err(Into::into)) });
        let keys = matrix::watch_keys(client.clone(), service.clone(), stopping.clone());
        parts.spawn(async {
            keys.await;
            ("keys", Ok(()))
        });
        let upgrades = Upgrades::new(client.clone(), service.clone(), rooms.clone());
        let heard = Listener::new(
            client.clone(),
            service.clone(),
            rooms.clone(),
            invited.clone(),
            upgrades.clone(),
        );
        let heard = Box::pin(heard.run(stopping.clone()));
        parts.spawn(async { ("listener", heard.await.map_err(Into::into)) });
        let spoken = Speaker::new(client.clone(), service.clone()).run(stopping.clone());
        parts.spawn(async { ("speaker", spoken.await.map_err(Into::into)) });
        let served = http::serve(service.clone(), listener, metrics, stopping.clone());
        parts.spawn(async { ("http", served.await.map_err(Into::into)) });
        let timed = keep_sessions(service.clone(), stopping.clone());
        parts.spawn(async { ("sessions", timed.await.map_err(Into::into)) });
        let boards = board::run(service.clone(), stopping.clone());
        parts.spawn(async { ("boards", boards.await.map_err(Into::into)) });
        let delivered = delivery::run(book, config.clone(), stopping.clone());
        parts.spawn(async { ("delivery", delivered.await.map_err(Into::into)) });
        let expired = expire(service.clone(), stopping.clone());
        parts.spawn(async { ("deadlines", expired.await.map_err(Into::into)) });
        let kept = keep_house(service.clone(), stopping.clone());
        parts.spawn(async { ("housekeeping", kept.await.map_err(Into::into)) });
        let forgotten = forget_talk(service.clone(), stopping.clone());
        parts.spawn(async { ("forgetting", forgotten.await.map_err(Into::into)) });
        keep_rooms(&mut parts, &client, &service, &rooms, &stopping);
        let logged = keep_journal(service.clone(), stopping.clone());
        parts.spawn(async {
            logged.await;
            ("journal", Ok(()))
        });
        let joined =
            matrix::accept_invites(client.clone(), config.clone(), invited, stopping.clone());
        parts.spawn(async {
            joined.await;
            ("invitations", Ok(()))
        });
        let upgraded = upgrades.follow(stopping.clone());
        parts.spawn(async {
            upgraded.await;
            ("upgrades", Ok(()))
        });
        tokio::spawn(say_when_ready(
            client,
            service.clone(),
            config,
            http_addr,
            began,
        ));

        let tasks = tokio::spawn(supervise(parts, stop.clone()));
        Ok(RunningBot {
            http: http_addr,
            service,
            stop,
            tasks,
        })
    }
}

impl RunningBot {
    /// Where the HTTP API listens.
    pub fn http_addr(&self) -> SocketAddr {
        self.http
    }

    /// Its service.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Ends it: nothing new is begun, what is in hand is finished.
    ///
    /// # Errors
    /// What went wrong while it ended.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        self.tasks.await?
    }

    /// Waits until it ends by itself, which it only does when a part of it failed.
    ///
    /// # Errors
    /// What failed.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        (&mut self.tasks).await?
    }
}

/// Follows aliases, and makes the rooms of streams ready.
fn keep_rooms(
    parts: &mut JoinSet<(&'static str, anyhow::Result<()>)>,
    client: &matrix_sdk::Client,
    service: &Arc<Service>,
    rooms: &Arc<JoinedRooms>,
    stopping: &watch::Receiver<bool>,
) {
    let streams = matrix::prepare_streams(
        client.clone(),
        service.clone(),
        rooms.clone(),
        stopping.clone(),
    );
    parts.spawn(async { ("streams", streams.await.map_err(Into::into)) });
    let (rooms, book) = (rooms.clone(), service.book().clone());
    let followed = matrix::follow_aliases(rooms, book, stopping.clone());
    parts.spawn(async {
        followed.await;
        ("aliases", Ok(()))
    });
}

/// Makes the data folder, for its owner alone. A folder that is there already is left as it is,
/// with a word if others can read it: whoever reads it reads the rooms.
fn make_private(folder: &Path) -> anyhow::Result<()> {
    let wrong = || format!("matrix.data_dir: {}", folder.display());
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
        builder.mode(0o700);
        if let Ok(there) = std::fs::metadata(folder)
            && there.permissions().mode() & 0o077 != 0
        {
            let folder = folder.display();
            tracing::warn!("{folder} can be read by others than its owner: chmod 700 {folder}");
        }
    }
    builder.create(folder).with_context(wrong)
}

/// Connects to the homeserver; one that is away is waited for. Meanwhile whoever knocks at the door
/// is told so.
async fn connect(
    config: &Config,
    token: Option<&str>,
    door: &std::net::TcpListener,
) -> anyhow::Result<matrix_sdk::Client> {
    let mut wait = Duration::from_secs(1);
    let (stop, stopping) = watch::channel(false);
    let mut waiting = None;
    let client = loop {
        match matrix::connect(&config.matrix, token).await {
            Ok(client) => break client,
            Err(error) if error.may_pass() => {
                let wait_ms = clock::millis(wait);
                tracing::warn!(wait_ms, "{error}; next try in {wait_ms} ms");
                if waiting.is_none() {
                    let door = TcpListener::from_std(door.try_clone()?)?;
                    let told = http::serve_waiting(door, error.to_string(), stopping.clone());
                    waiting = Some(tokio::spawn(told));
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(Duration::from_mins(1));
            }
            Err(error) => return Err(error.into()),
        }
    };
    stop.send_replace(true);
    if let Some(waiting) = waiting {
        waiting.await?;
    }
    Ok(client)
}

/// Waits for the first part to end, takes the others down, and gives the first failure.
async fn supervise(
    mut parts: JoinSet<(&'static str, anyhow::Result<()>)>,
    stop: watch::Sender<bool>,
) -> anyhow::Result<()> {
    let mut failure = None;
    let mut note = |done: Result<(&str, anyhow::Result<()>), tokio::task::JoinError>| {
        let why = match done {
            Ok((_, Ok(()))) => return,
            Ok((part, Err(error))) => error.context(format!("{part} failed")),
            Err(error) => anyhow::Error::from(error).context("a part of the bot panicked"),
        };
        failure.get_or_insert(why);
    };
    let mut stopping = stop.subscribe();
    let first = tokio::select! {
        _ = stopping.wait_for(|&stopping| stopping) => None,
        done = parts.join_next() => done,
    };
    // A part that ended because it was asked to may be noticed before the asking is.
    let asked = *stop.borrow();
    if let Some(done) = first {
        note(done);
    }
    stop.send_replace(true);
    let rest = async {
        while let Some(done) = parts.join_next().await {
            note(done);
        }
    };
    // What is not finished by then is in the ledger and goes on at the next start.
    let _ = tokio::time::timeout(GRACE, rest).await;
    match failure {
        Some(why) => Err(why),
        None if asked => Ok(()),
        None => anyhow::bail!("a part of the bot ended before its time"),
    }
}

/// Lets questions expire at their deadline. It begins after the first sync, so that what was
/// answered in time while the bot was away is heard first; a homeserver that stays away does not
/// hold deadlines up for long.
async fn expire(
    service: Arc<Service>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), LedgerError> {
    let mut notes = service.book().notes();
    // When that time is up it goes on as well.
    let waited = tokio::time::timeout(FIRST_SYNC_WITHIN, service.first_sync()).await;
    if waited == Ok(false) {
        return Ok(());
    }
    loop {
        let now = clock::now();
        let heard_until = service.health().all_heard_until();
        let next = service.expire(now, heard_until).await?;
        // Looked at again every minute: the machine's clock may be set.
        let wait = next.map_or(60_000, |at| at.saturating_sub(now).clamp(1, 60_000));
        let sleep = tokio::time::sleep(Duration::from_millis(wait.unsigned_abs()));
        tokio::pin!(sleep);
        loop {
            tokio::select! {
                _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
                () = &mut sleep => break,
                note = notes.recv() => if !matches!(
                    note,
                    Ok(Note::Closed(_)
                        | Note::Outbox(_)
                        | Note::Event(_)
                        | Note::Submission(_)
                        | Note::Session)
                ) {
                    break;
                },
            }
        }
        // When many ask at once, one look is enough for all of them.
        tokio::time::sleep(FEW).await;
    }
}

/// Does what time does to sessions.
async fn keep_sessions(
    service: Arc<Service>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), LedgerError> {
    let mut notes = service.book().notes();
    service.end_orphaned_sessions().await?;
    loop {
        let now = clock::now();
        let next = service.tick_sessions(now).await?;
        let wait = next.map_or(60_000, |at| at.saturating_sub(now).clamp(1, 60_000));
        let sleep = tokio::time::sleep(Duration::from_millis(wait.unsigned_abs()));
        tokio::pin!(sleep);
        loop {
            tokio::select! {
                _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
                () = &mut sleep => break,
                note = notes.recv() => if matches!(note, Ok(Note::Session) | Err(_)) { break },
            }
        }
        // When much happens at once, one look is enough for all of it.
        tokio::time::sleep(FEW).await;
    }
}

/// Logs how questions end, once that is on the disk.
async fn keep_journal(service: Arc<Service>, mut stopping: watch::Receiver<bool>) {
    let mut notes = service.book().notes();
    loop {
        let note = tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => return,
            note = notes.recv() => note,
        };
        match note {
            Ok(Note::Closed(key)) => {
                if let Ok(Some(closed)) = service.find(&key).await {
                    let (state, id, origin) = (closed.state.word(), &key.id, &key.origin);
                    tracing::info!(elicitation.id = %id, agent.id = %origin, state, "{id} of {origin} is {state}");
                }
            }
            // Under such a load the log is not what matters.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Deletes what is older than the configuration keeps.
async fn keep_house(
    service: Arc<Service>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), LedgerError> {
    loop {
        let gone = service.prune(clock::now()).await?;
        if gone > 0 {
            tracing::info!(rows = gone, "deleted {gone} rows older than ledger.keep");
        }
        tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
            () = tokio::time::sleep(HOUSEKEEPING) => {}
        }
    }
}

/// Deletes what was said in the rooms of streams once it is too old to be told.
async fn forget_talk(
    service: Arc<Service>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), LedgerError> {
    loop {
        let lines = service.forget_talk(clock::now()).await?;
        if lines > 0 {
            tracing::debug!(lines, "forgot {lines} lines of streams");
        }
        tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
            () = tokio::time::sleep(FORGETTING) => {}
        }
    }
}

/// The one line that says that it works.
async fn say_when_ready(
    client: matrix_sdk::Client,
    service: Arc<Service>,
    config: Arc<Config>,
    http: SocketAddr,
    began: Instant,
) {
    if !service.first_sync().await {
        return;
    }
    let (rooms, agents) = (client.joined_rooms().len(), config.agents.len());
    let after_ms = clock::millis(began.elapsed());
    tracing::info!(
        after_ms,
        "ready after {after_ms} ms: {} at http://{http}, rooms: {rooms}, agents: {agents}",
        config.matrix.user
    );
    matrix::recover(client, config).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How it ends when one part does as said while another would go on for ever, and whether
    /// that one was asked to stop.
    async fn ends(
        part: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) -> (Result<(), String>, bool) {
        let (stop, mut stopping) = watch::channel(false);
        let mut parts: JoinSet<(&str, anyhow::Result<()>)> = JoinSet::new();
        let (stopped, was_stopped) = tokio::sync::oneshot::channel();
        parts.spawn(async move {
            let asked = stopping.wait_for(|&stopping| stopping).await.is_ok();
            let _ = stopped.send(asked);
            ("speaker", Ok(()))
        });
        parts.spawn(async move { ("listener", part.await) });
        let ended = supervise(parts, stop).await;
        (
            ended.map_err(|error| format!("{error:#}")),
            was_stopped.await == Ok(true),
        )
    }

    /// Pain: hang.
    #[tokio::test]
    async fn a_part_that_ends_before_its_time_ends_the_bot_with_a_failure_and_says_why() {
        let cases = [
            (ends(async { Ok(()) }).await, "ended before its time"),
            (
                ends(async { anyhow::bail!("no homeserver") }).await,
                "listener failed: no homeserver",
            ),
            (
                ends(async { panic!("on purpose") }).await,
                "a part of the bot panicked: task",
            ),
        ];
        for ((ended, was_stopped), why) in cases {
            let error = ended.unwrap_err();
            assert!(error.contains(why), "{error}");
            assert!(was_stopped, "what goes on is taken down in order: {why}");
        }
    }

    #[tokio::test]
    async fn a_bot_that_was_asked_to_end_has_not_failed() {
        let (stop, mut stopping) = watch::channel(false);
        let mut parts: JoinSet<(&str, anyhow::Result<()>)> = JoinSet::new();
        parts.spawn(async move {
            let _ = stopping.wait_for(|&stopping| stopping).await;
            ("listener", Ok(()))
        });
        stop.send_replace(true);
        assert!(supervise(parts, stop).await.is_ok());
    }
}
