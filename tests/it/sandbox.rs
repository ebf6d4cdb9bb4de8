//! The sandbox itself: if these fail, no other test means anything.

use std::{path::Path, time::Duration};

use matrix_elicit::sandbox::{
    Homeserver, Person, RateLimits, RoomOptions, SandboxError, Synapse, SynapseOptions,
};
use serde_json::{Value, json};

use crate::support::{EncryptedPerson, SOON, homeserver, installed, own_homeserver, soon, unique};

fn says(body: &str) -> impl Fn(&Value) -> bool {
    move |event| event["content"]["body"] == body
}

async fn two_people_in_a_room(encrypted: bool) -> (Person, Person, String) {
    let synapse = homeserver().await;
    let ada = synapse.person(&unique("ada")).await.unwrap();
    let ben = synapse.person(&unique("ben")).await.unwrap();
    let options = RoomOptions {
        name: Some("Builds".to_owned()),
        invite: vec![ben.user_id().to_owned()],
        encrypted,
        ..RoomOptions::default()
    };
    let room = ada.create_room(&options).await.unwrap();
    ben.join(&room).await.unwrap();
    (ada, ben, room)
}

#[tokio::test]
async fn what_one_person_writes_the_other_reads_as_it_comes() {
    let (ada, ben, room) = two_people_in_a_room(false).await;
    let (waited, sent) = tokio::join!(
        ben.wait_for(&room, "a greeting", SOON, says("hello")),
        async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            ada.send_text(&room, "hello").await.unwrap()
        }
    );
    let event = waited.unwrap();
    assert_eq!(event["event_id"], sent);
    assert_eq!(event["sender"], ada.user_id());
    // Once more: it is found in what is there already.
    let again = ben
        .wait_for(&room, "a greeting", SOON, says("hello"))
        .await
        .unwrap();
    assert_eq!(again["event_id"], sent);
}

#[tokio::test]
async fn a_wait_for_what_never_comes_ends_and_names_it() {
    let (ada, _, room) = two_people_in_a_room(false).await;
    let limit = Duration::from_secs(1);
    let error = ada
        .wait_for(&room, "a miracle", limit, |_| false)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "waited 1 s for a miracle, in vain");
}

#[tokio::test]
async fn every_relation_arrives_as_it_was_sent_in_the_order_it_was_sent() {
    let (ada, ben, room) = two_people_in_a_room(false).await;
    let card = ada.send_text(&room, "May I?\n1. Yes").await.unwrap();
    let reply = ben.reply(&room, &card, "1").await.unwrap();
    let quoting = ben.reply_with_fallback(&room, &card, "1").await.unwrap();
    let threaded = ben.in_thread(&room, &card, "1").await.unwrap();
    let edit = ben.edit(&room, &reply, "2").await.unwrap();
    let liked = ben.react(&room, &card, "👍").await.unwrap();
    let removal = ben.redact(&room, &threaded).await.unwrap();

    let timeline = ada.timeline(&room).await.unwrap();
    let at = timeline
        .iter()
        .position(|event| event["event_id"] == *card)
        .unwrap();
    let ids: Vec<_> = timeline[at..]
        .iter()
        .filter_map(|event| event["event_id"].as_str())
        .collect();
    assert_eq!(
        ids,
        [&card, &reply, &quoting, &threaded, &edit, &liked, &removal]
    );
    let relation = |index: usize| timeline[at + index]["content"]["m.relates_to"].clone();
    assert_eq!(relation(1), json!({"m.in_reply_to": {"event_id": card}}));
    assert_eq!(relation(2), json!({"m.in_reply_to": {"event_id": card}}));
    let quoted = format!("> <{}> May I?\n> 1. Yes\n\n1", ada.user_id());
    assert_eq!(timeline[at + 2]["content"]["body"], quoted);
    assert_eq!(timeline[at + 3]["content"], json!({}), "it was redacted");
    assert_eq!(
        relation(4),
        json!({"rel_type": "m.replace", "event_id": reply})
    );
    assert_eq!(timeline[at + 4]["content"]["m.new_content"]["body"], "2");
    assert_eq!(
        relation(5),
        json!({"rel_type": "m.annotation", "event_id": card, "key": "👍"})
    );
    assert_eq!(timeline[at + 6]["type"], "m.room.redaction");
}

#[tokio::test]
async fn a_room_is_made_with_the_options_that_were_given() {
    let synapse = homeserver().await;
    let ada = synapse.person(&unique("ada")).await.unwrap();
    let alias = unique("builds");
    let options = RoomOptions {
        name: Some("Builds".to_owned()),
        alias: Some(alias.clone()),
        encrypted: true,
        preset: Some("public_chat".to_owned()),
        version: Some("11".to_owned()),
        power_levels: Some(json!({"events_default": 7})),
        ..RoomOptions::default()
    };
    let room = ada.create_room(&options).await.unwrap();
    let state = async |event_type: &str| ada.state(&room, event_type, "").await.unwrap().unwrap();
    assert_eq!(state("m.room.name").await, json!({"name": "Builds"}));
    assert_eq!(
        state("m.room.encryption").await["algorithm"],
        "m.megolm.v1.aes-sha2"
    );
    assert_eq!(state("m.room.create").await["room_version"], "11");
    assert_eq!(state("m.room.power_levels").await["events_default"], 7);
    assert_eq!(ada.state(&room, "m.room.topic", "").await.unwrap(), None);
    let ben = synapse.person(&unique("ben")).await.unwrap();
    assert_eq!(
        ben.join(&format!("#{alias}:elicit.test")).await.unwrap(),
        room
    );
    assert_eq!(ben.joined_rooms().await.unwrap(), [room.as_str()]);
}

#[tokio::test]
async fn people_come_and_go_and_carry_their_names() {
    let (ada, ben, room) = two_people_in_a_room(false).await;
    let synapse = homeserver().await;
    let cleo = synapse.person(&unique("cleo")).await.unwrap();
    ada.invite(&room, cleo.user_id()).await.unwrap();
    ben.leave(&room).await.unwrap();
    ada.set_display_name("Ada L.").await.unwrap();
    let membership = |user: &Person, state: &str| (user.user_id().to_owned(), state.to_owned());
    let members = ada.room_members(&room).await.unwrap();
    assert_eq!(
        members,
        [
            membership(&ada, "join"),
            membership(&ben, "leave"),
            membership(&cleo, "invite")
        ]
    );
    cleo.join(&room).await.unwrap();
    ada.wait_for_member(&room, cleo.user_id(), SOON)
        .await
        .unwrap();
    ada.ban(&room, cleo.user_id()).await.unwrap();
    let error = cleo.send_text(&room, "hello").await.unwrap_err();
    assert_eq!(error.errcode(), Some("M_FORBIDDEN"));
    let named = |event: &Value| event["content"]["displayname"] == "Ada L.";
    ada.wait_for(&room, "the new name", SOON, named)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_taken_name_is_refused_and_a_password_logs_in_again() {
    let synapse = homeserver().await;
    let name = unique("ada");
    let account = synapse.register(&name, "first").await.unwrap();
    let error = synapse.register(&name, "second").await.unwrap_err();
    assert_eq!(error.errcode(), Some("M_USER_IN_USE"));
    let server = Homeserver::new(&synapse.url()).unwrap();
    let again = server.login(&account.user_id, "first").await.unwrap();
    assert_eq!(again.user_id, account.user_id);
    assert_ne!(again.device_id, account.device_id);
    assert_eq!(
        server
            .login(&account.user_id, "wrong")
            .await
            .unwrap_err()
            .errcode(),
        Some("M_FORBIDDEN")
    );
}

#[tokio::test]
async fn a_server_that_was_away_comes_back_with_everything_it_had() {
    let (mut synapse, _folder) = own_homeserver(SynapseOptions::default()).await;
    let ada = synapse.person("ada").await.unwrap();
    let room = ada.create_room(&RoomOptions::default()).await.unwrap();
    let event = ada.send_text(&room, "before").await.unwrap();
    synapse.stop().await.unwrap();
    assert!(!synapse.is_running());
    assert!(ada.send_text(&room, "meanwhile").await.is_err());
    synapse.restart().await.unwrap();
    assert!(synapse.is_running());
    let found = ada
        .wait_for(&room, "the old message", SOON, says("before"))
        .await
        .unwrap();
    assert_eq!(found["event_id"], event);
}

#[tokio::test]
async fn default_limits_are_met_and_waited_out() {
    let options = SynapseOptions {
        rate_limits: RateLimits::Defaults,
        ..Default::default()
    };
    let (synapse, _folder) = own_homeserver(options).await;
    let ada = synapse.person("ada").await.unwrap();
    let room = ada.create_room(&RoomOptions::default()).await.unwrap();
    // Ten at once, some of which go into making the room; then one every five seconds.
    for number in 1..=11 {
        let began = std::time::Instant::now();
        ada.send_text(&room, &number.to_string()).await.unwrap();
        if began.elapsed() > Duration::from_secs(2) {
            return;
        }
    }
    panic!("eleven messages went through without a wait");
}

/// Runs this same test in another process, which only starts a server, and kills that process.
#[tokio::test]
async fn no_server_is_left_behind_when_its_owner_is_killed() {
    const FOLDER: &str = "MATRIX_ELICIT_TEST_ABANDONED_SERVER";
    if let Ok(folder) = std::env::var(FOLDER) {
        let server = Synapse::start(
            installed().await,
            folder.as_ref(),
            SynapseOptions::default(),
        )
        .await;
        std::fs::write(
            Path::new(&folder).join("url"),
            server.as_ref().unwrap().url(),
        )
        .unwrap();
        std::future::pending::<()>().await;
    }
    installed().await;
    let folder = tempfile::tempdir().unwrap();
    let this_test = "sandbox::no_server_is_left_behind_when_its_owner_is_killed";
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", this_test])
        .env(FOLDER, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let url = soon("the other process to start its server", async || {
        std::fs::read_to_string(folder.path().join("url"))
            .ok()
            .filter(|url| !url.is_empty())
    })
    .await;
    let server = Homeserver::new(&url).unwrap();
    assert!(server.register("ada", "password").await.is_ok());
    owner.kill().unwrap();
    owner.wait().unwrap();
    soon("the server to be gone", async || {
        let asked = server.login("ada", "password").await;
        matches!(asked, Err(SandboxError::Unreachable(_))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_is_said_in_an_encrypted_room_arrives_whole_and_the_server_cannot_read_it() {
    let synapse = homeserver().await;
    let ada = EncryptedPerson::register(synapse, &unique("ada")).await;
    let ben = EncryptedPerson::register(synapse, &unique("ben")).await;
    let options = RoomOptions {
        encrypted: true,
        invite: vec![ben.user_id().to_owned()],
        ..RoomOptions::default()
    };
    let room = ada.plain().create_room(&options).await.unwrap();
    ben.join(&room).await;
    ada.wait_for(&room, "the other one", |event| {
        event["state_key"] == ben.user_id() && event["content"]["membership"] == "join"
    })
    .await;

    let content = json!({"msgtype": "m.text", "body": "May I?", "test.unknown": {"kept": [1, 2]}});
    let card = ada
        .send_content(&room, "m.room.message", content.clone())
        .await;
    let heard = ben
        .wait_for_decrypted(&room, "the question", says("May I?"))
        .await;
    assert_eq!(heard["event_id"], *card);
    assert_eq!(heard["content"], content);

    let reply = ben.reply(&room, &card, "yes").await;
    let heard = ada
        .wait_for_decrypted(&room, "the reply", says("yes"))
        .await;
    assert_eq!(heard["event_id"], *reply);
    assert_eq!(
        heard["content"]["m.relates_to"]["m.in_reply_to"]["event_id"],
        *card
    );

    let stored = ada.plain().event(&room, &reply).await.unwrap();
    assert_eq!(stored["type"], "m.room.encrypted");
    assert_eq!(stored["content"].get("body"), None);
}
