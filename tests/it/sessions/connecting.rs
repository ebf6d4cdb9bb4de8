//! Connecting an account: only the person who is to do it sees the link, and only for as long as it
//! is wanted.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Team, newest};
use crate::scene::ledger;
use crate::support::{EncryptedPerson, homeserver, soon, unique};

fn connect(user: &str) -> Value {
    json!({
        "content": { "type": "elicitation", "body": "I need access to your GitHub account to open the pull request." },
        "signal": "auth",
        "signal_metadata": {
            "url": "https://scout.acme.example/connect/github?session=sess_01J9Z3K8T5N2",
            "user_id": user,
            "provider_name": "GitHub"
        }
    })
}

#[tokio::test]
async fn the_link_is_shown_to_the_right_person_alone_and_goes_away_with_the_next_activity() {
    let synapse = homeserver().await;
    let cleo = EncryptedPerson::register(synapse, &unique("cleo")).await;
    let people = json!({"68d91d3629c051fe043158f9": cleo.user_id()});
    let team =
        Team::with(|config| config.with_path(&["agents", crate::support::AGENT, "people"], people))
            .await;
    let session = team.begin("open a pull request").await;
    // Whoever is not in the session's room is asked nothing.
    let asked = connect("68d91d3629c051fe043158f9");
    let (status, refused) = team.builder.tries(&session, asked.clone()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused:#}");
    assert_eq!(refused["error"]["field"], "signal_metadata.user_id");
    team.ada.invite(&team.room, cleo.user_id()).await.unwrap();
    cleo.join(&team.room).await;
    for next in ["thought", "prompt"] {
        let taken = team.builder.does(&session, asked.clone()).await;
        assert_eq!(
            taken["signal_metadata"], asked["signal_metadata"],
            "it goes through unchanged"
        );
        team.builder.until(&session, "awaitingInput").await;
        let direct = direct_room(&team, cleo.user_id()).await;
        cleo.join(&direct).await;
        let request = cleo
            .wait_for_decrypted(&direct, "the link", |event| {
                event["content"]["m.relates_to"].is_null()
                    && newest(event).contains("scout.acme.example")
            })
            .await;
        let request_id = request["event_id"].as_str().unwrap().to_owned();
        assert!(newest(&request).contains("GitHub"));
        team.in_thread(&session, "to open the pull request").await;
        team.in_thread(&session, "I asked").await;
        if next == "thought" {
            team.builder
                .says(&session, "thought", "Connected, going on.")
                .await;
        } else {
            team.says(&team.ada, &session, "never mind").await;
        }
        let over = cleo
            .wait_for_decrypted(&direct, "the link to go", |event| {
                event["content"]["m.relates_to"]["rel_type"] == "m.replace"
                    && event["content"]["m.relates_to"]["event_id"] == request_id.as_str()
            })
            .await;
        assert!(!over.to_string().contains("scout.acme.example"), "{over:#}");
        // Nothing of it was ever in the room itself.
        let timeline = team.ada.timeline(&team.room).await.unwrap();
        let said = serde_json::to_string(&timeline).unwrap();
        assert!(!said.contains("scout.acme.example"));
    }
}

#[tokio::test]
async fn a_link_that_nobody_has_seen_when_it_is_no_longer_wanted_is_never_shown() {
    let synapse = homeserver().await;
    let cleo = EncryptedPerson::register(synapse, &unique("cleo")).await;
    let team = Team::new().await;
    team.ada.invite(&team.room, cleo.user_id()).await.unwrap();
    cleo.join(&team.room).await;
    let session = team.begin("open a pull request").await;
    team.builder.does(&session, connect(cleo.user_id())).await;
    let direct = direct_room(&team, cleo.user_id()).await;
    team.in_thread(&session, "GitHub").await;
    team.builder
        .says(&session, "response", "Done without it.")
        .await;
    cleo.join(&direct).await;
    team.builder.does(&session, connect(cleo.user_id())).await;
    cleo.wait_for_decrypted(&direct, "the second link", |event| {
        newest(event).contains("scout.acme.example")
    })
    .await;
    let shown = cleo.timeline(&direct);
    let links = shown
        .iter()
        .filter(|event| newest(event).contains("scout.acme.example"));
    assert_eq!(links.count(), 1, "{shown:#?}");
}

#[tokio::test]
async fn only_https_and_only_a_person_are_taken() {
    let team = Team::new().await;
    let session = team.begin("open a pull request").await;
    let mut plain = connect(team.ada.user_id());
    plain["signal_metadata"]["url"] = json!("http://scout.acme.example/connect");
    let (status, refused) = team.builder.tries(&session, plain).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(refused["error"]["field"], "signal_metadata.url");
    let (status, refused) = team
        .builder
        .tries(&session, connect("nobody-we-know"))
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(refused["error"]["field"], "signal_metadata.user_id");
}

/// The room in which the bot speaks to a person alone.
async fn direct_room(team: &Team, user: &str) -> String {
    soon("the direct room", async || {
        let sql = "SELECT room_id FROM direct_rooms WHERE user_id = ?1";
        ledger(&team.bot)
            .query_row(sql, [user], |row| row.get(0))
            .ok()
    })
    .await
}
