//! Whoever will not answer says so, where the question allows that.

use super::*;
use crate::desk::{command, obey};
use crate::reply::Commands;

/// The first question, which may be declined.
fn declinable() -> Known {
    with(first(), |elicitation| {
        elicitation.question.decline = Some("!decline".to_owned());
    })
}

/// What follows when a person gives a command.
fn gives(known: &[Known], heard: &Heard, said: &Said) -> Vec<Change> {
    let commands = Commands::new("!");
    let command = command(said, &commands, &elicit()).expect("it is a command");
    obey(
        heard,
        said,
        &command,
        known,
        &Rules::default(),
        &elicit(),
        &commands,
        NOW,
    )
}

fn mira_gives(known: &[Known], said: &Said) -> Vec<Change> {
    gives(known, &mira("$m1"), said)
}

/// The answer to a command: about which questions, and what it says.
#[track_caller]
fn answered_with(changes: &[Change]) -> (Vec<&str>, &str) {
    let [Change::AnswerCommand { user_id, notice }] = changes else {
        panic!("no command is answered by {changes:?}");
    };
    assert_eq!(user_id, "@mira:x.org");
    let about = notice.also.iter().map(|key| key.id.as_str()).collect();
    (about, body(notice))
}

#[track_caller]
fn declined(changes: &[Change]) -> (&str, TargetedBy) {
    let over = closed(changes);
    assert_eq!((over.state, over.reason.as_ref()), (State::Declined, None));
    let by = over.answer.as_ref().expect("it says who");
    let expected = Answer {
        kind: AnswerKind::Declined,
        option: None,
        text: None,
        answered_by: "@mira:x.org".to_owned(),
        display_name: Some("Mira".to_owned()),
        event_id: "$m1".to_owned(),
        answered_at: NOW - 2_000,
        matched_by: MatchedBy::Text,
        targeted_by: by.targeted_by,
        directed: true,
        encrypted: false,
        sender_verified: None,
    };
    assert_eq!(*by, expected);
    (&over.question.key.id, by.targeted_by)
}

#[test]
fn the_command_declines_the_only_open_question_the_one_it_replies_to_and_the_one_it_tags() {
    let known = [declinable(), second()];
    assert_eq!(
        declined(&mira_gives(&known[..1], &words("!decline"))),
        ("e1", TargetedBy::OnlyOpen)
    );
    assert_eq!(
        declined(&mira_gives(&known, &reply_to("$e1", "!decline"))),
        ("e1", TargetedBy::Reply)
    );
    assert_eq!(
        declined(&mira_gives(&known, &in_thread("$e1", "!decline"))),
        ("e1", TargetedBy::Thread)
    );
    for tag in ["!decline q1", "!Decline Q1", "Elicit: !decline q1"] {
        assert_eq!(
            declined(&mira_gives(&known, &words(tag))),
            ("e1", TargetedBy::Tag)
        );
    }
}

#[test]
fn the_word_alone_declines_only_as_a_rich_reply() {
    let known = declinable();
    for said in [
        "decline",
        "Decline.",
        "> <@elicit:x.org> Deploy?\n\ndecline",
    ] {
        let changes = says(&known, &reply_to("$e1", said));
        assert_eq!(declined(&changes), ("e1", TargetedBy::Reply));
    }
    assert_eq!(says(&known, &words("decline")), []);
    for said in ["I decline", "decline it", "declined"] {
        assert_ne!(says(&known, &reply_to("$e1", said)), []);
        assert_eq!(
            told(&says(&known, &reply_to("$e1", said))).1,
            "not_understood []"
        );
    }
}

#[test]
fn an_option_of_that_name_is_chosen_by_the_word_and_never_by_the_command() {
    let known = with(
        asked("e1", "q1", &[("no", "Decline"), ("yes", "Accept")]),
        |it| {
            it.question.decline = Some("!decline".to_owned());
        },
    );
    let changes = says(&known, &reply_to("$e1", "decline"));
    assert_eq!(
        in_short(&changes),
        ("e1", "no", MatchedBy::Label, TargetedBy::Reply)
    );
    let changes = mira_gives(&[known], &words("!decline"));
    assert_eq!(declined(&changes), ("e1", TargetedBy::OnlyOpen));
}

#[test]
fn where_a_text_is_an_answer_the_word_still_declines() {
    let known = with(in_words(), |elicitation| {
        elicitation.question.decline = Some("!decline".to_owned());
    });
    let changes = says(&known, &reply_to("$e3", "decline"));
    assert_eq!(declined(&changes), ("e3", TargetedBy::Reply));
}

#[test]
fn a_question_that_does_not_allow_it_stays_open_and_says_so() {
    let changes = mira_gives(&[first()], &words("!decline"));
    let (id, what, notice) = told(&changes);
    assert_eq!((id, what), ("e1", "not_declinable"));
    assert_eq!(
        body(notice),
        "“What about e1?” cannot be declined. It stays open until somebody answers it."
    );
    let changes = says(&first(), &reply_to("$e1", "decline"));
    assert_eq!(told(&changes).1, "not_understood []");
}

#[test]
fn which_question_is_declined_is_asked_and_never_guessed() {
    let known = [declinable(), second()];
    let changes = mira_gives(&known, &words("!decline"));
    let (id, what, notice) = told(&changes);
    assert_eq!((id, what), ("e2", "decline_which q1 q2"));
    assert_eq!(
        body(notice),
        "Open here:\nq1: What about e1?\nq2: What about e2?\n\n\
         Which one do you decline? Put its tag behind the command, and nothing else, like \
         !decline q1, or reply to its message with !decline."
    );
    // More than a tag may mean something else.
    for said in [
        "!decline because it is late",
        "!decline q1 and q2",
        "!decline q9",
    ] {
        let changes = mira_gives(&known, &words(said));
        assert_eq!(answered_with(&changes).0, ["e1", "e2"], "{said}");
    }
    let changes = mira_gives(&known, &reply_to("$e1", "!decline not mine"));
    assert_eq!(answered_with(&changes).0, ["e1", "e2"]);
}

#[test]
fn who_may_not_answer_may_not_decline_and_neither_may_who_is_not_trusted() {
    let changes = mira_gives(
        &[only_for(declinable(), &["@ben:x.org"])],
        &words("!decline"),
    );
    assert_eq!(told(&changes).1, "may_not_answer");
    let changes = gives(
        &[declinable()],
        &trusted(Trust::Refused),
        &words("!decline"),
    );
    assert_eq!(told(&changes).1, "may_not_answer");
    let mut gone = mira("$m1");
    gone.sender.joined = false;
    for said in ["!decline", "!help", "!cards"] {
        assert_eq!(gives(&[declinable()], &gone, &words(said)), [], "{said}");
    }
}

#[test]
fn what_is_over_cannot_be_declined() {
    let known = answered(declinable());
    let changes = mira_gives(&[known], &reply_to("$e1", "!decline"));
    assert_eq!(told(&changes).1, "closed");
    let changes = mira_gives(&[], &words("!decline"));
    let nothing = (Vec::new(), "No question is open here.");
    assert_eq!(answered_with(&changes), nothing);
}

#[test]
fn the_cards_that_are_open_are_listed_with_their_tags() {
    let ending = with(second(), |elicitation| {
        elicitation.question.expires_at = Some(NOW + 3_600_000);
    });
    let changes = mira_gives(
        &[
            first(),
            ending,
            with(in_words(), |it| it.state = State::Cancelled),
        ],
        &words("!cards"),
    );
    let (about, text) = answered_with(&changes);
    assert_eq!(about, ["e1", "e2"]);
    assert_eq!(
        text,
        "Open here:\nq1: What about e1?\nq2: What about e2? (until 30 Nov 2026, 15:05 UTC)\n\n\
         To answer one, reply to its message, or put its tag in front of your answer."
    );
    let nothing = (Vec::new(), "No question is open here.");
    assert_eq!(answered_with(&mira_gives(&[], &words("!cards"))), nothing);
}

#[test]
fn help_says_how_to_answer_and_which_commands_there_are() {
    let changes = mira_gives(&[], &words("!help"));
    let (about, text) = answered_with(&changes);
    assert_eq!(about, Vec::<&str>::new());
    for word in ["number", "✓", "q2 1", "!cards", "!decline", "!help"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}
