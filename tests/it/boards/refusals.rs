//! Everything that a board refuses, in its own words, and what becomes of the question.

use serde_json::json;

use super::{Office, may_i_run_them};
use crate::support::{BoardFault, BoardOptions, BoardRoute};

#[tokio::test]
async fn a_person_whom_nobody_knows_on_the_board_is_told_so_and_others_may_answer() {
    let office = Office::with(|config| config).await;
    let (id, card) = office.ask(may_i_run_them()).await;
    office.board.knows("usr_ben", false).await;
    let answer = office.ben.reply(&office.room, &card, "1").await.unwrap();
    let words = office.told(&answer).await;
    assert!(words.contains("the board does not know you"), "{words}");
    assert_eq!(office.board.elicitation(&id).await["state"], "pending");
    let other = office.ada.reply(&office.room, &card, "1").await.unwrap();
    office.reacted(&other, "✓").await;
    assert_eq!(office.board.elicitation(&id).await["state"], "answered");
}

#[tokio::test]
async fn a_person_without_a_credential_never_reaches_the_board() {
    let office = Office::with(|config| config).await;
    let cem = crate::stage::people().await.1;
    office
        .ada
        .invite(&office.room, cem.user_id())
        .await
        .unwrap();
    cem.join(&office.room).await.unwrap();
    let (id, card) = office.ask(may_i_run_them()).await;
    let answer = cem.reply(&office.room, &card, "1").await.unwrap();
    let words = office.told(&answer).await;
    assert!(words.contains("the board does not know you"), "{words}");
    assert!(
        office
            .board
            .requests_for(BoardRoute::Answer)
            .await
            .is_empty()
    );
    assert_eq!(office.board.elicitation(&id).await["state"], "pending");
}

#[tokio::test]
async fn whoever_asks_may_not_answer() {
    let office = Office::new().await;
    let mut question = may_i_run_them();
    question["agentId"] = json!("usr_ada");
    let (id, card) = office.ask(question).await;
    let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
    let words = office.told(&answer).await;
    assert!(words.contains("who asks may not answer"), "{words}");
    assert_eq!(office.board.elicitation(&id).await["state"], "pending");
}

#[tokio::test]
async fn what_the_board_does_not_take_as_an_answer_is_told_with_the_options() {
    let office = Office::new().await;
    let (id, card) = office.ask(may_i_run_them()).await;
    for nested in [false, true] {
        let invalid = json!({"error": {"code": "INVALID_ANSWER", "message": "no such option"}});
        let body = if nested {
            json!({ "error": invalid })
        } else {
            invalid
        };
        let fault = BoardFault::Status(400, body);
        office.board.fault(BoardRoute::Answer, &[fault]).await;
        let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
        let words = office.told(&answer).await;
        assert!(words.contains("does not take that as an answer"), "{words}");
        assert!(words.contains("2. Skip them"), "{words}");
    }
    let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
    office.reacted(&answer, "✓").await;
    assert_eq!(office.board.elicitation(&id).await["state"], "answered");
}

#[tokio::test]
async fn any_other_refusal_is_told_by_its_code_and_leaves_the_question_open() {
    let office = Office::new().await;
    let (id, card) = office.ask(may_i_run_them()).await;
    let refused =
        json!({"error": {"code": "STALE_LEASE", "message": "the run has lost its lease"}});
    office
        .board
        .fault(BoardRoute::Answer, &[BoardFault::Status(409, refused)])
        .await;
    let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
    let words = office.told(&answer).await;
    assert!(words.contains("(STALE_LEASE)"), "{words}");
    assert_eq!(office.board.elicitation(&id).await["state"], "pending");
    let again = office.ada.reply(&office.room, &card, "1").await.unwrap();
    office.reacted(&again, "✓").await;
}

#[tokio::test]
async fn an_identity_service_that_is_down_is_not_an_unknown_person() {
    let (ada, _) = crate::stage::people().await;
    let board = BoardOptions::default()
        .with_matrix_person("usr_ada", ada.user_id())
        .start()
        .await;
    let assertion = json!({"url": board.identity_url(), "token": board.identity_token()});
    let office = Office::of(board, ada, |config| {
        config.with("boards.brd_7c1f.people", json!({"assertion": assertion}))
    })
    .await;
    let (id, card) = office.ask(may_i_run_them()).await;
    let down = BoardFault::Status(503, json!({"error": "try later"}));
    office
        .board
        .fault(BoardRoute::Identity, &[down, BoardFault::Close])
        .await;
    // Each try is told of.
    for _ in 0..2 {
        let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
        let words = office.told(&answer).await;
        assert!(
            words.contains("does not answer. The question stays open"),
            "{words}"
        );
    }
    assert_eq!(office.board.elicitation(&id).await["state"], "pending");
    let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
    office.reacted(&answer, "✓").await;
    assert_eq!(office.board.elicitation(&id).await["state"], "answered");
}

#[tokio::test]
async fn a_person_unknown_to_the_identity_service_is_unknown() {
    let (ada, _) = crate::stage::people().await;
    let board = BoardOptions::default().start().await;
    let assertion = json!({"url": board.identity_url(), "token": board.identity_token()});
    let office = Office::of(board, ada, |config| {
        config.with("boards.brd_7c1f.people", json!({"assertion": assertion}))
    })
    .await;
    let (_, card) = office.ask(may_i_run_them()).await;
    let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
    let words = office.told(&answer).await;
    assert!(words.contains("the board does not know you"), "{words}");
}
