//! What is no answer: from the wrong person, too late, or not to be trusted.

use super::*;

const BEN: &[&str] = &["@ben:x.org"];

#[track_caller]
fn refused(changes: &[Change], because: &str) {
    let (id, what, notice) = told(changes);
    // One word for all of them: a person is told once per question.
    assert_eq!((id, what), ("e1", "may_not_answer"));
    assert!(body(notice).contains(because), "{}", body(notice));
}

#[test]
fn a_person_who_may_not_answer_is_told_so_where_they_plainly_tried() {
    let known = only_for(first(), BEN);
    for said in [
        words("1"),
        words("deploy"),
        reply_to("$e1", "hm"),
        words("q1 2"),
        in_thread("$e1", "hm"),
    ] {
        refused(&says(&known, &said), "was asked of other people here");
    }
    for body in ["good morning", "3", "deploy or wait?"] {
        assert_eq!(says(&known, &words(body)), [], "{body}");
    }
}

#[test]
fn the_reason_is_told() {
    refused(
        &says(&only_for(first(), &[]), &words("1")),
        "the list of people who may answer it is empty",
    );
    let powerful = with(first(), |elicitation| {
        elicitation.question.answerers.min_power = Some(50);
    });
    refused(
        &says(&powerful, &words("1")),
        "it needs a power level of 50 or more",
    );
    let rules = Rules {
        min_power: Some(1),
        ..Rules::default()
    };
    let changes = judge(
        &mira("$m1"),
        &words("1"),
        &[first()],
        &rules,
        &elicit(),
        NOW,
    );
    refused(&changes, "it needs a power level of 1 or more");
}

#[test]
fn who_has_left_is_not_heard() {
    let mut heard = mira("$m1");
    heard.sender.joined = false;
    for known in [first(), only_for(first(), BEN), answered(first())] {
        assert_eq!(judge_one(&known, &heard, &reply_to("$e1", "1")), []);
    }
}

/// Pain: spoof.
#[test]
fn a_message_that_is_not_from_who_it_says_never_answers() {
    for said in [words("1"), reply_to("$e1", "1"), words("q1 deploy")] {
        let changes = judge_one(&first(), &trusted(Trust::Refused), &said);
        refused(
            &changes,
            "its encryption does not prove that it is from you",
        );
    }
    let known = in_words();
    let changes = judge_one(&known, &trusted(Trust::Refused), &reply_to("$e3", "hello"));
    assert_eq!(
        (told(&changes).0, told(&changes).1),
        ("e3", "may_not_answer")
    );
}

#[test]
fn where_verified_devices_are_required_no_other_answers() {
    let rules = Rules {
        require_verified: true,
        ..Rules::default()
    };
    let judged = |trust| {
        judge(
            &trusted(trust),
            &words("1"),
            &[first()],
            &rules,
            &elicit(),
            NOW,
        )
    };
    refused(&judged(Trust::Unverified), "from a verified device");
    refused(&judged(Trust::Clear), "from a verified device");
    refused(
        &judged(Trust::Refused),
        "does not prove that it is from you",
    );
    assert_eq!(taken(&judged(Trust::Verified)).sender_verified, Some(true));
    // A room without encryption has no devices to verify.
    assert_eq!(taken(&judged(Trust::Plain)).sender_verified, None);
}

fn due_at(deadline: Millis) -> Known {
    with(first(), |elicitation| {
        elicitation.question.expires_at = Some(deadline);
    })
}

#[test]
fn what_was_sent_before_the_deadline_counts_however_late_it_is_read() {
    let sent_at = mira("$m1").sent_at;
    for deadline in [sent_at, sent_at + 1, NOW, NOW + 1] {
        let changes = says(&due_at(deadline), &words("1"));
        assert_eq!(closed(&changes).state, State::Answered, "{deadline}");
    }
}

#[test]
fn what_was_sent_after_the_deadline_is_late() {
    let late = due_at(mira("$m1").sent_at - 1);
    assert_eq!(says(&late, &words("1")), []);
    let changes = says(&late, &reply_to("$e1", "1"));
    let (id, what, notice) = told(&changes);
    assert_eq!((id, what), ("e1", "closed"));
    assert_eq!(
        body(notice),
        "“What about e1?” is closed.\n\nExpired without an answer, 30 Nov 2026, 14:04 UTC"
    );
}

#[test]
fn before_the_deadline_a_clock_that_is_fast_harms_nobody() {
    let mut heard = mira("$m1");
    heard.sent_at = NOW + 3_600_000;
    let changes = judge_one(&due_at(NOW + 1), &heard, &words("1"));
    assert_eq!(closed(&changes).state, State::Answered);
}

/// Pain: late.
#[test]
fn a_reply_to_a_question_that_is_over_is_told_how_it_ended() {
    let over = |state| {
        with(first(), |elicitation| {
            elicitation.state = state;
            elicitation.closed_at = Some(NOW - 60_000);
        })
    };
    for (known, end) in [
        (
            answered(first()),
            "is already answered.\n\n✓ 1. Deploy — Mira (@mira:x.org)",
        ),
        (over(State::Declined), "is closed.\n\nDeclined"),
        (over(State::Cancelled), "is closed.\n\nWithdrawn"),
        (over(State::Superseded), "is closed.\n\nReplaced"),
        (over(State::Expired), "is closed.\n\nExpired"),
        (
            over(State::Undeliverable),
            "is closed.\n\nCould not be asked",
        ),
    ] {
        for said in [reply_to("$e1", "1"), in_thread("$e1", "hm"), words("q1 2")] {
            let changes = says(&known, &said);
            let (id, what, notice) = told(&changes);
            assert_eq!((id, what), ("e1", "closed"));
            assert!(body(notice).contains(end), "{}", body(notice));
        }
        assert_eq!(says(&known, &words("1")), [], "{end}");
    }
}

#[test]
fn who_may_not_answer_is_not_told_of_another_question_that_is_over() {
    let changes = says(&only_for(answered(first()), BEN), &reply_to("$e1", "1"));
    assert_eq!(told(&changes).1, "closed");
}
