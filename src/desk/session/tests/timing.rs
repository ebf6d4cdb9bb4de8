//! What time does.

use super::*;

fn edits(play: &Play) -> usize {
    let edits = play.kinds().into_iter();
    edits.filter(|&kind| kind == SendKind::RootEdit).count()
}

/// What the root says in the end.
fn last_shown(play: &Play) -> Value {
    let last = play
        .sent
        .iter()
        .rfind(|sent| sent.kind == SendKind::RootEdit);
    last.expect("it was edited").content.clone()
}

#[test]
fn only_an_active_session_goes_stale() {
    for (kind, status) in TABLE {
        let mut play = Play::begin();
        play.does(kind);
        play.wait(STALE_AFTER - 1);
        assert_eq!(play.status(), status, "{kind}");
        play.wait(1);
        let expected = if status == Status::Active {
            Status::Stale
        } else {
            status
        };
        assert_eq!(play.status(), expected, "{kind}");
        assert_eq!(play.told, [], "{kind}");
        assert!(!play.session.has_ended());
    }
}

/// "any activity revives it"
#[test]
fn any_activity_revives_a_stale_session() {
    for (kind, status) in TABLE {
        let mut play = Play::begin();
        play.wait(STALE_AFTER);
        assert_eq!(play.status(), Status::Stale);
        play.does(kind);
        assert_eq!(play.status(), status, "{kind}");
    }
}

#[test]
fn every_activity_begins_the_half_hour_anew() {
    let mut play = Play::begin();
    play.does("thought");
    for _ in 0..3 {
        play.wait(STALE_AFTER - 1);
        play.does("ephemeral");
    }
    play.wait(STALE_AFTER - 1);
    play.says("well?");
    play.wait(STALE_AFTER - 1);
    assert_eq!(play.status(), Status::Active);
}

#[test]
fn a_first_word_later_than_ten_seconds_is_missed_and_said_once() {
    let mut play = Play::begin();
    play.fresh().wait(10 * SECOND - 1);
    assert_eq!(edits(&play), 0);
    play.wait(1);
    assert!(play.session.silent);
    assert_eq!(edits(&play), 1);
    play.wait(MINUTE);
    assert_eq!(edits(&play), 1);
    play.fresh().does("thought");
    assert!(!play.session.silent);
    play.wait(10 * MINUTE);
    assert!(!play.session.silent);
}

#[test]
fn a_first_word_in_time_is_not_missed() {
    for (kind, _) in TABLE {
        let mut play = Play::begin();
        play.wait(10 * SECOND - 1);
        play.does(kind);
        play.wait(MINUTE);
        assert!(!play.session.silent, "{kind}");
    }
}

#[test]
fn a_prompt_is_no_first_word() {
    let mut play = Play::begin();
    play.wait(9 * SECOND);
    play.says("hello?");
    play.wait(SECOND);
    assert!(play.session.silent);
}

#[test]
fn a_chatty_agent_is_one_edit_in_two_seconds() {
    let mut play = Play::begin();
    play.fresh();
    for number in 0..100 {
        let said = json!({ "content": { "type": "action", "body": format!("step {number}") } });
        play.act(&said).unwrap();
        play.wait(100);
    }
    // Ten seconds: after 2, 4, 6, 8 and 10.
    assert_eq!(edits(&play), 5);
    play.wait(BETWEEN_EDITS);
    assert_eq!(
        last_shown(&play),
        prose::session_edit(&shown(&play.session))
    );
    assert_eq!(play.session.doing.as_deref(), Some("step 99"));
    let before = edits(&play);
    play.wait(MINUTE);
    assert_eq!(edits(&play), before);
}

#[test]
fn what_changes_after_a_quiet_while_is_shown_at_once() {
    let mut play = Play::begin();
    play.wait(BETWEEN_EDITS);
    play.fresh().does("action");
    assert_eq!(edits(&play), 1);
    assert_eq!(
        last_shown(&play),
        prose::session_edit(&shown(&play.session))
    );
}

#[test]
fn the_end_is_shown_though_nothing_happens_after_it() {
    let mut play = Play::begin();
    play.wait(BETWEEN_EDITS);
    play.does("action");
    play.delete();
    play.fresh();
    assert_eq!(session_due(&play.session), Some(play.now + BETWEEN_EDITS));
    play.wait(BETWEEN_EDITS);
    assert_eq!(
        last_shown(&play),
        prose::session_edit(&shown(&play.session))
    );
    assert_eq!(session_due(&play.session), None);
}

#[test]
fn a_clock_that_is_set_back_holds_no_edit_up() {
    let mut play = Play::begin();
    play.wait(BETWEEN_EDITS);
    play.does("action");
    play.does("thought");
    play.now = NOON - MINUTE;
    play.fresh().does("action");
    assert_eq!(edits(&play), 1);
}

#[test]
fn a_process_that_was_away_does_everything_at_once() {
    let mut play = Play::begin();
    play.now += STALE_AFTER * 3;
    play.fresh().tick();
    assert_eq!(play.status(), Status::Stale);
    assert_eq!(edits(&play), 1);
    assert_eq!(session_due(&play.session), None);
    let mut play = Play::begin();
    play.stop(EndReason::Stopped);
    play.now += STALE_AFTER;
    play.tick();
    assert_eq!(play.session.end_reason(), Some(EndReason::Stopped));
    assert_eq!(play.session.ended_at, Some(play.now));
}
