//! The boards whose questions the bot carries: what is read from them, and what people's answers
//! come to there.
//!
//! A board pushes its questions (`http`), and every now and then all that is pending on it is read
//! beside that ([`sweep`]). A person's reply is kept, and handed in as that person ([`submit`]): it
//! is an answer when the board has taken it. Each board has tasks of its own, so that a slow or dead
//! one delays nobody.
//!
//! [`BoardClient`] makes the calls; an answer is given as the person who gave it, by the
//! [`Credential`] that [`People`] comes to. [`signature_holds`] tells whether a push is the board's.
//!
//! A restart loses nothing: what was pushed is stored before it is acknowledged, what was not is
//! found by the first look, and an answer that is not decided is handed in again.

mod client;
mod people;
mod signature;
mod submit;
mod sweep;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use url::Url;

use crate::calls;
use crate::config::Config;
use crate::ledger::LedgerError;
use crate::service::Service;
use submit::Clerk;
use sweep::Sweeper;

pub use client::{BoardClient, Given, Unread};
pub use people::{Credential, NoCredential, People};
pub use signature::signature_holds;
pub use submit::SUBMISSIONS;
pub use sweep::{FOUND, SUBSCRIPTIONS, SWEEPS, UNREAD};

/// How long a call to a board, or to whoever knows its people, may take.
const WHOLE: Duration = Duration::from_secs(30);

/// Why the boards can be served no longer.
#[derive(Debug, thiserror::Error)]
pub enum BoardsError {
    /// The HTTP client could not be made: no usable TLS.
    #[error("the client for boards could not be made: {0}")]
    Client(#[from] reqwest::Error),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A task ended in a panic.
    #[error("serving boards ended unexpectedly: {0}")]
    Died(#[from] JoinError),
}

/// Serves every configured board until `stopping` becomes true.
///
/// # Errors
/// See [`BoardsError`].
pub async fn run(
    service: Arc<Service>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), BoardsError> {
    let http = calls::client(WHOLE)?;
    let mut tasks: JoinSet<Result<(), LedgerError>> = JoinSet::new();
    let config = service.config().clone();
    for (id, board) in &config.boards {
        let client = Arc::new(BoardClient::new(http.clone(), id, board));
        let sweeper = Sweeper {
            service: service.clone(),
            board: id.clone(),
            client: client.clone(),
            every: board.sweep,
            push_url: push_url(&config, id),
        };
        tasks.spawn(sweeper.work(stopping.clone()));
        let clerk = Clerk {
            service: service.clone(),
            board: id.clone(),
            client,
            people: People::new(http.clone(), board),
        };
        tasks.spawn(Arc::new(clerk).work(stopping.clone()));
    }
    drop(service);
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    // Without boards there is nothing to do, which is no reason to end.
    let _ = stopping.wait_for(|&stopping| stopping).await;
    Ok(())
}

/// Where a board reaches the bot, if it does.
fn push_url(config: &Config, board: &str) -> Option<Url> {
    let mut url = config.http.public_url.clone()?;
    url.path_segments_mut()
        .ok()?
        .pop_if_empty()
        .extend(["v1", "boards", board, "push"]);
    Some(url)
}
