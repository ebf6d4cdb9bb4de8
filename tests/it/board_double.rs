//! The double of a Superpipeline board keeps the board's rules: whatever is tested against it
//! is worth no more than that.

use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::json;

use crate::support::{Api, BoardFault, BoardOptions, BoardRoute, WebhookSink, installed};

#[tokio::test]
async fn the_double_of_a_board_keeps_the_rules_of_one() {
    let python = installed().await.python();
    let rules = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/board/test_superpipeline.py"
    );
    let mut command = Command::new(python);
    // Without writing compiled files beside the sources.
    command.args(["-B", rules]).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    // With nothing to run it succeeds as well, on an older Python.
    assert!(!told.contains("Ran 0 tests"), "{told}");
}

#[tokio::test]
async fn a_test_sees_and_steers_the_side_of_the_board() {
    let mut board = BoardOptions::default()
        .with_name("Build board")
        .with_bearer("miras-token", "usr_mira")
        .start()
        .await;
    let sink = WebhookSink::start().await;
    board.subscribe(sink.url(), "the key").await;
    let question = json!({
        "cardId": "crd_51d0",
        "question": "May I run them?",
        "options": [{"id": "run_them", "label": "Run the tests"}],
    });

    let first = board.ask(&question).await;
    let pushed = board.until_pushed(&first).await;
    assert_eq!(pushed[0]["state"], "delivered");
    assert_eq!(pushed[0]["attempts"][0]["status"], 204);
    assert_eq!(sink.received()[0].json["elicitationId"], first);
    assert_eq!(sink.received()[0].json["boardName"], "Build board");

    // The same card asks again, and the push is lost.
    board.fault(BoardRoute::Push, &[BoardFault::Drop]).await;
    let second = board.ask(&question).await;
    assert_eq!(board.until_pushed(&second).await[0]["state"], "dropped");
    let older = board.until_state(&first, "cancelled").await;
    assert_eq!(older["cancelledBecause"], "superseded");

    // Mira's answer is refused by a limit, then taken, and the reply is lost.
    board
        .fault(
            BoardRoute::Answer,
            &[
                BoardFault::Limited { retry_after: 1 },
                BoardFault::LoseReply,
            ],
        )
        .await;
    let mira = Api::new(&board.url(), "miras-token");
    let path = format!("/v1/boards/{}/elicitations/{second}/answer", board.id());
    let answer = json!({"option": "run_them"});
    let hand_in = || mira.request(Method::POST, &path).json(&answer).send();
    assert_eq!(hand_in().await.unwrap().status(), 429);
    assert!(hand_in().await.is_err());
    let answered = board.until_answered(&second).await;
    assert_eq!(answered["answer"]["answeredBy"], "usr_mira");
    assert_eq!(answered["answer"]["option"], "run_them");
    let (status, refusal) = board.answer_as_web(&second, "usr_mira", &answer).await;
    assert_eq!(status, 409, "{refusal:#}");
    assert_eq!(refusal["error"]["code"], "ELICITATION_NOT_PENDING");
    let requests = board.until_requests(BoardRoute::Answer, 2).await;
    let seen = requests
        .iter()
        .map(|request| (&request["by"], &request["status"], &request["lost"]))
        .collect::<Vec<_>>();
    let (mira_is, yes, no) = (json!("usr_mira"), json!(true), json!(false));
    assert_eq!(
        seen,
        [(&mira_is, &json!(429), &no), (&mira_is, &json!(200), &yes)]
    );

    // Down, it closes every connection; started again, it has forgotten everything.
    board.down().await;
    assert!(hand_in().await.is_err());
    board.up().await;
    assert_eq!(hand_in().await.unwrap().status(), 409);
    board.restart().await;
    assert_eq!(hand_in().await.unwrap().status(), 404);
    assert!(board.subscriptions().await.is_empty());
    assert!(
        board
            .story()
            .contains(&format!("{second} answered: run_them, by usr_mira")),
        "{}",
        board.story()
    );
}
