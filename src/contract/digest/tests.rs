use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use super::super::schema::{Contract, Fault, Layer, validate};
use super::*;

const STREAM: &str = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";
/// 2026-11-06T10:00:00Z and five minutes later.
const SINCE: Millis = 1_793_959_200_000;
const UNTIL: Millis = 1_793_959_500_000;

macro_rules! fixture {
    ($path:literal) => {
        include_str!(concat!(
            "../../../tests/fixtures/chat.agent-digest/",
            $path,
            ".json"
        ))
    };
}
const EMPTY: &str = fixture!("valid/empty");
const FULL: &str = fixture!("valid/full");

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn full() -> AgentDigest {
    let mira = Who::new("Mira", "mira").unwrap();
    let sam = Who::new("Sam", "sam").unwrap();
    let (asked, linked) = ("why is the test flaky?", "a link to github.com");
    let items = vec![
        DigestItem::new(mira, asked, ItemKind::Question, 3, None).unwrap(),
        DigestItem::new(sam, linked, ItemKind::Suggestion, 2, Some(2)).unwrap(),
    ];
    AgentDigest::new(STREAM, Some(SINCE), UNTIL, items, 120, false).unwrap()
}

fn refused(change: impl FnOnce(&mut Value)) -> String {
    let mut digest = value(FULL);
    change(&mut digest);
    let refused = AgentDigest::read(&digest).unwrap_err();
    let told = Fault {
        path: refused.field.clone(),
        layer: Layer::Schema,
        message: refused.rule.clone(),
    };
    let faults = validate(Contract::AgentDigest, &digest);
    assert!(faults.contains(&told), "{refused} but {faults:?}");
    refused.to_string()
}

#[test]
fn the_contracts_valid_examples_are_built_read_and_written_as_they_stand() {
    let empty = AgentDigest::new(STREAM, None, UNTIL, vec![], 0, false).unwrap();
    for (text, built) in [(EMPTY, empty), (FULL, full())] {
        assert_eq!(validate(Contract::AgentDigest, &value(text)), []);
        assert_eq!(AgentDigest::read(&value(text)), Ok(built.clone()));
        let written = serde_json::to_string_pretty(&built).unwrap();
        assert_eq!(format!("{written}\n"), text);
    }
}

#[test]
fn the_contracts_rejected_examples_are_refused_for_what_they_are() {
    for (text, said) in [
        (
            fixture!("rejected/eleven-items"),
            "$.items: schema: must have at most 10 items",
        ),
        (
            fixture!("rejected/room-not-an-agent-room"),
            "$.room: schema: must match ^agent:ags_[0-9A-HJKMNP-TV-Z]{26}$",
        ),
        (
            fixture!("rejected/unknown-kind"),
            "$.items[0].kind: schema: must be one of \"question\", \"suggestion\", \"reaction\"",
        ),
    ] {
        let faults = validate(Contract::AgentDigest, &value(text));
        let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
        assert_eq!(faults, [said]);
        let refused = AgentDigest::read(&value(text)).unwrap_err();
        assert_eq!(said, format!("{}: schema: {}", refused.field, refused.rule));
    }
}

#[test]
fn every_accessor_gives_its_own_property() {
    let digest = full();
    assert_eq!(
        (digest.room(), digest.stream_id()),
        ("agent:ags_01JAB2C3D4E5F6G7H8J9K0MNPQ", STREAM)
    );
    assert_eq!((digest.since(), digest.until()), (Some(SINCE), UNTIL));
    assert_eq!(
        (digest.chars(), digest.truncated()),
        (Some(120), Some(false))
    );
    let [first, second] = digest.items() else {
        panic!("{digest:?}");
    };
    assert_eq!(
        (first.who().display_name(), first.who().handle()),
        ("Mira", "mira")
    );
    assert_eq!(first.what(), "why is the test flaky?");
    assert_eq!(
        (first.kind(), first.upvotes(), first.repeated()),
        (ItemKind::Question, 3, None)
    );
    assert_eq!(
        (second.kind(), second.upvotes(), second.repeated()),
        (ItemKind::Suggestion, 2, Some(2))
    );
    // 22 and twice 4; 20 and twice 3.
    assert_eq!((first.chars(), second.chars()), (30, 26));
}

#[test]
fn the_number_of_characters_is_taken_as_it_is() {
    for chars in [0, 56, 120, 1_500] {
        let mut digest = value(FULL);
        digest["chars"] = json!(chars);
        assert_eq!(AgentDigest::read(&digest).unwrap().chars(), Some(chars));
    }
    assert_eq!(
        refused(|digest| digest["chars"] = json!(1_501)),
        "$.chars must be at most 1500"
    );
}

#[test]
fn what_is_not_needed_may_be_absent_and_stays_so() {
    let mut digest = value(FULL);
    digest.as_object_mut().unwrap().remove("chars");
    digest.as_object_mut().unwrap().remove("truncated");
    let read = AgentDigest::read(&digest).unwrap();
    assert_eq!((read.chars(), read.truncated()), (None, None));
    assert_eq!(serde_json::to_value(read).unwrap(), digest);
}

#[test]
fn strangers_are_ignored_at_the_top_and_nowhere_else() {
    let mut digest = value(FULL);
    digest["mood"] = json!({ "level": "high" });
    assert_eq!(AgentDigest::read(&digest), Ok(full()));
    assert_eq!(validate(Contract::AgentDigest, &digest), []);
    assert_eq!(
        refused(|digest| digest["items"][1]["event_id"] = json!("$e")),
        "$.items[1].event_id is not known"
    );
    assert_eq!(
        refused(|digest| digest["items"][0]["who"]["an id"] = json!("@mira:example.org")),
        "$.items[0].who[\"an id\"] is not known"
    );
}

#[test]
fn what_is_refused_is_named_in_the_words_of_the_schema() {
    let item = |field: &'static str, value: Value| {
        move |digest: &mut Value| digest["items"][0][field] = value
    };
    let who = |field: &'static str, value: Value| {
        move |digest: &mut Value| digest["items"][0]["who"][field] = value
    };
    let top = |field: &'static str, value: Value| move |digest: &mut Value| digest[field] = value;
    let without = |field: &'static str| {
        move |digest: &mut Value| drop(digest.as_object_mut().unwrap().remove(field))
    };
    for (told, said) in [
        (
            refused(|digest| *digest = json!([])),
            "$ must be of type object, is array",
        ),
        (refused(without("since")), "$.since is missing"),
        (refused(without("room")), "$.room is missing"),
        (
            refused(top("since", json!(5))),
            "$.since must be of type null or string, is number",
        ),
        (
            refused(top("until", json!(null))),
            "$.until must be of type string, is null",
        ),
        (
            refused(top("until", json!("2026-11-06T10:05:00"))),
            "$.until must be a date-time of RFC 3339 with an offset",
        ),
        (
            refused(top("truncated", json!(0))),
            "$.truncated must be of type boolean, is number",
        ),
        (
            refused(top("chars", json!(1.5))),
            "$.chars must be of type integer, is number",
        ),
        (
            refused(top("chars", json!(-1))),
            "$.chars must be at least 0",
        ),
        (
            refused(top("items", json!({}))),
            "$.items must be of type array, is object",
        ),
        (
            refused(item("upvotes", json!(-1.0))),
            "$.items[0].upvotes must be at least 0",
        ),
        (
            refused(item("upvotes", json!("3"))),
            "$.items[0].upvotes must be of type integer, is string",
        ),
        (
            refused(item("repeated", json!(0))),
            "$.items[0].repeated must be at least 1",
        ),
        (
            refused(item("repeated", json!(-2))),
            "$.items[0].repeated must be at least 1",
        ),
        (
            refused(item("repeated", json!(null))),
            "$.items[0].repeated must be of type integer, is null",
        ),
        (
            refused(item("who", json!("mira"))),
            "$.items[0].who must be of type object, is string",
        ),
        (
            refused(item("what", "é".repeat(201).into())),
            "$.items[0].what must have at most 200 characters",
        ),
        (
            refused(who("display_name", "é".repeat(81).into())),
            "$.items[0].who.display_name must have at most 80 characters",
        ),
        (
            refused(who("handle", json!("Mira"))),
            "$.items[0].who.handle must match ^[a-z0-9_]{2,32}$",
        ),
    ] {
        assert_eq!(told, said);
    }
}

#[test]
fn parts_that_break_a_rule_are_not_made() {
    let told = |invalid: InvalidDigest| invalid.to_string();
    let mira = || Who::new("Mira", "mira").unwrap();
    let item =
        |what: &str, repeated| DigestItem::new(mira(), what, ItemKind::Reaction, 0, repeated);
    let long = |count| "\u{1f389}".repeat(count);
    assert!(Who::new(long(80), "a_").is_ok());
    assert_eq!(
        Who::new(long(81), "mira").map_err(told),
        Err("$.display_name must have at most 80 characters".to_owned())
    );
    for handle in [
        "",
        "a",
        "Mira",
        "mira!",
        "mir\u{430}",
        "mira\n",
        &"a".repeat(33),
    ] {
        let rule = "$.handle must match ^[a-z0-9_]{2,32}$".to_owned();
        assert_eq!(
            Who::new("Mira", handle).map_err(told),
            Err(rule),
            "{handle:?}"
        );
    }
    assert!(item(&long(200), Some(1)).is_ok());
    assert_eq!(
        item(&long(201), None).map_err(told),
        Err("$.what must have at most 200 characters".to_owned())
    );
    assert_eq!(
        item("hi", Some(0)).map_err(told),
        Err("$.repeated must be at least 1".to_owned())
    );
}

#[test]
fn a_digest_that_breaks_a_rule_is_not_made() {
    let item = DigestItem::new(Who::new("", "ab").unwrap(), "", ItemKind::Reaction, 0, None);
    let item = item.unwrap();
    let made = |stream: &str, since, until, count, chars| {
        let items = vec![item.clone(); count];
        AgentDigest::new(stream, since, until, items, chars, true)
            .map(drop)
            .map_err(|invalid| invalid.to_string())
    };
    let moment = "must be a date-time of RFC 3339 with an offset";
    let (first, last) = (*WRITABLE.start(), *WRITABLE.end());
    assert_eq!(made(STREAM, Some(first), last, 10, 1_500), Ok(()));
    for (told, said) in [
        (
            made("ags_1", None, 0, 0, 0),
            "$.room must match ^agent:ags_[0-9A-HJKMNP-TV-Z]{26}$".to_owned(),
        ),
        (
            made(STREAM, Some(first - 1), 0, 0, 0),
            format!("$.since {moment}"),
        ),
        (
            made(STREAM, None, last + 1, 0, 0),
            format!("$.until {moment}"),
        ),
        (
            made(STREAM, None, 0, 11, 0),
            "$.items must have at most 10 items".to_owned(),
        ),
        (
            made(STREAM, None, 0, 0, 1_501),
            "$.chars must be at most 1500".to_owned(),
        ),
    ] {
        assert_eq!(told, Err(said));
    }
}

#[test]
fn a_room_names_its_stream() {
    assert_eq!(stream_of(&room_of(STREAM)), Some(STREAM));
    for room in [
        "",
        STREAM,
        "agent:",
        "agent:ags_1",
        "chat:ags_01JAB2C3D4E5F6G7H8J9K0MNPQ",
    ] {
        assert_eq!(stream_of(room), None, "{room}");
    }
}

#[test]
fn a_digest_read_back_from_storage_is_checked_again() {
    assert_eq!(serde_json::from_str::<AgentDigest>(FULL).unwrap(), full());
    let changed = FULL.replace("question", "greeting");
    let error = serde_json::from_str::<AgentDigest>(&changed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "$.items[0].kind must be one of \"question\", \"suggestion\", \"reaction\""
    );
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

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0_u64..5).prop_map(Value::from),
        (-2_i64..2).prop_map(Value::from),
        (-2_i8..4).prop_map(|n| json!(f64::from(n))),
        (-2_i8..4).prop_map(|n| json!(f64::from(n) + 0.5)),
        (1_495_u64..1_505).prop_map(Value::from),
        Just(json!(-0.0)),
        any::<u64>().prop_map(Value::from),
        Just(json!(1e300)),
    ]
}

/// Any JSON that is short: what a property might hold that should hold something else.
fn junk() -> BoxedStrategy<Value> {
    let junk = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        number(),
        ".{0,3}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["question"])),
    ];
    junk.boxed()
}

fn text(longest: usize) -> impl Strategy<Value = Value> {
    let near = longest - 1..=longest + 1;
    prop_oneof![
        4 => ".{0,12}".prop_map(Value::from),
        1 => near.prop_map(|count| "\u{1d11e}".repeat(count).into()),
    ]
}

fn time() -> impl Strategy<Value = Value> {
    const ODD: [&str; 10] = [
        "2026-11-06T10:05:00+01:00",
        "2026-11-06t10:05:00.5z",
        "2026-11-06 10:05:00Z",
        "2026-11-06T10:05:00",
        "2026-02-30T10:05:00Z",
        "2016-12-31T23:59:60Z",
        "9999-12-31T23:59:59-01:00",
        "0000-01-01T00:00:00Z",
        "soon",
        "",
    ];
    prop_oneof![
        9 => WRITABLE.prop_map(|at| timestamp(at).into()),
        3 => prop::sample::select(&ODD[..]).prop_map(Value::from),
        1 => junk(),
    ]
}

/// Mostly what it should be. In a box, as the whole is too large for the stack of a test.
fn mostly(sound: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Option<Value>> {
    let mostly = prop_oneof![
        120 => sound.prop_map(Some),
        1 => junk().prop_map(Some),
        1 => Just(None),
    ];
    mostly.boxed()
}

fn object_of<const N: usize>(
    fields: [(&str, Option<Value>); N],
    stranger: Option<(String, Value)>,
) -> Value {
    let fields = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    fields.chain(stranger).collect::<Map<_, _>>().into()
}

fn stranger(often: f64) -> impl Strategy<Value = Option<(String, Value)>> {
    prop::option::weighted(often, ("[a-z]{1,2}|[ .é\"]{1,2}", junk()))
}

fn item() -> impl Strategy<Value = Value> {
    let handle = prop_oneof![
        8 => "[a-z0-9_]{2,32}",
        1 => "[a-z0-9_]{0,34}",
        1 => "[a-zA-Zé@ \n]{2,4}",
    ];
    let who = (
        mostly(text(MAX_DISPLAY_NAME)),
        mostly(handle.prop_map(Value::from)),
        stranger(0.02),
    )
        .prop_map(|(display_name, handle, stranger)| {
            object_of(
                [("display_name", display_name), ("handle", handle)],
                stranger,
            )
        });
    let kind = prop::sample::select(&["question", "suggestion", "reaction"][..]);
    let count = || prop_oneof![4 => (1_u64..9).prop_map(Value::from), 1 => number()];
    (
        mostly(who),
        mostly(text(MAX_WHAT)),
        mostly(kind.prop_map(Value::from)),
        mostly(count()),
        prop::option::of(count()),
        stranger(0.02),
    )
        .prop_map(|(who, what, kind, upvotes, repeated, stranger)| {
            let fields = [
                ("who", who),
                ("what", what),
                ("kind", kind),
                ("upvotes", upvotes),
                ("repeated", repeated),
            ];
            object_of(fields, stranger)
        })
}

fn digest() -> impl Strategy<Value = Value> {
    let room = prop_oneof![
        8 => "[0-9A-HJKMNP-TV-Z]{26}".prop_map(|ulid| format!("agent:ags_{ulid}")),
        1 => "(agent|chat):ags_[0-9A-Za-z]{25,27}\n?",
    ];
    let items = prop_oneof![
        8 => proptest::collection::vec(item(), 0..3),
        1 => proptest::collection::vec(item(), 9..12),
        1 => item().prop_map(|item| vec![item; 11]),
    ];
    let since = prop_oneof![Just(Value::Null), time()];
    let sound = (
        mostly(room.prop_map(Value::from)),
        mostly(since),
        mostly(time()),
        prop::option::of(prop_oneof![3 => (0..1_501_u64).prop_map(Value::from), 1 => number()]),
        prop::option::of(prop_oneof![6 => any::<bool>().prop_map(Value::from), 1 => junk()]),
        mostly(items.prop_map(Value::from)),
        stranger(0.3),
    )
        .prop_map(|(room, since, until, chars, truncated, items, stranger)| {
            let fields = [
                ("room", room),
                ("since", since),
                ("until", until),
                ("chars", chars),
                ("truncated", truncated),
                ("items", items),
            ];
            object_of(fields, stranger)
        });
    prop_oneof![99 => sound, 1 => junk()]
}

#[test]
fn schema_and_reader_give_the_same_verdict_in_the_same_words_on_thousands_of_digests() {
    let (taken, refused) = (std::cell::Cell::new(0_u32), std::cell::Cell::new(0_u32));
    runner(3_000)
        .run(&digest(), |value| {
            let faults = validate(Contract::AgentDigest, &value);
            match AgentDigest::read(&value) {
                Ok(read) => {
                    prop_assert_eq!(faults, []);
                    let written = serde_json::to_value(&read).unwrap();
                    prop_assert_eq!(validate(Contract::AgentDigest, &written), []);
                    prop_assert_eq!(AgentDigest::read(&written), Ok(read));
                    taken.set(taken.get() + 1);
                }
                Err(InvalidDigest { field, rule }) => {
                    let told = Fault {
                        path: field,
                        layer: Layer::Schema,
                        message: rule,
                    };
                    prop_assert!(faults.contains(&told), "{told} but {faults:?}");
                    refused.set(refused.get() + 1);
                }
            }
            Ok(())
        })
        .unwrap();
    // A generator that made only one kind would prove nothing.
    assert!(
        taken.get() > 500 && refused.get() > 500,
        "{taken:?} {refused:?}"
    );
}

#[test]
fn whatever_is_made_is_valid_and_is_read_again_as_itself() {
    let long = |most: usize| (most - 1..=most + 1).prop_map(|count| "\u{1d11e}".repeat(count));
    let text = |most| prop_oneof![4 => ".{0,12}", 1 => long(most)];
    let handle = prop_oneof!["[a-z0-9_]{1,4}", "\\PC{0,3}"];
    let kind = prop::sample::select(&ItemKind::ALL[..]);
    let repeated = prop::option::of(0_u64..3);
    let (name, what) = (text(MAX_DISPLAY_NAME), text(MAX_WHAT));
    let item = (name, handle, what, kind, any::<u64>(), repeated);
    let item = item.prop_map(|(name, handle, what, kind, upvotes, repeated)| {
        DigestItem::new(Who::new(name, handle)?, what, kind, upvotes, repeated)
    });
    let moment = || prop_oneof![8 => WRITABLE, 1 => any::<Millis>()];
    let stream = prop_oneof![8 => Just(STREAM.to_owned()), 1 => "ags_[0-9A-Z]{26}"];
    let given = (
        stream,
        prop::option::of(moment()),
        moment(),
        proptest::collection::vec(item, 0..14),
        (0..1_600_u32, any::<bool>()),
    );
    let made = std::cell::Cell::new(0_u32);
    runner(1_000)
        .run(
            &given,
            |(stream, since, until, items, (chars, truncated))| {
                let items = items.into_iter().flatten().collect();
                if let Ok(digest) = AgentDigest::new(&stream, since, until, items, chars, truncated)
                {
                    let written = serde_json::to_value(&digest).unwrap();
                    prop_assert_eq!(validate(Contract::AgentDigest, &written), []);
                    prop_assert_eq!(AgentDigest::read(&written), Ok(digest));
                    made.set(made.get() + 1);
                }
                Ok(())
            },
        )
        .unwrap();
    assert!(made.get() > 300, "{made:?}");
}
