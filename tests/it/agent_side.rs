//! The agent's side, over HTTP, while people answer in a real room.

use std::time::{Duration, Instant};

use matrix_elicit::sandbox::RoomOptions;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::stage::{Stage, card_of, id, may_i_run_them, refusal};
use crate::support::{SOON, SinkAnswer, WebhookSink, soon};

/// Longer than any answer takes to come, and much shorter than a long-poll.
const AT_ONCE: Duration = Duration::from_secs(30);

/// Pain: same-id.
#[tokio::test]
async fn a_repeated_request_is_the_same_question_and_other_content_is_refused() {
    let stage = Stage::new().await;
    let mut request = may_i_run_them();
    request["room"] = json!(stage.room);
    request["elicitation_id"] = json!("elc_7f3c");
    let (status, first) = stage.api.ask(&request).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(first["state"], "queued");
    let open = stage.api.until_open("elc_7f3c").await;
    let (status, again) = stage.api.ask(&request).await;
    assert_eq!((status, again), (StatusCode::OK, open.clone()));

    let mut other = request.clone();
    other["prompt"] = json!("May I delete them?");
    assert_eq!(
        refusal(stage.api.ask(&other).await),
        (409, "ELICITATION_CONFLICT".to_owned())
    );
    // The key of a request does the same for one without an id.
    let mut keyed = may_i_run_them();
    keyed["room"] = json!(stage.room);
    let mut ids = Vec::new();
    for status in [201, 200] {
        let request = stage.api.request(Method::POST, "/v1/elicitations");
        let response = request
            .header("Idempotency-Key", "once")
            .json(&keyed)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), status);
        let object: Value = response.json().await.unwrap();
        assert!(id(&object).starts_with("elc_"));
        ids.push(id(&object).to_owned());
    }
    assert_eq!(ids[0], ids[1]);
    stage.api.until_open(&ids[0]).await;
    assert_eq!(stage.said_by_bot().await, ["card", "card"]);

    // It stays the same question when it is over, and the room is left alone.
    stage
        .ben
        .reply(&stage.room, card_of(&open), "1")
        .await
        .unwrap();
    let answered = stage.answered(&open).await;
    assert_eq!(stage.api.ask(&request).await, (StatusCode::OK, answered));
}

/// Pain: timeout.
#[tokio::test]
async fn a_waiting_reader_has_the_answer_at_once() {
    let stage = Stage::new().await;
    let question = stage.ask(may_i_run_them()).await;
    let (status, open) = stage.api.get_waiting(id(&question), 1).await;
    assert_eq!((status, &open["state"]), (StatusCode::OK, &json!("open")));

    let began = Instant::now();
    let (first, second, sent) = tokio::join!(
        stage.api.get_waiting(id(&question), 55),
        stage.api.get_waiting(id(&question), 100_000),
        stage.ben.send_text(&stage.room, "1"),
    );
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(first.1["state"], "answered");
    assert_eq!(first.1["answer"]["event_id"], sent.unwrap());
    assert_eq!(first, second);
    // Whoever waits for what is over waits for nothing.
    assert_eq!(stage.api.get_waiting(id(&question), 55).await, first);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

/// Pain: timeout.
#[tokio::test]
async fn a_stream_that_is_resumed_loses_nothing_and_doubles_nothing() {
    const QUESTIONS: usize = 8;
    let stage = Stage::new().await;
    // What was before is not told to who asks for no more than what comes.
    let before = stage.ask(may_i_run_them()).await;
    stage.api.cancel(id(&before)).await;
    let stream = stage.api.events(None).await.unwrap();

    let ask_and_answer = async {
        for number in 0..QUESTIONS {
            let label = format!("answer {number}");
            let question = json!({
                "room": stage.room, "elicitation_id": format!("elc_{number}"),
                "prompt": "Which?", "options": [label, "none"],
            });
            let question = stage.api.ask_fine(&question).await;
            stage.api.until_open(id(&question)).await;
            stage.ben.send_text(&stage.room, &label).await.unwrap();
        }
    };
    let listen = async {
        let mut stream = stream;
        let mut heard = Vec::new();
        while heard.len() < 2 * QUESTIONS {
            // One event a connection, then two, then three: breaks fall everywhere.
            for _ in 0..=heard.len() % 3 {
                if heard.len() < 2 * QUESTIONS {
                    heard.push(stream.next().await);
                }
            }
            let last = heard.last().map(|event| event.id.as_str());
            stream = stage.api.events(last).await.unwrap();
        }
        heard
    };
    let ((), heard) = tokio::join!(ask_and_answer, listen);
    for number in 0..QUESTIONS {
        let name = format!("elc_{number}");
        let kinds: Vec<&str> = heard
            .iter()
            .filter(|event| event.body["data"]["elicitation_id"] == name)
            .map(|event| event.kind.as_str())
            .collect();
        assert_eq!(
            kinds,
            ["elicitation.open", "elicitation.answered"],
            "{name}"
        );
    }
    // Told once more from the first on, it is the same to the letter.
    let mut again = stage.api.events(Some(&heard[0].id)).await.unwrap();
    for event in &heard[1..] {
        assert_eq!(again.next().await, *event);
    }
    let last = heard.last().unwrap();
    assert_eq!(
        last.body["data"],
        stage.api.get(id(&last.body["data"])).await.1
    );
}

#[tokio::test]
async fn to_resume_after_an_event_that_is_not_kept_is_refused() {
    let stage = Stage::with(|config| config.with_agent("agt_two", "token-of-agent-two")).await;
    let mut events = stage.api.events(None).await.unwrap();
    stage.ask(may_i_run_them()).await;
    let mine = events.next().await;
    let other = stage.api.with_token("token-of-agent-two");
    for (api, last) in [
        (&stage.api, "evt_01JE0000000000000000000000"),
        (&stage.api, "17"),
        // Somebody else's event is no event.
        (&other, mine.id.as_str()),
    ] {
        let refused = api.events(Some(last)).await.err().unwrap();
        assert_eq!(refusal(refused), (410, "EVENTS_EXPIRED".to_owned()));
    }
    // An id that is kept is fine for whose it is.
    assert!(stage.api.events(Some(&mine.id)).await.is_ok());
}

/// Pain: webhook.
#[tokio::test]
async fn a_webhook_is_signed_and_repeated_under_its_id_until_it_is_taken() {
    let sink = WebhookSink::start().await;
    sink.answer_with(SinkAnswer::Status(500));
    let stage = Stage::with(|config| config.with_webhook(&sink)).await;
    let question = stage.ask(may_i_run_them()).await;
    sink.wait_for_count(1).await;
    stage.ben.send_text(&stage.room, "1").await.unwrap();
    let answered = stage.answered(&question).await;
    sink.answer_with(SinkAnswer::Status(204));

    let told = sink.wait_for_type("elicitation.answered").await;
    assert_eq!(told.json["data"], answered);
    let received = sink.received();
    let (opened, rest) = received.split_at(received.len() - 1);
    // The one that failed is repeated first, and nothing overtakes it.
    assert!(opened.len() >= 2, "{received:#?}");
    for one in opened {
        assert_eq!(one.json["type"], "elicitation.open");
        assert_eq!(one.id, opened[0].id);
        assert_eq!(one.body, opened[0].body);
    }
    assert_eq!(rest[0].id, told.id);
    assert_ne!(told.id, opened[0].id);
    for one in &received {
        assert_eq!(one.signature, Ok(()), "{one:#?}");
        assert_eq!(one.headers["content-type"], "application/json");
    }
    soon("the deliveries to be done", async || {
        let pending = stage.api.metric("elicit_deliveries_pending").await;
        (pending == Some(0.0)).then_some(())
    })
    .await;
    assert_eq!(
        stage.api.metric("elicit_deliveries_parked").await,
        Some(0.0)
    );
    let taken = r#"elicit_delivery_attempts_total{outcome="delivered"}"#;
    assert_eq!(stage.api.metric(taken).await, Some(2.0));
    assert_eq!(sink.received().len(), received.len());
}

#[tokio::test]
async fn a_webhook_that_is_gone_is_not_called_again_and_holds_nothing_up() {
    let sink = WebhookSink::start().await;
    sink.answer_with(SinkAnswer::Status(410));
    let stage = Stage::with(|config| config.with_webhook(&sink)).await;
    let question = stage.ask(may_i_run_them()).await;
    sink.wait_for_count(1).await;
    soon("the delivery to be set aside", async || {
        let parked = stage.api.metric("elicit_deliveries_parked").await;
        (parked == Some(1.0)).then_some(())
    })
    .await;
    sink.answer_with(SinkAnswer::Status(204));
    stage.ben.send_text(&stage.room, "1").await.unwrap();
    stage.answered(&question).await;
    sink.wait_for_type("elicitation.answered").await;
    let kinds: Vec<Value> = sink
        .received()
        .into_iter()
        .map(|mut one| one.json["type"].take())
        .collect();
    assert_eq!(kinds, ["elicitation.open", "elicitation.answered"]);
    assert_eq!(
        stage.api.metric("elicit_deliveries_parked").await,
        Some(1.0)
    );
    assert!(stage.api.is_ready().await);
}

#[tokio::test]
async fn a_list_comes_in_pages_and_can_be_narrowed() {
    let stage = Stage::new().await;
    let elsewhere = stage.another_room(RoomOptions::default()).await;
    let mut asked = Vec::new();
    for number in 0..5 {
        let room = if number == 4 { &elsewhere } else { &stage.room };
        let question = stage.ask_in(room, may_i_run_them()).await;
        asked.insert(0, id(&question).to_owned());
    }
    stage.api.cancel(&asked[2]).await;
    let page = async |query: &str| {
        let (status, page) = stage.api.list(query).await;
        assert_eq!(status, StatusCode::OK, "{page:#}");
        let objects = page["elicitations"].as_array().unwrap();
        let ids: Vec<String> = objects.iter().map(|one| id(one).to_owned()).collect();
        let next = page["next"].as_str().map(str::to_owned);
        (ids, next)
    };
    assert_eq!(page("").await, (asked.clone(), None));
    let (first, next) = page("?limit=2").await;
    assert_eq!(first, asked[..2]);
    // What comes meanwhile is newer, and shifts nothing.
    stage.ask(may_i_run_them()).await;
    let (second, next) = page(&format!("?limit=2&cursor={}", next.unwrap())).await;
    assert_eq!(second, asked[2..4]);
    let last = page(&format!("?limit=2&cursor={}", next.unwrap())).await;
    assert_eq!(last, (asked[4..].to_vec(), None));

    assert_eq!(page("?state=cancelled").await, (asked[2..3].to_vec(), None));
    let room = elsewhere.replace('!', "%21").replace(':', "%3A");
    let narrowed = page(&format!("?room={room}&state=open")).await;
    assert_eq!(narrowed, (asked[..1].to_vec(), None));
    let wrong = stage.api.list("?cursor=elsewhere").await;
    assert_eq!(refusal(wrong), (400, "INVALID_REQUEST".to_owned()));
}

#[tokio::test]
async fn who_runs_it_can_see_how_it_is() {
    let stage = Stage::new().await;
    let nobody = stage.api.with_token("");
    let body = async |path: &str| {
        let response = nobody.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response.json::<Value>().await.unwrap()
    };
    assert_eq!(body("/healthz").await, json!({"status": "ok"}));
    assert_eq!(body("/readyz").await, json!({"status": "ready"}));
    assert_eq!(nobody.metric("elicit_ready").await, Some(1.0));
    assert_eq!(nobody.metric("elicit_elicitations_open").await, Some(0.0));
    stage.ask(may_i_run_them()).await;
    let question = stage.ask(may_i_run_them()).await;
    assert_eq!(nobody.metric("elicit_elicitations_open").await, Some(2.0));
    assert_eq!(nobody.metric("elicit_elicitations_queued").await, Some(0.0));
    stage
        .ben
        .reply(&stage.room, card_of(&question), "1")
        .await
        .unwrap();
    stage.answered(&question).await;
    assert_eq!(nobody.metric("elicit_elicitations_open").await, Some(1.0));
    let asked = r#"elicit_http_requests_total{route="/v1/elicitations",status="201"}"#;
    assert_eq!(nobody.metric(asked).await, Some(2.0));
    let waited = nobody.metric("elicit_oldest_open_seconds").await.unwrap();
    assert!(waited > 0.0 && waited < SOON.as_secs_f64(), "{waited}");
}
