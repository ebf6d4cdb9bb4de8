//! Which question a message answers.

mod answering;
mod finding;

use super::options;
use crate::reply::{Bot, MatchedBy, Message, Options, Question, Reading, TargetedBy, read};

const BOT: Bot<'static> = Bot {
    user_id: "@elicit:example.org",
    display_name: Some("Elicit Bot"),
};

/// A question as the tests set it up; open, visible, without free text, for everybody.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a question has four facts that are true or not"
)]
struct Asked {
    open: bool,
    visible: bool,
    tag: &'static str,
    options: Options,
    free_text: bool,
    declinable: bool,
    may_answer: bool,
    events: Vec<String>,
}

fn asked(tag: &'static str, list: &[(&str, &str)]) -> Asked {
    Asked {
        open: true,
        visible: true,
        tag,
        options: Options::new(&options(list)),
        free_text: false,
        declinable: false,
        may_answer: true,
        events: vec![
            format!("${tag}-card"),
            format!("${tag}-notice"),
            "$which".to_owned(),
        ],
    }
}

/// `q1`: colours.
fn colours() -> Asked {
    asked(
        "q1",
        &[("red", "Red"), ("green", "Green"), ("blue", "Blue")],
    )
}

/// `q2`: answers, one of them named like a colour.
fn answers() -> Asked {
    asked(
        "q2",
        &[
            ("yes", "Yes"),
            ("no", "No"),
            ("later", "Later"),
            ("crimson", "Red"),
        ],
    )
}

fn free(mut asked: Asked) -> Asked {
    asked.free_text = true;
    asked
}

fn closed(mut asked: Asked) -> Asked {
    asked.open = false;
    asked
}

fn for_others(mut asked: Asked) -> Asked {
    asked.may_answer = false;
    asked
}

fn unseen(mut asked: Asked) -> Asked {
    asked.visible = false;
    asked
}

fn reading(message: &Message<'_>, asked: &[Asked]) -> Reading {
    reading_by(BOT, message, asked)
}

fn reading_by(bot: Bot<'_>, message: &Message<'_>, asked: &[Asked]) -> Reading {
    let questions: Vec<Question<'_>> = asked
        .iter()
        .map(|asked| Question {
            open: asked.open,
            visible: asked.visible,
            tag: asked.tag,
            options: &asked.options,
            free_text: asked.free_text,
            declinable: asked.declinable,
            may_answer: asked.may_answer,
            events: &asked.events,
        })
        .collect();
    read(message, &questions, &bot)
}

fn said(body: &str) -> Message<'_> {
    Message {
        body,
        ..Message::default()
    }
}

fn mentioning(body: &str) -> Message<'_> {
    Message {
        mentions_bot: true,
        ..said(body)
    }
}

fn replying<'a>(event: &'a str, body: &'a str) -> Message<'a> {
    Message {
        in_reply_to: Some(event),
        ..said(body)
    }
}

fn in_thread<'a>(root: &'a str, body: &'a str) -> Message<'a> {
    Message {
        thread: Some(root),
        in_reply_to: Some("$somebody"),
        falling_back: true,
        ..said(body)
    }
}

/// An option chosen, as `question option rule target directed`.
fn chosen(
    question: usize,
    option: usize,
    matched_by: MatchedBy,
    targeted_by: TargetedBy,
    directed: bool,
) -> Reading {
    Reading::Choose {
        question,
        option,
        matched_by,
        targeted_by,
        directed,
    }
}

fn text(question: usize, text: &str, targeted_by: TargetedBy) -> Reading {
    Reading::Text {
        question,
        text: text.to_owned(),
        targeted_by,
    }
}

fn which(questions: &[usize]) -> Reading {
    Reading::AskWhich {
        questions: questions.to_vec(),
    }
}

#[track_caller]
fn assert_silent(reading: &Reading) {
    assert!(matches!(reading, Reading::Silence { .. }), "{reading:?}");
}

/// Whether it is "not understood" of this question.
#[track_caller]
fn assert_not_understood(reading: &Reading, expected: usize, by: TargetedBy) {
    assert!(
        matches!(reading, Reading::NotUnderstood { question, targeted_by, .. }
            if *question == expected && *targeted_by == by),
        "{reading:?}"
    );
}

use MatchedBy::{Id, Label, Number};
use TargetedBy::{OnlyOpen, Reply, Tag, Thread};

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn no_message_breaks_the_reading(body in any::<String>(), name in any::<String>(), kind in 0_u8..4) {
            let body = format!("{name}{body}");
            let message = match kind {
                0 => said(&body),
                1 => mentioning(&body),
                2 => replying("$q1-card", &body),
                _ => in_thread("$which", &body),
            };
            let user_id = format!("@{name}:example.org");
            let bot = Bot { user_id: &user_id, display_name: Some(&name) };
            let _ = reading_by(bot, &message, &[colours(), free(answers()), closed(colours())]);
        }
    }
}
