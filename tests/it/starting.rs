//! Starting and ending the real program: its session, its invitations, its log.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use matrix_elicit::sandbox::{Account, Homeserver, Person, RoomOptions, Synapse, SynapseOptions};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::stage::{Stage, card_of, has_joined, id, may_i_run_them, people};
use crate::support::{
    AGENT, BotConfig, BotProcess, SOON, SinkAnswer, WebhookSink, homeserver, own_homeserver, soon,
    unique,
};

/// The password of every bot account that [`BotConfig::new`] makes.
const PASSWORD: &str = "bot-password";

/// What a bot leaves in its folder, apart from the ledger.
fn left_behind(config: &BotConfig) -> Vec<String> {
    let stored = std::fs::read_dir(config.folder().join("stored")).unwrap();
    stored
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("ledger."))
        .collect()
}

/// Runs the program with a configuration until it ends by itself.
async fn run(file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_matrix-elicit"));
    command
        .args(["run", "--config"])
        .arg(file)
        .stdin(Stdio::null());
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    tokio::time::timeout(SOON, run)
        .await
        .expect("it ends by itself")
        .unwrap()
}

/// The device that an account's bot made for itself; there must be exactly one.
async fn device_of(user_id: &str) -> String {
    let server = Homeserver::new(&homeserver().await.url()).unwrap();
    let account = server.login(user_id, PASSWORD).await.unwrap();
    let answer = server
        .as_account(&account)
        .call(Method::GET, &["devices"], &[], None)
        .await
        .unwrap();
    let devices = answer["devices"].as_array().unwrap();
    let own: Vec<&str> = devices
        .iter()
        .filter(|device| device["display_name"] == "matrix-elicit")
        .filter_map(|device| device["device_id"].as_str())
        .collect();
    assert_eq!(own.len(), 1, "{answer:#}");
    own[0].to_owned()
}

/// Another configuration of the same bot, which goes on where the first one left off.
async fn heir_of(config: &BotConfig, synapse: &Synapse) -> BotConfig {
    BotConfig::new(synapse)
        .await
        .with("matrix.user", json!(config.user_id()))
        .with("matrix.data_dir", json!(config.folder().join("stored")))
}

fn with_token(config: BotConfig, account: &Account, device: &str) -> BotConfig {
    let matrix = json!({
        "homeserver": config_homeserver(&config),
        "user": account.user_id,
        "access_token": account.access_token,
        "device_id": device,
        "data_dir": config.folder().join("stored"),
    });
    config.with_path(&["matrix"], matrix)
}

fn config_homeserver(config: &BotConfig) -> String {
    let settings: Value = toml::from_str(&config.text()).unwrap();
    settings["matrix"]["homeserver"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Pain: first-login.
#[tokio::test]
async fn a_wrong_password_is_told_and_leaves_nothing_in_the_way_of_the_right_one() {
    let config = BotConfig::new(homeserver().await).await;
    let password = config.folder().join("password");
    std::fs::write(&password, "a wrong one").unwrap();
    let config = config.with(
        "matrix.password",
        json!(format!("file:{}", password.display())),
    );
    let mut bot = BotProcess::start_unready(config);
    let status = bot.wait_ended().await;
    assert!(!status.success());
    let log = bot.log();
    let line = format!(
        "matrix-elicit: the homeserver refuses the login of {}: ",
        bot.user_id()
    );
    let complaints: Vec<&str> = log.lines().filter(|each| each.starts_with(&line)).collect();
    assert_eq!(complaints.len(), 1, "{log}");
    assert!(complaints[0].contains("M_FORBIDDEN"), "{log}");
    assert!(!log.contains("a wrong one"), "{log}");
    assert_eq!(left_behind(bot.config()), Vec::<String>::new());

    std::fs::write(&password, PASSWORD).unwrap();
    bot.start_again().await;
    device_of(bot.user_id()).await;
}

#[tokio::test]
async fn a_token_works_for_the_device_it_belongs_to_and_for_no_other() {
    let synapse = homeserver().await;
    let account = synapse.register(&unique("bot"), PASSWORD).await.unwrap();
    let stranger = synapse.register(&unique("bot"), PASSWORD).await.unwrap();
    let (name, device) = (&account.user_id, &account.device_id);

    let other_device = with_token(BotConfig::new(synapse).await, &account, "ELSEWHERE");
    let other_user = Account {
        user_id: account.user_id.clone(),
        device_id: account.device_id.clone(),
        ..stranger.clone()
    };
    let other_user = with_token(BotConfig::new(synapse).await, &other_user, device);
    for (config, found, expected) in [
        (
            other_device,
            format!("{name} on device {device}"),
            format!("{name} on device ELSEWHERE"),
        ),
        (
            other_user,
            format!("{} on device {}", stranger.user_id, stranger.device_id),
            format!("{name} on device {device}"),
        ),
    ] {
        let mut bot = BotProcess::start_unready(config);
        assert!(!bot.wait_ended().await.success());
        let line = format!(
            "matrix-elicit: matrix.access_token belongs to {found}, \
             the configuration says {expected}"
        );
        assert!(bot.log().lines().any(|each| each == line), "{}", bot.log());
        assert_eq!(left_behind(bot.config()), Vec::<String>::new());
    }

    let (ada, ben) = people().await;
    let config = with_token(BotConfig::new(synapse).await, &account, device);
    let options = RoomOptions {
        invite: vec![account.user_id.clone(), ben.user_id().to_owned()],
        ..RoomOptions::default()
    };
    let room = ada.create_room(&options).await.unwrap();
    ben.join(&room).await.unwrap();
    let mut bot = BotProcess::start(config).await;
    has_joined(&bot, &room).await;
    let mut request = may_i_run_them();
    request["room"] = json!(room);
    let question = bot.api().ask_fine(&request).await;
    bot.api().until_open(id(&question)).await;
    bot.terminate().await;
    bot.start_again().await;
    ben.send_text(&room, "1").await.unwrap();
    bot.api().until_answered(id(&question)).await;
    let devices = Homeserver::new(&synapse.url())
        .unwrap()
        .as_account(&account)
        .call(Method::GET, &["devices"], &[], None)
        .await
        .unwrap();
    assert_eq!(
        devices["devices"].as_array().unwrap().len(),
        1,
        "{devices:#}"
    );
}

#[tokio::test]
async fn it_ends_within_five_seconds_whoever_is_listening() {
    let mut stage = Stage::new().await;
    let question = stage.ask(may_i_run_them()).await;
    let mut events = stage.api.events(None).await.unwrap();
    // This one has said nothing yet and never will.
    let address = stage.bot.url().strip_prefix("http://").unwrap().to_owned();
    let silent = std::net::TcpStream::connect(address).unwrap();
    let waiting = {
        let (api, id) = (stage.api.clone(), id(&question).to_owned());
        tokio::spawn(async move { api.get_waiting(&id, 55).await })
    };
    // Long before these were there and back, that one was there.
    for _ in 0..3 {
        assert!(stage.api.is_ready().await);
    }
    let (status, took) = stage.bot.terminate().await;
    assert!(status.success(), "{status}; {}", stage.bot.log());
    assert!(took < Duration::from_secs(5), "{took:?}");
    // Who waited has the question as it stands, and may ask again.
    let (status, object) = waiting.await.unwrap();
    assert_eq!((status, &object), (StatusCode::OK, &question));
    assert_eq!(events.next_within(SOON).await, None);
    drop(silent);

    stage.bot.start_again().await;
    stage.ben.send_text(&stage.room, "1").await.unwrap();
    stage.answered(&question).await;
}

#[tokio::test]
async fn a_second_process_on_the_same_folder_is_refused() {
    let stage = Stage::new().await;
    let folder = stage.bot.config().folder();
    // At another port: only the folder is in the way.
    let text = stage.bot.config().text();
    let port = stage.bot.url().rsplit(':').next().unwrap();
    let file = folder.join("second.toml");
    std::fs::write(
        &file,
        text.replace(&format!("127.0.0.1:{port}"), "127.0.0.1:0"),
    )
    .unwrap();
    let output = run(&file).await;
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        format!(
            "matrix-elicit: the ledger in {} is in use by another process\n",
            folder.join("stored").display()
        )
    );
    let question = stage.ask(may_i_run_them()).await;
    stage.ben.send_text(&stage.room, "1").await.unwrap();
    stage.answered(&question).await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_told() {
    let synapse = homeserver().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let config = BotConfig::new(synapse).await;
    let config = config.with("http.listen", json!(address));
    let mut bot = BotProcess::start_unready(config);
    assert!(!bot.wait_ended().await.success());
    let line = format!("matrix-elicit: http.listen: cannot listen on {address}");
    assert!(bot.log().starts_with(&line), "{}", bot.log());
}

#[tokio::test]
async fn only_the_invitations_of_those_who_may_invite_are_followed() {
    let (ada, ben) = people().await;
    let config = BotConfig::new(homeserver().await).await;
    let config = config.with("matrix.join", json!([ada.user_id()]));
    let invite = vec![config.user_id().to_owned()];
    let room_of = async |person: &Person| {
        let options = RoomOptions {
            invite: invite.clone(),
            ..RoomOptions::default()
        };
        person.create_room(&options).await.unwrap()
    };
    let before = (room_of(&ben).await, room_of(&ada).await);
    let bot = BotProcess::start(config).await;
    let after = (room_of(&ben).await, room_of(&ada).await);
    for (left_open, followed) in [before, after] {
        has_joined(&bot, &followed).await;
        let (room, ben_id) = (&left_open, ben.user_id());
        bot.logged(&format!(
            "invitation to {room} left open: {ben_id} is not in matrix.join"
        ))
        .await;
        let members = ben.room_members(room).await.unwrap();
        let bot = bot.user_id().to_owned();
        assert!(members.contains(&(bot, "invite".to_owned())), "{members:?}");
    }
}

/// Pain: invite.
#[tokio::test]
async fn an_invitation_from_before_a_restart_is_followed() {
    let synapse = homeserver().await;
    let (ada, _) = people().await;
    let config = BotConfig::new(synapse).await;
    let invite_to_a_room = async |bot: &str| {
        let options = RoomOptions {
            invite: vec![bot.to_owned()],
            ..RoomOptions::default()
        };
        ada.create_room(&options).await.unwrap()
    };
    let heir = heir_of(&config, synapse).await;
    // At first it follows nobody.
    let mut bot = BotProcess::start(config.with("matrix.join", json!([]))).await;
    let left_open = invite_to_a_room(bot.user_id()).await;
    bot.logged(&format!("invitation to {left_open} left open"))
        .await;
    bot.terminate().await;
    let while_away = invite_to_a_room(bot.user_id()).await;
    let heir = BotProcess::start(heir).await;
    for room in [left_open, while_away] {
        has_joined(&heir, &room).await;
        ada.wait_for_member(&room, bot.user_id(), SOON)
            .await
            .unwrap();
    }
}

/// Pain: again.
#[tokio::test]
async fn a_restart_is_the_same_device_and_takes_what_was_said_meanwhile() {
    let mut stage = Stage::new().await;
    let device = device_of(stage.bot.user_id()).await;
    for how in ["terminated", "killed"] {
        let question = stage.ask(may_i_run_them()).await;
        if how == "killed" {
            stage.bot.kill9();
        } else {
            stage.bot.terminate().await;
        }
        let message = stage.ben.send_text(&stage.room, "2").await.unwrap();
        let late = stage.ada.send_text(&stage.room, "1").await.unwrap();
        stage.bot.start_again().await;
        let answer = &stage.answered(&question).await["answer"];
        assert_eq!(answer["event_id"], message, "{how}");
        stage.ticked(&message).await;
        // She could not see that he had answered.
        stage.notice_to(&late).await;
        assert_eq!(device_of(stage.bot.user_id()).await, device, "{how}");
    }
    let said = stage.said_by_bot().await;
    assert_eq!(said, ["card", "edit", "tick", "notice"].repeat(2));
}

#[tokio::test]
async fn another_account_does_not_get_the_folder_of_the_first() {
    let synapse = homeserver().await;
    let first = BotConfig::new(synapse).await;
    let second = BotConfig::new(synapse).await;
    let second = second.with("matrix.data_dir", json!(first.folder().join("stored")));
    let mut first = BotProcess::start(first).await;
    first.terminate().await;
    let mut second = BotProcess::start_unready(second);
    assert!(!second.wait_ended().await.success());
    let line = format!(
        "matrix-elicit: {} holds the session of {}, the configuration says {}; \
         use another matrix.data_dir for another account",
        first.config().folder().join("stored/matrix").display(),
        first.user_id(),
        second.user_id(),
    );
    assert!(
        second.log().lines().any(|each| each == line),
        "{}",
        second.log()
    );
    first.start_again().await;
}

#[tokio::test]
async fn a_homeserver_that_is_away_at_the_first_start_is_waited_for() {
    let (mut synapse, _folder) = own_homeserver(SynapseOptions::default()).await;
    let config = BotConfig::new(&synapse).await;
    let url = synapse.url();
    synapse.stop().await.unwrap();
    let mut bot = BotProcess::start_unready(config);
    bot.logged(&format!("the homeserver {url}/ does not answer: "))
        .await;
    // It says so to whoever asks, too.
    let ask = async |path: &str| {
        let response = bot.api().request(Method::GET, path).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    assert_eq!(ask("/healthz").await, (200, json!({"status": "ok"})));
    let (status, body) = ask("/readyz").await;
    assert_eq!(status, 503);
    let reason = body["reasons"][0].as_str().unwrap();
    assert!(reason.contains("does not answer"), "{body:#}");
    let (status, body) = ask("/v1/elicitations").await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &json!("UNAVAILABLE"))
    );
    synapse.restart().await.unwrap();
    bot.wait_ready().await;
}

#[tokio::test]
async fn asked_while_the_homeserver_is_away_a_question_is_posted_when_it_is_back() {
    let (mut synapse, _folder) = own_homeserver(SynapseOptions::default()).await;
    let config = BotConfig::new(&synapse).await;
    let heir = heir_of(&config, &synapse).await;
    let ada = synapse.person("ada").await.unwrap();
    let options = RoomOptions {
        invite: vec![config.user_id().to_owned()],
        ..RoomOptions::default()
    };
    let room = ada.create_room(&options).await.unwrap();
    let mut bot = BotProcess::start(config).await;
    has_joined(&bot, &room).await;
    // A first one, so that the bot is sure of the room.
    let mut request = may_i_run_them();
    request["room"] = json!(room);
    let first = bot.api().ask_fine(&request).await;
    bot.api().until_open(id(&first)).await;

    synapse.stop().await.unwrap();
    let second = bot.api().ask_fine(&request).await;
    bot.logged(&format!("sending to {room} failed; next try in "))
        .await;
    // And so it is after a restart, with the homeserver still away.
    bot.terminate().await;
    let bot = BotProcess::start_unready(heir);
    soon("the bot to listen", async || {
        let request = bot.api().request(Method::GET, "/healthz").send();
        request.await.is_ok().then_some(())
    })
    .await;
    let third = soon("the bot to take a question", async || {
        let (status, asked) = bot.api().ask(&request).await;
        (status == StatusCode::CREATED).then_some(asked)
    })
    .await;
    for question in [&second, &third] {
        assert_eq!(bot.api().get(id(question)).await.1["state"], "queued");
    }
    synapse.restart().await.unwrap();
    for question in [&second, &third] {
        let open = bot.api().until_open(id(question)).await;
        ada.reply(&room, card_of(&open), "1").await.unwrap();
        bot.api().until_answered(id(question)).await;
    }
    let timeline = ada.timeline(&room).await.unwrap();
    let cards = timeline
        .iter()
        .filter(|event| event["content"]["dev.superpipeline.elicitation"].is_object());
    assert_eq!(cards.count(), 3);
}

#[tokio::test]
async fn it_says_when_it_is_ready_and_never_tells_a_secret() {
    let sink = WebhookSink::start().await;
    sink.answer_with(SinkAnswer::Status(500));
    let mut stage = Stage::with(|config| {
        config
            .with_webhook(&sink)
            .with(
                "matrix.recovery_passphrase",
                json!("the-recovery-passphrase"),
            )
            .with("http.operator_token", json!("the-token-of-the-operator"))
    })
    .await;
    let question = stage.ask(may_i_run_them()).await;
    stage.ben.send_text(&stage.room, "1").await.unwrap();
    stage.answered(&question).await;
    sink.wait_for_count(1).await;
    let guess = stage.api.with_token("a-token-that-was-guessed");
    assert_eq!(guess.list("").await.0, StatusCode::UNAUTHORIZED);
    stage
        .bot
        .logged("cross-signing and key backup set up")
        .await;
    stage.bot.terminate().await;
    stage.bot.start_again().await;

    // The line is written a moment after `/readyz` says so.
    let log = soon("the second ready line", async || {
        let log = stage.bot.log();
        (log.matches("ready after ").count() == 2).then_some(log)
    })
    .await;
    let ready: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("ready after "))
        .collect();
    assert_eq!(ready.len(), 2, "{log}");
    let name = stage.bot.user_id();
    let rest = format!(" ms: {name} at {}, rooms: 1, agents: 1", stage.bot.url());
    assert!(ready[1].contains(&rest), "{log}");

    let folder = stage.bot.config().folder().join("stored/matrix");
    let session = std::fs::read(folder.join("session.json")).unwrap();
    let session: Value = serde_json::from_slice(&session).unwrap();
    let settings: Value = toml::from_str(&stage.bot.config().text()).unwrap();
    for secret in [
        &session["access_token"],
        &session["refresh_token"],
        &settings["matrix"]["password"],
        &settings["matrix"]["recovery_passphrase"],
        &settings["http"]["operator_token"],
        &settings["agents"][AGENT]["token"],
        &settings["agents"][AGENT]["webhook"]["secret"],
        &json!("a-token-that-was-guessed"),
    ] {
        let secret = secret.as_str().unwrap();
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
    for private in ["session.json", "store.key"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(folder.join(private))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{private}");
    }
}
