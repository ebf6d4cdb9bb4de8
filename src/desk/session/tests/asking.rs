//! An agent asks with a signal.

use super::*;
use crate::elicitation::AnswerKind;
use crate::reply::{MatchedBy, TargetedBy};

fn answer(option: Option<usize>, play: &Play) -> Answer {
    let open = play.open.as_ref().unwrap();
    let option = option.and_then(|index| open.numbered(index));
    Answer {
        kind: option
            .as_ref()
            .map_or(AnswerKind::Text, |_| AnswerKind::Option),
        option,
        text: Some("1".to_owned()),
        answered_by: "@mira:x.org".to_owned(),
        display_name: None,
        event_id: "$said".to_owned(),
        answered_at: play.now,
        matched_by: MatchedBy::Number,
        targeted_by: TargetedBy::Thread,
        directed: true,
        encrypted: false,
        sender_verified: None,
    }
}

#[test]
fn a_select_is_a_card_whose_ids_are_the_values() {
    let mut play = Play::begin();
    play.fresh().does("select");
    let open = play.open.clone().unwrap();
    let shown: Vec<(&str, &str)> = (open.question.options.iter())
        .map(|option| (option.id.as_str(), option.label.as_str()))
        .collect();
    // "label falls back to value"
    assert_eq!(
        shown,
        [("staging", "Staging"), ("production", "production")]
    );
    assert_eq!(open.key(), &Key::new("session:sess_1", "act_1"));
    assert_eq!(open.question.prompt, "Which environment?");
    assert_eq!(open.question.asked_by, "scout");
    assert_eq!(open.question.thread.as_deref(), Some(ROOT));
    assert_eq!(
        open.question.owner(),
        None,
        "nobody hears of the question itself"
    );
    assert!(open.question.free_text, "people may write their own answer");
    assert_eq!(open.tag, "q1");
    assert_eq!(play.kinds(), [SendKind::Card]);
}

#[test]
fn what_is_chosen_closes_the_question_and_is_told_as_a_prompt() {
    let mut play = Play::begin();
    play.does("select");
    let chosen = Prompt {
        answer: Some(answer(Some(1), &play)),
        ..prompt("production")
    };
    let changes = prompted(
        &play.session,
        &chosen,
        play.open.as_ref(),
        "act_2".to_owned(),
        play.now,
    );
    play.fresh().carry_out(changes);
    assert_eq!(play.open, None);
    assert_eq!(
        play.heard(),
        [("agent_session.prompted", "production", None)]
    );
    assert_eq!(play.status(), Status::Active);
    let reaction = play
        .sent
        .iter()
        .find(|sent| sent.kind == SendKind::Reaction);
    let relation = &reaction.unwrap().content["m.relates_to"];
    assert_eq!(relation["event_id"], "$said");
}

#[test]
fn an_answer_to_a_question_that_is_over_is_a_prompt_all_the_same() {
    let mut play = Play::begin();
    play.does("select");
    let late = Prompt {
        answer: Some(answer(Some(0), &play)),
        ..prompt("staging")
    };
    play.does("response");
    let changes = prompted(&play.session, &late, None, "act_3".to_owned(), play.now);
    play.fresh().carry_out(changes);
    assert_eq!(play.heard(), [("agent_session.prompted", "staging", None)]);
    assert!(!play.kinds().contains(&SendKind::Reaction));
}

#[test]
fn a_question_stays_open_while_the_agent_thinks_and_goes_with_its_last_word() {
    let mut play = Play::begin();
    play.does("select");
    play.does("thought");
    assert!(play.open.is_some());
    assert_eq!(play.status(), Status::Active);
    play.does("response");
    assert_eq!(play.open, None);
}

#[test]
fn a_later_question_takes_the_place_of_an_earlier_one() {
    let mut play = Play::begin();
    play.does("select");
    play.does("select");
    let open = play.open.clone().unwrap();
    assert_eq!(open.key().id, "act_2");
    play.does("elicitation");
    assert_eq!(play.open, None);
}

/// "auth: shown only to that person"
#[test]
fn the_link_goes_to_the_person_alone_and_the_thread_hears_without_it() {
    let mut play = Play::begin();
    play.fresh().does("auth");
    let kinds = [SendKind::Connect, SendKind::InThread, SendKind::InThread];
    assert_eq!(play.kinds(), kinds);
    assert_eq!(play.sent[0].room_id, "!direct:x.org");
    assert_eq!(play.sent[0].key, Key::new("session:sess_1", "act_1"));
    assert!(
        play.sent[0]
            .content
            .to_string()
            .contains("scout.x.org/connect")
    );
    assert_eq!(play.sent[1].room_id, ROOM);
    assert!(!play.sent[1].content.to_string().contains("scout.x.org"));
    let connecting = play.session.connecting.as_ref().unwrap();
    assert_eq!(connecting.room_id, "!direct:x.org");
    assert_eq!(connecting.activity, "act_1");
}

/// "The link is edited away as soon as any later activity arrives."
#[test]
fn any_later_activity_takes_the_link_back_once() {
    type Later = fn(&mut Play);
    let later: [(&str, Later); 12] = [
        ("thought", |play| drop(play.does("thought"))),
        ("ephemeral", |play| drop(play.does("ephemeral"))),
        ("action", |play| drop(play.does("action"))),
        ("elicitation", |play| drop(play.does("elicitation"))),
        ("select", |play| drop(play.does("select"))),
        ("auth", |play| drop(play.does("auth"))),
        ("response", |play| drop(play.does("response"))),
        ("error", |play| drop(play.does("error"))),
        ("prompt", |play| play.says("done")),
        ("stop", |play| play.stop(EndReason::Stopped)),
        ("undelegate", |play| play.stop(EndReason::Undelegated)),
        ("delete", Play::delete),
    ];
    for (name, happens) in later {
        let mut play = Play::begin();
        play.does("auth");
        happens(play.fresh());
        let over = |play: &Play| {
            let over = play.sent.iter();
            let over = over.filter(|sent| sent.kind == SendKind::ConnectOver);
            over.cloned().collect::<Vec<SendDraft>>()
        };
        let taken_back = over(&play);
        assert_eq!(taken_back.len(), 1, "{name}");
        assert_eq!(taken_back[0].room_id, "!direct:x.org");
        assert_eq!(taken_back[0].key.id, "act_1");
        assert!(!taken_back[0].content.to_string().contains("scout.x.org"));
        assert_eq!(play.session.connecting.is_some(), name == "auth");
        if !play.session.has_ended() && name != "auth" {
            play.fresh().says("more");
            assert_eq!(over(&play), [], "{name}");
        }
    }
}

#[test]
fn the_link_is_not_taken_back_by_time() {
    let mut play = Play::begin();
    play.does("auth");
    play.fresh().wait(STALE_AFTER * 2);
    assert_eq!(play.status(), Status::AwaitingInput);
    assert!(play.session.connecting.is_some());
    assert!(!play.kinds().contains(&SendKind::ConnectOver));
}
