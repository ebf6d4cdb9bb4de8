use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use super::super::schema::{Contract, Layer, validate};
use super::*;

fn example() -> Value {
    json!({
        "schema_version": 1, "board_id": "brd_7c1f", "card_id": "crd_51d0",
        "elicitation_id": "elc_7f3c", "run_id": "run_12", "stage_key": "build",
        "card_title": "Upgrade the build image", "asked_by": "agt_31d0",
        "prompt": "The tests need network access. May I run them?",
        "options": [
            { "id": "run_them", "label": "Run the tests" },
            { "id": "skip", "label": "Skip them" }
        ],
        "deep_link": "https://superpipeline.dev/b/brd_7c1f/c/crd_6b40"
    })
}

fn example_builder() -> CardBuilder {
    Card::builder("elc_7f3c")
        .board_id("brd_7c1f")
        .card_id("crd_51d0")
        .run_id("run_12")
        .stage_key("build")
        .card_title("Upgrade the build image")
        .asked_by("agt_31d0")
        .prompt("The tests need network access. May I run them?")
        .options([
            CardOption::new("run_them", "Run the tests"),
            CardOption::new("skip", "Skip them"),
        ])
        .deep_link(Some(
            "https://superpipeline.dev/b/brd_7c1f/c/crd_6b40".to_owned(),
        ))
}

fn with(name: &str, value: Value) -> Value {
    let mut card = example();
    card[name] = value;
    card
}

#[test]
fn the_example_is_built_and_read_alike_and_written_in_the_order_of_the_table() {
    let built = example_builder().build().unwrap();
    assert_eq!(Card::read(&example()), Ok(built.clone()));
    assert_eq!(
        serde_json::to_string(&built).unwrap(),
        r#"{"schema_version":1,"board_id":"brd_7c1f","card_id":"crd_51d0","elicitation_id":"elc_7f3c","run_id":"run_12","stage_key":"build","card_title":"Upgrade the build image","asked_by":"agt_31d0","prompt":"The tests need network access. May I run them?","options":[{"id":"run_them","label":"Run the tests"},{"id":"skip","label":"Skip them"}],"deep_link":"https://superpipeline.dev/b/brd_7c1f/c/crd_6b40"}"#
    );
}

#[test]
fn an_absent_deep_link_is_left_out_and_never_null() {
    let card = example_builder().deep_link(None).build().unwrap();
    assert_eq!(card.deep_link(), None);
    assert!(!serde_json::to_string(&card).unwrap().contains("deep_link"));
}

#[test]
fn every_accessor_gives_its_own_property() {
    let card = example_builder().build().unwrap();
    assert_eq!(
        (
            card.schema_version(),
            card.board_id(),
            card.card_id(),
            card.elicitation_id(),
            card.run_id(),
            card.stage_key(),
        ),
        (1, "brd_7c1f", "crd_51d0", "elc_7f3c", "run_12", "build")
    );
    assert_eq!(
        (
            card.card_title(),
            card.asked_by(),
            card.prompt(),
            card.deep_link(),
        ),
        (
            "Upgrade the build image",
            "agt_31d0",
            "The tests need network access. May I run them?",
            Some("https://superpipeline.dev/b/brd_7c1f/c/crd_6b40"),
        )
    );
    assert_eq!(card.options()[1], CardOption::new("skip", "Skip them"));
}

#[test]
fn unknown_properties_are_ignored_at_every_level() {
    let mut card = example();
    card["urgency"] = json!({ "level": "high" });
    card["options"][0]["colour"] = json!("green");
    assert_eq!(Card::read(&card), Card::read(&example()));
}

#[test]
fn a_schema_version_is_a_floor_however_it_is_written() {
    for (written, read) in [
        (json!(1), 1),
        (json!(2.0), 2),
        (json!(4_000_000_000_u64), 4_000_000_000),
        (json!(u64::MAX), u64::MAX),
        (json!(1e300), u64::MAX),
    ] {
        let card = Card::read(&with("schema_version", written)).unwrap();
        assert_eq!(card.schema_version(), read);
    }
    let refused = |written| Card::read(&with("schema_version", written)).unwrap_err();
    for written in [json!(0), json!(-1), json!(0.0), json!(-3.0)] {
        assert_eq!(refused(written), CardError::Version);
    }
    for written in [json!(1.5), json!("1"), json!(true), json!(null)] {
        assert_eq!(
            refused(written).to_string(),
            "$.schema_version is not an integer"
        );
    }
}

#[test]
fn what_is_refused_is_named() {
    let refused = |card: Value| Card::read(&card).unwrap_err().to_string();
    assert_eq!(refused(json!([])), "$ is not an object");
    assert_eq!(
        refused(with("elicitation_id", json!(""))),
        "$.elicitation_id is empty"
    );
    assert_eq!(
        refused(with("deep_link", json!(null))),
        "$.deep_link is not a string"
    );
    assert_eq!(
        refused(with("options", json!([{ "id": "a" }]))),
        "$.options[0].label is missing"
    );
    assert_eq!(
        refused(with("options", json!([{ "id": "", "label": "A" }]))),
        "$.options[0].id is empty"
    );
    let five: Vec<Value> = ["a", "b", "c", "d", "e"]
        .map(|id| json!({ "id": id, "label": id }))
        .into();
    assert_eq!(
        refused(with("options", five.into())),
        "$.options has 5 items, more than 4"
    );
    let twins = json!([{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }, { "id": "a", "label": "C" }]);
    assert_eq!(
        Card::read(&with("options", twins)),
        Err(CardError::RepeatedId { first: 0, again: 2 })
    );
}

#[test]
fn a_card_takes_the_first_four_options_of_any_number() {
    let options: Vec<CardOption> = (1..=50)
        .map(|n| CardOption::new(format!("o{n}"), format!("Option {n}")))
        .collect();
    let card = example_builder().options(options.clone()).build().unwrap();
    assert_eq!(card.options(), &options[..4]);
    let none = example_builder().options([]).build().unwrap();
    assert_eq!(none.options(), []);
}

#[test]
fn an_option_past_the_fourth_keeps_the_rules_too() {
    let mut options: Vec<CardOption> = (1..=6)
        .map(|n| CardOption::new(format!("o{n}"), "Label"))
        .collect();
    options[5].id = "o1".to_owned();
    assert_eq!(
        example_builder().options(options.clone()).build(),
        Err(CardError::RepeatedId { first: 0, again: 5 })
    );
    options[5] = CardOption::new("", "Six");
    assert_eq!(
        example_builder().options(options).build(),
        Err(CardError::Empty {
            path: "$.options[5].id".to_owned()
        })
    );
    assert_eq!(
        Card::builder("").build(),
        Err(CardError::Empty {
            path: "$.elicitation_id".to_owned()
        })
    );
}

#[test]
fn a_card_read_back_from_storage_is_checked_again() {
    assert!(serde_json::from_value::<Card>(example()).is_ok());
    let error = serde_json::from_value::<Card>(with("schema_version", json!(0))).unwrap_err();
    assert_eq!(error.to_string(), "$.schema_version is below 1");
}

#[test]
fn each_fixture_is_taken_or_refused_by_the_layer_it_names() {
    let fixtures: Value = serde_json::from_str(include_str!(
        "../../../tests/fixtures/matrix-events/examples.json"
    ))
    .unwrap();
    let cases = fixtures["cases"].as_array().unwrap();
    assert!(cases.len() > 12);
    for case in cases {
        let name = case["case"].as_str().unwrap();
        assert_eq!(case["contract"], Contract::Card.name());
        let faults = validate(Contract::Card, &case["value"]);
        let refused = Card::read(&case["value"]);
        match case.get("refused_by").map(|layer| layer.as_str().unwrap()) {
            None => {
                assert_eq!(faults, [], "{name}");
                assert!(refused.is_ok(), "{name}: {refused:?}");
            }
            Some(layer) => {
                assert!(!faults.is_empty(), "{name}");
                assert!(
                    faults.iter().all(|f| f.layer.to_string() == layer),
                    "{name}: {faults:?}"
                );
                let by = match refused.unwrap_err() {
                    CardError::RepeatedId { .. } => Layer::Unique,
                    _ => Layer::Schema,
                };
                assert_eq!(by.to_string(), layer, "{name}");
            }
        }
    }
    // What the contract calls its example is what is built.
    assert_eq!(cases[0]["value"], example());
}

/// Any JSON that is short: what a property might hold that should hold something else.
fn junk() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3_i8..4).prop_map(|n| json!(f64::from(n))),
        (-3_i8..4).prop_map(|n| json!(f64::from(n) + 0.5)),
        ".{0,3}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([[]])),
    ]
}

/// Text with the empty string in it, and everything Unicode has.
fn text() -> impl Strategy<Value = Value> {
    prop_oneof![Just(String::new()), ".{1,12}", "[a-z_]{1,6}"].prop_map(Value::from)
}

/// Ids out of so few that they often repeat.
fn option() -> impl Strategy<Value = Value> {
    ("[a-h]{1,2}", ".{1,8}").prop_map(|(id, label)| json!({ "id": id, "label": label }))
}

fn sound_card() -> impl Strategy<Value = Value> {
    let names = [
        "board_id",
        "card_id",
        "run_id",
        "stage_key",
        "card_title",
        "asked_by",
        "prompt",
    ];
    let texts = proptest::collection::vec(text(), names.len());
    let options = proptest::collection::vec(option(), 0..=4);
    let version = prop_oneof![
        Just(json!(1)),
        any::<u32>().prop_map(|n| json!(u64::from(n) + 1)),
        any::<u16>().prop_map(|n| json!(f64::from(n) + 1.0)),
        Just(json!(1e300)),
        Just(json!(u64::MAX)),
    ];
    let link = proptest::option::of(text());
    (version, texts, ".{1,9}", options, link).prop_map(
        move |(version, texts, id, options, link)| {
            let mut card = Map::new();
            card.insert("schema_version".to_owned(), version);
            card.insert("elicitation_id".to_owned(), id.into());
            card.insert("options".to_owned(), options.into());
            for (name, text) in names.iter().zip(texts) {
                card.insert((*name).to_owned(), text);
            }
            if let Some(link) = link {
                card.insert("deep_link".to_owned(), link);
            }
            Value::Object(card)
        },
    )
}

/// One thing done to a card; most of them break it.
#[derive(Debug, Clone)]
enum Change {
    None,
    Drop(prop::sample::Index),
    Put(prop::sample::Index, Value),
    Empty(prop::sample::Index),
    Add(String, Value),
    AddOption(Vec<Value>),
    DropInOption(prop::sample::Index, bool),
    PutInOption(prop::sample::Index, String, Value),
    PutOption(prop::sample::Index, Value),
    Whole(Value),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    let name = || prop_oneof![Just("id"), Just("label"), Just("colour")].prop_map(str::to_owned);
    prop_oneof![
        6 => Just(Change::None),
        3 => at().prop_map(Change::Drop),
        4 => (at(), junk()).prop_map(|(at, value)| Change::Put(at, value)),
        2 => at().prop_map(Change::Empty),
        2 => ("[a-z_]{1,8}", junk()).prop_map(|(name, value)| Change::Add(name, value)),
        3 => proptest::collection::vec(option(), 1..4).prop_map(Change::AddOption),
        2 => (at(), any::<bool>()).prop_map(|(at, id)| Change::DropInOption(at, id)),
        4 => (at(), name(), junk()).prop_map(|(at, name, value)| Change::PutInOption(at, name, value)),
        2 => (at(), junk()).prop_map(|(at, value)| Change::PutOption(at, value)),
        1 => junk().prop_map(Change::Whole),
    ]
}

fn apply(mut card: Value, change: Change) -> Value {
    let names: Vec<String> = card.as_object().unwrap().keys().cloned().collect();
    let options = card["options"].as_array().unwrap().len();
    match change {
        Change::None => {}
        Change::Drop(at) => {
            card.as_object_mut().unwrap().remove(at.get(&names));
        }
        Change::Put(at, value) => card[at.get(&names)] = value,
        Change::Empty(at) => card[at.get(&names)] = json!(""),
        Change::Add(name, value) => card[name] = value,
        Change::AddOption(more) => card["options"].as_array_mut().unwrap().extend(more),
        Change::Whole(value) => card = value,
        _ if options == 0 => {}
        Change::DropInOption(at, id) => {
            let option = card["options"][at.index(options)].as_object_mut().unwrap();
            option.remove(if id { "id" } else { "label" });
        }
        Change::PutInOption(at, name, value) => card["options"][at.index(options)][name] = value,
        Change::PutOption(at, value) => card["options"][at.index(options)] = value,
    }
    card
}

/// The same cases on every run: what fails once fails until it is mended.
fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn schema_and_reader_give_the_same_verdict_on_thousands_of_cards() {
    let mut runner = runner(5000);
    let taken = std::cell::Cell::new(0_u32);
    let refused = [const { std::cell::Cell::new(0_u32) }; 2];
    let cards = (sound_card(), change()).prop_map(|(card, change)| apply(card, change));
    runner
        .run(&cards, |value| {
            let faults = validate(Contract::Card, &value);
            let read = Card::read(&value);
            prop_assert_eq!(
                faults.is_empty(),
                read.is_ok(),
                "{:?} but {:?}",
                faults,
                read
            );
            match read {
                Ok(card) => {
                    taken.set(taken.get() + 1);
                    let written = serde_json::to_value(&card).unwrap();
                    prop_assert_eq!(validate(Contract::Card, &written), []);
                    prop_assert_eq!(Card::read(&written), Ok(card));
                }
                Err(CardError::RepeatedId { .. }) => {
                    prop_assert!(faults.iter().all(|fault| fault.layer == Layer::Unique));
                    refused[1].set(refused[1].get() + 1);
                }
                Err(_) => {
                    prop_assert!(faults.iter().any(|fault| fault.layer == Layer::Schema));
                    refused[0].set(refused[0].get() + 1);
                }
            }
            Ok(())
        })
        .unwrap();
    // A generator that made only one kind would prove nothing.
    for count in [&taken, &refused[0], &refused[1]] {
        assert!(count.get() > 100, "{taken:?} {refused:?}");
    }
}

#[test]
fn whatever_the_builder_makes_is_valid() {
    let option = (".{0,3}", ".{0,3}").prop_map(|(id, label)| CardOption::new(id, label));
    let given = (".{0,3}", proptest::collection::vec(option, 0..7), ".{0,9}");
    let mut runner = runner(2000);
    runner
        .run(&given, |(id, options, prompt)| {
            if let Ok(card) = Card::builder(id).options(options).prompt(prompt).build() {
                let written = serde_json::to_value(&card).unwrap();
                prop_assert_eq!(validate(Contract::Card, &written), []);
            }
            Ok(())
        })
        .unwrap();
}
