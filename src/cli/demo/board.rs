//! The demo with a board: the question is the board's, the bot carries it into a room that it makes
//! itself, and the board takes the answer.

mod double;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use self::double::Double;
use super::{
    SOON,
    play::Play,
    progress,
    screen::{self, Screen},
    show::{local_part, said},
    stage::{Settings, Stage},
};
use crate::sandbox::{Person, free_port};

/// As the person is known to the board.
const USER: &str = "usr_ada";

/// An agent asks on the board.
pub async fn perform(
    reply: Option<String>,
    stage: &mut Stage,
    screen: &Screen,
) -> anyhow::Result<()> {
    let python = stage.python.clone().context("a board needs Python")?;
    let id = board_id(stage.is_given());
    let mut board = Double::start(&python, stage.folder(), &id, USER, screen).await?;
    progress(&format!("board {id} at {}, a process beside", board.url()));
    let port = free_port()?;
    let settings = settings(&board, &id, stage.person.user_id(), port);
    stage.start_bot(&settings, &progress).await?;
    let outcome = ask(reply, &board, stage, screen).await;
    // What it has still to tell comes before the end, also of a demo that has failed.
    board.stop().await;
    let object = outcome?;
    screen.title("The question, as the board has it now");
    screen.result(&object);
    match object["state"].as_str().unwrap_or_default() {
        "answered" => Ok(()),
        state => bail!("the question is {state} on the board, and not answered"),
    }
}

/// The question once it is over on the board.
async fn ask(
    reply: Option<String>,
    board: &Double,
    stage: &Stage,
    screen: &Screen,
) -> anyhow::Result<Value> {
    board.until_subscribed().await?;
    screen.title("An agent asks on the board");
    let question = question();
    screen.say(&format!("{question:#}"));
    let id = board.ask(&question).await?;

    let (person, bot) = (&stage.person, stage.bot.user_id());
    let room_id = person
        .wait_for_invitation(bot, SOON)
        .await
        .context("the board's room")?;
    screen.title("The room, as the person sees it");
    person.join(&room_id).await?;
    screen.say(&introduced(person, bot, &room_id).await?);
    let mut play = Play::enter(person, &room_id, screen).await?;
    let object = play
        .until_closed(&id, screen::lines(reply), board.until_over(&id))
        .await?;
    play.until_settled().await?;
    Ok(object)
}

/// The id of the demo's board. Where the bot may be known to real boards it is none of theirs.
fn board_id(may_have_others: bool) -> String {
    if may_have_others {
        format!("brd_demo_{:08x}", rand::random::<u32>())
    } else {
        "brd_7c1f".to_owned()
    }
}

/// What the bot has to know of the board. The board has to know where the bot is before the bot
/// runs, so the bot does not choose its port.
fn settings(board: &Double, id: &str, person: &str, port: u16) -> Settings {
    let address = format!("127.0.0.1:{port}");
    let carried = json!({
        "base_url": board.url(),
        "agent_token": "env:BOARD_AGENT_TOKEN",
        "push_secrets": ["env:BOARD_PUSH_SECRET"],
        "invite": [person],
        "people": {"bearer": {person: "env:PERSON_TOKEN"}},
    });
    Settings {
        config: json!({
            "http": {"listen": address, "public_url": format!("http://{address}")},
            "boards": {id: carried},
        }),
        secrets: vec![
            ("BOARD_AGENT_TOKEN", board.agent_token().to_owned()),
            (
                "BOARD_PUSH_SECRET",
                format!("{:032x}", rand::random::<u128>()),
            ),
            ("PERSON_TOKEN", board.person_token().to_owned()),
        ],
    }
}

/// The room that the bot made: who invited whom, what it is called, what it is for.
async fn introduced(person: &Person, bot: &str, room_id: &str) -> anyhow::Result<String> {
    let mut said_of = Vec::new();
    for (event_type, key) in [("m.room.name", "name"), ("m.room.topic", "topic")] {
        let state = person.state(room_id, event_type, "").await?;
        let text = state.and_then(|state| state[key].as_str().map(str::to_owned));
        said_of.push(text.unwrap_or_default());
    }
    let (person, bot) = (local_part(person.user_id()), local_part(bot));
    let what = format!("{bot} invited {person} into “{}”", said_of[0]);
    Ok(said(&what, &said_of[1]))
}

/// The contract's own example, "built: a question with two options", as a board has it.
fn question() -> Value {
    json!({
        "elicitationId": "elc_7f3c",
        "cardId": "crd_51d0",
        "cardTitle": "Upgrade the build image",
        "runId": "run_12",
        "stageKey": "build",
        "agentId": "agt_31d0",
        "question": "The tests need network access. May I run them?",
        "options": [
            {"name": "run_them", "title": "Run the tests"},
            {"name": "skip", "title": "Skip them"},
        ],
    })
}
