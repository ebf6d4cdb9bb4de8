//! What is forgotten of sessions: because it was redacted, or because it is old.

use serde_json::json;

use super::sessions::{asked_in, change, end, found, said, session, stored};
use super::{AGENT, NOON, ROOM, changed, closed, draft, insert};
use crate::elicitation::{Key, State};
use crate::ledger::{EventDraft, Ledger, SendDraft, SendKind};
use crate::session::{Activity, ActivityType, Session, Status, event};

super::cases![
    a_message_is_found_by_the_sessions_it_was_said_to,
    a_redacted_prompt_is_forgotten_wherever_it_is_kept,
    a_redacted_title_is_forgotten_wherever_it_is_kept,
    old_sessions_go_with_all_that_is_about_them,
    a_session_that_is_still_needed_stays_however_old,
];

/// Sessions one and two, to both of which a message was said, and what it was to the first.
fn said_twice(ledger: &mut dyn Ledger) -> (Session, Activity) {
    let one = stored(ledger, session("sess_1"));
    let two = Session {
        agent: "agt_9".to_owned(),
        ..session("sess_2")
    };
    let two = stored(ledger, two);
    let secret = said("secret", ActivityType::Prompt);
    let copy = Activity {
        id: "copy".to_owned(),
        ..secret.clone()
    };
    let again = Activity {
        id: "again".to_owned(),
        body: "and as it was edited".to_owned(),
        ..secret.clone()
    };
    for (session, activity) in [(&one, &secret), (&two, &copy), (&one, &again)] {
        ledger.record(&session.id, activity).unwrap();
        let told = EventDraft {
            key: Key::new(session.agent.as_str(), session.id.as_str()),
            event_type: "agent_session.prompted".to_owned(),
            body: event("prompted", session, activity),
            urgent: false,
        };
        ledger.announce(&told, true, NOON).unwrap();
    }
    (one, secret)
}

fn a_message_is_found_by_the_sessions_it_was_said_to(ledger: &mut dyn Ledger) {
    let (one, secret) = said_twice(ledger);
    let found = ledger.prompted_by("$message_of_secret").unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], (one, secret));
    assert_eq!((&*found[1].0.id, &*found[1].1.id), ("sess_2", "copy"));
    assert_eq!(ledger.prompted_by("$other").unwrap(), []);
}

/// What each agent is told, as one text.
fn told(ledger: &mut dyn Ledger) -> String {
    let mut all = String::new();
    for agent in [AGENT, "agt_9"] {
        for event in ledger.events_after(agent, 0, 100).unwrap() {
            all.push_str(&event.body.to_string());
        }
        for delivery in ledger.deliveries_due(agent, NOON, 100).unwrap().0 {
            all.push_str(&delivery.event.body.to_string());
        }
    }
    all
}

fn a_redacted_prompt_is_forgotten_wherever_it_is_kept(ledger: &mut dyn Ledger) {
    said_twice(ledger);
    let other = said("other", ActivityType::Prompt);
    ledger.record("sess_1", &other).unwrap();
    let told_of_other = EventDraft {
        key: Key::new(AGENT, "sess_1"),
        event_type: "agent_session.prompted".to_owned(),
        body: event("prompted", &session("sess_1"), &other),
        urgent: false,
    };
    ledger.announce(&told_of_other, true, NOON).unwrap();
    assert!(!ledger.forget_prompt("$unknown").unwrap());
    assert!(ledger.forget_prompt("$message_of_secret").unwrap());
    let (kept, _) = ledger.activities("sess_1", 0, 10).unwrap();
    let bodies: Vec<&str> = kept.iter().map(|it| it.body.as_str()).collect();
    assert_eq!(bodies, ["", "", "the words of other"]);
    assert_eq!(kept[0].author, other.author);
    let (copy, _) = ledger.activities("sess_2", 0, 10).unwrap();
    assert_eq!(copy[0].body, "");
    let told = told(ledger);
    assert!(!told.contains("the words of secret") && !told.contains("edited"));
    assert!(told.contains("the words of other"));
    // Every event is still one, and says whose prompt it was.
    let events = ledger.events_after("agt_9", 0, 10).unwrap();
    let activity = &events[0].body["agent_activity"];
    assert_eq!(activity["content"], json!({ "type": "prompt", "body": "" }));
    assert_eq!(activity["user"]["user_id"], "@mira:example.org");
}

fn a_redacted_title_is_forgotten_wherever_it_is_kept(ledger: &mut dyn Ledger) {
    let (one, _) = said_twice(ledger);
    insert(ledger, asked_in("sess_1", "act_1"));
    let row = |ledger: &mut dyn Ledger, kind| {
        let draft = SendDraft {
            room_id: ROOM.to_owned(),
            key: Key::of_session("sess_1"),
            also: Vec::new(),
            kind,
            content: json!({ "body": "Lunch" }),
        };
        ledger.send(&draft, NOON).unwrap();
    };
    row(ledger, SendKind::RootEdit);
    row(ledger, SendKind::InThread);
    ledger.forget_title("sess_1").unwrap();
    let asked = ledger.question_of("sess_1").unwrap().unwrap();
    assert_eq!(asked.question.card_title, None);
    let titles = |ledger: &mut dyn Ledger, agent: &str| {
        let events = ledger.events_after(agent, 0, 100).unwrap();
        let titles = events.iter();
        let titles = titles.map(|event| event.body["agent_session"]["title"].clone());
        titles.collect::<Vec<_>>()
    };
    assert_eq!(titles(ledger, AGENT), [json!(null), json!(null)]);
    assert_eq!(titles(ledger, "agt_9"), [json!("Lunch")]);
    let (due, _) = ledger.sendings_due(NOON).unwrap();
    assert_eq!(due[0].draft.kind, SendKind::InThread);
    assert_eq!(found(ledger, "sess_1"), Some(one));
}

fn old_sessions_go_with_all_that_is_about_them(ledger: &mut dyn Ledger) {
    let one = stored(ledger, session("sess_1"));
    let other = stored(ledger, session("sess_2"));
    let key = Key::of_session("sess_1");
    for (id, session) in [("act_1", &one), ("act_2", &other)] {
        let prompt = said(id, ActivityType::Prompt);
        ledger.record(&session.id, &prompt).unwrap();
    }
    let root = SendDraft {
        room_id: ROOM.to_owned(),
        key: key.clone(),
        also: Vec::new(),
        kind: SendKind::Root,
        content: json!({ "body": "root" }),
    };
    ledger.send(&root, NOON).unwrap();
    let (due, _) = ledger.sendings_due(NOON).unwrap();
    assert!(ledger.mark_sent(due[0].seq, "$root").unwrap());
    assert!(
        ledger
            .first_time(&key, "@mira:x.org", "session_over")
            .unwrap()
    );
    end(ledger, &one);
    ledger.prune(NOON).unwrap();
    assert!(found(ledger, "sess_1").is_some());
    assert_eq!(
        ledger.about(ROOM, "$root").unwrap(),
        std::slice::from_ref(&key)
    );
    // The session, what was said in it, its root, that row, and what was said once.
    assert_eq!(ledger.prune(NOON + 1).unwrap(), 5);
    assert_eq!(found(ledger, "sess_1"), None);
    assert_eq!(ledger.about(ROOM, "$root").unwrap(), []);
    assert_eq!(
        ledger.activities("sess_1", 0, 10).unwrap(),
        (Vec::new(), None)
    );
    assert_eq!(found(ledger, "sess_2"), Some(other));
    assert_eq!(ledger.activities("sess_2", 0, 10).unwrap().0.len(), 1);
    assert!(
        ledger
            .first_time(&key, "@mira:x.org", "session_over")
            .unwrap()
    );
}

fn a_session_that_is_still_needed_stays_however_old(ledger: &mut dyn Ledger) {
    let old = NOON + 1_000_000;
    for (status, stays) in [
        (Status::Active, true),
        (Status::AwaitingInput, true),
        (Status::Stopping, true),
        (Status::Complete, false),
        (Status::Error, false),
        (Status::Stale, false),
    ] {
        let began = stored(ledger, session(status.word()));
        change(ledger, &began, |session| session.status = status);
        ledger.prune(old).unwrap();
        assert_eq!(found(ledger, status.word()).is_some(), stays, "{status:?}");
    }
    // One whose question is open, and one whose last words are not in the room yet.
    let asking = stored(ledger, session("asking"));
    let asked = insert(ledger, asked_in("asking", "act_1"));
    change(ledger, &asking, |session| session.status = Status::Stale);
    let unsaid = stored(ledger, session("unsaid"));
    end(ledger, &unsaid);
    let last = changed(asked.clone(), |it| {
        it.question.key = Key::of_session("unsaid");
    });
    ledger
        .send(&draft(&last, SendKind::RootEdit, "over"), NOON)
        .unwrap();
    ledger.prune(old).unwrap();
    assert!(found(ledger, "asking").is_some() && found(ledger, "unsaid").is_some());
    assert!(
        ledger
            .settle(&closed(&asked, State::Cancelled, None))
            .unwrap()
    );
    let (due, _) = ledger.sendings_due(NOON).unwrap();
    assert!(ledger.mark_sent(due[0].seq, "$last").unwrap());
    ledger.prune(old).unwrap();
    assert_eq!(found(ledger, "asking"), None);
    assert_eq!(found(ledger, "unsaid"), None);
}
