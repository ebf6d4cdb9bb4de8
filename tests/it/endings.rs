//! How a question in a plain room ends, and what still happens to it afterwards.

use std::time::Duration;

use matrix_elicit::sandbox::RoomOptions;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stage::{ONE_MORE, Stage, body, card_of, id, may_i_run_them};
use crate::support::{EventStream, soon};

const CARD: &str = "dev.superpipeline.elicitation";

/// The next event about a question, which must be of this type; its `data`.
async fn told(events: &mut EventStream, kind: &str, question: &Value) -> Value {
    let mut event = events.next().await;
    assert_eq!(event.kind, kind, "{event:#?}");
    assert_eq!(event.body["type"], kind);
    assert_eq!(event.body["data"]["elicitation_id"], id(question));
    event.body["data"].take()
}

/// Whoever writes within a second of an end may not have seen it. Not an event to wait for: the
/// point is that time passes.
async fn everybody_has_seen_it() {
    tokio::time::sleep(Duration::from_millis(1_500)).await;
}

/// The card of a question that is over says how it ended, and is no card any more.
async fn ended_with(stage: &Stage, question: &Value, words: &str) {
    let edit = stage.edit_of(card_of(question)).await;
    assert!(body(&edit).contains(words), "{edit:#}");
    assert_eq!(edit["content"]["m.new_content"].get(CARD), None);
    assert_eq!(edit["content"]["m.mentions"], json!({}));
}

/// Pain: edit.
#[tokio::test]
async fn an_edit_makes_an_answer_of_what_was_none() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let mut events = stage.api.events(None).await.unwrap();
    let question = stage.ask(may_i_run_them()).await;
    let message = ben.send_text(room, "hm, let me think").await.unwrap();
    ben.edit(room, &message, "1").await.unwrap();
    let answer = &stage.answered(&question).await["answer"];
    assert_eq!(answer["event_id"], message);
    assert_eq!(answer["text"], "1");
    assert_eq!(answer["option"]["id"], "run_them");
    // People see the ✓ at the message: an edit is shown nowhere by itself.
    stage.ticked(&message).await;

    // From here on it is the message of an answer like any other.
    told(&mut events, "elicitation.open", &question).await;
    told(&mut events, "elicitation.answered", &question).await;
    ben.edit(room, &message, "2").await.unwrap();
    let edited = told(&mut events, "answer.edited", &question).await;
    assert_eq!(edited["correction"]["text"], "2");
    ben.redact(room, &message).await.unwrap();
    let redacted = told(&mut events, "answer.redacted", &question).await;
    assert_eq!(redacted["answer"]["text"], Value::Null);
    let object = stage.api.get(id(&question)).await.1;
    assert_eq!(object["answer"]["text"], Value::Null);
    assert_eq!(object["answer"]["option"]["id"], "run_them");
}

/// Pain: edit.
#[tokio::test]
async fn the_edit_of_a_reply_is_still_a_reply_and_only_its_authors() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let question = stage.ask(may_i_run_them()).await;
    let message = ben
        .reply(room, card_of(&question), "hm, let me think")
        .await
        .unwrap();
    stage.notice_to(&message).await;
    // Said to nobody, these words would choose nothing; and nobody edits what is another's.
    stage
        .ada
        .edit(room, &message, "the second one")
        .await
        .unwrap();
    ben.edit(room, &message, "the first one").await.unwrap();
    let answer = &stage.answered(&question).await["answer"];
    assert_eq!(answer["event_id"], message);
    assert_eq!(answer["answered_by"], ben.user_id());
    assert_eq!(answer["option"]["id"], "run_them");
    assert_eq!(answer["targeted_by"], "reply");
    assert_eq!(answer["directed"], true);
}

#[tokio::test]
async fn an_answer_stands_when_it_is_edited_and_its_text_goes_when_it_is_redacted() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let mut events = stage.api.events(None).await.unwrap();
    let request = json!({
        "prompt": "Its name?", "options": ["Ada", "Grace"], "free_text": true,
    });
    let question = stage.ask(request).await;
    let card = card_of(&question);
    let message = ben.reply(room, card, "sesame-one").await.unwrap();
    stage.ticked(&message).await;
    let opened = events.next().await;
    assert_eq!(opened.kind, "elicitation.open");
    let answered = told(&mut events, "elicitation.answered", &question).await;

    let edit = ben.edit(room, &message, "sesame-two").await.unwrap();
    let edited = told(&mut events, "answer.edited", &question).await;
    assert_eq!(edited["answer"], answered["answer"]);
    let correction = &edited["correction"];
    assert_eq!(correction["event_id"], edit);
    assert_eq!(correction["text"], "sesame-two");
    assert_eq!(correction["reading"], json!({"text": true}));
    ben.edit(room, &message, "Grace").await.unwrap();
    let edited = told(&mut events, "answer.edited", &question).await;
    assert_eq!(
        edited["correction"]["reading"],
        json!({"choose": "Grace", "by": "id"})
    );
    // Nobody but its author changes it.
    let stranger = stage.ada.edit(room, &message, "Ada").await;
    stranger.unwrap();

    let redaction = ben.redact(room, &message).await.unwrap();
    let redacted = told(&mut events, "answer.redacted", &question).await;
    assert_eq!(redacted["correction"]["event_id"], redaction);
    assert_eq!(redacted["correction"]["redacted_by"], ben.user_id());
    assert_eq!(redacted["answer"]["kind"], "text");
    assert_eq!(redacted["answer"]["answered_by"], ben.user_id());

    // Nothing that an agent can still ask for has the text.
    let object = stage.api.get(id(&question)).await.1;
    assert_eq!(object["state"], "answered");
    assert!(!object.to_string().contains("sesame"), "{object:#}");
    let list = stage.api.list("").await.1;
    assert!(!list.to_string().contains("sesame"), "{list:#}");
    let mut again = stage.api.events(Some(&opened.id)).await.unwrap();
    for kind in [
        "elicitation.answered",
        "answer.edited",
        "answer.edited",
        "answer.redacted",
    ] {
        let replayed = told(&mut again, kind, &question).await;
        assert!(!replayed.to_string().contains("sesame"), "{replayed:#}");
    }
    // The card, which quoted it, quotes it no more.
    stage.everything_is_said().await;
    let timeline = stage.ada.timeline(room).await.unwrap();
    let last = timeline
        .iter()
        .rfind(|event| event["content"]["m.relates_to"]["event_id"] == card)
        .unwrap();
    assert!(
        body(last).contains("(the text was removed later)"),
        "{last:#}"
    );
    // And the ledger holds it nowhere, not even in pages that are free.
    let folder = stage.bot.config().folder().join("stored");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let stored = std::fs::read(&path).unwrap();
            let found = stored.windows(6).any(|six| six == b"sesame");
            assert!(!found, "{}", path.display());
        }
    }
}

/// Pain: late.
#[tokio::test]
async fn who_comes_late_is_told_once_who_answered() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let question = stage.ask(may_i_run_them()).await;
    let card = card_of(&question);
    let message = ben.send_text(room, "2").await.unwrap();
    stage.ticked(&message).await;
    everybody_has_seen_it().await;
    // Neither a number with no open question nor talk is anything to the bot.
    stage.ada.send_text(room, "1").await.unwrap();
    let late = stage.ada.reply(room, card, "1").await.unwrap();
    let notice = stage.notice_to(&late).await;
    let words = body(&notice);
    assert!(
        words.starts_with(
            "“The tests need network access. May I run them?” is already answered.\n\n\
             ✓ 2. Skip them — Ben ("
        ),
        "{notice:#}"
    );
    stage.ada.reply(room, card, "why?").await.unwrap();
    stage.ada.in_thread(room, card, "1").await.unwrap();
    let notice = notice["event_id"].as_str().unwrap();
    stage.ada.reply(room, notice, "1").await.unwrap();
    stage.everything_is_said().await;
    let mut expected = vec!["card", "edit", "tick", "notice"];
    expected.extend(ONE_MORE);
    assert_eq!(stage.said_by_bot().await, expected);
    let object = stage.api.get(id(&question)).await.1;
    assert_eq!(object["answer"]["event_id"], message);
}

/// Pain: silence.
#[tokio::test]
async fn a_deadline_ends_a_question_without_an_answer() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let mut events = stage.api.events(None).await.unwrap();
    let mut request = may_i_run_them();
    request["expires_in"] = json!("3s");
    let question = stage.ask(request).await;
    let card = ben.event(room, card_of(&question)).await.unwrap();
    assert!(body(&card).contains("\nPlease answer by "), "{card:#}");
    told(&mut events, "elicitation.open", &question).await;
    let expired = told(&mut events, "elicitation.expired", &question).await;
    assert_eq!(expired["answer"], Value::Null);
    assert!(expired["closed_at"].as_str() >= expired["expires_at"].as_str());
    assert_eq!(stage.api.get(id(&question)).await.1, expired);
    ended_with(&stage, &question, "Expired without an answer, ").await;
    everybody_has_seen_it().await;
    ben.send_text(room, "1").await.unwrap();
    let late = ben.reply(room, card_of(&question), "1").await.unwrap();
    let notice = stage.notice_to(&late).await;
    assert!(
        body(&notice).contains("Expired without an answer"),
        "{notice:#}"
    );
    assert_eq!(stage.said_by_bot().await, ["card", "edit", "notice"]);
}

#[tokio::test]
async fn asking_again_about_a_card_takes_the_older_questions_place() {
    let stage = Stage::new().await;
    let mut events = stage.api.events(None).await.unwrap();
    let mut request = may_i_run_them();
    request["board_id"] = json!("brd_7c1f");
    request["card_id"] = json!("crd_6b40");
    // Neither another board's nor one without a card is the same card.
    let mut elsewhere = request.clone();
    elsewhere["board_id"] = json!("brd_other");
    let elsewhere = stage.ask(elsewhere).await;
    let bare = [
        stage.ask(may_i_run_them()).await,
        stage.ask(may_i_run_them()).await,
    ];
    let older = stage.ask(request.clone()).await;
    let newer = stage.ask(request).await;
    for open in [&elsewhere, &bare[0], &bare[1], &older] {
        told(&mut events, "elicitation.open", open).await;
    }
    let over = told(&mut events, "elicitation.superseded", &older).await;
    assert_eq!(over["reason"], format!("asked again as {}", id(&newer)));
    assert_eq!(over["answer"], Value::Null);
    told(&mut events, "elicitation.open", &newer).await;
    ended_with(&stage, &older, "Replaced by a newer question, ").await;
    for open in [&elsewhere, &bare[0], &bare[1], &newer] {
        assert_eq!(stage.api.get(id(open)).await.1["state"], "open");
    }
}

/// Pain: late, cancelled.
#[tokio::test]
async fn a_withdrawn_question_takes_no_answer() {
    let stage = Stage::new().await;
    let (room, ben) = (&stage.room, &stage.ben);
    let mut events = stage.api.events(None).await.unwrap();
    let question = stage.ask(may_i_run_them()).await;
    let (status, cancelled) = stage.api.cancel(id(&question)).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(cancelled["state"], "cancelled");
    told(&mut events, "elicitation.open", &question).await;
    let event = told(&mut events, "elicitation.cancelled", &question).await;
    assert_eq!(event, cancelled);
    ended_with(&stage, &question, "Withdrawn by the agent, ").await;
    everybody_has_seen_it().await;
    ben.send_text(room, "1").await.unwrap();
    let (status, refused) = stage.api.cancel(id(&question)).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refused["error"]["code"], "ELICITATION_NOT_PENDING");
    let late = ben.reply(room, card_of(&question), "1").await.unwrap();
    let notice = stage.notice_to(&late).await;
    assert!(
        body(&notice).contains("Withdrawn by the agent"),
        "{notice:#}"
    );
    assert_eq!(stage.api.get(id(&question)).await.1, cancelled);
}

#[tokio::test]
async fn a_card_that_is_removed_from_the_room_withdraws_its_question() {
    let stage = Stage::new().await;
    let mut events = stage.api.events(None).await.unwrap();
    let question = stage.ask(may_i_run_them()).await;
    stage
        .ada
        .redact(&stage.room, card_of(&question))
        .await
        .unwrap();
    told(&mut events, "elicitation.open", &question).await;
    let cancelled = told(&mut events, "elicitation.cancelled", &question).await;
    assert_eq!(cancelled["reason"], "its card was removed from the room");
    // Removed is removed: nothing of it comes back as an edit.
    stage.everything_is_said().await;
    let timeline = stage.ada.timeline(&stage.room).await.unwrap();
    let edits = timeline
        .iter()
        .filter(|event| event["content"]["m.relates_to"]["event_id"] == card_of(&question));
    assert_eq!(edits.count(), 0);
}

/// Pain: power.
#[tokio::test]
async fn a_bot_that_is_put_out_of_the_room_says_that_nobody_can_be_asked() {
    let stage = Stage::new().await;
    let mut events = stage.api.events(None).await.unwrap();
    let elsewhere = stage.another_room(RoomOptions::default()).await;
    let spared = stage.ask_in(&elsewhere, may_i_run_them()).await;
    let question = stage.ask(may_i_run_them()).await;
    let bot = stage.bot.user_id();
    stage.ada.kick(&stage.room, bot).await.unwrap();
    told(&mut events, "elicitation.open", &spared).await;
    told(&mut events, "elicitation.open", &question).await;
    let event = told(&mut events, "elicitation.undeliverable", &question).await;
    assert_eq!(event["reason"], "the bot was removed from the room");
    assert_eq!(event["answer"], Value::Null);
    let mut request = may_i_run_them();
    request["room"] = json!(stage.room);
    let (status, refused) = stage.api.ask(&request).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refused["error"]["code"], "ROOM_NOT_JOINED");
    assert_eq!(stage.api.get(id(&spared)).await.1["state"], "open");

    // Asked in again, it can ask again.
    stage.ada.invite(&stage.room, bot).await.unwrap();
    let joined = format!("joined {}", stage.room);
    soon("the bot to join once more", async || {
        (stage.bot.log().matches(&joined).count() == 2).then_some(())
    })
    .await;
    let question = stage.ask(may_i_run_them()).await;
    stage.ben.send_text(&stage.room, "1").await.unwrap();
    stage.answered(&question).await;
}

#[tokio::test]
async fn a_bot_that_comes_back_as_a_new_device_knows_the_rooms_it_was_put_out_of() {
    let mut stage = Stage::new().await;
    let question = stage.ask(may_i_run_them()).await;
    stage.bot.kill9();
    std::fs::remove_dir_all(stage.bot.config().folder().join("stored/matrix")).unwrap();
    stage
        .ada
        .kick(&stage.room, stage.bot.user_id())
        .await
        .unwrap();
    stage.bot.start_again().await;
    let closed = stage.api.until(id(&question), &["undeliverable"]).await;
    assert_eq!(closed["reason"], "the bot was removed from the room");
}
