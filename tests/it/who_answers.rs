//! Whose words are an answer in a plain room, and whose are not.

use matrix_elicit::sandbox::{Homeserver, RoomOptions};
use reqwest::Method;
use serde_json::{Value, json};

use crate::stage::{ONE_MORE, Stage, body, card_of, id, may_i_run_them, people};
use crate::support::{BotConfig, BotProcess, SOON, homeserver, unique};

const CARD: &str = "dev.superpipeline.elicitation";

/// Pain: spoof, blank, loop.
#[tokio::test]
async fn what_no_person_typed_is_never_read() {
    let (ada, ben) = people().await;
    let robot = homeserver().await.person(&unique("robot")).await.unwrap();
    let twin = homeserver().await.person(&unique("twin")).await.unwrap();
    let stage = Stage::of(ada, ben, |config| {
        config
            .with("answers.bots", json!(["@robot-*:elicit.test"]))
            .with("agents.agt_31d0.matrix_user", json!(twin.user_id()))
    })
    .await;
    let room = &stage.room;
    for other in [&robot, &twin] {
        stage.ada.invite(room, other.user_id()).await.unwrap();
        other.join(room).await.unwrap();
    }
    let question = stage.ask(may_i_run_them()).await;
    let card = card_of(&question);
    for other in [&robot, &twin] {
        other.send_text(room, "1").await.unwrap();
        other.reply(room, card, "1").await.unwrap();
        other.reply(room, card, "what?").await.unwrap();
    }
    let say = async |content: Value| {
        let sent = stage.ben.send_content(room, "m.room.message", &content);
        sent.await.unwrap()
    };
    say(json!({"msgtype": "m.notice", "body": "1"})).await;
    say(json!({"msgtype": "m.emote", "body": "1"})).await;
    say(json!({"msgtype": "m.image", "body": "1", "url": "mxc://elicit.test/a"})).await;
    say(json!({"msgtype": "m.text", "body": " \u{200b} "})).await;
    stage.ben.react(room, card, "1").await.unwrap();
    // A card of somebody else's is prose, whatever it says.
    let mut forged = question["card"].clone();
    forged["elicitation_id"] = json!("elc_other");
    for card in [question["card"].clone(), forged] {
        let content = json!({"msgtype": "m.text", "body": "1", CARD: card});
        let posted = say(content).await;
        stage
            .ben
            .in_thread(room, &posted, "not for the bot")
            .await
            .unwrap();
    }
    let message = stage.ben.send_text(room, "2").await.unwrap();
    let answer = &stage.answered(&question).await["answer"];
    assert_eq!(answer["event_id"], message);
    stage.ticked(&message).await;
    assert_eq!(stage.said_by_bot().await, ONE_MORE);
    assert_eq!(stage.api.get("elc_other").await.0, 404);
}

/// Pain: anyone.
#[tokio::test]
async fn who_may_not_answer_is_told_so_once() {
    let stage = Stage::new().await;
    let ben = &stage.ben;
    let mut rooms = vec![stage.room.clone()];
    for version in ["11", "12"] {
        let options = RoomOptions {
            version: Some(version.to_owned()),
            invite: vec![ben.user_id().to_owned()],
            ..RoomOptions::default()
        };
        let room = stage.another_room(options).await;
        ben.join(&room).await.unwrap();
        rooms.push(room);
    }
    let notices = async |room: &str| -> Vec<String> {
        let timeline = stage.ada.timeline(room).await.unwrap();
        let notices = timeline
            .iter()
            .filter(|event| event["content"]["msgtype"] == "m.notice");
        notices.map(|event| body(event).to_owned()).collect()
    };
    for (room, answerers, why) in [
        (
            &rooms[0],
            json!({"users": [stage.ada.user_id()]}),
            "was asked of other people",
        ),
        // Whoever made a room of version 12 has more power than any number.
        (
            &rooms[1],
            json!({"min_power": 100}),
            "needs a power level of 100",
        ),
        (
            &rooms[2],
            json!({"min_power": 101}),
            "needs a power level of 101",
        ),
    ] {
        let mut request = may_i_run_them();
        request["answerers"] = answerers;
        let question = stage.ask_in(room, request).await;
        ben.send_text(room, "good morning").await.unwrap();
        ben.send_text(room, "1").await.unwrap();
        ben.send_text(room, "2").await.unwrap();
        ben.reply(room, card_of(&question), "1").await.unwrap();
        let message = stage.ada.send_text(room, "2").await.unwrap();
        let answer = &stage.answered(&question).await["answer"];
        assert_eq!(answer["answered_by"], stage.ada.user_id());
        assert_eq!(answer["event_id"], message);
        let ticked = |event: &Value| event["content"]["m.relates_to"]["key"] == "✓";
        let ada = &stage.ada;
        ada.wait_for(room, "the ✓", SOON, ticked).await.unwrap();
        let told = notices(room).await;
        assert_eq!(told.len(), 1, "{told:#?}");
        assert!(told[0].contains(why), "{told:#?}");
    }
    // Who has left by the time it is read does not count either.
    let question = stage.ask(may_i_run_them()).await;
    ben.leave(&stage.room).await.unwrap();
    stage.everything_is_said().await;
    assert_eq!(stage.api.get(id(&question)).await.1["state"], "open");
}

#[tokio::test]
async fn of_two_people_who_answer_at_once_the_first_in_the_room_has_answered() {
    let stage = Stage::new().await;
    let room = &stage.room;
    let mut events = stage.api.events(None).await.unwrap();
    for _ in 0..3 {
        let question = stage.ask(may_i_run_them()).await;
        let card = card_of(&question);
        let (one, two) = tokio::join!(
            stage.ben.reply(room, card, "1"),
            stage.ada.reply(room, card, "2"),
        );
        let both = [one.unwrap(), two.unwrap()];
        let answered = stage.answered(&question).await;
        let first = answered["answer"]["event_id"].as_str().unwrap();
        let late = both.iter().find(|message| *message != first).unwrap();
        let notice = stage.notice_to(late).await;
        assert!(body(&notice).contains("is already answered."), "{notice:#}");
        let timeline = stage.ada.timeline(room).await.unwrap();
        let place = |wanted: &str| {
            timeline
                .iter()
                .position(|event| event["event_id"] == wanted)
        };
        assert!(place(first) < place(late));
        for kind in ["elicitation.open", "elicitation.answered"] {
            let event = events.next().await;
            assert_eq!(event.kind, kind);
            assert_eq!(event.body["data"]["elicitation_id"], id(&question));
        }
    }
    let said = stage.said_by_bot().await;
    assert_eq!(said, ["card", "edit", "tick", "notice"].repeat(3));
}

/// Pain: anyone.
#[tokio::test]
async fn rules_that_are_given_by_alias_outlive_the_alias() {
    let synapse = homeserver().await;
    let (ada, ben) = people().await;
    let name = unique("release");
    let alias = format!("#{name}:elicit.test");
    let only_ada = json!({"users": [ada.user_id()]});
    let config = BotConfig::new(synapse)
        .await
        .with_path(&["rooms", &alias], only_ada);
    let options = RoomOptions {
        alias: Some(name),
        invite: vec![ben.user_id().to_owned(), config.user_id().to_owned()],
        ..RoomOptions::default()
    };
    let room = ada.create_room(&options).await.unwrap();
    ben.join(&room).await.unwrap();
    let mut bot = BotProcess::start(config).await;
    ada.wait_for_member(&room, bot.user_id(), SOON)
        .await
        .unwrap();

    let directory = Homeserver::new(&synapse.url())
        .unwrap()
        .as_account(ada.account());
    let path = ["directory", "room", &alias];
    let gone = directory.call(Method::DELETE, &path, &[], None);
    gone.await.unwrap();
    bot.kill9();
    bot.start_again().await;

    let mut question = may_i_run_them();
    question["room"] = json!(room);
    let question = bot.api().ask_fine(&question).await;
    let opened = bot.api().until_open(id(&question)).await;
    ben.reply(&room, card_of(&opened), "1").await.unwrap();
    ada.send_text(&room, "2").await.unwrap();
    let answer = &bot.api().until_answered(id(&question)).await["answer"];
    assert_eq!(answer["answered_by"], ada.user_id());
}
