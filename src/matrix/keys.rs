//! The session's tokens and keys: what may go wrong with them while the bot runs.

use std::sync::Arc;
use std::time::Duration;

use matrix_sdk::encryption::recovery::RecoveryState;
use matrix_sdk::{Client, SessionChange};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::session;
use crate::config::Config;
use crate::service::Service;

/// Why the session is over.
#[derive(Debug, thiserror::Error)]
pub enum SessionOver {
    /// It is lost for good.
    #[error("the homeserver no longer accepts the bot's session: {0}")]
    Lost(String),
    /// Another one is kept in its place, on the same device: starting again goes on with that.
    #[error("the homeserver asked for a new login, which is done; start again to use it")]
    Renewed,
}

/// Watches over the session's tokens until the process is to end. A soft logout is answered by
/// logging in again on the same device.
///
/// # Errors
/// When the session is over. If it is lost for good the process ends, loud, instead of living on
/// deaf.
pub(crate) async fn watch_session(
    client: Client,
    service: Arc<Service>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), SessionOver> {
    let mut changes = client.subscribe_to_session_changes();
    loop {
        let change = tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
            change = changes.recv() => change,
        };
        match change {
            Ok(SessionChange::UnknownToken(lost)) => {
                let outcome = if lost.soft_logout {
                    tokio::select! {
                        _ = stopping.wait_for(|&stopping| stopping) => return Ok(()),
                        renewed = renew(&service) => renewed,
                    }
                } else {
                    let folder = service.config().matrix.data_dir.join("matrix");
                    Err(format!(
                        "its device was logged out; remove {} (and change \
                         matrix.device_id, if it is set) to start as a new device (messages \
                         encrypted for the old one stay unreadable)",
                        folder.display()
                    ))
                };
                return Err(match outcome {
                    Ok(()) => SessionOver::Renewed,
                    Err(why) => {
                        service.health().give_up(&why);
                        SessionOver::Lost(why)
                    }
                });
            }
            Ok(SessionChange::TokensRefreshed) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

/// Logs in again on the same device, for as long as the homeserver does not answer.
async fn renew(service: &Service) -> Result<(), String> {
    let mut wait = Duration::from_secs(1);
    loop {
        match session::log_in_again(&service.config().matrix).await {
            Err(error) if error.may_pass() => {
                let wait_ms = wait.as_millis();
                tracing::warn!(wait_ms, "{error}; next try in {wait_ms} ms");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(Duration::from_mins(1));
            }
            outcome => return outcome.map_err(|error| error.to_string()),
        }
    }
}

/// Watches for the one error of encryption keys that never heals by itself. Nothing is wiped: the
/// bot becomes not ready and says how to recover.
pub(crate) async fn watch_keys(
    client: Client,
    service: Arc<Service>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut errors = client.subscribe_to_duplicate_key_upload_errors();
    loop {
        tokio::select! {
            _ = stopping.wait_for(|&stopping| stopping) => return,
            error = errors.recv() => match error {
                Ok(_) => {
                    let folder = service.config().matrix.data_dir.join("matrix");
                    let why = format!(
                        "the homeserver holds other encryption keys for this device than {}: \
                         restore that folder from a backup, or remove it (and change \
                         matrix.device_id, if it is set) to start as a new device",
                        folder.display()
                    );
                    tracing::error!("{why}");
                    service.health().give_up(&why);
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
        }
    }
}

/// Sets up, or restores on a new machine, cross-signing and the key backup from the configured
/// passphrase. A failure is logged and tried again at the next start; nothing is ever reset.
pub(crate) async fn recover(client: Client, config: Arc<Config>) {
    let Some(passphrase) = &config.matrix.recovery_passphrase else {
        return;
    };
    client
        .encryption()
        .wait_for_e2ee_initialization_tasks()
        .await;
    let recovery = client.encryption().recovery();
    let outcome = match recovery.state() {
        RecoveryState::Enabled => return,
        RecoveryState::Disabled => recovery
            .enable()
            .with_passphrase(passphrase.expose())
            .await
            .map(|_| "set up"),
        RecoveryState::Incomplete | RecoveryState::Unknown => recovery
            .recover(passphrase.expose())
            .await
            .map(|()| "restored"),
    };
    match outcome {
        Ok(done) => tracing::info!("cross-signing and key backup {done}"),
        Err(error) => tracing::error!(
            error = %error,
            "cross-signing and key backup are not available: {error}"
        ),
    }
}
