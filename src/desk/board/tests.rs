use super::*;
use crate::contract::CARD_KEY;

const NOW: Millis = 1_796_047_500_000;

fn pending(question: &str, options: &[(&str, &str)]) -> Pending {
    Pending {
        board_id: "brd_7c1f".to_owned(),
        board_name: None,
        card_id: "crd_51d0".to_owned(),
        card_title: "Upgrade the build image".to_owned(),
        elicitation_id: "elc_7f3c".to_owned(),
        run_id: "run_12".to_owned(),
        stage_key: "build".to_owned(),
        agent_id: "agt_31d0".to_owned(),
        question: question.to_owned(),
        options: options
            .iter()
            .map(|&(id, label)| CardOption::new(id, label))
            .collect(),
        asked_at: Some(NOW - 1_000),
    }
}

fn put_up(pending: Pending, free_text: bool) -> Elicitation {
    let (room, tag) = ("!board:x.org".to_owned(), "q1".to_owned());
    from_board("brd_7c1f", pending, free_text, room, tag, NOW)
}

#[test]
fn a_boards_question_becomes_the_card_of_the_contract() {
    let options = [("run_them", "Run the tests"), ("skip", "Skip them")];
    let asked = put_up(pending("May I run them?", &options), false);
    assert_eq!(*asked.key(), Key::of_board("brd_7c1f", "elc_7f3c"));
    assert_eq!(asked.question.asked_at, Some(NOW - 1_000));
    let content = prose::card(&asked, false);
    insta::assert_json_snapshot!(content[CARD_KEY]);
    insta::assert_snapshot!(content["body"].as_str().unwrap());
}

#[test]
fn a_text_is_an_answer_only_where_the_board_takes_texts() {
    let told = |options: &[(&str, &str)], free_text| {
        let asked = put_up(pending("Why?", options), free_text);
        let content = prose::card(&asked, false);
        (
            content["body"].as_str().unwrap().to_owned(),
            content.get(CARD_KEY).is_some(),
        )
    };
    let (there, has_card) = told(&[], false);
    assert!(
        there.contains("It can only be answered on the board"),
        "{there}"
    );
    assert!(!has_card, "a client would draw what leads nowhere");
    let (here, has_card) = told(&[], true);
    assert!(
        here.contains("Reply to this message with your answer."),
        "{here}"
    );
    assert!(has_card);
    assert!(told(&[("a", "A")], true).0.contains("your own answer"));
    assert!(!told(&[("a", "A")], false).0.contains("your own answer"));
}

#[test]
fn an_empty_question_still_asks_for_something() {
    let body = |options: &[(&str, &str)]| {
        let content = prose::card(&put_up(pending("", options), false), false);
        content["body"]
            .as_str()
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(body(&[("a", "A")]), "Please choose.");
}

#[test]
fn what_is_too_long_is_shortened_and_points_to_the_board() {
    let long = "ü".repeat(MAX_PROMPT);
    let label = "é".repeat(MAX_LABEL);
    let asked = put_up(pending(&long, &[("a", label.as_str()), ("b", "B")]), false);
    let question = &asked.question;
    assert!(question.prompt.len() <= MAX_PROMPT && question.prompt.ends_with("ü…"));
    assert!(question.options[0].label.len() <= MAX_LABEL);
    assert!(question.options[0].label.ends_with("é…"));
    assert_eq!(question.options[1], CardOption::new("b", "B"));
    let content = prose::card(&asked, false);
    let body = content["body"].as_str().unwrap();
    assert!(body.contains("This was shortened. All of it is on the board."));
    let whole = put_up(pending("Why?", &[("a", "A")]), false);
    assert!(!whole.question.abridged);
}

#[test]
fn of_too_many_options_the_first_are_shown() {
    let ids: Vec<String> = (0..60).map(|number| format!("o{number}")).collect();
    let options: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "Same")).collect();
    let asked = put_up(pending("Which?", &options), false);
    assert_eq!(asked.question.options.len(), MAX_OPTIONS);
    assert_eq!(asked.question.options[49].id, "o49");
    assert!(asked.question.abridged);
}

#[test]
fn whatever_a_board_asks_fits_into_one_event_with_its_ids_whole() {
    for filler in ["x", "\u{10348}", "\"", "<&", "\n"] {
        let ids: Vec<String> = (0..50)
            .map(|number| format!("{number:03}{}", "i".repeat(250)))
            .collect();
        let label = filler.repeat(4_096);
        let options: Vec<(&str, &str)> =
            ids.iter().map(|id| (id.as_str(), label.as_str())).collect();
        let asked = put_up(pending(&filler.repeat(30_000), &options), true);
        assert!(prose::fits(&asked), "{filler:?}");
        let kept: Vec<&String> = asked
            .question
            .options
            .iter()
            .map(|option| &option.id)
            .collect();
        assert_eq!(kept, ids.iter().collect::<Vec<_>>(), "{filler:?}");
    }
}

#[test]
fn the_question_that_was_asked_later_is_the_newer_one() {
    let here = put_up(pending("Why?", &[]), true);
    let at = |asked_at| Pending {
        asked_at,
        ..pending("Why?", &[])
    };
    assert!(is_newer(&at(Some(NOW)), &here));
    assert!(!is_newer(&at(Some(NOW - 2_000)), &here));
    assert!(
        is_newer(&at(None), &here),
        "in doubt the one that comes later"
    );
}
