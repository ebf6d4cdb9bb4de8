//! `/v1/sessions` and what its agent hears.

use super::events::Listener;
use super::*;
use crate::desk::{Bot, Heard, Rules, Said, Sender, Trust, What};
use crate::service::Batch;

const ROOM: &str = "!deploys:x.org";

impl Api {
    async fn begin(&self, body: &Value) -> (u16, Value) {
        let request = self.request(Method::POST, "/v1/sessions").json(body);
        answer(request.send().await.unwrap()).await
    }

    /// A session of the builder, by its id.
    async fn begun(&self) -> String {
        let (status, session) = self.begin(&json!({ "room": ROOM })).await;
        assert_eq!(status, 201);
        session["id"].as_str().unwrap().to_owned()
    }

    async fn act(&self, id: &str, body: &Value) -> (u16, Value) {
        let path = format!("/v1/sessions/{id}/activities");
        answer(
            self.request(Method::POST, &path)
                .json(body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    /// The same request by the other agent.
    async fn by_tester(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.base));
        let request = request.bearer_auth(TESTER);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        answer(request.send().await.unwrap()).await
    }

    /// Mira says something in the room.
    async fn says(&self, event_id: &str, body: &str, reply_to: Option<&str>) {
        let said = Said {
            body: body.to_owned(),
            in_reply_to: reply_to.map(str::to_owned),
            ..Said::default()
        };
        let heard = Heard {
            room_id: ROOM.to_owned(),
            event_id: event_id.to_owned(),
            sender: Sender {
                user_id: "@mira:x.org".to_owned(),
                display_name: Some("Mira".to_owned()),
                joined: true,
                power: 0,
                alone: false,
            },
            sent_at: clock::now(),
            trust: Trust::Plain,
            what: What::Message(said),
            chat: None,
        };
        let batch = Batch {
            heard: vec![heard],
            rooms: [(ROOM.to_owned(), (Rules::default(), Bot::default()))].into(),
            ..Batch::default()
        };
        self.service.take_in(batch).await.unwrap();
    }

    /// Mira begins a session of the builder, whose root comes to the room. Gives its id and root.
    async fn begun_by_mira(&self) -> (String, String) {
        self.says("$m1", "builder: look at the flaky test", None)
            .await;
        let (_, listed) = self.get("/v1/sessions").await;
        let id = listed["sessions"][0]["id"].as_str().unwrap().to_owned();
        let due = self
            .service
            .book()
            .read(|ledger| ledger.sendings_due(i64::MAX));
        let (mut due, _) = Result::<_, LedgerError>::unwrap(due.await);
        let root = "$root".to_owned();
        self.service
            .sent(due.remove(0), root.clone())
            .await
            .unwrap();
        (id, root)
    }
}

fn thought() -> Value {
    json!({ "content": { "type": "thought", "body": "hm" } })
}

fn not_found(id: &str) -> (u16, Value) {
    let message = format!("there is no session {id:?} of this agent");
    refused(404, "SESSION_NOT_FOUND", &message)
}

fn code(answered: &(u16, Value)) -> (u16, &str) {
    (answered.0, answered.1["error"]["code"].as_str().unwrap())
}

#[tokio::test]
async fn a_session_is_begun_and_read() {
    let api = Api::start().await;
    let body = json!({
        "room": "#deploys:x.org",
        "title": "The flaky test",
        "user_id": "@mira:x.org",
        "prompt": "Look at it.",
    });
    let request = api.request(Method::POST, "/v1/sessions").json(&body);
    let response = request.send().await.unwrap();
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let (status, session) = answer(response).await;
    assert_eq!(status, 201);
    let id = session["id"].as_str().unwrap();
    assert!(id.starts_with("sess_") && id.len() == 31, "{id}");
    assert_eq!(location, format!("/v1/sessions/{id}"));
    let expected = json!({
        "id": id,
        "status": "active",
        "end_reason": null,
        "agent": "builder",
        "room_id": ROOM,
        "thread": null,
        "title": "The flaky test",
        "user_id": "@mira:x.org",
        "created_at": session["created_at"],
        "updated_at": session["created_at"],
        "ended_at": null,
    });
    assert_eq!(session, expected);
    assert_eq!(api.get(&location).await, (200, session.clone()));
    let (status, said) = api.get(&format!("{location}/activities")).await;
    assert_eq!(status, 200);
    let prompt = &said["activities"][0];
    let expected = json!({
        "id": prompt["id"],
        "content": { "type": "prompt", "body": "Look at it." },
        "user": { "user_id": "@mira:x.org", "display_name": null },
        "created_at": session["created_at"],
    });
    assert!(prompt["id"].as_str().unwrap().starts_with("act_"));
    assert_eq!(said, json!({ "activities": [expected], "next": null }));
}

#[tokio::test]
async fn what_breaks_a_rule_is_refused_by_its_field() {
    let api = Api::start().await;
    let long = "x".repeat(64 * 1024 + 1);
    for (body, field) in [
        (json!({}), "room"),
        (json!({ "room": 7 }), "room"),
        (json!({ "room": ROOM, "title": " \u{200B}" }), "title"),
        (json!({ "room": ROOM, "title": &long[..513] }), "title"),
        (json!({ "room": ROOM, "user_id": "mira" }), "user_id"),
        (json!({ "room": ROOM, "user_id": 7 }), "user_id"),
        (json!({ "room": ROOM, "prompt": "look" }), "user_id"),
        (
            json!({ "room": ROOM, "user_id": "@m:x.org", "prompt": "" }),
            "prompt",
        ),
        (
            json!({ "room": ROOM, "user_id": "@m:x.org", "prompt": long }),
            "prompt",
        ),
        (json!({ "room": ROOM, "agent": "tester" }), "agent"),
        (json!([]), "body"),
    ] {
        let (status, answered) = api.begin(&body).await;
        assert_eq!(status, 400, "{answered}");
        assert_eq!(answered["error"]["code"], "INVALID_REQUEST");
        assert_eq!(answered["error"]["field"], field, "{answered}");
    }
    let (_, listed) = api.get("/v1/sessions").await;
    assert_eq!(listed, json!({ "sessions": [], "next": null }));
}

#[tokio::test]
async fn a_room_has_to_be_one_to_speak_in() {
    let api = Api::start().await;
    for room in ["!elsewhere:x.org", "!mute:x.org", "#nowhere:x.org"] {
        let asked = api.request(Method::POST, "/v1/elicitations");
        let asked = asked.json(&json!({ "room": room, "prompt": "?" }));
        let asked = answer(asked.send().await.unwrap()).await;
        let begun = api.begin(&json!({ "room": room })).await;
        // As for a question: the same words for the same trouble.
        assert_eq!(begun, asked, "{room}");
        assert!(begun.0 >= 400);
    }
    let body = json!({ "room": "!other:x.org" });
    let refused = api
        .by_tester(Method::POST, "/v1/sessions", Some(&body))
        .await;
    assert_eq!(code(&refused), (403, "ROOM_NOT_ALLOWED"));
}

#[tokio::test]
async fn an_agent_lists_its_own_a_page_at_a_time_and_by_status() {
    let api = Api::start().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(api.begun().await);
    }
    ids.reverse();
    let ids_of = |listed: &Value| -> Vec<String> {
        let sessions = listed["sessions"].as_array().unwrap().iter();
        sessions
            .map(|session| session["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (status, first) = api.get("/v1/sessions?limit=2").await;
    assert_eq!((status, ids_of(&first)), (200, ids[..2].to_vec()));
    let next = first["next"].as_str().unwrap();
    let (_, last) = api
        .get(&format!("/v1/sessions?limit=2&cursor={next}"))
        .await;
    assert_eq!(
        (ids_of(&last), &last["next"]),
        (ids[2..].to_vec(), &Value::Null)
    );
    api.act(
        &ids[1],
        &json!({ "content": { "type": "response", "body": "done" } }),
    )
    .await;
    for (status, expected) in [
        ("complete", &ids[1..2]),
        ("awaitingInput", &ids[..0]),
        ("active", &[ids[0].clone(), ids[2].clone()][..]),
    ] {
        let (_, listed) = api.get(&format!("/v1/sessions?status={status}")).await;
        assert_eq!(ids_of(&listed), expected, "{status}");
    }
    let theirs = api.by_tester(Method::GET, "/v1/sessions", None).await;
    assert_eq!(theirs, (200, json!({ "sessions": [], "next": null })));
    for (query, field) in [
        ("status=done", "status"),
        ("status=Active", "status"),
        ("limit=0", "limit"),
        ("cursor=x", "cursor"),
    ] {
        let (status, answered) = api.get(&format!("/v1/sessions?{query}")).await;
        assert_eq!((status, &answered["error"]["field"]), (400, &json!(field)));
    }
}

#[tokio::test]
async fn what_an_agent_does_is_given_back_and_read_in_order() {
    let api = Api::start().await;
    let id = api.begun().await;
    let select = json!({
        "content": { "type": "elicitation", "body": "Which environment should I deploy to?" },
        "signal": "select",
        "signal_metadata": { "options": [
            { "value": "staging", "label": "Staging" },
            { "value": "production", "label": "Production" },
        ] },
    });
    let mut said = Vec::new();
    for body in [thought(), select] {
        let (status, mut taken) = api.act(&id, &body).await;
        assert_eq!(status, 201, "{taken}");
        said.push(taken.clone());
        // The payload goes through unchanged.
        let members = taken.as_object_mut().unwrap();
        assert!(members.remove("id").is_some() && members.remove("created_at").is_some());
        assert_eq!(taken, body);
    }
    let seen = json!({ "content": { "type": "action", "body": "ls" }, "ephemeral": true });
    let (status, taken) = api.act(&id, &seen).await;
    assert_eq!((status, &taken["ephemeral"]), (201, &json!(true)));
    let path = format!("/v1/sessions/{id}/activities");
    let (_, all) = api.get(&path).await;
    assert_eq!(all, json!({ "activities": said, "next": null }));
    let (_, first) = api.get(&format!("{path}?limit=1")).await;
    assert_eq!(first["activities"], json!([said[0]]));
    let next = first["next"].as_str().unwrap();
    let (_, rest) = api.get(&format!("{path}?cursor={next}")).await;
    assert_eq!(rest, json!({ "activities": [said[1]], "next": null }));
    let (_, session) = api.get(&format!("/v1/sessions/{id}")).await;
    assert_eq!(session["status"], "active");
}

#[tokio::test]
async fn an_activity_that_breaks_a_rule_is_refused_by_its_field() {
    let api = Api::start().await;
    let id = api.begun().await;
    let content = |kind: &str| json!({ "type": kind, "body": "hm" });
    let options = |count: usize| -> Value {
        let options = (0..count).map(|number| json!({ "value": format!("v{number}") }));
        json!({ "options": options.collect::<Vec<_>>() })
    };
    let select = |metadata: Value| json!({ "content": content("elicitation"), "signal": "select", "signal_metadata": metadata });
    let auth = |url: &str| {
        let metadata = json!({ "url": url, "user_id": "@m:x.org", "provider_name": "GitHub" });
        json!({ "content": content("elicitation"), "signal": "auth", "signal_metadata": metadata })
    };
    let twice = json!({ "options": [{ "value": "a" }, { "value": "a" }] });
    for (body, field) in [
        (json!({ "content": content("prompt") }), "content.type"),
        (json!({ "content": content("thinking") }), "content.type"),
        (
            json!({ "content": { "type": "thought", "body": " " } }),
            "content.body",
        ),
        (
            json!({ "content": content("thought"), "signal": "stop" }),
            "signal",
        ),
        (
            json!({ "content": content("response"), "signal": "select", "signal_metadata": options(1) }),
            "signal",
        ),
        (
            json!({ "content": content("response"), "ephemeral": true }),
            "ephemeral",
        ),
        (select(options(0)), "signal_metadata.options"),
        (select(options(11)), "signal_metadata.options"),
        (select(twice), "signal_metadata.options[1].value"),
        (auth("http://scout.x.org/"), "signal_metadata.url"),
        (json!({ "content": content("thought"), "kind": 1 }), "kind"),
        (json!({}), "content"),
        (json!([]), "activity"),
    ] {
        let (status, answered) = api.act(&id, &body).await;
        assert_eq!(
            (status, &answered["error"]["code"]),
            (400, &json!("INVALID_REQUEST"))
        );
        assert_eq!(answered["error"]["field"], field, "{answered}");
    }
    let nobody = json!({
        "content": content("elicitation"),
        "signal": "auth",
        "signal_metadata": { "url": "https://x.org/", "user_id": "@nobody:x.org", "provider_name": "X" },
    });
    let (status, answered) = api.act(&id, &nobody).await;
    assert_eq!(
        (status, &answered["error"]["field"]),
        (400, &json!("signal_metadata.user_id"))
    );
    let path = format!("/v1/sessions/{id}/activities");
    let twice =
        r#"{"content":{"type":"thought","body":"a"},"content":{"type":"error","body":"b"}}"#;
    for (body, field) in [("", "body"), ("{", "body"), (twice, "content")] {
        let request = api.request(Method::POST, &path).body(body);
        let (status, answered) = answer(request.send().await.unwrap()).await;
        assert_eq!(
            (status, &answered["error"]["field"]),
            (400, &json!(field)),
            "{body}"
        );
    }
    let (_, all) = api.get(&path).await;
    assert_eq!(all, json!({ "activities": [], "next": null }));
}

#[tokio::test]
async fn another_agents_session_is_none() {
    let api = Api::start().await;
    let id = api.begun().await;
    let path = format!("/v1/sessions/{id}");
    let activities = format!("{path}/activities");
    for (method, path, body) in [
        (Method::GET, &path, None),
        (Method::DELETE, &path, None),
        (Method::GET, &activities, None),
        (Method::POST, &activities, Some(thought())),
    ] {
        let theirs = api.by_tester(method.clone(), path, body.as_ref()).await;
        assert_eq!(code(&theirs), (404, "SESSION_NOT_FOUND"), "{method} {path}");
        let unknown = path.replace(&id, "sess_none");
        let none = api.by_tester(method, &unknown, body.as_ref()).await;
        let same = theirs.1.to_string().replace(&id, "sess_none");
        assert_eq!(none.1.to_string(), same, "nobody learns that it is there");
    }
    let (_, session) = api.get(&path).await;
    assert_eq!(session["status"], "active");
    let none = api.get("/v1/sessions/sess_none").await;
    assert_eq!(none, not_found("sess_none"));
}

#[tokio::test]
async fn without_a_token_there_is_nothing() {
    let api = Api::start().await;
    for path in [
        "/v1/sessions",
        "/v1/sessions/x",
        "/v1/sessions/x/activities",
    ] {
        let request = api.client.get(format!("{}{path}", api.base));
        let answered = answer(request.send().await.unwrap()).await;
        assert_eq!(answered.0, 401, "{path}");
    }
    let request = api.request(Method::PUT, "/v1/sessions/x");
    assert_eq!(request.send().await.unwrap().status(), 405);
}

/// "After that, writes are answered 409 SESSION_ENDED."
#[tokio::test]
async fn what_is_deleted_ends_at_once_and_takes_no_more() {
    let api = Api::start().await;
    let id = api.begun().await;
    let path = format!("/v1/sessions/{id}");
    let (status, ended) = api.delete(&path).await;
    assert_eq!(status, 200);
    assert_eq!(ended["status"], "complete");
    assert_eq!(ended["end_reason"], "deleted");
    assert!(ended["ended_at"].is_string());
    assert_eq!(api.get(&path).await, (200, ended));
    assert_eq!(code(&api.delete(&path).await), (409, "SESSION_ENDED"));
    assert_eq!(
        code(&api.act(&id, &thought()).await),
        (409, "SESSION_ENDED")
    );
    let (_, said) = api.get(&format!("{path}/activities")).await;
    assert_eq!(said["activities"], json!([]));
}

#[tokio::test]
async fn a_question_while_it_is_to_stop_is_refused_and_the_last_word_ends_it() {
    let api = Api::start().await;
    let (id, root) = api.begun_by_mira().await;
    api.says("$m2", "!stop", Some(&root)).await;
    let (_, session) = api.get(&format!("/v1/sessions/{id}")).await;
    assert_eq!(
        (&session["status"], &session["end_reason"]),
        (&json!("stopping"), &json!(null))
    );
    let asks = json!({ "content": { "type": "elicitation", "body": "Really?" } });
    assert_eq!(code(&api.act(&id, &asks).await), (409, "SESSION_STOPPING"));
    assert_eq!(api.act(&id, &thought()).await.0, 201);
    // As in the seed.
    let last = json!({ "content": { "type": "response", "body": "Stopped. I had read the issue; nothing was changed." } });
    assert_eq!(api.act(&id, &last).await.0, 201);
    let (_, session) = api.get(&format!("/v1/sessions/{id}")).await;
    assert_eq!(session["status"], "complete");
    assert_eq!(session["end_reason"], "stopped");
    assert_eq!(code(&api.act(&id, &last).await), (409, "SESSION_ENDED"));
}

/// "`/v1/events` carries the same"
#[tokio::test]
async fn the_stream_carries_the_body_and_nothing_around_it() {
    let api = Api::start().await;
    let mut listener = Listener::open(&api, "", None).await;
    let (id, root) = api.begun_by_mira().await;
    api.says("$m2", "and hurry", Some(&root)).await;
    api.says("$m3", "!stop", Some(&root)).await;
    let (_, said) = api.get(&format!("/v1/sessions/{id}/activities")).await;
    for (index, (action, status, signal)) in [
        ("created", "active", None),
        ("prompted", "active", None),
        ("prompted", "stopping", Some("stop")),
    ]
    .into_iter()
    .enumerate()
    {
        let frame = listener.frame().await.unwrap();
        let fields: Vec<(&str, &str)> = (frame.lines())
            .map(|line| line.split_once(": ").unwrap())
            .collect();
        let [("id", event_id), ("event", event), ("data", data)] = fields[..] else {
            panic!("{frame}")
        };
        assert!(event_id.starts_with("evt_"));
        assert_eq!(event, format!("agent_session.{action}"));
        let data: Value = serde_json::from_str(data).unwrap();
        let names: Vec<&String> = data.as_object().unwrap().keys().collect();
        assert_eq!(names, ["action", "agent_activity", "agent_session"]);
        assert_eq!(data["action"], action);
        let session = &data["agent_session"];
        assert_eq!(
            (&session["id"], &session["status"]),
            (&json!(id), &json!(status))
        );
        let activity = &data["agent_activity"];
        assert_eq!(*activity, said["activities"][index], "{data}");
        assert_eq!(
            activity.get("signal"),
            signal.map(|signal| json!(signal)).as_ref()
        );
        let user = json!({ "user_id": "@mira:x.org", "display_name": "Mira" });
        assert_eq!(activity["user"], user);
    }
}
