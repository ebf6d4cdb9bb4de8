//! The look beneath the pushes: nothing that is pending on the board is missing in the room, and
//! nothing stays open here that is over there.

use serde_json::json;

use super::{Office, may_i_run_them};
use crate::support::{BoardFault, BoardRoute, soon};

/// An office whose board is looked at every second.
async fn looking() -> Office {
    Office::with(|config| config.with("boards.brd_7c1f.sweep", json!("1s"))).await
}

/// Pain: lost.
#[tokio::test]
async fn a_push_that_is_lost_is_found_by_the_sweep() {
    let office = looking().await;
    office
        .board
        .fault_forever(BoardRoute::Push, BoardFault::Drop)
        .await;
    let (id, card) = office.ask(may_i_run_them()).await;
    let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
    office.reacted(&answer, "✓").await;
    assert_eq!(office.board.elicitation(&id).await["state"], "answered");
    assert_eq!(office.cards().await, [id]);
}

#[tokio::test]
async fn pushes_and_sweeps_that_race_put_each_question_up_once() {
    let office = looking().await;
    office
        .board
        .fault_forever(BoardRoute::Push, BoardFault::Double)
        .await;
    let mut asked = Vec::new();
    for _ in 0..12 {
        asked.push(office.board.ask(&may_i_run_them()).await);
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    for id in &asked {
        office.card(id).await;
        office.board.until_pushed(id).await;
    }
    let mut shown = office.cards().await;
    shown.sort();
    asked.sort();
    assert_eq!(shown, asked);
}

#[tokio::test]
async fn what_is_no_longer_pending_on_the_board_is_closed_in_the_room() {
    let office = looking().await;
    let (cancelled, card) = office.ask(may_i_run_them()).await;
    let (answered, other) = office.ask(may_i_run_them()).await;
    let (_, open) = office.ask(may_i_run_them()).await;
    office.board.cancel(&cancelled).await;
    office
        .board
        .answer_as_web(&answered, "usr_ben", &json!({"option": "skip"}))
        .await;
    for card in [&card, &other] {
        let words = office.last_words(card).await;
        assert!(words.contains("Settled on the board"), "{words}");
    }
    let late = office.ada.reply(&office.room, &card, "1").await.unwrap();
    let words = office.told(&late).await;
    assert!(words.contains("is closed"), "{words}");
    assert!(words.contains("Settled on the board"), "{words}");
    // What is still pending stays open.
    let answer = office.ada.reply(&office.room, &open, "1").await.unwrap();
    office.reacted(&answer, "✓").await;
}

#[tokio::test]
async fn a_board_that_cannot_be_read_settles_nothing() {
    let office = looking().await;
    let (id, card) = office.ask(may_i_run_them()).await;
    for fault in [
        BoardFault::Status(200, json!({"elicitations": null})),
        BoardFault::Status(200, json!([])),
        BoardFault::Status(200, json!({"elicitations": [{"question": "whose?"}]})),
        BoardFault::Status(404, json!({"elicitations": []})),
        BoardFault::Status(500, json!({"elicitations": []})),
        BoardFault::Garble,
        BoardFault::Close,
    ] {
        let before = office.board.requests_for(BoardRoute::Pending).await.len();
        office.board.fault_forever(BoardRoute::Pending, fault).await;
        office
            .board
            .until_requests(BoardRoute::Pending, before + 2)
            .await;
    }
    let unread = r#"elicit_board_unread{board="brd_7c1f"} 1"#;
    let metrics = office.bot.api().metrics().await;
    assert!(metrics.contains(unread), "{metrics}");
    office.board.clear_faults().await;
    let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
    office.reacted(&answer, "✓").await;
    assert_eq!(office.board.elicitation(&id).await["state"], "answered");
    soon("the board to be read again", async || {
        let metrics = office.bot.api().metrics().await;
        metrics
            .contains(&unread.replace("} 1", "} 0"))
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn without_an_address_of_its_own_the_bot_lives_by_the_sweep_alone() {
    let office = Office::with(|config| {
        config
            .without("http.public_url")
            .with("boards.brd_7c1f.sweep", json!("1s"))
    })
    .await;
    let (id, card) = office.ask(may_i_run_them()).await;
    assert!(office.board.subscriptions().await.is_empty());
    let answer = office.ada.reply(&office.room, &card, "2").await.unwrap();
    office.reacted(&answer, "✓").await;
    assert_eq!(
        office.board.until_answered(&id).await["answer"]["option"],
        "skip"
    );
}
