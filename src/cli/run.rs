//! `matrix-elicit run`: the bot, until it is asked to end.

use std::path::Path;
use std::process::ExitCode;

use crate::bot::Bot;
use crate::config::Config;

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
