//! A session is stopped, taken away, removed.

use super::*;

const REASONS: [EndReason; 2] = [EndReason::Stopped, EndReason::Undelegated];

fn refusal(play: &mut Play, kind: &str) -> Option<ActivityRefusal> {
    play.act(&of(kind)).err()
}

/// "agent_activity.signal === "stop": read the intent from the field."
#[test]
fn a_stop_goes_out_ahead_with_its_signal_and_the_session_is_stopping() {
    for (kind, _) in TABLE {
        let mut play = Play::begin();
        play.does(kind);
        play.fresh().stop(EndReason::Stopped);
        assert_eq!(play.status(), Status::Stopping, "after {kind}");
        assert_eq!(
            play.heard(),
            [("agent_session.prompted", "!stop", Some("stop"))]
        );
        assert!(play.told[0].urgent);
        assert_eq!(play.told[0].key, Key::new("scout", "sess_1"));
        assert_eq!(play.told[0].body["agent_session"]["status"], "stopping");
        assert_eq!(play.said.len(), 1);
        assert_eq!(play.open, None, "what it asked is cancelled");
        assert!(play.kinds().contains(&SendKind::Reaction));
    }
}

/// "with end_reason: undelegated on the session"
#[test]
fn only_what_is_taken_away_says_so_before_it_ends() {
    for (reason, before) in [
        (EndReason::Stopped, None),
        (EndReason::Undelegated, Some(EndReason::Undelegated)),
    ] {
        let mut play = Play::begin();
        play.stop(reason);
        assert_eq!(play.session.end_reason(), before);
        let told = &play.told[0].body["agent_session"]["end_reason"];
        assert_eq!(told, &json!(before.map(EndReason::word)));
        play.does("response");
        assert_eq!(play.session.end_reason(), Some(reason));
    }
}

#[test]
fn a_second_stop_changes_nothing() {
    let mut play = Play::begin();
    play.stop(EndReason::Stopped);
    let before = play.session.clone();
    play.now += SECOND;
    play.fresh().stop(EndReason::Undelegated);
    assert_eq!(play.session, before);
    assert_eq!(play.told, []);
    assert_eq!(play.sent, []);
}

/// "Your final activity ends the session as complete with end_reason."
#[test]
fn the_last_word_ends_it_as_complete_with_the_reason() {
    for reason in REASONS {
        for kind in ["response", "error"] {
            let mut play = Play::begin();
            play.stop(reason);
            play.now += SECOND;
            play.fresh().does(kind);
            assert_eq!(play.status(), Status::Complete);
            assert_eq!(play.session.end_reason(), Some(reason));
            assert_eq!(play.session.ended_at, Some(NOON + SECOND));
            assert!(play.kinds().contains(&SendKind::InThread));
        }
    }
}

#[test]
fn what_else_an_agent_does_while_it_is_to_stop_is_taken_and_not_shown() {
    let mut play = Play::begin();
    play.stop(EndReason::Stopped);
    play.wait(3 * SECOND);
    for kind in ["thought", "action", "ephemeral"] {
        play.fresh().does(kind);
        assert_eq!(play.status(), Status::Stopping);
        assert_eq!(play.session.doing, None);
        assert_eq!(play.kinds(), [], "{kind}");
        assert_eq!(play.said.len(), usize::from(kind != "ephemeral"));
    }
}

#[test]
fn a_question_while_it_is_to_stop_is_refused() {
    let mut play = Play::begin();
    play.stop(EndReason::Stopped);
    let before = play.session.clone();
    for kind in ["elicitation", "select", "auth"] {
        assert_eq!(refusal(&mut play, kind), Some(ActivityRefusal::Stopping));
    }
    assert_eq!(play.session, before);
}

/// "If no activity arrives within 60 seconds, it is ended anyway."
#[test]
fn a_minute_without_activity_ends_it() {
    for reason in REASONS {
        let mut play = Play::begin();
        play.stop(reason);
        play.wait(MINUTE - 1);
        assert_eq!(play.status(), Status::Stopping);
        play.wait(1);
        assert_eq!(play.status(), Status::Complete);
        assert_eq!(play.session.end_reason(), Some(reason));
        assert_eq!(play.session.ended_at, Some(NOON + MINUTE));
    }
}

/// "A non-final activity while stopping only postpones the 60 s."
#[test]
fn an_activity_postpones_the_end_by_a_minute_from_then() {
    for kind in ["thought", "action", "ephemeral"] {
        let mut play = Play::begin();
        play.stop(EndReason::Stopped);
        play.wait(50 * SECOND);
        play.does(kind);
        play.wait(MINUTE - 1);
        assert_eq!(play.status(), Status::Stopping, "{kind}");
        play.wait(1);
        assert_eq!(play.session.ended_at, Some(NOON + 110 * SECOND));
    }
}

#[test]
fn a_prompt_while_it_is_to_stop_is_told_and_stops_nothing() {
    let mut play = Play::begin();
    play.stop(EndReason::Stopped);
    play.fresh().says("leave the branch as it is");
    assert_eq!(play.status(), Status::Stopping);
    assert_eq!(
        play.heard(),
        [("agent_session.prompted", "leave the branch as it is", None)]
    );
    assert!(!play.told[0].urgent);
}

/// "without stop, and at once"
#[test]
fn what_is_deleted_is_over_at_once_and_nobody_is_told() {
    for kind in ["thought", "select", "auth", "response"] {
        let mut play = Play::begin();
        play.does(kind);
        play.fresh().delete();
        assert_eq!(play.status(), Status::Complete);
        assert_eq!(play.session.end_reason(), Some(EndReason::Deleted));
        assert_eq!(play.session.ended_at, Some(NOON));
        assert_eq!(play.told, []);
        assert_eq!(play.said, []);
        assert_eq!(play.open, None);
    }
}

#[test]
fn what_is_to_stop_can_be_deleted() {
    let mut play = Play::begin();
    play.stop(EndReason::Undelegated);
    play.delete();
    assert_eq!(play.session.end_reason(), Some(EndReason::Deleted));
}

/// "After that, writes are answered 409 SESSION_ENDED."
#[test]
fn nothing_is_taken_after_the_end() {
    type End = fn(&mut Play);
    let ends: [End; 4] = [
        |play| {
            play.stop(EndReason::Stopped);
            play.does("response");
        },
        |play| {
            play.stop(EndReason::Undelegated);
            play.does("error");
        },
        |play| {
            play.stop(EndReason::Stopped);
            play.wait(MINUTE);
        },
        Play::delete,
    ];
    for end in ends {
        let mut play = Play::begin();
        end(&mut play);
        play.wait(MINUTE);
        let before = play.session.clone();
        for (kind, _) in TABLE {
            assert_eq!(refusal(&mut play, kind), Some(ActivityRefusal::Ended));
        }
        play.fresh().says("one more thing");
        play.stop(EndReason::Undelegated);
        play.delete();
        play.wait(STALE_AFTER);
        assert_eq!(play.session, before);
        assert_eq!(play.told, []);
        assert_eq!(play.said, []);
        assert_eq!(play.sent, []);
        // Whoever still speaks to it is told, under one word: so only the first time.
        let over = ("@mira:x.org".to_owned(), "session_over".to_owned());
        assert_eq!(play.notices, [over.clone(), over]);
    }
}

#[test]
fn complete_and_failed_are_no_end() {
    for kind in ["response", "error"] {
        let mut play = Play::begin();
        play.does(kind);
        assert_eq!(play.session.end_reason(), None);
        assert_eq!(play.session.ended_at, None);
        play.wait(STALE_AFTER);
        play.does("thought");
        assert_eq!(play.status(), Status::Active);
        play.does(kind);
        play.stop(EndReason::Stopped);
        assert_eq!(play.status(), Status::Stopping);
    }
}
