//! What follows from what happens in a session.

mod asking;
mod ending;
mod properties;
mod timing;

use serde_json::json;

use super::timing::STALE_AFTER;
use super::*;
use crate::contract::signals::Asks;
use crate::ledger::{EventDraft, SendDraft};

const ROOM: &str = "!deploys:x.org";
const ROOT: &str = "$root";
const NOON: Millis = 1_796_047_500_000;
const SECOND: Millis = 1_000;
const MINUTE: Millis = 60 * SECOND;

/// A session as the ledger would keep it, and the moment.
#[derive(Debug, Clone)]
struct Play {
    session: Session,
    open: Option<Elicitation>,
    said: Vec<Activity>,
    sent: Vec<SendDraft>,
    told: Vec<EventDraft>,
    notices: Vec<(String, String)>,
    now: Millis,
    count: u32,
}

impl Play {
    /// It has just begun, without a word, and its root is in the room.
    fn begin() -> Self {
        let session = begin(
            Beginning {
                id: "sess_1".to_owned(),
                agent: "scout".to_owned(),
                agent_name: "Scout".to_owned(),
                room_id: ROOM.to_owned(),
                title: Some("The flaky test".to_owned()),
                user_id: None,
            },
            NOON,
        );
        let mut play = Self {
            session: session.clone(),
            open: None,
            said: Vec::new(),
            sent: Vec::new(),
            told: Vec::new(),
            notices: Vec::new(),
            now: NOON,
            count: 0,
        };
        play.carry_out(begun(&session, None, true, None));
        play.session.root = Some(ROOT.to_owned());
        play
    }

    /// Does what the ledger does with a decision.
    fn carry_out(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Begin(session) => self.session = *session,
                Change::Session(session) => {
                    assert!(!self.session.has_ended() || session.ended_at == self.session.ended_at);
                    self.session = *session;
                }
                Change::Record {
                    session_id,
                    activity,
                } => {
                    assert_eq!(session_id, "sess_1");
                    self.said.push(*activity);
                }
                Change::Ask { elicitation, card } => {
                    assert_eq!(self.open, None, "one question at a time");
                    self.open = Some(*elicitation);
                    self.sent.push(card);
                }
                Change::Close { closed, event, .. } => {
                    assert_eq!(
                        event, None,
                        "the agent hears of it as a prompt, or not at all"
                    );
                    let open = self.open.take().expect("only what is open is closed");
                    assert_eq!(closed.key(), open.key());
                }
                Change::Send(draft) => self.sent.push(draft),
                Change::Announce(event) => self.told.push(event),
                Change::SayOnce { user_id, what, .. } => self.notices.push((user_id, what)),
                other => panic!("{other:?} is nothing that a session does"),
            }
        }
    }

    /// What comes of this, and nothing before it.
    fn fresh(&mut self) -> &mut Self {
        self.sent.clear();
        self.told.clear();
        self.said.clear();
        self
    }

    fn id(&mut self) -> String {
        self.count += 1;
        format!("act_{}", self.count)
    }

    fn act(&mut self, said: &Value) -> Result<Activity, ActivityRefusal> {
        let said = signals::Activity::read(said).unwrap();
        let connect = matches!(said.asks, Asks::Auth(_)).then(|| "!direct:x.org".to_owned());
        let place = QuestionPlace {
            tag: "q1".to_owned(),
            others_open: false,
        };
        let id = self.id();
        let open = self.open.clone();
        let (activity, changes) = acted(
            &self.session,
            &said,
            open.as_ref(),
            connect,
            place,
            id,
            self.now,
        )?;
        self.carry_out(changes);
        Ok(activity)
    }

    /// The agent does something that is taken.
    fn does(&mut self, kind: &str) -> Activity {
        self.act(&of(kind)).expect("it is taken")
    }

    fn says(&mut self, body: &str) {
        let id = self.id();
        let prompt = prompt(body);
        let changes = prompted(&self.session, &prompt, self.open.as_ref(), id, self.now);
        self.carry_out(changes);
    }

    fn stop(&mut self, reason: EndReason) {
        let id = self.id();
        let changes = stopped(
            &self.session,
            &prompt("!stop"),
            reason,
            self.open.as_ref(),
            id,
            self.now,
        );
        self.carry_out(changes);
    }

    fn delete(&mut self) {
        let changes = deleted(&self.session, self.open.as_ref(), self.now);
        self.carry_out(changes);
    }

    fn tick(&mut self) {
        let changes = session_tick(&self.session, self.now);
        self.carry_out(changes);
    }

    /// Time passes, and everything is done when it is due.
    fn wait(&mut self, span: Millis) {
        let until = self.now + span;
        while let Some(due) = session_due(&self.session).filter(|&due| due <= until) {
            self.now = due.max(self.now);
            self.tick();
        }
        self.now = until;
    }

    fn status(&self) -> Status {
        self.session.status
    }

    fn kinds(&self) -> Vec<SendKind> {
        self.sent.iter().map(|draft| draft.kind).collect()
    }

    /// The actions and signals that the agent was told of.
    fn heard(&self) -> Vec<(&str, &str, Option<&str>)> {
        self.told
            .iter()
            .map(|event| {
                let activity = &event.body["agent_activity"];
                (
                    event.event_type.as_str(),
                    activity["content"]["body"].as_str().unwrap(),
                    activity
                        .get("signal")
                        .map(|signal| signal.as_str().unwrap()),
                )
            })
            .collect()
    }
}

fn prompt(body: &str) -> Prompt {
    Prompt {
        session_id: "sess_1".to_owned(),
        body: body.to_owned(),
        author: Author {
            user_id: "@mira:x.org".to_owned(),
            display_name: Some("Mira".to_owned()),
        },
        room_id: ROOM.to_owned(),
        event_id: "$said".to_owned(),
        thread: Some(ROOT.to_owned()),
        answer: None,
    }
}

/// An activity of a kind, with words of its own.
fn of(kind: &str) -> Value {
    match kind {
        "select" => json!({
            "content": { "type": "elicitation", "body": "Which environment?" },
            "signal": "select",
            "signal_metadata": { "options": [
                { "value": "staging", "label": "Staging" },
                { "value": "production" },
            ] },
        }),
        "auth" => json!({
            "content": { "type": "elicitation", "body": "I need access." },
            "signal": "auth",
            "signal_metadata": {
                "url": "https://scout.x.org/connect",
                "user_id": "@mira:x.org",
                "provider_name": "GitHub",
            },
        }),
        "ephemeral" => json!({
            "content": { "type": "thought", "body": "hmm" },
            "ephemeral": true,
        }),
        kind => json!({ "content": { "type": kind, "body": format!("a {kind}") } }),
    }
}

/// The table of what the status is after each kind.
const TABLE: [(&str, Status); 8] = [
    ("thought", Status::Active),
    ("ephemeral", Status::Active),
    ("action", Status::Active),
    ("elicitation", Status::AwaitingInput),
    ("select", Status::AwaitingInput),
    ("auth", Status::AwaitingInput),
    ("response", Status::Complete),
    ("error", Status::Error),
];

#[test]
fn a_session_begins_active_with_its_root_and_nothing_else() {
    let play = Play::begin();
    assert_eq!(play.status(), Status::Active);
    assert_eq!(play.session.end_reason(), None);
    assert_eq!(play.kinds(), [SendKind::Root]);
    assert_eq!(play.sent[0].room_id, ROOM);
    assert_eq!(play.sent[0].key, Key::of_session("sess_1"));
    assert_eq!(play.told, []);
    assert_eq!(play.said, []);
}

#[test]
fn what_a_person_begins_the_agent_hears_of_and_what_it_began_itself_it_does_not() {
    let session = Play::begin().session;
    let first = prompt_of("act_0".to_owned(), &prompt("look at it"), None, NOON);
    for (tell, heard) in [
        (true, vec![("agent_session.created", "look at it", None)]),
        (false, vec![]),
    ] {
        let mut play = Play::begin();
        play.fresh()
            .carry_out(begun(&session, Some(first.clone()), tell, Some("$asked")));
        assert_eq!(play.heard(), heard);
        assert_eq!(play.said, std::slice::from_ref(&first));
        let relation = &play.sent[0].content["m.relates_to"];
        assert_eq!(
            relation,
            &json!({ "m.in_reply_to": { "event_id": "$asked" } })
        );
    }
}

/// "Status follows the latest activity."
#[test]
fn the_status_follows_the_latest_activity_whatever_was_before() {
    for (before, _) in TABLE {
        for (kind, status) in TABLE {
            let mut play = Play::begin();
            play.does(before);
            play.now += 1;
            play.does(kind);
            assert_eq!(play.status(), status, "{kind} after {before}");
            assert_eq!(play.session.updated_at, NOON + 1);
            assert_eq!(play.session.end_reason(), None);
            assert!(!play.session.has_ended());
            assert_eq!(play.told, [], "an agent does not hear of itself");
        }
    }
}

#[test]
fn a_prompt_makes_every_session_active_that_is_not_to_stop() {
    for (kind, _) in TABLE {
        let mut play = Play::begin();
        play.does(kind);
        play.fresh().says("go on");
        assert_eq!(play.status(), Status::Active, "after {kind}");
        assert_eq!(play.heard(), [("agent_session.prompted", "go on", None)]);
        assert_eq!(play.told[0].body["agent_session"]["status"], "active");
        assert!(!play.told[0].urgent);
        assert_eq!(play.said.len(), 1);
    }
    let mut stale = Play::begin();
    stale.wait(STALE_AFTER);
    assert_eq!(stale.status(), Status::Stale);
    stale.says("are you there?");
    assert_eq!(stale.status(), Status::Active);
}

#[test]
fn an_activity_is_given_back_and_kept_as_it_came() {
    let mut play = Play::begin();
    let asked = play.does("select");
    assert_eq!(play.said, std::slice::from_ref(&asked));
    assert_eq!(
        crate::session::activity(&asked),
        json!({
            "id": "act_1",
            "content": { "type": "elicitation", "body": "Which environment?" },
            "signal": "select",
            "signal_metadata": of("select")["signal_metadata"],
            "created_at": crate::elicitation::timestamp(NOON),
        })
    );
}

#[test]
fn an_ephemeral_activity_is_seen_and_not_kept() {
    let mut play = Play::begin();
    play.does("ephemeral");
    assert_eq!(play.said, []);
    assert_eq!(play.session.doing.as_deref(), Some("hmm"));
    play.does("action");
    assert_eq!(play.session.doing.as_deref(), Some("a action"));
    assert_eq!(play.said.len(), 1);
}

#[test]
fn responses_and_errors_are_messages_and_thoughts_are_not() {
    for (kind, messages) in [
        ("thought", 0),
        ("action", 0),
        ("response", 1),
        ("error", 1),
        ("elicitation", 1),
    ] {
        let mut play = Play::begin();
        play.fresh().does(kind);
        let sent = play.kinds();
        let in_thread = sent.iter().filter(|&&kind| kind == SendKind::InThread);
        assert_eq!(in_thread.count(), messages, "{kind}");
    }
}

#[test]
fn what_an_agent_says_takes_away_what_it_does() {
    for kind in ["elicitation", "select", "auth", "response", "error"] {
        let mut play = Play::begin();
        play.does("action");
        play.does(kind);
        assert_eq!(play.session.doing, None, "{kind}");
    }
}
