//! The command line, one file a command.

pub mod check;
pub mod deliveries;
pub mod demo;
pub mod digest;
pub mod read;
pub mod run;
mod running;
#[cfg(test)]
mod stand;
pub mod streams;
mod terminal;
pub mod validate;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::contract::schema::Contract;

/// An agent asks, people in a Matrix room answer by typing, the agent gets the answer.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Try it out: a throwaway homeserver, a bot, a question, and you as the person who answers.
    Demo(demo::DemoArgs),
    /// Run the bot.
    Run {
        /// The configuration file; `config.example.toml` says what may be in it.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Tell every mistake in a configuration file.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Look at what agents have not taken, and try it again: asked of the running bot.
    #[command(subcommand)]
    Deliveries(deliveries::DeliveriesCommand),
    /// Show what a room said, as an agent is told it: asked of the running bot.
    Digest(digest::DigestArgs),
    /// Say who is left out of the digests of a room for a while: told to the running bot.
    #[command(subcommand)]
    Streams(streams::StreamsCommand),
    /// Tell every fault of a card or a digest (JSON).
    Validate {
        /// The file with it; `-` reads standard input.
        #[arg(value_name = "FILE")]
        file: String,
        /// The contract that it should keep: `dev.superpipeline.elicitation`, the card, or
        /// `chat.agent-digest@1`, the digest.
        #[arg(
            long = "as",
            value_name = "CONTRACT",
            value_parser = validate::contract,
            default_value = Contract::Card.name()
        )]
        contract: Contract,
    },
    /// Tell how replies are read: lines of {"options","text","directed"} on standard input.
    Read,
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match dispatch(arguments.command) {
        Ok(code) => code,
        Err(error) => {
            // Whoever reads from a pipe may stop early; that is no failure worth words.
            if is_broken_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            let _ = writeln!(io::stderr(), "matrix-elicit: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(arguments) => {
            log_to_stderr("warn");
            runtime()?
                .block_on(demo::run(arguments))
                .map(|()| ExitCode::SUCCESS)
        }
        Command::Run { config } => {
            log_to_stderr("info");
            run::again_and_again(&config, runtime)
        }
        Command::Check { config } => Ok(exit(check::run(&config, &mut io::stdout().lock())?)),
        Command::Deliveries(command) => runtime()?
            .block_on(deliveries::run(command, &mut io::stdout().lock()))
            .map(|()| ExitCode::SUCCESS),
        Command::Digest(wanted) => runtime()?
            .block_on(digest::run(wanted, &mut io::stdout().lock()))
            .map(|()| ExitCode::SUCCESS),
        Command::Streams(command) => runtime()?
            .block_on(streams::run(command, &mut io::stdout().lock()))
            .map(|()| ExitCode::SUCCESS),
        Command::Validate { file, contract } => {
            let valid = validate::run(&file, contract, &mut io::stdout().lock())?;
            Ok(exit(valid))
        }
        Command::Read => {
            read::run(io::stdin().lock(), io::stdout().lock()).map(|()| ExitCode::SUCCESS)
        }
    }
}

fn exit(good: bool) -> ExitCode {
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Logs go to standard error. `RUST_LOG` chooses what; by default the bot speaks at `level` and
/// the libraries below it only when something is wrong.
fn log_to_stderr(level: &str) {
    let chosen = EnvFilter::try_from_default_env();
    let default = format!(
        "warn,matrix_elicit={level},matrix_sdk=off,matrix_sdk_crypto=error,matrix_sdk_base=error"
    );
    tracing_subscriber::fmt()
        .with_env_filter(chosen.unwrap_or_else(|_| EnvFilter::new(default)))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_is_validated_is_a_card_unless_said_otherwise() {
        let meant = |words: &str| {
            let words = format!("matrix-elicit validate {words}");
            let read = Arguments::try_parse_from(words.split_whitespace());
            match read.map(|read| read.command) {
                Ok(Command::Validate { file, contract }) => Some((file, contract)),
                _ => None,
            }
        };
        let file = || "FILE".to_owned();
        assert_eq!(meant("FILE"), Some((file(), Contract::Card)));
        assert_eq!(
            meant("--as chat.agent-digest@1 FILE"),
            Some((file(), Contract::AgentDigest))
        );
        assert_eq!(meant("FILE --as chat.agent-digest@2"), None);
    }
}
