//! `matrix-elicit run`: the bot, until it is asked to end.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::bot::Bot;
use crate::config::Config;
use crate::ledger::LedgerError;
use crate::matrix::SessionOver;

/// How often the ledger is tried again when the bot before has not yet let go of it.
const LETTING_GO: u32 = 100;

/// Runs the bot until it ends; after a soft logout once more, on the new session.
///
/// # Errors
/// See [`run`].
pub fn again_and_again(
    path: &Path,
    runtime: impl Fn() -> anyhow::Result<Runtime>,
) -> anyhow::Result<ExitCode> {
    let mut tries_left = 0;
    loop {
        // A runtime of its own: with it goes whatever is left of the bot before.
        let ran = runtime()?.block_on(run(path));
        let Err(error) = &ran else { return ran };
        if let Some(SessionOver::Renewed) = error.downcast_ref() {
            tracing::info!("logged in again after a soft logout; starting on the new session");
            tries_left = LETTING_GO;
        } else if tries_left > 0 && matches!(error.downcast_ref(), Some(LedgerError::InUse(_))) {
            tries_left -= 1;
            std::thread::sleep(Duration::from_millis(20));
        } else {
            return ran;
        }
    }
}

/// Runs the bot with a configuration file. SIGTERM and Ctrl-C end it cleanly.
///
/// # Errors
/// When it cannot start, or a part of it failed.
pub async fn run(path: &Path) -> anyhow::Result<ExitCode> {
    let config = match Config::load(path) {
        Ok(config) => config,
        Err(faults) => {
            for fault in faults {
                eprintln!("{fault}");
            }
            return Ok(ExitCode::FAILURE);
        }
    };
    for caution in config.cautions() {
        tracing::warn!("{caution}");
    }
    let ended = ended();
    tokio::pin!(ended);
    let mut bot = tokio::select! {
        () = &mut ended => return Ok(ExitCode::SUCCESS),
        bot = Bot::start(config) => bot?,
    };
    tokio::select! {
        () = &mut ended => {
            tracing::info!("ending");
            bot.stop().await?;
        }
        failed = bot.ended() => failed?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until the process is asked to end.
async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
