//! A plain room: what people type, and what comes of it.

use matrix_elicit::{
    elicitation::timestamp,
    sandbox::{Person, RoomOptions},
};
use serde_json::{Value, json};

use crate::stage::{ONE_MORE, Stage, body, card_of, id, may_i_run_them};

const CARD: &str = "dev.superpipeline.elicitation";

/// When an event was sent, as an answer tells it.
async fn sent_at(person: &Person, room: &str, event: &str) -> String {
    let event = person.event(room, event).await.unwrap();
    timestamp(event["origin_server_ts"].as_i64().unwrap())
}

/// Pain: dot, echo.
#[tokio::test]
async fn a_number_an_id_and_a_label_each_choose_their_option() {
    let stage = Stage::new().await;
    let options = [
        json!({"number": 1, "id": "run_them", "label": "Run the tests"}),
        json!({"number": 2, "id": "skip", "label": "Skip them"}),
    ];
    let replies = [
        ("1", 1, "number"),
        ("skip", 2, "id"),
        ("Run the tests", 1, "label"),
        (" **2.** ", 2, "number"),
        ("#1", 1, "number"),
        ("SKIP THEM!", 2, "label"),
    ];
    for (text, number, matched_by) in replies {
        let question = stage.ask(may_i_run_them()).await;
        let message = stage.ben.send_text(&stage.room, text).await.unwrap();
        let answered = stage.answered(&question).await;
        let expected = json!({
            "kind": "option",
            "option": options[number - 1],
            "text": text,
            "answered_by": stage.ben.user_id(),
            "display_name": "Ben",
            "event_id": message,
            "answered_at": sent_at(&stage.ben, &stage.room, &message).await,
            "matched_by": matched_by,
            "targeted_by": "only_open",
            "directed": false,
            "encrypted": false,
            "sender_verified": null,
        });
        assert_eq!(answered["answer"], expected, "{text:?}");
        assert_eq!(answered["reason"], Value::Null);
        stage.ticked(&message).await;
    }
    // And nothing more than that is said: a card, its edit, a tick.
    assert_eq!(stage.said_by_bot().await, ONE_MORE.repeat(replies.len()));
}

#[tokio::test]
async fn a_client_that_knows_no_cards_shows_a_question_that_can_be_answered() {
    let stage = Stage::new().await;
    let mut request = may_i_run_them();
    request["card_title"] = json!("Upgrade <the> build image");
    request["stage_key"] = json!("build");
    request["deep_link"] = json!("https://superpipeline.dev/b/brd_7c1f/c/crd_6b40");
    request["metadata"] = json!({"mine": [1, 2]});
    let question = stage.ask(request).await;
    let card = card_of(&question);

    let content = stage.ben.event(&stage.room, card).await.unwrap()["content"].take();
    let link = "https://superpipeline.dev/b/brd_7c1f/c/crd_6b40";
    let plain = content["body"].as_str().unwrap();
    assert!(
        plain.starts_with(
            "The tests need network access. May I run them?\n\n\
             Options:\n1. Run the tests\n2. Skip them\n\n\
             Reply with "
        ),
        "{plain}"
    );
    let context = format!("— Upgrade <the> build image · build · asked by Builder · {link}");
    assert!(plain.ends_with(&context), "{plain}");
    let html = content["formatted_body"].as_str().unwrap();
    for part in [
        "<p>The tests need network access. May I run them?</p><p>Options:</p>\
         <ol><li>Run the tests</li><li>Skip them</li></ol><p>Reply with "
            .to_owned(),
        format!(
            "<p><em>Upgrade &lt;the&gt; build image · build · asked by Builder · \
             <a href=\"{link}\">{link}</a></em></p>"
        ),
    ] {
        assert!(html.contains(&part), "{html}");
    }
    assert_eq!(content["msgtype"], "m.text");
    assert_eq!(content["format"], "org.matrix.custom.html");
    assert_eq!(content["m.mentions"], json!({}));
    assert_eq!(content[CARD], question["card"]);
    assert_eq!(content[CARD]["asked_by"], "agt_31d0");
    assert_eq!(question["metadata"], json!({"mine": [1, 2]}));

    let message = stage.ben.send_text(&stage.room, "1").await.unwrap();
    stage.ticked(&message).await;
    let edit = stage.edit_of(card).await;
    let outcome = format!("✓ 1. Run the tests — Ben ({}), ", stage.ben.user_id());
    assert!(
        body(&edit).starts_with(&format!(
            "The tests need network access. May I run them?\n\n{outcome}"
        )),
        "{edit:#}"
    );
    // Who knows no edits reads the outcome too; nobody draws buttons, nobody is pinged.
    let content = &edit["content"];
    assert!(
        content["body"].as_str().unwrap().contains(&outcome),
        "{edit:#}"
    );
    for content in [content, &content["m.new_content"]] {
        assert_eq!(content.get(CARD), None, "{edit:#}");
        assert_eq!(content["m.mentions"], json!({}), "{edit:#}");
        assert_eq!(content["msgtype"], "m.text", "{edit:#}");
    }
}

#[tokio::test]
async fn only_those_who_are_asked_are_mentioned_and_only_once() {
    let stage = Stage::new().await;
    let mut request = may_i_run_them();
    request["prompt"] = json!(format!("{} @room: may I?", stage.ada.user_id()));
    request["mention"] = json!([stage.ben.user_id()]);
    let question = stage.ask(request).await;
    let card = stage.ben.event(&stage.room, card_of(&question)).await;
    let mentions = &card.unwrap()["content"]["m.mentions"];
    assert_eq!(*mentions, json!({"user_ids": [stage.ben.user_id()]}));

    let message = stage.ben.reply(&stage.room, card_of(&question), "no idea");
    let notice = stage.notice_to(&message.await.unwrap()).await;
    assert_eq!(notice["content"]["m.mentions"], json!({}));
    stage.ben.send_text(&stage.room, "1").await.unwrap();
    let edit = stage.edit_of(card_of(&question)).await;
    assert_eq!(edit["content"]["m.mentions"], json!({}));
    assert_eq!(edit["content"]["m.new_content"]["m.mentions"], json!({}));
}

/// Pain: thread.
#[tokio::test]
async fn a_reply_or_a_thread_says_which_question_is_meant() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    // This one stays open, so a number alone would not be enough.
    let other = stage.ask(may_i_run_them()).await;
    for (way, targeted_by) in [
        ("reply", "reply"),
        ("reply with fallback", "reply"),
        ("thread", "thread"),
    ] {
        let question = stage.ask(may_i_run_them()).await;
        let card = card_of(&question);
        let message = match way {
            "reply" => ben.reply(room, card, "2").await,
            "thread" => ben.in_thread(room, card, "2").await,
            _ => ben.reply_with_fallback(room, card, "2").await,
        };
        let message = message.unwrap();
        let answer = &stage.answered(&question).await["answer"];
        assert_eq!(answer["event_id"], message, "{way}");
        assert_eq!(answer["option"]["id"], "skip", "{way}");
        assert_eq!(answer["matched_by"], "number", "{way}");
        assert_eq!(answer["targeted_by"], targeted_by, "{way}");
        assert_eq!(answer["directed"], true, "{way}");
        stage.ticked(&message).await;
    }
    assert_eq!(stage.api.get(id(&other)).await.1["state"], "open");
    assert!(!stage.said_by_bot().await.contains(&"notice"));
}

#[tokio::test]
async fn an_option_past_the_fourth_has_no_button_and_can_be_chosen() {
    let stage = Stage::new().await;
    let places = ["Lab", "Staging", "Canary", "Europe", "America", "Asia"];
    let question = stage
        .ask(json!({"prompt": "Where to?", "options": places}))
        .await;
    let card = stage
        .ben
        .event(&stage.room, card_of(&question))
        .await
        .unwrap();
    let buttons: Vec<&Value> = card["content"][CARD]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| &option["label"])
        .collect();
    assert_eq!(buttons, places[..4]);
    assert!(body(&card).contains("\n5. America\n6. Asia\n"), "{card:#}");
    assert!(
        body(&card).contains("Where buttons are shown, options 5 and 6 have none"),
        "{card:#}"
    );
    assert_eq!(question["options"].as_array().unwrap().len(), 6);

    stage.ben.send_text(&stage.room, "6").await.unwrap();
    let answer = &stage.answered(&question).await["answer"];
    assert_eq!(
        answer["option"],
        json!({"number": 6, "id": "Asia", "label": "Asia"})
    );
}

#[tokio::test]
async fn a_text_said_to_the_bot_answers_where_texts_are_taken() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let bot = stage.bot.user_id();
    let localpart = bot[1..].split(':').next().unwrap();
    let name = json!({"prompt": "What should the release be called?"});
    let either = json!({"prompt": "Which?", "options": ["Ada", "Grace"], "free_text": true});
    for (way, request, targeted_by) in [
        ("reply", &name, "reply"),
        ("reply", &either, "reply"),
        ("thread", &name, "thread"),
        ("id", &name, "only_open"),
        ("name", &either, "only_open"),
        ("pill", &name, "only_open"),
    ] {
        let question = stage.ask(request.clone()).await;
        let card = card_of(&question);
        // People talk: what is not said to the bot is no answer.
        ben.send_text(room, "Mary, I should say").await.unwrap();
        let text = "Radia  Perlman,\nobviously";
        let message = match way {
            "reply" => ben.reply(room, card, text).await,
            "thread" => ben.in_thread(room, card, text).await,
            "id" => ben.send_text(room, &format!("{bot}: {text}")).await,
            "name" => ben.send_text(room, &format!("{localpart}, {text}")).await,
            _ => {
                let content = json!({
                    "msgtype": "m.text",
                    "body": format!("{localpart} {text}"),
                    "m.mentions": {"user_ids": [bot]},
                });
                ben.send_content(room, "m.room.message", &content).await
            }
        };
        let message = message.unwrap();
        let answered = stage.answered(&question).await;
        let answer = &answered["answer"];
        assert_eq!(answer["kind"], "text", "{way}: {answer:#}");
        assert_eq!(answer["text"], text, "{way}");
        assert_eq!(answer["option"], Value::Null, "{way}");
        assert_eq!(answer["matched_by"], "text", "{way}");
        assert_eq!(answer["targeted_by"], targeted_by, "{way}");
        assert_eq!(answer["event_id"], message, "{way}");
        stage.ticked(&message).await;
        let edit = stage.edit_of(card).await;
        assert!(
            body(&edit).contains("| Radia  Perlman,\n| obviously"),
            "{edit:#}"
        );
    }
    assert_eq!(stage.said_by_bot().await, ONE_MORE.repeat(6));
}

#[tokio::test]
async fn whoever_is_alone_with_the_bot_always_speaks_to_it() {
    let stage = Stage::new().await;
    let room = stage.another_room(RoomOptions::default()).await;
    for (request, said, kind) in [
        (json!({"prompt": "Its name?"}), "Radia Perlman", "text"),
        (may_i_run_them(), "the first one, please", "option"),
    ] {
        let question = stage.ask_in(&room, request).await;
        stage.ada.send_text(&room, said).await.unwrap();
        let answer = &stage.answered(&question).await["answer"];
        assert_eq!(answer["kind"], kind);
        assert_eq!(answer["text"], said);
        assert_eq!(answer["directed"], true);
        assert_eq!(answer["targeted_by"], "only_open");
    }
}

#[tokio::test]
async fn what_is_no_answer_is_told_once_and_only_to_who_spoke_to_the_bot() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let question = stage.ask(may_i_run_them()).await;
    let card = card_of(&question);
    for talk in ["not 1", "yes", "1 or 2", "Run the testz", "2?"] {
        ben.send_text(room, talk).await.unwrap();
    }
    let nonsense = ben.reply(room, card, "yes").await.unwrap();
    let notice = stage.notice_to(&nonsense).await;
    for part in [
        "I did not understand that",
        "\n1. Run the tests\n2. Skip them\n",
    ] {
        assert!(body(&notice).contains(part), "{notice:#}");
    }
    assert_eq!(notice["content"]["m.mentions"], json!({}));
    ben.reply(room, card, "go ahead").await.unwrap();
    let near = ben.reply(room, card, "Run the testz").await.unwrap();
    let notice = stage.notice_to(&near).await;
    assert!(
        body(&notice).contains("Did you mean 1, Run the tests?"),
        "{notice:#}"
    );
    // A reply to what the bot said about the question is a reply to the question.
    let notice = notice["event_id"].as_str().unwrap();
    let message = ben.reply(room, notice, "the first one").await.unwrap();
    let answer = &stage.answered(&question).await["answer"];
    assert_eq!(answer["targeted_by"], "reply");
    assert_eq!(answer["option"]["id"], "run_them");
    stage.ticked(&message).await;
    assert_eq!(
        stage.said_by_bot().await,
        ["card", "notice", "notice", "edit", "tick"]
    );
}

#[tokio::test]
async fn a_reply_that_names_two_options_is_asked_which() {
    let stage = Stage::new().await;
    let request = json!({"prompt": "Which region?", "options": [
        {"id": "eu-west", "label": "Europe"},
        {"id": "us", "label": "America"},
        {"id": "eu-east", "label": "Europe"},
    ]});
    let question = stage.ask(request).await;
    let message = stage.ben.send_text(&stage.room, "europe").await.unwrap();
    let notice = stage.notice_to(&message).await;
    let named = "That fits more than one option:\n#1 Europe\n#3 Europe\n\n";
    assert!(body(&notice).starts_with(named), "{notice:#}");
    stage.ben.send_text(&stage.room, "#3").await.unwrap();
    let answer = &stage.answered(&question).await["answer"];
    assert_eq!(answer["option"]["id"], "eu-east");
}

/// Pain: swallow.
#[tokio::test]
async fn of_several_open_questions_a_tag_or_a_name_picks_one_and_a_number_none() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let ask = async |prompt: &str, options: [&str; 2]| {
        stage
            .ask(json!({"prompt": prompt, "options": options}))
            .await
    };
    let region = ask("Which region?", ["Europe", "America"]).await;
    let deploy = ask("Deploy now?", ["Deploy", "Wait"]).await;
    let colour = ask("Which colour?", ["Blue", "Green"]).await;
    // A tag is printed only where it is needed.
    let shown = async |question: &Value| {
        let card = ben.event(room, card_of(question)).await.unwrap();
        body(&card).to_owned()
    };
    assert!(!shown(&region).await.contains("q1"));
    assert!(shown(&deploy).await.contains("This one is q2"));
    assert!(shown(&colour).await.contains("This one is q3"));

    let number = ben.send_text(room, "1").await.unwrap();
    let notice = stage.notice_to(&number).await;
    let named = "Several questions are open here:\n\
         q1: Which region?\nq2: Deploy now?\nq3: Which colour?\n\n";
    assert!(body(&notice).starts_with(named), "{notice:#}");
    ben.send_text(room, "2").await.unwrap();
    ben.send_text(room, "q2 1").await.unwrap();
    ben.send_text(room, "Green").await.unwrap();
    let last = ben.send_text(room, "2").await.unwrap();
    for (question, chosen, targeted_by) in [
        (&deploy, "Deploy", "tag"),
        (&colour, "Green", "label"),
        (&region, "America", "only_open"),
    ] {
        let answer = &stage.answered(question).await["answer"];
        assert_eq!(answer["option"]["label"], chosen);
        assert_eq!(answer["targeted_by"], targeted_by);
    }
    stage.ticked(&last).await;
    let said = stage.said_by_bot().await;
    assert_eq!(said.iter().filter(|word| **word == "notice").count(), 1);
    // A tag that is over answers nothing, and is never given again.
    let after = ask("And now?", ["This", "That"]).await;
    let late = ben.send_text(room, "q2 1").await.unwrap();
    let notice = stage.notice_to(&late).await;
    assert!(
        body(&notice).contains("“Deploy now?” is already answered."),
        "{notice:#}"
    );
    assert_eq!(stage.api.get(id(&after)).await.1["state"], "open");
}

/// Pain: thread.
#[tokio::test]
async fn a_question_asked_in_a_thread_stays_there() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let root = ben
        .send_text(room, "Shall we talk about tests?")
        .await
        .unwrap();
    let mut request = may_i_run_them();
    request["thread"] = json!(root);
    let question = stage.ask(request).await;
    let card = ben.event(room, card_of(&question)).await.unwrap();
    let relation = &card["content"]["m.relates_to"];
    assert_eq!(relation["rel_type"], "m.thread");
    assert_eq!(relation["event_id"], root);
    let message = ben.in_thread(room, &root, "the second one").await.unwrap();
    let answer = &stage.answered(&question).await["answer"];
    assert_eq!(answer["event_id"], message);
    assert_eq!(answer["option"]["id"], "skip");
    assert_eq!(answer["targeted_by"], "thread");
    let edit = stage.edit_of(card_of(&question)).await;
    assert!(body(&edit).contains("✓ 2. Skip them — Ben"), "{edit:#}");
}

#[tokio::test]
async fn what_is_said_before_the_card_does_not_answer_it() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let red = json!({"prompt": "Which?", "options": ["red", "green"]});
    // With a question open everything is read, so what keeps `blue` out is its place.
    let open = stage.ask(red).await;
    for _ in 0..3 {
        ben.send_text(room, "blue").await.unwrap();
        let blue = json!({"room": room, "prompt": "Which?", "options": ["blue", "grey"]});
        let question = stage.api.ask_fine(&blue).await;
        stage.api.until_open(id(&question)).await;
        ben.send_text(room, "grey").await.unwrap();
        let answer = &stage.answered(&question).await["answer"];
        assert_eq!(answer["option"]["id"], "grey");
    }
    assert_eq!(stage.api.get(id(&open)).await.1["state"], "open");
}
