//! From the push to the ✓: answers as the person, and the board decides.

use serde_json::json;

use super::{Office, SECRET, event_id, known, may_i_run_them};
use crate::scene::CARD;
use crate::support::{BoardFault, BoardOptions, BoardRoute, soon};

#[tokio::test]
async fn a_pushed_question_is_answered_as_the_person_who_typed_and_ticked_when_the_board_has_it() {
    let office = Office::new().await;
    let (id, card) = office.ask(may_i_run_them()).await;
    let shown = office.ada.event(&office.room, &card).await.unwrap();
    assert_eq!(shown["content"][CARD]["board_id"], "brd_7c1f");
    assert_eq!(shown["content"][CARD]["asked_by"], "agt_31d0");
    let answer = office
        .ben
        .send_text(&office.room, "skip them")
        .await
        .unwrap();
    office.reacted(&answer, "✓").await;
    let decided = office.board.until_answered(&id).await;
    assert_eq!(decided["answer"]["option"], "skip");
    assert_eq!(decided["answer"]["answeredBy"], "usr_ben");
    let words = office.last_words(&card).await;
    assert!(words.contains("✓ 2. Skip them — Ben ("), "{words}");
    let given = office.board.requests_for(BoardRoute::Answer).await;
    let [given] = given.as_slice() else {
        panic!("{given:#?}");
    };
    assert_eq!(given["by"], "usr_ben");
    assert_eq!(given["body"], json!({"option": "skip"}));
}

#[tokio::test]
async fn the_tick_waits_for_the_board() {
    let office = Office::new().await;
    let (id, _) = office.ask(may_i_run_them()).await;
    let slow = BoardFault::Slow(std::time::Duration::from_secs(5));
    office.board.fault(BoardRoute::Answer, &[slow]).await;
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    // It takes so long that the room is shown that it does.
    let waiting = office.reacted(&answer, "⏳").await;
    assert_eq!(office.board.elicitation(&id).await["state"], "pending");
    let told = office.ben.send_text(&office.room, "2").await.unwrap();
    assert!(
        office
            .told(&told)
            .await
            .contains("is on its way to the board"),
    );
    office.reacted(&answer, "✓").await;
    assert_eq!(office.board.elicitation(&id).await["state"], "answered");
    soon("⏳ to go", async || {
        let event = office.ada.event(&office.room, &waiting).await.unwrap();
        event["content"]
            .as_object()
            .unwrap()
            .is_empty()
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn own_words_go_as_text_where_the_board_takes_texts() {
    let office = Office::with(|config| config.with("boards.brd_7c1f.free_text", json!(true))).await;
    let (id, card) = office
        .ask(json!({"question": "What shall it be called?", "options": []}))
        .await;
    let answer = office
        .ada
        .reply(&office.room, &card, "Call it Halma")
        .await
        .unwrap();
    office.reacted(&answer, "✓").await;
    let decided = office.board.until_answered(&id).await;
    assert_eq!(decided["answer"]["text"], "Call it Halma");
    assert_eq!(decided["answer"]["answeredBy"], "usr_ada");
}

#[tokio::test]
async fn people_are_known_by_the_identity_service_whose_tokens_are_kept_and_renewed() {
    let (ada, ben) = crate::stage::people().await;
    drop(ben);
    let board = BoardOptions::default()
        .with_matrix_person("usr_ada", ada.user_id())
        .start()
        .await;
    let assertion = json!({"url": board.identity_url(), "token": board.identity_token()});
    let people = json!({"assertion": assertion});
    let ada_id = ada.user_id().to_owned();
    let office = Office::of(board, ada, |config| {
        config.with("boards.brd_7c1f.people", people)
    })
    .await;
    for expected in [1, 1, 2] {
        let (id, card) = office.ask(may_i_run_them()).await;
        if expected == 2 {
            // What was issued is good no longer: another one is asked for, once.
            office.board.revoke_issued().await;
        }
        let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
        office.reacted(&answer, "✓").await;
        let decided = office.board.until_answered(&id).await;
        assert_eq!(decided["answer"]["answeredBy"], "usr_ada");
        let asked = office.board.requests_for(BoardRoute::Identity).await;
        assert_eq!(asked.len(), expected, "{asked:#?}");
        assert_eq!(asked[0]["body"]["matrix_user_id"], ada_id);
        assert_eq!(asked[0]["body"]["audience"], office.board.url());
    }
}

#[tokio::test]
async fn a_board_in_development_takes_its_dev_headers() {
    let board = BoardOptions::default()
        .with_tenant("tnt_dev")
        .with_person("usr_ada")
        .start()
        .await;
    let (ada, _) = crate::stage::people().await;
    let people = json!({"dev": {"tenant": "tnt_dev", "users": {ada.user_id(): "usr_ada"}}});
    let office = Office::of(board, ada, |config| {
        config.with("boards.brd_7c1f.people", people)
    })
    .await;
    let (id, _) = office.ask(may_i_run_them()).await;
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    office.reacted(&answer, "✓").await;
    let decided = office.board.until_answered(&id).await;
    assert_eq!(decided["answer"]["answeredBy"], "usr_ada");
}

#[tokio::test]
async fn all_six_options_are_answerable_though_the_card_has_four() {
    let office = Office::new().await;
    let options: Vec<_> = ["Red", "Green", "Blue", "Grey", "White", "Black"]
        .map(|label| json!({"id": label.to_lowercase(), "label": label}))
        .to_vec();
    let (id, card) = office
        .ask(json!({"question": "Which colour?", "options": options}))
        .await;
    let shown = office.ada.event(&office.room, &card).await.unwrap();
    assert_eq!(
        shown["content"][CARD]["options"].as_array().unwrap().len(),
        4
    );
    let body = shown["content"]["body"].as_str().unwrap();
    assert!(
        body.contains("6. Black") && body.contains("options 5 and 6 have none"),
        "{body}"
    );
    office.ada.send_text(&office.room, "6").await.unwrap();
    let decided = office.board.until_answered(&id).await;
    assert_eq!(decided["answer"]["option"], "black");
}

#[tokio::test]
async fn two_questions_of_one_board_are_told_apart_by_their_tags() {
    let office = Office::new().await;
    let (first, _) = office.ask(may_i_run_them()).await;
    let (second, _) = office.ask(may_i_run_them()).await;
    let unclear = office.ada.send_text(&office.room, "1").await.unwrap();
    assert!(office.told(&unclear).await.contains("q2"));
    assert_eq!(office.board.elicitation(&first).await["state"], "pending");
    let answer = office.ada.send_text(&office.room, "q2 1").await.unwrap();
    office.reacted(&answer, "✓").await;
    assert_eq!(office.board.elicitation(&second).await["state"], "answered");
    assert_eq!(office.board.elicitation(&first).await["state"], "pending");
}

#[tokio::test]
async fn what_only_the_board_can_take_is_shown_without_a_card() {
    let office = Office::new().await;
    let id = office
        .board
        .ask(&json!({"question": "Please sign in there.", "options": [], "cardTitle": "Deploy"}))
        .await;
    let shown = office
        .seen("the prose", |event| {
            let body = event["content"]["body"].as_str().unwrap_or_default();
            body.starts_with("Please sign in there.")
        })
        .await;
    assert_eq!(shown["content"].get(CARD), None);
    let body = shown["content"]["body"].as_str().unwrap();
    assert!(
        body.contains("It can only be answered on the board"),
        "{body}"
    );
    assert!(body.contains("Deploy"), "{body}");
    let reply = office
        .ada
        .reply(&office.room, &event_id(&shown), "done")
        .await
        .unwrap();
    assert!(
        office
            .told(&reply)
            .await
            .contains("I cannot take an answer")
    );
    assert_eq!(
        office.board.requests_for(BoardRoute::Answer).await,
        [] as [serde_json::Value; 0]
    );
    assert_eq!(office.board.elicitation(&id).await["state"], "pending");
}

#[tokio::test]
async fn an_answer_that_is_redacted_before_it_is_handed_in_is_not() {
    let office = Office::new().await;
    let (id, card) = office.ask(may_i_run_them()).await;
    office
        .board
        .fault_forever(BoardRoute::Answer, BoardFault::Close)
        .await;
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    let waiting = office.reacted(&answer, "⏳").await;
    office.ada.redact(&office.room, &answer).await.unwrap();
    soon("⏳ to go", async || {
        let event = office.ada.event(&office.room, &waiting).await.unwrap();
        event["content"]
            .as_object()
            .unwrap()
            .is_empty()
            .then_some(())
    })
    .await;
    office.board.clear_faults().await;
    // The question is open for everybody else.
    let other = office.ben.reply(&office.room, &card, "2").await.unwrap();
    office.reacted(&other, "✓").await;
    let decided = office.board.until_answered(&id).await;
    assert_eq!(decided["answer"]["option"], "skip");
    assert_eq!(decided["answer"]["answeredBy"], "usr_ben");
}

#[tokio::test]
async fn an_encrypted_room_hears_everything_encrypted() {
    use crate::scene::Someone;
    use crate::support::{BotConfig, BotProcess, homeserver};

    let synapse = homeserver().await;
    let who = Someone::new(synapse, "ada", true).await;
    let board = known(BoardOptions::default()).start().await;
    let config = BotConfig::new(synapse).await;
    let room = who.make_room(&[config.user_id()]).await;
    let people = json!({"bearer": {who.user_id(): "token-of-ada"}});
    let config = config.with_path(
        &["boards", board.id()],
        json!({
            "base_url": board.url(), "agent_token": board.agent_token(),
            "push_secrets": [SECRET], "room": room, "people": people,
        }),
    );
    let public_url = json!(config.url());
    let bot = BotProcess::start(config.with("http.public_url", public_url)).await;
    let push_url = format!("{}/v1/boards/{}/push", bot.url(), board.id());
    board.until_subscribed(&push_url).await;
    let id = board.ask(&may_i_run_them()).await;
    who.reads_card(&room, &id).await;
    let answer = who.say(&room, "1").await;
    let decided = board.until_answered(&id).await;
    assert_eq!(decided["answer"]["option"], "run_them");
    let ticked = |event: &serde_json::Value| {
        event["content"]["m.relates_to"]["event_id"] == answer
            && event["content"]["m.relates_to"]["key"] == "✓"
    };
    who.plain()
        .wait_for(&room, "the ✓", crate::support::SOON, ticked)
        .await
        .unwrap();
}
