//! Two people at the same second: one wins, and the other is told.

use super::*;

fn ben(event_id: &str, sent_at: Millis) -> Heard {
    let mut heard = mira(event_id);
    heard.sender.user_id = "@ben:x.org".to_owned();
    heard.sender.display_name = Some("Ben".to_owned());
    heard.sent_at = sent_at;
    heard
}

/// Mira answered it just now.
fn just_answered() -> Known {
    answered(first())
}

/// What is said to Ben: about which question, under which word.
fn said_to_ben(changes: &[Change]) -> Vec<(&str, &str)> {
    let said = changes.iter().map(|change| match change {
        Change::SayOnce {
            user_id,
            what,
            notice,
        } => {
            assert_eq!(user_id, "@ben:x.org");
            (notice.key.id.as_str(), what.as_str())
        }
        other => panic!("{other:?}"),
    });
    said.collect()
}

#[test]
fn who_answers_what_somebody_else_just_answered_is_told_who_did() {
    for said in ["2", "wait", "1"] {
        let changes = judge_one(&just_answered(), &ben("$b1", NOW - 1_000), &words(said));
        assert_eq!(said_to_ben(&changes), [("e1", "closed")], "{said}");
        let Change::SayOnce { notice, .. } = &changes[0] else {
            unreachable!("it was looked at above")
        };
        assert!(
            body(notice).contains("already answered.\n\n✓ 1. Deploy — Mira (@mira:x.org)"),
            "{}",
            body(notice)
        );
    }
}

#[test]
fn talk_that_is_no_answer_is_left_alone_also_then() {
    for said in ["good morning", "not so fast", "3"] {
        let changes = judge_one(&just_answered(), &ben("$b1", NOW - 1_000), &words(said));
        assert_eq!(changes, [], "{said}");
    }
}

#[test]
fn who_could_see_the_end_of_it_is_not_told() {
    let known = with(just_answered(), |it| it.closed_at = Some(NOW - 10_000));
    let late = ben("$b1", NOW - 8_999);
    assert_eq!(judge_one(&known, &late, &words("2")), []);
    let in_time = ben("$b1", NOW - 9_000);
    let changes = judge_one(&known, &in_time, &words("2"));
    assert_eq!(said_to_ben(&changes), [("e1", "closed")]);
}

#[test]
fn the_same_person_twice_has_no_second_effect() {
    assert_eq!(judge_one(&just_answered(), &mira("$m2"), &words("2")), []);
}

/// When he wrote it, both were open: that only one of them still is makes it no answer to that one.
/// Pain: swallow.
#[test]
fn a_number_meant_for_what_was_just_answered_is_not_taken_by_another_question() {
    let known = [just_answered(), second()];
    let changes = judge_all(&known, &ben("$b1", NOW - 1_000), &words("2"));
    let told = [("e1", "closed"), ("e2", "ask_which q2")];
    assert_eq!(said_to_ben(&changes), told);
    // Later there is no doubt any more.
    let changes = judge_all(&known, &ben("$b2", NOW + 5_000), &words("2"));
    assert_eq!(in_short(&changes).0, "e2");
    // And a label says by itself which is meant.
    let changes = judge_all(&known, &ben("$b1", NOW - 1_000), &words("blue"));
    assert_eq!(in_short(&changes).1, "blue");
}

#[test]
fn what_was_withdrawn_at_that_moment_is_said_to_be_so() {
    let known = with(first(), |elicitation| {
        elicitation.state = State::Cancelled;
        elicitation.closed_at = Some(NOW);
    });
    let changes = judge_one(&known, &ben("$b1", NOW - 1_000), &words("1"));
    assert_eq!(said_to_ben(&changes), [("e1", "closed")]);
}

#[test]
fn who_may_not_answer_is_not_drawn_into_it() {
    let known = only_for(just_answered(), &["@mira:x.org"]);
    let changes = judge_one(&known, &ben("$b1", NOW - 1_000), &words("2"));
    assert_eq!(said_to_ben(&changes), [("e1", "may_not_answer")]);
    let changes = judge_one(&known, &ben("$b1", NOW - 1_000), &words("hello"));
    assert_eq!(changes, []);
}
