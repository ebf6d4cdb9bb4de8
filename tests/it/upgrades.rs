//! Rooms are upgraded: the bot follows those who may do that, and takes its open questions along.

use std::time::Duration;

use matrix_elicit::sandbox::{Homeserver, Person, RoomOptions};
use reqwest::Method;
use serde_json::{Value, json};

use crate::relay::{Lag, Relay};
use crate::scene::{
    Someone, Traces, ask_and_show, at_rest, one_of_each, opened, question, told, traces,
};
use crate::stage::{Stage, card_of, id, may_i_run_them};
use crate::support::{AGENT, BotConfig, BotProcess, WebhookSink, homeserver, soon, unique};

/// Waits until the bot has logged something.
async fn logs(bot: &BotProcess, words: &str) {
    soon(&format!("the bot to log {words:?}"), async || {
        bot.log().contains(words).then_some(())
    })
    .await;
}

/// Makes a room whose making says something beyond the usual, with these invited.
async fn room_made_with(who: &Person, making: Value, invite: &[&str]) -> String {
    let server = Homeserver::new(&homeserver().await.url()).unwrap();
    let server = server.as_account(who.account());
    let body = json!({"preset": "public_chat", "invite": invite, "creation_content": making});
    let made = server.call(Method::POST, &["createRoom"], &[], Some(&body));
    made.await.unwrap()["room_id"].as_str().unwrap().to_owned()
}

/// Says in a room that another one takes its place.
async fn bury(who: &Person, room: &str, successor: &str) {
    let tombstone = json!({"body": "this way", "replacement_room": successor});
    let said = who.set_state(room, "m.room.tombstone", "", &tombstone);
    said.await.unwrap();
}

/// How the bot stands in a room.
async fn membership(reader: &Person, room: &str, bot: &BotProcess) -> Option<String> {
    let members = reader.room_members(room).await.unwrap();
    let found = members.into_iter().find(|(user, _)| user == bot.user_id());
    found.map(|(_, membership)| membership)
}

fn open_to_all(version: &str, bot: &str) -> RoomOptions {
    RoomOptions {
        preset: Some("public_chat".to_owned()),
        version: Some(version.to_owned()),
        invite: vec![bot.to_owned()],
        ..RoomOptions::default()
    }
}

/// Pain: power.
#[tokio::test]
async fn an_open_question_goes_with_its_room_and_is_answered_in_the_successor() {
    let sink = WebhookSink::start().await;
    let config = BotConfig::new(homeserver().await).await.with_webhook(&sink);
    let ada = Someone::new(homeserver().await, "ada", false).await;
    let options = open_to_all("11", config.user_id());
    let room = ada.plain().create_room(&options).await.unwrap();
    let bot = BotProcess::start(config).await;
    let old = ask_and_show(&bot, &ada, &question(&room, "q")).await;
    at_rest(&bot).await;

    let next = ada.plain().upgrade(&room, "12").await.unwrap();
    let card = ada.reads_card(&next, "q").await;
    let card = card["event_id"].as_str().unwrap().to_owned();
    let moved = soon("the card to be noted", async || {
        let object = bot.api().get("q").await.1;
        (object["event_id"] == *card).then_some(object)
    })
    .await;
    let mut expected = old.clone();
    expected["room_id"] = json!(next);
    expected["event_id"] = json!(card);
    assert_eq!(moved, expected);
    let answer = ada.say(&next, "2").await;
    let answered = bot.api().until_answered("q").await;
    assert_eq!(answered["answer"]["event_id"], answer);
    assert_eq!(answered["room_id"], next);
    at_rest(&bot).await;
    let left = traces(ada.plain(), &next, bot.user_id()).await;
    assert_eq!(left, one_of_each(&[(card.clone(), answer)]));
    let left = traces(ada.plain(), &room, bot.user_id()).await;
    let old_card = card_of(&old).to_owned();
    let expected = Traces {
        cards: vec![old_card.clone()],
        ..Traces::default()
    };
    assert_eq!(left, expected);
    let told = told(&sink).len();
    let opened: Vec<(Value, Value)> = sink
        .received()
        .into_iter()
        .filter(|received| received.json["type"] == "elicitation.open")
        .map(|received| {
            let object = &received.json["data"];
            (object["room_id"].clone(), object["event_id"].clone())
        })
        .collect();
    let expected = [(json!(room), json!(old_card)), (json!(next), json!(card))];
    assert_eq!((opened.as_slice(), told), (expected.as_slice(), 3));
    let followed = bot.api().metric("elicit_upgrades_followed_total").await;
    assert_eq!(followed, Some(1.0));

    // The old room's name means the new one.
    let asked = bot.api().ask_fine(&question(&room, "r")).await;
    assert_eq!(asked["room_id"], next);
    ada.reads_card(&next, "r").await;
}

#[tokio::test]
async fn an_encrypted_room_by_invitation_is_followed_whoever_invites() {
    let ada = Someone::new(homeserver().await, "ada", true).await;
    let ben = homeserver().await.person(&unique("ben")).await.unwrap();
    // The bot follows no invitation of Ben's; but it was in the room, and the room moved.
    let config = BotConfig::new(homeserver().await)
        .await
        .with("matrix.join", json!([ada.user_id()]));
    let room = ada.make_room(&[config.user_id(), ben.user_id()]).await;
    ben.join(&room).await.unwrap();
    let levels = ada.plain().state(&room, "m.room.power_levels", "").await;
    let mut levels = levels.unwrap().unwrap();
    levels["users"][ben.user_id()] = json!(100);
    let needed = levels["events"]["m.room.tombstone"].as_i64().unwrap_or(100);
    levels["events"]["m.room.tombstone"] = json!(needed.min(100));
    let set = ada
        .plain()
        .set_state(&room, "m.room.power_levels", "", &levels);
    set.await.unwrap();
    let bot = BotProcess::start(config).await;
    ask_and_show(&bot, &ada, &question(&room, "q")).await;

    let next = ben.upgrade(&room, "12").await.unwrap();
    ben.invite(&next, ada.user_id()).await.unwrap();
    match &ada {
        Someone::Encrypting(ada) => ada.join(&next).await,
        Someone::Plain(ada) => ada.join(&next).await.unwrap(),
    };
    logs(
        &bot,
        &format!("joining {next}, the successor of {room}, failed"),
    )
    .await;
    ben.invite(&next, bot.user_id()).await.unwrap();
    let card = ada.reads_card(&next, "q").await;
    let card = card["event_id"].as_str().unwrap().to_owned();
    let answer = ada.reply(&next, &card, "3").await;
    let answered = bot.api().until_answered("q").await;
    assert_eq!(answered["answer"]["event_id"], answer);
    assert_eq!(answered["answer"]["encrypted"], true);
    at_rest(&bot).await;
    let left = traces(ada.plain(), &next, bot.user_id()).await;
    assert_eq!(left, one_of_each(&[(card, answer)]));
}

#[tokio::test]
async fn the_rules_of_a_room_hold_in_its_successors() {
    let ada = Someone::new(homeserver().await, "ada", false).await;
    let ben = homeserver().await.person(&unique("ben")).await.unwrap();
    let config = BotConfig::new(homeserver().await).await;
    let options = open_to_all("11", config.user_id());
    let room = ada.plain().create_room(&options).await.unwrap();
    let config = config
        .with_path(&["rooms", &room], json!({"users": [ada.user_id()]}))
        .with_path(&["agents", AGENT, "rooms"], json!([room]));
    let mut bot = BotProcess::start(config).await;
    ask_and_show(&bot, &ada, &question(&room, "q")).await;
    let next = ada.plain().upgrade(&room, "11").await.unwrap();
    ada.reads_card(&next, "q").await;
    let last = ada.plain().upgrade(&next, "12").await.unwrap();
    let card = ada.reads_card(&last, "q").await;
    ben.join(&last).await.unwrap();
    for restarted in [false, true] {
        if restarted {
            bot.kill9();
            bot.start_again().await;
        }
        for name in [&room, &next, &last] {
            let id = unique("more");
            let asked = bot.api().ask_fine(&question(name, &id)).await;
            assert_eq!(asked["room_id"], last);
            ada.reads_card(&last, &id).await;
            bot.api().cancel(&id).await;
        }
    }
    let card = card["event_id"].as_str().unwrap();
    let no = ben.reply(&last, card, "1").await.unwrap();
    ada.reads(&last, "a refusal", |event| {
        event["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == no
            && event["sender"] == bot.user_id()
    })
    .await;
    let yes = ada.reply(&last, card, "2").await;
    let answered = bot.api().until_answered("q").await;
    assert_eq!(answered["answer"]["event_id"], yes);
}

#[tokio::test]
async fn a_rule_by_alias_holds_in_both_rooms_of_an_upgrade() {
    let ada = Someone::new(homeserver().await, "ada", false).await;
    let ben = homeserver().await.person(&unique("ben")).await.unwrap();
    let config = BotConfig::new(homeserver().await).await;
    let name = unique("team");
    let mut options = open_to_all("11", config.user_id());
    options.alias = Some(name.clone());
    // Enough to speak in an upgraded room.
    options.power_levels = Some(json!({"users": {ada.user_id(): 100, ben.user_id(): 50}}));
    let room = ada.plain().create_room(&options).await.unwrap();
    ben.join(&room).await.unwrap();
    let alias = format!("#{name}:elicit.test");
    let config = config
        .with_path(&["rooms", &alias], json!({"users": [ada.user_id()]}))
        .with_path(&["agents", AGENT, "rooms"], json!([alias]));
    let mut bot = BotProcess::start(config).await;
    let old = ask_and_show(&bot, &ada, &question(&room, "q")).await;
    let next = ada.plain().upgrade(&room, "12").await.unwrap();
    let card = ada.reads_card(&next, "q").await;
    ben.join(&next).await.unwrap();
    let card = card["event_id"].as_str().unwrap();
    ben.reply(&next, card, "1").await.unwrap();
    // By now the alias leads to the successor.
    bot.kill9();
    bot.start_again().await;
    assert_eq!(ben.join(&alias).await.unwrap(), next);
    ben.reply(&room, card_of(&old), "1").await.unwrap();
    ben.reply(&next, card, "1").await.unwrap();
    for name in [&room, &next, &alias] {
        let id = unique("more");
        let asked = bot.api().ask_fine(&question(name, &id)).await;
        assert_eq!(asked["room_id"], next);
        bot.api().cancel(&id).await;
    }
    let yes = ada.reply(&next, card, "2").await;
    let answered = bot.api().until_answered("q").await;
    assert_eq!(answered["answer"]["event_id"], yes);
}

/// Pain: power.
#[tokio::test]
async fn a_chain_of_upgrades_through_kills_puts_one_card_into_each_room() {
    let ada = Someone::new(homeserver().await, "ada", false).await;
    let sink = WebhookSink::start().await;
    let config = BotConfig::new(homeserver().await).await.with_webhook(&sink);
    let options = open_to_all("11", config.user_id());
    let mut rooms = vec![ada.plain().create_room(&options).await.unwrap()];
    let mut bot = BotProcess::start(config).await;
    ask_and_show(&bot, &ada, &question(&rooms[0], "q")).await;
    for round in 0..6 {
        let down_before = round == 0;
        if down_before {
            bot.kill9();
        }
        let next = ada.plain().upgrade(&rooms[round], "12").await.unwrap();
        if !down_before {
            // Between any two steps of the way.
            tokio::time::sleep(Duration::from_millis(rand::random_range(0..400))).await;
            bot.kill9();
        }
        bot.start_again().await;
        ada.reads_card(&next, "q").await;
        rooms.push(next);
    }
    let last = rooms.last().unwrap();
    let answer = ada.say(last, "1").await;
    let answered = bot.api().until_answered("q").await;
    assert_eq!(answered["answer"]["event_id"], answer);
    at_rest(&bot).await;
    for room in &rooms {
        let left = traces(ada.plain(), room, bot.user_id()).await;
        assert_eq!(left.cards.len(), 1, "{room}: {left:?}");
    }
    let mut told: Vec<String> = told(&sink).into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(told.remove(0), "elicitation.answered");
    assert_eq!(told, vec!["elicitation.open"; rooms.len()]);
}

#[tokio::test]
async fn a_card_that_the_upgraded_room_refuses_is_put_up_in_the_successor() {
    let relay = Relay::start(&homeserver().await.url()).await;
    let ada = Someone::new(homeserver().await, "ada", false).await;
    let config = BotConfig::new(homeserver().await)
        .await
        .with("matrix.homeserver", json!(relay.url()));
    let options = open_to_all("11", config.user_id());
    let room = ada.plain().create_room(&options).await.unwrap();
    let mut bot = BotProcess::start(config).await;
    ask_and_show(&bot, &ada, &question(&room, "first")).await;
    at_rest(&bot).await;
    // The bot does not hear of the upgrade, and thinks that it may speak there.
    relay.lag(Lag::Unanswered, &["/sync"]);
    let next = ada.plain().upgrade(&room, "12").await.unwrap();
    let asked = bot.api().ask_fine(&question(&room, "second")).await;
    assert_eq!(asked["room_id"], room);
    logs(&bot, &format!("{room}: the room was upgraded")).await;
    assert_eq!(bot.api().get("second").await.1["state"], "queued");
    bot.kill9();
    relay.catch_up().await;
    bot.start_again().await;
    for id in ["first", "second"] {
        ada.reads_card(&next, id).await;
        assert_eq!(opened(&bot.api(), id).await["room_id"], next);
    }
    at_rest(&bot).await;
    let cards = |traces: Traces| traces.cards.len();
    assert_eq!(cards(traces(ada.plain(), &next, bot.user_id()).await), 2);
    assert_eq!(cards(traces(ada.plain(), &room, bot.user_id()).await), 1);
}

#[tokio::test]
async fn a_room_that_does_not_name_its_predecessor_is_no_successor() {
    let stage = Stage::new().await;
    let (ada, bot, room) = (&stage.ada, &stage.bot, &stage.room);
    let question = stage.ask(may_i_run_them()).await;
    let elsewhere = stage.another_room(RoomOptions::default()).await;
    let strange = room_made_with(ada, json!({}), &[]).await;
    for (successor, then) in [(&strange, "leave"), (&elsewhere, "join")] {
        bury(ada, room, successor).await;
        logs(
            bot,
            &format!("{room} is not followed to {successor}: it does not name the room"),
        )
        .await;
        soon("the bot to be where it belongs", async || {
            let stands = membership(ada, successor, bot).await;
            (stands.as_deref() == Some(then)).then_some(())
        })
        .await;
    }
    let left = ada.room_members(&strange).await.unwrap();
    assert_eq!(stage.api.get(id(&question)).await.1, question);
    stage.everything_is_said().await;
    let yes = ada.reply(room, card_of(&question), "1").await.unwrap();
    assert_eq!(stage.answered(&question).await["answer"]["event_id"], yes);
    // It was tried once.
    assert_eq!(ada.room_members(&strange).await.unwrap(), left);
    let joined = format!("joined {strange}");
    assert_eq!(bot.log().matches(&joined).count(), 1);
    let refused = stage.api.metric("elicit_upgrades_refused_total").await;
    assert_eq!(refused, Some(2.0));
}

#[tokio::test]
async fn whoever_may_not_upgrade_a_room_cannot_make_its_successor() {
    let stage = Stage::new().await;
    let (ada, ben, bot, room) = (&stage.ada, &stage.ben, &stage.bot, &stage.room);
    let question = stage.ask(may_i_run_them()).await;
    let claim = json!({"predecessor": {"room_id": room, "event_id": "$any"}});
    let claimed = room_made_with(ben, claim.clone(), &[bot.user_id()]).await;
    logs(bot, &format!("joined {claimed}")).await;
    // A claim alone is nothing: the room itself says nothing of it.
    stage.everything_is_said().await;
    assert_eq!(stage.api.get(id(&question)).await.1, question);
    assert!(!bot.log().contains("not followed"));
    // Nor does it help when the room is led there.
    bury(ada, room, &claimed).await;
    logs(
        bot,
        &format!("{room} is not followed to {claimed}: whoever made it has not the power"),
    )
    .await;
    assert_eq!(stage.api.get(id(&question)).await.1, question);
    // It was there by invitation, and stays.
    let stands = membership(ben, &claimed, bot).await;
    assert_eq!(stands.as_deref(), Some("join"));
    // Whoever may upgrade the room need not do it by the button.
    let made = room_made_with(ada, claim, &[]).await;
    bury(ada, room, &made).await;
    let moved = soon("the question to move", async || {
        let object = stage.api.get(id(&question)).await.1;
        (object["room_id"] == *made && object["event_id"].is_string()).then_some(object)
    })
    .await;
    let yes = ada.reply(&made, card_of(&moved), "1").await.unwrap();
    assert_eq!(stage.answered(&question).await["answer"]["event_id"], yes);
}

/// Pain: power.
#[tokio::test]
async fn a_tombstone_of_somebody_without_the_power_leads_nowhere() {
    let ada = Someone::new(homeserver().await, "ada", false).await;
    let config = BotConfig::new(homeserver().await).await;
    let options = open_to_all("11", config.user_id());
    let room = ada.plain().create_room(&options).await.unwrap();
    let mut bot = BotProcess::start(config).await;
    let open = ask_and_show(&bot, &ada, &question(&room, "q")).await;
    bot.kill9();
    let claim = json!({"predecessor": {"room_id": room, "event_id": "$any"}});
    let next = room_made_with(ada.plain(), claim, &[]).await;
    bury(ada.plain(), &room, &next).await;
    // A homeserver takes none from the powerless; but by now she has lost hers.
    let levels = ada.plain().state(&room, "m.room.power_levels", "").await;
    let mut levels = levels.unwrap().unwrap();
    levels["users"][ada.user_id()] = json!(0);
    let set = ada
        .plain()
        .set_state(&room, "m.room.power_levels", "", &levels);
    set.await.unwrap();
    bot.start_again().await;
    logs(
        &bot,
        &format!("{room} is not followed to {next}: its sender has not the power"),
    )
    .await;
    let card = card_of(&open).to_owned();
    let yes = ada.reply(&room, &card, "1").await;
    let answered = bot.api().until_answered("q").await;
    assert_eq!(answered["answer"]["event_id"], yes);
    at_rest(&bot).await;
    let left = traces(ada.plain(), &room, bot.user_id()).await;
    assert_eq!(left, one_of_each(&[(card, yes)]));
    assert_eq!(membership(ada.plain(), &next, &bot).await, None);
}

#[tokio::test]
async fn what_was_said_before_an_upgrade_is_decided_before_it_is_followed() {
    let ada = Someone::new(homeserver().await, "ada", false).await;
    let config = BotConfig::new(homeserver().await).await;
    let options = open_to_all("11", config.user_id());
    let room = ada.plain().create_room(&options).await.unwrap();
    let mut bot = BotProcess::start(config).await;
    ask_and_show(&bot, &ada, &question(&room, "q")).await;
    at_rest(&bot).await;
    bot.kill9();
    let answer = ada.say(&room, "2").await;
    // Far more than one sync tells: the answer lies in a hole.
    for number in 0..120 {
        ada.say(&room, &format!("so much for {number}")).await;
    }
    let next = ada.plain().upgrade(&room, "12").await.unwrap();
    bot.start_again().await;
    logs(&bot, &format!("{room} was upgraded to {next}")).await;
    let answered = bot.api().get("q").await.1;
    assert_eq!(answered["state"], "answered");
    assert_eq!(answered["room_id"], room);
    assert_eq!(answered["answer"]["event_id"], answer);
    at_rest(&bot).await;
    let left = traces(ada.plain(), &next, bot.user_id()).await;
    assert_eq!(left, Traces::default());
}
