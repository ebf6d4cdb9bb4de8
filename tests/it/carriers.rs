//! Beside another carrier: a second bot account puts cards into the room, as the hub of another
//! service would.

use matrix_elicit::sandbox::{Person, RoomOptions};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::scene::{CARD, at_rest, count, told, traces};
use crate::stage::{body, has_joined, people};
use crate::support::{
    AGENT, Api, BotConfig, BotProcess, EncryptedPerson, WebhookSink, homeserver, soon, unique,
};

/// A room with another carrier, two people, and our bot.
struct Station {
    bot: BotProcess,
    api: Api,
    sink: WebhookSink,
    hub: Person,
    ada: Person,
    ben: Person,
    room: String,
}

impl Station {
    async fn new(settings: Value) -> Self {
        let synapse = homeserver().await;
        let hub = synapse.person(&unique("hub")).await.unwrap();
        let (ada, ben) = people().await;
        let sink = WebhookSink::start().await;
        let config = BotConfig::new(synapse)
            .await
            .with_webhook(&sink)
            .with_path(&["carriers", hub.user_id()], settings);
        let options = RoomOptions {
            invite: [&hub, &ben]
                .map(|person| person.user_id().to_owned())
                .into_iter()
                .chain([config.user_id().to_owned()])
                .collect(),
            ..RoomOptions::default()
        };
        let room = ada.create_room(&options).await.unwrap();
        hub.join(&room).await.unwrap();
        ben.join(&room).await.unwrap();
        let bot = BotProcess::start(config).await;
        has_joined(&bot, &room).await;
        let api = bot.api();
        Self {
            bot,
            api,
            sink,
            hub,
            ada,
            ben,
            room,
        }
    }

    /// The hub puts a card up.
    async fn card(&self, id: &str) -> String {
        self.hub
            .send_content(&self.room, "m.room.message", &message(id))
            .await
            .unwrap()
    }

    /// The agent's object, once the card has been read.
    async fn known(&self, id: &str) -> Value {
        known(&self.api, id).await
    }

    /// The hub edits its card into something else.
    async fn edits(&self, card: &str, new_content: Value) {
        let content = json!({
            "msgtype": "m.text", "body": "* edited", "m.new_content": new_content,
            "m.relates_to": {"rel_type": "m.replace", "event_id": card},
        });
        self.hub
            .send_content(&self.room, "m.room.message", &content)
            .await
            .unwrap();
    }

    /// What the bot has put into the room.
    async fn silence(&self) {
        at_rest(&self.bot).await;
        let left = traces(&self.ada, &self.room, self.bot.user_id()).await;
        assert_eq!(left, crate::scene::Traces::default(), "{left:#?}");
    }
}

/// The agent's object of a card, once that has been read.
async fn known(api: &Api, id: &str) -> Value {
    soon(&format!("{id} to be read"), async || {
        let (status, object) = api.get(id).await;
        (status == StatusCode::OK).then_some(object)
    })
    .await
}

/// A card with six options of which it carries four, of a later version, with properties that
/// nobody knows.
fn message(id: &str) -> Value {
    let labels = ["Red", "Green", "Blue", "Grey", "White", "Black"];
    let options: Vec<Value> = labels[..4]
        .iter()
        .map(|label| json!({"id": label.to_lowercase(), "label": label, "colour": true}))
        .collect();
    let listed: Vec<String> = (1..)
        .zip(labels)
        .map(|(number, label)| format!("{number}. {label}"))
        .collect();
    json!({
        "msgtype": "m.text",
        "body": format!("Which colour?\n\n{}\n\nReply with a number.", listed.join("\n")),
        CARD: {
            "schema_version": 7, "board_id": "brd_7c1f", "card_id": "crd_1", "elicitation_id": id,
            "run_id": "run_1", "stage_key": "paint", "card_title": "The wall", "asked_by": AGENT,
            "prompt": "Which colour?", "options": options, "deep_link": "https://x.org/b",
            "urgency": {"level": 3},
        },
    })
}

#[tokio::test]
async fn a_routed_answer_reaches_the_asking_agent_once_and_leaves_no_trace_in_the_room() {
    let station = Station::new(json!({"answer": "route"})).await;
    let card = station.card("elc_1").await;
    let open = station.known("elc_1").await;
    assert_eq!(open["source"], "carrier");
    assert_eq!(open["event_id"], card);
    assert_eq!(open["options"].as_array().unwrap().len(), 6);
    assert_eq!(open["card"]["options"].as_array().unwrap().len(), 4);
    let answer = station.ben.send_text(&station.room, "6").await.unwrap();
    let answered = station.api.until_answered("elc_1").await;
    assert_eq!(answered["answer"]["event_id"], answer);
    assert_eq!(
        answered["answer"]["option"],
        json!({"number": 6, "id": "#6", "label": "Black"})
    );
    station.sink.wait_for_type("elicitation.answered").await;
    station.silence().await;
    let kinds: Vec<(String, String)> = told(&station.sink)
        .into_iter()
        .map(|(id, kind, _)| (id, kind))
        .collect();
    let expected = ["elicitation.answered", "elicitation.open"]
        .map(|kind| ("elc_1".to_owned(), kind.to_owned()));
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn an_answer_by_id_label_and_rich_reply_is_read_by_the_same_rules() {
    let station = Station::new(json!({"answer": "route"})).await;
    for (id, words, number) in [("elc_1", "BLUE", 3), ("elc_2", "white", 5)] {
        station.card(id).await;
        station.known(id).await;
        station.ada.send_text(&station.room, words).await.unwrap();
        let answered = station.api.until_answered(id).await;
        assert_eq!(answered["answer"]["option"]["number"], number);
    }
    let card = station.card("elc_3").await;
    station.known("elc_3").await;
    // Nothing that is no option, and nothing is said to it.
    station
        .ada
        .reply(&station.room, &card, "hm?")
        .await
        .unwrap();
    station
        .ben
        .reply(&station.room, &card, "the second one, please")
        .await
        .unwrap();
    let answered = station.api.until_answered("elc_3").await;
    assert_eq!(answered["answer"]["option"]["number"], 2);
    assert_eq!(answered["answer"]["targeted_by"], "reply");
    station.silence().await;
}

#[tokio::test]
async fn what_is_only_observed_is_told_to_nobody_and_never_put_up_a_second_time() {
    let station = Station::new(json!({"answer": "observe"})).await;
    station.card("elc_1").await;
    let request = json!({
        "room": station.room, "elicitation_id": "elc_1", "prompt": "Which colour?",
        "options": ["Red", "Green"],
    });
    soon("the card to be read", async || {
        (count(&station.bot, "SELECT COUNT(*) FROM elicitations") == 1).then_some(())
    })
    .await;
    let (status, refused) = station.api.ask(&request).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused:#}");
    assert_eq!(refused["error"]["code"], "CARRIED_ELSEWHERE");
    station.ben.send_text(&station.room, "2").await.unwrap();
    let (status, _) = station.api.get("elc_1").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    station.silence().await;
    assert_eq!(told(&station.sink), []);
}

#[tokio::test]
async fn an_agent_that_asks_what_is_carried_for_it_gets_that_and_no_second_card() {
    let station = Station::new(json!({"answer": "route"})).await;
    let card = station.card("elc_1").await;
    station.known("elc_1").await;
    let request = json!({
        "room": station.room, "elicitation_id": "elc_1", "prompt": "Which colour?",
        "options": ["Red", "Green"],
    });
    let (status, object) = station.api.ask(&request).await;
    assert_eq!(status, StatusCode::OK, "{object:#}");
    assert_eq!(object["event_id"], card);
    let (status, object) = station.api.cancel("elc_1").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(object["error"]["code"], "CARRIED_ELSEWHERE");
    station.silence().await;
}

#[tokio::test]
async fn an_edit_without_the_card_or_a_redaction_closes_it_here() {
    let station = Station::new(json!({"answer": "route"})).await;
    let card = station.card("elc_1").await;
    station.known("elc_1").await;
    station
        .edits(&card, json!({"msgtype": "m.text", "body": "✓ Red"}))
        .await;
    let closed = station.api.until("elc_1", &["cancelled"]).await;
    assert_eq!(closed["reason"], "closed by who carries it");
    let card = station.card("elc_2").await;
    station.known("elc_2").await;
    station.hub.redact(&station.room, &card).await.unwrap();
    let closed = station.api.until("elc_2", &["cancelled"]).await;
    assert_eq!(closed["reason"], "its card was removed from the room");
    station.ada.reply(&station.room, &card, "1").await.unwrap();
    station.silence().await;
}

#[tokio::test]
async fn a_card_whose_options_are_edited_is_answered_as_it_is_now() {
    let station = Station::new(json!({"answer": "route"})).await;
    let card = station.card("elc_1").await;
    station.known("elc_1").await;
    let mut turned = message("elc_1");
    turned["body"] = json!("Which colour?");
    turned[CARD]["options"] = json!([{"id": "no", "label": "None"}, {"id": "red", "label": "Red"}]);
    station.edits(&card, turned).await;
    soon("the edit to be read", async || {
        let (_, object) = station.api.get("elc_1").await;
        (object["options"][0]["id"] == "no").then_some(())
    })
    .await;
    station.ada.send_text(&station.room, "1").await.unwrap();
    let answered = station.api.until_answered("elc_1").await;
    assert_eq!(answered["answer"]["option"]["id"], "no");
}

#[tokio::test]
async fn cards_that_are_broken_or_of_nobody_who_is_trusted_are_not_read() {
    let station = Station::new(json!({"answer": "route"})).await;
    let mut broken = message("elc_broken");
    broken[CARD]["options"] = json!(5);
    for (person, content) in [
        (&station.hub, broken),
        (&station.ben, message("elc_forged")),
    ] {
        person
            .send_content(&station.room, "m.room.message", &content)
            .await
            .unwrap();
    }
    station.card("elc_1").await;
    station.known("elc_1").await;
    for id in ["elc_broken", "elc_forged"] {
        let (status, _) = station.api.get(id).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{id}");
    }
    // Whoever is trusted with cards is not therefore a person.
    station.hub.send_text(&station.room, "2").await.unwrap();
    station.ada.send_text(&station.room, "3").await.unwrap();
    let answered = station.api.until_answered("elc_1").await;
    assert_eq!(answered["answer"]["option"]["number"], 3);
}

#[tokio::test]
async fn what_the_configuration_wants_to_be_said_is_said() {
    let station = Station::new(json!({"answer": "route", "notices": true, "react": true})).await;
    let card = station.card("elc_1").await;
    station.known("elc_1").await;
    let unclear = station
        .ada
        .reply(&station.room, &card, "hm?")
        .await
        .unwrap();
    let answer = station.ada.reply(&station.room, &card, "5").await.unwrap();
    station.api.until_answered("elc_1").await;
    at_rest(&station.bot).await;
    let left = traces(&station.ada, &station.room, station.bot.user_id()).await;
    assert_eq!(left.ticks.keys().collect::<Vec<_>>(), [&answer]);
    let [notice] = left.notices.as_slice() else {
        panic!("{left:#?}");
    };
    let notice = station.ada.event(&station.room, notice).await.unwrap();
    assert!(body(&notice).contains("5. White"), "{notice:#}");
    assert_eq!(
        notice["content"]["m.relates_to"]["m.in_reply_to"]["event_id"],
        unclear
    );
    assert_eq!((left.cards.len(), left.edits.len()), (0, 0));
}

#[tokio::test]
async fn with_a_question_of_ours_beside_it_a_bare_number_is_asked_about() {
    let station = Station::new(json!({"answer": "route"})).await;
    station.card("elc_1").await;
    station.known("elc_1").await;
    let ours = station
        .api
        .ask_fine(&json!({"room": station.room, "prompt": "And you?", "options": ["Yes", "No"]}))
        .await;
    let ours = station
        .api
        .until_open(ours["elicitation_id"].as_str().unwrap())
        .await;
    station.ada.send_text(&station.room, "1").await.unwrap();
    // Only a label of one of them tells.
    station.ada.send_text(&station.room, "Black").await.unwrap();
    let answered = station.api.until_answered("elc_1").await;
    assert_eq!(answered["answer"]["option"]["number"], 6);
    let (_, object) = station
        .api
        .get(ours["elicitation_id"].as_str().unwrap())
        .await;
    assert_eq!(object["state"], "open");
    at_rest(&station.bot).await;
    let left = traces(&station.ada, &station.room, station.bot.user_id()).await;
    assert_eq!(left.notices.len(), 1, "{left:#?}");
}

/// Pain: gap.
#[tokio::test]
async fn cards_and_answers_of_a_time_without_the_bot_are_read_afterwards() {
    let mut station = Station::new(json!({"answer": "route"})).await;
    station.bot.kill9();
    let card = station.card("elc_1").await;
    for line in 0..150 {
        let line = format!("talk {line}");
        station.ben.send_text(&station.room, &line).await.unwrap();
    }
    station.ada.reply(&station.room, &card, "4").await.unwrap();
    station.bot.start_again().await;
    station.known("elc_1").await;
    let answered = station.api.until_answered("elc_1").await;
    assert_eq!(answered["answer"]["option"]["number"], 4);
    station.silence().await;
}

#[tokio::test]
async fn cards_in_encrypted_rooms_are_read_like_others() {
    let synapse = homeserver().await;
    let hub = EncryptedPerson::register(synapse, &unique("hub")).await;
    let ada = EncryptedPerson::register(synapse, &unique("ada")).await;
    let config = BotConfig::new(synapse)
        .await
        .with_path(&["carriers", hub.user_id()], json!({"answer": "route"}));
    let options = RoomOptions {
        encrypted: true,
        invite: vec![hub.user_id().to_owned(), config.user_id().to_owned()],
        ..RoomOptions::default()
    };
    let room = ada.plain().create_room(&options).await.unwrap();
    hub.join(&room).await;
    let bot = BotProcess::start(config).await;
    has_joined(&bot, &room).await;
    // The hub has to know of the bot's device before it speaks.
    let api = bot.api();
    let mut tries = 0;
    let id = loop {
        tries += 1;
        let id = format!("elc_{tries}");
        hub.send_content(&room, "m.room.message", message(&id))
            .await;
        let read = tokio::time::timeout(std::time::Duration::from_secs(5), known(&api, &id));
        if read.await.is_ok() {
            break id;
        }
        assert!(tries < 6, "no card is read");
    };
    ada.send_text(&room, "6").await;
    let answered = api.until_answered(&id).await;
    assert_eq!(answered["answer"]["option"]["label"], "Black");
    assert_eq!(answered["answer"]["encrypted"], true);
}
