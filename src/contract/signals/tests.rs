use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The examples of the signals document, to the letter.
const STOPPED: &str = r#"{ "content": { "type": "response", "body": "Stopped. I had read the issue; nothing was changed." } }"#;
const AUTH: &str = r#"{
  "content": { "type": "elicitation", "body": "I need access to your GitHub account to open the pull request." },
  "signal": "auth",
  "signal_metadata": {
    "url": "https://scout.acme.example/connect/github?session=sess_01J9Z3K8T5N2",
    "user_id": "68d91d3629c051fe043158f9",
    "provider_name": "GitHub"
  }
}"#;
const SELECT: &str = r#"{
  "content": { "type": "elicitation", "body": "Which environment should I deploy to?" },
  "signal": "select",
  "signal_metadata": {
    "options": [
      { "value": "staging", "label": "Staging" },
      { "value": "production", "label": "Production" }
    ]
  }
}"#;

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn choice(value: &str, label: Option<&str>) -> Choice {
    Choice {
        value: value.to_owned(),
        label: label.map(str::to_owned),
    }
}

/// The activity with one place changed; `null` takes away.
fn with(activity: &str, place: &str, value: Value) -> Value {
    let mut activity = json_of(activity);
    let (parent, name) = place.rsplit_once('/').unwrap();
    match activity.pointer_mut(parent).unwrap() {
        Value::Object(members) => members.insert(name.to_owned(), value),
        Value::Array(items) => {
            items[name.parse::<usize>().unwrap()] = value;
            None
        }
        other => panic!("{other} has no members"),
    };
    activity
}

/// What is told about something that is refused.
fn told(activity: &Value) -> String {
    match Activity::read(activity) {
        Err(fault) => fault.to_string(),
        Ok(read) => panic!("{read:?}"),
    }
}

#[test]
fn the_documents_final_response_is_read() {
    let expected = Activity {
        kind: ActivityType::Response,
        body: "Stopped. I had read the issue; nothing was changed.".to_owned(),
        asks: Asks::Nothing,
        ephemeral: false,
        signal_metadata: None,
    };
    assert_eq!(Activity::read(&json_of(STOPPED)), Ok(expected));
}

#[test]
fn the_documents_auth_is_read_and_kept_as_it_came() {
    let read = Activity::read(&json_of(AUTH)).unwrap();
    assert_eq!(read.kind, ActivityType::Elicitation);
    assert_eq!(
        read.body,
        "I need access to your GitHub account to open the pull request."
    );
    let Asks::Auth(connect) = &read.asks else {
        panic!("{read:?}");
    };
    assert_eq!(
        connect.url.as_str(),
        "https://scout.acme.example/connect/github?session=sess_01J9Z3K8T5N2"
    );
    assert_eq!(connect.user_id, "68d91d3629c051fe043158f9");
    assert_eq!(connect.provider_name, "GitHub");
    assert_eq!(read.signal(), Some(Signal::Auth));
    assert_eq!(
        read.signal_metadata,
        Some(json_of(AUTH)["signal_metadata"].clone())
    );
}

#[test]
fn the_documents_select_is_read_and_kept_as_it_came() {
    let read = Activity::read(&json_of(SELECT)).unwrap();
    let expected = Activity {
        kind: ActivityType::Elicitation,
        body: "Which environment should I deploy to?".to_owned(),
        asks: Asks::Select(vec![
            choice("staging", Some("Staging")),
            choice("production", Some("Production")),
        ]),
        ephemeral: false,
        signal_metadata: Some(json_of(SELECT)["signal_metadata"].clone()),
    };
    assert_eq!(read, expected);
    assert_eq!(read.signal(), Some(Signal::Select));
}

#[test]
fn every_type_and_signal_has_one_word() {
    for (kind, word) in [
        (ActivityType::Thought, "thought"),
        (ActivityType::Action, "action"),
        (ActivityType::Elicitation, "elicitation"),
        (ActivityType::Response, "response"),
        (ActivityType::Error, "error"),
        (ActivityType::Prompt, "prompt"),
    ] {
        assert_eq!(kind.word(), word);
        assert_eq!(ActivityType::from_word(word), Some(kind));
        assert_eq!(json!(kind), json!(word));
        assert_eq!(
            serde_json::from_value::<ActivityType>(json!(word)).unwrap(),
            kind
        );
    }
    for (signal, word) in [
        (Signal::Stop, "stop"),
        (Signal::Auth, "auth"),
        (Signal::Select, "select"),
    ] {
        assert_eq!(signal.word(), word);
        assert_eq!(Signal::from_word(word), Some(signal));
        assert_eq!(json!(signal), json!(word));
        assert_eq!(
            serde_json::from_value::<Signal>(json!(word)).unwrap(),
            signal
        );
    }
    assert_eq!(ActivityType::from_word("Thought"), None);
    assert_eq!(Signal::from_word("STOP"), None);
}

#[test]
fn an_agent_writes_five_types_and_no_prompt() {
    for word in ["thought", "action", "elicitation", "response", "error"] {
        let read = Activity::read(&with(STOPPED, "/content/type", json!(word))).unwrap();
        assert_eq!(read.kind.word(), word);
    }
    assert_eq!(
        told(&with(STOPPED, "/content/type", json!("prompt"))),
        "content.type must not be `prompt`: only people write prompts"
    );
    for other in ["Thought", "thoughts", ""] {
        assert_eq!(
            told(&with(STOPPED, "/content/type", json!(other))),
            "content.type must be `thought`, `action`, `elicitation`, `response` or `error`"
        );
    }
}

#[test]
fn a_stop_never_comes_from_an_agent() {
    for kind in ["elicitation", "response", "thought"] {
        let mut activity = with(STOPPED, "/content/type", json!(kind));
        activity["signal"] = json!("stop");
        assert_eq!(
            told(&activity),
            "signal must not be `stop`: only people stop a session"
        );
    }
}

#[test]
fn auth_and_select_belong_to_an_elicitation_only() {
    for kind in ["thought", "action", "response", "error"] {
        for example in [AUTH, SELECT] {
            assert_eq!(
                told(&with(example, "/content/type", json!(kind))),
                "signal belongs to an `elicitation` only"
            );
        }
    }
    for other in ["Select", "choose", ""] {
        assert_eq!(
            told(&with(SELECT, "/signal", json!(other))),
            "signal must be `auth` or `select`"
        );
    }
    assert_eq!(
        told(&with(SELECT, "/signal", json!(1))),
        "signal must be a string"
    );
}

#[test]
fn the_body_is_words_and_not_too_many() {
    for blank in ["", " \n", "\u{200B}\u{2060}", "\u{3164}"] {
        assert_eq!(
            told(&with(STOPPED, "/content/body", json!(blank))),
            "content.body must not be blank"
        );
    }
    assert_eq!(
        told(&with(STOPPED, "/content/body", json!(["a"]))),
        "content.body must be a string"
    );
    assert_eq!(
        told(&with(STOPPED, "/content/body", Value::Null)),
        "content.body is required, a string"
    );
    assert_eq!(
        told(&with(STOPPED, "/content/type", Value::Null)),
        "content.type is required, a string"
    );
    let longest = "x".repeat(65_536);
    let read = Activity::read(&with(STOPPED, "/content/body", json!(longest))).unwrap();
    assert_eq!(read.body, longest);
    assert_eq!(
        told(&with(STOPPED, "/content/body", json!(longest + "x"))),
        "content.body must be at most 65536 bytes"
    );
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    assert_eq!(
        told(&with(SELECT, "/sgnal", json!("select"))),
        "sgnal is no field here; there are `content`, `signal`, `signal_metadata`, `ephemeral`"
    );
    assert_eq!(
        told(&with(SELECT, "/content/text", json!("x"))),
        "content.text is no field here; there are `type`, `body`"
    );
    let long = format!("/{}", "x".repeat(65));
    let shown = format!("{}… is no field here", "x".repeat(64));
    assert!(told(&with(SELECT, &long, json!(1))).starts_with(&shown));
    for other in [json!([]), json!("x"), json!(null)] {
        assert_eq!(
            told(&other),
            r#"activity must be a JSON object like {"content": {"type": "thought", "body": "…"}}"#
        );
    }
    assert_eq!(told(&json!({})), "content is required, an object");
    assert_eq!(
        told(&json!({ "content": "x" })),
        "content must be an object"
    );
}

#[test]
fn unknown_details_of_a_signal_are_kept_and_ignored() {
    let mut activity = json_of(SELECT);
    activity["signal_metadata"]["style"] = json!({ "columns": 2 });
    activity["signal_metadata"]["options"][0]["colour"] = json!("red");
    let read = Activity::read(&activity).unwrap();
    let plain = Activity::read(&json_of(SELECT)).unwrap();
    assert_eq!(read.asks, plain.asks);
    assert_eq!(
        read.signal_metadata.as_ref(),
        activity.get("signal_metadata")
    );
}

#[test]
fn details_and_signal_come_together() {
    assert_eq!(
        told(&with(SELECT, "/signal", Value::Null)),
        "signal_metadata belongs to a signal, and there is none"
    );
    for example in [AUTH, SELECT] {
        assert_eq!(
            told(&with(example, "/signal_metadata", Value::Null)),
            "signal_metadata is required, an object"
        );
        assert_eq!(
            told(&with(example, "/signal_metadata", json!([]))),
            "signal_metadata must be an object"
        );
    }
    let mut nothing = with(STOPPED, "/signal", Value::Null);
    nothing["signal_metadata"] = Value::Null;
    nothing["ephemeral"] = Value::Null;
    assert_eq!(
        Activity::read(&nothing),
        Activity::read(&json_of(STOPPED)),
        "null is as good as absent"
    );
}

#[test]
fn a_select_has_one_to_ten_options() {
    let several = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|n| json!({ "value": format!("v{n}") }))
            .collect()
    };
    let place = "/signal_metadata/options";
    for count in [1, 10] {
        let read = Activity::read(&with(SELECT, place, json!(several(count)))).unwrap();
        let expected = (0..count).map(|n| choice(&format!("v{n}"), None)).collect();
        assert_eq!(read.asks, Asks::Select(expected));
    }
    for none in [
        json!([]),
        json!(several(11)),
        json!({}),
        json!("a"),
        json!(null),
    ] {
        assert_eq!(
            told(&with(SELECT, place, none)),
            "signal_metadata.options must be a list of 1 to 10 options"
        );
    }
}

#[test]
fn a_value_is_unique_and_can_be_seen() {
    let place = "/signal_metadata/options/1/value";
    for (value, rule) in [
        (json!("staging"), "must not repeat options[0].value"),
        (json!("  "), "must not be blank"),
        (json!("\u{200B}"), "must not be blank"),
        (json!("x".repeat(257)), "must be at most 256 bytes"),
        (json!(2), "must be a string"),
        (json!(null), "is required, a string"),
    ] {
        assert_eq!(
            told(&with(SELECT, place, value)),
            format!("signal_metadata.options[1].value {rule}")
        );
    }
    for value in ["Staging".to_owned(), "x".repeat(256)] {
        let read = Activity::read(&with(SELECT, place, json!(value))).unwrap();
        let expected = vec![
            choice("staging", Some("Staging")),
            choice(&value, Some("Production")),
        ];
        assert_eq!(read.asks, Asks::Select(expected));
    }
    assert_eq!(
        told(&with(
            SELECT,
            "/signal_metadata/options/1",
            json!("production")
        )),
        r#"signal_metadata.options[1] must be an object like {"value": "…", "label": "…"}"#
    );
}

#[test]
fn without_a_label_the_value_is_shown() {
    let place = "/signal_metadata/options/0/label";
    for blank in [json!(null), json!(""), json!(" \u{2060}")] {
        let read = Activity::read(&with(SELECT, place, blank)).unwrap();
        let Asks::Select(choices) = read.asks else {
            panic!("no options");
        };
        assert_eq!(choices[0], choice("staging", None));
        assert_eq!(choices[0].shown(), "staging");
        assert_eq!(choices[1].shown(), "Production");
    }
    for (label, rule) in [
        (json!("x".repeat(513)), "must be at most 512 bytes"),
        (json!(false), "must be a string"),
    ] {
        assert_eq!(
            told(&with(SELECT, place, label)),
            format!("signal_metadata.options[0].label {rule}")
        );
    }
}

#[test]
fn an_account_is_connected_over_https_at_a_host_that_is_what_it_seems() {
    const ADDRESS: &str = "must be an address like https://example.org/connect";
    const USER: &str = "must not name a user or a password";
    const SIGNS: &str = "must not hold white space, control characters or backslashes";
    for (url, rule) in [
        ("http://a.example/", ADDRESS),
        ("javascript:alert(1)", ADDRESS),
        ("matrix:u/a:b.example", ADDRESS),
        ("https:a.example", ADDRESS),
        ("https:///a.example", ADDRESS),
        ("https://", ADDRESS),
        ("a.example", ADDRESS),
        ("", ADDRESS),
        ("https://bank.example@a.example/", USER),
        ("https://:word@a.example/", USER),
        ("https://bank.example\\@a.example/", SIGNS),
        (" https://a.example/", SIGNS),
        ("https://a.exa\nmple/", SIGNS),
        ("https://a.example/\u{0}", SIGNS),
        ("https://a.example/\u{2028}", SIGNS),
    ] {
        assert_eq!(
            told(&with(AUTH, "/signal_metadata/url", json!(url))),
            format!("signal_metadata.url {rule}"),
            "{url:?}"
        );
    }
    let long = format!("https://a.example/{}", "x".repeat(2030));
    assert_eq!(
        told(&with(
            AUTH,
            "/signal_metadata/url",
            json!(format!("{long}x"))
        )),
        "signal_metadata.url must be at most 2048 bytes"
    );
    for url in [
        long.as_str(),
        "HTTPS://A.example:8443/x?y=z#w",
        "https://[::1]/",
    ] {
        let read = Activity::read(&with(AUTH, "/signal_metadata/url", json!(url))).unwrap();
        let Asks::Auth(connect) = read.asks else {
            panic!("no auth");
        };
        assert_eq!(connect.url, Url::parse(url).unwrap());
    }
}

#[test]
fn whose_account_and_where_can_be_read() {
    for (name, value, rule) in [
        ("user_id", json!(" "), "must not be blank"),
        (
            "user_id",
            json!("x".repeat(257)),
            "must be at most 256 bytes",
        ),
        ("user_id", json!(null), "is required, a string"),
        ("provider_name", json!("\u{2060}"), "must not be blank"),
        ("provider_name", json!(7), "must be a string"),
        (
            "provider_name",
            json!("é".repeat(101)),
            "must be at most 100 characters",
        ),
        (
            "provider_name",
            json!("Git\nHub"),
            "must be one line, without control characters",
        ),
        (
            "provider_name",
            json!("Git\u{2029}Hub"),
            "must be one line, without control characters",
        ),
        ("url", json!(null), "is required, a string"),
    ] {
        assert_eq!(
            told(&with(AUTH, &format!("/signal_metadata/{name}"), value)),
            format!("signal_metadata.{name} {rule}")
        );
    }
    let longest = json!("é".repeat(100));
    assert!(Activity::read(&with(AUTH, "/signal_metadata/provider_name", longest)).is_ok());
}

#[test]
fn only_a_thought_or_an_action_is_ephemeral() {
    for (kind, may) in [
        ("thought", true),
        ("action", true),
        ("elicitation", false),
        ("response", false),
        ("error", false),
    ] {
        let mut activity = with(STOPPED, "/content/type", json!(kind));
        activity["ephemeral"] = json!(false);
        assert!(!Activity::read(&activity).unwrap().ephemeral);
        activity["ephemeral"] = json!(true);
        if may {
            assert!(Activity::read(&activity).unwrap().ephemeral);
        } else {
            assert_eq!(
                told(&activity),
                "ephemeral belongs to a `thought` or an `action` only"
            );
        }
    }
    assert_eq!(
        told(&with(STOPPED, "/ephemeral", json!("yes"))),
        "ephemeral must be true or false"
    );
}

#[test]
fn what_reads_as_blank_in_a_reply_is_blank_here() {
    for c in ('\0'..'\u{20000}').chain('\u{E0000}'..'\u{E1000}') {
        let text = c.to_string();
        if crate::reply::is_blank(&text) {
            assert!(is_blank(&text), "U+{:X}", u32::from(c));
        }
    }
    for seen in [".", "é", "👍", "ا", "1"] {
        assert!(!is_blank(seen), "{seen}");
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![
            "thought",
            "elicitation",
            "select",
            "auth",
            "stop",
            "prompt",
            "https://a.example/",
            "",
            "\u{200B}",
            "x",
        ])
        .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 12, |inner| {
        let name = prop::sample::select(vec![
            "content",
            "type",
            "body",
            "signal",
            "signal_metadata",
            "ephemeral",
            "options",
            "value",
            "label",
            "url",
            "user_id",
            "provider_name",
            "other",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..6).prop_map(|members| {
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect::<Map<_, _>>()
                    .into()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn what_is_read_keeps_every_rule(
        noise in json(),
        place in prop::sample::select(vec![
            "/content", "/content/body", "/content/type", "/signal", "/ephemeral",
            "/signal_metadata", "/signal_metadata/options", "/signal_metadata/options/0",
            "/signal_metadata/options/0/label", "/signal_metadata/options/1/value",
        ]),
    ) {
        for activity in [noise.clone(), with(SELECT, place, noise)] {
            let Ok(read) = Activity::read(&activity) else { continue };
            prop_assert!(read.kind != ActivityType::Prompt && !is_blank(&read.body));
            if let Asks::Select(choices) = &read.asks {
                prop_assert!((1..=10).contains(&choices.len()));
                let mut values: Vec<&str> = choices.iter().map(|one| one.value.as_str()).collect();
                values.sort_unstable();
                values.dedup();
                prop_assert_eq!(values.len(), choices.len());
                prop_assert!(choices.iter().all(|one| !is_blank(one.shown())));
            }
            prop_assert_eq!(read.signal().is_some(), read.signal_metadata.is_some());
            prop_assert!(read.signal().is_none() || read.kind == ActivityType::Elicitation);
        }
    }
}
