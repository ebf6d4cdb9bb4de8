//! The room and the board's web app at once: the board decides, the room tells the truth.

use serde_json::json;

use super::{Office, may_i_run_them};
use crate::support::{BoardFault, BoardRoute};

#[tokio::test]
async fn what_was_answered_on_the_board_first_is_told_to_whoever_answers_in_the_room() {
    let office = Office::new().await;
    let (id, card) = office.ask(may_i_run_them()).await;
    let (status, _) = office
        .board
        .answer_as_web(&id, "usr_ben", &json!({"option": "skip"}))
        .await;
    assert!(status.is_success());
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    let words = office.told(&answer).await;
    assert!(
        words.contains("was settled on the board before your answer came there"),
        "{words}"
    );
    assert!(
        office
            .last_words(&card)
            .await
            .contains("Settled on the board")
    );
    assert_eq!(
        office.board.elicitation(&id).await["answer"]["option"],
        "skip"
    );
}

#[tokio::test]
async fn a_question_that_the_board_no_longer_knows_is_closed_as_settled() {
    let mut office = Office::new().await;
    let (_, card) = office.ask(may_i_run_them()).await;
    office.board.restart().await;
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    assert!(office.told(&answer).await.contains("ettled on the board"));
    assert!(
        office
            .last_words(&card)
            .await
            .contains("Settled on the board")
    );
}

#[tokio::test]
async fn of_the_room_and_the_web_app_at_once_one_is_taken_and_the_room_says_which() {
    let office = Office::new().await;
    let (mut here, mut there) = (0, 0);
    for _ in 0..8 {
        let (id, card) = office.ask(may_i_run_them()).await;
        let answering = office.ada.reply(&office.room, &card, "1");
        let option = json!({"option": "skip"});
        let web = office.board.answer_as_web(&id, "usr_ben", &option);
        let (answer, (status, _)) = tokio::join!(answering, web);
        let answer = answer.unwrap();
        let decided = office.board.until_answered(&id).await;
        let words = office.last_words(&card).await;
        if status.is_success() {
            there += 1;
            assert_eq!(decided["answer"]["option"], "skip");
            assert!(words.contains("Settled on the board"), "{words}");
            office.told(&answer).await;
        } else {
            here += 1;
            assert_eq!(decided["answer"]["option"], "run_them");
            assert!(words.contains("✓ 1. Run the tests"), "{words}");
            office.reacted(&answer, "✓").await;
        }
    }
    assert_eq!(here + there, 8);
}

#[tokio::test]
async fn two_people_at_once_are_one_answer_and_one_word_about_it() {
    let office = Office::new().await;
    for _ in 0..5 {
        let (id, card) = office.ask(may_i_run_them()).await;
        let (ada, ben) = tokio::join!(
            office.ada.reply(&office.room, &card, "1"),
            office.ben.reply(&office.room, &card, "2"),
        );
        let (ada, ben) = (ada.unwrap(), ben.unwrap());
        let decided = office.board.until_answered(&id).await;
        let (winner, loser) = match decided["answer"]["answeredBy"].as_str() {
            Some("usr_ada") => (ada, ben),
            _ => (ben, ada),
        };
        office.reacted(&winner, "✓").await;
        office.told(&loser).await;
        let given = office.board.requests_for(BoardRoute::Answer).await;
        let taken = given.iter().filter(|given| given["status"] == 200);
        assert!(taken.count() > 0);
    }
}

#[tokio::test]
async fn an_answer_whose_acknowledgement_was_lost_is_said_to_be_perhaps_ones_own() {
    let office = Office::new().await;
    let (id, card) = office.ask(may_i_run_them()).await;
    office
        .board
        .fault(BoardRoute::Answer, &[BoardFault::LoseReply])
        .await;
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    office.reacted(&answer, "⏳").await;
    let words = office.told(&answer).await;
    assert!(
        words.contains("I cannot say whether it was yours"),
        "{words}"
    );
    assert!(
        office
            .last_words(&card)
            .await
            .contains("Settled on the board")
    );
    assert_eq!(
        office.board.elicitation(&id).await["answer"]["option"],
        "run_them"
    );
}
