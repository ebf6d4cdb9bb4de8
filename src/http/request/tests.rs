use serde_json::json;

use super::*;

fn refusal(body: &str) -> (String, String) {
    match read_ask(body.as_bytes(), None).unwrap_err() {
        ApiError::Invalid { field, rule } => (field, rule),
        other => panic!("{other:?}"),
    }
}

fn with(member: &str, value: &Value) -> String {
    let mut body = json!({ "room": "!r:example.org", "prompt": "Ship it?" });
    body[member] = value.clone();
    body.to_string()
}

#[track_caller]
fn refused(member: &str, value: &Value, field: &str, rule: &str) {
    assert_eq!(
        refusal(&with(member, value)),
        (field.to_owned(), rule.to_owned())
    );
}

fn bare() -> Ask {
    Ask {
        elicitation_id: None,
        idempotency_key: None,
        room: "!r:example.org".to_owned(),
        prompt: "Ship it?".to_owned(),
        options: Vec::new(),
        free_text: None,
        decline: false,
        answerers: Answerers::default(),
        expires_in: None,
        mention: Vec::new(),
        thread: None,
        board_id: None,
        card_id: None,
        run_id: None,
        stage_key: None,
        card_title: None,
        deep_link: None,
        metadata: None,
    }
}

#[test]
fn a_room_and_a_prompt_are_enough() {
    let body = br#" {"room":"!r:example.org","prompt":"Ship it?"} "#;
    assert_eq!(read_ask(body, None).unwrap(), bare());
}

#[test]
fn every_field_arrives() {
    let body = json!({
        "room": "!r:example.org",
        "prompt": "Ship it?",
        "options": [{ "id": "y", "label": "Yes" }, "No"],
        "elicitation_id": "e1",
        "board_id": "b",
        "card_id": "c",
        "run_id": "r",
        "stage_key": "s",
        "card_title": "t",
        "deep_link": "https://example.org/",
        "answerers": { "users": ["@a:example.org"], "min_power": 50 },
        "free_text": true,
        "decline": true,
        "expires_in": 90,
        "mention": ["@b:example.org"],
        "thread": "$root",
        "metadata": { "any": [1, null] },
    });
    let option = |id: &str, label: &str| CardOption {
        id: id.to_owned(),
        label: label.to_owned(),
    };
    let read = read_ask(body.to_string().as_bytes(), Some("key".to_owned())).unwrap();
    assert_eq!(
        read,
        Ask {
            elicitation_id: Some("e1".to_owned()),
            idempotency_key: Some("key".to_owned()),
            options: vec![option("y", "Yes"), option("No", "No")],
            free_text: Some(true),
            decline: true,
            answerers: Answerers {
                users: Some(vec!["@a:example.org".to_owned()]),
                min_power: Some(50)
            },
            expires_in: Some(90_000),
            mention: vec!["@b:example.org".to_owned()],
            thread: Some("$root".to_owned()),
            board_id: Some("b".to_owned()),
            card_id: Some("c".to_owned()),
            run_id: Some("r".to_owned()),
            stage_key: Some("s".to_owned()),
            card_title: Some("t".to_owned()),
            deep_link: Some("https://example.org/".to_owned()),
            metadata: Some(json!({ "any": [1, null] })),
            ..bare()
        }
    );
}

#[test]
fn null_is_as_good_as_absent() {
    for field in FIELDS
        .iter()
        .filter(|field| !["room", "prompt"].contains(field))
    {
        let read = read_ask(with(field, &Value::Null).as_bytes(), None).unwrap();
        assert_eq!(read, bare(), "{field}");
    }
    let answerers = with("answerers", &json!({ "users": null, "min_power": null }));
    assert_eq!(read_ask(answerers.as_bytes(), None).unwrap(), bare());
}

/// Pain: anyone.
#[test]
fn an_empty_list_of_answerers_stays_an_empty_list() {
    let read = read_ask(with("answerers", &json!({ "users": [] })).as_bytes(), None).unwrap();
    assert_eq!(
        read.answerers,
        Answerers {
            users: Some(Vec::new()),
            min_power: None
        }
    );
}

#[test]
fn what_is_required_is_named() {
    let (field, rule) = refusal(r#"{"prompt":"Ship it?"}"#);
    assert_eq!(
        (field.as_str(), rule.as_str()),
        ("room", "is required, a string")
    );
    let (field, rule) = refusal(r#"{"room":"!r:example.org","prompt":null}"#);
    assert_eq!(
        (field.as_str(), rule.as_str()),
        ("prompt", "is required, a string")
    );
}

#[test]
fn an_unknown_field_is_refused_by_name() {
    refused(
        "promt",
        &json!("x"),
        "promt",
        "is no field here; did you mean `prompt`?",
    );
    refused(
        "elicitationId",
        &json!("x"),
        "elicitationId",
        "is no field here; did you mean `elicitation_id`?",
    );
    refused(
        "choices",
        &json!([]),
        "choices",
        "is no field here; did you mean `options`?",
    );
    refused(
        "timeout",
        &json!(3),
        "timeout",
        "is no field here; did you mean `expires_in`?",
    );
    let (field, rule) = refusal(&with("colour", &json!("red")));
    assert_eq!(field, "colour");
    assert!(
        rule.starts_with("is no field here; there are `room`, `prompt`, "),
        "{rule}"
    );
    assert!(rule.ends_with("`thread` and `metadata`"), "{rule}");
    let (field, _) = refusal(&with(&"x".repeat(500), &json!("red")));
    assert_eq!(field, format!("{}…", "x".repeat(64)));
}

/// Pain: spoof.
#[test]
fn the_asker_is_never_a_field() {
    refused(
        "asked_by",
        &json!("agt_2"),
        "asked_by",
        "is the token's agent and never a field",
    );
}

#[test]
fn a_member_given_twice_is_refused() {
    let (field, rule) = refusal(r#"{"room":"!a","prompt":"p","room":"!b"}"#);
    assert_eq!((field.as_str(), rule.as_str()), ("room", "is given twice"));
}

#[test]
fn what_is_no_object_is_refused() {
    for body in ["", "  ", "[]", "3", "\"room\"", "null"] {
        let (field, rule) = refusal(body);
        assert_eq!(field, "body", "{body}");
        assert_eq!(
            rule, r#"must be a JSON object like {"room": "…", "prompt": "…"}"#,
            "{body}"
        );
    }
}

#[test]
fn broken_json_is_located() {
    let (field, rule) = refusal("{\"room\":\n \"!r\",,}");
    assert_eq!(field, "body");
    assert_eq!(
        rule,
        "must be JSON: key must be a string at line 2 column 7"
    );
    let (_, rule) = refusal(r#"{"room":"!r"} x"#);
    assert_eq!(
        rule,
        "must be JSON: trailing characters at line 1 column 15"
    );
    let (_, rule) = refusal(r#"{"room":"#);
    assert_eq!(
        rule,
        "must be JSON: EOF while parsing a value at line 1 column 8"
    );
}

#[test]
fn an_option_is_a_string_or_both_its_members() {
    refused(
        "options",
        &json!("yes"),
        "options",
        "must be an array of options, not a string",
    );
    refused(
        "options",
        &json!(["a", 2]),
        "options[1]",
        r#"must be a string or an object {"id", "label"}, not a number"#,
    );
    refused(
        "options",
        &json!([{ "id": "a" }]),
        "options[0].label",
        "is required, a string",
    );
    refused(
        "options",
        &json!([{ "label": "A" }]),
        "options[0].id",
        "is required, a string",
    );
    refused(
        "options",
        &json!(["a", "b", { "id": "c", "label": true }]),
        "options[2].label",
        "must be a string, not a boolean",
    );
    refused(
        "options",
        &json!([{ "id": "a", "label": "A", "titel": "A" }]),
        "options[0].titel",
        "is no field here; there are `id` and `label`",
    );
    refused(
        "options",
        &json!([{ "name": "a", "label": "A" }]),
        "options[0].name",
        "is no field here; did you mean `id`?",
    );
}

#[test]
fn wrong_types_are_named() {
    refused("room", &json!(7), "room", "must be a string, not a number");
    refused(
        "card_id",
        &json!([]),
        "card_id",
        "must be a string, not an array",
    );
    refused(
        "free_text",
        &json!("yes"),
        "free_text",
        "must be true or false, not a string",
    );
    refused(
        "mention",
        &json!("@a:b"),
        "mention",
        "must be an array of strings, not a string",
    );
    refused(
        "mention",
        &json!(["@a:b", {}]),
        "mention[1]",
        "must be a string, not an object",
    );
    refused(
        "answerers",
        &json!([]),
        "answerers",
        r#"must be an object {"users", "min_power"}, not an array"#,
    );
    refused(
        "answerers",
        &json!({ "users": ["@a:b", null] }),
        "answerers.users[1]",
        "must be a string, not null",
    );
    refused(
        "answerers",
        &json!({ "min_power": 1.5 }),
        "answerers.min_power",
        "must be a whole number, not a fraction",
    );
    refused(
        "answerers",
        &json!({ "user": [] }),
        "answerers.user",
        "is no field here; did you mean `users`?",
    );
}

#[test]
fn a_deadline_is_seconds_or_a_span() {
    let span = |value| {
        read_ask(with("expires_in", &value).as_bytes(), None)
            .unwrap()
            .expires_in
    };
    assert_eq!(span(json!(1)), Some(1_000));
    assert_eq!(span(json!("30m")), Some(1_800_000));
    let rule = r#"must be a whole number of seconds above 0, or a span like "30m""#;
    for wrong in [
        json!(0),
        json!(-5),
        json!(1.5),
        json!(i64::MAX),
        json!("soon"),
        json!("0s"),
    ] {
        refused("expires_in", &wrong, "expires_in", rule);
    }
    refused(
        "expires_in",
        &json!(true),
        "expires_in",
        r#"must be seconds or a span like "30m", not a boolean"#,
    );
}

#[test]
fn an_idempotency_key_is_one_short_visible_word() {
    let read = |values: &[&[u8]]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(
                IDEMPOTENCY_KEY,
                axum::http::HeaderValue::from_bytes(value).unwrap(),
            );
        }
        read_idempotency_key(&headers).map_err(|error| error.to_string())
    };
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[b"run-7"]), Ok(Some("run-7".to_owned())));
    let rule = "Idempotency-Key must be 1 to 256 visible ASCII characters".to_owned();
    assert_eq!(read(&[b""]), Err(rule.clone()));
    assert_eq!(read(&[b"\xff"]), Err(rule.clone()));
    assert_eq!(read(&[&[b'x'; 257]]), Err(rule));
    assert_eq!(
        read(&[b"a", b"b"]),
        Err("Idempotency-Key is given twice".to_owned())
    );
}

#[test]
fn only_a_near_name_is_proposed() {
    let known = ["room", "prompt", "mention", "thread"];
    assert_eq!(nearest("Room", &known), Some("room"));
    assert_eq!(nearest("mentions", &known), Some("mention"));
    assert_eq!(nearest("tread", &known), Some("thread"));
    assert_eq!(nearest("zoo", &known), None);
    assert_eq!(nearest(&"x".repeat(100_000), &known), None);
    assert_eq!(slips("kitten", "sitting"), 3);
}
