//! `matrix-elicit demo`: one question from an agent's request to a person's reply in a real room
//! and back, on a homeserver that is made for it and thrown away. With `--board` it is a board that
//! asks, and that takes the answer. With `--agent` a person lets an agent work in a session.
//!
//! Progress goes to standard error. With `--reply`, standard output carries the result alone: the
//! answer object, the question as the board has it, or the session with what was said in it. Whatever is made on disk is in one temporary
//! folder, removed at the end, Ctrl-C included; only the installation of Synapse is kept for the
//! next time.

mod agent;
mod beside;
mod board;
mod play;
mod screen;
mod session;
mod show;
mod stage;

use std::{future::Future, time::Duration};

use anyhow::{Context as _, bail};

use self::{agent::Agent, play::Play, screen::Screen, stage::Stage};

/// How long the bot may take for what needs nobody's thinking.
const SOON: Duration = Duration::from_secs(30);

/// Shows one question and its answer, from end to end.
///
/// Needs Python 3.10 or newer, for a homeserver of its own; or a homeserver with --homeserver. A
/// board and an agent need it in any case.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Let a board ask: a Superpipeline board of the demo's own, as a process beside the bot. Its
    /// side is shown too.
    #[arg(long)]
    pub board: bool,

    /// Let an agent work: examples/agent.py, as a process beside the bot. You tell it what to do,
    /// answer what it asks, and may stop it with `!stop`.
    #[arg(long, conflicts_with = "board")]
    pub agent: bool,

    /// Reply with this text instead of letting you type, and print the answer object alone on
    /// standard output; with --board, the question as the board has it then; with --agent, the
    /// session and its activities.
    #[arg(long, value_name = "TEXT")]
    pub reply: Option<String>,

    /// Use this homeserver instead of a throwaway one. Two accounts are registered there, unless
    /// --bot and --person name them.
    #[arg(long, value_name = "URL")]
    pub homeserver: Option<String>,

    /// An existing account for the bot. Its password is read from `MATRIX_ELICIT_BOT_PASSWORD`.
    #[arg(
        long,
        value_name = "USER",
        requires = "homeserver",
        requires = "person"
    )]
    pub bot: Option<String>,

    /// An existing account for the person. Its password is read from
    /// `MATRIX_ELICIT_PERSON_PASSWORD`.
    #[arg(long, value_name = "USER", requires = "homeserver", requires = "bot")]
    pub person: Option<String>,
}

impl DemoArgs {
    /// Whether something is to run beside the bot that is written in Python.
    fn needs_python(&self) -> bool {
        self.board || self.agent
    }
}

/// Runs the demo. Ctrl-C ends it in good order, with an error.
///
/// # Errors
/// In words for the user: what is missing, or what did not come.
pub async fn run(args: DemoArgs) -> anyhow::Result<()> {
    let screen = Screen::new(args.reply.is_some());
    // On the heap: the bot starts inside, and that is a large future.
    let setting_up = Box::pin(Stage::set_up(&args, &progress));
    let mut stage = until_interrupted(setting_up).await?;
    let outcome = if args.board {
        until_interrupted(Box::pin(board::perform(args.reply, &mut stage, &screen))).await
    } else if args.agent {
        until_interrupted(Box::pin(session::perform(args.reply, &mut stage, &screen))).await
    } else {
        until_interrupted(Box::pin(perform(args.reply, &mut stage, &screen))).await
    };
    stage.clear().await;
    outcome
}

/// An agent asks the bot.
async fn perform(reply: Option<String>, stage: &mut Stage, screen: &Screen) -> anyhow::Result<()> {
    let agent = Agent::start().await?;
    let api = stage.start_bot(&agent.settings(), &progress).await?;
    let room_id = stage
        .open_room("Upgrade the build image", &progress)
        .await?;
    let mut play = Play::enter(&stage.person, &room_id, screen).await?;
    let request = agent::question(&room_id);
    screen.title("An agent asks");
    screen.say(&format!("POST {api}/v1/elicitations\n{request:#}"));
    let asked = agent.ask(&api, &request).await?;
    let id = asked["elicitation_id"]
        .as_str()
        .context("the bot gave the question no id")?;

    screen.title("The room, as the person sees it");
    let replies = screen::lines(reply);
    let closed = agent.wait_until_closed(&api, id);
    let object = play.until_closed(id, replies, closed).await?;
    play.until_settled().await?;

    screen.title("The agent has the answer, by long-poll");
    screen.say(&format!("GET {api}/v1/elicitations/{id}?wait=55"));
    screen.result(&object);
    let ending = object["state"].as_str().unwrap_or_default();
    let webhook = agent
        .webhook(&format!("elicitation.{ending}"), SOON)
        .await?;
    screen.title("and by webhook, signed");
    screen.say(&format!("webhook-id: {}\n{:#}", webhook.id, webhook.body));
    if webhook.body["data"] != object {
        bail!("the webhook's object is not the one of the long-poll");
    }
    if ending != "answered" {
        bail!("the question is {ending}, and not answered");
    }
    Ok(())
}

/// Runs something until it is done, or until Ctrl-C or SIGTERM.
async fn until_interrupted<T>(doing: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    #[cfg(unix)]
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};

        match signal(SignalKind::terminate()) {
            Ok(mut signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<Option<()>>();
    tokio::select! {
        outcome = doing => outcome,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminated => bail!("interrupted"),
    }
}

fn progress(line: &str) {
    eprintln!("{line}");
}
