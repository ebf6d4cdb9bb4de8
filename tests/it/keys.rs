//! The bot's encryption keys: set up, restored on another machine, lost.

use std::fs;
use std::time::{Duration, Instant};

use matrix_elicit::sandbox::Homeserver;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::scene::{Someone, ask_and_show, at_rest, count, one_of_each, question, traces};
use crate::support::{BotConfig, BotProcess, homeserver, soon};

const PASSPHRASE: &str = "correct horse battery staple";

/// How many room keys the bot has in its backup on the homeserver.
async fn backed_up(bot: &BotProcess) -> Option<u64> {
    let server = Homeserver::new(&homeserver().await.url()).unwrap();
    let account = server.login(bot.user_id(), "bot-password").await.unwrap();
    let as_bot = server.as_account(&account);
    let version = as_bot.call(Method::GET, &["room_keys", "version"], &[], None);
    let count = version.await.ok()?["count"].as_u64();
    as_bot
        .call(Method::POST, &["logout"], &[], Some(&json!({})))
        .await
        .unwrap();
    count
}

fn new_machine(bot: &BotProcess) {
    fs::remove_dir_all(bot.config().folder().join("stored/matrix")).unwrap();
}

#[tokio::test]
async fn what_was_encrypted_for_the_lost_machine_is_read_on_the_new_one_with_the_passphrase() {
    let synapse = homeserver().await;
    let config = BotConfig::new(synapse)
        .await
        .with("matrix.recovery_passphrase", json!(PASSPHRASE));
    let ada = Someone::new(synapse, "ada", true).await;
    let room = ada.make_room(&[config.user_id()]).await;
    let mut bot = BotProcess::start(config).await;
    bot.logged("cross-signing and key backup set up").await;
    let open = ask_and_show(&bot, &ada, &question(&room, "e1")).await;
    // With this the bot has the key of her messages, and puts it into the backup.
    ada.say(&room, "good morning").await;
    soon("a key in the backup", async || {
        backed_up(&bot).await.filter(|count| *count > 0)
    })
    .await;
    at_rest(&bot).await;
    bot.kill9();
    let answer = ada.say(&room, "2").await;
    new_machine(&bot);
    bot.start_again().await;
    bot.logged("cross-signing and key backup restored").await;
    // The key comes from the backup, not by a sync, and nothing else happens in the room.
    let restored = Instant::now();
    let answered = bot.api().until_answered("e1").await;
    assert!(
        restored.elapsed() < Duration::from_secs(20),
        "{:?}",
        restored.elapsed()
    );
    assert_eq!(answered["answer"]["event_id"], *answer);
    at_rest(&bot).await;
    let card = open["event_id"].as_str().unwrap().to_owned();
    // She is alone with the bot: it has told her that her greeting is no answer.
    let mut left = traces(ada.plain(), &room, bot.user_id()).await;
    assert_eq!(left.notices.len(), 1, "{left:?}");
    left.notices.clear();
    assert_eq!(left, one_of_each(&[(card, answer)]));
    let log = bot.log();
    assert!(!log.contains(PASSPHRASE), "a secret is in the log");
}

#[tokio::test]
async fn a_wrong_passphrase_is_told_and_resets_nothing() {
    let synapse = homeserver().await;
    let config = BotConfig::new(synapse)
        .await
        .with("matrix.recovery_passphrase", json!(PASSPHRASE));
    let user_id = config.user_id().to_owned();
    let mut bot = BotProcess::start(config).await;
    bot.logged("cross-signing and key backup set up").await;
    let version = async || {
        let server = Homeserver::new(&synapse.url()).unwrap();
        let account = server.login(&user_id, "bot-password").await.unwrap();
        let as_bot = server.as_account(&account);
        let call = as_bot.call(Method::GET, &["room_keys", "version"], &[], None);
        call.await.unwrap()["version"].clone()
    };
    let before = version().await;
    bot.kill9();
    new_machine(&bot);
    let mut other = BotProcess::start_unready(
        BotConfig::new(synapse)
            .await
            .with("matrix.user", json!(user_id))
            .with(
                "matrix.data_dir",
                json!(bot.config().folder().join("stored")),
            )
            .with("matrix.recovery_passphrase", json!("hunter2")),
    );
    other.wait_ready().await;
    other
        .logged("cross-signing and key backup are not available")
        .await;
    assert_eq!(version().await, before);
    assert!(!other.log().contains("hunter2"), "a secret is in the log");
}

/// Pain: one-time-key.
#[tokio::test]
async fn a_lost_key_store_is_told_with_how_to_recover_and_nothing_is_wiped() {
    let synapse = homeserver().await;
    let mut bot = BotProcess::start(BotConfig::new(synapse).await).await;
    bot.terminate().await;
    let folder = bot.config().folder().join("stored/matrix");
    let session = fs::read(folder.join("session.json")).unwrap();
    for part in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(folder.join(format!("matrix-sdk-crypto.sqlite3{part}")));
    }
    bot.start_again_unready();
    let ended = bot.wait_ended().await;
    assert!(!ended.success());
    let log = bot.log();
    assert!(log.contains("the encryption keys of device"), "{log}");
    assert!(log.contains("to start as a new device"), "{log}");
    assert_eq!(fs::read(folder.join("session.json")).unwrap(), session);
}

/// The device is the old one and its keys are new: the homeserver refuses them for ever.
/// Pain: one-time-key.
#[tokio::test]
async fn keys_that_the_homeserver_refuses_make_the_bot_unready_and_are_not_wiped() {
    let synapse = homeserver().await;
    let mut bot = BotProcess::start(BotConfig::new(synapse).await).await;
    let keys = async || {
        let server = Homeserver::new(&synapse.url()).unwrap();
        let account = server.login(bot.user_id(), "bot-password").await.unwrap();
        let query = json!({"device_keys": {bot.user_id(): []}});
        let as_bot = server.as_account(&account);
        let call = as_bot.call(Method::POST, &["keys", "query"], &[], Some(&query));
        call.await.unwrap()["device_keys"].clone()
    };
    soon("the device's keys", async || {
        let known = keys().await;
        known.to_string().contains("curve25519:").then_some(())
    })
    .await;
    bot.terminate().await;
    let folder = bot.config().folder().join("stored/matrix");
    for name in [
        "matrix-sdk-crypto.sqlite3",
        "matrix-sdk-crypto.sqlite3-wal",
        "matrix-sdk-crypto.sqlite3-shm",
        "started",
    ] {
        let _ = fs::remove_file(folder.join(name));
    }
    bot.start_again_unready();
    let reasons = soon("not to be ready", async || {
        let answer = reqwest::get(format!("{}/readyz", bot.url())).await.ok()?;
        let unready = answer.status() == StatusCode::SERVICE_UNAVAILABLE;
        let body: Value = answer.json().await.ok()?;
        let text = body.to_string();
        (unready && text.contains("other encryption keys")).then_some(text)
    })
    .await;
    assert!(
        reasons.contains("restore that folder from a backup"),
        "{reasons}"
    );
    assert!(bot.log().contains("to start as a new device"));
    assert!(folder.join("matrix-sdk-crypto.sqlite3").exists());
    assert!(folder.join("session.json").exists());
    assert_eq!(count(&bot, "SELECT COUNT(*) FROM elicitations"), 0);
}
