//! Agents' sessions in a room, from what people say to what agents hear and back.

mod asking;
mod beginning;
mod correcting;
mod moving;
mod stopping;

use super::*;
use crate::contract::signals;
use crate::ledger::SoughtSessions;
use crate::session::{Activity, EndReason, Session, Status};

/// A session of an agent as a test follows it.
struct Thread {
    id: String,
    root: String,
}

impl House {
    /// Mira begins a session of an agent, and its root is in the room.
    async fn begun(&mut self, agent: &str) -> Thread {
        let message = format!("$began_{agent}");
        let body = format!("{agent}: look at the flaky test");
        self.hear(vec![mira(&message, &body)]).await;
        let id = self.only_session(agent).await.id;
        self.shown(id).await
    }

    /// An agent begins one by itself.
    async fn begun_by(&mut self, agent: &str, new: NewSession) -> Thread {
        let id = self.service.begin_session(agent, new).await.unwrap().id;
        self.shown(id).await
    }

    async fn shown(&mut self, id: String) -> Thread {
        let posted = self.post().await;
        let root = posted
            .iter()
            .find(|posted| posted.kind() == SendKind::Root)
            .expect("a root is posted");
        self.hear(posted.iter().map(echo).collect()).await;
        Thread {
            id,
            root: root.event_id.clone(),
        }
    }

    async fn all_of(&self, agent: &str) -> Vec<Session> {
        let sought = SoughtSessions {
            agent: agent.to_owned(),
            status: None,
            below: None,
            limit: 100,
        };
        self.service.sessions(sought).await.unwrap().0
    }

    async fn only_session(&self, agent: &str) -> Session {
        let mut sessions = self.all_of(agent).await;
        assert_eq!(sessions.len(), 1);
        sessions.remove(0)
    }

    async fn session(&self, thread: &Thread) -> Session {
        let id = thread.id.clone();
        let found = self.service.book().read(move |ledger| ledger.session(&id));
        Result::<_, LedgerError>::unwrap(found.await).unwrap()
    }

    async fn status(&self, thread: &Thread) -> Status {
        self.session(thread).await.status
    }

    async fn act(
        &self,
        agent: &str,
        thread: &Thread,
        said: &Value,
    ) -> Result<Activity, SessionError> {
        let said = signals::Activity::read(said).unwrap();
        self.service.act(agent, &thread.id, said).await
    }

    /// The agent asks to choose; the card is posted and seen. Gives its event.
    async fn select(&mut self, agent: &str, thread: &Thread) -> String {
        self.act(agent, thread, &select()).await.unwrap();
        let posted = self.post().await;
        let card = posted
            .iter()
            .find(|posted| posted.kind() == SendKind::Card)
            .expect("a card is posted");
        self.hear(vec![echo(card)]).await;
        card.event_id.clone()
    }

    /// The question that a session asks now.
    async fn asks(&self, thread: &Thread) -> Option<Elicitation> {
        let id = thread.id.clone();
        let found = self
            .service
            .book()
            .read(move |ledger| ledger.question_of(&id));
        Result::<_, LedgerError>::unwrap(found.await)
    }

    /// What an agent heard in its sessions: the action, what was said, and its signal.
    async fn heard_in(&self, agent: &str, thread: &Thread) -> Vec<String> {
        let events = self.events(agent).await.into_iter();
        events
            .filter(|event| event.key.id == thread.id)
            .map(|event| {
                let body = event.body;
                let activity = &body["agent_activity"];
                let said = activity["content"]["body"].as_str().unwrap();
                let action = body["action"].as_str().unwrap();
                assert_eq!(event.event_type, format!("agent_session.{action}"));
                let signal = activity.get("signal").and_then(Value::as_str);
                let signal = signal.map(|signal| format!(" [{signal}]"));
                format!("{action}: {said}{}", signal.unwrap_or_default())
            })
            .collect()
    }

    async fn words(&self, thread: &Thread) -> Vec<String> {
        let id = thread.id.clone();
        let said = self
            .service
            .book()
            .read(move |ledger| ledger.activities(&id, 0, 100));
        let (said, _) = Result::<_, LedgerError>::unwrap(said.await);
        said.into_iter().map(|activity| activity.body).collect()
    }

    /// What is done by itself so much later.
    async fn later(&self, millis: Millis) {
        let then = clock::now() + millis;
        self.service.tick_sessions(then).await.unwrap();
    }
}

/// The same message in a session's thread.
fn within(thread: &Thread, mut heard: Heard) -> Heard {
    if let What::Message(said) = &mut heard.what {
        said.thread = Some(thread.root.clone());
    }
    heard
}

fn kinds(posted: &[Posted]) -> Vec<SendKind> {
    posted.iter().map(Posted::kind).collect()
}

fn of(kind: &str, body: &str) -> Value {
    json!({ "content": { "type": kind, "body": body } })
}

fn select() -> Value {
    json!({
        "content": { "type": "elicitation", "body": "Which environment should I deploy to?" },
        "signal": "select",
        "signal_metadata": { "options": [
            { "value": "staging", "label": "Staging area" },
            { "value": "production", "label": "Production" },
            { "value": "prod-eu" },
        ] },
    })
}

fn auth(user_id: &str) -> Value {
    json!({
        "content": { "type": "elicitation", "body": "I need access to your account." },
        "signal": "auth",
        "signal_metadata": {
            "url": "https://scout.x.org/connect/github?session=sess_1",
            "user_id": user_id,
            "provider_name": "GitHub",
        },
    })
}

/// Only these people may say anything in the room.
fn only(users: &[&str], heard: Vec<Heard>) -> Batch {
    let rules = Rules {
        users: Some(users.iter().map(|&user| user.to_owned()).collect()),
        ..Rules::default()
    };
    let bot = Bot {
        user_id: "@elicit:x.org".to_owned(),
        display_name: None,
    };
    Batch {
        heard,
        rooms: [(ROOM.to_owned(), (rules, bot))].into(),
        ..Batch::default()
    }
}
