//! Boards that are away, and a bot that dies: nothing is lost, and nothing is handed in twice that
//! was taken.

use serde_json::json;

use super::{Office, may_i_run_them};
use crate::scene::{at_rest, ledger};
use crate::support::{BoardFault, BoardRoute, soon};

/// The ledger of a bot that is down, as if it had tried in vain for an hour.
fn an_hour_passes(office: &Office) {
    let ago = "UPDATE submissions SET attempts = 14, created_at = created_at - 3600000,
                   next_at = next_at + 240000";
    assert_eq!(ledger(&office.bot).execute(ago, []).unwrap(), 1);
}

/// Pain: lost.
#[tokio::test]
async fn an_answer_outlives_a_board_that_is_down_for_an_hour_and_a_bot_that_is_killed() {
    let mut office = Office::with(|config| config.with("boards.brd_7c1f.sweep", json!("1s"))).await;
    let (id, _) = office.ask(may_i_run_them()).await;
    office.board.down().await;
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    let waiting = office.reacted(&answer, "⏳").await;
    office.bot.kill9();
    an_hour_passes(&office);
    office.bot.start_again().await;
    soon("it to be tried again", async || {
        office
            .bot
            .log()
            .matches("could not be handed in")
            .nth(1)
            .map(|_| ())
    })
    .await;
    office.board.up().await;
    office.reacted(&answer, "✓").await;
    let decided = office.board.until_answered(&id).await;
    assert_eq!(decided["answer"]["answeredBy"], "usr_ada");
    soon("⏳ to go", async || {
        let event = office.ada.event(&office.room, &waiting).await.unwrap();
        event["content"]
            .as_object()
            .unwrap()
            .is_empty()
            .then_some(())
    })
    .await;
    let shown = office.ada.timeline(&office.room).await.unwrap();
    let hourglasses = shown
        .iter()
        .filter(|event| event["event_id"] == waiting.as_str());
    assert_eq!(hourglasses.count(), 1);
}

#[tokio::test]
async fn a_board_that_fails_in_every_way_gets_the_answer_in_the_end() {
    let office = Office::new().await;
    let (id, _) = office.ask(may_i_run_them()).await;
    office
        .board
        .fault(
            BoardRoute::Answer,
            &[
                BoardFault::Status(500, json!({"error": {"code": "ELICITATION_NOT_PENDING"}})),
                BoardFault::Status(404, json!({"error": "not found"})),
                BoardFault::Limited { retry_after: 1 },
                BoardFault::Close,
            ],
        )
        .await;
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    office.reacted(&answer, "✓").await;
    assert_eq!(
        office.board.until_answered(&id).await["answer"]["option"],
        "run_them"
    );
    let tries = office.board.requests_for(BoardRoute::Answer).await;
    assert_eq!(tries.len(), 5, "{tries:#?}");
}

#[tokio::test]
async fn what_is_settled_while_an_answer_waits_is_closed_and_its_person_told() {
    let office = Office::with(|config| config.with("boards.brd_7c1f.sweep", json!("1s"))).await;
    let (id, card) = office.ask(may_i_run_them()).await;
    office
        .board
        .fault_forever(BoardRoute::Answer, BoardFault::Close)
        .await;
    let answer = office.ada.send_text(&office.room, "1").await.unwrap();
    office.reacted(&answer, "⏳").await;
    office.board.cancel(&id).await;
    let words = office.told(&answer).await;
    assert!(words.contains("settled on the board"), "{words}");
    assert!(
        office
            .last_words(&card)
            .await
            .contains("Settled on the board")
    );
}

#[tokio::test]
async fn a_dead_board_delays_nobody_else() {
    let mut office = Office::new().await;
    let (_, card) = office.ask(may_i_run_them()).await;
    office.board.stop();
    office.ada.reply(&office.room, &card, "1").await.unwrap();
    let request = json!({
        "room": office.room, "prompt": "And you?", "options": ["Fine", "Well"],
    });
    let api = office.bot.api();
    let asked = api.ask_fine(&request).await;
    let id = asked["elicitation_id"].as_str().unwrap();
    let open = api.until_open(id).await;
    let own = open["event_id"].as_str().unwrap();
    office.ben.reply(&office.room, own, "2").await.unwrap();
    assert_eq!(
        api.until_answered(id).await["answer"]["option"]["number"],
        2
    );
    assert!(api.is_ready().await);
}

/// Pain: skipped.
#[tokio::test]
async fn questions_and_answers_go_through_kills_once_each() {
    let mut office = Office::with(|config| config.with("boards.brd_7c1f.sweep", json!("1s"))).await;
    let mut asked = Vec::new();
    for round in 0..6_u64 {
        let id = office.board.ask(&may_i_run_them()).await;
        tokio::time::sleep(std::time::Duration::from_millis(40 * round)).await;
        office.bot.kill9();
        office.bot.start_again().await;
        let card = super::event_id(&office.card(&id).await);
        office.ada.reply(&office.room, &card, "1").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(30 * round)).await;
        office.bot.kill9();
        office.bot.start_again().await;
        let decided = office.board.until_answered(&id).await;
        assert_eq!(decided["answer"]["answeredBy"], "usr_ada");
        asked.push(id);
    }
    at_rest(&office.bot).await;
    assert_eq!(office.cards().await, asked);
    let given = office.board.requests_for(BoardRoute::Answer).await;
    let taken = given.iter().filter(|given| given["status"] == 200).count();
    assert_eq!(taken, asked.len(), "{given:#?}");
}
