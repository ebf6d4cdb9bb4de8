//! Two bots of ours that are alone in a room, where each takes everything that it reads for said to
//! itself: if one read what the other posts, they would never stop.

use matrix_elicit::sandbox::Account;
use serde_json::{Value, json};

use crate::play::PASSWORD;
use crate::scene::{ask_once_joined, at_rest, count, question, traces_in};
use crate::scripted::ScriptedServer;
use crate::support::{BotConfig, BotProcess, soon};

/// Asks, and waits until the card has come back: everything before it is decided by then.
async fn put_up(bot: &BotProcess, request: &Value) {
    ask_once_joined(&bot.api(), request).await;
    let id = request["elicitation_id"].as_str().unwrap();
    let visible = format!("SELECT COUNT(*) FROM elicitations WHERE id = '{id}' AND visible");
    soon("the card to come back", async || {
        (count(bot, &visible) == 1).then_some(())
    })
    .await;
}

/// Two bots in a room without anybody else.
async fn two_alone(named: bool) -> (ScriptedServer, String, [BotProcess; 2]) {
    let server = ScriptedServer::start().await;
    let names = ["one", "two"].map(|name| server.account(name, PASSWORD));
    let room = server.room(&names[0], &[&names[1]]);
    let mut bots = Vec::new();
    for (user_id, other) in names.iter().zip(names.iter().rev()) {
        let account = Account {
            user_id: user_id.clone(),
            device_id: String::new(),
            access_token: String::new(),
            password: PASSWORD.to_owned(),
        };
        let config = BotConfig::at(&server.url(), account);
        let others = if named { vec![other] } else { Vec::new() };
        bots.push(BotProcess::start(config.with("answers.bots", json!(others))).await);
    }
    let bots = bots.try_into().ok().unwrap();
    (server, room, bots)
}

/// What each has put into the room: cards, edits, and all else.
fn left_by(server: &ScriptedServer, room: &str, bots: &[BotProcess; 2]) -> [[usize; 3]; 2] {
    let timeline = server.look(|world| world.timeline(room));
    bots.each_ref().map(|bot| {
        let left = traces_in(&timeline, bot.user_id());
        let edits = left.edits.values().sum();
        [
            left.cards.len(),
            edits,
            left.ticks.len() + left.notices.len(),
        ]
    })
}

/// Pain: loop, blank.
#[tokio::test]
async fn bots_that_are_told_of_each_other_are_silent_among_themselves() {
    let (server, room, bots) = two_alone(true).await;
    // A question in words would be answered by anything at all.
    for (bot, id) in bots.iter().zip(["first", "second"]) {
        put_up(bot, &question(&room, id)).await;
        let mut in_words = question(&room, &format!("{id}-in-words"));
        in_words["options"] = json!([]);
        put_up(bot, &in_words).await;
    }
    // Each edits a card while the other still has a question open.
    for (bot, id) in bots.iter().zip(["first", "second"]) {
        let cancelled = bot.api().cancel(id).await.1;
        assert_eq!(cancelled["state"], "cancelled");
        at_rest(bot).await;
    }
    for round in 0..2 {
        for (index, bot) in bots.iter().enumerate() {
            put_up(bot, &question(&room, &format!("last-{round}-{index}"))).await;
            at_rest(bot).await;
        }
    }
    assert_eq!(left_by(&server, &room, &bots), [[4, 1, 0]; 2]);
    for (bot, id) in bots.iter().zip(["first-in-words", "second-in-words"]) {
        assert_eq!(bot.api().get(id).await.1["state"], "open");
    }
}

/// Pain: loop, blank.
#[tokio::test]
async fn bots_that_know_nothing_of_each_other_leave_each_others_cards_alone() {
    let (server, room, bots) = two_alone(false).await;
    for round in 0..3 {
        for (index, bot) in bots.iter().enumerate() {
            let mut in_words = question(&room, &format!("{round}-{index}"));
            in_words["options"] = json!([]);
            put_up(bot, &in_words).await;
            at_rest(bot).await;
        }
    }
    // The last words of a card are no words of a person either.
    for (index, bot) in bots.iter().enumerate() {
        let id = format!("2-{index}");
        let cancelled = bot.api().cancel(&id).await.1;
        assert_eq!(cancelled["state"], "cancelled");
        at_rest(bot).await;
    }
    for (index, bot) in bots.iter().enumerate() {
        put_up(bot, &question(&room, &format!("last-{index}"))).await;
        at_rest(bot).await;
    }
    assert_eq!(left_by(&server, &room, &bots), [[4, 1, 0]; 2]);
    for (index, bot) in bots.iter().enumerate() {
        for round in 0..2 {
            let (_, object) = bot.api().get(&format!("{round}-{index}")).await;
            assert_eq!(object["state"], "open", "{object:#}");
        }
    }
}
