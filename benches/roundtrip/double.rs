//! What the scripted homeserver takes by itself: where the table is limited by it, not by the bot.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde_json::json;

use crate::row;
use crate::scripted::ScriptedServer;
use crate::stand::{rate, spread};

const AT_ONCE: usize = 32;
const SAID: usize = 500;

pub async fn measure(sends: usize) {
    let server = ScriptedServer::start().await;
    let user = server.account("elicit", "");
    let ada = server.account("ada", "");
    let room = server.room(&ada, &[&user]);
    let session = server.at_once(|world| world.sessions.open(&user, "BENCH", false));
    let token = session["access_token"].as_str().expect("a token");
    let http = reqwest::Client::builder().no_proxy().build();
    let http = http.expect("a client");
    let base = format!("{}/_matrix/client/v3", server.url());

    let began = Instant::now();
    stream::iter(0..sends)
        .for_each_concurrent(AT_ONCE, async |number| {
            let content = json!({"msgtype": "m.text", "body": format!("{number}")});
            let url = format!("{base}/rooms/{room}/send/m.room.message/{number}");
            let request = http.put(url).bearer_auth(token).json(&content);
            let answer = request.send().await.expect("an answer");
            assert!(answer.status().is_success());
            drop(answer.bytes().await);
        })
        .await;
    let taken = rate(sends, began.elapsed());
    row(
        "the double alone: messages taken, from a client in its process",
        &taken,
    );

    let sync = async |since: &str| {
        let url = format!("{base}/sync?timeout=30000&since={since}");
        let answer = http.get(url).bearer_auth(token).send().await;
        let body = answer.expect("an answer").bytes().await.expect("a body");
        (Instant::now(), body)
    };
    let next = |body: &[u8]| {
        let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
        body["next_batch"].as_str().expect("a token").to_owned()
    };
    let mut since = server.look(|world| format!("s{}", world.position()));
    let mut times = Vec::new();
    for _ in 0..SAID {
        let (said, (came, body)) = tokio::join!(
            async {
                tokio::time::sleep(Duration::from_millis(2)).await;
                let now = Instant::now();
                server.says(&room, &ada, "1");
                now
            },
            sync(&since)
        );
        since = next(&body);
        times.push(came - said);
    }
    row(
        "the double alone: from a message said to the end of the sync that has it",
        &spread(times),
    );
}
