//! Stop: the agent hears it at once, says its last word, and then it is over; or it is over without.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{SCOUT, Team, id, which_environment};
use crate::scene::ledger;
use crate::support::SinkAnswer;

fn last_word() -> Value {
    json!({ "content": { "type": "response", "body": "Stopped. I had read the issue; nothing was changed." } })
}

#[tokio::test]
async fn a_stop_that_is_answered_ends_the_session_as_stopped() {
    let team = Team::new().await;
    let session = team.begin("fix the flaky test").await;
    team.builder.does(&session, which_environment()).await;
    team.in_thread(&session, "Which environment").await;
    let before = team.builder.count();
    team.says(&team.ben, &session, "!stop").await;
    let told = team.builder.told(before, "prompted").await;
    assert_eq!(told.json["agent_activity"]["signal"], "stop");
    assert_eq!(told.json["agent_activity"]["content"]["type"], "prompt");
    assert_eq!(told.json["agent_session"]["status"], "stopping");
    assert_eq!(told.json["agent_session"]["end_reason"], Value::Null);
    // The question is withdrawn, and it is no time to ask another.
    team.seen("the question to be withdrawn", |event| {
        event["content"]["m.new_content"]["body"]
            .as_str()
            .is_some_and(|body| body.contains("Which environment") && body.contains("Withdrawn"))
    })
    .await;
    let (status, refused) = team.builder.tries(&session, which_environment()).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refused["error"]["code"], "SESSION_STOPPING");
    team.builder
        .says(&session, "action", "Putting things back")
        .await;
    assert_eq!(
        team.builder.session(id(&session)).await["status"],
        "stopping"
    );
    team.builder.does(&session, last_word()).await;
    let ended = team.builder.until(&session, "complete").await;
    assert_eq!(ended["end_reason"], "stopped");
    assert!(ended["ended_at"].is_string());
    team.in_thread(&session, "nothing was changed").await;
    for write in [
        last_word(),
        json!({"content": {"type": "thought", "body": "Hm."}}),
    ] {
        let (status, refused) = team.builder.tries(&session, write).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert_eq!(refused["error"]["code"], "SESSION_ENDED");
    }
    // Whoever still speaks to it is told.
    let late = team.says(&team.ada, &session, "and now?").await;
    team.seen("a word about the end", |event| {
        event["content"]["msgtype"] == "m.notice"
            && event["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == late.as_str()
    })
    .await;
}

#[tokio::test]
async fn a_stop_that_is_not_answered_ends_the_session_a_minute_later_also_across_a_kill() {
    let mut team = Team::new().await;
    let session = team.begin("fix the flaky test").await;
    let before = team.builder.count();
    team.says(&team.ada, &session, "!stop").await;
    team.builder.told(before, "prompted").await;
    team.bot.kill9();
    // By the ledger's clock it was stopped a minute ago.
    let ago = "UPDATE sessions SET due_at = due_at - 61000,
                   session = json_set(session, '$.updated_at', (session ->> '$.updated_at') - 61000)";
    assert_eq!(ledger(&team.bot).execute(ago, []).unwrap(), 1);
    team.bot.start_again().await;
    let ended = team.builder.until(&session, "complete").await;
    assert_eq!(ended["end_reason"], "stopped");
    let (status, refused) = team.builder.tries(&session, last_word()).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refused["error"]["code"], "SESSION_ENDED");
}

#[tokio::test]
async fn a_stop_survives_the_kill_of_the_bot_and_reaches_an_agent_that_was_away() {
    let mut team = Team::new().await;
    let session = team.begin("fix the flaky test").await;
    team.builder.sink.answer_with(SinkAnswer::Status(503));
    let before = team.builder.count();
    team.says(&team.ada, &session, "one more thing").await;
    team.builder.told(before, "prompted").await;
    let before = team.builder.count();
    team.says(&team.ada, &session, "!stop").await;
    team.builder.until(&session, "stopping").await;
    team.bot.kill9();
    team.builder.sink.answer_with(SinkAnswer::Status(204));
    team.bot.start_again().await;
    let received = team.builder.sink.wait_for_count(before + 1).await;
    let stop = received[before..]
        .iter()
        .find(|event| event.json["agent_activity"]["signal"] == "stop");
    assert!(
        stop.is_some() || {
            let all = team.builder.sink.wait_for_count(before + 2).await;
            all.iter()
                .any(|event| event.json["agent_activity"]["signal"] == "stop")
        }
    );
    team.builder.does(&session, last_word()).await;
    assert_eq!(
        team.builder.until(&session, "complete").await["end_reason"],
        "stopped"
    );
}

#[tokio::test]
async fn a_stop_goes_ahead_of_what_the_agent_does_not_take() {
    let team = Team::new().await;
    let session = team.begin("fix the flaky test").await;
    team.builder.sink.answer_with(SinkAnswer::Hang);
    for number in 0..12 {
        team.says(&team.ada, &session, &format!("thought {number}"))
            .await;
    }
    let others = team.begin_many(10).await;
    assert_eq!(others, 10);
    let before = team.builder.count();
    team.says(&team.ada, &session, "!stop").await;
    let stop = crate::support::soon("the stop to come", async || {
        let received = team.builder.sink.received();
        received
            .into_iter()
            .skip(before.saturating_sub(8))
            .find(|event| event.json["agent_activity"]["signal"] == "stop")
    })
    .await;
    assert_eq!(stop.json["agent_session"]["id"], id(&session));
}

#[tokio::test]
async fn the_word_stop_in_a_sentence_is_a_prompt() {
    let team = Team::new().await;
    let session = team.begin("fix the flaky test").await;
    for said in ["stop", "please stop", "!stop doing that", "Stop!"] {
        let before = team.builder.count();
        team.says(&team.ada, &session, said).await;
        let told = team.builder.told(before, "prompted").await;
        assert_eq!(told.json["agent_activity"]["content"]["body"], said);
        assert_eq!(told.json["agent_activity"].get("signal"), None);
    }
    assert_eq!(team.builder.session(id(&session)).await["status"], "active");
}

#[tokio::test]
async fn taking_the_session_away_is_the_same_stop_with_its_own_reason() {
    let team = Team::new().await;
    for command in ["!undelegate", "!delegate scout"] {
        let session = team.begin("fix the flaky test").await;
        let (before, scouts) = (team.builder.count(), team.scout.count());
        // On the session's message it does as well.
        team.ben
            .reply(&team.room, session["thread"].as_str().unwrap(), command)
            .await
            .unwrap();
        let told = team.builder.told(before, "prompted").await;
        assert_eq!(told.json["agent_activity"]["signal"], "stop");
        assert_eq!(told.json["agent_session"]["end_reason"], "undelegated");
        team.builder.does(&session, last_word()).await;
        let ended = team.builder.until(&session, "complete").await;
        assert_eq!(ended["end_reason"], "undelegated");
        if command.contains("scout") {
            let begun = team.scout.told(scouts, "created").await;
            assert_eq!(begun.json["agent_session"]["agent"], SCOUT);
            assert_eq!(
                begun.json["agent_activity"]["content"]["body"],
                "fix the flaky test"
            );
        }
    }
}

#[tokio::test]
async fn a_session_that_is_removed_ends_at_once_and_without_stop() {
    let team = Team::new().await;
    let session = team.begin("fix the flaky test").await;
    let before = team.builder.count();
    let path = format!("/v1/sessions/{}", id(&session));
    let (status, ended) = team.builder.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::OK, "{ended:#}");
    assert_eq!(
        (&ended["status"], &ended["end_reason"]),
        (&json!("complete"), &json!("deleted"))
    );
    let (status, refused) = team.builder.call(Method::DELETE, &path, None).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (StatusCode::CONFLICT, &json!("SESSION_ENDED"))
    );
    let other = team.begin("something else").await;
    team.ada.kick(&team.room, team.bot.user_id()).await.unwrap();
    let ended = team.builder.until(&other, "complete").await;
    assert_eq!(ended["end_reason"], "deleted");
    let stops = team.builder.sink.received().into_iter().skip(before);
    assert_eq!(
        stops
            .filter(|event| event.json["action"] == "prompted")
            .count(),
        0
    );
}

#[tokio::test]
async fn who_may_not_answer_may_not_stop() {
    let (ada, ben) = crate::stage::people().await;
    let users = json!([ada.user_id()]);
    let team = Team::of(ada, ben, |config| config.with("answers.users", users)).await;
    let session = team.begin("fix the flaky test").await;
    let tried = team.says(&team.ben, &session, "!stop").await;
    team.seen("a refusal", |event| {
        event["content"]["msgtype"] == "m.notice"
            && event["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == tried.as_str()
    })
    .await;
    assert_eq!(team.builder.session(id(&session)).await["status"], "active");
    let before = team.builder.count();
    team.says(&team.ada, &session, "!stop").await;
    let told = team.builder.told(before, "prompted").await;
    assert_eq!(
        told.json["agent_activity"]["user"]["user_id"],
        team.ada.user_id()
    );
}

impl Team {
    /// Ada begins many sessions of the builder, which need not answer; how many.
    async fn begin_many(&self, count: usize) -> usize {
        for number in 0..count {
            self.ada
                .send_text(&self.room, &format!("builder: do number {number}"))
                .await
                .unwrap();
        }
        count
    }
}
