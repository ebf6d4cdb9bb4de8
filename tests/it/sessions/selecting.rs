//! A choice that an agent offers: a pick comes back as its value, everything else as it was said.

use serde_json::{Value, json};

use super::{Team, id, which_environment};
use crate::support::soon;

/// The card of a question, counted from 0, once it is in the room: what is said before is said to
/// the one before it.
async fn nth_card(team: &Team, number: usize) -> Value {
    soon("the next card", async || {
        let timeline = team.ada.timeline(&team.room).await.unwrap();
        let is_card =
            |event: &&Value| event["content"]["dev.superpipeline.elicitation"].is_object();
        timeline.iter().filter(is_card).nth(number).cloned()
    })
    .await
}

/// The value that comes back for each thing a person says, in a thread, in one session.
#[tokio::test]
async fn a_pick_by_number_value_or_label_comes_back_as_its_value() {
    let team = Team::new().await;
    let session = team.begin("deploy the release").await;
    let picks = [
        ("2", "production"),
        ("STAGING", "staging"),
        ("Production.", "production"),
    ];
    for (number, (said, value)) in picks.into_iter().enumerate() {
        team.builder.does(&session, which_environment()).await;
        team.builder.until(&session, "awaitingInput").await;
        let card = nth_card(&team, number).await;
        let card_id = card["event_id"].as_str().unwrap().to_owned();
        assert_eq!(
            card["content"]["dev.superpipeline.elicitation"]["options"],
            json!([{"id": "staging", "label": "Staging"}, {"id": "production", "label": "Production"}])
        );
        let before = team.builder.count();
        let message = team.says(&team.ben, &session, said).await;
        let told = team.builder.told(before, "prompted").await;
        let activity = &told.json["agent_activity"];
        assert_eq!(
            activity["content"],
            json!({"type": "prompt", "body": value}),
            "{said}"
        );
        assert_eq!(activity["user"]["user_id"], team.ben.user_id());
        assert_eq!(activity["user"]["display_name"], "Ben");
        assert_eq!(activity.get("signal"), None);
        assert_eq!(told.json["agent_session"]["status"], "active");
        assert_eq!(told.json["agent_session"]["id"], id(&session));
        // The person sees that it was taken.
        team.seen("the ✓", |event| {
            event["content"]["m.relates_to"]["event_id"] == message.as_str()
                && event["content"]["m.relates_to"]["key"] == "✓"
        })
        .await;
        team.seen("the card's last words", |event| {
            event["content"]["m.relates_to"]["rel_type"] == "m.replace"
                && event["content"]["m.relates_to"]["event_id"] == card_id.as_str()
        })
        .await;
        team.builder.says(&session, "response", "Done.").await;
    }
}

#[tokio::test]
async fn people_may_ignore_the_options_and_write_their_own_answer() {
    let team = Team::new().await;
    let session = team.begin("deploy the release").await;
    let answers = [
        "staging, but only after 6pm",
        "staging or production",
        "stop asking me that",
        "not production",
    ];
    for (number, own) in answers.into_iter().enumerate() {
        team.builder.does(&session, which_environment()).await;
        nth_card(&team, number).await;
        let before = team.builder.count();
        team.says(&team.ada, &session, own).await;
        let told = team.builder.told(before, "prompted").await;
        assert_eq!(told.json["agent_activity"]["content"]["body"], own);
        assert_eq!(told.json["agent_activity"].get("signal"), None);
        team.builder.says(&session, "response", "Done.").await;
    }
}

#[tokio::test]
async fn a_choice_can_be_made_beside_the_thread_and_by_a_rich_reply() {
    let team = Team::new().await;
    let session = team.begin("deploy the release").await;
    team.builder.does(&session, which_environment()).await;
    team.in_thread(&session, "Which environment").await;
    let before = team.builder.count();
    team.ben.send_text(&team.room, "1").await.unwrap();
    let told = team.builder.told(before, "prompted").await;
    assert_eq!(told.json["agent_activity"]["content"]["body"], "staging");
    team.builder.does(&session, which_environment()).await;
    let card = nth_card(&team, 1).await;
    let card = card["event_id"].as_str().unwrap();
    let before = team.builder.count();
    team.ada
        .reply(&team.room, card, "production")
        .await
        .unwrap();
    let told = team.builder.told(before, "prompted").await;
    assert_eq!(told.json["agent_activity"]["content"]["body"], "production");
}

#[tokio::test]
async fn an_agent_that_asks_is_answered_by_its_name_and_begins_nothing_new() {
    let team = Team::new().await;
    let session = team.begin("deploy the release").await;
    team.builder.does(&session, which_environment()).await;
    team.in_thread(&session, "Which environment").await;
    let before = team.builder.count();
    team.ben.send_text(&team.room, "Builder: 2").await.unwrap();
    let told = team.builder.told(before, "prompted").await;
    assert_eq!(told.json["agent_activity"]["content"]["body"], "production");
    assert_eq!(told.json["agent_session"]["id"], id(&session));
    let before = team.builder.count();
    team.ben
        .send_text(&team.room, "builder: and now the docs")
        .await
        .unwrap();
    let told = team.builder.told(before, "created").await;
    assert_ne!(told.json["agent_session"]["id"], id(&session));
}

#[tokio::test]
async fn ten_options_are_all_in_the_prose_and_answerable() {
    let team = Team::new().await;
    let session = team.begin("paint").await;
    let options: Vec<_> = (1..=10)
        .map(|number| json!({"value": format!("colour-{number}")}))
        .collect();
    let ask = |options: &[serde_json::Value]| {
        json!({
            "content": {"type": "elicitation", "body": "Which one?"}, "signal": "select",
            "signal_metadata": {"options": options},
        })
    };
    for wrong in [
        &options[..0],
        &[options.clone(), options[..1].to_vec()].concat()[..],
    ] {
        let (status, refused) = team.builder.tries(&session, ask(wrong)).await;
        assert_eq!(status.as_u16(), 400, "{refused:#}");
        assert_eq!(refused["error"]["field"], "signal_metadata.options");
    }
    team.builder.does(&session, ask(&options)).await;
    let card = team.in_thread(&session, "10. colour-10").await;
    let on_card = &card["content"]["dev.superpipeline.elicitation"]["options"];
    assert_eq!(on_card.as_array().unwrap().len(), 4);
    let before = team.builder.count();
    team.says(&team.ada, &session, "10").await;
    let told = team.builder.told(before, "prompted").await;
    assert_eq!(told.json["agent_activity"]["content"]["body"], "colour-10");
}

#[tokio::test]
async fn a_question_in_plain_words_is_answered_by_the_agents_name_too() {
    let team = Team::new().await;
    let session = team.begin("deploy the release").await;
    team.builder
        .says(&session, "elicitation", "Which version is it?")
        .await;
    team.in_thread(&session, "Which version is it?").await;
    let before = team.builder.count();
    team.ben
        .send_text(&team.room, "builder: the one of yesterday")
        .await
        .unwrap();
    let told = team.builder.told(before, "prompted").await;
    assert_eq!(
        told.json["agent_activity"]["content"]["body"],
        "the one of yesterday"
    );
    assert_eq!(told.json["agent_session"]["id"], id(&session));
}
