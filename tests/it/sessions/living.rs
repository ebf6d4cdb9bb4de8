//! The life of a session: who begins it, what its thread shows, and who hears what.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{SCOUT, Team, id, newest};
use crate::scene::ledger;
use crate::support::{AGENT, soon};

#[tokio::test]
async fn a_person_begins_a_session_by_addressing_an_agent_or_by_command() {
    let team = Team::new().await;
    for (said, words) in [
        ("scout: look at the flaky test", "look at the flaky test"),
        ("!new scout read the docs", "read the docs"),
        ("@Scout, one more", "one more"),
    ] {
        let before = team.scout.count();
        let message = team.ben.send_text(&team.room, said).await.unwrap();
        let told = team.scout.told(before, "created").await;
        let body = &told.json;
        let mut keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(
            keys,
            ["action", "agent_activity", "agent_session"],
            "no envelope"
        );
        assert_eq!(
            body["agent_activity"]["content"],
            json!({"type": "prompt", "body": words})
        );
        assert_eq!(
            body["agent_activity"]["user"]["user_id"],
            team.ben.user_id()
        );
        assert_eq!(body["agent_session"]["agent"], SCOUT);
        assert_eq!(body["agent_session"]["status"], "active");
        let session = team
            .rooted(&team.scout, body["agent_session"]["id"].as_str().unwrap())
            .await;
        let root = team
            .ada
            .event(&team.room, session["thread"].as_str().unwrap())
            .await
            .unwrap();
        assert!(
            newest(&root).contains("Scout") && newest(&root).contains(words),
            "{root:#}"
        );
        assert_eq!(
            root["content"]["m.relates_to"]["m.in_reply_to"]["event_id"],
            message
        );
    }
    assert_eq!(team.builder.count(), 0, "the other agent hears nothing");
}

#[tokio::test]
async fn the_status_follows_what_is_said_and_the_root_shows_it() {
    let team = Team::new().await;
    let session = team
        .builder
        .begin(json!({"room": team.room, "title": "Release 1.2"}))
        .await;
    let session = team.rooted(&team.builder, id(&session)).await;
    assert_eq!(session["status"], "active");
    team.builder
        .says(&session, "action", "Reading the changelog")
        .await;
    team.root_says(&session, "Reading the changelog").await;
    team.builder
        .says(
            &session,
            "response",
            "## All done\n\nIt is **released**, see `CHANGELOG`.",
        )
        .await;
    team.builder.until(&session, "complete").await;
    let response = team.in_thread(&session, "All done").await;
    let html = response["content"]["formatted_body"].as_str().unwrap();
    assert!(html.contains("<strong>released</strong>"), "{html}");
    // A person's word takes it up again.
    let before = team.builder.count();
    team.says(&team.ada, &session, "and the website?").await;
    let told = team.builder.told(before, "prompted").await;
    assert_eq!(told.json["agent_session"]["status"], "active");
    team.builder
        .says(&session, "error", "No access to the website.")
        .await;
    assert_eq!(
        team.builder.until(&session, "error").await["end_reason"],
        Value::Null
    );
    team.in_thread(&session, "No access to the website.").await;
    let kinds: Vec<String> = team
        .builder
        .activities(&session)
        .await
        .iter()
        .map(|activity| activity["content"]["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["action", "response", "prompt", "error"]);
    let (_, listed) = team
        .builder
        .call(Method::GET, "/v1/sessions?status=error", None)
        .await;
    assert_eq!(listed["sessions"][0]["id"], id(&session));
    assert_eq!(listed["next"], Value::Null);
}

#[tokio::test]
async fn a_chatty_agent_is_an_edit_every_two_seconds_and_what_is_ephemeral_is_not_kept() {
    let team = Team::new().await;
    let session = team.begin("count").await;
    for number in 0..30 {
        team.builder
            .does(&session, json!({
                "content": {"type": "thought", "body": format!("number {number}")}, "ephemeral": true,
            }))
            .await;
    }
    team.root_says(&session, "number 29").await;
    let root = session["thread"].as_str().unwrap();
    let timeline = team.ada.timeline(&team.room).await.unwrap();
    let edits: Vec<u64> = timeline
        .iter()
        .filter(|event| {
            event["content"]["m.relates_to"]["rel_type"] == "m.replace"
                && event["content"]["m.relates_to"]["event_id"] == root
        })
        .map(|event| event["origin_server_ts"].as_u64().unwrap())
        .collect();
    assert!(edits.len() < 10, "{edits:?}");
    let kept = team.builder.activities(&session).await;
    assert_eq!(kept.len(), 1, "only the prompt: {kept:#?}");
}

#[tokio::test]
async fn two_agents_in_one_room_hear_only_what_is_said_to_them() {
    let team = Team::new().await;
    let builders = team.begin("build it").await;
    let before = team.scout.count();
    team.ben
        .send_text(&team.room, "scout: find it")
        .await
        .unwrap();
    let told = team.scout.told(before, "created").await;
    let scouts = team
        .rooted(
            &team.scout,
            told.json["agent_session"]["id"].as_str().unwrap(),
        )
        .await;
    let (mine, theirs) = (team.builder.count(), team.scout.count());
    team.says(&team.ada, &scouts, "only for the scout").await;
    let told = team.scout.told(theirs, "prompted").await;
    assert_eq!(
        told.json["agent_activity"]["content"]["body"],
        "only for the scout"
    );
    assert_eq!(team.builder.count(), mine);
    let (status, _) = team
        .scout
        .call(
            Method::GET,
            &format!("/v1/sessions/{}", id(&builders)),
            None,
        )
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    // What people say to one another is nobody's prompt.
    team.ben
        .send_text(&team.room, "shall we have lunch?")
        .await
        .unwrap();
    team.says(&team.ada, &builders, "go on").await;
    let told = team.builder.told(mine, "prompted").await;
    assert_eq!(told.json["agent_activity"]["content"]["body"], "go on");
}

#[tokio::test]
async fn an_agent_that_says_nothing_is_said_to_and_one_that_works_for_long_goes_stale() {
    let mut team = Team::new().await;
    let session = team.begin("think").await;
    team.bot.kill9();
    let age = |by: i64| {
        format!(
            "UPDATE sessions SET due_at = due_at - {by},
                 session = json_set(session, '$.updated_at', (session ->> '$.updated_at') - {by},
                     '$.created_at', (session ->> '$.created_at') - {by})"
        )
    };
    ledger(&team.bot).execute(&age(11_000), []).unwrap();
    team.bot.start_again().await;
    team.root_says(&session, "has not answered").await;
    team.bot.kill9();
    ledger(&team.bot).execute(&age(30 * 60_000), []).unwrap();
    team.bot.start_again().await;
    team.builder.until(&session, "stale").await;
    team.builder.says(&session, "thought", "Still here.").await;
    team.builder.until(&session, "active").await;
}

#[tokio::test]
async fn a_prompt_that_is_redacted_leaves_no_text_behind() {
    let team = Team::new().await;
    let session = team.begin("think").await;
    let before = team.builder.count();
    let message = team
        .says(&team.ada, &session, "the password is hunter2")
        .await;
    team.builder.told(before, "prompted").await;
    team.ada.redact(&team.room, &message).await.unwrap();
    soon("the text to be gone", async || {
        let activities = team.builder.activities(&session).await;
        let gone = !serde_json::to_string(&activities)
            .unwrap()
            .contains("hunter2");
        gone.then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_an_agent_may_not_send_is_refused_by_field() {
    let team = Team::new().await;
    let session = team.begin("think").await;
    for (activity, field) in [
        (
            json!({"content": {"type": "prompt", "body": "x"}}),
            "content.type",
        ),
        (
            json!({"content": {"type": "thought", "body": "  "}}),
            "content.body",
        ),
        (
            json!({"content": {"type": "response", "body": "x"}, "signal": "stop"}),
            "signal",
        ),
        (
            json!({"content": {"type": "thought", "body": "x"}, "signal": "select"}),
            "signal",
        ),
        (
            json!({"content": {"type": "response", "body": "x"}, "ephemeral": true}),
            "ephemeral",
        ),
    ] {
        let (status, refused) = team.builder.tries(&session, activity.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{activity}");
        assert_eq!(refused["error"]["code"], "INVALID_REQUEST");
        assert_eq!(refused["error"]["field"], field, "{activity}: {refused:#}");
    }
    let (status, refused) = team
        .builder
        .call(
            Method::POST,
            "/v1/sessions",
            Some(json!({"room": team.room, "prompt": "go"})),
        )
        .await;
    assert_eq!(
        (status, &refused["error"]["field"]),
        (StatusCode::BAD_REQUEST, &json!("user_id"))
    );
}

#[tokio::test]
async fn an_agent_that_is_taken_out_of_the_configuration_has_no_sessions_any_more() {
    let team = Team::new().await;
    let session = team.begin("think").await;
    let root = session["thread"].as_str().unwrap().to_owned();
    let Team {
        mut bot, ada, room, ..
    } = team;
    bot.kill9();
    bot.reconfigure(|settings| {
        settings["agents"].as_object_mut().unwrap().remove(AGENT);
    });
    bot.start_again().await;
    let over = |event: &Value| {
        event["content"]["m.relates_to"]["event_id"] == root.as_str()
            && event["content"]["m.relates_to"]["rel_type"] == "m.replace"
    };
    ada.wait_for(&room, "the root to say so", crate::support::SOON, over)
        .await
        .unwrap();
}
