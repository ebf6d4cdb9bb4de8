//! Memory over very much chatter.

use std::time::Instant;

use crate::row;
use crate::stand::{Stand, mib, rate};

const ROOMS: usize = 50;
/// Messages in one response.
const AT_ONCE: usize = 1_000;

pub async fn measure(messages: usize) {
    for (asked, what) in [(0, "nothing asked"), (1, "a question open in each")] {
        let mut stand = Stand::set_up(ROOMS).await;
        stand.start().await;
        stand.ask_everywhere(asked).await;
        stand.sink.until(ROOMS * asked).await;
        stand.heard().await;
        // What is allocated once is no growth.
        chatter(&stand, AT_ONCE * 20).await;
        let before = stand.resident();
        let began = Instant::now();
        let mut on_the_way = Vec::new();
        let tenth = messages / 10;
        for _ in 0..10 {
            chatter(&stand, tenth).await;
            on_the_way.push(mib(stand.resident()));
        }
        let took = began.elapsed();
        row(
            &format!("{messages} messages in {ROOMS} rooms, {what}: resident memory"),
            &format!(
                "{} → {} at {}",
                mib(before),
                on_the_way.join(", "),
                rate(messages, took)
            ),
        );
    }
}

async fn chatter(stand: &Stand, messages: usize) {
    for number in 0..messages / AT_ONCE {
        stand.server.at_once(|world| {
            for room in stand.rooms.iter().cycle().take(AT_ONCE) {
                let body = format!("this is message {number} of very many, about nothing much");
                world.says(room, &stand.ada, &body);
            }
        });
        stand.heard().await;
        stand.server.at_once(crate::scripted::World::forget_history);
    }
}
