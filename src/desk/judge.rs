//! What a message means for the questions it may be about, and what follows.

use serde_json::Value;

use super::change::{Change, SendDraft, SendKind, close, taken};
use super::hear::{Heard, Said, Trust};
use super::rules::{Rules, may_answer};
use super::session::Prompt;
use crate::clock::Millis;
use crate::elicitation::{Answer, AnswerKind, Elicitation, Source, State};
use crate::prose::{self, Place, Refusal};
use crate::reply::{self, MatchedBy, Options, Reading, TargetedBy};
use crate::session::Author;

/// A question that a message may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The question and where it stands.
    pub elicitation: Elicitation,
    /// The messages that are about it: its card, and what the bot said of it.
    pub own_events: Vec<String>,
    /// The answer to it that is being handed in to its board.
    pub submission: Option<Answer>,
    /// What may be said about it in the room.
    pub manners: Manners,
}

/// What the bot does in a room beside deciding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Whether it says what is to be said to people.
    pub notices: bool,
    /// Whether it puts a ✓ on an answer that was taken.
    pub reacts: bool,
}

impl Default for Manners {
    /// Those for its own questions.
    fn default() -> Self {
        Self {
            notices: true,
            reacts: true,
        }
    }
}

/// The bot, as people may address it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bot {
    /// Its user id.
    pub user_id: String,
    /// Its name in the room.
    pub display_name: Option<String>,
}

impl Bot {
    /// The bot as a reader knows it.
    pub(super) fn named(&self) -> reply::Bot<'_> {
        reply::Bot {
            user_id: &self.user_id,
            display_name: self.display_name.as_deref(),
        }
    }
}

/// For so long after a question is closed, a message may have been written by somebody who could
/// not see it yet: the homeservers' clocks, and the way of the ✓.
pub const UNSEEN: Millis = 1_000;

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
    let (reading, refusals) = read_with(heard, said, known, rules, bot, now, reply::read);
    Judge {
        heard,
        said,
        known,
        rules,
        refusals: &refusals,
        declining: None,
        now,
    }
    .follow(reading)
}

/// Reads a message by a reader, and says of each question why its sender may not answer it.
pub(super) fn read_with(
    heard: &Heard,
    said: &Said,
    known: &[Known],
    rules: &Rules,
    bot: &Bot,
    now: Millis,
    read: impl FnOnce(&reply::Message<'_>, &[reply::Question<'_>], &reply::Bot<'_>) -> Reading,
) -> (Reading, Vec<Option<Refusal>>) {
    let options: Vec<Options> = known
        .iter()
        .map(|known| Options::new(&known.elicitation.question.options))
        .collect();
    let refusals: Vec<Option<Refusal>> = known
        .iter()
        .map(|known| may_answer(&heard.sender, rules, &known.elicitation.question.answerers).err())
        .collect();
    let events = pointers(known, said);
    let questions: Vec<reply::Question<'_>> = known
        .iter()
        .zip(&options)
        .zip(&refusals)
        .zip(&events)
        .map(|(((known, options), refusal), events)| reply::Question {
            open: takes_answers(&known.elicitation, heard.sent_at, now)
                || closed_unseen(&known.elicitation, heard),
            // What no reply can answer is meant only by who points at it.
            visible: known.elicitation.visible && known.elicitation.question.is_answerable(),
            tag: &known.elicitation.tag,
            options,
            free_text: known.elicitation.question.free_text,
            declinable: known.elicitation.question.decline.is_some(),
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
    let reading = read(&message, &questions, &bot.named());
    (reading, refusals)
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

/// Whether the question was closed when its writer could not know it. To them it was as open as
/// the others: what they wrote is no answer any more, but neither is it one to another question
/// that only now is the only one. Who closed it knows.
fn closed_unseen(elicitation: &Elicitation, heard: &Heard) -> bool {
    let by = elicitation
        .answer
        .as_ref()
        .map(|answer| &answer.answered_by);
    elicitation.state.is_closed()
        // Everybody saw the bot go, and come back.
        && elicitation.state != State::Undeliverable
        && by != Some(&heard.sender.user_id)
        && elicitation
            .closed_at
            .is_some_and(|at| heard.sent_at <= at.saturating_add(UNSEEN))
}

/// The events by which the message may point at each question.
///
/// A card that was asked inside a thread has the whole thread for itself, from the moment it
/// stands there. Where an older card began that thread, it shares it while it is open and gives
/// it up when it is over; a rich reply to it still means it alone.
fn pointers(known: &[Known], said: &Said) -> Vec<Vec<String>> {
    let replied_to = said.in_reply_to.as_ref().filter(|_| !said.falling_back);
    let is_card = |root: &String| known.iter().any(|known| known.own_events.contains(root));
    let root = said
        .thread
        .as_ref()
        .filter(|&root| replied_to != Some(root) || !is_card(root));
    let asked_there = |known: &Known| {
        let elicitation = &known.elicitation;
        elicitation.visible && root.is_some() && elicitation.question.thread.as_ref() == root
    };
    let waits_there = known
        .iter()
        .any(|known| known.elicitation.state == State::Open && asked_there(known));
    known
        .iter()
        .map(|known| {
            let gives_up = waits_there && known.elicitation.state != State::Open;
            let own = known
                .own_events
                .iter()
                .filter(|&event| !(gives_up && Some(event) == root));
            let thread = root.filter(|_| asked_there(known) && !gives_up);
            own.chain(thread).cloned().collect()
        })
        .collect()
}

/// The message as the room knows it: an edit is the message it edits. Reactions and replies to
/// the edit itself are shown nowhere, and it is the message that is edited again or redacted.
/// See "Event replacements" in the Matrix specification.
pub fn message_id<'a>(heard: &'a Heard, said: &'a Said) -> &'a str {
    said.replaces.as_deref().unwrap_or(&heard.event_id)
}

/// Where the person's message stands.
pub fn place<'a>(heard: &'a Heard, said: &'a Said) -> Place<'a> {
    Place {
        to: message_id(heard, said),
        thread: said.thread.as_deref(),
    }
}

pub(super) struct Judge<'a> {
    pub(super) heard: &'a Heard,
    pub(super) said: &'a Said,
    pub(super) known: &'a [Known],
    pub(super) rules: &'a Rules,
    pub(super) refusals: &'a [Option<Refusal>],
    /// The command to decline as it is written, when that is what was said.
    pub(super) declining: Option<&'a str>,
    pub(super) now: Millis,
}

impl Judge<'_> {
    pub(super) fn follow(&self, reading: Reading) -> Vec<Change> {
        match reading {
            Reading::Silence { .. } => Vec::new(),
            Reading::Choose { question, .. }
            | Reading::Text { question, .. }
            | Reading::Decline { question, .. }
            | Reading::AskOption { question, .. }
            | Reading::NotUnderstood { question, .. }
                if self.is_over(question) =>
            {
                self.closed(question)
            }
            Reading::Choose {
                question,
                option,
                matched_by,
                targeted_by,
                directed,
            } => {
                let chosen = self.question(question).numbered(option);
                let text = self.typed().to_owned();
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
            Reading::Decline {
                question,
                targeted_by,
            } => self.decline(question, targeted_by),
            // A session hears what is said to it as it is said.
            Reading::AskOption {
                question,
                targeted_by,
                directed: true,
                ..
            } if self.question(question).question.source() == Source::Session => {
                let text = self.typed().to_owned();
                let kind = AnswerKind::Text;
                self.take(
                    question,
                    kind,
                    None,
                    text,
                    MatchedBy::Text,
                    targeted_by,
                    true,
                )
            }
            Reading::AskOption {
                question, options, ..
            } => {
                let elicitation = self.question(question);
                let notice = prose::ask_option(&self.place(), elicitation, &options);
                self.say_once(question, &format!("ask_option {options:?}"), notice)
            }
            Reading::AskWhich { questions } => {
                let (over, open): (Vec<usize>, Vec<usize>) = questions
                    .into_iter()
                    .partition(|&question| self.is_over(question));
                let mut changes = over
                    .last()
                    .map_or_else(Vec::new, |&question| self.closed(question));
                changes.extend(self.ask_which(&open));
                changes
            }
            Reading::NotUnderstood {
                question,
                suggestions,
                ..
            } => {
                let elicitation = self.question(question);
                let notice = prose::not_understood(&self.place(), elicitation, &suggestions);
                self.say_once(question, &format!("not_understood {suggestions:?}"), notice)
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

    fn is_over(&self, index: usize) -> bool {
        self.question(index).state.is_closed()
    }

    fn untrusted(&self) -> Option<Refusal> {
        untrusted(self.heard, self.rules)
    }

    /// The person will not answer, if the question allows that.
    fn decline(&self, question: usize, targeted_by: TargetedBy) -> Vec<Change> {
        let elicitation = self.question(question);
        if elicitation.question.decline.is_none() {
            let notice = prose::not_declinable(&self.place(), elicitation);
            return self.say_once(question, "not_declinable", notice);
        }
        if let Some(refusal) = self.untrusted() {
            return self.refuse(question, refusal);
        }
        let declined = Answer {
            kind: AnswerKind::Declined,
            option: None,
            text: None,
            matched_by: MatchedBy::Text,
            targeted_by,
            directed: true,
            ..self.answer()
        };
        self.settle(question, State::Declined, declined)
    }

    /// What every answer of this message says of who gave it, and when.
    pub(super) fn answer(&self) -> Answer {
        Answer {
            kind: AnswerKind::Text,
            option: None,
            text: None,
            answered_by: self.heard.sender.user_id.clone(),
            display_name: self.heard.sender.display_name.clone(),
            event_id: message_id(self.heard, self.said).to_owned(),
            answered_at: self.heard.sent_at,
            matched_by: MatchedBy::Text,
            targeted_by: TargetedBy::OnlyOpen,
            directed: false,
            encrypted: !matches!(self.heard.trust, Trust::Plain | Trust::Clear),
            sender_verified: match self.heard.trust {
                Trust::Plain => None,
                Trust::Verified => Some(true),
                Trust::Unverified | Trust::Clear | Trust::Refused => Some(false),
            },
        }
    }

    /// Closes a question by what was said, with a ✓ on it. Of a board's question the board decides.
    fn settle(&self, question: usize, state: State, answer: Answer) -> Vec<Change> {
        let elicitation = self.question(question);
        match elicitation.question.source() {
            Source::Board => return self.hand_in(question, answer),
            Source::Session => {
                let prompt = self.prompt(elicitation.key().session(), Some(answer));
                return prompt.into_iter().collect();
            }
            Source::Agent | Source::Carrier => {}
        }
        let mut changes = vec![close(elicitation, state, None, Some(answer), self.now)];
        if self.known[question].manners.reacts {
            let message = message_id(self.heard, self.said);
            changes.push(taken(&self.heard.room_id, elicitation, message));
        }
        changes
    }

    /// What is said to a session: of a choice its value, else the words as they are.
    pub(super) fn prompt(&self, session: Option<&str>, answer: Option<Answer>) -> Option<Change> {
        let chosen = answer.as_ref().and_then(|answer| answer.option.as_ref());
        let body = chosen.map_or_else(|| self.typed().trim(), |option| option.id.as_str());
        Some(Change::Prompt(Box::new(Prompt {
            session_id: session?.to_owned(),
            body: body.to_owned(),
            author: Author {
                user_id: self.heard.sender.user_id.clone(),
                display_name: self.heard.sender.display_name.clone(),
            },
            room_id: self.heard.room_id.clone(),
            event_id: message_id(self.heard, self.said).to_owned(),
            thread: self.said.thread.clone(),
            answer,
        })))
    }

    /// Hands an answer in to the question's board, one at a time.
    fn hand_in(&self, question: usize, answer: Answer) -> Vec<Change> {
        let elicitation = self.question(question);
        match &self.known[question].submission {
            None => vec![Change::Submit {
                key: elicitation.key().clone(),
                answer: Box::new(answer),
            }],
            Some(before) => {
                let notice = prose::handing_in(&self.place(), elicitation, before);
                self.say_once(question, &format!("handing_in {}", before.event_id), notice)
            }
        }
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
        if let Some(refusal) = self.untrusted() {
            return self.refuse(question, refusal);
        }
        let answer = Answer {
            kind,
            option,
            text: Some(text),
            matched_by,
            targeted_by,
            directed,
            ..self.answer()
        };
        self.settle(question, State::Answered, answer)
    }

    fn refuse(&self, question: usize, refusal: Refusal) -> Vec<Change> {
        let elicitation = self.question(question);
        let notice = prose::may_not_answer(&self.place(), elicitation, refusal);
        self.say_once(question, "may_not_answer", notice)
    }

    /// The question is over: everybody who still means it is told how it ended, once. Who
    /// answered it is told too: their answer stands.
    fn closed(&self, question: usize) -> Vec<Change> {
        let elicitation = self.question(question);
        let mut over = elicitation.clone();
        if !over.state.is_closed() {
            // Its deadline has passed, and it is about to expire.
            over.state = State::Expired;
            over.closed_at = over.question.expires_at;
        }
        let notice = prose::already_closed(&self.place(), &over);
        self.say_once(question, "closed", notice)
    }

    /// Several questions are open and the message does not say which it means. What was said is
    /// remembered with the newest of them: another question asked later is a change, and then it
    /// may be said again.
    fn ask_which(&self, questions: &[usize]) -> Vec<Change> {
        let asked: Vec<&Elicitation> = questions
            .iter()
            .map(|&index| self.question(index))
            .collect();
        // It is said for those about which something may be said.
        let speaks = |&&index: &&usize| self.known[index].manners.notices;
        let Some(&newest) = questions.iter().rfind(speaks) else {
            return Vec::new();
        };
        let tags: Vec<&str> = asked
            .iter()
            .map(|elicitation| elicitation.tag.as_str())
            .collect();
        let tags = tags.join(" ");
        let mut changes = match self.declining {
            None => {
                let content = prose::ask_which(&self.place(), &asked);
                self.say_once(newest, &format!("ask_which {tags}"), content)
            }
            Some(command) => {
                let content = prose::how_to_decline(&self.place(), &asked, command);
                self.say_once(newest, &format!("decline_which {tags}"), content)
            }
        };
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

    /// What the person typed: the body without what their client quoted before it.
    pub(super) fn typed(&self) -> &str {
        match self.said.in_reply_to {
            Some(_) => reply::without_fallback(&self.said.body),
            None => &self.said.body,
        }
    }

    fn place(&self) -> Place<'_> {
        place(self.heard, self.said)
    }

    fn say_once(&self, question: usize, what: &str, content: Value) -> Vec<Change> {
        if !self.known[question].manners.notices {
            return Vec::new();
        }
        let elicitation = self.question(question);
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

/// Why nothing of this sender can be trusted, whatever it says.
pub fn untrusted(heard: &Heard, rules: &Rules) -> Option<Refusal> {
    match heard.trust {
        Trust::Refused => Some(Refusal::Untrusted),
        Trust::Unverified | Trust::Clear if rules.require_verified => Some(Refusal::Unverified),
        Trust::Plain | Trust::Verified | Trust::Unverified | Trust::Clear => None,
    }
}

#[cfg(test)]
mod tests;
