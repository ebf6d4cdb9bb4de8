//! What holds for every message, whatever the questions of its room.

use super::named;
use crate::contract::CardOption;
use crate::reply::{
    Bot, Choice, MatchedBy, Message, Options, Question, Reading, TargetedBy, is_blank, read,
    read_option, suggest,
};

/// The bot of every room here.
const BOT: Bot<'static> = Bot {
    user_id: "@elicit:example.org",
    display_name: Some("Elicit Bot"),
};
/// What it may be called, and what a link to it is made of.
const ADDRESSES: [&str; 6] = [
    "@elicit:example.org",
    "elicit bot",
    "elicit",
    "https://matrix.to/#/@elicit:example.org",
    "https://matrix.to/#/%40elicit%3Aexample.org",
    "bot",
];
/// More of anything than this only makes a run slow.
const MOST: usize = 6;

/// One question as it is written in an input.
#[derive(Default)]
struct Asked {
    flags: String,
    tag: String,
    events: Vec<String>,
    list: Vec<CardOption>,
    options: Options,
}

/// A message and the questions of its room.
struct Room {
    flags: String,
    questions: Vec<Asked>,
    body: String,
}

impl Room {
    /// The first line has the flags of the message: `m`entions the bot, `a`lone with it, `f`alling
    /// back, `r` replies to and `t` is in the thread of the event whose digit follows. A line
    /// `?FLAGS TAG` begins a question: `o`pen, `v`isible, takes `f`ree text, may be
    /// `d`eclined, `m`ay be answered,
    /// and the digits of the events about it; its options follow, as `id<TAB>label`. After a line
    /// `=` comes the body. In a label `␤` is a line break.
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\n=\n").unwrap_or((text, ""));
        let mut lines = head.split('\n');
        let flags = lines.next().unwrap_or_default().to_owned();
        let mut questions: Vec<Asked> = Vec::new();
        for line in lines {
            if let Some(question) = line.strip_prefix('?') {
                let (flags, tag) = question.split_once(' ').unwrap_or((question, ""));
                let events = flags.chars().filter(char::is_ascii_digit);
                questions.push(Asked {
                    events: events.map(|digit| format!("${digit}")).collect(),
                    flags: flags.to_owned(),
                    tag: tag.to_owned(),
                    ..Asked::default()
                });
            } else if let Some(question) = questions.last_mut() {
                let (id, label) = line.split_once('\t').unwrap_or((line, line));
                question
                    .list
                    .push(CardOption::new(id, label.replace('␤', "\n")));
            }
        }
        questions.truncate(MOST);
        for question in &mut questions {
            question.list.truncate(MOST);
            question.options = Options::new(&question.list);
        }
        Self {
            flags,
            questions,
            body: body.to_owned(),
        }
    }

    /// The event whose digit follows the mark.
    fn event(&self, mark: char) -> Option<String> {
        let (_, after) = self.flags.split_once(mark)?;
        let digit = after.chars().next().filter(char::is_ascii_digit)?;
        Some(format!("${digit}"))
    }

    fn questions(&self) -> Vec<Question<'_>> {
        let questions = self.questions.iter();
        questions
            .map(|asked| Question {
                open: asked.flags.contains('o'),
                visible: asked.flags.contains('v'),
                tag: &asked.tag,
                options: &asked.options,
                free_text: asked.flags.contains('f'),
                declinable: asked.flags.contains('d'),
                may_answer: asked.flags.contains('m'),
                events: &asked.events,
            })
            .collect()
    }
}

/// Takes a room, written as [`Room::of`] says.
pub fn check(input: &[u8]) {
    let room = Room::of(&String::from_utf8_lossy(input));
    for asked in &room.questions {
        options(&room.body, asked);
    }
    whole(&room);
}

/// The body as a text about one question's options.
fn options(text: &str, asked: &Asked) {
    let strict = read_option(text, &asked.options, false).choice;
    let lenient = read_option(text, &asked.options, true).choice;
    if strict != Choice::None {
        assert_eq!(lenient, strict, "said to the bot, a plain choice stays one");
    }
    for choice in [&strict, &lenient] {
        match choice {
            &Choice::Choose { index, by } => {
                assert!(index < asked.list.len() && by != MatchedBy::Text);
                chosen(text, asked, index);
                assert!(
                    named::is_said(text, &asked.list, index, &[]),
                    "{text:?} is not {index} of {:?}",
                    asked.list
                );
            }
            Choice::Ask { indexes } => {
                assert!(
                    indexes.len() > 1 && rising(indexes, asked.list.len()),
                    "{indexes:?}"
                );
            }
            Choice::None => {}
        }
    }
    if let Choice::Choose { index, .. } = strict {
        assert!(
            named::is_whole(text, &asked.list, index),
            "{text:?} is not {index} of {:?}",
            asked.list
        );
    }
    if is_blank(text) {
        assert_eq!(lenient, Choice::None, "a blank text chooses nothing");
    }
    suggested(&suggest(text, &asked.options), asked);
}

/// What no text that chooses may look like, unless the option is called that.
fn chosen(text: &str, asked: &Asked, index: usize) {
    let option = &asked.list[index];
    let named = |mark: fn(&str) -> bool| mark(&option.id) || mark(&option.label);
    assert!(!named::asks(text) || named(named::asks), "{text:?} asks");
    let quotes = |text: &str| crate::reply::normal_form(text).starts_with('>');
    assert!(!quotes(text) || named(quotes), "{text:?} quotes");
}

fn suggested(suggestions: &[usize], asked: &Asked) {
    let mut each = suggestions.to_vec();
    each.sort_unstable();
    assert!(
        each.len() <= 3 && rising(&each, asked.list.len()),
        "{suggestions:?}"
    );
}

/// Whether these are indexes below `count`, in order and each once.
fn rising(indexes: &[usize], count: usize) -> bool {
    indexes.windows(2).all(|pair| pair[0] < pair[1])
        && indexes.last().is_none_or(|&last| last < count)
}

/// The whole reading of the message.
fn whole(room: &Room) {
    let questions = room.questions();
    let (in_reply_to, thread) = (room.event('r'), room.event('t'));
    let message = Message {
        body: &room.body,
        in_reply_to: in_reply_to.as_deref(),
        falling_back: room.flags.contains('f'),
        thread: thread.as_deref(),
        mentions_bot: room.flags.contains('m'),
        alone: room.flags.contains('a'),
    };
    let reading = read(&message, &questions, &BOT);
    sound(&reading, &message, room, &questions);

    // Said to the bot as well, the same words never mean another option.
    let directed = Message {
        mentions_bot: true,
        ..message
    };
    if let (
        Reading::Choose {
            question, option, ..
        },
        Reading::Choose {
            question: other_question,
            option: other,
            ..
        },
    ) = (&reading, &read(&directed, &questions, &BOT))
    {
        assert_eq!((question, option), (other_question, other));
    }
    // A fallback before it changes nothing.
    if message.in_reply_to.is_some() {
        let quoting = format!(
            "> <@bot:example.org> 1. Red\n> 2. Green\n\n{}",
            crate::reply::without_fallback(&room.body)
        );
        let again = Message {
            body: &quoting,
            ..message
        };
        assert_eq!(read(&again, &questions, &BOT), reading);
    }
}

/// A reading speaks of questions and options that are there, and only of what it may.
fn sound(reading: &Reading, message: &Message<'_>, room: &Room, questions: &[Question<'_>]) {
    let said = match message.in_reply_to {
        Some(_) => crate::reply::without_fallback(message.body),
        None => message.body,
    };
    if is_blank(said) || questions.is_empty() {
        assert!(matches!(reading, Reading::Silence { .. }), "{reading:?}");
    }
    match reading {
        Reading::Silence { why } => assert!(!why.is_empty()),
        &Reading::Choose {
            question,
            option,
            matched_by,
            targeted_by,
            ..
        } => {
            assert_ne!(matched_by, MatchedBy::Text);
            answerable(question, targeted_by, message, questions);
            let asked = &room.questions[question];
            let said = without_name_of_link(said);
            chosen(said, asked, option);
            let mut around: Vec<String> = ADDRESSES.map(str::to_owned).into();
            around.push(asked.tag.clone());
            assert!(
                named::is_said(said, &asked.list, option, &around),
                "{said:?} is not {option} of {:?}",
                asked.list
            );
            assert!(
                targeted_by != TargetedBy::Label
                    || matched_by != MatchedBy::Number
                    || names(said, asked, option)
            );
        }
        Reading::Text {
            question,
            text,
            targeted_by,
        } => {
            answerable(*question, *targeted_by, message, questions);
            assert!(questions[*question].free_text && !is_blank(text));
            assert!(said.contains(text.as_str()), "{text:?} was not said");
        }
        &Reading::Decline {
            question,
            targeted_by,
        } => {
            answerable(question, targeted_by, message, questions);
            assert!(questions[question].declinable && targeted_by == TargetedBy::Reply);
            assert!(crate::reply::normal_form(said).contains("decline"));
        }
        Reading::AskOption {
            question,
            options,
            targeted_by,
            ..
        } => {
            answerable(*question, *targeted_by, message, questions);
            assert!(options.len() > 1 && rising(options, questions[*question].options.len()));
        }
        Reading::AskWhich { questions: which } => {
            assert!(
                !which.is_empty() && rising(which, questions.len()),
                "{which:?}"
            );
            assert!(which.iter().all(|&question| questions[question].open));
        }
        Reading::NotUnderstood {
            question,
            suggestions,
            targeted_by,
            why,
        } => {
            answerable(*question, *targeted_by, message, questions);
            suggested(suggestions, &room.questions[*question]);
            assert!(!why.is_empty());
        }
        &Reading::Closed { question } => assert!(!questions[question].open),
        &Reading::MayNotAnswer { question } => {
            assert!(questions[question].open && !questions[question].may_answer);
        }
    }
}

/// The text without the name in a leading link to the bot, which may be any.
fn without_name_of_link(said: &str) -> &str {
    let inner = said.trim_start_matches(|c: char| c != '[' && is_blank(c.encode_utf8(&mut [0; 4])));
    match inner
        .strip_prefix('[')
        .and_then(|link| link.split_once("](https://matrix.to/#/"))
    {
        Some((name, _)) if !name.contains(['[', ']', '\n', '\r']) => &inner[1 + name.len()..],
        _ => said,
    }
}

/// Whether the text has more of the option in it than its number. By a number alone a question is
/// never found.
fn names(said: &str, asked: &Asked, option: usize) -> bool {
    let option = &asked.list[option];
    let said = crate::reply::normal_form(said);
    [&option.id, &option.label]
        .into_iter()
        .any(|name| said.contains(&crate::reply::normal_form(name)))
}

/// The question is open, the sender may answer it, and it was found as it is said.
fn answerable(
    question: usize,
    targeted_by: TargetedBy,
    message: &Message<'_>,
    questions: &[Question<'_>],
) {
    let asked = &questions[question];
    assert!(asked.open && asked.may_answer);
    let about = |event: Option<&str>| {
        event.is_some_and(|event| asked.events.iter().any(|about| about == event))
    };
    let mine = questions
        .iter()
        .filter(|asked| asked.open && asked.visible && asked.may_answer)
        .count();
    match targeted_by {
        TargetedBy::Reply => assert!(about(message.in_reply_to) && !message.falling_back),
        TargetedBy::Thread => assert!(about(message.thread)),
        TargetedBy::Tag => assert!(asked.visible && !asked.tag.is_empty()),
        TargetedBy::OnlyOpen => assert!(asked.visible && mine == 1),
        TargetedBy::Label => {
            assert!(about(message.in_reply_to) || about(message.thread) || asked.visible);
        }
    }
}
