//! The room of a board: configured, or made for it.

use matrix_elicit::sandbox::Person;
use serde_json::{Value, json};

use super::{SECRET, event_id, known, may_i_run_them};
use crate::scene::CARD;
use crate::stage::people;
use crate::support::{Board, BoardOptions, BotConfig, BotProcess, SOON, homeserver, soon};

/// A board without a room, and the people whom the bot invites into one.
struct Newcomer {
    board: Board,
    bot: BotProcess,
    ada: Person,
    ben: Person,
}

impl Newcomer {
    async fn start(board: BoardOptions, encrypted: bool) -> Self {
        let board = known(board).start().await;
        let (ada, ben) = people().await;
        let config = BotConfig::new(homeserver().await).await;
        let settings = json!({
            "base_url": board.url(),
            "agent_token": board.agent_token(),
            "push_secrets": [SECRET],
            "invite": [ada.user_id(), ben.user_id()],
            "encrypted": encrypted,
            "sweep": "1s",
            "people": {"bearer": {ada.user_id(): "token-of-ada", ben.user_id(): "token-of-ben"}},
        });
        let config = config.with_path(&["boards", board.id()], settings);
        let public_url = json!(config.url());
        let bot = BotProcess::start(config.with("http.public_url", public_url)).await;
        let push_url = format!("{}/v1/boards/{}/push", bot.url(), board.id());
        board.until_subscribed(&push_url).await;
        Self {
            board,
            bot,
            ada,
            ben,
        }
    }

    /// The room that the bot has made, once it has.
    async fn room(&self) -> String {
        soon("a room to be made", async || {
            let log = self.bot.log();
            let (_, after) = log.split_once("made !")?;
            let id = after.split_whitespace().next()?;
            Some(format!("!{id}"))
        })
        .await
    }

    async fn name(&self, room: &str) -> Option<String> {
        let state = self.ada.state(room, "m.room.name", "").await;
        state.unwrap()?["name"].as_str().map(str::to_owned)
    }
}

async fn card(person: &Person, room: &str, id: &str) -> String {
    let carries = |event: &Value| event["content"][CARD]["elicitation_id"] == id;
    let found = person.wait_for(room, "the card", SOON, carries).await;
    event_id(&found.unwrap())
}

#[tokio::test]
async fn a_board_gets_a_room_when_it_first_asks_and_people_are_invited_into_it() {
    let office = Newcomer::start(BoardOptions::default().with_name("Build board"), false).await;
    assert!(
        !office.bot.log().contains("made !"),
        "nothing was asked yet"
    );
    let id = office.board.ask(&may_i_run_them()).await;
    let room = office.room().await;
    for person in [&office.ada, &office.ben] {
        person.join(&room).await.unwrap();
    }
    assert_eq!(office.name(&room).await.as_deref(), Some("Build board"));
    let topic = office
        .ada
        .state(&room, "m.room.topic", "")
        .await
        .unwrap()
        .unwrap();
    let topic = topic["topic"].as_str().unwrap();
    assert!(
        topic.contains("Build board") && topic.contains("typing"),
        "{topic}"
    );
    let card = card(&office.ada, &room, &id).await;
    office.ada.reply(&room, &card, "1").await.unwrap();
    office.board.until_answered(&id).await;
    let events = office.ada.timeline(&room).await.unwrap();
    let encrypted = events
        .iter()
        .any(|event| event["type"] == "m.room.encryption");
    assert!(!encrypted);
}

#[tokio::test]
async fn many_first_questions_at_once_make_one_room_also_across_a_kill() {
    let mut office = Newcomer::start(BoardOptions::default(), false).await;
    let question = may_i_run_them();
    let asking = (0..8).map(|_| office.board.ask(&question));
    let ids = futures_util::future::join_all(asking).await;
    office.bot.kill9();
    office.bot.start_again().await;
    let room = office.room().await;
    office.ada.join(&room).await.unwrap();
    for id in &ids {
        card(&office.ada, &room, id).await;
    }
    let made = office.bot.log().matches(&format!("made {room}")).count();
    assert_eq!(office.bot.log().matches("made !").count(), made, "one room");
    assert_eq!(made, 1);
}

#[tokio::test]
async fn a_room_is_named_after_its_board_until_somebody_else_names_it() {
    let office = Newcomer::start(BoardOptions::default(), false).await;
    office.board.ask(&may_i_run_them()).await;
    let room = office.room().await;
    office.ada.join(&room).await.unwrap();
    assert_eq!(
        office.name(&room).await,
        None,
        "a board without a name names nothing"
    );
    let named = async |name: &str| {
        soon(&format!("the room to be called {name}"), async || {
            (office.name(&room).await.as_deref() == Some(name)).then_some(())
        })
        .await;
    };
    office.board.rename(Some("Build board")).await;
    office.board.ask(&may_i_run_them()).await;
    named("Build board").await;
    office.board.rename(Some("Release board")).await;
    office.board.ask(&may_i_run_them()).await;
    named("Release board").await;
    // A name is never taken away.
    office.board.rename(None).await;
    let id = office.board.ask(&may_i_run_them()).await;
    card(&office.ada, &room, &id).await;
    named("Release board").await;
    let ours = json!({"name": "Our own name"});
    office
        .ada
        .set_state(&room, "m.room.name", "", &ours)
        .await
        .unwrap();
    office.board.rename(Some("Another board")).await;
    let id = office.board.ask(&may_i_run_them()).await;
    card(&office.ada, &room, &id).await;
    office.board.rename(Some("Yet another board")).await;
    let id = office.board.ask(&may_i_run_them()).await;
    card(&office.ada, &room, &id).await;
    named("Our own name").await;
}

#[tokio::test]
async fn in_an_encrypted_room_the_card_waits_for_the_first_person() {
    use crate::support::EncryptedPerson;

    let board = known(BoardOptions::default()).start().await;
    let synapse = homeserver().await;
    let ada = EncryptedPerson::register(synapse, &crate::support::unique("ada")).await;
    let config = BotConfig::new(synapse).await;
    let settings = json!({
        "base_url": board.url(), "agent_token": board.agent_token(), "push_secrets": [SECRET],
        "invite": [ada.user_id()], "encrypted": true, "sweep": "1h",
        "people": {"bearer": {ada.user_id(): "token-of-ada"}},
    });
    let config = config.with_path(&["boards", board.id()], settings);
    let public_url = json!(config.url());
    let bot = BotProcess::start(config.with("http.public_url", public_url)).await;
    board
        .until_subscribed(&format!("{}/v1/boards/{}/push", bot.url(), board.id()))
        .await;
    let id = board.ask(&may_i_run_them()).await;
    let room = soon("a room to be made", async || {
        let log = bot.log();
        let (_, after) = log.split_once("made !")?;
        Some(format!("!{}", after.split_whitespace().next()?))
    })
    .await;
    ada.join(&room).await;
    let carries = |event: &Value| event["content"][CARD]["elicitation_id"] == id.as_str();
    ada.wait_for_decrypted(&room, "the card", carries).await;
    ada.send_text(&room, "2").await;
    assert_eq!(board.until_answered(&id).await["answer"]["option"], "skip");
}

#[tokio::test]
async fn a_room_that_the_bot_is_not_in_yet_gets_its_questions_as_soon_as_it_is() {
    let board = known(BoardOptions::default()).start().await;
    let (ada, _) = people().await;
    let config = BotConfig::new(homeserver().await).await;
    let room = ada
        .create_room(&matrix_elicit::sandbox::RoomOptions::default())
        .await
        .unwrap();
    let settings = json!({
        "base_url": board.url(), "agent_token": board.agent_token(), "push_secrets": [SECRET],
        "room": room, "sweep": "1h", "people": {"bearer": {ada.user_id(): "token-of-ada"}},
    });
    let config = config.with_path(&["boards", board.id()], settings);
    let public_url = json!(config.url());
    let bot = BotProcess::start(config.with("http.public_url", public_url)).await;
    board
        .until_subscribed(&format!("{}/v1/boards/{}/push", bot.url(), board.id()))
        .await;
    let id = board.ask(&may_i_run_them()).await;
    // Nothing is acknowledged that is not stored.
    let pushes = board.until_pushed(&id).await;
    assert_eq!(pushes[0]["state"], "dead", "{pushes:#?}");
    ada.invite(&room, bot.user_id()).await.unwrap();
    let card = card(&ada, &room, &id).await;
    ada.reply(&room, &card, "1").await.unwrap();
    board.until_answered(&id).await;
}

#[tokio::test]
async fn a_question_that_could_not_be_put_up_any_more_is_put_up_again_when_the_bot_is_back() {
    let office =
        super::Office::with(|config| config.with("boards.brd_7c1f.sweep", json!("1s"))).await;
    let (id, old) = office.ask(may_i_run_them()).await;
    office
        .ada
        .kick(&office.room, office.bot.user_id())
        .await
        .unwrap();
    office
        .bot
        .logged(&format!("{id} of board:brd_7c1f is undeliverable"))
        .await;
    office
        .ada
        .invite(&office.room, office.bot.user_id())
        .await
        .unwrap();
    let again = |event: &Value| {
        event["content"][CARD]["elicitation_id"] == id.as_str() && event["event_id"] != old.as_str()
    };
    let card = office
        .ada
        .wait_for(&office.room, "the card again", SOON, again)
        .await
        .unwrap();
    office
        .ada
        .reply(&office.room, &event_id(&card), "1")
        .await
        .unwrap();
    office.board.until_answered(&id).await;
}

#[tokio::test]
async fn a_boards_questions_follow_the_upgrade_of_its_room() {
    let office = super::Office::with(|config| config).await;
    let (id, _) = office.ask(may_i_run_them()).await;
    let next = office.ada.upgrade(&office.room, "11").await.unwrap();
    office
        .ada
        .invite(&next, office.bot.user_id())
        .await
        .unwrap();
    let moved = card(&office.ada, &next, &id).await;
    office.ada.reply(&next, &moved, "1").await.unwrap();
    office.board.until_answered(&id).await;
    let later = office.board.ask(&may_i_run_them()).await;
    card(&office.ada, &next, &later).await;
}
