//! Replies to a board's question: the board decides, and one answer is handed in at a time.

use super::*;
use crate::desk::{handed_in, settled, wait_for_board};
use crate::elicitation::Outcome;

/// The first question, asked by a board.
fn of_board() -> Known {
    with(first(), |elicitation| {
        elicitation.question.key = Key::of_board("brd_7c1f", "e1");
    })
}

/// The answer that a message hands in.
fn handed(changes: &[Change]) -> &Answer {
    let [Change::Submit { key, answer }] = changes else {
        panic!("nothing is handed in: {changes:?}");
    };
    assert_eq!(*key, Key::of_board("brd_7c1f", "e1"));
    answer
}

fn being_handed_in() -> Known {
    let known = of_board();
    let answer = handed(&judge_one(&known, &mira("$m0"), &words("1"))).clone();
    Known {
        submission: Some(answer),
        ..known
    }
}

fn notice(change: &Change) -> String {
    let Change::SayOnce { notice, .. } = change else {
        panic!("nothing is said: {change:?}");
    };
    notice.content["body"].as_str().unwrap().to_owned()
}

#[test]
fn an_answer_to_a_boards_question_is_handed_in_and_nothing_is_said_yet() {
    let changes = says(&of_board(), &words("2"));
    let answer = handed(&changes);
    assert_eq!(answer.option.as_ref().unwrap().id, "wait");
    assert_eq!(answer.answered_by, "@mira:x.org");
    assert_eq!(answer.event_id, "$m1");
}

#[test]
fn while_an_answer_is_being_handed_in_another_one_is_told_so_and_not_taken() {
    let known = being_handed_in();
    let changes = says(&known, &words("2"));
    let [said] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(
        notice(said),
        "An answer of Mira (@mira:x.org) to “What about e1?” is on its way to the board. Should \
         the board not take it, please answer again."
    );
}

#[test]
fn talk_beside_an_answer_that_is_being_handed_in_is_left_alone() {
    assert_eq!(says(&being_handed_in(), &words("good morning")), []);
}

#[test]
fn what_the_board_has_taken_closes_the_question_with_a_tick() {
    let known = being_handed_in();
    let answer = known.submission.unwrap();
    let changes = handed_in(
        &known.elicitation,
        &answer,
        ROOM,
        &Outcome::Taken,
        false,
        NOW,
    );
    let [
        Change::Close {
            closed,
            edit,
            event,
        },
        Change::Send(tick),
    ] = changes.as_slice()
    else {
        panic!("{changes:?}");
    };
    assert_eq!(closed.state, State::Answered);
    assert_eq!(closed.answer, Some(answer));
    assert!(edit.is_some());
    assert_eq!(*event, None, "no agent of ours asked");
    assert_eq!(tick.kind, SendKind::Reaction);
    assert_eq!(tick.content["m.relates_to"]["key"], "✓");
    assert_eq!(tick.content["m.relates_to"]["event_id"], "$m0");
}

#[test]
fn the_sign_that_it_takes_its_time_goes_away_with_the_end() {
    let known = being_handed_in();
    let answer = known.submission.unwrap();
    let Change::Send(shown) = wait_for_board(&known.elicitation, &answer, ROOM) else {
        panic!("nothing is shown");
    };
    assert_eq!(shown.kind, SendKind::Waiting);
    assert_eq!(shown.content["m.relates_to"]["key"], "⏳");
    assert_eq!(shown.replies_to(), Some("$m0"));
    for outcome in [Outcome::Taken, Outcome::Invalid] {
        let changes = handed_in(&known.elicitation, &answer, ROOM, &outcome, true, NOW);
        let Change::Send(over) = &changes[0] else {
            panic!("{changes:?}");
        };
        assert_eq!(over.kind, SendKind::WaitingOver);
        assert_eq!(over.replies_to(), Some("$m0"));
    }
}

#[test]
fn every_refusal_has_its_own_words_and_leaves_the_question_open() {
    let known = being_handed_in();
    let answer = known.submission.unwrap();
    let refused = |code: &str| Outcome::Refused {
        code: code.to_owned(),
    };
    let mut said = Vec::new();
    for outcome in [
        Outcome::Invalid,
        Outcome::SeparationOfDuties,
        Outcome::UnknownPerson,
        Outcome::IdentityDown,
        refused("STALE_LEASE"),
    ] {
        let changes = handed_in(&known.elicitation, &answer, ROOM, &outcome, false, NOW);
        let [only] = changes.as_slice() else {
            panic!("{outcome:?}: {changes:?}");
        };
        said.push(notice(only));
    }
    insta::assert_snapshot!(said.join("\n---\n"));
}

#[test]
fn each_try_of_the_same_person_is_told_how_it_ended() {
    let known = being_handed_in();
    let answer = known.submission.unwrap();
    let again = Answer {
        event_id: "$m7".to_owned(),
        ..answer.clone()
    };
    let said = |answer: &Answer| match &handed_in(
        &known.elicitation,
        answer,
        ROOM,
        &Outcome::IdentityDown,
        false,
        NOW,
    )[..]
    {
        [Change::SayOnce { what, .. }] => what.clone(),
        other => panic!("{other:?}"),
    };
    assert_ne!(said(&answer), said(&again));
}

#[test]
fn what_was_settled_on_the_board_is_closed_and_its_person_told() {
    let known = being_handed_in();
    let answer = known.submission.unwrap();
    let mut said = Vec::new();
    for uncertain in [false, true] {
        let outcome = Outcome::Settled { uncertain };
        let changes = handed_in(&known.elicitation, &answer, ROOM, &outcome, false, NOW);
        let [Change::Close { closed, .. }, told] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        assert_eq!(closed.state, State::Cancelled);
        assert_eq!(closed.reason.as_deref(), Some("settled on the board"));
        assert_eq!(closed.answer, None);
        said.push(notice(told));
    }
    insta::assert_snapshot!(said.join("\n---\n"));
}

#[test]
fn a_card_that_was_settled_on_the_board_says_that_and_no_more() {
    let Change::Close {
        edit: Some(edit), ..
    } = settled(&of_board().elicitation, NOW)
    else {
        panic!("it is not closed");
    };
    assert_eq!(
        edit.content["m.new_content"]["body"],
        "What about e1?\n\nSettled on the board, 30 Nov 2026, 14:05 UTC\n\n— asked by builder"
    );
}

#[test]
fn what_only_the_board_can_take_an_answer_to_is_in_nobodys_way() {
    let there = with(asked("e9", "q9", &[]), |elicitation| {
        elicitation.question.key = Key::of_board("brd_7c1f", "e9");
    });
    // With two questions open a bare number would be asked about.
    let known = [first(), there];
    let changes = judge_all(&known, &mira("$m1"), &words("1"));
    assert_eq!(closed(&changes).key().id, "e1");
    let reply = Said {
        in_reply_to: Some("$e9".to_owned()),
        ..words("yes")
    };
    let changes = judge_all(&known, &mira("$m2"), &reply);
    let [said] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(
        notice(said),
        "Sorry, I cannot take an answer to “What about e9?”.\n\nIt can only be answered on the \
         board: please open its card there."
    );
}
