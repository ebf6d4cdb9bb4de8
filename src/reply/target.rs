//! Which question a message answers, and what it says to it.
//!
//! A reply or thread points at one question; else a tag does; else the questions
//! open in the room that this person may answer, where only an id or a label, never
//! a number, tells several apart.

use serde::{Deserialize, Serialize};

use super::command::declines;
use super::opening::{after_tag, without_fallback, without_mention};
use super::option::{Options, Spoken};
use super::suggest::suggest;
use super::{Choice, MatchedBy, OptionReading, text};

/// A message of a room as it is read: an `m.text` of a person.
#[derive(Debug, Clone, Copy, Default)]
pub struct Message<'a> {
    /// The body; of an edit, the body of its `m.new_content`.
    pub body: &'a str,
    /// The event of `m.in_reply_to`, whichever it is.
    pub in_reply_to: Option<&'a str>,
    /// `is_falling_back`: the reply is only there for clients without threads, and
    /// points at nothing.
    pub falling_back: bool,
    /// The root of the thread that the message is in.
    pub thread: Option<&'a str>,
    /// Whether `m.mentions` names the bot.
    pub mentions_bot: bool,
    /// Whether the bot is alone with one person in the room.
    pub alone: bool,
}

/// The bot, as people may call it.
#[derive(Debug, Clone, Copy)]
pub struct Bot<'a> {
    /// Its user id; the localpart is a name too.
    pub user_id: &'a str,
    /// Its display name in the room.
    pub display_name: Option<&'a str>,
}

/// One question of the room as a reader sees it. Closed ones are passed along for as
/// long as a late reply to them is to be told how they ended. Oldest first.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts, each of them true or not"
)]
pub struct Question<'a> {
    /// Whether it still waits for its answer.
    pub open: bool,
    /// Whether its card was in the room before the message.
    pub visible: bool,
    /// Its tag in the room, `q3`; empty for none.
    pub tag: &'a str,
    /// Its options.
    pub options: &'a Options,
    /// Whether a free text answers it.
    pub free_text: bool,
    /// Whether people may decline to answer it.
    pub declinable: bool,
    /// Whether the sender of the message may answer it.
    pub may_answer: bool,
    /// The events about it: its card, the card's edits, the bot's notices about it. A
    /// notice about several questions stands with each of them.
    pub events: &'a [String],
}

/// How the question was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetedBy {
    /// The only one open that this person may answer.
    OnlyOpen,
    /// A rich reply to an event about it.
    Reply,
    /// A message in its thread.
    Thread,
    /// Its tag.
    Tag,
    /// An id or a label that only its options have.
    Label,
}

/// What a message says. Questions and options are indexes from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Nothing is to be done or said.
    Silence {
        /// Why, in a few words.
        why: &'static str,
    },
    /// An option is chosen.
    Choose {
        /// The question.
        question: usize,
        /// The option.
        option: usize,
        /// The rule that found the option.
        matched_by: MatchedBy,
        /// How the question was found.
        targeted_by: TargetedBy,
        /// Whether the message was said to the bot.
        directed: bool,
    },
    /// A free answer; always directed, and [`MatchedBy::Text`].
    Text {
        /// The question.
        question: usize,
        /// The answer as written, outer white space gone; never blank.
        text: String,
        /// How the question was found.
        targeted_by: TargetedBy,
    },
    /// The person will not answer; whether that can be said is not looked at here.
    Decline {
        /// The question.
        question: usize,
        /// How the question was found.
        targeted_by: TargetedBy,
    },
    /// Two or more options fit: ask which.
    AskOption {
        /// The question.
        question: usize,
        /// The options that fit, in order.
        options: Vec<usize>,
        /// How the question was found.
        targeted_by: TargetedBy,
        /// Whether the message was said to the bot.
        directed: bool,
    },
    /// It does not say which question is meant: ask, naming these.
    AskWhich {
        /// The questions, in order.
        questions: Vec<usize>,
    },
    /// Said to the bot, and no answer: say what can be said.
    NotUnderstood {
        /// The question.
        question: usize,
        /// Near misses, at most three, the nearest first.
        suggestions: Vec<usize>,
        /// How the question was found.
        targeted_by: TargetedBy,
        /// Why, in a few words.
        why: &'static str,
    },
    /// Said to a question that is over: say how it ended.
    Closed {
        /// The question.
        question: usize,
    },
    /// An answer of somebody who may not answer this question.
    MayNotAnswer {
        /// The question.
        question: usize,
    },
}

/// Reads one message against the questions of its room.
pub fn read(message: &Message<'_>, questions: &[Question<'_>], bot: &Bot<'_>) -> Reading {
    if questions.is_empty() {
        return silence("no question in this room");
    }
    let body = match message.in_reply_to {
        Some(_) => without_fallback(message.body),
        None => message.body,
    };
    if text::is_blank(body) {
        return silence("blank");
    }
    Reader {
        said: Said::new(body, message, bot),
        questions,
    }
    .read(message)
}

/// Reads the command not to answer: `rest` is what stands behind it. The question is the one the
/// message points at, else that of the tag in `rest`, else the only one open that this person may
/// answer; where the command does not say which, that is asked.
///
/// Anything but a tag behind the command is [`Reading::Silence`]: whoever explains themselves may
/// mean something else.
pub fn read_decline(message: &Message<'_>, rest: &str, questions: &[Question<'_>]) -> Reading {
    let bot = Bot {
        user_id: "",
        display_name: None,
    };
    let reader = Reader {
        said: Said::new("", message, &bot),
        questions,
    };
    let decline = |question: usize, targeted_by| {
        refused(question, &questions[question]).unwrap_or(Reading::Decline {
            question,
            targeted_by,
        })
    };
    let replied_to = message.in_reply_to.filter(|_| !message.falling_back);
    let tagged = reader.all(|question| after_own_tag(rest, question).is_some_and(text::is_blank));
    if !text::is_blank(rest) {
        let open = tagged.iter().rfind(|&&index| questions[index].open);
        return match open.or(tagged.last()) {
            Some(&question) => decline(question, TargetedBy::Tag),
            None => silence("more than the command and a tag"),
        };
    }
    for (event, targeted_by) in [
        (replied_to, TargetedBy::Reply),
        (message.thread, TargetedBy::Thread),
    ] {
        match reader.about(event).as_slice() {
            [] => {}
            &[question] => return decline(question, targeted_by),
            several => {
                return Reading::AskWhich {
                    questions: several.to_vec(),
                };
            }
        }
    }
    let (mine, others): (Vec<usize>, Vec<usize>) = reader
        .all(|question| question.open && question.visible)
        .into_iter()
        .partition(|&index| questions[index].may_answer);
    match (mine.as_slice(), others.last()) {
        ([], None) => silence("no open question in this room"),
        ([], Some(&question)) => Reading::MayNotAnswer { question },
        (&[question], _) => decline(question, TargetedBy::OnlyOpen),
        _ => Reading::AskWhich { questions: mine },
    }
}

/// The text in the forms it may be meant in.
struct Said<'a> {
    whole: Spoken<'a>,
    /// Without the leading mention, if there is one.
    unaddressed: Option<Spoken<'a>>,
    /// What a free answer would be.
    free: &'a str,
    /// Whether the bot is mentioned, or nobody else could be meant.
    directed: bool,
}

impl<'a> Said<'a> {
    fn new(body: &'a str, message: &Message<'_>, bot: &Bot<'_>) -> Self {
        let mention = without_mention(body, bot);
        let addressed = mention.is_some_and(|mention| mention.addresses);
        // A rich reply mentions whom it replies to all by itself: that does not make
        // the first word of `Red wine` the name of a bot called Red.
        let named = message.mentions_bot && message.in_reply_to.is_none();
        let free = match mention {
            Some(mention) if addressed || named => mention.rest,
            _ => body,
        };
        Self {
            whole: Spoken::new(body),
            unaddressed: mention.map(|mention| Spoken::new(mention.rest)),
            free,
            directed: message.mentions_bot || addressed || message.alone,
        }
    }

    /// The text as it is wins over the text without its mention: a bot may be
    /// called what an option, or the beginning of an answer, is called.
    fn read(&self, options: &Options, directed: bool) -> OptionReading {
        let whole = self.whole.read(options, directed);
        match &self.unaddressed {
            Some(unaddressed) if whole.choice == Choice::None => {
                unaddressed.read(options, directed)
            }
            _ => whole,
        }
    }

    /// The text that a tag may stand before.
    fn tagged(&self) -> &'a str {
        let unaddressed = self.unaddressed.as_ref();
        unaddressed.map_or(self.whole.written, |spoken| spoken.written)
    }
}

struct Reader<'a> {
    said: Said<'a>,
    questions: &'a [Question<'a>],
}

impl Reader<'_> {
    fn read(&self, message: &Message<'_>) -> Reading {
        let replied_to = message.in_reply_to.filter(|_| !message.falling_back);
        let mut pointed = self.about(replied_to);
        let mut targeted_by = TargetedBy::Reply;
        if pointed.is_empty() {
            pointed = self.about(message.thread);
            targeted_by = TargetedBy::Thread;
        }
        if let &[question] = pointed.as_slice() {
            return self.pointed_at(question, targeted_by);
        }
        if let Some(reading) = self.tagged() {
            return reading;
        }
        if pointed.is_empty() {
            self.in_the_room()
        } else {
            self.pointed_at_several(&pointed)
        }
    }

    fn about(&self, event: Option<&str>) -> Vec<usize> {
        event.map_or_else(Vec::new, |event| {
            self.all(|question| question.events.iter().any(|about| about == event))
        })
    }

    fn all(&self, fits: impl Fn(&Question<'_>) -> bool) -> Vec<usize> {
        let questions = self.questions.iter().enumerate();
        questions
            .filter(|(_, question)| fits(question))
            .map(|(index, _)| index)
            .collect()
    }

    /// A reply to a card or a notice about it, or a message in its thread.
    fn pointed_at(&self, index: usize, targeted_by: TargetedBy) -> Reading {
        let question = &self.questions[index];
        if let Some(reading) = refused(index, question) {
            return reading;
        }
        let reading = self.said.read(question.options, true);
        if reading.choice != Choice::None {
            return self.settle(index, &reading, self.said.free, targeted_by, true);
        }
        if let Some(rest) = after_own_tag(self.said.tagged(), question) {
            let reading = Spoken::new(rest).read(question.options, true);
            return self.settle(index, &reading, rest, targeted_by, true);
        }
        if question.declinable && targeted_by == TargetedBy::Reply && declines(self.said.free) {
            return Reading::Decline {
                question: index,
                targeted_by,
            };
        }
        if let Some(other) = self.contradicted_by_tag(index) {
            let mut questions = vec![index, other];
            questions.sort_unstable();
            return Reading::AskWhich { questions };
        }
        self.settle(index, &reading, self.said.free, targeted_by, true)
    }

    /// Another open question whose tag the text begins with, and which or this one has
    /// the option that follows. Other words after a tag are words: `Q3 was good`.
    fn contradicted_by_tag(&self, index: usize) -> Option<usize> {
        let text = self.said.tagged();
        let others = self.all(|question| question.open && question.visible);
        others
            .into_iter()
            .filter(|&other| other != index)
            .find(|&other| {
                after_own_tag(text, &self.questions[other]).is_some_and(|rest| {
                    let rest = Spoken::new(rest);
                    [index, other].into_iter().any(|which| {
                        rest.read(self.questions[which].options, true).choice != Choice::None
                    })
                })
            })
    }

    /// A tag counts where a question has it, unless the whole text is an option.
    fn tagged(&self) -> Option<Reading> {
        let text = self.said.tagged();
        let tagged = self.all(|question| after_own_tag(text, question).is_some());
        if tagged.is_empty() || self.is_an_option() {
            return None;
        }
        let open = tagged.iter().rev().find(|&&index| {
            let question = &self.questions[index];
            question.open && question.visible
        });
        if let Some(&index) = open {
            let question = &self.questions[index];
            let rest = after_own_tag(text, question)?;
            return Some(refused(index, question).unwrap_or_else(|| {
                let reading = Spoken::new(rest).read(question.options, true);
                self.settle(index, &reading, rest, TargetedBy::Tag, true)
            }));
        }
        let &index = tagged.iter().rfind(|&&index| !self.questions[index].open)?;
        let question = &self.questions[index];
        let rest = after_own_tag(text, question)?;
        // What was a tag once is a word again: `Q3 was good` is not for the bot.
        let answers = self.said.directed
            || question.free_text
            || text::is_blank(rest)
            || Spoken::new(rest).read(question.options, true).choice != Choice::None;
        answers.then_some(Reading::Closed { question: index })
    }

    fn is_an_option(&self) -> bool {
        self.questions
            .iter()
            .filter(|question| question.open && question.visible)
            .any(|question| self.said.read(question.options, false).choice != Choice::None)
    }

    /// A reply to a notice about several questions. A number does not tell them
    /// apart, not even when others of them are over by now.
    fn pointed_at_several(&self, pointed: &[usize]) -> Reading {
        let (open, over): (Vec<usize>, Vec<usize>) = pointed
            .iter()
            .partition(|&&index| self.questions[index].open);
        let (mine, others): (Vec<usize>, Vec<usize>) = open
            .into_iter()
            .partition(|&index| self.questions[index].may_answer);
        match (mine.is_empty(), others.last(), over.last()) {
            (true, Some(&question), _) => Reading::MayNotAnswer { question },
            (true, None, Some(&question)) => Reading::Closed { question },
            _ => self.among(&mine, &others, true),
        }
    }

    fn in_the_room(&self) -> Reading {
        let directed = self.said.directed;
        let (mine, others): (Vec<usize>, Vec<usize>) = self
            .all(|question| question.open && question.visible)
            .into_iter()
            .partition(|&index| self.questions[index].may_answer);
        match mine.as_slice() {
            [] => self.for_others_only(&others),
            &[index] => {
                let question = &self.questions[index];
                let reading = self.said.read(question.options, directed);
                let is_free_answer = directed && question.free_text;
                if reading.choice == Choice::None
                    && !is_free_answer
                    && let Some(question) = self.named_among(&others, directed)
                {
                    return Reading::MayNotAnswer { question };
                }
                let targeted_by = TargetedBy::OnlyOpen;
                self.settle(index, &reading, self.said.free, targeted_by, directed)
            }
            several => self.among(several, &others, directed),
        }
    }

    /// Somebody who may answer none of the open questions.
    fn for_others_only(&self, others: &[usize]) -> Reading {
        let Some(&newest) = others.last() else {
            return silence("no open question in this room");
        };
        let chosen = others.iter().rev().copied().find(|&index| {
            let options = self.questions[index].options;
            let choice = self.said.read(options, self.said.directed).choice;
            matches!(choice, Choice::Choose { .. })
        });
        match chosen {
            Some(question) => Reading::MayNotAnswer { question },
            None if self.said.directed => Reading::MayNotAnswer { question: newest },
            None => silence("no option of a question here"),
        }
    }

    /// The newest of these of which the text names an option by id or label.
    fn named_among(&self, others: &[usize], directed: bool) -> Option<usize> {
        others.iter().rev().copied().find(|&index| {
            let reading = self.said.read(self.questions[index].options, directed);
            reading.by_name && matches!(reading.choice, Choice::Choose { .. })
        })
    }

    /// Several questions that this person may answer: an id or a label picks the one
    /// that has it, a number picks none.
    fn among(&self, mine: &[usize], others: &[usize], directed: bool) -> Reading {
        let all = || Reading::AskWhich {
            questions: mine.to_vec(),
        };
        let readings: Vec<(usize, OptionReading)> = mine
            .iter()
            .map(|&index| {
                (
                    index,
                    self.said.read(self.questions[index].options, directed),
                )
            })
            .filter(|(_, reading)| reading.choice != Choice::None)
            .collect();
        match readings.as_slice() {
            [] => match self.named_among(others, directed) {
                Some(question) => Reading::MayNotAnswer { question },
                None if directed => all(),
                None => silence("not a bare number, id or label"),
            },
            [(index, reading)] if reading.by_name => {
                self.settle(*index, reading, self.said.free, TargetedBy::Label, directed)
            }
            several if several.iter().any(|(_, reading)| reading.by_name) => Reading::AskWhich {
                questions: several.iter().map(|&(index, _)| index).collect(),
            },
            _ => all(),
        }
    }

    /// What follows once the question is known.
    fn settle(
        &self,
        question: usize,
        reading: &OptionReading,
        text: &str,
        targeted_by: TargetedBy,
        directed: bool,
    ) -> Reading {
        let asked = &self.questions[question];
        match &reading.choice {
            &Choice::Choose { index, by } => Reading::Choose {
                question,
                option: index,
                matched_by: by,
                targeted_by,
                directed,
            },
            Choice::Ask { indexes } => Reading::AskOption {
                question,
                options: indexes.clone(),
                targeted_by,
                directed,
            },
            Choice::None if !directed => silence(reading.why),
            Choice::None if asked.free_text && !text::is_blank(text) => Reading::Text {
                question,
                text: text.trim().to_owned(),
                targeted_by,
            },
            Choice::None => Reading::NotUnderstood {
                question,
                suggestions: suggest(text, asked.options),
                targeted_by,
                why: reading.why,
            },
        }
    }
}

fn silence(why: &'static str) -> Reading {
    Reading::Silence { why }
}

/// Why this question takes no answer from this person, if it does not.
fn refused(index: usize, question: &Question<'_>) -> Option<Reading> {
    if !question.open {
        Some(Reading::Closed { question: index })
    } else if !question.may_answer {
        Some(Reading::MayNotAnswer { question: index })
    } else {
        None
    }
}

fn after_own_tag<'a>(text: &'a str, question: &Question<'_>) -> Option<&'a str> {
    after_tag(text, question.tag)
}
