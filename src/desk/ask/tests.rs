//! What may be asked: every limit with its field and its rule, and what counts as the same.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// What a one-line `curl` asks: a room, a prompt, two options.
fn least() -> Ask {
    Ask {
        elicitation_id: None,
        room: "!deploys:x.org".to_owned(),
        prompt: "Ship it?".to_owned(),
        options: vec![CardOption::new("yes", "Yes"), CardOption::new("no", "No")],
        ..Ask::default()
    }
}

fn with(change: impl FnOnce(&mut Ask)) -> Ask {
    let mut ask = least();
    change(&mut ask);
    ask
}

fn builder() -> Asker {
    Asker {
        agent: "builder".to_owned(),
        name: Some("Builder".to_owned()),
        decline: "!decline".to_owned(),
    }
}

fn asked(ask: Ask) -> Result<Elicitation, Fault> {
    let room_id = "!deploys:x.org".to_owned();
    ask.into_elicitation(builder(), room_id, "e1".to_owned(), "q1".to_owned(), 1_000)
}

fn options(count: usize) -> Vec<CardOption> {
    (1..=count)
        .map(|number| CardOption::new(format!("o{number}"), format!("Option {number}")))
        .collect()
}

fn people(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("@p{number}:x.org"))
        .collect()
}

#[track_caller]
fn is_taken(change: impl FnOnce(&mut Ask)) {
    assert_eq!(with(change).check(), Ok(()));
}

#[track_caller]
fn is_refused(field: &str, rule: &str, change: impl FnOnce(&mut Ask)) {
    assert_eq!(with(change).check(), Err(Fault::new(field, rule)));
}

#[test]
fn a_room_a_prompt_and_two_options_are_enough() {
    is_taken(|_| {});
}

#[test]
fn a_fault_reads_as_a_sentence() {
    let fault = Fault::new("options[2].label", "must not be blank");
    assert_eq!(fault.to_string(), "options[2].label must not be blank");
}

#[test]
fn a_room_must_be_named() {
    is_refused("room", "must be a room id or alias", |ask| {
        ask.room = " ".to_owned();
    });
}

#[test]
fn a_prompt_must_show_something() {
    for blank in ["", " \n\t", "\u{200b}\u{2060}", "\u{202e}\u{fe0f}"] {
        is_refused("prompt", "must not be blank", |ask| {
            ask.prompt = blank.to_owned();
        });
    }
}

#[test]
fn a_prompt_has_at_most_8192_bytes_of_utf_8() {
    is_taken(|ask| ask.prompt = "é".repeat(4096));
    is_refused("prompt", "must be at most 8192 bytes", |ask| {
        ask.prompt = "é".repeat(4096) + "!";
    });
}

#[test]
fn a_title_has_at_most_512_bytes() {
    is_taken(|ask| ask.card_title = Some("t".repeat(512)));
    is_refused("card_title", "must be at most 512 bytes", |ask| {
        ask.card_title = Some("t".repeat(513));
    });
}

#[test]
fn a_link_is_https_http_or_matrix_and_no_other() {
    for link in [
        "https://x.org/b/1",
        "http://x.org",
        "matrix:r/deploys:x.org",
        "HTTPS://X.ORG",
    ] {
        is_taken(|ask| ask.deep_link = Some(link.to_owned()));
    }
    for link in [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://x.org",
        "x.org/b/1",
        "/b/1",
        "",
    ] {
        is_refused(
            "deep_link",
            "must be an https, http or matrix link",
            |ask| ask.deep_link = Some(link.to_owned()),
        );
    }
}

#[test]
fn a_link_reads_like_where_it_leads() {
    for link in [
        "https://bank.example@evil.example/",
        "https://bank.example:443@evil.example/",
        "http://:secret@x.org",
    ] {
        is_refused("deep_link", "must not name a user", |ask| {
            ask.deep_link = Some(link.to_owned());
        });
    }
}

#[test]
fn a_link_has_at_most_2048_bytes() {
    let link = |bytes: usize| format!("https://x.org/{}", "l".repeat(bytes - 14));
    is_taken(|ask| ask.deep_link = Some(link(2048)));
    is_refused("deep_link", "must be at most 2048 bytes", |ask| {
        ask.deep_link = Some(link(2049));
    });
}

#[test]
fn there_are_none_to_50_options() {
    is_taken(|ask| ask.options = options(0));
    is_taken(|ask| ask.options = options(50));
    is_refused("options", "must be at most 50", |ask| {
        ask.options = options(51);
    });
}

#[test]
fn without_options_a_text_must_be_an_answer() {
    is_taken(|ask| {
        ask.options.clear();
        ask.free_text = Some(true);
    });
    is_refused(
        "free_text",
        "must not be false without options: nobody could answer",
        |ask| {
            ask.options.clear();
            ask.free_text = Some(false);
        },
    );
}

#[test]
fn an_option_is_named_by_its_place_in_what_is_said_about_it() {
    is_refused("options[1].id", "must not be blank", |ask| {
        ask.options[1].id = "\u{200d}".to_owned();
    });
    is_refused("options[1].label", "must not be blank", |ask| {
        ask.options[1].label = " ".to_owned();
    });
    is_taken(|ask| ask.options[1] = CardOption::new("i".repeat(256), "l".repeat(512)));
    is_refused("options[1].id", "must be at most 256 bytes", |ask| {
        ask.options[1].id = "i".repeat(257);
    });
    is_refused("options[0].label", "must be at most 512 bytes", |ask| {
        ask.options[0].label = "l".repeat(513);
    });
}

#[test]
fn an_id_names_one_option_but_labels_may_repeat() {
    is_refused("options[2].id", "must not repeat options[0].id", |ask| {
        ask.options.push(CardOption::new("yes", "Really"));
    });
    is_taken(|ask| ask.options.push(CardOption::new("YES", "Yes")));
}

#[test]
fn people_are_named_by_user_ids_and_at_most_100() {
    is_taken(|ask| ask.mention = people(100));
    is_refused("mention", "must be at most 100", |ask| {
        ask.mention = people(101);
    });
    is_taken(|ask| ask.answerers.users = Some(people(100)));
    is_refused("answerers.users", "must be at most 100", |ask| {
        ask.answerers.users = Some(people(101));
    });
    let rule = "must be a user id like @mira:example.org";
    is_refused("mention[1]", rule, |ask| {
        ask.mention = vec!["@mira:x.org".to_owned(), "mira".to_owned()];
    });
    is_refused("answerers.users[0]", rule, |ask| {
        ask.answerers.users = Some(vec!["@mira".to_owned()]);
    });
    // Nobody may answer: said plainly, so it is taken.
    is_taken(|ask| ask.answerers.users = Some(Vec::new()));
}

#[test]
fn a_user_id_has_a_server_no_blanks_and_at_most_255_bytes() {
    let long = |bytes: usize| format!("@{}:x.org", "p".repeat(bytes - 7));
    for user in ["@mira:x.org", "@m:[::1]:8448", &long(255)] {
        assert!(is_user_id(user), "{user}");
    }
    for user in [
        "",
        "@",
        "mira:x.org",
        "@mira",
        "@mira:",
        "@mi ra:x.org",
        "@mira:x\n.org",
        "@\u{85}:x.org",
        &long(256),
    ] {
        assert!(!is_user_id(user), "{user}");
    }
}

#[test]
fn a_thread_is_an_event_id() {
    is_taken(|ask| ask.thread = Some("$a".to_owned()));
    is_taken(|ask| ask.thread = Some(format!("${}", "e".repeat(254))));
    for thread in ["", "$", "!a", &format!("${}", "e".repeat(255))] {
        is_refused("thread", "must be an event id like $abc", |ask| {
            ask.thread = Some(thread.to_owned());
        });
    }
}

type Field = fn(&mut Ask) -> &mut Option<String>;

const IDS: [(&str, Field); 6] = [
    ("elicitation_id", |ask| &mut ask.elicitation_id),
    ("Idempotency-Key", |ask| &mut ask.idempotency_key),
    ("board_id", |ask| &mut ask.board_id),
    ("card_id", |ask| &mut ask.card_id),
    ("run_id", |ask| &mut ask.run_id),
    ("stage_key", |ask| &mut ask.stage_key),
];

#[test]
fn ids_have_at_most_256_bytes_and_no_control_characters() {
    for (field, id) in IDS {
        is_taken(|ask| *id(ask) = Some("i".repeat(256)));
        is_refused(field, "must be at most 256 bytes", |ask| {
            *id(ask) = Some("i".repeat(257));
        });
        is_refused(field, "must not hold control characters", |ask| {
            *id(ask) = Some("a\u{7}b".to_owned());
        });
    }
}

#[test]
fn the_ids_a_question_is_found_by_must_not_be_blank() {
    for (field, id) in &IDS[..2] {
        is_refused(field, "must not be blank", |ask| {
            *id(ask) = Some(" ".to_owned());
        });
    }
    for (_, id) in &IDS[2..] {
        is_taken(|ask| *id(ask) = Some(String::new()));
    }
}

#[test]
fn a_deadline_is_later_than_now_and_at_most_366_days_away() {
    let most = 366 * 24 * 60 * 60 * 1000;
    for expires_in in [1, most] {
        is_taken(|ask| ask.expires_in = Some(expires_in));
    }
    for expires_in in [Millis::MIN, -1, 0, most + 1] {
        is_refused(
            "expires_in",
            "must be more than nothing and at most 366 days",
            |ask| ask.expires_in = Some(expires_in),
        );
    }
}

#[test]
fn metadata_is_any_json_of_at_most_4096_bytes() {
    for metadata in [
        json!(null),
        json!(7),
        json!({ "a": [1] }),
        json!("m".repeat(4094)),
    ] {
        is_taken(|ask| ask.metadata = Some(metadata));
    }
    is_refused("metadata", "must be at most 4096 bytes of JSON", |ask| {
        ask.metadata = Some(json!("m".repeat(4095)));
    });
}

#[test]
fn a_text_answers_by_default_only_where_there_are_no_options() {
    let without = |free_text| {
        with(|ask| {
            ask.options.clear();
            ask.free_text = free_text;
        })
    };
    assert!(!least().takes_text());
    assert!(with(|ask| ask.free_text = Some(true)).takes_text());
    assert!(without(None).takes_text());
    assert!(without(Some(true)).takes_text());
}

#[test]
fn the_same_question_has_the_same_fingerprint_whatever_it_is_called() {
    let same = least().fingerprint();
    let named = with(|ask| {
        ask.elicitation_id = Some("mine".to_owned());
        ask.idempotency_key = Some("once".to_owned());
    });
    assert_eq!(named.fingerprint(), same);
    assert_eq!(
        with(|ask| ask.free_text = Some(false)).fingerprint(),
        same,
        "the default said aloud"
    );
    let read = |json: &str| with(|ask| ask.metadata = serde_json::from_str(json).unwrap());
    assert_eq!(
        read(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#).fingerprint(),
        read(r#"{"b":{"d":3,"c":2},"a":1}"#).fingerprint(),
        "an object has no order"
    );
    assert_eq!(same.len(), 64);
}

#[test]
fn every_part_of_what_is_asked_changes_the_fingerprint() {
    let text = |text: &str| Some(text.to_owned());
    let asks = vec![
        least(),
        with(|ask| ask.room = "#deploys:x.org".to_owned()),
        with(|ask| ask.prompt.push(' ')),
        with(|ask| ask.options.swap(0, 1)),
        with(|ask| ask.options[0].label = "yes".to_owned()),
        with(|ask| ask.options[0].id = "Yes".to_owned()),
        with(|ask| ask.free_text = Some(true)),
        with(|ask| ask.decline = true),
        with(|ask| ask.answerers.users = Some(Vec::new())),
        with(|ask| ask.answerers.users = Some(people(1))),
        with(|ask| ask.answerers.min_power = Some(0)),
        with(|ask| ask.expires_in = Some(1)),
        with(|ask| ask.mention = people(1)),
        with(|ask| ask.thread = text("v")),
        with(|ask| ask.board_id = text("v")),
        with(|ask| ask.board_id = text("")),
        with(|ask| ask.card_id = text("v")),
        with(|ask| ask.run_id = text("v")),
        with(|ask| ask.stage_key = text("v")),
        with(|ask| ask.card_title = text("v")),
        with(|ask| ask.deep_link = text("v")),
        with(|ask| ask.metadata = Some(json!("v"))),
    ];
    let fingerprints: std::collections::HashSet<String> =
        asks.iter().map(Ask::fingerprint).collect();
    assert_eq!(fingerprints.len(), asks.len());
}

#[test]
fn a_question_is_stored_as_it_was_asked() {
    let ask = with(|ask| {
        ask.expires_in = Some(60_000);
        ask.metadata = Some(json!({ "build": 7 }));
        ask.thread = Some("$root".to_owned());
        ask.mention = people(1);
        ask.answerers.min_power = Some(50);
        for (name, id) in &IDS[2..] {
            *id(ask) = Some((*name).to_owned());
        }
        ask.card_title = Some("Release".to_owned());
        ask.deep_link = Some("https://x.org/b/1".to_owned());
    });
    assert_eq!(
        asked(ask),
        Ok(Elicitation {
            question: Question {
                key: Key::new("builder", "e1"),
                asked_by: "builder".to_owned(),
                routed_to: None,
                abridged: false,
                asked_at: None,
                asker_name: Some("Builder".to_owned()),
                room_id: "!deploys:x.org".to_owned(),
                thread: Some("$root".to_owned()),
                prompt: "Ship it?".to_owned(),
                options: vec![CardOption::new("yes", "Yes"), CardOption::new("no", "No")],
                free_text: false,
                decline: None,
                answerers: Answerers {
                    users: None,
                    min_power: Some(50),
                },
                mention: people(1),
                board_id: Some("board_id".to_owned()),
                card_id: Some("card_id".to_owned()),
                run_id: Some("run_id".to_owned()),
                stage_key: Some("stage_key".to_owned()),
                card_title: Some("Release".to_owned()),
                deep_link: Some("https://x.org/b/1".to_owned()),
                metadata: Some(json!({ "build": 7 })),
                created_at: 1_000,
                expires_at: Some(61_000),
            },
            tag: "q1".to_owned(),
            state: State::Queued,
            event_id: None,
            visible: false,
            closed_at: None,
            reason: None,
            answer: None,
        })
    );
}

#[test]
fn a_deadline_at_the_end_of_time_is_no_overflow() {
    let ask = with(|ask| ask.expires_in = Some(MAX_EXPIRES_IN));
    let room_id = "!deploys:x.org".to_owned();
    let (id, tag) = ("e1".to_owned(), "q1".to_owned());
    let asked = ask.into_elicitation(builder(), room_id, id, tag, Millis::MAX);
    assert_eq!(
        asked.map(|asked| asked.question.expires_at),
        Ok(Some(Millis::MAX))
    );
}

#[test]
fn the_largest_question_of_plain_words_fits() {
    let ask = with(|ask| {
        ask.prompt = "p".repeat(MAX_PROMPT);
        ask.options = (0..MAX_OPTIONS)
            .map(|number| CardOption::new(format!("{number:i>256}"), "l".repeat(MAX_LABEL)))
            .collect();
    });
    assert_eq!(ask.check(), Ok(()));
    let stored = asked(ask).map(|asked| asked.question.options.len());
    assert_eq!(stored, Ok(MAX_OPTIONS));
}

#[test]
fn what_is_within_every_limit_may_be_too_large_together() {
    // Each of these needs two bytes of JSON.
    let ask = with(|ask| {
        ask.options = (0..MAX_OPTIONS)
            .map(|number| CardOption::new(number.to_string(), "\"".repeat(MAX_LABEL)))
            .collect();
    });
    assert_eq!(ask.check(), Ok(()));
    assert_eq!(
        asked(ask),
        Err(Fault::new(
            "options",
            "are together with the prompt too large for one message"
        ))
    );
}

proptest! {
    #[test]
    fn whatever_passes_becomes_a_valid_card(
        prompt in "\\PC{0,40}",
        labels in proptest::collection::vec("\\PC{0,12}", 0..8),
        ids in proptest::collection::vec("[a-d\u{200b} ]{0,2}", 8),
        title in proptest::option::of("\\PC{0,12}"),
    ) {
        let ask = with(|ask| {
            ask.prompt = prompt;
            ask.options = ids.iter().zip(labels).map(|(id, label)| CardOption::new(id, label)).collect();
            ask.card_title = title;
        });
        if ask.check().is_ok() {
            let asked = asked(ask).unwrap();
            prop_assert!(crate::elicitation::card(&asked).is_ok());
        }
    }
}
