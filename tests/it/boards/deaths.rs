//! A death at every point that only a board's question passes.

use std::time::Duration;

use matrix_elicit::crash::BOARD_POINTS;
use serde_json::json;

use super::{Office, event_id, may_i_run_them};
use crate::scene::at_rest;

/// One question from its push to its end, with a bot that dies the first time it passes this
/// point. Whether it did.
async fn a_question_with_a_death_at(point: &'static str) -> bool {
    let mut office = Office::with(|config| config.with("boards.brd_7c1f.sweep", json!("1s"))).await;
    let (warm, card) = office.ask(may_i_run_them()).await;
    office.ada.reply(&office.room, &card, "1").await.unwrap();
    office.board.until_answered(&warm).await;
    at_rest(&office.bot).await;
    office.bot.kill9();
    office.bot.start_again_to_die_at(format!("{point}#1"));
    let Office { mut bot, around } = office;
    let mut died = 0;
    let id = {
        let life = async {
            let id = around.board.ask(&may_i_run_them()).await;
            let card = event_id(&around.card(&id).await);
            let answer = around.ada.reply(&around.room, &card, "2").await.unwrap();
            let decided = around.board.until_answered(&id).await;
            assert_eq!(decided["answer"]["option"], "skip", "{point}");
            let words = around.last_words(&card).await;
            // Only where the board's answer was lost with the process can nobody know whose it was.
            if words.contains("Settled on the board") {
                assert_eq!(point, "submit.posted", "{words}");
                assert!(around.told(&answer).await.contains("whether it was yours"));
            } else {
                assert!(words.contains("✓ 2. Skip them"), "{point}: {words}");
                around.reacted(&answer, "✓").await;
            }
            id
        };
        tokio::pin!(life);
        loop {
            tokio::select! {
                id = &mut life => break id,
                () = tokio::time::sleep(Duration::from_millis(20)) => {
                    died += usize::from(bot.revive());
                }
            }
        }
    };
    at_rest(&bot).await;
    assert_eq!(around.cards().await, [warm, id], "{point}");
    assert!(died <= 1, "{point}");
    died == 1
}

/// Pain: skipped.
#[tokio::test]
async fn a_death_at_any_point_of_a_boards_question_loses_nothing_and_repeats_nothing() {
    for point in BOARD_POINTS {
        assert!(
            a_question_with_a_death_at(point).await,
            "no question passes {point}"
        );
    }
}
