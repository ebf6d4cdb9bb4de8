//! What an operator reads in the log of a board that works, and of one that does not.

use serde_json::json;

use crate::support::{BoardOptions, BoardRoute, BotConfig, BotProcess, homeserver, soon};

#[tokio::test]
async fn that_a_board_works_is_logged_once_and_again_after_it_was_away() {
    let board = BoardOptions::default().start().await;
    let config = BotConfig::new(homeserver().await).await;
    let carried = json!({
        "base_url": board.url(),
        "agent_token": board.agent_token(),
        "push_secrets": ["what the board signs with"],
        "invite": ["@mira:elicit.test"],
        "sweep": "1s",
        "people": {"bearer": {"@mira:elicit.test": "miras-token"}},
    });
    let config = config
        .with("http.public_url", json!("http://127.0.0.1:9/bot"))
        .with("boards.brd_7c1f", carried);
    let bot = BotProcess::start(config).await;
    let works = [
        "brd_7c1f is read; pending there: 0",
        "brd_7c1f pushes to http://127.0.0.1:9/bot/v1/boards/brd_7c1f/push",
    ];
    let times = |words: &str| bot.log().matches(words).count();
    board.until_requests(BoardRoute::Pending, 3).await;
    assert_eq!(works.map(times), [1, 1], "{}", bot.log());

    board.down().await;
    // Both, as it may have been in the middle of a look.
    bot.logged("what is pending on brd_7c1f could not be read")
        .await;
    bot.logged("the pushes of brd_7c1f could not be subscribed to")
        .await;
    board.up().await;
    soon("the log to say that it works again", async || {
        (works.map(times) == [2, 2]).then_some(())
    })
    .await;
}
