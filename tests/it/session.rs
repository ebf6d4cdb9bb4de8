//! The bot's session: tokens that die, and a device that is logged out.

use std::time::Duration;

use matrix_elicit::sandbox::{Homeserver, Person, RoomOptions, Synapse, SynapseOptions};
use reqwest::Method;
use serde_json::json;

use super::support::{BotConfig, BotProcess, SOON, homeserver, own_homeserver, soon, unique};

/// A room with a person and the bot in it.
async fn room_with(bot: &BotProcess, synapse: &Synapse) -> (Person, String) {
    let person = synapse.person(&unique("mira")).await.unwrap();
    let options = RoomOptions {
        invite: vec![bot.user_id().to_owned()],
        ..RoomOptions::default()
    };
    let room = person.create_room(&options).await.unwrap();
    person
        .wait_for_member(&room, bot.user_id(), SOON)
        .await
        .unwrap();
    (person, room)
}

/// Pain: deaf.
#[tokio::test]
async fn a_token_that_lasts_seconds_is_renewed_and_survives_a_restart() {
    let lifetime = Duration::from_secs(2);
    let options = SynapseOptions {
        token_lifetime: Some(lifetime),
        ..SynapseOptions::default()
    };
    let (synapse, _folder) = own_homeserver(options).await;
    let mut bot = BotProcess::start(BotConfig::new(&synapse).await).await;
    let (mira, room) = room_with(&bot, &synapse).await;
    let session = bot.config().folder().join("stored/matrix/session.json");
    let first = std::fs::read_to_string(&session).unwrap();

    // Not an event to wait for: the point is that time passes.
    tokio::time::sleep(lifetime * 2).await;
    for id in ["before", "after"] {
        let ask = json!({"room": room, "elicitation_id": id, "prompt": "May I?", "options": ["Yes", "No"]});
        bot.api().ask_fine(&ask).await;
        bot.api().until_open(id).await;
        mira.send_text(&room, "Yes").await.unwrap();
        let answered = bot.api().until_answered(id).await;
        assert_eq!(answered["answer"]["answered_by"], mira.user_id());
        if id == "before" {
            let renewed = std::fs::read_to_string(&session).unwrap();
            assert_ne!(renewed, first, "the renewed tokens are kept at once");
            bot.kill9();
            tokio::time::sleep(lifetime * 2).await;
            bot.start_again().await;
        }
    }
}

/// Pain: deaf.
#[tokio::test]
async fn a_bot_that_was_logged_out_ends_with_a_failure_and_says_how_to_recover() {
    let synapse = homeserver().await;
    let config = BotConfig::new(synapse).await;
    let user_id = config.user_id().to_owned();
    let mut bot = BotProcess::start(config).await;

    let admin = Homeserver::new(&synapse.url()).unwrap();
    let elsewhere = admin.login(&user_id, "bot-password").await.unwrap();
    admin
        .as_account(&elsewhere)
        .call(Method::POST, &["logout", "all"], &[], Some(&json!({})))
        .await
        .unwrap();

    let ended = bot.wait_ended().await;
    assert!(!ended.success(), "{ended}");
    let log = bot.log();
    assert!(log.contains("no longer accepts the bot's session"), "{log}");
    assert!(
        log.contains("to start as a new device"),
        "it should say how to recover: {log}"
    );
    let kept = bot.config().folder().join("stored/matrix");
    assert!(kept.join("session.json").exists(), "nothing is wiped");
}

#[tokio::test]
async fn the_bot_signs_its_own_device_so_that_no_client_warns_of_it() {
    let synapse = homeserver().await;
    let bot = BotProcess::start(BotConfig::new(synapse).await).await;
    let mira = synapse.person(&unique("mira")).await.unwrap();
    let asked = Homeserver::new(&synapse.url())
        .unwrap()
        .as_account(mira.account());
    let query = json!({"device_keys": {bot.user_id(): []}});
    let signed = soon("the bot's device to be signed", async || {
        let call = asked.call(Method::POST, &["keys", "query"], &[], Some(&query));
        let keys = call.await.unwrap();
        let devices = keys["device_keys"][bot.user_id()].as_object()?.clone();
        let signing = keys["self_signing_keys"][bot.user_id()]["keys"].as_object()?;
        let signing = signing.keys().next()?.clone();
        let (_, device) = devices.into_iter().next()?;
        let by_itself = &device["signatures"][bot.user_id()];
        by_itself.get(&signing).map(|_| devices_named(&device))
    })
    .await;
    assert_eq!(signed, "matrix-elicit");
}

fn devices_named(device: &serde_json::Value) -> String {
    let name = &device["unsigned"]["device_display_name"];
    name.as_str().unwrap_or_default().to_owned()
}
