use proptest::prelude::*;
use serde_json::json;

use super::*;

mod verdict;

fn push() -> Value {
    json!({
        "event": "elicitation.pending",
        "boardId": "brd_7c1f", "boardName": "Build images",
        "cardId": "crd_51d0", "cardTitle": "Upgrade the build image",
        "elicitationId": "elc_7f3c", "runId": "run_12", "stageKey": "build",
        "agentId": "agt_31d0", "question": "May I run the tests?",
        "options": [
            { "id": "run_them", "label": "Run the tests" },
            { "id": "skip", "label": "Skip them" }
        ],
        "ts": 1_790_000_000_000_i64
    })
}

fn pending() -> Pending {
    Pending {
        board_id: "brd_7c1f".to_owned(),
        board_name: Some("Build images".to_owned()),
        card_id: "crd_51d0".to_owned(),
        card_title: "Upgrade the build image".to_owned(),
        elicitation_id: "elc_7f3c".to_owned(),
        run_id: "run_12".to_owned(),
        stage_key: "build".to_owned(),
        agent_id: "agt_31d0".to_owned(),
        question: "May I run the tests?".to_owned(),
        options: vec![
            CardOption::new("run_them", "Run the tests"),
            CardOption::new("skip", "Skip them"),
        ],
        asked_at: Some(1_790_000_000_000),
    }
}

fn with(name: &str, value: Value) -> Value {
    let mut push = push();
    push[name] = value;
    push
}

fn without(name: &str) -> Value {
    let mut push = push();
    push.as_object_mut().unwrap().remove(name);
    push
}

fn fault(value: &Value) -> String {
    Pending::read(value).expect_err("is refused").to_string()
}

#[test]
fn a_push_is_read_whole() {
    assert_eq!(Pending::read(&push()), Ok(pending()));
}

#[test]
fn an_entry_of_the_pending_list_needs_no_event_and_may_have_more() {
    assert_eq!(Pending::read(&without("event")), Ok(pending()));
    let mut more = with("assignees", json!(["usr_mira"]));
    more["options"][0]["colour"] = json!("red");
    assert_eq!(Pending::read(&more), Ok(pending()));
}

#[test]
fn a_name_of_the_board_that_says_nothing_is_none() {
    let unnamed = Pending {
        board_name: None,
        ..pending()
    };
    for push in [
        without("boardName"),
        with("boardName", Value::Null),
        with("boardName", json!("")),
        with("boardName", json!(" \n")),
    ] {
        assert_eq!(Pending::read(&push), Ok(unnamed.clone()));
    }
}

#[test]
fn what_only_gives_context_may_be_absent_null_or_blank() {
    let bare = Pending {
        card_id: String::new(),
        card_title: String::new(),
        run_id: String::new(),
        stage_key: String::new(),
        asked_at: None,
        ..pending()
    };
    for empty in [None, Some(Value::Null), Some(json!(""))] {
        let mut push = push();
        for key in ["cardId", "cardTitle", "runId", "stageKey", "ts"] {
            let push = push.as_object_mut().unwrap();
            push.remove(key);
            if let Some(empty) = &empty {
                push.insert(key.to_owned(), empty.clone());
            }
        }
        assert_eq!(Pending::read(&push), Ok(bare.clone()), "{empty:?}");
    }
}

#[test]
fn a_question_may_be_empty_or_long_and_have_no_options_or_many() {
    let long = "why? ".repeat(100_000);
    let many: Vec<CardOption> = (0..200)
        .map(|at| CardOption::new(format!("o{at}"), "the same"))
        .collect();
    let read = Pending::read(&with("question", json!(""))).unwrap();
    assert_eq!(read.question, "");
    let read = Pending::read(&with("question", json!(long))).unwrap();
    assert_eq!(read.question, long);
    let read = Pending::read(&with("options", json!([]))).unwrap();
    assert_eq!(read.options, []);
    let read = Pending::read(&with("options", json!(many))).unwrap();
    assert_eq!(read.options, many);
}

#[test]
fn a_label_may_be_missing_blank_long_and_repeat() {
    let long = "x".repeat(10_000);
    let options = json!([
        { "id": "a" },
        { "id": "A", "label": null },
        { "id": "b", "label": " " },
        { "id": " b", "label": long },
        { "id": "c", "label": long },
    ]);
    assert_eq!(
        Pending::read(&with("options", options)).unwrap().options,
        [
            CardOption::new("a", ""),
            CardOption::new("A", ""),
            CardOption::new("b", " "),
            CardOption::new(" b", long.clone()),
            CardOption::new("c", long),
        ]
    );
}

#[test]
fn what_must_be_there_is_missed_by_name() {
    for key in ["boardId", "elicitationId", "agentId", "question", "options"] {
        assert_eq!(fault(&without(key)), format!("$.{key} is missing"));
    }
    // The board's own names for the two are not what goes over the wire.
    let inside = json!([{ "name": "run_them", "title": "Run the tests" }]);
    assert_eq!(
        fault(&with("options", inside)),
        "$.options[0].id is missing"
    );
    let half = json!([{ "id": "run_them", "title": "Run the tests" }]);
    let read = Pending::read(&with("options", half)).unwrap();
    assert_eq!(read.options, [CardOption::new("run_them", "")]);
}

#[test]
fn another_type_is_told_with_the_one_that_is_meant() {
    for key in [
        "boardId",
        "boardName",
        "cardId",
        "cardTitle",
        "elicitationId",
        "runId",
        "stageKey",
        "agentId",
        "question",
    ] {
        assert_eq!(
            fault(&with(key, json!(7))),
            format!("$.{key} is not a string")
        );
    }
    for key in ["boardId", "elicitationId", "agentId", "question"] {
        let told = format!("$.{key} is not a string");
        assert_eq!(fault(&with(key, Value::Null)), told);
    }
    for (options, told) in [
        (Value::Null, "$.options is not an array"),
        (json!({}), "$.options is not an array"),
        (json!(["run_them"]), "$.options[0] is not an object"),
        (
            json!([{ "id": "a" }, { "id": 2 }]),
            "$.options[1].id is not a string",
        ),
        (
            json!([{ "id": "a", "label": 2 }]),
            "$.options[0].label is not a string",
        ),
    ] {
        assert_eq!(fault(&with("options", options)), told);
    }
    for value in [Value::Null, json!([]), json!("elc_7f3c")] {
        assert_eq!(fault(&value), "$ is not an object");
    }
}

#[test]
fn what_names_something_is_not_blank() {
    for key in ["boardId", "elicitationId", "agentId"] {
        for blank in ["", " ", "\u{a0}\n"] {
            let told = format!("$.{key} is blank");
            assert_eq!(fault(&with(key, json!(blank))), told, "{blank:?}");
        }
    }
    let options = json!([{ "id": "a" }, { "id": " " }]);
    assert_eq!(fault(&with("options", options)), "$.options[1].id is blank");
}

#[test]
fn ids_are_bounded_and_printable() {
    let fits = "ü".repeat(128);
    let long = format!("{fits}x");
    for key in [
        "boardId",
        "cardId",
        "elicitationId",
        "runId",
        "stageKey",
        "agentId",
    ] {
        assert!(Pending::read(&with(key, json!(fits))).is_ok(), "{key}");
        let told = format!("$.{key} has more than 256 bytes");
        assert_eq!(fault(&with(key, json!(long))), told);
        let told = format!("$.{key} has a control character in it");
        for control in ["a\u{0}", "a\nb", "\u{7f}b", "a\u{85}"] {
            assert_eq!(fault(&with(key, json!(control))), told, "{control:?}");
        }
    }
    let options = |id: &str| with("options", json!([{ "id": id }]));
    assert!(Pending::read(&options(&fits)).is_ok());
    assert_eq!(
        fault(&options(&long)),
        "$.options[0].id has more than 256 bytes"
    );
    assert_eq!(
        fault(&options("a\tb")),
        "$.options[0].id has a control character in it"
    );
}

#[test]
fn an_id_that_is_a_way_in_an_address_is_refused() {
    for way in [".", ".."] {
        assert_eq!(
            fault(&with("elicitationId", json!(way))),
            "$.elicitationId cannot be part of an address"
        );
    }
    for fine in ["...", "a/b", "?", "%2e"] {
        let read = Pending::read(&with("elicitationId", json!(fine))).unwrap();
        assert_eq!(read.elicitation_id, fine);
    }
}

#[test]
fn an_option_id_is_there_once() {
    let options = json!([{ "id": "a" }, { "id": "b" }, { "id": "a" }]);
    assert_eq!(
        fault(&with("options", options)),
        "$.options[2].id repeats $.options[0].id"
    );
}

#[test]
fn a_time_is_milliseconds_seconds_or_rfc_3339() {
    let at = |ts: Value| Pending::read(&with("ts", ts)).unwrap().asked_at;
    for (ts, asked) in [
        (json!(1_790_000_000_123_i64), 1_790_000_000_123),
        (json!(1_790_000_000), 1_790_000_000_000),
        (json!(1_790_000_000.5), 1_790_000_000_500),
        (json!(1_790_000_000_123.0), 1_790_000_000_123),
        (json!(99_999_999_999_i64), 99_999_999_999_000),
        (json!(100_000_000_000_i64), 100_000_000_000),
        (json!("2026-09-21T13:33:20Z"), 1_789_997_600_000),
        (json!("2026-09-21T15:33:20.25+02:00"), 1_789_997_600_250),
    ] {
        assert_eq!(at(ts.clone()), Some(asked), "{ts}");
    }
    for ts in [
        json!("yesterday"),
        json!("2026-09-21"),
        json!(0),
        json!(-5),
        json!(-0.5),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e300),
        json!(253_402_300_800_000_i64),
        json!("1969-12-31T23:59:59Z"),
        json!(true),
        json!([1]),
        json!({}),
    ] {
        assert_eq!(at(ts.clone()), None, "{ts}");
    }
}

#[test]
fn the_id_of_an_entry_is_found_whatever_else_is_wrong_with_it() {
    assert_eq!(id_of(&push()), Some("elc_7f3c"));
    assert_eq!(
        id_of(&json!({ "elicitationId": "a", "options": 5 })),
        Some("a")
    );
    for none in [
        json!({ "elicitationId": 5 }),
        json!({ "elicitationId": "" }),
        json!({ "elicitationId": " \n" }),
        json!({}),
        json!(["a"]),
        Value::Null,
    ] {
        assert_eq!(id_of(&none), None, "{none}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![Just("id".to_owned()), Just("code".to_owned()), ".{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn whatever_a_property_holds_is_read_or_told_by_its_path(
        key in prop::sample::select(vec![
            "boardId", "boardName", "cardId", "cardTitle", "elicitationId", "runId", "stageKey",
            "agentId", "question", "options", "ts",
        ]),
        value in any_json(),
    ) {
        match Pending::read(&with(key, value)) {
            Ok(read) => prop_assert!(
                !is_blank(&read.elicitation_id) && read.asked_at.is_none_or(|at| at > 0)
            ),
            Err(fault) => {
                let told = fault.to_string();
                prop_assert!(told.starts_with(&format!("$.{key}")), "{told}");
            }
        }
    }
}
