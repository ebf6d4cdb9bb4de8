//! Everybody answers at once.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::row;
use crate::scripted::{Endpoint, World};
use crate::stand::{Stand, ms, rate};

pub async fn measure(rooms: usize, each: usize) {
    let count = rooms * each;
    let size = format!("{count} messages in {rooms} rooms");

    // The same messages where nothing was asked: what the client takes by itself.
    let mut stand = Stand::set_up(rooms).await;
    stand.start().await;
    for warm in ["first", "second"] {
        let began = Instant::now();
        let before = stand.processor_time();
        stand.server.at_once(|world| {
            for room in stand.rooms.iter().cycle().take(count) {
                world.says(room, &stand.ada, "2");
            }
        });
        let took = stand.heard().await - began;
        row(
            &format!(
                "{size} in one sync, nothing asked, {warm} time: until the next sync is asked for"
            ),
            &format!(
                "{}, {} ({})",
                ms(took),
                rate(count, took),
                spent(&before, &stand)
            ),
        );
    }
    drop(stand);

    let mut stand = Stand::set_up(rooms).await;
    stand.start().await;
    let began = Instant::now();
    let before = stand.processor_time();
    let asked = stand.ask_everywhere(each).await;
    let taken = began.elapsed();
    row(
        &format!("{count} questions in {rooms} rooms: taken"),
        &rate(count, taken),
    );
    stand.server.until_asked(Endpoint::Send, count).await;
    stand.sink.until(count).await;
    stand.heard().await;
    let carried = began.elapsed();
    row(
        "the same: in their rooms, the agent told",
        &format!("{} ({})", rate(count, carried), spent(&before, &stand)),
    );

    let cards = cards(&stand);
    let (sends, hooks) = (stand.server.asked(Endpoint::Send), stand.sink.count());
    let before = stand.processor_time();
    let began = Instant::now();
    stand.server.at_once(|world| {
        for (room, id) in &asked {
            let relation = json!({"m.in_reply_to": {"event_id": cards[id]}});
            let content = json!({"msgtype": "m.text", "body": "2", "m.relates_to": relation});
            world.sends(room, &stand.ada, "m.room.message", None, &content);
        }
    });
    let said = began.elapsed();
    let (committed, told, shown) = tokio::join!(
        async {
            let position = stand.server.look(World::position);
            while stand.server.look(World::heard_until) < position {
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
            began.elapsed()
        },
        async {
            stand.sink.until(hooks + count).await;
            began.elapsed()
        },
        async {
            stand
                .server
                .until_asked(Endpoint::Send, sends + 2 * count)
                .await;
            began.elapsed()
        },
    );
    row(
        &format!("{count} answers at once in {rooms} rooms: taken and committed"),
        &format!(
            "{} ({}, of which {} saying them)",
            rate(count, committed),
            ms(committed),
            ms(said)
        ),
    );
    row("the same: webhooks acknowledged", &rate(count, told));
    row("the same: ✓ and edits sent", &rate(count, shown));
    let all = told.max(shown);
    row(
        "the same: carried all the way",
        &format!("{} ({})", rate(count, all), spent(&before, &stand)),
    );
}

/// The event of each question's card.
fn cards(stand: &Stand) -> HashMap<String, String> {
    let mut cards = HashMap::new();
    stand.server.look(|world| {
        for room in &stand.rooms {
            for event in &world.room_by_id(room).timeline {
                let card = &event.content["dev.superpipeline.elicitation"];
                if let Some(id) = card["elicitation_id"].as_str() {
                    cards.insert(id.to_owned(), event.id.clone());
                }
            }
        }
    });
    cards
}

/// The processor time that the bot has taken since, by its threads.
fn spent(before: &BTreeMap<String, Duration>, stand: &Stand) -> String {
    let now = stand.processor_time();
    let mut spent: Vec<(Duration, &str)> = now
        .iter()
        .map(|(name, time)| {
            let before = before.get(name).copied().unwrap_or_default();
            (time.saturating_sub(before), name.as_str())
        })
        .filter(|(time, _)| time.as_millis() > 20)
        .collect();
    spent.sort();
    let spent: Vec<String> = spent
        .iter()
        .rev()
        .map(|(time, name)| format!("{name} {:.2} s", time.as_secs_f64()))
        .collect();
    format!("processor: {}", spent.join(", "))
}
