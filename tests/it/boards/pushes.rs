//! What is pushed: signed or not, once or twice, understood or not.

use hmac::{Hmac, Mac as _};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sha2::Sha256;

use super::{Office, SECRET, may_i_run_them};
use crate::support::{BoardFault, BoardRoute, soon};

/// What a board's push is answered with.
async fn pushed(office: &Office, body: &str, signature: Option<&str>) -> (StatusCode, Value) {
    let mut request = reqwest::Client::new()
        .post(office.push_url())
        .header("X-Superpipeline-Event", "elicitation.pending")
        .body(body.to_owned());
    if let Some(signature) = signature {
        request = request.header("X-Superpipeline-Signature", signature);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

fn signed(body: &str, key: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

fn question(id: &str) -> String {
    json!({
        "event": "elicitation.pending", "boardId": "brd_7c1f", "cardId": format!("card-of-{id}"),
        "cardTitle": "Deploy", "elicitationId": id, "runId": "run_1", "stageKey": "build",
        "agentId": "agt_31d0", "question": "Now?", "options": [{"id": "yes", "label": "Yes"}],
        "ts": "2026-12-01T10:00:00.000Z",
    })
    .to_string()
}

#[tokio::test]
async fn only_what_the_board_has_signed_is_taken() {
    let office = Office::new().await;
    let body = question("elc_1");
    let good = signed(&body, SECRET);
    for wrong in [
        None,
        Some(String::new()),
        Some("sha256=".to_owned()),
        Some(good.to_uppercase()),
        Some(good.replace("sha256=", "sha1=")),
        Some(signed(&body, "another key")),
        Some(signed(&format!("{body} "), SECRET)),
    ] {
        let (status, answer) = pushed(&office, &body, wrong.as_deref()).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{wrong:?}: {answer}");
        assert_eq!(answer["error"]["code"], "UNAUTHORIZED");
    }
    let (status, answer) = pushed(&office, &body, Some(&good)).await;
    assert_eq!(
        (status, answer),
        (StatusCode::OK, json!({"status": "stored"}))
    );
    office.card("elc_1").await;
    assert_eq!(office.cards().await, ["elc_1"]);
}

#[tokio::test]
async fn what_is_signed_and_no_question_is_acknowledged_so_that_it_is_not_pushed_again() {
    let office = Office::new().await;
    let mut nameless: Value = serde_json::from_str(&question("elc_1")).unwrap();
    nameless.as_object_mut().unwrap().remove("elicitationId");
    let mut doubled: Value = serde_json::from_str(&question("elc_1")).unwrap();
    doubled["options"] = json!([{"id": "a", "label": "A"}, {"id": "a", "label": "B"}]);
    let mut elsewhere: Value = serde_json::from_str(&question("elc_1")).unwrap();
    elsewhere["boardId"] = json!("brd_other");
    for body in [
        "not JSON".to_owned(),
        "[]".to_owned(),
        json!({"event": "work.available", "boardId": "brd_7c1f"}).to_string(),
        json!({"event": "elicitation.pending"}).to_string(),
        nameless.to_string(),
        doubled.to_string(),
        elsewhere.to_string(),
    ] {
        let (status, answer) = pushed(&office, &body, Some(&signed(&body, SECRET))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        assert!(answer["ignored"].is_string(), "{body}: {answer}");
    }
    assert_eq!(office.cards().await, [] as [&str; 0]);
    let metrics = office.bot.api().metrics().await;
    let line = r#"elicit_board_pushes_total{board="brd_7c1f",outcome="ignored"} 7"#;
    assert!(metrics.contains(line), "{metrics}");
    // The board's own side of it: it is content with that.
    office
        .board
        .push("elicitation.pending", &json!({"boardId": "brd_7c1f"}))
        .await;
    soon("the push to be taken", async || {
        let pushes = office.board.pushes().await;
        pushes
            .iter()
            .all(|push| push["state"] == "delivered")
            .then_some(())
    })
    .await;
}

/// Pain: again.
#[tokio::test]
async fn a_question_that_is_pushed_again_and_again_and_twice_at_once_is_put_up_once() {
    let office = Office::new().await;
    office
        .board
        .fault(BoardRoute::Push, &[BoardFault::Double, BoardFault::Double])
        .await;
    let (first, _) = office.ask(may_i_run_them()).await;
    let (second, card) = office.ask(may_i_run_them()).await;
    for id in [&first, &second] {
        office.board.push_again(id).await;
        office.board.until_pushed(id).await;
    }
    let answer = office.ada.reply(&office.room, &card, "1").await.unwrap();
    office.reacted(&answer, "✓").await;
    // Also when it is over.
    office.board.push_again(&second).await;
    office.board.until_pushed(&second).await;
    assert_eq!(office.cards().await, [first, second]);
}

#[tokio::test]
async fn a_push_that_gets_no_answer_is_made_again_and_the_card_stands_once() {
    let mut office = Office::new().await;
    office.bot.kill9();
    let id = office.board.ask(&may_i_run_them()).await;
    soon("a push to fail", async || {
        let pushes = office.board.pushes().await;
        let attempts = pushes.last()?["attempts"].as_array()?.len();
        (attempts > 1).then_some(())
    })
    .await;
    office.bot.start_again().await;
    office.card(&id).await;
    office.board.until_pushed(&id).await;
    assert_eq!(office.cards().await, [id]);
}

#[tokio::test]
async fn while_a_secret_is_being_changed_both_are_taken() {
    let office = Office::with(|config| {
        config.with(
            "boards.brd_7c1f.push_secrets",
            json!(["the-new-key-of-the-board", SECRET]),
        )
    })
    .await;
    for (id, key) in [("elc_old", SECRET), ("elc_new", "the-new-key-of-the-board")] {
        let body = question(id);
        let (status, _) = pushed(&office, &body, Some(&signed(&body, key))).await;
        assert_eq!(status, StatusCode::OK);
        office.card(id).await;
    }
    // The board itself was given the first one.
    let (id, _) = office.ask(may_i_run_them()).await;
    assert_eq!(office.cards().await.last(), Some(&id));
}

#[tokio::test]
async fn a_secret_that_the_board_lost_is_given_to_it_again_by_the_next_sweep() {
    let office = Office::with(|config| config.with("boards.brd_7c1f.sweep", json!("1s"))).await;
    office
        .board
        .subscribe(&office.push_url(), "what-nobody-knows")
        .await;
    soon("the secret to be right again", async || {
        let subscriptions = office.board.subscriptions().await;
        let expected = hex::encode(<Sha256 as sha2::Digest>::digest(SECRET));
        (subscriptions.len() == 1 && subscriptions[0]["tokenSha256"] == expected.as_str())
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_push_for_a_board_that_nobody_has_configured_leads_nowhere() {
    let office = Office::new().await;
    let body = question("elc_1");
    let url = office.push_url().replace("brd_7c1f", "brd_other");
    let response = reqwest::Client::new()
        .post(url)
        .header("X-Superpipeline-Signature", signed(&body, SECRET))
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_card_that_asks_again_has_one_question_open() {
    let office = Office::new().await;
    let mut question = may_i_run_them();
    question["cardId"] = json!("crd_same");
    let (_, old) = office.ask(question.clone()).await;
    let (new, card) = office.ask(question).await;
    let words = office.last_words(&old).await;
    assert!(words.contains("Replaced by a newer question"), "{words}");
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    office.reacted(&answer, "✓").await;
    assert_eq!(
        office.board.until_answered(&new).await["answer"]["option"],
        "run_them"
    );
    assert!(office.last_words(&card).await.contains("✓ 1."));
}
