//! One question, and what answers it.

use super::*;

use MatchedBy::{Id, Label, Number, Text};
use TargetedBy::{OnlyOpen, Reply, Tag, Thread};

#[test]
fn an_answer_closes_its_question_marks_the_message_and_tells_the_agent() {
    let known = first();
    let expected = Elicitation {
        state: State::Answered,
        closed_at: Some(NOW),
        answer: Some(Answer {
            kind: AnswerKind::Option,
            option: Some(NumberedOption {
                number: 2,
                id: "wait".to_owned(),
                label: "Wait".to_owned(),
            }),
            text: Some(" 2.\n".to_owned()),
            answered_by: "@mira:x.org".to_owned(),
            display_name: Some("Mira".to_owned()),
            event_id: "$m1".to_owned(),
            answered_at: NOW - 2_000,
            matched_by: Number,
            targeted_by: OnlyOpen,
            directed: false,
            encrypted: false,
            sender_verified: None,
        }),
        ..known.elicitation.clone()
    };
    let draft = |kind, content| SendDraft {
        room_id: ROOM.to_owned(),
        key: Key::new("builder", "e1"),
        also: Vec::new(),
        kind,
        content,
    };
    assert_eq!(
        says(&known, &words(" 2.\n")),
        [
            Change::Close {
                edit: Some(draft(SendKind::CardEdit, prose::closed(&expected))),
                event: Some(EventDraft {
                    urgent: false,
                    key: Key::new("builder", "e1"),
                    event_type: "elicitation.answered".to_owned(),
                    body: object(&expected),
                }),
                closed: Box::new(expected),
            },
            Change::Send(draft(
                SendKind::Reaction,
                json!({ "m.relates_to": { "rel_type": "m.annotation", "event_id": "$m1", "key": "✓" } }),
            )),
        ]
    );
}

#[test]
fn the_edited_card_says_what_was_chosen_by_whom_and_carries_no_card() {
    let changes = says(&first(), &words("wait"));
    let [
        Change::Close {
            edit: Some(edit), ..
        },
        _,
    ] = changes.as_slice()
    else {
        panic!("it is no answer: {changes:?}");
    };
    assert_eq!(
        edit.content["m.new_content"]["body"],
        "What about e1?\n\n✓ 2. Wait — Mira (@mira:x.org), 30 Nov 2026, 14:04 UTC\n\n— asked by builder"
    );
    assert!(!edit.content.to_string().contains("dev.superpipeline"));
}

#[test]
fn a_number_an_id_or_a_label_answers() {
    let known = asked(
        "e1",
        "q1",
        &[("run_it", "Run the tests"), ("skip", "Skip them")],
    );
    for (body, id, by) in [
        ("1", "run_it", Number),
        ("#2", "skip", Number),
        ("run_it", "run_it", Id),
        ("SKIP", "skip", Id),
        ("run the  TESTS", "run_it", Label),
        ("**Skip them.**", "skip", Label),
    ] {
        let changes = says(&known, &words(body));
        assert_eq!(in_short(&changes), ("e1", id, by, OnlyOpen), "{body}");
    }
}

#[test]
fn an_option_past_the_fourth_answers_too() {
    let options: Vec<(String, String)> = (1..=9)
        .map(|n| (format!("id_{n}"), format!("Label {n}")))
        .collect();
    let options: Vec<(&str, &str)> = options
        .iter()
        .map(|(id, label)| (id.as_str(), label.as_str()))
        .collect();
    let known = asked("e1", "q1", &options);
    for (body, by) in [("5", Number), ("id_5", Id), ("label 5", Label)] {
        let changes = says(&known, &words(body));
        assert_eq!(in_short(&changes), ("e1", "id_5", by, OnlyOpen), "{body}");
    }
}

#[test]
fn what_is_said_to_the_card_is_directed_and_may_say_more() {
    for (said, found) in [
        (reply_to("$e1", "the second one, please"), Reply),
        (in_thread("$e1", "option 2"), Thread),
        (words("q1 the last one"), Tag),
        (words("Elicit: I choose 2"), OnlyOpen),
        (
            Said {
                mentions_bot: true,
                ..words("go with wait")
            },
            OnlyOpen,
        ),
    ] {
        let changes = says(&first(), &said);
        assert!(taken(&changes).directed, "{said:?}");
        let (id, option, _, targeted_by) = in_short(&changes);
        assert_eq!((id, option, targeted_by), ("e1", "wait", found), "{said:?}");
    }
}

#[test]
fn a_reply_to_any_message_about_a_question_is_for_it() {
    let mut known = first();
    known.own_events.push("$notice".to_owned());
    let changes = says(
        &known,
        &reply_to("$notice", "> <@elicit:x.org> Which?\n\n1"),
    );
    assert_eq!(in_short(&changes), ("e1", "deploy", Number, Reply));
    assert_eq!(
        taken(&changes).text.as_deref(),
        Some("1"),
        "what the person typed, without what their client quoted"
    );
    let quoted = says(&known, &words("> 1"));
    assert_eq!(quoted, [], "quoting by hand is not answering");
}

/// Pain: blank.
#[test]
fn words_answer_where_words_are_asked_for() {
    let changes = says(&in_words(), &reply_to("$e3", "  Not before *Monday*\n"));
    let answer = taken(&changes);
    assert_eq!(
        *answer,
        Answer {
            kind: AnswerKind::Text,
            option: None,
            text: Some("Not before *Monday*".to_owned()),
            answered_by: "@mira:x.org".to_owned(),
            display_name: Some("Mira".to_owned()),
            event_id: "$m1".to_owned(),
            answered_at: NOW - 2_000,
            matched_by: Text,
            targeted_by: Reply,
            directed: true,
            encrypted: false,
            sender_verified: None,
        }
    );
    assert_eq!(
        says(&in_words(), &words("lunch anybody?")),
        [],
        "not directed"
    );
    assert_eq!(
        says(&in_words(), &reply_to("$e3", " \u{200b}\n")),
        [],
        "blank"
    );
}

#[test]
fn options_and_words_go_together() {
    let known = with(first(), |elicitation| elicitation.question.free_text = true);
    let changes = says(&known, &reply_to("$e1", "Deploy"));
    assert_eq!(in_short(&changes), ("e1", "deploy", Id, Reply));
    let changes = says(&known, &reply_to("$e1", "deploy, but to staging"));
    assert_eq!(
        in_short(&changes),
        ("e1", "deploy, but to staging", Text, Reply)
    );
}

#[test]
fn alone_with_the_bot_everything_is_directed() {
    let mut heard = mira("$m1");
    heard.sender.alone = true;
    let changes = judge_one(&first(), &heard, &words("the first one"));
    assert_eq!(in_short(&changes), ("e1", "deploy", Number, OnlyOpen));
    assert!(taken(&changes).directed);
}

#[test]
fn the_talk_of_the_room_is_left_alone() {
    for body in [
        "good morning",
        "yes",
        "deploy or wait?",
        "3",
        "not wait",
        "",
        "> 1",
        "wait, but why",
    ] {
        assert_eq!(says(&first(), &words(body)), [], "{body}");
    }
}

#[test]
fn what_was_meant_and_not_understood_is_asked_again() {
    let changes = says(&first(), &reply_to("$e1", "wiat"));
    let (id, what, notice) = told(&changes);
    assert_eq!((id, what), ("e1", "not_understood [1]"));
    assert!(body(notice).contains("Did you mean 2, Wait?"), "{notice:?}");

    let changes = says(&first(), &reply_to("$e1", "1 or 2"));
    let (id, what, notice) = told(&changes);
    assert_eq!((id, what), ("e1", "ask_option [0, 1]"));
    assert_eq!(
        notice.content["m.relates_to"],
        json!({ "m.in_reply_to": { "event_id": "$m1" } })
    );
}

#[test]
fn a_notice_to_a_message_in_a_thread_stays_in_the_thread() {
    let changes = says(&first(), &in_thread("$e1", "maybe"));
    let (_, _, notice) = told(&changes);
    assert_eq!(
        notice.content["m.relates_to"],
        json!({
            "rel_type": "m.thread", "event_id": "$e1", "is_falling_back": false,
            "m.in_reply_to": { "event_id": "$m1" },
        })
    );
}

#[test]
fn before_its_card_was_seen_a_question_is_answered_only_by_what_points_at_its_card() {
    let unseen = with(first(), |elicitation| elicitation.visible = false);
    assert_eq!(says(&unseen, &words("1")), []);
    assert_eq!(says(&unseen, &words("q1 1")), []);
    let changes = says(&unseen, &reply_to("$e1", "1"));
    assert_eq!(in_short(&changes), ("e1", "deploy", Number, Reply));
}

#[test]
fn an_edit_of_a_message_that_was_no_answer_is_read_as_if_it_were_said_now() {
    let changes = says(&first(), &edit_of("$m0", "2"));
    assert_eq!(in_short(&changes), ("e1", "wait", Number, OnlyOpen));
    // The room shows the edited message, not the edit: that one is marked, and watched.
    assert_eq!(taken(&changes).event_id, "$m0");
    let [_, Change::Send(reaction)] = changes.as_slice() else {
        panic!("no reaction in {changes:?}");
    };
    assert_eq!(reaction.content["m.relates_to"]["event_id"], "$m0");
    let mentioned = Said {
        mentions_bot: true,
        ..edit_of("$m0", "perhaps")
    };
    let changes = says(&first(), &mentioned);
    let (_, _, notice) = told(&changes);
    assert_eq!(
        notice.content["m.relates_to"]["m.in_reply_to"]["event_id"],
        "$m0"
    );
}

#[test]
fn in_an_encrypted_room_the_answer_says_how_far_its_sender_is_trusted() {
    for (trust, encrypted, verified) in [
        (Trust::Plain, false, None),
        (Trust::Clear, false, Some(false)),
        (Trust::Unverified, true, Some(false)),
        (Trust::Verified, true, Some(true)),
    ] {
        let changes = judge_one(&first(), &trusted(trust), &words("1"));
        let answer = taken(&changes);
        assert_eq!(
            (answer.encrypted, answer.sender_verified),
            (encrypted, verified),
            "{trust:?}"
        );
    }
}
