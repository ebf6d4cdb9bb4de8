//! Who may answer, and what becomes of a text once the question is known.

use super::*;

#[test]
fn only_questions_this_person_may_answer_are_meant() {
    let room = [for_others(colours()), answers()];
    assert_eq!(
        reading(&said("2"), &room),
        chosen(1, 1, Number, OnlyOpen, false)
    );
    assert_eq!(
        reading(&said("red"), &room),
        chosen(1, 3, Label, OnlyOpen, false)
    );
    assert_eq!(
        reading(&said("green"), &room),
        Reading::MayNotAnswer { question: 0 }
    );
    assert_eq!(
        reading(&replying("$q1-card", "hello"), &room),
        Reading::MayNotAnswer { question: 0 }
    );
    assert_silent(&reading(&said("hello"), &room));
    assert_eq!(
        reading(
            &mentioning("green"),
            &[for_others(colours()), free(answers())]
        ),
        text(1, "green", OnlyOpen)
    );
}

#[test]
fn who_may_answer_none_is_told_so() {
    let room = [for_others(colours())];
    for message in [
        said("2"),
        said("Red"),
        mentioning("hello"),
        replying("$q1-card", "hello"),
    ] {
        assert_eq!(
            reading(&message, &room),
            Reading::MayNotAnswer { question: 0 },
            "{message:?}"
        );
    }
    assert_silent(&reading(&said("hello"), &room));
    assert_silent(&reading(&said("the second one"), &room));
    let room = [for_others(colours()), for_others(answers())];
    assert_eq!(
        reading(&said("green"), &room),
        Reading::MayNotAnswer { question: 0 }
    );
    assert_eq!(
        reading(&mentioning("hello"), &room),
        Reading::MayNotAnswer { question: 1 }
    );
}

#[test]
fn a_card_that_came_after_the_message_is_not_meant() {
    let room = [colours(), unseen(answers())];
    assert_eq!(
        reading(&said("2"), &room),
        chosen(0, 1, Number, OnlyOpen, false)
    );
    assert_silent(&reading(&said("later"), &room));
    assert_silent(&reading(&said("q2 2"), &room));
    assert_eq!(
        reading(&replying("$q2-card", "2"), &room),
        chosen(1, 1, Number, Reply, true)
    );
}

#[test]
fn free_text_is_taken_as_written_and_only_if_directed() {
    let room = [free(asked("q1", &[]))];
    let written = " It’s  fine,\n*really* \n";
    assert_eq!(
        reading(&replying("$q1-card", written), &room),
        text(0, "It’s  fine,\n*really*", Reply)
    );
    assert_eq!(
        reading(&said("@elicit:example.org: 2"), &room),
        text(0, "2", OnlyOpen)
    );
    assert_silent(&reading(&said(written), &room));
    assert_silent(&reading(&said("2"), &room));
    for body in ["", " \n", "\u{200B}\u{2060}"] {
        assert_silent(&reading(&replying("$q1-card", body), &room));
    }
    assert_not_understood(
        &reading(&mentioning("Elicit Bot: \u{200B}"), &room),
        0,
        OnlyOpen,
    );
}

#[test]
fn options_come_before_free_text() {
    let room = [free(asked(
        "q1",
        &[("staging", "Staging"), ("production", "Production")],
    ))];
    let reply = |body| reading(&replying("$q1-card", body), &room);
    assert_eq!(reply("the first one"), chosen(0, 0, Number, Reply, true));
    assert_eq!(
        reply("1 or 2"),
        Reading::AskOption {
            question: 0,
            options: vec![0, 1],
            targeted_by: Reply,
            directed: true
        }
    );
    for body in [
        "staging, but only after 6pm",
        "not staging",
        "staging?",
        "yes",
    ] {
        assert_eq!(reply(body), text(0, body, Reply));
    }
}

#[test]
fn what_was_not_understood_comes_with_near_misses() {
    assert_eq!(
        reading(&replying("$q1-card", "gren?"), &[colours()]),
        Reading::NotUnderstood {
            question: 0,
            suggestions: vec![1],
            targeted_by: Reply,
            why: "a question is no answer",
        }
    );
}

#[test]
fn targets_are_written_as_the_interface_says() {
    let all = [OnlyOpen, Reply, Thread, Tag, TargetedBy::Label];
    assert_eq!(
        serde_json::to_string(&all).unwrap(),
        r#"["only_open","reply","thread","tag","label"]"#
    );
    assert_eq!(
        serde_json::to_string(&[Number, Id, Label, MatchedBy::Text]).unwrap(),
        r#"["number","id","label","text"]"#
    );
}
