//! What an agent asks in its session.

use super::draft;
use crate::clock::Millis;
use crate::contract::CardOption;
use crate::contract::signals::{self, Asks};
use crate::desk::change::{Change, SendDraft, SendKind, card};
use crate::elicitation::{Answerers, Elicitation, Key, Question, State};
use crate::prose;
use crate::session::{Activity, Connecting, Session};

/// What a question needs to know of its room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuestionPlace {
    /// The tag it gets there.
    pub tag: String,
    /// Whether another question is open there.
    pub others_open: bool,
}

/// What an agent asks in its session, shown in the room.
pub(super) fn asks(
    session: &Session,
    next: &mut Session,
    said: &signals::Activity,
    activity: &Activity,
    connect: Option<String>,
    place: QuestionPlace,
    now: Millis,
) -> Vec<Change> {
    match &said.asks {
        Asks::Nothing => prose::session_message(&said.body)
            .into_iter()
            .map(|content| Change::Send(draft(session, SendKind::InThread, content)))
            .collect(),
        Asks::Select(choices) => {
            let options = choices
                .iter()
                .map(|choice| CardOption::new(choice.value.as_str(), choice.shown()));
            let question = select(
                session,
                &said.body,
                options.collect(),
                activity,
                place.tag,
                now,
            );
            let card = card(&question, place.others_open);
            vec![Change::Ask {
                elicitation: Box::new(question),
                card,
            }]
        }
        Asks::Auth(wanted) => {
            let Some(room_id) = connect else {
                return Vec::new();
            };
            let request =
                prose::connect_request(&session.agent_name, &wanted.provider_name, &wanted.url);
            let asked =
                prose::connect_asked(&wanted.user_id, &session.agent_name, &wanted.provider_name);
            next.connecting = Some(Connecting {
                room_id: room_id.clone(),
                activity: activity.id.clone(),
                provider: wanted.provider_name.clone(),
            });
            // What the agent says of it is for everybody in the room, and stays away from the link.
            let mut changes = vec![Change::Send(SendDraft {
                room_id,
                key: Key::new(Key::of_session(&session.id).origin, activity.id.as_str()),
                also: Vec::new(),
                kind: SendKind::Connect,
                content: request,
            })];
            let said = prose::session_message(&said.body)
                .into_iter()
                .chain([asked]);
            changes.extend(
                said.map(|content| Change::Send(draft(session, SendKind::InThread, content))),
            );
            changes
        }
    }
}

/// The question of a `select`: any text answers it, and comes back as it was written.
fn select(
    session: &Session,
    body: &str,
    options: Vec<CardOption>,
    activity: &Activity,
    tag: String,
    now: Millis,
) -> Elicitation {
    Elicitation {
        question: Question {
            key: Key::new(Key::of_session(&session.id).origin, activity.id.as_str()),
            asked_by: session.agent.clone(),
            routed_to: None,
            asker_name: Some(session.agent_name.clone()),
            room_id: session.room_id.clone(),
            thread: session.root.clone(),
            prompt: body.to_owned(),
            options,
            abridged: false,
            free_text: true,
            decline: None,
            answerers: Answerers::default(),
            mention: Vec::new(),
            board_id: None,
            card_id: None,
            run_id: Some(session.id.clone()),
            stage_key: None,
            card_title: session.title.clone(),
            deep_link: None,
            metadata: None,
            asked_at: None,
            created_at: now,
            expires_at: None,
        },
        tag,
        state: State::Queued,
        event_id: None,
        visible: false,
        closed_at: None,
        reason: None,
        answer: None,
    }
}
