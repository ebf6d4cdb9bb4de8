//! How old the accounts are whose words are told, and since when anything is.

use std::time::Duration;

use matrix_elicit::clock;
use matrix_elicit::sandbox::{Person, Synapse, SynapseOptions};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    STREAM, are_old, ask_since, assert_not_yet, assert_tells, digest, has_heard, inviting, item,
    people, room_of, said, until, upvoted, with_stream,
};
use crate::scene::ledger;
use crate::support::{BotConfig, BotProcess, homeserver, own_homeserver, soon};

fn min_age() -> String {
    format!("streams.{STREAM}.min_age")
}

#[tokio::test]
async fn what_was_said_before_the_bot_came_is_not_told_and_ages_come_from_the_history() {
    let synapse = homeserver().await;
    let people = people(synapse, &["Ada", "Ben"]).await;
    let [ada, ben] = &people[..] else {
        unreachable!()
    };
    let config = BotConfig::new(synapse).await;
    let room = room_of(&people, inviting(&config)).await;
    let old = ada
        .send_text(&room, "why was this said so early?")
        .await
        .unwrap();
    ben.send_text(&room, "nobody was listening").await.unwrap();
    // Such an age that the bot cannot have seen with its own eyes.
    let age = Duration::from_secs(6);
    soon("Ada to be old enough", async || {
        let event = ada.event(&room, &old).await.unwrap();
        let sent = event["origin_server_ts"].as_i64().unwrap();
        (clock::now() - sent > clock::millis(age)).then_some(())
    })
    .await;
    let config = with_stream(config, &room).with(&min_age(), json!("6s"));
    let bot = BotProcess::start(config).await;
    let start = digest(&bot, None).await;
    assert_tells(&start, None, &[]);
    // Neither votes for it nor edits of it bring it in.
    ben.react(&room, &old, "👍").await.unwrap();
    ada.edit(&room, &old, "why was this edited late?")
        .await
        .unwrap();
    let new = ada
        .send_text(&room, "and now to something new")
        .await
        .unwrap();
    let vote = ben.react(&room, &new, "👍").await.unwrap();
    has_heard(&bot, &vote).await;
    let first = digest(&bot, Some(until(&start))).await;
    let told = item(
        "Ada",
        ada.user_id(),
        "and now to something new",
        "suggestion",
    );
    assert_tells(&first, Some(until(&start)), &[upvoted(told, 1)]);
    let met_at = |person: &Person| -> i64 {
        let sql = "SELECT at FROM met WHERE user_id = ?1";
        ledger(&bot)
            .query_row(sql, [person.user_id()], |row| row.get(0))
            .unwrap()
    };
    let sent = ada.event(&room, &old).await.unwrap()["origin_server_ts"].as_i64();
    // The room itself is older than what she said in it.
    assert!(met_at(ada) <= sent.unwrap(), "{}", met_at(ada));

    // Whoever comes later is told of from that age on, and not before.
    let cleo = super::people(synapse, &["Cleo"]).await.remove(0);
    cleo.join(&room).await.unwrap();
    let hers = cleo.send_text(&room, "I am new here").await.unwrap();
    has_heard(&bot, &hers).await;
    let met = met_at(&cleo);
    soon("Cleo to be old enough", async || {
        let window = digest(&bot, Some(until(&first))).await;
        let is_told = said(&window) == ["I am new here"];
        let end = clock::read_timestamp(until(&window)).unwrap();
        assert_eq!(is_told, end - met >= clock::millis(age), "{met} {window:#}");
        is_told.then_some(())
    })
    .await;
}

#[tokio::test]
async fn by_default_nobody_is_told_of_who_is_younger_than_a_day() {
    let synapse = homeserver().await;
    let people = people(synapse, &["Ada", "Ben"]).await;
    let config = BotConfig::new(synapse).await;
    let room = room_of(&people, inviting(&config)).await;
    let config = with_stream(config, &room).without(&min_age());
    let bot = BotProcess::start(config).await;
    let asked = people[0]
        .send_text(&room, "why is it so quiet?")
        .await
        .unwrap();
    people[1].react(&room, &asked, "👍").await.unwrap();
    let last = people[1]
        .send_text(&room, "because we are young")
        .await
        .unwrap();
    has_heard(&bot, &last).await;
    are_old(&bot, 2).await;
    assert_tells(&digest(&bot, None).await, None, &[]);
}

/// Sets what Synapse knows of accounts, behind its back; it must not be running.
fn rewrite(synapse: &Synapse, sql: &str, users: &[&Person]) {
    let store = rusqlite::Connection::open(synapse.folder().join("homeserver.db")).unwrap();
    for user in users {
        let changed = store.execute(sql, [user.user_id()]).unwrap();
        assert_eq!(changed, 1, "{}", user.user_id());
    }
}

/// A call of the admin API that is granted.
async fn administer(synapse: &Synapse, admin: &Person, method: Method, path: &str, body: Value) {
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]);
    let url = format!("{}/_synapse/admin/{path}", synapse.url());
    let request = http.build().unwrap().request(method, url);
    let request = request.bearer_auth(&admin.account().access_token);
    let response = request.json(&body).send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {response:?}");
}

#[tokio::test]
async fn where_the_admin_api_is_asked_it_says_who_is_old_enough_and_may_speak() {
    let (mut synapse, _folder) = own_homeserver(SynapseOptions::default()).await;
    let names = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Root"];
    let people = people(&synapse, &names).await;
    let [ada, ben, cleo, dan, eve, root] = &people[..] else {
        unreachable!()
    };
    let config = BotConfig::new(&synapse).await;
    let room = room_of(&people[..5], inviting(&config)).await;
    synapse.stop().await.unwrap();
    // Everybody but Ben is two days old.
    let old = "UPDATE users SET creation_ts = creation_ts - 172800 WHERE name = ?1";
    rewrite(&synapse, old, &[ada, cleo, dan, eve]);
    rewrite(
        &synapse,
        "UPDATE users SET admin = 1 WHERE name = ?1",
        &[root],
    );
    synapse.restart().await.unwrap();
    let token = &root.account().access_token;
    let config = with_stream(config, &room).without(&min_age()).with(
        "synapse_admin",
        json!({"url": synapse.url(), "token": token}),
    );
    let mut bot = BotProcess::start(config).await;
    let start = digest(&bot, None).await;
    let asked = ada.send_text(&room, "who is old enough?").await.unwrap();
    for person in [ben, cleo, dan, eve] {
        let name = person.user_id();
        person
            .send_text(&room, &format!("{name} is"))
            .await
            .unwrap();
        person.react(&room, &asked, "👍").await.unwrap();
    }
    let id = cleo.user_id();
    let (put, post) = (Method::PUT, Method::POST);
    administer(
        &synapse,
        root,
        put.clone(),
        &format!("v2/users/{id}"),
        json!({"locked": true}),
    )
    .await;
    let id = dan.user_id();
    administer(
        &synapse,
        root,
        put,
        &format!("v1/suspend/{id}"),
        json!({"suspend": true}),
    )
    .await;
    let id = eve.user_id();
    administer(
        &synapse,
        root,
        post,
        &format!("v1/users/{id}/shadow_ban"),
        json!({}),
    )
    .await;
    let last = ada.send_text(&room, "I see").await.unwrap();
    has_heard(&bot, &last).await;
    let window = digest(&bot, Some(until(&start))).await;
    let expected = [
        item("Ada", ada.user_id(), "who is old enough?", "question"),
        item("Ada", ada.user_id(), "I see", "suggestion"),
    ];
    assert_tells(&window, Some(until(&start)), &expected);

    // Where it does not say so, nobody is believed to be.
    bot.terminate().await;
    bot.reconfigure(|settings| settings["synapse_admin"]["token"] = json!("no-token-of-anybody"));
    bot.start_again().await;
    let refused = soon("the room to be known", async || {
        let asked = ask_since(&bot, None).await?;
        assert_ne!(asked.status, StatusCode::OK, "{asked:#?}");
        let why = asked.body["error"]["message"].as_str().unwrap_or_default();
        why.contains("admin API").then_some(asked)
    })
    .await;
    assert_not_yet(&refused);
    assert!(
        !refused.body.to_string().contains("no-token"),
        "{refused:#?}"
    );
}
