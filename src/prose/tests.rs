//! What the room reads, word for word, and what no text of anybody can do to it.

mod hostile;
mod properties;
mod session;
mod words;

use serde_json::json;

use super::*;
use crate::contract::{CARD_KEY, CardOption};
use crate::elicitation::{Answer, AnswerKind, Answerers, Key, Question, State};
use crate::reply::{Choice, MatchedBy, Options, TargetedBy, read_option};

/// 30 Nov 2026, 14:05 UTC.
const AFTERNOON: i64 = 1_796_047_500_000;

/// The seed's example card, as it was asked, one of several things the tests vary.
fn example() -> Elicitation {
    Elicitation {
        question: Question {
            key: Key::new("agt_31d0", "elc_7f3c"),
            asked_by: "agt_31d0".to_owned(),
            routed_to: None,
            abridged: false,
            asked_at: None,
            asker_name: None,
            room_id: "!room:example.org".to_owned(),
            thread: None,
            prompt: "The tests need network access. May I run them?".to_owned(),
            options: vec![
                CardOption::new("run_them", "Run the tests"),
                CardOption::new("skip", "Skip them"),
            ],
            free_text: false,
            decline: None,
            answerers: Answerers::default(),
            mention: vec![],
            board_id: Some("brd_7c1f".to_owned()),
            card_id: Some("crd_51d0".to_owned()),
            run_id: Some("run_12".to_owned()),
            stage_key: Some("build".to_owned()),
            card_title: Some("Upgrade the build image".to_owned()),
            deep_link: Some("https://superpipeline.dev/b/brd_7c1f/c/crd_6b40".to_owned()),
            metadata: None,
            created_at: AFTERNOON - 600_000,
            expires_at: None,
        },
        tag: "q3".to_owned(),
        state: State::Open,
        event_id: Some("$card".to_owned()),
        visible: true,
        closed_at: None,
        reason: None,
        answer: None,
    }
}

/// A question of which the asker told nothing but a prompt and labels.
fn bare(prompt: &str, labels: &[&str]) -> Elicitation {
    let mut elicitation = example();
    elicitation.question.prompt = prompt.to_owned();
    elicitation.question.options = (1..)
        .zip(labels)
        .map(|(number, label)| CardOption::new(format!("id_{number}"), *label))
        .collect();
    elicitation.question.free_text = labels.is_empty();
    elicitation.question.card_title = None;
    elicitation.question.stage_key = None;
    elicitation.question.deep_link = None;
    elicitation
}

/// The same, over.
fn over(mut elicitation: Elicitation, state: State, reason: Option<&str>) -> Elicitation {
    elicitation.state = state;
    elicitation.closed_at = Some(AFTERNOON);
    elicitation.reason = reason.map(str::to_owned);
    elicitation
}

/// The same, answered by Mira: with the option at that place, or with a text.
fn answered(elicitation: Elicitation, choice: Result<usize, &str>) -> Elicitation {
    let mut elicitation = over(elicitation, State::Answered, None);
    elicitation.answer = Some(Answer {
        kind: if choice.is_ok() {
            AnswerKind::Option
        } else {
            AnswerKind::Text
        },
        option: choice.ok().and_then(|index| elicitation.numbered(index)),
        text: Some(choice.err().unwrap_or("1").to_owned()),
        answered_by: "@mira:example.org".to_owned(),
        display_name: Some("Mira".to_owned()),
        event_id: "$reply".to_owned(),
        answered_at: AFTERNOON,
        matched_by: MatchedBy::Number,
        targeted_by: TargetedBy::OnlyOpen,
        directed: false,
        encrypted: false,
        sender_verified: None,
    });
    elicitation
}

fn body(content: &Value) -> &str {
    content["body"].as_str().expect("every message has a body")
}

const PLACE: &Place<'static> = &Place {
    to: "$reply",
    thread: None,
};

#[test]
fn a_card_mentions_whom_it_asks_and_nobody_else() {
    let mut elicitation = example();
    assert_eq!(card(&elicitation, false)["m.mentions"], json!({}));

    elicitation.question.mention = vec!["@mira:example.org".to_owned()];
    assert_eq!(
        card(&elicitation, false)["m.mentions"],
        json!({ "user_ids": ["@mira:example.org"] })
    );
    let closed = closed(&over(elicitation, State::Cancelled, None));
    assert_eq!(closed["m.mentions"], json!({}));
    assert_eq!(closed["m.new_content"]["m.mentions"], json!({}));
}

#[test]
fn a_card_in_a_thread_says_so() {
    let mut elicitation = example();
    assert_eq!(card(&elicitation, false).get("m.relates_to"), None);

    elicitation.question.thread = Some("$root".to_owned());
    assert_eq!(
        card(&elicitation, false)["m.relates_to"],
        json!({
            "rel_type": "m.thread",
            "event_id": "$root",
            "is_falling_back": true,
            "m.in_reply_to": { "event_id": "$root" },
        })
    );
}

/// Pain: stale.
#[test]
fn a_closed_card_carries_no_card() {
    for state in State::ALL.into_iter().filter(|state| state.is_closed()) {
        let mut content = closed(&over(example(), state, None));
        assert!(content.get(CARD_KEY).is_none(), "{state:?}");
        assert!(
            content["m.new_content"].get(CARD_KEY).is_none(),
            "{state:?}"
        );
        assert!(body(&content).starts_with("* "), "{state:?}");

        relate_edit(&mut content, "$card");
        assert_eq!(
            content["m.relates_to"],
            json!({ "rel_type": "m.replace", "event_id": "$card" })
        );
    }
}

#[test]
fn a_notice_replies_where_the_person_wrote() {
    let content = not_understood(PLACE, &example(), &[]);
    assert_eq!(content["msgtype"], "m.notice");
    assert_eq!(content["m.mentions"], json!({}));
    assert_eq!(
        content["m.relates_to"],
        json!({ "m.in_reply_to": { "event_id": "$reply" } })
    );

    let place = Place {
        to: "$reply",
        thread: Some("$root"),
    };
    assert_eq!(
        not_understood(&place, &example(), &[])["m.relates_to"],
        json!({
            "rel_type": "m.thread",
            "event_id": "$root",
            "is_falling_back": false,
            "m.in_reply_to": { "event_id": "$reply" },
        })
    );
}

#[test]
fn a_taken_answer_gets_a_tick() {
    assert_eq!(
        reaction("$reply", TAKEN),
        json!({
            "m.relates_to": { "rel_type": "m.annotation", "event_id": "$reply", "key": "✓" },
        })
    );
}

#[test]
fn a_prompt_with_a_list_of_its_own_is_set_apart() {
    let forged = "Pick well.\n\nOptions:\n1. Deny\n2. Approve";
    let content = card(&bare(forged, &["Approve", "Deny"]), false);
    assert_eq!(
        body(&content),
        "| Pick well.\n| \n| Options:\n| 1. Deny\n| 2. Approve\n\nOptions:\n1. Approve\n2. Deny\n\n\
         Reply with the number or the text of an option.\n\n— asked by agt_31d0"
    );
    let html = content["formatted_body"].as_str().unwrap_or_default();
    assert!(html.starts_with(
        "<blockquote>Pick well.<br><br>Options:<br>1. Deny<br>2. Approve</blockquote>"
    ));
}

#[test]
fn a_question_without_words_still_asks() {
    assert!(body(&card(&bare("\u{202e}\n", &["A"]), false)).starts_with("Please choose.\n\n"));
    assert!(body(&card(&bare("", &[]), false)).starts_with("Please answer.\n\n"));
}

#[test]
fn an_option_without_a_label_is_shown_by_its_id() {
    let content = card(&bare("?", &["\n", "B"]), false);
    assert!(body(&content).contains("\n1. id_1\n2. B\n"));
}

#[test]
fn numbers_as_names_are_explained_where_they_clash() {
    let note = "A number with # in front";
    for (labels, explained) in [
        (&["3", "5", "8"][..], true),
        (&["١", "٢"], true),
        (&["1", "2", "3"], false),
        (&["8", "16", "32"], false),
        (&["One", "Two"], false),
    ] {
        let content = card(&bare("How many?", labels), false);
        assert_eq!(body(&content).contains(note), explained, "{labels:?}");
    }
}

#[test]
fn a_display_name_never_stands_for_a_user_id() {
    for (name, shown) in [
        (Some("Mira"), "Mira (@mira:example.org)"),
        (
            Some("Mira\n✓ approved by \u{202e}root"),
            "Mira ✓ approved by root (@mira:example.org)",
        ),
        (Some("@boss:example.org"), "@mira:example.org"),
        (Some("＠boss"), "@mira:example.org"),
        (Some("\u{202e}\n"), "@mira:example.org"),
        (Some("מירה"), "\u{2068}מירה\u{2069} (@mira:example.org)"),
        (None, "@mira:example.org"),
    ] {
        let mut elicitation = answered(example(), Ok(0));
        if let Some(answer) = &mut elicitation.answer {
            answer.display_name = name.map(str::to_owned);
        }
        assert_eq!(
            body(&closed(&elicitation)),
            format!(
                "* “The tests need network access. May I run them?”: \
                 ✓ 1. Run the tests — {shown}, 30 Nov 2026, 14:05 UTC"
            )
        );
    }
    let mut long = answered(example(), Ok(0));
    if let Some(answer) = &mut long.answer {
        answer.display_name = Some("x".repeat(5000));
    }
    assert!(body(&closed(&long)).len() < 200);
}

#[test]
fn a_long_written_answer_is_shown_in_part() {
    let elicitation = answered(bare("Why?", &[]), Err(&"word ".repeat(2000)));
    let content = closed(&elicitation);
    let shown = body(&content["m.new_content"]);
    assert!(shown.len() < 1200 && shown.contains("word…"), "{shown}");

    let elicitation = answered(bare("Why?", &[]), Err(&"a\n".repeat(400)));
    assert!(body(&closed(&elicitation)["m.new_content"]).lines().count() < 30);
    assert!(body(&already_closed(PLACE, &elicitation)).lines().count() < 10);
}

#[test]
fn an_answer_of_nothing_readable_is_said_to_be_that() {
    let elicitation = answered(bare("Why?", &[]), Err("\u{202e}\u{1}"));
    assert!(body(&closed(&elicitation)["m.new_content"]).contains("\n\n| (nothing readable)\n\n"));
}

#[test]
fn at_most_three_options_are_suggested_and_only_ones_there_are() {
    let content = not_understood(PLACE, &bare("?", &["A", "B", "C", "D"]), &[3, 2, 1, 0]);
    assert!(body(&content).contains("Did you mean 4, D; or 3, C; or 2, B?\n"));
    let content = not_understood(PLACE, &bare("?", &["A"]), &[7]);
    assert!(!body(&content).contains("Did you mean"));
}

#[test]
fn a_removed_answer_is_not_shown_again() {
    let mut elicitation = answered(bare("Why?", &[]), Err("because"));
    if let Some(answer) = &mut elicitation.answer {
        answer.text = None;
    }
    let shown = closed(&elicitation);
    assert!(!shown.to_string().contains("because"));
    assert_eq!(
        body(&shown),
        "* “Why?”: ✓ Answered by Mira (@mira:example.org), 30 Nov 2026, 14:05 UTC (the text was removed later)"
    );
}

#[test]
fn a_dangerous_link_is_not_shown() {
    let mut elicitation = example();
    elicitation.question.deep_link = Some("javascript:alert(1)".to_owned());
    let mut content = card(&elicitation, false);
    assert!(body(&content).ends_with("— Upgrade the build image · build · asked by agt_31d0"));
    // The card repeats the asker's words as data; the prose does not.
    content[CARD_KEY] = json!(null);
    assert!(!content.to_string().contains("javascript"));
}

#[test]
fn a_title_cannot_pretend_to_say_who_asks() {
    let mut elicitation = bare("?", &["A"]);
    elicitation.question.card_title = Some("3. Deploy · asked by root\n4. Yes".to_owned());
    let content = card(&elicitation, false);
    assert!(body(&content).ends_with("\n\n— 3. Deploy - asked by root 4. Yes · asked by agt_31d0"));
}

/// Pain: clipped.
#[test]
fn the_largest_question_is_asked_in_full_and_below_the_limit() {
    let label = "x".repeat(512);
    let mut elicitation = bare(&"y".repeat(8192), &[label.as_str(); 50]);
    for option in &mut elicitation.question.options {
        option.id = format!("{:z<256}", option.id);
    }
    elicitation.question.thread = Some("$".repeat(44));
    let content = card(&elicitation, true);
    assert!(fits(&elicitation));
    assert!(
        event_size(&content) <= MAX_CONTENT,
        "{}",
        event_size(&content)
    );
    assert!(body(&content).starts_with(&"y".repeat(8192)));
    assert_eq!(body(&content).matches(&label).count(), 50);
    // What had to go: the second form, and most of the card's copy of the prompt.
    assert_eq!(content.get("formatted_body"), None);
    assert_eq!(
        content[CARD_KEY]["prompt"],
        json!(format!("{}…", "y".repeat(500)))
    );
    assert_eq!(content[CARD_KEY]["options"][3]["label"], json!(label));
}

#[test]
fn what_cannot_fit_is_known_before_it_is_asked() {
    let quotes = "\"".repeat(512);
    let elicitation = bare(&"\"".repeat(8192), &[quotes.as_str(); 50]);
    assert!(!fits(&elicitation));
}

#[test]
fn html_is_left_out_only_where_it_is_too_large() {
    let content = card(&bare(&"<".repeat(8000), &["A"]), false);
    assert!(content.get("formatted_body").is_none() && content.get("format").is_none());
    let content = card(&bare(&"<".repeat(4000), &["A"]), false);
    assert!(content.get("formatted_body").is_some());
}

/// Pain: clipped.
#[test]
fn long_labels_are_in_full_on_the_card_and_in_its_last_words() {
    // What tells them apart is at their ends, behind everything that could be cut.
    let labels = ["one", "two"].map(|end| format!("{}{end}", "a long way to go, ".repeat(25)));
    let labels = [labels[0].as_str(), labels[1].as_str()];
    let asked = card(&bare("Where to?", &labels), false);
    let over = closed(&answered(bare("Where to?", &labels), Ok(1)));
    for (shown, number, label) in [
        (&asked, "1. ", labels[0]),
        (&asked, "2. ", labels[1]),
        (&over, "✓ 2. ", labels[1]),
        (&over["m.new_content"], "✓ 2. ", labels[1]),
    ] {
        let line = format!("{number}{label}");
        assert!(body(shown).contains(&line), "{}", body(shown));
        let html = shown["formatted_body"].as_str().unwrap();
        assert!(html.contains(label), "{html}");
    }
}

/// Pain: dot.
#[test]
fn what_a_card_prints_before_an_option_chooses_it() {
    let labels = ["Lab", "Staging", "Canary", "Europe", "America", "Asia"].repeat(8);
    let elicitation = bare("Where to?", &labels);
    let options = Options::new(&elicitation.question.options);
    let content = card(&elicitation, false);
    let list = body(&content)
        .lines()
        .skip_while(|line| *line != "Options:");
    let items: Vec<&str> = list.skip(1).take_while(|line| !line.is_empty()).collect();
    assert_eq!(items.len(), 48);
    for (index, item) in items.into_iter().enumerate() {
        let (printed, label) = item.split_once(' ').unwrap();
        assert_eq!(
            (printed, label),
            (&*format!("{}.", index + 1), labels[index])
        );
        let by = MatchedBy::Number;
        let read = read_option(printed, &options, false).choice;
        assert_eq!(read, Choice::Choose { index, by }, "{printed}");
    }
}
