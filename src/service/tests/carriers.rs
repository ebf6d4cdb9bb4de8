//! The cards of other carriers, and their answers.

use super::boards::{BOARDS, kinds};
use super::*;
use crate::contract::card::Card;
use crate::desk::{Carried, Interest};

mod later;

const HUB: &str = "@hub:x.org";
const WATCHED: &str = "@watched:x.org";
const CHATTY: &str = "@chatty:x.org";

async fn house() -> House {
    let more = r#"
        [carriers."@watched:x.org"]
        answer = "observe"
        [carriers."@chatty:x.org"]
        answer = "route"
        notices = true
        react = true
        "#;
    House::with(&format!("{BOARDS}{more}")).await
}

/// A card of an agent's question with these options, and its prose.
fn card_of(agent: &str, id: &str, labels: &[&str]) -> Carried {
    let options = labels
        .iter()
        .map(|label| CardOption::new(label.to_lowercase(), *label));
    let listed = (1..).zip(labels);
    let listed: Vec<String> = listed.map(|(at, label)| format!("{at}. {label}")).collect();
    Carried {
        card: Card::builder(id)
            .board_id("brd_1")
            .asked_by(agent)
            .prompt(format!("What about {id}?"))
            .options(options)
            .build()
            .unwrap(),
        body: format!("What about {id}?\n\n{}", listed.join("\n")),
        thread: None,
    }
}

fn card(id: &str) -> Carried {
    card_of("builder", id, &["Deploy", "Wait"])
}

/// A carrier's message with a card.
fn shows(carrier: &str, event_id: &str, carried: Carried) -> Heard {
    let carried = Box::new(carried);
    let what = What::Carried {
        carried,
        replaces: None,
    };
    heard(carrier, event_id, what)
}

impl House {
    async fn carried(&self, carrier: &str, id: &str) -> Option<Elicitation> {
        let key = Key::of_carrier(carrier, id);
        self.service.find(&key).await.unwrap()
    }
}

#[tokio::test]
async fn a_carriers_card_is_open_and_its_answer_goes_to_the_agent_once() {
    let mut house = house().await;
    house.hear(vec![shows(HUB, "$card", card("e1"))]).await;
    let open = house.carried(HUB, "e1").await.unwrap();
    assert_eq!((open.state, open.visible), (State::Open, true));
    assert_eq!(open.event_id.as_deref(), Some("$card"));
    assert_eq!(house.service.interest(ROOM), Some(Interest::Pending));
    let found = house.service.find_of("builder", "e1").await.unwrap();
    assert_eq!(found, Some(open));
    let waiting = {
        let service = house.service.clone();
        let key = Key::of_carrier(HUB, "e1");
        tokio::spawn(async move { service.wait(&key, Duration::from_mins(1)).await })
    };
    tokio::task::yield_now().await;
    let reply = mira("$m1", "2");
    house
        .hear(vec![
            reply.clone(),
            ben("$b1", "1"),
            to("$card", ben("$b2", "1")),
        ])
        .await;
    let answered = house.carried(HUB, "e1").await.unwrap();
    assert_eq!(answered.state, State::Answered);
    let answer = answered.answer.clone().unwrap();
    assert_eq!(answer.answered_by, "@mira:x.org");
    assert_eq!(answer.option.unwrap().id, "wait");
    let waited = soon(waiting).await.unwrap().unwrap();
    assert_eq!(waited, Some(answered.clone()));
    assert_eq!(
        house.told("e1").await,
        ["elicitation.open", "elicitation.answered"]
    );
    let events = house.events("builder").await;
    assert!(events.iter().all(|it| it.key == Key::new("builder", "e1")));
    assert_eq!(events[1].body, object(&answered));
    assert_eq!(events[1].body["source"], "carrier");
    // The bot is silent there.
    assert_eq!(kinds(&house.post().await), []);
    house.hear(vec![reply]).await;
    assert_eq!(house.told("e1").await.len(), 2);
}

#[tokio::test]
async fn an_agent_with_a_webhook_gets_the_answer_there() {
    let house = house().await;
    let carried = card_of("hooked", "e1", &["Deploy", "Wait"]);
    house
        .hear(vec![shows(HUB, "$card", carried), mira("$m1", "2")])
        .await;
    let due = |agent: &'static str| {
        let book = house.service.book().clone();
        async move {
            let due = book.read(move |ledger| ledger.deliveries_due(agent, Millis::MAX / 2, 10));
            due.await.unwrap().0
        }
    };
    let first = due("hooked").await.remove(0);
    assert_eq!(first.event.event_type, "elicitation.open");
    let delivered = house.service.book().clone();
    delivered
        .write(move |ledger| ledger.mark_delivered(first.seq, 1))
        .await
        .unwrap();
    let second = due("hooked").await.remove(0);
    assert_eq!(second.event.event_type, "elicitation.answered");
    assert_eq!(second.event.body["answer"]["option"]["id"], "wait");
}

#[tokio::test]
async fn of_what_is_only_observed_nobody_is_told() {
    let mut house = house().await;
    let unknown = card_of("nobody", "e2", &["Deploy", "Wait"]);
    house
        .hear(vec![
            shows(WATCHED, "$card", card("e1")),
            shows(HUB, "$card2", unknown),
            to("$card", mira("$m1", "2")),
            to("$card2", mira("$m2", "1")),
        ])
        .await;
    for (carrier, id, option) in [(WATCHED, "e1", "wait"), (HUB, "e2", "deploy")] {
        let answered = house.carried(carrier, id).await.unwrap();
        assert_eq!(answered.state, State::Answered);
        assert_eq!(answered.answer.unwrap().option.unwrap().id, option);
    }
    for agent in ["builder", "tester", "hooked", "nobody"] {
        assert_eq!(house.events(agent).await, []);
        for id in ["e1", "e2"] {
            let found = house.service.find_of(agent, id).await.unwrap();
            assert_eq!(found, None);
        }
    }
    assert_eq!(kinds(&house.post().await), []);
}

#[tokio::test]
async fn where_the_configuration_wants_it_the_bot_speaks_and_marks() {
    let mut house = house().await;
    house
        .hear(vec![shows(CHATTY, "$card", card("e1")), mira("$m1", "2")])
        .await;
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Reaction]);
    house.hear(vec![to("$card", ben("$b1", "1"))]).await;
    assert_eq!(kinds(&house.post().await), [SendKind::Notice]);
    // What goes to no agent was not taken here.
    let unknown = card_of("nobody", "e2", &["Deploy", "Wait"]);
    house
        .hear(vec![
            shows(CHATTY, "$card2", unknown),
            to("$card2", mira("$m2", "1")),
        ])
        .await;
    let answered = house.carried(CHATTY, "e2").await.unwrap();
    assert_eq!(answered.state, State::Answered);
    assert_eq!(kinds(&house.post().await), []);
}

#[tokio::test]
async fn an_option_that_only_the_prose_lists_is_answered_by_its_number() {
    let house = house().await;
    let six = card_of("builder", "e1", &["A", "B", "C", "D", "E", "F"]);
    assert_eq!(six.card.options().len(), 4);
    house
        .hear(vec![shows(HUB, "$card", six), mira("$m1", "5")])
        .await;
    let answer = house.carried(HUB, "e1").await.unwrap().answer.unwrap();
    let option = answer.option.unwrap();
    assert_eq!((option.number, &*option.label), (5, "E"));
}

#[tokio::test]
async fn what_a_carrier_asks_already_is_not_asked_a_second_time() {
    let mut house = house().await;
    house
        .hear(vec![
            shows(HUB, "$card", card("e1")),
            shows(WATCHED, "$card2", card("e2")),
        ])
        .await;
    let carried = house.carried(HUB, "e1").await.unwrap();
    let asked = house.ask("builder", question("e1")).await.unwrap();
    let expected = Asked {
        created: false,
        elicitation: carried,
    };
    assert_eq!(asked, expected);
    let refused = house.ask("builder", question("e2")).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "e2 is in a room already: @watched:x.org carries it"
    );
    assert_eq!(kinds(&house.post().await), []);
    // Another agent's question is another question.
    let others = house.ask("hooked", question("e1")).await.unwrap();
    assert!(others.created);
    // A board's question is the same, whoever asks there.
    for id in ["e1", "e2"] {
        let why = "another carrier has put it up";
        assert_eq!(house.push(id).await, Taken::Ignored(why));
    }
    assert_eq!(kinds(&house.post().await), [SendKind::Card]);
}

#[tokio::test]
async fn only_who_carries_a_question_withdraws_it() {
    let house = house().await;
    house
        .hear(vec![
            shows(HUB, "$card", card("e1")),
            shows(WATCHED, "$card2", card("e2")),
        ])
        .await;
    let cancel = async |agent: &str, id: &str| {
        let cancelled = house.service.cancel(&Key::new(agent, id)).await;
        cancelled.unwrap_err().to_string()
    };
    assert_eq!(
        cancel("builder", "e1").await,
        "@hub:x.org carries it: it is withdrawn there"
    );
    assert_eq!(cancel("tester", "e1").await, "no such elicitation");
    assert_eq!(cancel("builder", "e2").await, "no such elicitation");
    let open = house.carried(HUB, "e1").await.unwrap();
    assert_eq!(open.state, State::Open);
    assert_eq!(house.told("e1").await, ["elicitation.open"]);
}

#[tokio::test]
async fn a_card_for_what_we_carry_is_no_second_question_and_a_reply_to_it_counts() {
    let mut house = house().await;
    house.open_pushed("e1").await;
    house.open_question("e2").await;
    let elsewhere = Heard {
        room_id: "!other:x.org".to_owned(),
        ..shows(HUB, "$far", card("e2"))
    };
    house
        .hear(vec![
            shows(HUB, "$theirs1", card_of("agt_there", "e1", &["Deploy"])),
            shows(HUB, "$theirs2", card("e2")),
            elsewhere,
        ])
        .await;
    for id in ["e1", "e2"] {
        assert_eq!(house.carried(HUB, id).await, None);
    }
    assert_eq!(kinds(&house.post().await), []);
    house
        .hear(vec![
            to("$theirs1", mira("$m1", "2")),
            to("$theirs2", mira("$m2", "1")),
        ])
        .await;
    let due = house.due().await;
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].answer.event_id, "$m1");
    let answer = ("@mira:x.org".to_owned(), "deploy".to_owned());
    assert_eq!(house.answer("e2").await, Some(answer));
    // In another room it is not ours to answer.
    let about = house
        .service
        .book()
        .read(|ledger| ledger.about("!other:x.org", "$far"));
    assert_eq!(about.await.unwrap(), []);
}

#[tokio::test]
async fn the_same_card_once_more_or_by_another_carrier_is_the_same_question() {
    let house = house().await;
    house
        .hear(vec![
            shows(HUB, "$card", card("e1")),
            shows(HUB, "$again", card("e1")),
            shows(CHATTY, "$theirs", card("e1")),
        ])
        .await;
    assert_eq!(house.carried(CHATTY, "e1").await, None);
    assert_eq!(house.told("e1").await, ["elicitation.open"]);
    let open = house.carried(HUB, "e1").await.unwrap();
    assert_eq!(open.event_id.as_deref(), Some("$card"));
    house.hear(vec![shows(HUB, "$other", card("e2"))]).await;
    house.hear(vec![to("$theirs", mira("$m1", "2"))]).await;
    let answered = house.carried(HUB, "e1").await.unwrap();
    assert_eq!(answered.answer.unwrap().event_id, "$m1");
}
