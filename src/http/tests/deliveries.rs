use super::*;

const OPERATOR: &str = "operator-token-89ab";
const LIST: &str = "/v1/operator/deliveries";
const RETRY: &str = "/v1/operator/deliveries/retry";
const DROP: &str = "/v1/operator/deliveries/drop";

/// With an operator, and a webhook for the builder. Nobody carries anything here.
async fn office() -> Api {
    Api::with(&format!(
        r#"
        [agents.builder.webhook]
        url = "http://x.org/"
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        [http]
        operator_token = "{OPERATOR}"
        "#
    ))
    .await
}

async fn call(
    api: &Api,
    token: Option<&str>,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let mut request = api.client.request(method, format!("{}{path}", api.base));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    answer(request.send().await.unwrap()).await
}

async fn get(api: &Api, query: &str) -> (u16, Value) {
    let path = format!("{LIST}{query}");
    call(api, Some(OPERATOR), Method::GET, &path, None).await
}

async fn post(api: &Api, path: &str, body: Value) -> (u16, Value) {
    call(api, Some(OPERATOR), Method::POST, path, Some(body)).await
}

/// Has something to deliver, parked at once or pending; gives the event's id.
async fn deliver(api: &Api, agent: &str, id: &str, park: bool) -> String {
    let draft = EventDraft {
        urgent: false,
        key: Key::new(agent, id),
        event_type: "elicitation.open".to_owned(),
        body: json!({ "word": id }),
    };
    let agent = agent.to_owned();
    let written = api.service.book().write(move |ledger| {
        let before = ledger.last_event_seq()?;
        ledger.announce(&draft, true, clock::now() - 90_500)?;
        let event = ledger.events_after(&agent, before, 1)?.remove(0);
        if park {
            let (due, _) = ledger.deliveries_due(&agent, clock::now(), 99)?;
            let seq = due.iter().find(|it| it.event.id == event.id).unwrap().seq;
            ledger.park_delivery(seq, "HTTP 410")?;
        }
        Ok::<_, LedgerError>(event.id)
    });
    written.await.unwrap()
}

fn ids(page: &Value) -> Vec<&str> {
    let deliveries = page["deliveries"].as_array().unwrap().iter();
    deliveries.map(|one| one["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_delivery_is_told_with_all_that_an_operator_needs() {
    let api = office().await;
    let parked = deliver(&api, "builder", "e1", true).await;
    let pending = deliver(&api, "builder", "e2", false).await;
    let (status, page) = get(&api, "").await;
    let one = &page["deliveries"][0];
    let age = one["age_seconds"].as_u64().unwrap();
    assert!((90..100).contains(&age), "{age}");
    let timestamp = &one["timestamp"];
    assert!(timestamp.as_str().unwrap().ends_with('Z'), "{timestamp}");
    let expected = json!({
        "deliveries": [{
            "id": parked, "agent": "builder", "elicitation_id": "e1", "type": "elicitation.open",
            "state": "parked", "timestamp": timestamp, "age_seconds": age, "attempts": 1,
            "next_try": null, "last_error": "HTTP 410",
        }],
        "next": null,
    });
    assert_eq!((status, &page), (200, &expected));
    assert_eq!(get(&api, "?state=parked").await.0, 200);
    let (_, page) = get(&api, "?state=pending").await;
    let one = &page["deliveries"][0];
    assert_eq!(ids(&page), [pending]);
    assert_eq!(
        (&one["next_try"], &one["last_error"], &one["state"]),
        (&one["timestamp"], &Value::Null, &json!("pending"))
    );
}

#[tokio::test]
async fn a_listing_comes_in_pages_and_can_be_narrowed() {
    let api = office().await;
    let mut all = Vec::new();
    for (number, agent) in ["builder", "tester", "builder"].iter().enumerate() {
        all.push(deliver(&api, agent, &format!("e{number}"), true).await);
    }
    let (_, first) = get(&api, "?limit=2").await;
    assert_eq!(ids(&first), all[..2]);
    let next = first["next"].as_str().unwrap();
    let (_, last) = get(&api, &format!("?limit=2&cursor={next}")).await;
    assert_eq!(
        (ids(&last), &last["next"]),
        (vec![all[2].as_str()], &Value::Null)
    );
    let (_, tester) = get(&api, "?agent=tester").await;
    assert_eq!(ids(&tester), all[1..2]);
    assert_eq!(
        get(&api, "?state=gone").await,
        refused_field("state", "must be `parked` or `pending`")
    );
    assert_eq!(
        get(&api, "?agnt=tester").await,
        refused_field("agnt", "is no parameter here; did you mean `agent`?")
    );
}

#[tokio::test]
async fn what_is_asked_for_again_is_counted_and_what_was_not_parked_is_named() {
    let api = office().await;
    let one = deliver(&api, "builder", "e1", true).await;
    let two = deliver(&api, "builder", "e2", true).await;
    let pending = deliver(&api, "builder", "e3", false).await;
    let body = json!({ "ids": [one, "evt_unknown", pending] });
    assert_eq!(
        post(&api, RETRY, body).await,
        (
            200,
            json!({ "retried": 1, "left": ["evt_unknown", pending] })
        )
    );
    assert_eq!(ids(&get(&api, "").await.1), [two.as_str()]);
    let (_, tried) = get(&api, "?state=pending").await;
    assert_eq!(ids(&tried), [one.as_str(), pending.as_str()]);
    assert_eq!(tried["deliveries"][0]["attempts"], 0);
    let again = post(&api, RETRY, json!({ "agent": "builder" })).await;
    assert_eq!(again, (200, json!({ "retried": 1, "left": [] })));
    let none = post(&api, RETRY, json!({ "all": true })).await;
    assert_eq!(none, (200, json!({ "retried": 0, "left": [] })));
    assert_eq!(
        post(&api, RETRY, json!({ "ids": [] })).await,
        refused_field("ids", "must not be empty")
    );
}

#[tokio::test]
async fn what_has_nowhere_to_go_stays_parked_until_it_is_dropped() {
    let api = office().await;
    let mine = deliver(&api, "builder", "e1", true).await;
    let webhookless = deliver(&api, "tester", "e1", true).await;
    let gone = deliver(&api, "gone", "e1", true).await;
    for agent in ["tester", "gone"] {
        assert_eq!(
            post(&api, RETRY, json!({ "agent": agent })).await,
            refused_field(
                "agent",
                "has no webhook in the configuration, so there is nowhere to try"
            )
        );
    }
    assert_eq!(
        post(&api, RETRY, json!({ "ids": [gone] })).await,
        (200, json!({ "retried": 0, "left": [gone] }))
    );
    assert_eq!(
        post(&api, RETRY, json!({ "all": true })).await,
        (200, json!({ "retried": 1, "left": [] }))
    );
    let (_, page) = get(&api, "").await;
    assert_eq!(ids(&page), [webhookless.as_str(), gone.as_str()]);
    assert_eq!(
        post(&api, DROP, json!({ "ids": [webhookless, mine] })).await,
        (200, json!({ "dropped": 1, "left": [mine] }))
    );
    assert_eq!(
        post(&api, DROP, json!({ "agent": "gone" })).await,
        (200, json!({ "dropped": 1, "left": [] }))
    );
    assert_eq!(get(&api, "").await.1["deliveries"], json!([]));
    assert_eq!(ids(&get(&api, "?state=pending").await.1), [mine]);
    assert_eq!(
        post(&api, DROP, json!({ "all": true })).await,
        (200, json!({ "dropped": 0, "left": [] }))
    );
}

#[tokio::test]
async fn only_the_operators_token_opens_it_and_it_opens_nothing_else() {
    let api = office().await;
    let parked = deliver(&api, "builder", "e1", true).await;
    let body = || Some(json!({ "all": true }));
    let calls = [
        (Method::GET, LIST, None),
        (Method::POST, RETRY, body()),
        (Method::POST, DROP, body()),
    ];
    for (method, path, body) in calls {
        assert_eq!(
            call(&api, None, method.clone(), path, body.clone()).await,
            refused(
                401,
                "UNAUTHORIZED",
                "send the operator's token: Authorization: Bearer …"
            )
        );
        for token in [BUILDER, "operator-token-89ac"] {
            assert_eq!(
                call(&api, Some(token), method.clone(), path, body.clone()).await,
                refused(401, "UNAUTHORIZED", "this token is not the operator's")
            );
        }
    }
    assert_eq!(ids(&get(&api, "").await.1), [parked]);
    for (method, path) in [
        (Method::GET, "/v1/elicitations"),
        (Method::GET, "/v1/elicitations/e1"),
        (Method::GET, "/v1/events"),
        (Method::POST, "/v1/elicitations"),
    ] {
        assert_eq!(
            call(&api, Some(OPERATOR), method, path, None).await,
            refused(401, "UNAUTHORIZED", "this token is no agent's")
        );
    }
    // Those were ten wrong tokens. The next is not read, and the right ones are.
    let (status, slowed) = call(&api, Some("guess"), Method::GET, LIST, None).await;
    assert_eq!(
        (status, &slowed["error"]["code"]),
        (429, &json!("RATE_LIMITED"))
    );
    assert_eq!(get(&api, "").await.0, 200);
    assert_eq!(api.get("/v1/elicitations").await.0, 200);
}

#[tokio::test]
async fn without_an_operators_token_nobody_is_the_operator() {
    let api = Api::start().await;
    let message = "the operator's commands need http.operator_token, which is not set in the \
                   configuration of this bot";
    for token in [None, Some(""), Some(BUILDER), Some(OPERATOR)] {
        for (method, path, body) in [
            (Method::GET, LIST, None),
            (Method::POST, RETRY, Some(json!({ "all": true }))),
            (Method::POST, DROP, Some(json!({ "all": true }))),
        ] {
            assert_eq!(
                call(&api, token, method, path, body).await,
                refused(403, "NO_OPERATOR_TOKEN", message)
            );
        }
    }
}

#[tokio::test]
async fn the_metrics_tell_each_agents_deliveries_and_forget_none() {
    // The recorder is the process's: names of agents that no other test has.
    let api = Api::with(
        r#"
        [agents.counted]
        token = "counted-token-0123"
        webhook = { url = "http://x.org/", secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }
        [agents.uncounted]
        token = "uncounted-token-0123"
        "#,
    )
    .await;
    let told = async || {
        let metrics = format!("{}/metrics", api.base);
        let text = api.client.get(metrics).send().await.unwrap();
        let text = text.text().await.unwrap();
        ["counted", "uncounted", "left"].map(|agent| {
            ["pending", "parked"].map(|state| {
                let name = format!("elicit_agent_deliveries_{state}{{agent=\"{agent}\"}} ");
                let value = text.lines().find_map(|line| line.strip_prefix(&name));
                value.map(|value| value.parse::<u32>().unwrap())
            })
        })
    };
    assert_eq!(
        told().await,
        [[Some(0), Some(0)], [None, None], [None, None]]
    );
    deliver(&api, "counted", "e1", true).await;
    deliver(&api, "counted", "e2", false).await;
    deliver(&api, "counted", "e3", false).await;
    // One that is in the configuration no more.
    deliver(&api, "left", "e1", true).await;
    assert_eq!(
        told().await,
        [[Some(2), Some(1)], [None, None], [Some(0), Some(1)]]
    );
    let all = crate::ledger::ChosenDeliveries::default();
    let dropped = api
        .service
        .book()
        .write(move |ledger| ledger.drop_parked(&all));
    let dropped: Result<Vec<String>, LedgerError> = dropped.await;
    assert_eq!(dropped.unwrap().len(), 2);
    assert_eq!(
        told().await,
        [[Some(2), Some(0)], [None, None], [Some(0), Some(0)]]
    );
}
