//! What people take back or put right in a session.

use serde_json::json;

use super::Team;
use crate::support::soon;

#[tokio::test]
async fn a_first_line_that_is_put_right_is_said_to_its_session_and_begins_no_other() {
    let team = Team::new().await;
    let message = team
        .ada
        .send_text(&team.room, "builder: deploy the relaese")
        .await
        .unwrap();
    let begun = team.builder.told(0, "created").await;
    let before = team.builder.count();
    let corrected = "builder: deploy the release";
    team.ada
        .edit(&team.room, &message, corrected)
        .await
        .unwrap();
    let told = team.builder.told(before, "prompted").await;
    assert_eq!(
        told.json["agent_session"]["id"],
        begun.json["agent_session"]["id"]
    );
    assert_eq!(
        told.json["agent_activity"]["content"],
        json!({"type": "prompt", "body": "deploy the release"})
    );
}

#[tokio::test]
async fn a_prompt_that_was_edited_and_is_redacted_leaves_neither_text_behind() {
    let team = Team::new().await;
    let session = team.begin("think").await;
    let message = team
        .says(&team.ada, &session, "the password is hunter2")
        .await;
    let before = team.builder.count();
    team.ada
        .edit(&team.room, &message, "the password is swordfish")
        .await
        .unwrap();
    team.builder.told(before, "prompted").await;
    team.ada.redact(&team.room, &message).await.unwrap();
    soon("both texts to be gone", async || {
        let activities = team.builder.activities(&session).await;
        let kept = serde_json::to_string(&activities).unwrap();
        let is_kept = ["hunter2", "swordfish"]
            .iter()
            .any(|text| kept.contains(text));
        (!is_kept).then_some(())
    })
    .await;
}
