//! What a message means for the questions it may be about, and what follows.

use serde_json::{Value, json};

use super::change::{Change, EventDraft, SendDraft, SendKind, close, last_words};
use super::hear::{Heard, Said, Trust};
use super::rules::{Rules, may_answer};
use crate::clock::Millis;
use crate::elicitation::{Answer, AnswerKind, Elicitation, State, object, timestamp};
use crate::prose::{self, Place, Refusal};
use crate::reply::{self, MatchedBy, Options, Reading, TargetedBy};

/// A question that a message may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The question and where it stands.
    pub elicitation: Elicitation,
    /// The bot's own messages about it.
    pub own_events: Vec<String>,
}

/// The bot, as people may address it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bot {
    /// Its user id.
    pub user_id: String,
    /// Its name in the room.
    pub display_name: Option<String>,
}

/// Judges a message.
///
/// `known` are the open questions of the room in the order they were asked, and those the
/// message points at (by reply, thread or tag), open or not.
pub fn judge(
    heard: &Heard,
    said: &Said,
    known: &[Known],
    rules: &Rules,
    bot: &Bot,
    now: Millis,
) -> Vec<Change> {
    // Someone who has left or is banned when the message is read does not count.
    if !heard.sender.joined || known.is_empty() {
        return Vec::new();
    }
    let options: Vec<Options> = known
        .iter()
        .map(|known| Options::new(&known.elicitation.question.options))
        .collect();
    let refusals: Vec<Option<Refusal>> = known
        .iter()
        .map(|known| may_answer(&heard.sender, rules, &known.elicitation.question.answerers).err())
        .collect();
    // A card that was asked inside a thread has the whole thread for itself.
    let events: Vec<Vec<String>> = known
        .iter()
        .map(|known| {
            let thread = known.elicitation.question.thread.as_ref();
            let shared = thread.filter(|&root| said.thread.as_ref() == Some(root));
            known.own_events.iter().chain(shared).cloned().collect()
        })
        .collect();
    let questions: Vec<reply::Question<'_>> = known
        .iter()
        .zip(&options)
        .zip(&refusals)
        .zip(&events)
        .map(|(((known, options), refusal), events)| reply::Question {
            open: takes_answers(&known.elicitation, heard.sent_at, now),
            visible: known.elicitation.visible,
            tag: &known.elicitation.tag,
            options,
            free_text: known.elicitation.question.free_text,
            may_answer: refusal.is_none(),
            events,
        })
        .collect();
    let message = reply::Message {
        body: &said.body,
        in_reply_to: said.in_reply_to.as_deref(),
        falling_back: said.falling_back,
        thread: said.thread.as_deref(),
        mentions_bot: said.mentions_bot,
        alone: heard.sender.alone,
    };
    let named = reply::Bot {
        user_id: &bot.user_id,
        display_name: bot.display_name.as_deref(),
    };
    let reading = reply::read(&message, &questions, &named);
    Judge {
        heard,
        said,
        known,
        rules,
        refusals: &refusals,
        now,
    }
    .follow(reading)
}

/// Whether an answer sent at `sent_at` still counts. The deadline is one and the same for
/// everybody: what was sent after it is late, what was sent before it and is only read now is not.
fn takes_answers(elicitation: &Elicitation, sent_at: Millis, now: Millis) -> bool {
    elicitation.state == State::Open
        && elicitation
            .question
            .expires_at
            .is_none_or(|deadline| now < deadline || sent_at <= deadline)
}

struct Judge<'a> {
    heard: &'a Heard,
    said: &'a Said,
    known: &'a [Known],
    rules: &'a Rules,
    refusals: &'a [Option<Refusal>],
    now: Millis,
}

impl Judge<'_> {
    fn follow(&self, reading: Reading) -> Vec<Change> {
        match reading {
            Reading::Silence { .. } => Vec::new(),
            Reading::Choose {
                question,
                option,
                matched_by,
                targeted_by,
                directed,
            } => {
                let chosen = self.question(question).numbered(option);
                let text = self.said.body.clone();
                self.take(
                    question,
                    AnswerKind::Option,
                    chosen,
                    text,
                    matched_by,
                    targeted_by,
                    directed,
                )
            }
            Reading::Text {
                question,
                text,
                targeted_by,
            } => self.take(
                question,
                AnswerKind::Text,
                None,
                text,
                MatchedBy::Text,
                targeted_by,
                true,
            ),
            Reading::AskOption {
                question, options, ..
            } => {
                let elicitation = self.question(question);
                let notice = prose::ask_option(&self.place(), elicitation, &options);
                self.say_once(elicitation, &format!("ask_option {options:?}"), notice)
            }
            Reading::AskWhich { questions } => self.ask_which(&questions),
            Reading::NotUnderstood {
                question,
                suggestions,
                ..
            } => {
                let elicitation = self.question(question);
                let notice = prose::not_understood(&self.place(), elicitation, &suggestions);
                self.say_once(
                    elicitation,
                    &format!("not_understood {suggestions:?}"),
                    notice,
                )
            }
            Reading::Closed { question } => self.closed(question),
            Reading::MayNotAnswer { question } => {
                let refusal = self.refusals[question].unwrap_or(Refusal::NotListed);
                self.refuse(question, refusal)
            }
        }
    }

    fn question(&self, index: usize) -> &Elicitation {
        &self.known[index].elicitation
    }

    /// Takes an answer, unless its sender cannot be trusted with it.
    #[expect(clippy::too_many_arguments, reason = "the parts of one answer")]
    fn take(
        &self,
        question: usize,
        kind: AnswerKind,
        option: Option<crate::elicitation::NumberedOption>,
        text: String,
        matched_by: MatchedBy,
        targeted_by: TargetedBy,
        directed: bool,
    ) -> Vec<Change> {
        match self.heard.trust {
            Trust::Refused => return self.refuse(question, Refusal::Untrusted),
            Trust::Unverified | Trust::Clear if self.rules.require_verified => {
                return self.refuse(question, Refusal::Unverified);
            }
            Trust::Plain | Trust::Verified | Trust::Unverified | Trust::Clear => {}
        }
        let elicitation = self.question(question);
        let answer = Answer {
            kind,
            option,
            text: Some(text),
            answered_by: self.heard.sender.user_id.clone(),
            display_name: self.heard.sender.display_name.clone(),
            event_id: self.heard.event_id.clone(),
            answered_at: self.heard.sent_at,
            matched_by,
            targeted_by,
            directed,
            encrypted: !matches!(self.heard.trust, Trust::Plain | Trust::Clear),
            sender_verified: match self.heard.trust {
                Trust::Plain => None,
                Trust::Verified => Some(true),
                Trust::Unverified | Trust::Clear | Trust::Refused => Some(false),
            },
        };
        let taken = SendDraft {
            room_id: self.heard.room_id.clone(),
            key: elicitation.key().clone(),
            also: Vec::new(),
            kind: SendKind::Reaction,
            content: prose::reaction(&self.heard.event_id),
        };
        vec![
            close(elicitation, State::Answered, None, Some(answer), self.now),
            Change::Send(taken),
        ]
    }

    fn refuse(&self, question: usize, refusal: Refusal) -> Vec<Change> {
        let elicitation = self.question(question);
        let notice = prose::may_not_answer(&self.place(), elicitation, refusal);
        self.say_once(elicitation, "may_not_answer", notice)
    }

    /// The question is over: everybody who still means it is told how it ended, once. Who
    /// answered it is told too: their answer stands.
    fn closed(&self, question: usize) -> Vec<Change> {
        let elicitation = self.question(question);
        let notice = prose::already_closed(&self.place(), elicitation);
        self.say_once(elicitation, "closed", notice)
    }

    /// Several questions are open and the message does not say which it means. What was said is
    /// remembered with the newest of them: another question asked later is a change, and then it
    /// may be said again.
    fn ask_which(&self, questions: &[usize]) -> Vec<Change> {
        let asked: Vec<&Elicitation> = questions
            .iter()
            .map(|&index| self.question(index))
            .collect();
        let Some(newest) = asked.last() else {
            return Vec::new();
        };
        let tags: Vec<&str> = asked
            .iter()
            .map(|elicitation| elicitation.tag.as_str())
            .collect();
        let content = prose::ask_which(&self.place(), &asked);
        let mut changes = self.say_once(newest, &format!("ask_which {}", tags.join(" ")), content);
        // A reply to this notice still does not say which of them it means.
        for change in &mut changes {
            if let Change::SayOnce { notice, .. } = change {
                notice.also = asked
                    .iter()
                    .map(|elicitation| elicitation.key().clone())
                    .collect();
            }
        }
        changes
    }

    fn place(&self) -> Place<'_> {
        Place {
            to: &self.heard.event_id,
            thread: self.said.thread.as_deref(),
        }
    }

    fn say_once(&self, elicitation: &Elicitation, what: &str, content: Value) -> Vec<Change> {
        let notice = SendDraft {
            room_id: self.heard.room_id.clone(),
            key: elicitation.key().clone(),
            also: Vec::new(),
            kind: SendKind::Notice,
            content,
        };
        vec![Change::SayOnce {
            user_id: self.heard.sender.user_id.clone(),
            what: what.to_owned(),
            notice,
        }]
    }
}

/// The message of an answer was edited: the answer stands, the agent is told what it says now and
/// how that would be read.
pub fn answer_edited(
    answered: &Elicitation,
    heard: &Heard,
    said: &Said,
    now: Millis,
) -> Vec<Change> {
    let Some(answer) = &answered.answer else {
        return Vec::new();
    };
    // Only its author edits a message; anything else is not an edit of this answer.
    if answer.answered_by != heard.sender.user_id || answer.text.is_none() {
        return Vec::new();
    }
    let options = Options::new(&answered.question.options);
    let reading = reply::read_option(&said.body, &options, answer.directed);
    let ids = |indexes: &[usize]| -> Vec<&str> {
        indexes
            .iter()
            .filter_map(|&index| answered.question.options.get(index))
            .map(|option| option.id.as_str())
            .collect()
    };
    let read = match reading.choice {
        reply::Choice::Choose { index, by } => {
            json!({ "choose": ids(&[index]).first(), "by": by })
        }
        reply::Choice::Ask { indexes } => json!({ "ask": ids(&indexes) }),
        reply::Choice::None
            if answered.question.free_text && !crate::reply::is_blank(&said.body) =>
        {
            json!({ "text": said.body })
        }
        reply::Choice::None => json!({ "none": true }),
    };
    let correction = json!({
        "event_id": heard.event_id,
        "text": said.body,
        "reading": read,
        "corrected_at": timestamp(now),
    });
    vec![corrected(answered, "answer.edited", correction)]
}

/// The message of an answer was redacted: the answer stands, its text is deleted here.
pub fn answer_redacted(answered: &Elicitation, heard: &Heard, now: Millis) -> Vec<Change> {
    let mut stripped = answered.clone();
    let Some(answer) = &mut stripped.answer else {
        return Vec::new();
    };
    answer.text = None;
    let kind = answer.kind;
    let correction = json!({
        "event_id": heard.event_id,
        "redacted_by": heard.sender.user_id,
        "corrected_at": timestamp(now),
    });
    let mut changes = vec![
        Change::ForgetText(answered.key().clone()),
        corrected(&stripped, "answer.redacted", correction),
    ];
    // The card quotes a free text; it must not outlive its message there.
    if kind == AnswerKind::Text {
        changes.push(Change::Send(last_words(&stripped)));
    }
    changes
}

fn corrected(elicitation: &Elicitation, event_type: &str, correction: Value) -> Change {
    let mut body = object(elicitation);
    if let Value::Object(fields) = &mut body {
        fields.insert("correction".to_owned(), correction);
    }
    Change::Announce(EventDraft {
        key: elicitation.key().clone(),
        event_type: event_type.to_owned(),
        body,
    })
}
