//! What a question leaves behind when it is over: in its room, and with the agent.

use std::collections::BTreeSet;

use super::*;
use crate::contract::CARD_KEY;
use crate::elicitation::timestamp;
use crate::prose::moment;

/// Asks, and lets the card be seen; the card.
async fn put_up(house: &mut House, ask: Ask) -> Posted {
    house.ask("builder", ask).await.unwrap();
    let card = house.post().await.remove(0);
    house.hear(vec![echo(&card)]).await;
    card
}

async fn expire(house: &House, at: Millis) {
    let heard_until = Some(Millis::MAX);
    house.service.expire(at, heard_until).await.unwrap();
}

/// Ends an open question in this way; the words that the room reads then.
async fn end(house: &House, state: State) -> &'static str {
    match state {
        State::Queued | State::Open => panic!("no end"),
        State::Answered => {
            house.hear(vec![mira("$m1", "1")]).await;
            "✓ 1. Deploy — @mira:x.org"
        }
        State::Declined => {
            house.hear(vec![mira("$m1", "!decline")]).await;
            "Declined by @mira:x.org"
        }
        State::Cancelled => {
            let key = Key::new("builder", "e1");
            house.service.cancel(&key).await.unwrap();
            "Withdrawn by the agent"
        }
        State::Superseded => {
            let newer = Ask {
                elicitation_id: Some("e2".to_owned()),
                ..of_every_kind()
            };
            house.ask("builder", newer).await.unwrap();
            "Replaced by a newer question"
        }
        State::Expired => {
            expire(house, Millis::MAX).await;
            "Expired without an answer"
        }
        State::Undeliverable => {
            let lost = Batch {
                lost: vec![ROOM.to_owned()],
                ..Batch::default()
            };
            house.take_in(lost).await;
            "Could not be asked here"
        }
    }
}

/// A question that can end in every way.
fn of_every_kind() -> Ask {
    Ask {
        decline: true,
        expires_in: Some(60_000),
        board_id: Some("b".to_owned()),
        card_id: Some("c".to_owned()),
        ..question("e1")
    }
}

/// Pain: stale, echo, cancelled.
#[tokio::test]
async fn however_a_question_ends_its_card_is_edited_and_the_room_gets_no_message() {
    let mut words = BTreeSet::new();
    for state in State::ALL.into_iter().filter(|state| state.is_closed()) {
        let mut house = House::start().await;
        let card = put_up(&mut house, of_every_kind()).await;
        assert!(card.sending.draft.content.get(CARD_KEY).is_some());
        let said = end(&house, state).await;

        // The room: the card in other words, and where somebody answered a mark on the reply.
        let mut posted = house.post().await;
        posted.retain(|posted| posted.sending.draft.key.id == "e1");
        let kinds: Vec<SendKind> = posted.iter().map(Posted::kind).collect();
        let by_a_person = matches!(state, State::Answered | State::Declined);
        let expected = [SendKind::CardEdit, SendKind::Reaction];
        assert_eq!(kinds, expected[..=usize::from(by_a_person)], "{state:?}");
        let edit = &posted[0].sending.draft.content;
        assert!(!edit.to_string().contains(CARD_KEY), "{state:?}: {edit:#}");
        assert!(posted[0].body().contains(said), "{}", posted[0].body());

        // The agent: a word that is this end's alone, and nothing that looks like another's.
        let word = state.word();
        let kinds = house.told("e1").await;
        let expected = ["elicitation.open".to_owned(), format!("elicitation.{word}")];
        assert_eq!(kinds, expected);
        let told = object(&house.found("e1").await);
        assert_eq!(told["state"], word);
        let answered = state == State::Answered;
        assert_eq!(told["answer"].is_null(), !answered, "{told:#}");
        let declined = state == State::Declined;
        assert_eq!(told["declined_by"].is_null(), !declined, "{told:#}");
        assert!(words.insert(word), "{word} is two things");
    }
    assert_eq!(words.len(), 6);
}

/// Pain: silence.
#[tokio::test]
async fn nobody_answering_chooses_nothing_whatever_was_offered() {
    let options = |labels: &[&str]| -> Vec<CardOption> {
        let labels = labels.iter();
        labels
            .map(|label| CardOption::new(*label, *label))
            .collect()
    };
    let mut house = House::start().await;
    let offers = [
        options(&["Approve"]),
        options(&["Approve (default)", "Deny"]),
        options(&["expired", "timeout", "1"]),
        Vec::new(),
    ];
    for (number, options) in offers.into_iter().enumerate() {
        let free_text = Some(options.len() != 1);
        let ask = Ask {
            options,
            free_text,
            decline: number % 2 == 0,
            expires_in: Some(1_000),
            ..question(&format!("e{number}"))
        };
        put_up(&mut house, ask).await;
    }
    // Talk is silence too: nothing here names an option.
    house.hear(vec![mira("$m1", "hm, not sure")]).await;
    expire(&house, Millis::MAX).await;
    for number in 0..4 {
        let found = house.found(&format!("e{number}")).await;
        assert_eq!((found.state, &found.answer), (State::Expired, &None));
        let told = object(&found);
        let nothing = (&Value::Null, &Value::Null);
        assert_eq!((&told["answer"], &told["declined_by"]), nothing, "{told:#}");
    }
}

/// Pain: two-clocks.
#[tokio::test]
async fn the_room_and_the_agent_are_told_one_deadline_and_it_is_the_one_that_is_kept() {
    let mut house = House::start().await;
    let ask = Ask {
        expires_in: Some(3 * 60 * 60_000),
        ..question("e1")
    };
    let asked = house.ask("builder", ask).await.unwrap().elicitation;
    let deadline = asked.question.expires_at.unwrap();
    assert_eq!(deadline, asked.question.created_at + 3 * 60 * 60_000);
    let card = house.post().await.remove(0);
    house.hear(vec![echo(&card)]).await;
    let in_the_room = format!("Please answer by {}.", moment(deadline));
    assert!(card.body().contains(&in_the_room), "{}", card.body());

    // A restart begins no new time, and who waits for less waits again.
    let mut house = house.restart().await;
    let key = Key::new("builder", "e1");
    let waited = house.service.wait(&key, Duration::from_millis(20));
    let waited = soon(waited).await.unwrap().unwrap();
    assert_eq!(waited.state, State::Open);
    let next = house.service.expire(deadline - 1, Some(Millis::MAX));
    assert_eq!(next.await.unwrap(), Some(deadline));
    assert_eq!(house.state("e1").await, State::Open);

    // However late it is noticed, it was that one.
    expire(&house, deadline + 50_000).await;
    let edit = house.post().await.remove(0);
    let in_the_room = format!("Expired without an answer, {}", moment(deadline));
    assert!(edit.body().contains(&in_the_room), "{}", edit.body());
    let of_the_agent = json!(timestamp(deadline));
    assert_eq!(object(&asked)["expires_at"], of_the_agent);
    assert_eq!(object(&waited)["expires_at"], of_the_agent);
    let events = house.events("builder").await;
    let told: Vec<&str> = events.iter().map(|event| &*event.event_type).collect();
    assert_eq!(told, ["elicitation.open", "elicitation.expired"]);
    for event in &events {
        assert_eq!(event.body["expires_at"], of_the_agent);
    }
}

/// Pain: anyone.
#[tokio::test]
async fn a_question_for_nobody_is_answered_by_nobody() {
    let mut house = House::start().await;
    let ask = Ask {
        answerers: Answerers {
            users: Some(Vec::new()),
            min_power: None,
        },
        decline: true,
        ..question("e1")
    };
    let card = put_up(&mut house, ask).await;
    let mut powerful = mira("$m1", "1");
    powerful.sender.power = i64::MAX;
    let tries = vec![
        powerful,
        to(&card.event_id, ben("$m2", "deploy")),
        ben("$m3", "!decline"),
    ];
    house.hear(tries).await;
    let found = house.found("e1").await;
    assert_eq!((found.state, found.answer), (State::Open, None));
    let posted = house.post().await;
    let kinds: Vec<SendKind> = posted.iter().map(Posted::kind).collect();
    assert_eq!(kinds, [SendKind::Notice; 2], "each is told once");
    assert!(
        posted[0].body().contains("is empty"),
        "{}",
        posted[0].body()
    );
}
