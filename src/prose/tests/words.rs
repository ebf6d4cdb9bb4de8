//! The sentences themselves. A change here is a change of what people read.

use insta::{assert_json_snapshot, assert_snapshot};

use super::*;
use crate::elicitation::Outcome;

/// Both forms of a message, as they go out.
fn both(content: &Value) -> String {
    let shown = content.get("m.new_content").unwrap_or(content);
    let html = shown["formatted_body"].as_str().unwrap_or("(none)");
    format!("{}\n\n[HTML]\n{html}\n", body(shown))
}

#[test]
fn the_example() {
    assert_json_snapshot!(card(&example(), false));
    assert_snapshot!("the_example_reads", both(&card(&example(), false)));
}

#[test]
fn more_options_than_buttons() {
    let mut elicitation = bare(
        "Where shall it go?",
        &["Lab", "Staging", "Canary", "Europe", "America", "Asia"],
    );
    elicitation.question.asker_name = Some("Release agent".to_owned());
    elicitation.question.expires_at = Some(AFTERNOON);
    elicitation.question.mention =
        vec!["@mira:example.org".to_owned(), "@bo:example.org".to_owned()];
    assert_snapshot!(both(&card(&elicitation, true)));

    elicitation.question.options.pop();
    assert_snapshot!(
        "one_option_more_than_buttons",
        both(&card(&elicitation, false))
    );
}

/// Nothing beside it may sound as if a reply were an answer.
#[test]
fn what_only_the_board_can_take_an_answer_to() {
    let mut only_there = bare("What should the release be called?", &[]);
    only_there.question.free_text = false;
    assert_eq!(
        body(&card(&only_there, true)),
        "What should the release be called?\n\n\
         It can only be answered on the board: please open its card there.\n\n\
         — asked by agt_31d0"
    );
}

#[test]
fn free_text() {
    let only = bare("What should the release be called?", &[]);
    assert_snapshot!("free_text_only", both(&card(&only, true)));
    let mut besides = example();
    besides.question.free_text = true;
    assert_snapshot!("free_text_besides_options", both(&card(&besides, false)));
}

#[test]
fn a_question_that_may_be_declined() {
    let mut elicitation = example();
    elicitation.question.decline = Some("!decline".to_owned());
    assert_snapshot!("declinable", both(&card(&elicitation, false)));
    assert_snapshot!("declinable_among_others", both(&card(&elicitation, true)));
}

#[test]
fn answers_to_commands() {
    let commands = crate::reply::Commands::new("!");
    assert_snapshot!("help", both(&help(PLACE, &commands)));
    let mut ending = bare("Which colour?", &["Red"]);
    ending.question.expires_at = Some(AFTERNOON);
    let both_open = [&example(), &ending];
    assert_snapshot!("cards_open", both(&cards(PLACE, &both_open)));
    assert_snapshot!("cards_none", both(&cards(PLACE, &[])));
    assert_snapshot!(
        "decline_which",
        both(&how_to_decline(PLACE, &both_open, "!decline"))
    );
    assert_snapshot!("not_declinable", both(&not_declinable(PLACE, &ending)));
    assert_snapshot!("read_later", both(&read_later()));
    assert_snapshot!("agents_read", both(&agents(PLACE, false, false, &commands)));
    assert_snapshot!(
        "agents_do_not_read",
        both(&agents(PLACE, true, true, &commands))
    );
}

/// Markup, breaks, direction overrides, forged lists, right-to-left text.
fn hostile() -> Elicitation {
    let mut elicitation = bare(
        "<b>Trust me</b>\u{2028}1. Approve\r\n\u{202e}evorppA .2 & \"go\"",
        &[
            "Deny\n2. Approve <script>alert('x')</script>",
            "\u{202e}ynED\u{2069}",
            "</li></ol><a href=\"https://evil.example\">click</a>",
            "تأیید",
        ],
    );
    elicitation.question.asker_name = Some("Root\n\u{2067}<i>".to_owned());
    elicitation.question.card_title = Some("</em>\u{85}5. Yes".to_owned());
    elicitation.question.deep_link = Some("https://a.example/\"><img src=x>\u{202e}".to_owned());
    elicitation.question.mention = vec!["@<b>\"x:example.org".to_owned()];
    elicitation
}

#[test]
fn hostile_text() {
    assert_snapshot!(both(&card(&hostile(), false)));
    let mut over = answered(hostile(), Ok(3));
    if let Some(answer) = &mut over.answer {
        answer.display_name = Some("Mira</p>\n✓ 1. \u{202e}".to_owned());
    }
    assert_snapshot!("hostile_text_closed", both(&closed(&over)));
}

#[test]
fn every_end() {
    assert_json_snapshot!("end_by_option_event", closed(&answered(example(), Ok(0))));

    let mut late = over(example(), State::Expired, None);
    late.question.expires_at = Some(AFTERNOON - 60_000);
    let text = "Only the <unit> tests.\n\n1. not the others";
    for (name, elicitation) in [
        ("end_by_option", answered(example(), Ok(0))),
        (
            "end_by_text",
            answered(bare("Which tests?", &[]), Err(text)),
        ),
        ("end_declined", over(example(), State::Declined, None)),
        (
            "end_cancelled",
            over(example(), State::Cancelled, Some("the run\nended")),
        ),
        ("end_superseded", over(example(), State::Superseded, None)),
        ("end_expired", late),
        (
            "end_undeliverable",
            over(example(), State::Undeliverable, Some("the room is gone")),
        ),
    ] {
        assert_snapshot!(name, both(&closed(&elicitation)));
    }
}

#[test]
fn every_notice() {
    let mut europe = bare("Which region?", &["Europe", "America", "Europe"]);
    europe.tag = "q4".to_owned();
    let mut free = bare("What should the release be called?", &[]);
    free.tag = "q1".to_owned();
    let example = example();
    let refused = |why| may_not_answer(PLACE, &example, why);
    for (name, content) in [
        ("ask_option", ask_option(PLACE, &europe, &[0, 2])),
        ("ask_option_any", ask_option(PLACE, &europe, &[])),
        ("not_understood", not_understood(PLACE, &example, &[])),
        (
            "not_understood_suggesting",
            not_understood(PLACE, &example, &[1]),
        ),
        (
            "not_understood_suggesting_two",
            not_understood(PLACE, &europe, &[0, 1]),
        ),
        ("ask_which", ask_which(PLACE, &[&free, &example, &europe])),
        (
            "already_answered",
            already_closed(PLACE, &answered(example.clone(), Ok(1))),
        ),
        (
            "already_answered_by_text",
            already_closed(PLACE, &answered(free.clone(), Err("Ada"))),
        ),
        (
            "already_withdrawn",
            already_closed(PLACE, &over(free.clone(), State::Cancelled, None)),
        ),
        ("refused_not_listed", refused(Refusal::NotListed)),
        (
            "refused_power",
            refused(Refusal::TooLittlePower { needed: 50 }),
        ),
        ("refused_nobody", refused(Refusal::Nobody)),
        ("refused_unverified", refused(Refusal::Unverified)),
        ("refused_untrusted", refused(Refusal::Untrusted)),
        ("unreadable", unreadable("$sealed", "@mira:example.org")),
    ] {
        assert_snapshot!(name, both(&content));
    }
}

#[test]
fn many_open_questions_are_not_all_listed() {
    let questions: Vec<Elicitation> = (1..=23)
        .map(|number| {
            let mut elicitation = bare(&"Which of these? ".repeat(20), &["A", "B"]);
            elicitation.tag = format!("q{number}");
            elicitation
        })
        .collect();
    let all: Vec<&Elicitation> = questions.iter().collect();
    let content = ask_which(PLACE, &all);
    assert_eq!(body(&content).lines().count(), 24);
    assert!(body(&content).contains("\n… and 3 more\n"));
    assert!(
        body(&content)
            .lines()
            .all(|line| line.chars().count() < 120)
    );
}

#[test]
fn what_the_guide_to_boards_quotes_is_what_people_are_told() {
    let guide = include_str!("../../../docs/boards.md");
    let question = bare("…", &["Run the tests"]);
    let before = answered(question.clone(), Ok(0)).answer.unwrap();
    let refused = |code: &str| Outcome::Refused {
        code: code.to_owned(),
    };
    let outcomes = [
        Outcome::Settled { uncertain: false },
        Outcome::Settled { uncertain: true },
        Outcome::Invalid,
        Outcome::SeparationOfDuties,
        Outcome::UnknownPerson,
        Outcome::IdentityDown,
        refused("NOT_RUN_OWNER"),
    ];
    let told = outcomes.iter().map(|outcome| {
        assert!(guide.contains(&format!("| `{}`", outcome.word())));
        not_taken(PLACE, &question, outcome)
    });
    let only_there = {
        let mut only_there = bare("…", &[]);
        only_there.question.free_text = false;
        super::card::instruction(&only_there)
    };
    let told: Vec<Value> = told
        .chain([handing_in(PLACE, &question, &before)])
        .collect();
    let first_words = told
        .iter()
        .map(|content| body(content).lines().next().unwrap());
    // The guide's lines are broken where it pleases.
    let guide = guide.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in first_words.chain([only_there, "This was shortened. All of it is on the board."]) {
        assert!(guide.contains(words), "{words}");
    }
}
