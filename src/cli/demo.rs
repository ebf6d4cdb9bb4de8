//! `matrix-elicit demo`: one question from an agent's request to a person's reply in a real room
//! and back, on a homeserver that is made for it and thrown away.
//!
//! Progress goes to standard error. With `--reply`, standard output carries the answer object
//! alone. Whatever is made on disk is in one temporary folder, removed at the end, Ctrl-C
//! included; only the installation of Synapse is kept for the next time.

mod agent;
mod show;
mod stage;

use std::{
    future::Future,
    io::{self, BufRead as _, Write as _},
    pin::pin,
    time::Duration,
};

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};

use self::{
    agent::Agent,
    show::{Shown, printable, shown},
    stage::Stage,
};
use crate::sandbox::{Following, Person};

/// How long the bot may take for what needs nobody's thinking.
const SOON: Duration = Duration::from_secs(30);
/// How long to wait for the room to settle after the answer: the tick and the edited card.
const AFTERMATH: Duration = Duration::from_secs(5);

/// Shows one question and its answer, from end to end.
///
/// Needs Python 3.10 or newer, for a homeserver of its own; or a homeserver with --homeserver.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Reply with this text instead of letting you type, and print the answer object alone on
    /// standard output.
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

/// Runs the demo. Ctrl-C ends it in good order, with an error.
///
/// # Errors
/// In words for the user: what is missing, or what did not come.
pub async fn run(args: DemoArgs) -> anyhow::Result<()> {
    let screen = Screen {
        scripted: args.reply.is_some(),
    };
    let agent = Agent::start().await?;
    // On the heap: the bot starts inside, and that is a large future.
    let setting_up = Box::pin(Stage::set_up(&args, &agent, &progress));
    let mut stage = until_interrupted(setting_up).await?;
    let outcome = until_interrupted(perform(args.reply, &mut stage, &agent, screen)).await;
    stage.clear().await;
    outcome
}

async fn perform(
    reply: Option<String>,
    stage: &mut Stage,
    agent: &Agent,
    screen: Screen,
) -> anyhow::Result<()> {
    let room_id = stage.open_room(&progress).await?;
    let (_, room) = stage.person.follow(&room_id).await?;
    let request = agent::question(&room_id);
    screen.title("An agent asks");
    screen.say(&format!("POST {}/v1/elicitations\n{request:#}", stage.api));
    let asked = agent.ask(&stage.api, &request).await?;
    let id = asked["elicitation_id"]
        .as_str()
        .context("the bot gave the question no id")?;

    screen.title("The room, as the person sees it");
    let mut play = Play {
        person: &stage.person,
        room,
        room_id,
        screen,
        aftermath: 0,
    };
    let replies = reply.map_or_else(typed_lines, one_line);
    let object = play
        .until_closed(id, replies, agent.wait_until_closed(&stage.api, id))
        .await?;
    // A room that stays silent is a pity, and no reason to withhold the answer.
    if let Ok(settled) = tokio::time::timeout(AFTERMATH, play.until_settled()).await {
        settled?;
    }

    screen.title("The agent has the answer, by long-poll");
    screen.say(&format!("GET {}/v1/elicitations/{id}?wait=55", stage.api));
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

/// The room during the demo: what is said there, and what the person says.
struct Play<'a> {
    person: &'a Person,
    room: Following,
    room_id: String,
    screen: Screen,
    /// How many signs there are that the bot is done: the tick, the edited card.
    aftermath: u32,
}

impl Play<'_> {
    /// Shows the room and sends what is replied once the card is there, until the question is
    /// `closed`. A person has all the time in the world; everything else has [`SOON`].
    async fn until_closed(
        &mut self,
        id: &str,
        mut replies: mpsc::Receiver<String>,
        closed: impl Future<Output = anyhow::Result<Value>>,
    ) -> anyhow::Result<Value> {
        let mut closed = pin!(closed);
        let mut card_is_there = false;
        let mut more_to_come = true;
        let mut has_replied = false;
        let mut give_up = Instant::now() + SOON;
        loop {
            let may_reply = card_is_there && more_to_come;
            tokio::select! {
                object = &mut closed => return object,
                events = self.room.next() => {
                    let events = events?;
                    card_is_there |= events.iter().any(|event| agent::is_card(event, id));
                    self.show(&events);
                    if !events.is_empty() && card_is_there && more_to_come {
                        self.screen.prompt();
                    }
                }
                line = replies.recv(), if may_reply => match line {
                    Some(line) if line.trim().is_empty() => self.screen.prompt(),
                    Some(line) => {
                        self.person.send_text(&self.room_id, line.trim_end()).await?;
                        has_replied = true;
                    }
                    None if has_replied => {
                        more_to_come = false;
                        give_up = Instant::now() + SOON;
                    }
                    None => bail!("nothing was typed; `--reply TEXT` replies for you"),
                },
                () = tokio::time::sleep_until(give_up), if !may_reply => {
                    let seconds = SOON.as_secs();
                    if card_is_there {
                        bail!("no answer within {seconds} s: the reply was not taken as one");
                    }
                    bail!("the card did not come within {seconds} s");
                }
            }
        }
    }

    /// Shows the room until the bot has ticked the reply and edited the card.
    async fn until_settled(&mut self) -> anyhow::Result<()> {
        while self.aftermath < 2 {
            let events = self.room.next().await?;
            self.show(&events);
        }
        Ok(())
    }

    fn show(&mut self, events: &[Value]) {
        for event in events {
            // What was typed stands on the screen already.
            if !self.screen.scripted && event["sender"] == self.person.user_id() {
                continue;
            }
            let (kind, text) = shown(event);
            if kind == Shown::Nothing {
                continue;
            }
            if kind == Shown::Aftermath {
                self.aftermath += 1;
            }
            self.screen.interject(&text);
        }
    }
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

/// Where things are shown: on standard output, unless that is for the answer alone.
#[derive(Debug, Clone, Copy)]
struct Screen {
    scripted: bool,
}

impl Screen {
    fn say(self, text: &str) {
        let text = printable(text);
        if self.scripted {
            eprintln!("{text}");
        } else {
            println!("{text}");
        }
    }

    fn title(self, text: &str) {
        self.say(&format!("\n── {text} ──"));
    }

    /// The answer object, for scripts as for people.
    fn result(self, object: &Value) {
        if self.scripted {
            println!("{object:#}");
        } else {
            self.say(&format!("{object:#}"));
        }
    }

    fn prompt(self) {
        if !self.scripted {
            print!("you> ");
            // A prompt that cannot be written is missed by nobody.
            let _ = io::stdout().flush();
        }
    }

    /// Says something while a prompt may be waiting on this line.
    fn interject(self, text: &str) {
        if !self.scripted {
            print!("\r");
        }
        self.say(text);
    }
}

fn one_line(text: String) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    // The channel is empty, so there is room.
    let _ = sender.try_send(text);
    lines
}

/// Standard input by the line. Read on a thread of its own that nobody waits for: a read that
/// never returns must not keep the program from ending.
fn typed_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}
