//! Replies to the cards of other carriers: read by the same rules, and nothing is said unless the
//! configuration wants it.

use super::*;

const HUB: &str = "@hub:x.org";

/// The first question, as another carrier asked it.
fn carried(routed_to: Option<&str>) -> Known {
    let known = with(first(), |elicitation| {
        let question = &mut elicitation.question;
        question.key = Key::of_carrier(HUB, "e1");
        question.routed_to = routed_to.map(str::to_owned);
    });
    Known {
        manners: Manners {
            notices: false,
            reacts: false,
        },
        ..known
    }
}

#[test]
fn an_answer_goes_to_the_agent_it_is_routed_to_and_leaves_no_trace_in_the_room() {
    let changes = says(&carried(Some("builder")), &words("2"));
    let [
        Change::Close {
            closed,
            edit,
            event,
        },
    ] = changes.as_slice()
    else {
        panic!("{changes:?}");
    };
    assert_eq!(
        closed.answer.as_ref().unwrap().option.as_ref().unwrap().id,
        "wait"
    );
    assert_eq!(*edit, None, "the card is not ours");
    let event = event.as_ref().unwrap();
    assert_eq!(event.key, Key::new("builder", "e1"));
    assert_eq!(event.event_type, "elicitation.answered");
    assert_eq!(event.body["source"], "carrier");
    assert_eq!(event.body["answer"]["option"]["id"], "wait");
}

#[test]
fn an_answer_that_is_only_observed_is_told_to_nobody() {
    let changes = says(&carried(None), &words("2"));
    let [
        Change::Close {
            closed,
            edit: None,
            event: None,
        },
    ] = changes.as_slice()
    else {
        panic!("{changes:?}");
    };
    assert_eq!(closed.state, State::Answered);
}

#[test]
fn a_tick_is_put_where_the_configuration_wants_it() {
    let mut known = carried(Some("builder"));
    known.manners.reacts = true;
    let changes = says(&known, &words("2"));
    let [Change::Close { .. }, Change::Send(tick)] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(tick.kind, SendKind::Reaction);
}

#[test]
fn what_chooses_nothing_is_answered_only_where_the_configuration_wants_it() {
    let reply = Said {
        in_reply_to: Some("$e1".to_owned()),
        ..words("hm?")
    };
    let mut known = carried(Some("builder"));
    assert_eq!(says(&known, &reply), []);
    let over = with(known.clone(), |elicitation| {
        elicitation.state = State::Cancelled;
        elicitation.closed_at = Some(NOW - 60_000);
    });
    assert_eq!(says(&over, &reply), []);
    assert_eq!(says(&only_for(known.clone(), &["@ben:x.org"]), &reply), []);
    known.manners.notices = true;
    assert!(matches!(
        says(&known, &reply).as_slice(),
        [Change::SayOnce { .. }]
    ));
}

#[test]
fn which_of_two_is_meant_is_asked_as_soon_as_one_of_them_is_ours() {
    let ours = second();
    let both = [carried(Some("builder")), ours];
    let read = |known: &[Known]| judge_all(known, &mira("$m1"), &words("1"));
    let changes = read(&both);
    let [Change::SayOnce { notice, .. }] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(notice.key, Key::new("builder", "e2"));
    let other = with(carried(None), |elicitation| {
        elicitation.question.key.id = "e7".to_owned();
        elicitation.tag = "q7".to_owned();
    });
    assert_eq!(read(&[carried(Some("builder")), other]), []);
}

#[test]
fn a_correction_is_told_to_the_agent_and_nothing_is_edited() {
    let known = carried(Some("builder"));
    let changes = says(&known, &words("2"));
    let [Change::Close { closed, .. }] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    let answered = closed.clone();
    let changes = answer_redacted(&answered, &mira("$r1"), NOW);
    let [Change::ForgetText(key), Change::Announce(event)] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(*key, Key::of_carrier(HUB, "e1"));
    assert_eq!(event.key, Key::new("builder", "e1"));
}
