//! How the question is found.

use super::*;

#[test]
fn the_only_open_question_takes_the_bare_answer() {
    let room = [closed(answers()), colours()];
    assert_eq!(
        reading(&said("2"), &room),
        chosen(1, 1, Number, OnlyOpen, false)
    );
    assert_eq!(
        reading(&said("RED!"), &room),
        chosen(1, 0, Id, OnlyOpen, false)
    );
    assert_silent(&reading(&said("the second one"), &room));
    assert_silent(&reading(&said("see you at lunch"), &room));
    assert_silent(&reading(&said("1 or 2"), &room));
    assert_silent(&reading(&said("later"), &room));
}

#[test]
fn without_an_open_question_there_is_silence() {
    assert_silent(&reading(&said("2"), &[]));
    for message in [
        said("2"),
        mentioning("2"),
        Message {
            alone: true,
            ..said("2")
        },
    ] {
        assert_silent(&reading(&message, &[closed(colours())]));
        assert_silent(&reading(&message, &[unseen(colours())]));
    }
}

#[test]
fn a_reply_to_the_card_or_a_notice_is_directed_at_its_question() {
    let room = [colours(), answers()];
    for event in ["$q2-card", "$q2-notice"] {
        assert_eq!(
            reading(&replying(event, "the second one"), &room),
            chosen(1, 1, Number, Reply, true)
        );
    }
    assert_eq!(
        reading(&replying("$q1-card", "red"), &room),
        chosen(0, 0, Id, Reply, true)
    );
    assert_not_understood(&reading(&replying("$q1-card", "later"), &room), 0, Reply);
    assert_eq!(
        reading(&replying("$q1-card", "1 or 2"), &room),
        Reading::AskOption {
            question: 0,
            options: vec![0, 1],
            targeted_by: Reply,
            directed: true
        }
    );
}

#[test]
fn a_message_in_the_cards_thread_is_directed_at_its_question() {
    let room = [colours(), answers()];
    assert_eq!(
        reading(&in_thread("$q2-card", "the second one"), &room),
        chosen(1, 1, Number, Thread, true)
    );
    // A reply inside the thread that points at another card wins.
    let crossing = Message {
        falling_back: false,
        in_reply_to: Some("$q1-card"),
        ..in_thread("$q2-card", "2")
    };
    assert_eq!(reading(&crossing, &room), chosen(0, 1, Number, Reply, true));
    // The reply of a thread message for old clients points at nothing.
    let falling_back = Message {
        in_reply_to: Some("$q1-card"),
        ..in_thread("$q2-card", "2")
    };
    assert_eq!(
        reading(&falling_back, &room),
        chosen(1, 1, Number, Thread, true)
    );
    // One inside it that answers somebody else is still in the thread.
    let nested = Message {
        falling_back: false,
        ..in_thread("$q2-card", "2")
    };
    assert_eq!(reading(&nested, &room), chosen(1, 1, Number, Thread, true));
}

#[test]
fn a_reply_to_somebody_else_is_read_strictly() {
    let room = [colours()];
    assert_eq!(
        reading(&replying("$somebody", "2"), &room),
        chosen(0, 1, Number, OnlyOpen, false)
    );
    assert_silent(&reading(&replying("$somebody", "the second one"), &room));
    assert_silent(&reading(&in_thread("$elsewhere", "the second one"), &room));
    assert_silent(&reading(
        &replying("$somebody", "no idea"),
        &[free(colours())],
    ));
}

/// Pain: fallback.
#[test]
fn the_reply_fallback_is_dropped_only_from_a_reply() {
    let room = [colours()];
    let quoted = "> <@elicit:example.org> Which?\n> 1. Red\n\n2";
    assert_eq!(
        reading(&replying("$q1-card", quoted), &room),
        chosen(0, 1, Number, Reply, true)
    );
    assert_eq!(
        reading(&replying("$somebody", quoted), &room),
        chosen(0, 1, Number, OnlyOpen, false)
    );
    assert_eq!(
        reading(&in_thread("$q1-card", quoted), &room),
        chosen(0, 1, Number, Thread, true)
    );
    assert_silent(&reading(&said(quoted), &room));
    assert_silent(&reading(&said("> 2"), &room));
    assert_silent(&reading(&replying("$q1-card", "> 2"), &room));
}

#[test]
fn a_mention_makes_a_message_directed() {
    let room = [colours()];
    for body in [
        "the second one",
        "Elicit Bot: the second one",
        "@elicit:example.org the second one",
    ] {
        assert_eq!(
            reading(&mentioning(body), &room),
            chosen(0, 1, Number, OnlyOpen, true),
            "{body}"
        );
    }
    for body in ["elicit: two", "elicit bot, two", "@elicit:example.org two"] {
        assert_eq!(
            reading(&said(body), &room),
            chosen(0, 1, Number, OnlyOpen, true),
            "{body}"
        );
    }
    // A bare name before a blank may be an ordinary word: read, but never commented on.
    assert_eq!(
        reading(&said("elicit 2"), &room),
        chosen(0, 1, Number, OnlyOpen, false)
    );
    assert_silent(&reading(&said("elicit two"), &room));
    assert_silent(&reading(&said("elicit is slow today"), &room));
    assert_not_understood(&reading(&said("elicit: what now?"), &room), 0, OnlyOpen);
    assert_not_understood(
        &reading(&mentioning("@elicit:example.org"), &room),
        0,
        OnlyOpen,
    );
}

/// Pain: fallback.
#[test]
fn a_bot_named_like_an_option_takes_nothing_from_the_answer() {
    let red = Bot {
        user_id: "@red:example.org",
        display_name: Some("Red"),
    };
    let room = [free(asked(
        "q1",
        &[("red", "Red"), ("wine", "Red wine"), ("grape", "Wine")],
    ))];
    assert_eq!(
        reading_by(red, &said("red"), &room),
        chosen(0, 0, Id, OnlyOpen, false)
    );
    assert_eq!(
        reading_by(red, &said("Red wine"), &room),
        chosen(0, 1, Label, OnlyOpen, false)
    );
    assert_eq!(
        reading_by(red, &said("red: apples"), &room),
        text(0, "apples", OnlyOpen)
    );
    let second = Bot {
        user_id: "@second:example.org",
        display_name: None,
    };
    assert_eq!(
        reading_by(second, &replying("$q1-card", "second one"), &room),
        chosen(0, 1, Number, Reply, true)
    );
    let reply = Message {
        mentions_bot: true,
        ..replying("$q1-card", "Red apples")
    };
    assert_eq!(reading_by(red, &reply, &room), text(0, "Red apples", Reply));
    assert_eq!(
        reading_by(red, &mentioning("Red apples"), &room),
        text(0, "apples", OnlyOpen)
    );
}

#[test]
fn in_a_room_of_two_every_message_is_directed() {
    let alone = |body| Message {
        alone: true,
        ..said(body)
    };
    assert_eq!(
        reading(&alone("the last one"), &[colours()]),
        chosen(0, 2, Number, OnlyOpen, true)
    );
    assert_not_understood(&reading(&alone("hello"), &[colours()]), 0, OnlyOpen);
    assert_eq!(
        reading(&alone("hello"), &[colours(), answers()]),
        which(&[0, 1])
    );
}

#[test]
fn a_tag_names_its_question() {
    let room = [colours(), answers()];
    for body in ["q2 2", "Q2: two", "q2, no", "elicit: q2 second option"] {
        let reading = reading(&said(body), &room);
        assert!(
            matches!(
                reading,
                Reading::Choose {
                    question: 1,
                    option: 1,
                    targeted_by: Tag,
                    directed: true,
                    ..
                }
            ),
            "{body}: {reading:?}"
        );
    }
    assert_not_understood(&reading(&said("q2"), &room), 1, Tag);
    assert_not_understood(&reading(&said("q2 whatever"), &room), 1, Tag);
    assert_eq!(
        reading(&said("q2 whatever"), &[colours(), free(answers())]),
        text(1, "whatever", Tag)
    );
    assert_silent(&reading(&said("q3 2"), &room));
    assert_silent(&reading(&said("q2-2"), &room));
    assert_eq!(
        reading(&said("q2 2"), &[colours(), for_others(answers())]),
        Reading::MayNotAnswer { question: 1 }
    );
}

#[test]
fn an_option_that_looks_like_a_tag_is_an_option() {
    let quarters = asked("q1", &[("q1", "First quarter"), ("q2", "Second quarter")]);
    let room = [quarters, colours_tagged_q2()];
    assert_eq!(
        reading(&said("q2"), &room),
        chosen(0, 1, Id, TargetedBy::Label, false)
    );
    assert_eq!(
        reading(&said("q1"), &room),
        chosen(0, 0, Id, TargetedBy::Label, false)
    );
    assert_eq!(
        reading(&said("q2 2"), &room),
        chosen(1, 1, Number, Tag, true)
    );
    assert_eq!(reading(&said("q1 q2"), &room), chosen(0, 1, Id, Tag, true));
}

fn colours_tagged_q2() -> Asked {
    Asked {
        tag: "q2",
        ..colours()
    }
}

#[test]
fn a_tag_in_a_reply_must_not_contradict_it() {
    let room = [colours(), answers()];
    assert_eq!(
        reading(&replying("$q1-card", "q1 2"), &room),
        chosen(0, 1, Number, Reply, true)
    );
    assert_eq!(
        reading(&replying("$q1-card", "q2 2"), &room),
        which(&[0, 1])
    );
    let room = [free(colours()), answers()];
    assert_eq!(
        reading(&replying("$q1-card", "Q2 was good"), &room),
        text(0, "Q2 was good", Reply)
    );
    assert_eq!(
        reading(&replying("$q1-card", "q1: was good"), &room),
        text(0, "was good", Reply)
    );
}

#[test]
fn a_tag_of_a_question_that_is_over_says_so() {
    let room = [closed(colours()), answers()];
    for body in ["q1 2", "q1", "q1: the last one"] {
        assert_eq!(
            reading(&said(body), &room),
            Reading::Closed { question: 0 },
            "{body}"
        );
    }
    assert_silent(&reading(&said("Q1 was a good quarter"), &room));
    // A tag given again belongs to the open question, once it could be seen.
    let again = Asked {
        tag: "q1",
        ..answers()
    };
    let room = [closed(colours()), again.clone()];
    assert_eq!(
        reading(&said("q1 2"), &room),
        chosen(1, 1, Number, Tag, true)
    );
    assert_eq!(
        reading(&said("q1 2"), &[closed(colours()), unseen(again)]),
        Reading::Closed { question: 0 }
    );
}

#[test]
fn a_reply_to_a_question_that_is_over_says_so() {
    let room = [closed(colours()), answers()];
    for body in ["2", "red", "what?", "yes"] {
        assert_eq!(
            reading(&replying("$q1-card", body), &room),
            Reading::Closed { question: 0 },
            "{body}"
        );
        assert_eq!(
            reading(&in_thread("$q1-card", body), &room),
            Reading::Closed { question: 0 },
            "{body}"
        );
    }
}

#[test]
fn several_open_questions_are_told_apart_by_name_never_by_number() {
    let room = [colours(), answers()];
    assert_eq!(reading(&said("2"), &room), which(&[0, 1]));
    assert_eq!(reading(&said("4"), &room), which(&[0, 1]));
    assert_eq!(reading(&mentioning("the last one"), &room), which(&[0, 1]));
    assert_eq!(
        reading(&said("green"), &room),
        chosen(0, 1, Id, TargetedBy::Label, false)
    );
    assert_eq!(
        reading(&said("Later."), &room),
        chosen(1, 2, Id, TargetedBy::Label, false)
    );
    assert_eq!(
        reading(&mentioning("later please"), &room),
        chosen(1, 2, Id, TargetedBy::Label, true)
    );
    assert_eq!(reading(&said("red"), &room), which(&[0, 1]));
    assert_eq!(
        reading(&mentioning("green or blue"), &room),
        Reading::AskOption {
            question: 0,
            options: vec![1, 2],
            targeted_by: TargetedBy::Label,
            directed: true
        }
    );
    assert_silent(&reading(&said("lunch?"), &room));
    assert_silent(&reading(&said("5"), &room));
    assert_eq!(reading(&mentioning("lunch?"), &room), which(&[0, 1]));
    assert_eq!(
        reading(&mentioning("lunch"), &[free(colours()), answers()]),
        which(&[0, 1])
    );
}

#[test]
fn a_label_that_is_another_questions_number_asks_which() {
    let room = [
        colours(),
        asked("q2", &[("a", "Ten"), ("b", "3")]),
        asked("q3", &[("x", "X")]),
    ];
    assert_eq!(reading(&said("3"), &room), which(&[0, 1]));
}

#[test]
fn a_reply_to_a_notice_about_several_is_among_those() {
    let room = [colours(), answers()];
    assert_eq!(reading(&replying("$which", "2"), &room), which(&[0, 1]));
    assert_eq!(
        reading(&replying("$which", "q2 2"), &room),
        chosen(1, 1, Number, Tag, true)
    );
    assert_eq!(
        reading(&replying("$which", "green please"), &room),
        chosen(0, 1, Id, TargetedBy::Label, true)
    );
    // One of them is over by now: the number may have been meant for that one.
    assert_eq!(
        reading(&replying("$which", "2"), &[closed(colours()), answers()]),
        which(&[1])
    );
    assert_eq!(
        reading(
            &replying("$which", "2"),
            &[closed(colours()), closed(answers())]
        ),
        Reading::Closed { question: 1 }
    );
}
