//! Agents' sessions, and what was said in them.

use serde_json::json;

use super::{AGENT, NOON, ROOM, changed, closed, insert, post, question};
use crate::clock::Millis;
use crate::desk::{Beginning, begin, session_due};
use crate::elicitation::{Elicitation, Key, State};
use crate::ledger::{Ledger, SoughtSessions};
use crate::session::{Activity, ActivityType, Author, EndReason, Session, Signal, Status};

super::cases![
    a_session_is_found_as_it_was_stored,
    a_session_is_changed_and_its_root_is_left,
    what_has_ended_stays_as_it_is,
    a_session_is_found_by_its_root_in_its_room_alone,
    the_root_of_a_session_that_moved_is_gone_with_its_room,
    an_agents_sessions_are_listed_a_page_at_a_time_newest_first,
    the_living_are_those_that_have_not_ended,
    a_session_is_due_when_the_desk_says_so,
    what_was_said_is_read_in_order_a_page_at_a_time,
    the_first_prompt_is_found_however_late_it_came,
    the_question_of_a_session_is_the_one_that_waits,
    a_direct_room_is_noted_and_replaced,
    a_session_is_watched_while_it_lives,
];

/// A session of [`AGENT`] in [`ROOM`] that began at noon.
pub(in crate::ledger) fn session(id: &str) -> Session {
    begin(
        Beginning {
            id: id.to_owned(),
            agent: AGENT.to_owned(),
            agent_name: "Builder".to_owned(),
            room_id: ROOM.to_owned(),
            title: Some("Lunch".to_owned()),
            user_id: Some("@mira:example.org".to_owned()),
        },
        NOON,
    )
}

pub(super) fn stored(ledger: &mut dyn Ledger, session: Session) -> Session {
    ledger.begin_session(&session).unwrap();
    session
}

/// The session as it is after a change, in the ledger too.
pub(super) fn change(
    ledger: &mut dyn Ledger,
    was: &Session,
    how: impl FnOnce(&mut Session),
) -> Session {
    let mut session = was.clone();
    how(&mut session);
    assert!(ledger.change_session(&session).unwrap());
    session
}

pub(super) fn end(ledger: &mut dyn Ledger, session: &Session) -> Session {
    change(ledger, session, |session| {
        session.status = Status::Complete;
        session.ending = Some(EndReason::Stopped);
        session.ended_at = Some(NOON + 20);
    })
}

pub(super) fn found(ledger: &mut dyn Ledger, id: &str) -> Option<Session> {
    ledger.session(id).unwrap()
}

fn ids(sessions: &[Session]) -> Vec<&str> {
    sessions.iter().map(|session| session.id.as_str()).collect()
}

/// An activity; a prompt by a message of the same name.
pub(super) fn said(id: &str, kind: ActivityType) -> Activity {
    let by_person = kind == ActivityType::Prompt;
    Activity {
        id: id.to_owned(),
        kind,
        body: format!("the words of {id}"),
        signal: by_person.then_some(Signal::Stop),
        signal_metadata: (!by_person).then(|| json!({ "any": ["thing", 1, null] })),
        author: by_person.then(|| Author {
            user_id: "@mira:example.org".to_owned(),
            display_name: Some("Mira".to_owned()),
        }),
        event_id: by_person.then(|| format!("$message_of_{id}")),
        ephemeral: false,
        created_at: NOON,
    }
}

/// A question of a session.
pub(super) fn asked_in(id: &str, activity: &str) -> Elicitation {
    changed(question(AGENT, activity), |asked| {
        asked.question.key.origin = Key::of_session(id).origin;
    })
}

fn a_session_is_found_as_it_was_stored(ledger: &mut dyn Ledger) {
    assert_eq!(found(ledger, "sess_1"), None);
    let one = stored(ledger, session("sess_1"));
    let two = Session {
        title: None,
        user_id: None,
        ..session("sess_2")
    };
    let two = stored(ledger, two);
    assert_eq!(found(ledger, "sess_1"), Some(one));
    assert_eq!(found(ledger, "sess_2"), Some(two));
    assert!(ledger.begin_session(&session("sess_1")).is_err());
}

fn a_session_is_changed_and_its_root_is_left(ledger: &mut dyn Ledger) {
    let began = stored(ledger, session("sess_1"));
    let other = stored(ledger, session("sess_2"));
    ledger.mark_root("sess_1", ROOM, "$root").unwrap();
    // Whoever changes it may have looked before its root was there.
    let mut expected = change(ledger, &began, |session| {
        session.status = Status::AwaitingInput;
        session.doing = Some("stirring".to_owned());
        session.heard = true;
        session.silent = true;
        session.connecting = Some(crate::session::Connecting {
            room_id: "!direct".to_owned(),
            activity: "act_1".to_owned(),
            provider: "GitHub".to_owned(),
        });
        session.updated_at = NOON + 5;
        session.edited_at = NOON + 4;
        session.edit_at = Some(NOON + 9);
    });
    expected.root = Some("$root".to_owned());
    assert_eq!(found(ledger, "sess_1"), Some(expected));
    assert_eq!(found(ledger, "sess_2"), Some(other));
    assert!(!ledger.change_session(&session("sess_3")).unwrap());
    assert_eq!(found(ledger, "sess_3"), None);
}

fn what_has_ended_stays_as_it_is(ledger: &mut dyn Ledger) {
    let began = stored(ledger, session("sess_1"));
    let over = end(ledger, &began);
    for ended_at in [None, Some(NOON + 21)] {
        let revived = Session {
            status: Status::Active,
            ended_at,
            ..over.clone()
        };
        assert!(!ledger.change_session(&revived).unwrap());
    }
    assert_eq!(found(ledger, "sess_1"), Some(over.clone()));
    // What is shown of it may still be noted.
    let shown = change(ledger, &over, |session| session.edited_at = NOON + 30);
    assert_eq!(found(ledger, "sess_1"), Some(shown));
}

fn a_session_is_found_by_its_root_in_its_room_alone(ledger: &mut dyn Ledger) {
    stored(ledger, session("sess_1"));
    stored(ledger, session("sess_2"));
    ledger.mark_root("sess_1", "!elsewhere", "$late").unwrap();
    assert_eq!(found(ledger, "sess_1").unwrap().root, None);
    ledger.mark_root("sess_1", ROOM, "$one").unwrap();
    ledger.mark_root("sess_2", ROOM, "$two").unwrap();
    let by_root = |ledger: &mut dyn Ledger, room_id: &str, root: &str| {
        let found = ledger.session_by_root(room_id, root).unwrap();
        found.map(|session| (session.id, session.root))
    };
    let expected = ("sess_2".to_owned(), Some("$two".to_owned()));
    assert_eq!(by_root(ledger, ROOM, "$two"), Some(expected));
    assert_eq!(by_root(ledger, "!elsewhere", "$two"), None);
    assert_eq!(by_root(ledger, ROOM, "$three"), None);
    assert_eq!(by_root(ledger, ROOM, "$late"), None);
}

fn the_root_of_a_session_that_moved_is_gone_with_its_room(ledger: &mut dyn Ledger) {
    let began = stored(ledger, session("sess_1"));
    ledger.mark_root("sess_1", ROOM, "$root").unwrap();
    let moved = change(ledger, &began, |session| {
        session.room_id = "!next".to_owned();
    });
    assert_eq!(found(ledger, "sess_1"), Some(moved));
    assert_eq!(ledger.session_by_root(ROOM, "$root").unwrap(), None);
    assert_eq!(ledger.living_in(ROOM).unwrap(), []);
    assert_eq!(ids(&ledger.living_in("!next").unwrap()), ["sess_1"]);
    // The old room's answer comes late.
    ledger.mark_root("sess_1", ROOM, "$root").unwrap();
    assert_eq!(found(ledger, "sess_1").unwrap().root, None);
}

fn an_agents_sessions_are_listed_a_page_at_a_time_newest_first(ledger: &mut dyn Ledger) {
    for id in ["a", "b", "c", "d", "e"] {
        stored(ledger, session(id));
    }
    let theirs = Session {
        agent: "agt_9".to_owned(),
        ..session("theirs")
    };
    stored(ledger, theirs);
    for id in ["b", "d"] {
        let session = found(ledger, id).unwrap();
        end(ledger, &session);
    }
    let page = |ledger: &mut dyn Ledger, status, below, limit| {
        let sought = SoughtSessions {
            agent: AGENT.to_owned(),
            status,
            below,
            limit,
        };
        let (sessions, next) = ledger.list_sessions(&sought).unwrap();
        (ids(&sessions).join(" "), next)
    };
    let (first, next) = page(ledger, None, None, 2);
    assert_eq!(first, "e d");
    let (second, next) = page(ledger, None, next, 2);
    assert_eq!(second, "c b");
    assert!(next.is_some());
    let last = page(ledger, None, next, 2);
    assert_eq!(last, ("a".to_owned(), None));
    let exactly = page(ledger, None, None, 5);
    assert_eq!(exactly, ("e d c b a".to_owned(), None));
    let over = page(ledger, Some(Status::Complete), None, 10);
    assert_eq!(over, ("d b".to_owned(), None));
    let none = page(ledger, Some(Status::Stale), None, 10);
    assert_eq!(none, (String::new(), None));
}

fn the_living_are_those_that_have_not_ended(ledger: &mut dyn Ledger) {
    let one = stored(ledger, session("sess_1"));
    let two = stored(ledger, session("sess_2"));
    let elsewhere = Session {
        room_id: "!elsewhere".to_owned(),
        ..session("sess_3")
    };
    stored(ledger, elsewhere);
    let theirs = Session {
        agent: "agt_9".to_owned(),
        ..session("sess_4")
    };
    let theirs = stored(ledger, theirs);
    for status in Status::ALL {
        change(ledger, &two, |session| session.status = status);
        let here = ledger.living_in(ROOM).unwrap();
        assert_eq!(ids(&here), ["sess_1", "sess_2", "sess_4"], "{status:?}");
    }
    assert_eq!(
        ids(&ledger.living_of(AGENT).unwrap()),
        ["sess_1", "sess_2", "sess_3"]
    );
    end(ledger, &one);
    end(ledger, &theirs);
    assert_eq!(ids(&ledger.living_in(ROOM).unwrap()), ["sess_2"]);
    assert_eq!(ids(&ledger.living_of(AGENT).unwrap()), ["sess_2", "sess_3"]);
    assert_eq!(ledger.living_agents().unwrap(), [AGENT]);
    assert_eq!(ledger.living_of("agt_9").unwrap(), []);
}

fn a_session_is_due_when_the_desk_says_so(ledger: &mut dyn Ledger) {
    let due = |ledger: &mut dyn Ledger, at: Millis, limit| {
        let (due, next) = ledger.sessions_due(at, limit).unwrap();
        (ids(&due).join(" "), next)
    };
    assert_eq!(due(ledger, Millis::MAX, 10), (String::new(), None));
    let one = stored(ledger, session("one"));
    let later = Session {
        created_at: NOON + 7,
        ..session("two")
    };
    let two = stored(ledger, later);
    let at = [session_due(&one).unwrap(), session_due(&two).unwrap()];
    assert_eq!(at[1], at[0] + 7);
    assert_eq!(due(ledger, at[0] - 1, 10), (String::new(), Some(at[0])));
    assert_eq!(due(ledger, at[0], 10), ("one".to_owned(), Some(at[1])));
    assert_eq!(due(ledger, at[1], 10), ("one two".to_owned(), None));
    assert_eq!(due(ledger, at[1], 1), ("one".to_owned(), None));
    change(ledger, &one, |session| {
        session.status = Status::AwaitingInput;
    });
    assert_eq!(due(ledger, at[1], 10), ("two".to_owned(), None));
    // An end that is not shown yet is due as well.
    let over = end(ledger, &one);
    change(ledger, &over, |session| session.edit_at = Some(NOON + 3));
    assert_eq!(due(ledger, NOON + 3, 10), ("one".to_owned(), Some(at[1])));
}

fn what_was_said_is_read_in_order_a_page_at_a_time(ledger: &mut dyn Ledger) {
    stored(ledger, session("sess_1"));
    stored(ledger, session("sess_2"));
    let kinds = [
        ActivityType::Prompt,
        ActivityType::Thought,
        ActivityType::Action,
        ActivityType::Elicitation,
        ActivityType::Error,
    ];
    let mut expected = Vec::new();
    for (index, kind) in kinds.into_iter().enumerate() {
        let activity = said(&format!("act_{index}"), kind);
        ledger.record("sess_1", &activity).unwrap();
        let theirs = said(&format!("other_{index}"), kind);
        ledger.record("sess_2", &theirs).unwrap();
        expected.push(activity);
    }
    let (all, next) = ledger.activities("sess_1", 0, 5).unwrap();
    assert_eq!((&all, next), (&expected, None));
    let (first, next) = ledger.activities("sess_1", 0, 3).unwrap();
    assert_eq!(first, expected[..3]);
    let (rest, next) = ledger.activities("sess_1", next.unwrap(), 3).unwrap();
    assert_eq!((&rest[..], next), (&expected[3..], None));
    let none = ledger.activities("sess_3", 0, 3).unwrap();
    assert_eq!(none, (Vec::new(), None));
    assert!(ledger.record("sess_2", &expected[0]).is_err());
}

fn the_first_prompt_is_found_however_late_it_came(ledger: &mut dyn Ledger) {
    stored(ledger, session("sess_1"));
    for number in 0..50 {
        let thought = said(&format!("act_{number}"), ActivityType::Thought);
        ledger.record("sess_1", &thought).unwrap();
    }
    assert_eq!(ledger.first_prompt("sess_1").unwrap(), None);
    let first = said("first", ActivityType::Prompt);
    ledger.record("sess_1", &first).unwrap();
    ledger
        .record("sess_1", &said("second", ActivityType::Prompt))
        .unwrap();
    assert_eq!(ledger.first_prompt("sess_1").unwrap(), Some(first));
    assert_eq!(ledger.first_prompt("sess_2").unwrap(), None);
}

fn the_question_of_a_session_is_the_one_that_waits(ledger: &mut dyn Ledger) {
    insert(ledger, question(AGENT, "an agent's own"));
    insert(ledger, asked_in("sess_10", "act_0"));
    assert_eq!(ledger.question_of("sess_1").unwrap(), None);
    let first = post(ledger, asked_in("sess_1", "act_1"));
    assert_eq!(ledger.question_of("sess_1").unwrap(), Some(first.clone()));
    assert!(
        ledger
            .settle(&closed(&first, State::Superseded, None))
            .unwrap()
    );
    assert_eq!(ledger.question_of("sess_1").unwrap(), None);
    let second = insert(ledger, asked_in("sess_1", "act_2"));
    assert_eq!(ledger.question_of("sess_1").unwrap(), Some(second));
}

fn a_direct_room_is_noted_and_replaced(ledger: &mut dyn Ledger) {
    let room = |ledger: &mut dyn Ledger, user| ledger.direct_room(user).unwrap();
    assert_eq!(room(ledger, "@mira:x.org"), None);
    ledger.set_direct_room("@mira:x.org", "!one").unwrap();
    ledger.set_direct_room("@ben:x.org", "!two").unwrap();
    ledger.set_direct_room("@mira:x.org", "!three").unwrap();
    assert_eq!(room(ledger, "@mira:x.org").as_deref(), Some("!three"));
    assert_eq!(room(ledger, "@ben:x.org").as_deref(), Some("!two"));
}

fn a_session_is_watched_while_it_lives(ledger: &mut dyn Ledger) {
    let one = stored(ledger, session("sess_1"));
    let rooms = |ledger: &mut dyn Ledger| ledger.rooms(NOON).unwrap();
    assert_eq!(rooms(ledger), [(ROOM.to_owned(), true)]);
    end(ledger, &one);
    assert_eq!(rooms(ledger), [(ROOM.to_owned(), false)]);
}
