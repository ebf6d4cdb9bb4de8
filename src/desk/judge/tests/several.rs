//! Several questions in one room: which one is meant.

use super::*;

use MatchedBy::{Id, Number};
use TargetedBy::{Label, OnlyOpen, Reply, Tag, Thread};

fn both() -> [Known; 2] {
    [first(), second()]
}

fn say(known: &[Known], said: &Said) -> Vec<Change> {
    judge_all(known, &mira("$m1"), said)
}

fn asked_in(known: Known, thread: &str) -> Known {
    with(known, |elicitation| {
        elicitation.question.thread = Some(thread.to_owned());
    })
}

/// Pain: swallow.
#[test]
fn a_number_never_picks_the_question() {
    let changes = say(&both(), &words("1"));
    let (id, what, notice) = told(&changes);
    // It stands with both, and is remembered with the newest.
    assert_eq!((id, what), ("e2", "ask_which q1 q2"));
    assert_eq!(
        notice.also,
        [Key::new("builder", "e1"), Key::new("builder", "e2")]
    );
    assert!(body(notice).contains("q1: What about e1?\nq2: What about e2?"));
}

#[test]
fn an_id_or_a_label_picks_the_question_that_has_it() {
    let changes = say(&both(), &words("blue"));
    assert_eq!(in_short(&changes), ("e2", "blue", Id, Label));
}

#[test]
fn an_id_that_two_questions_have_picks_neither() {
    let twin = asked("e2", "q2", &[("deploy", "Deploy it"), ("never", "Never")]);
    let changes = say(&[first(), twin], &words("deploy"));
    let (_, what, _) = told(&changes);
    assert_eq!(what, "ask_which q1 q2");
}

#[test]
fn a_reply_a_thread_or_a_tag_tells_which_one_is_meant() {
    for (said, found) in [
        (reply_to("$e1", "2"), Reply),
        (in_thread("$e1", "2"), Thread),
        (words("q1 2"), Tag),
        (words("@elicit:x.org Q1: 2"), Tag),
    ] {
        let changes = say(&both(), &said);
        assert_eq!(
            in_short(&changes),
            ("e1", "wait", Number, found),
            "{said:?}"
        );
    }
}

#[test]
fn a_tag_that_contradicts_what_is_replied_to_is_asked_about() {
    let changes = say(&both(), &reply_to("$e1", "q2 1"));
    let (_, what, _) = told(&changes);
    assert_eq!(what, "ask_which q1 q2");
}

#[test]
fn a_reply_to_the_notice_that_asks_which_one_does_not_say_it_yet() {
    let mut known = both();
    for known in &mut known {
        known.own_events.push("$which".to_owned());
    }
    let changes = say(&known, &reply_to("$which", "1"));
    assert_eq!(told(&changes).1, "ask_which q1 q2");
    let changes = say(&known, &reply_to("$which", "q2 1"));
    assert_eq!(in_short(&changes), ("e2", "red", Number, Tag));
}

#[test]
fn a_question_that_is_not_visible_yet_does_not_make_another_unclear() {
    let unseen = with(second(), |elicitation| elicitation.visible = false);
    let changes = say(&[first(), unseen], &words("1"));
    assert_eq!(in_short(&changes), ("e1", "deploy", Number, OnlyOpen));
}

#[test]
fn a_question_for_others_does_not_make_ones_own_unclear() {
    let changes = say(&[first(), only_for(second(), &["@ben:x.org"])], &words("1"));
    assert_eq!(in_short(&changes), ("e1", "deploy", Number, OnlyOpen));
}

#[test]
fn a_card_asked_inside_a_thread_has_the_thread_for_itself() {
    let threaded = asked_in(second(), "$root");
    let known = [first(), threaded];
    let changes = say(&known, &in_thread("$root", "1"));
    assert_eq!(in_short(&changes), ("e2", "red", Number, Thread));
    let changes = say(&known, &in_thread("$elsewhere", "1"));
    assert_eq!(told(&changes).1, "ask_which q1 q2");
    // A reply within the thread to another card means that card.
    let said = Said {
        falling_back: false,
        in_reply_to: Some("$e1".to_owned()),
        ..in_thread("$root", "1")
    };
    let changes = say(&known, &said);
    assert_eq!(in_short(&changes), ("e1", "deploy", Number, Reply));
}

#[test]
fn what_was_said_in_a_thread_before_a_card_was_asked_there_is_not_for_it() {
    let mut unseen = asked_in(in_words(), "$root");
    unseen.elicitation.visible = false;
    assert_eq!(say(&[unseen.clone()], &in_thread("$root", "1")), []);
    unseen.elicitation.visible = true;
    let changes = say(&[unseen], &in_thread("$root", "1"));
    assert_eq!(in_short(&changes), ("e3", "1", MatchedBy::Text, Thread));
}

/// Pain: thread.
#[test]
fn two_cards_in_one_thread_are_told_apart_like_two_in_one_room() {
    let known = both().map(|known| asked_in(known, "$root"));
    let changes = say(&known, &in_thread("$root", "2"));
    assert_eq!(told(&changes).1, "ask_which q1 q2");
    let changes = say(&known, &in_thread("$root", "red"));
    assert_eq!(in_short(&changes), ("e2", "red", Id, Label));
    let changes = say(&known, &in_thread("$root", "q1 2"));
    assert_eq!(in_short(&changes), ("e1", "wait", Number, Tag));
    let reply = Said {
        falling_back: false,
        in_reply_to: Some("$e1".to_owned()),
        ..in_thread("$root", "2")
    };
    let changes = say(&known, &reply);
    assert_eq!(in_short(&changes), ("e1", "wait", Number, Reply));
}

#[test]
fn a_question_asked_in_the_thread_of_an_older_card_takes_the_thread_over_when_that_is_over() {
    let follow_up = asked_in(second(), "$e1");
    let open = [first(), follow_up.clone()];
    let changes = say(&open, &in_thread("$e1", "1"));
    assert_eq!(told(&changes).1, "ask_which q1 q2");

    let over = [follow_up, answered(first())];
    let changes = say(&over, &in_thread("$e1", "1"));
    assert_eq!(in_short(&changes), ("e2", "red", Number, Thread));
    // A rich reply to the older card still means that one.
    let to_the_root = Said {
        falling_back: false,
        in_reply_to: Some("$e1".to_owned()),
        ..in_thread("$e1", "1")
    };
    let changes = say(&over, &to_the_root);
    assert_eq!((told(&changes).0, told(&changes).1), ("e1", "closed"));
    let changes = say(&open, &to_the_root);
    assert_eq!(in_short(&changes), ("e1", "deploy", Number, Reply));
}
