//! What holds whatever happens.

use proptest::prelude::*;

use super::*;

/// Something that happens to a session.
#[derive(Debug, Clone)]
enum Happening {
    Acts(usize),
    Says,
    Stops(EndReason),
    Deletes,
    Waits(Millis),
    /// The process is away: nothing is done in time.
    Sleeps(Millis),
}

fn happening() -> impl Strategy<Value = Happening> {
    let span = prop_oneof![
        0..3 * SECOND,
        0..12 * SECOND,
        0..2 * MINUTE,
        0..STALE_AFTER * 2
    ];
    prop_oneof![
        10 => (0..TABLE.len()).prop_map(Happening::Acts),
        3 => Just(Happening::Says),
        2 => prop_oneof![Just(EndReason::Stopped), Just(EndReason::Undelegated)]
            .prop_map(Happening::Stops),
        1 => Just(Happening::Deletes),
        10 => span.clone().prop_map(Happening::Waits),
        2 => span.prop_map(Happening::Sleeps),
    ]
}

/// What is due is done when it is due, and then no more.
fn due_and_tick_agree(play: &Play) {
    let Some(due) = session_due(&play.session) else {
        assert_eq!(session_tick(&play.session, Millis::MAX / 2), []);
        return;
    };
    if due > play.now {
        assert_eq!(session_tick(&play.session, due - 1), [], "nothing early");
    }
    let mut later = play.clone();
    later.now = due.max(play.now);
    let changes = session_tick(&later.session, later.now);
    assert_ne!(changes, [], "what is due is done");
    later.carry_out(changes);
    let next = session_due(&later.session);
    assert!(next.is_none_or(|next| next > later.now), "{next:?}");
}

fn keeps_its_word(play: &Play) {
    let session = &play.session;
    assert_eq!(
        session.has_ended(),
        session.end_reason().is_some_and(|reason| {
            session.status == Status::Complete || reason != EndReason::Undelegated
        })
    );
    if session.has_ended() {
        assert_eq!(session.status, Status::Complete);
        assert_eq!(session.doing, None);
        assert_eq!(play.open, None);
        assert_eq!(session.connecting, None);
    }
    assert_eq!(
        session.ending.is_some(),
        session.has_ended() || session.status == Status::Stopping
    );
    if session.status == Status::Stopping {
        assert_eq!((&play.open, &session.doing), (&None, &None));
    }
    assert!(!session.silent || !session.heard);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_session_keeps_its_word(happenings in prop::collection::vec(happening(), 1..40)) {
        let mut play = Play::begin();
        // When the root was written, and each time it was edited.
        let mut written = vec![NOON];
        let (mut links, mut taken_back) = (0, 0);
        let mut expected = Status::Active;
        for happening in happenings {
            let over = play.session.has_ended();
            let stopping = play.status() == Status::Stopping;
            play.fresh();
            match happening {
                Happening::Acts(index) => {
                    let (kind, status) = TABLE[index];
                    let asks = status == Status::AwaitingInput;
                    let said = play.act(&of(kind));
                    let refusal = match (over, stopping) {
                        (true, _) => Some(ActivityRefusal::Ended),
                        (_, true) if asks => Some(ActivityRefusal::Stopping),
                        _ => None,
                    };
                    prop_assert_eq!(said.err(), refusal);
                    match (refusal, stopping, status) {
                        (Some(_), ..) | (None, true, Status::Active) => {}
                        (None, true, _) => expected = Status::Complete,
                        (None, false, status) => expected = status,
                    }
                    prop_assert!(play.told.is_empty());
                }
                Happening::Says => {
                    play.says("well?");
                    prop_assert_eq!(play.told.len(), usize::from(!over));
                    if !over && !stopping {
                        expected = Status::Active;
                    }
                }
                Happening::Stops(reason) => {
                    play.stop(reason);
                    let first = !over && !stopping;
                    prop_assert_eq!(play.told.iter().filter(|told| told.urgent).count(), usize::from(first));
                    if first {
                        expected = Status::Stopping;
                    }
                }
                Happening::Deletes => {
                    play.delete();
                    prop_assert!(play.told.is_empty());
                    if !over {
                        expected = Status::Complete;
                    }
                }
                Happening::Waits(span) | Happening::Sleeps(span) => {
                    let until = play.now + span;
                    let silent_since = play.session.updated_at;
                    if matches!(happening, Happening::Sleeps(_)) {
                        play.now = until;
                    }
                    while let Some(due) = session_due(&play.session).filter(|&due| due <= until) {
                        play.now = due.max(play.now);
                        let before = play.sent.len();
                        play.tick();
                        if play.sent[before..].iter().any(|sent| sent.kind == SendKind::RootEdit) {
                            written.push(play.now);
                        }
                    }
                    play.sent.retain(|sent| sent.kind != SendKind::RootEdit);
                    play.now = until;
                    expected = match expected {
                        Status::Active if until - silent_since >= STALE_AFTER => Status::Stale,
                        Status::Stopping if until - silent_since >= MINUTE => Status::Complete,
                        expected => expected,
                    };
                    prop_assert!(play.told.is_empty());
                }
            }
            for kind in play.kinds() {
                match kind {
                    SendKind::RootEdit => written.push(play.now),
                    SendKind::Connect => links += 1,
                    SendKind::ConnectOver => taken_back += 1,
                    _ => {}
                }
            }
            prop_assert_eq!(links - taken_back, i32::from(play.session.connecting.is_some()));
            prop_assert_eq!(play.status(), expected);
            keeps_its_word(&play);
            due_and_tick_agree(&play);
        }
        prop_assert!(written.windows(2).all(|pair| pair[1] - pair[0] >= BETWEEN_EDITS), "{:?}", written);
        // What it came to is shown in the end.
        prop_assert!(play.session.edit_at.is_none_or(|at| at - play.now <= BETWEEN_EDITS));
    }

    #[test]
    fn the_last_state_is_always_shown(happenings in prop::collection::vec(happening(), 1..20)) {
        let mut play = Play::begin();
        play.fresh();
        let mut on_screen = prose::session_root(&shown(&play.session));
        let mut look = |play: &mut Play| {
            for sent in play.sent.drain(..).filter(|sent| sent.kind == SendKind::RootEdit) {
                on_screen = sent.content["m.new_content"].clone();
            }
            on_screen.clone()
        };
        for happening in happenings {
            match happening {
                Happening::Acts(index) => drop(play.act(&of(TABLE[index].0))),
                Happening::Says => play.says("well?"),
                Happening::Stops(reason) => play.stop(reason),
                Happening::Deletes => play.delete(),
                Happening::Waits(span) => play.wait(span),
                Happening::Sleeps(span) => play.now += span,
            }
            look(&mut play);
        }
        play.wait(BETWEEN_EDITS);
        let shown_last = look(&mut play);
        prop_assert_eq!(shown_last, prose::session_root(&shown(&play.session)));
    }
}
