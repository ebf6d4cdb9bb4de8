//! What an agent may not do, and how it is told; what it may, under other names.

use matrix_elicit::sandbox::RoomOptions;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::stage::{Stage, card_of, has_joined, id, may_i_run_them, people, refusal};
use crate::support::{AGENT, BotConfig, BotProcess, homeserver, unique};

/// Pain: same-id, spoof.
#[tokio::test]
async fn an_agent_sees_its_own_questions_only() {
    let stage = Stage::with(|config| config.with_agent("agt_two", "token-of-agent-two")).await;
    let other = stage.api.with_token("token-of-agent-two");
    let mut events = other.events(None).await.unwrap();
    let mut request = may_i_run_them();
    request["elicitation_id"] = json!("elc_7f3c");
    let question = stage.ask(request.clone()).await;
    for refused in [other.get("elc_7f3c").await, other.cancel("elc_7f3c").await] {
        assert_eq!(refusal(refused), (404, "ELICITATION_NOT_FOUND".to_owned()));
    }
    let list = other.list("").await.1;
    assert_eq!(list, json!({"elicitations": [], "next": null}));

    // The same id is free for it: two origins, two questions.
    request["room"] = json!(stage.room);
    request["prompt"] = json!("Another one?");
    let theirs = other.ask_fine(&request).await;
    assert_eq!(theirs["asked_by"], "agt_two");
    let theirs = other.until_open("elc_7f3c").await;
    stage
        .ben
        .reply(&stage.room, card_of(&question), "1")
        .await
        .unwrap();
    stage.answered(&question).await;
    assert_eq!(other.cancel("elc_7f3c").await.0, StatusCode::OK);
    for kind in ["elicitation.open", "elicitation.cancelled"] {
        let event = events.next().await;
        assert_eq!(event.kind, kind);
        assert_eq!(event.body["data"]["event_id"], theirs["event_id"]);
    }
    // Who asks is told by the token and nothing else.
    request["asked_by"] = json!(AGENT);
    let refused = other.ask(&request).await;
    assert_eq!(refused.1["error"]["field"], "asked_by");
    assert_eq!(refusal(refused), (400, "INVALID_REQUEST".to_owned()));
}

#[tokio::test]
async fn wrong_tokens_are_refused_and_then_held_back_and_right_ones_never() {
    let stage = Stage::new().await;
    let nobody = stage.api.with_token("");
    let guess = stage.api.with_token("a-token-of-nobody");
    assert_eq!(
        refusal(nobody.list("").await),
        (401, "UNAUTHORIZED".to_owned())
    );
    for _ in 0..10 {
        assert_eq!(
            refusal(guess.list("").await),
            (401, "UNAUTHORIZED".to_owned())
        );
    }
    let response = guess
        .request(Method::GET, "/v1/elicitations")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = response.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let body = response.json().await.unwrap();
    assert_eq!(
        refusal((StatusCode::TOO_MANY_REQUESTS, body)),
        (429, "RATE_LIMITED".to_owned())
    );
    for _ in 0..3 {
        assert_eq!(stage.api.list("").await.0, StatusCode::OK);
    }
    stage.ask(may_i_run_them()).await;
}

/// Pain: power.
#[tokio::test]
async fn a_room_where_it_cannot_ask_is_refused_with_what_to_do() {
    let (ada, ben) = people().await;
    let allowed = ada.create_room(&RoomOptions::default()).await.unwrap();
    let stage = Stage::of(ada, ben, |config| {
        let agent = json!({"token": "token-of-agent-two", "rooms": [allowed]});
        config.with_path(&["agents", "agt_two"], agent)
    })
    .await;
    let bot = stage.bot.user_id();
    let ask = async |token: &str, room: &str| {
        let mut request = may_i_run_them();
        request["room"] = json!(room);
        let api = match token {
            "" => stage.api.clone(),
            token => stage.api.with_token(token),
        };
        let refused = api.ask(&request).await;
        let message = refused.1["error"]["message"].as_str().unwrap().to_owned();
        let (status, code) = refusal(refused);
        (status, code, message)
    };
    let refused = |status: u16, code: &str, message: String| (status, code.to_owned(), message);
    assert_eq!(
        ask("", &allowed).await,
        refused(
            409,
            "ROOM_NOT_JOINED",
            format!("the bot is not in {allowed}: invite {bot}")
        )
    );
    assert_eq!(
        ask("token-of-agent-two", &stage.room).await,
        refused(
            403,
            "ROOM_NOT_ALLOWED",
            format!("this agent may not ask in {}", stage.room)
        )
    );
    // Whether there is such a room is not told to who may not ask there.
    let nowhere = "#nowhere-at-all:elicit.test";
    assert_eq!(
        ask("token-of-agent-two", nowhere).await.1,
        "ROOM_NOT_ALLOWED"
    );
    assert_eq!(
        ask("", nowhere).await,
        refused(
            400,
            "INVALID_REQUEST",
            format!("room must be a room that exists; there is no {nowhere}")
        )
    );
    assert_eq!(ask("", "the kitchen").await.1, "INVALID_REQUEST");

    // The bot loses its voice; by the time it has read what was said after that, it knows.
    let question = stage.ask(may_i_run_them()).await;
    let levels = stage
        .ada
        .state(&stage.room, "m.room.power_levels", "")
        .await;
    let mut levels = levels.unwrap().unwrap();
    levels["events_default"] = json!(50);
    stage
        .ada
        .set_state(&stage.room, "m.room.power_levels", "", &levels)
        .await
        .unwrap();
    stage.ada.send_text(&stage.room, "1").await.unwrap();
    stage.answered(&question).await;
    let room = &stage.room;
    assert_eq!(
        ask("", room).await,
        refused(
            409,
            "NO_POWER_TO_SEND",
            format!("the bot may not send messages in {room}: give {bot} the power to")
        )
    );
}

#[tokio::test]
async fn a_room_goes_by_its_alias_too() {
    let (ada, ben) = people().await;
    let alias = unique("team");
    let full = format!("#{alias}:elicit.test");
    let config = BotConfig::new(homeserver().await).await;
    let options = RoomOptions {
        alias: Some(alias),
        invite: vec![config.user_id().to_owned(), ben.user_id().to_owned()],
        ..RoomOptions::default()
    };
    let room = ada.create_room(&options).await.unwrap();
    ben.join(&room).await.unwrap();
    let agent = json!({"token": "token-of-agent-two", "rooms": [full]});
    let config = config
        .with_path(&["agents", "agt_two"], agent)
        .with_path(&["rooms", &full], json!({"users": [ada.user_id()]}));
    let bot = BotProcess::start(config).await;
    has_joined(&bot, &room).await;
    let api = bot.api().with_token("token-of-agent-two");
    for name in [&full, &room] {
        let mut request = may_i_run_them();
        request["room"] = json!(name);
        let asked = api.ask_fine(&request).await;
        let open = api.until_open(id(&asked)).await;
        assert_eq!(open["room_id"], room);
        // What the file says of the alias holds for the room.
        ben.reply(&room, card_of(&open), "1").await.unwrap();
        ada.reply(&room, card_of(&open), "2").await.unwrap();
        let answered = api.until_answered(id(&asked)).await;
        assert_eq!(answered["answer"]["answered_by"], ada.user_id());
    }
}

#[tokio::test]
async fn a_request_that_breaks_a_rule_is_told_which() {
    let stage = Stage::new().await;
    let room = &stage.room;
    let refused = async |request: Value| {
        let (status, mut body) = stage.api.ask(&request).await;
        assert_eq!(body["error"]["code"], "INVALID_REQUEST", "{body:#}");
        assert_eq!(status, StatusCode::BAD_REQUEST);
        body["error"]["field"].take()
    };
    for (request, field) in [
        (json!({"room": room}), "prompt"),
        (
            json!({"room": room, "prompt": "?", "choices": ["a"]}),
            "choices",
        ),
        (
            json!({"room": room, "prompt": "?", "options": ["a", "a"]}),
            "options[1].id",
        ),
        (
            json!({"room": room, "prompt": "?", "expires_in": "soon"}),
            "expires_in",
        ),
        (
            json!({"room": room, "prompt": "?", "free_text": false}),
            "free_text",
        ),
        (
            json!({"room": room, "prompt": "?", "mention": ["ben"]}),
            "mention[0]",
        ),
        (
            json!({"room": room, "prompt": "?", "deep_link": "javascript:1"}),
            "deep_link",
        ),
        (
            json!({"room": room, "prompt": "?", "answerers": {"user": []}}),
            "answerers.user",
        ),
    ] {
        assert_eq!(refused(request).await, field);
    }
    let large = json!({"room": room, "prompt": "?".repeat(300_000)});
    assert_eq!(
        refusal(stage.api.ask(&large).await),
        (413, "PAYLOAD_TOO_LARGE".to_owned())
    );
    assert_eq!(stage.said_by_bot().await, Vec::<&str>::new());
}
