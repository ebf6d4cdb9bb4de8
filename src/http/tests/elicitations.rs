use std::time::Instant;

use super::*;

#[tokio::test]
async fn what_is_asked_is_found_where_location_says() {
    let api = Api::start().await;
    let body = json!({
        "room": "#deploys:x.org",
        "prompt": "Ship it?",
        "options": ["Yes", { "id": "n", "label": "No" }],
        "elicitation_id": "run 7/a",
        "metadata": { "n": 1 },
    });
    let asked = api
        .request(Method::POST, "/v1/elicitations")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(asked.status(), 201);
    assert_eq!(asked.headers()["location"], "/v1/elicitations/run%207%2Fa");
    assert_eq!(asked.headers()["cache-control"], "no-store");
    let object: Value = asked.json().await.unwrap();
    assert_eq!(object["elicitation_id"], "run 7/a");
    assert_eq!(object["state"], "queued");
    assert_eq!(object["room_id"], "!deploys:x.org");
    assert_eq!(object["asked_by"], "builder");
    assert_eq!(object["metadata"], json!({ "n": 1 }));
    assert_eq!(object["answer"], Value::Null);
    assert_eq!(
        object["options"],
        json!([
            { "number": 1, "id": "Yes", "label": "Yes" },
            { "number": 2, "id": "n", "label": "No" }
        ])
    );
    assert_eq!(api.get("/v1/elicitations/run%207%2Fa").await, (200, object));
}

/// Pain: same-id.
#[tokio::test]
async fn the_same_again_is_the_same_question_and_another_is_a_conflict() {
    let api = Api::start().await;
    let mut body = json!({ "room": "!r:x.org", "prompt": "Ship it?", "elicitation_id": "e1" });
    let (status, first) = api.ask(&body).await;
    assert_eq!(status, 201);
    assert_eq!(api.ask(&body).await, (200, first));
    body["prompt"] = json!("Ship what?");
    assert_eq!(
        api.ask(&body).await,
        refused(
            409,
            "ELICITATION_CONFLICT",
            "\"e1\" was asked before with other content; another question needs another id or key"
        )
    );
}

#[tokio::test]
async fn an_idempotency_key_stands_for_an_id() {
    let api = Api::start().await;
    let ask = async || {
        let body = json!({ "room": "!r:x.org", "prompt": "Ship it?" });
        let request = api.request(Method::POST, "/v1/elicitations").json(&body);
        answer(
            request
                .header("Idempotency-Key", "run-7")
                .send()
                .await
                .unwrap(),
        )
        .await
    };
    let (status, first) = ask().await;
    assert_eq!(status, 201);
    assert!(
        first["elicitation_id"]
            .as_str()
            .unwrap()
            .starts_with("elc_"),
        "{first}"
    );
    assert_eq!(ask().await, (200, first));
}

#[tokio::test]
async fn a_body_that_curl_calls_a_form_is_read() {
    let api = Api::start().await;
    let request = api
        .request(Method::POST, "/v1/elicitations")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(r#"{"room":"!r:x.org","prompt":"Ship it?","options":["Yes","No"]}"#);
    assert_eq!(answer(request.send().await.unwrap()).await.0, 201);
}

#[tokio::test]
async fn what_is_refused_says_why() {
    let api = Api::start().await;
    let ask = async |room: &str| {
        api.ask(&json!({ "room": room, "prompt": "Ship it?" }))
            .await
    };
    assert_eq!(
        ask("!elsewhere:x.org").await,
        refused(
            409,
            "ROOM_NOT_JOINED",
            "the bot is not in !elsewhere:x.org: invite @elicit:x.org"
        )
    );
    let (status, body) = ask("!mute:x.org").await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (409, &json!("NO_POWER_TO_SEND"))
    );
    let (status, body) = ask("#away:x.org").await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &json!("UNAVAILABLE"))
    );
    let (status, body) = ask("").await;
    assert_eq!((status, &body["error"]["field"]), (400, &json!("room")));
    let body = json!({ "room": "!r:x.org", "prompt": "Ship it?", "optoins": [] });
    assert_eq!(
        api.ask(&body).await,
        refused_field("optoins", "is no field here; did you mean `options`?")
    );
    let request = api
        .request(Method::POST, "/v1/elicitations")
        .body("{\"room\":}");
    assert_eq!(
        answer(request.send().await.unwrap()).await,
        refused_field("body", "must be JSON: expected value at line 1 column 9")
    );
    let request = api
        .client
        .post(format!("{}/v1/elicitations", api.base))
        .bearer_auth(TESTER);
    let request = request.json(&json!({ "room": "!r:x.org", "prompt": "Ship it?" }));
    assert_eq!(
        answer(request.send().await.unwrap()).await,
        refused(
            403,
            "ROOM_NOT_ALLOWED",
            "this agent may not ask in !r:x.org"
        )
    );
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let api = Api::start().await;
    let body = "x".repeat(super::super::MAX_BODY + 1);
    let request = api.request(Method::POST, "/v1/elicitations").body(body);
    assert_eq!(
        answer(request.send().await.unwrap()).await,
        refused(413, "PAYLOAD_TOO_LARGE", "the body is larger than 256 KiB")
    );
}

#[tokio::test]
async fn paths_and_methods_that_are_not_served_are_refused_in_the_same_shape() {
    let api = Api::start().await;
    let nothing = refused(404, "NOT_FOUND", "there is nothing at this path");
    assert_eq!(api.get("/").await, nothing);
    assert_eq!(api.get("/v2/elicitations").await, nothing);
    assert_eq!(api.get("/v1/elicitations/").await, nothing);
    let method = "this path does not take that method; the Allow header names those it takes";
    let put = api
        .request(Method::PUT, "/v1/elicitations")
        .send()
        .await
        .unwrap();
    assert_eq!(put.headers()["allow"], "GET,HEAD,POST");
    assert_eq!(
        answer(put).await,
        refused(405, "METHOD_NOT_ALLOWED", method)
    );
    assert_eq!(
        api.delete("/healthz").await,
        refused(405, "METHOD_NOT_ALLOWED", method)
    );
}

#[tokio::test]
async fn no_agent_learns_of_anothers_questions() {
    let api = Api::start().await;
    api.asked("e1").await;
    let get = async |method: Method, path: &str| {
        let request = api.client.request(method, format!("{}{path}", api.base));
        answer(request.bearer_auth(TESTER).send().await.unwrap()).await
    };
    let missing = refused(
        404,
        "ELICITATION_NOT_FOUND",
        "there is no elicitation \"e1\" of this agent",
    );
    assert_eq!(get(Method::GET, "/v1/elicitations/e1").await, missing);
    assert_eq!(
        get(Method::GET, "/v1/elicitations/e1?wait=55").await,
        missing
    );
    assert_eq!(get(Method::DELETE, "/v1/elicitations/e1").await, missing);
    let nothing = (200, json!({ "elicitations": [], "next": null }));
    assert_eq!(get(Method::GET, "/v1/elicitations").await, nothing);
}

#[tokio::test]
async fn a_waiting_reader_is_answered_when_the_question_is_closed() {
    let api = Api::start().await;
    api.asked("e1").await;
    let (waited, withdrawn) = soon(async {
        tokio::join!(api.get("/v1/elicitations/e1?wait=500"), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            api.delete("/v1/elicitations/e1").await
        })
    })
    .await;
    assert_eq!(withdrawn.1["state"], "cancelled");
    assert_eq!(waited, withdrawn);
    // A closed one is not waited for.
    assert_eq!(
        soon(api.get("/v1/elicitations/e1?wait=55")).await,
        withdrawn
    );
}

/// Pain: timeout.
#[tokio::test]
async fn a_waiting_reader_is_answered_when_the_time_is_up() {
    let api = Api::start().await;
    api.asked("e1").await;
    let begun = Instant::now();
    let (status, object) = soon(api.get("/v1/elicitations/e1?wait=1")).await;
    assert_eq!((status, &object["state"]), (200, &json!("queued")));
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(
        api.get("/v1/elicitations/e1?wait=long").await,
        refused_field("wait", "must be a whole number of seconds, 0 to 55")
    );
    assert_eq!(
        api.get("/v1/elicitations/e1?Wait=1").await,
        refused_field("Wait", "is no parameter here; did you mean `wait`?")
    );
}

#[tokio::test]
async fn a_question_is_withdrawn_once() {
    let api = Api::start().await;
    api.asked("e1").await;
    let (status, object) = api.delete("/v1/elicitations/e1").await;
    assert_eq!((status, &object["state"]), (200, &json!("cancelled")));
    let at = object["closed_at"].as_str().unwrap();
    assert_eq!(
        api.delete("/v1/elicitations/e1").await,
        refused(
            409,
            "ELICITATION_NOT_PENDING",
            &format!("elicitation \"e1\" was cancelled at {at} and stays so")
        )
    );
    assert_eq!(
        api.delete("/v1/elicitations/e1?force=true").await,
        refused_field("force", "is no parameter here; there are none")
    );
}

#[tokio::test]
async fn a_listing_is_read_page_by_page() {
    let api = Api::start().await;
    for id in ["e1", "e2", "e3"] {
        api.asked(id).await;
    }
    let ids = |page: &Value| -> Vec<String> {
        let elicitations = page["elicitations"].as_array().unwrap().iter();
        elicitations
            .map(|one| one["elicitation_id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (status, page) = api.get("/v1/elicitations?limit=2").await;
    assert_eq!(
        (status, ids(&page)),
        (200, vec!["e3".to_owned(), "e2".to_owned()])
    );
    let next = page["next"].as_str().unwrap();
    let (_, page) = api
        .get(&format!("/v1/elicitations?limit=2&cursor={next}"))
        .await;
    assert_eq!(
        (ids(&page), &page["next"]),
        (vec!["e1".to_owned()], &Value::Null)
    );
}

#[tokio::test]
async fn a_listing_is_narrowed_by_state_and_room() {
    let api = Api::start().await;
    for id in ["e1", "e2"] {
        api.asked(id).await;
    }
    let other = json!({ "room": "!r:x.org", "prompt": "And here?", "elicitation_id": "e3" });
    api.ask(&other).await;
    api.delete("/v1/elicitations/e1").await;
    let ids = async |query: &str| {
        let (status, page) = api.get(&format!("/v1/elicitations?{query}")).await;
        assert_eq!(status, 200, "{page}");
        let elicitations = page["elicitations"].as_array().unwrap().clone();
        let ids = elicitations
            .iter()
            .map(|one| one["elicitation_id"].as_str().unwrap());
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids("state=cancelled").await, "e1");
    assert_eq!(ids("state=queued").await, "e3 e2");
    assert_eq!(ids("room=!r:x.org").await, "e3");
    assert_eq!(ids("room=%23deploys:x.org&state=queued").await, "e2");
    assert_eq!(ids("room=%23nowhere:x.org").await, "");
    assert_eq!(
        api.get("/v1/elicitations?limit=1000").await,
        refused_field("limit", "must be a whole number from 1 to 200")
    );
    assert_eq!(
        api.get("/v1/elicitations?cursor=7").await,
        refused_field(
            "cursor",
            "must be the `next` of a page before, as it was given"
        )
    );
    let (status, body) = api.get("/v1/elicitations?room=%23away:x.org").await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &json!("UNAVAILABLE"))
    );
}
