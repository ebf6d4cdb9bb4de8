//! What an agent asks in its session, and how people answer.

use super::*;

/// What an agent hears of a reply to its select, and whether the question is over then.
async fn reply(heard: impl FnOnce(&Thread, &str) -> Heard) -> (Vec<String>, bool) {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    let card = house.select("builder", &thread).await;
    assert_eq!(house.status(&thread).await, Status::AwaitingInput);
    house.hear(vec![heard(&thread, &card)]).await;
    let told = house.heard_in("builder", &thread).await.split_off(1);
    let over = house.asks(&thread).await.is_none();
    let active = house.status(&thread).await == Status::Active;
    assert_eq!(active, !told.is_empty());
    (told, over)
}

async fn in_thread(body: &str) -> Vec<String> {
    let (told, over) = reply(|thread, _| within(thread, mira("$m1", body))).await;
    assert!(over, "{body}: whatever is said in the thread is an answer");
    told
}

/// "agent_activity.content.body is the option's value"
#[tokio::test]
async fn a_select_is_answered_by_number_value_or_label() {
    for (body, value) in [
        ("1", "staging"),
        ("3", "prod-eu"),
        ("staging", "staging"),
        ("PROD-EU", "prod-eu"),
        ("Staging area", "staging"),
        ("production.", "production"),
    ] {
        assert_eq!(
            in_thread(body).await,
            [format!("prompted: {value}")],
            "{body}"
        );
    }
}

/// "People may ignore the buttons and write their own answer."
#[tokio::test]
async fn anything_else_in_the_thread_comes_back_as_it_was_written() {
    for body in [
        "staging, but only after 6 pm",
        "stag",
        "4",
        "prod",
        "1 or 2",
        "stop",
        "why?",
    ] {
        assert_eq!(
            in_thread(body).await,
            [format!("prompted: {body}")],
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_select_is_answered_by_a_bare_number_in_the_room() {
    let (told, over) = reply(|_, _| mira("$m1", "2")).await;
    assert_eq!(
        (told, over),
        (vec!["prompted: production".to_owned()], true)
    );
}

#[tokio::test]
async fn talk_in_the_room_is_no_answer() {
    let (told, over) = reply(|_, _| mira("$m1", "staging is down again")).await;
    assert_eq!((told, over), (vec![], false));
}

#[tokio::test]
async fn a_rich_reply_to_the_card_answers_it() {
    for (body, said) in [("2", "production"), ("ask Ben", "ask Ben")] {
        let (told, over) = reply(|_, card| to(card, mira("$m1", body))).await;
        assert_eq!((told, over), (vec![format!("prompted: {said}")], true));
    }
}

/// "unless that agent has a question open for them here, which `scout: 2` answers"
#[tokio::test]
async fn a_call_answers_what_the_agent_asks_here_instead_of_beginning_anything() {
    for (body, said) in [
        ("builder: 2", "production"),
        ("@builder, after lunch", "after lunch"),
    ] {
        let (told, over) = reply(|_, _| mira("$m1", body)).await;
        assert_eq!((told, over), (vec![format!("prompted: {said}")], true));
    }
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house.select("builder", &thread).await;
    house.hear(vec![mira("$m1", "builder: 2")]).await;
    assert_eq!(house.only_session("builder").await.id, thread.id);
    // Nothing is open any more, and another agent's question is none of this one's.
    let tester = house.begun("tester").await;
    house.select("tester", &tester).await;
    house.hear(vec![mira("$m2", "builder: 2")]).await;
    assert_eq!(house.all_of("builder").await.len(), 2);
    assert!(house.asks(&tester).await.is_some());
}

#[tokio::test]
async fn an_answer_is_marked_and_the_card_closed() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    let card = house.select("builder", &thread).await;
    house.hear(vec![within(&thread, mira("$m1", "1"))]).await;
    let posted = house.post().await;
    assert_eq!(
        kinds(&posted)[..2],
        [SendKind::CardEdit, SendKind::Reaction]
    );
    let reaction = &posted[1].sending.draft.content["m.relates_to"];
    assert_eq!(reaction["event_id"], "$m1");
    // Nobody hears of the question but by the prompt.
    let types: Vec<String> = (house.events("builder").await.into_iter())
        .map(|event| event.event_type)
        .collect();
    assert_eq!(types, ["agent_session.created", "agent_session.prompted"]);
    // A late reply is a prompt, word for word.
    house.hear(vec![to(&card, ben("$b1", "2"))]).await;
    assert_eq!(
        house.heard_in("builder", &thread).await[2..],
        ["prompted: 2"]
    );
}

#[tokio::test]
async fn the_link_goes_to_the_right_person_and_is_taken_back() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .act("builder", &thread, &auth("@mira:x.org"))
        .await
        .unwrap();
    let posted = house.post().await;
    let rooms: Vec<(&str, SendKind)> = (posted.iter())
        .map(|posted| (posted.sending.draft.room_id.as_str(), posted.kind()))
        .collect();
    assert!(rooms.contains(&("!direct-mira:x.org", SendKind::Connect)));
    assert!(rooms.contains(&(ROOM, SendKind::InThread)));
    for posted in &posted {
        let is_direct = posted.sending.draft.room_id == "!direct-mira:x.org";
        let holds = posted
            .sending
            .draft
            .content
            .to_string()
            .contains("scout.x.org");
        assert_eq!(holds, is_direct, "{posted:?}");
    }
    house
        .act("builder", &thread, &of("thought", "connected"))
        .await
        .unwrap();
    let posted = house.post().await;
    let over = posted
        .iter()
        .find(|posted| posted.kind() == SendKind::ConnectOver);
    let over = over.expect("the link is taken back");
    assert_eq!(over.sending.draft.room_id, "!direct-mira:x.org");
    assert!(
        !over
            .sending
            .draft
            .content
            .to_string()
            .contains("scout.x.org")
    );
}

#[tokio::test]
async fn a_link_that_was_never_sent_is_not_sent() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .act("builder", &thread, &auth("@mira:x.org"))
        .await
        .unwrap();
    house
        .act("builder", &thread, &of("thought", "never mind"))
        .await
        .unwrap();
    let posted = house.post().await;
    assert!(!kinds(&posted).contains(&SendKind::Connect));
    assert!(!kinds(&posted).contains(&SendKind::ConnectOver));
}

#[tokio::test]
async fn only_somebody_in_the_room_is_asked_to_connect_anything() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    for user_id in ["@nobody:x.org", "68d91d3629c051fe043158f9"] {
        let refused = house.act("builder", &thread, &auth(user_id)).await;
        let Err(SessionError::Invalid { field, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(field, "signal_metadata.user_id");
    }
    assert_eq!(house.status(&thread).await, Status::Active);
    assert!(!kinds(&house.post().await).contains(&SendKind::Connect));
}

#[tokio::test]
async fn a_person_may_be_named_as_the_agent_knows_them() {
    let mapped = "[agents.mapper]\ntoken = \"a-token-of-the-mapper\"\n
        people = { \"68d91d3629c051fe043158f9\" = \"@ben:x.org\" }";
    let mut house = House::with(mapped).await;
    let thread = house.begun("mapper").await;
    let wanted = auth("68d91d3629c051fe043158f9");
    let taken = house.act("mapper", &thread, &wanted).await.unwrap();
    // The payload goes through unchanged.
    assert_eq!(
        taken.signal_metadata.as_ref(),
        Some(&wanted["signal_metadata"])
    );
    let posted = house.post().await;
    let connect = posted
        .iter()
        .find(|posted| posted.kind() == SendKind::Connect);
    assert_eq!(connect.unwrap().sending.draft.room_id, "!direct-ben:x.org");
}

#[tokio::test]
async fn what_is_said_in_the_direct_room_is_no_prompt() {
    let mut house = House::start().await;
    let thread = house.begun("builder").await;
    house
        .act("builder", &thread, &auth("@mira:x.org"))
        .await
        .unwrap();
    let posted = house.post().await;
    let link = posted
        .iter()
        .find(|posted| posted.kind() == SendKind::Connect);
    let reply = to(
        &link.unwrap().event_id,
        mira("$m1", "my password is hunter2"),
    );
    let direct = "!direct-mira:x.org";
    let mut batch = only(&["@mira:x.org"], vec![]);
    let rules = batch.rooms.remove(ROOM).unwrap();
    batch.rooms.insert(direct.to_owned(), rules);
    batch.heard.push(Heard {
        room_id: direct.to_owned(),
        ..reply
    });
    house.take_in(batch).await;
    assert_eq!(house.heard_in("builder", &thread).await.len(), 1);
    assert_eq!(house.words(&thread).await.len(), 2);
}
