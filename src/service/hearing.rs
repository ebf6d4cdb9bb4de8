//! Taking in what was heard: one sync response, one transaction.

use std::collections::HashMap;

use super::Service;
use super::asking::Asking;
use crate::clock::{self, Millis};
use crate::config::Config;
use crate::contract::CARD_KEY;
use crate::desk::{self, Bot, Change, Heard, Interest, Known, Rules, Said, What, possible_tags};
use crate::elicitation::{Elicitation, Source, State};
use crate::ledger::{self, Gap, Ledger, LedgerError, SendKind, Submission, Undecrypted};
use crate::reply::Commands;

/// For so long a room in which a question was closed is watched like one in which it is open.
pub(super) const STILL_WATCHED: Millis = 10_000;

/// What one sync response brought, as far as it may matter.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Where the next sync continues; kept with everything else.
    pub token: Option<String>,
    /// The events, in the order of each room's timeline.
    pub heard: Vec<Heard>,
    /// Events that could not be decrypted yet.
    pub undecrypted: Vec<Undecrypted>,
    /// Holes that could not be filled yet: their rooms decide nothing until they are.
    pub gaps: Vec<Gap>,
    /// A hole that is filled, or never will be: `heard` holds what lay in it, and nothing else.
    pub filled: Option<Filled>,
    /// Kept events that are decrypted now, or will never be: (room, event).
    pub resolved: Vec<(String, String)>,
    /// Kept events that cannot be read for so long that the room is told.
    pub unreadable: Vec<Undecrypted>,
    /// Rooms the bot was removed from.
    pub lost: Vec<String>,
    /// The rules of the rooms and the bot's name in each, by room id.
    pub rooms: HashMap<String, (Rules, Bot)>,
    /// What each of those rooms is called beside its id.
    pub names: HashMap<String, Vec<String>>,
    /// Users of whom an event was heard, for the first time since the start; kept only where there
    /// are streams.
    pub met: Vec<String>,
}

/// All holes of one room, filled at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// The room.
    pub room_id: String,
    /// Where the newest of its holes ends. When another one was found meanwhile, nothing of this
    /// is taken in: there is more to be read first.
    pub prev_batch: String,
    /// What lay there can never be read: what was posted there counts as seen.
    pub never: bool,
}

impl Batch {
    /// Whether it brings nothing.
    pub fn is_empty(&self) -> bool {
        self.token.is_none()
            && self.heard.is_empty()
            && self.undecrypted.is_empty()
            && self.gaps.is_empty()
            && self.filled.is_none()
            && self.resolved.is_empty()
            && self.unreadable.is_empty()
            && self.lost.is_empty()
            && self.met.is_empty()
    }
}

impl Service {
    /// Takes in a batch: everything it holds and what it decides is committed together.
    ///
    /// # Errors
    /// When the ledger fails; then nothing of it was taken in.
    pub async fn take_in(&self, batch: Batch) -> Result<(), LedgerError> {
        let config = self.config.clone();
        let commands = self.commands.clone();
        let now = clock::now();
        let rooms: Vec<String> = batch.rooms.keys().cloned().collect();
        // Before the commit: the watch may hold too much, never too little.
        // What was kept behind a hole may begin something as well.
        let filled = batch.filled.iter().map(|filled| &filled.room_id);
        let asking: Vec<Asking> = batch
            .heard
            .iter()
            .filter(|heard| match &heard.what {
                What::Carried { .. } => true,
                What::Message(said) => self.may_begin(said),
                _ => false,
            })
            .map(|heard| &heard.room_id)
            .chain(filled)
            .map(|room_id| Asking::begin(self.watch.clone(), room_id))
            .collect();
        let taken_in = self.book.write(move |ledger| {
            Hearing {
                ledger,
                config: &config,
                commands: &commands,
                now,
            }
            .take_in(&batch)
            .map(|()| asking)
        });
        drop(taken_in.await?);
        self.calm_down(rooms).await
    }

    /// Rooms in which nothing is pending any more are watched less closely.
    async fn calm_down(&self, rooms: Vec<String>) -> Result<(), LedgerError> {
        let watched: Vec<String> = rooms
            .into_iter()
            .filter(|room_id| self.interest(room_id) == Some(Interest::Pending))
            .collect();
        if watched.is_empty() {
            return Ok(());
        }
        let counted: Vec<(String, u64)> = watched
            .into_iter()
            .map(|room_id| {
                let count = self.watching(|watch| watch.asked(&room_id));
                (room_id, count)
            })
            .collect();
        let now = clock::now();
        let calm: Vec<(String, u64)> = self
            .book
            .read(move |ledger| {
                let mut calm = Vec::new();
                for (room_id, count) in counted {
                    // Who answered while somebody else did may still be heard.
                    let since = now.saturating_sub(STILL_WATCHED);
                    if !ledger.any_pending_in(&room_id)?
                        && ledger.living_in(&room_id)?.is_empty()
                        && !ledger.any_closed_in(&room_id, since)?
                    {
                        calm.push((room_id, count));
                    }
                }
                Ok::<_, LedgerError>(calm)
            })
            .await?;
        for (room_id, count) in calm {
            self.watch_mut(|watch| watch.calm(&room_id, count));
        }
        Ok(())
    }
}

/// One transaction of taking in.
pub(super) struct Hearing<'a> {
    pub(super) ledger: &'a mut dyn Ledger,
    pub(super) config: &'a Config,
    pub(super) commands: &'a Commands,
    pub(super) now: Millis,
}

impl Hearing<'_> {
    fn take_in(mut self, batch: &Batch) -> Result<(), LedgerError> {
        for gap in &batch.gaps {
            self.ledger.open_gap(gap)?;
        }
        let kept = match &batch.filled {
            Some(filled) => self.fill(filled, &batch.heard)?,
            None => Some(Vec::new()),
        };
        let Some(kept) = kept else { return Ok(()) };
        let open_gaps = self.ledger.gaps()?;
        let behind_gap = |room_id: &str| open_gaps.iter().any(|gap| gap.room_id == room_id);
        for (room_id, event_id) in &batch.resolved {
            if !behind_gap(room_id) {
                self.readable(room_id, event_id)?;
            }
        }
        if !batch.met.is_empty() {
            let stamp = self.ledger.stamp(self.now)?;
            for user_id in &batch.met {
                self.ledger.meet(user_id, stamp)?;
            }
        }
        // First: votes and edits in the same batch may be about them.
        for kept in &batch.undecrypted {
            if !self.ledger.seen(&kept.room_id, &kept.event_id)? {
                self.ledger.keep_undecrypted(kept)?;
            }
        }
        for heard in &batch.heard {
            if !behind_gap(&heard.room_id) {
                self.hear(heard, batch)?;
            } else if self.came_locked_at(heard, batch)?.is_none() {
                self.hear_ahead(heard, batch)?;
                let kept = serde_json::to_string(heard).map_err(|error| unreadable(&error))?;
                self.ledger.defer(&heard.room_id, &heard.event_id, &kept)?;
            }
        }
        for heard in &kept {
            self.hear(heard, batch)?;
        }
        for kept in &batch.unreadable {
            self.unreadable(kept)?;
        }
        for room_id in &batch.lost {
            self.lost(room_id)?;
        }
        for (room_id, event_id) in &batch.resolved {
            // Behind a hole it stays kept as it came, and is read again after the hole.
            if behind_gap(room_id) {
                continue;
            }
            self.ledger.drop_undecrypted(room_id, event_id)?;
        }
        if let Some(token) = &batch.token {
            self.ledger.set_sync_token(token)?;
        }
        Ok(())
    }

    /// Closes the holes of a room and gives what was kept behind them; `None` when they are not
    /// filled up to the newest.
    fn fill(
        &mut self,
        filled: &Filled,
        found: &[Heard],
    ) -> Result<Option<Vec<Heard>>, LedgerError> {
        let room_id = &filled.room_id;
        let gaps = self.ledger.gaps()?;
        let newest = gaps.iter().rfind(|gap| gap.room_id == *room_id);
        if newest.is_none_or(|gap| gap.prev_batch != filled.prev_batch) {
            return Ok(None);
        }
        let kept = self.ledger.close_gaps(room_id)?;
        let kept = kept.iter().map(|kept| serde_json::from_str(kept));
        let kept: Vec<Heard> = kept
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable(&error))?;
        if filled.never {
            let coming: Vec<&Heard> = found.iter().chain(&kept).collect();
            self.all_visible_but(room_id, &coming)?;
        }
        Ok(Some(kept))
    }

    fn hear(&mut self, heard: &Heard, batch: &Batch) -> Result<(), LedgerError> {
        if !self.ledger.see(&heard.room_id, &heard.event_id, self.now)? {
            return Ok(());
        }
        let changes = match &heard.what {
            What::Own {
                txn_id,
                card,
                board_id,
            } => {
                self.own(heard, txn_id.as_deref(), card.as_ref(), board_id.as_deref())?;
                return Ok(());
            }
            What::Carried { carried, replaces } => {
                self.carried(heard, carried, replaces.as_deref(), batch)?
            }
            What::CardGone { replaces } => self.card_gone(heard, replaces, batch)?,
            What::Redaction { redacts } => {
                self.unsay(&heard.room_id, redacts)?;
                self.redacted(heard, redacts)?
            }
            What::Message(said) => self.message(heard, said, batch)?,
            What::Talk => Vec::new(),
        };
        // What was open when it was said decides whether it was an answer.
        if let Some(chat) = &heard.chat {
            self.talk(heard, chat, &changes)?;
        }
        self.apply(&changes)
    }

    /// What was posted in a hole that can never be filled counts as seen. What is still to come
    /// back stands after the hole, and becomes visible in its place.
    fn all_visible_but(&mut self, room_id: &str, coming: &[&Heard]) -> Result<(), LedgerError> {
        for open in self.ledger.open_in(room_id)? {
            if let Some(event_id) = &open.event_id
                && !coming.iter().any(|heard| heard.event_id == *event_id)
            {
                self.ledger.mark_visible(room_id, event_id, self.now)?;
            }
        }
        Ok(())
    }

    /// An own event came back: whatever was sent as it is in the room, and what is said after it
    /// may be meant for it.
    fn own(
        &mut self,
        heard: &Heard,
        txn_id: Option<&str>,
        card: Option<&(String, String)>,
        board_id: Option<&str>,
    ) -> Result<(), LedgerError> {
        let mut sending = match txn_id {
            Some(txn_id) => self.ledger.sending_by_txn(txn_id)?,
            None => None,
        };
        if let (None, Some((agent, id))) = (&sending, card) {
            // Two origins may use the same id.
            let pending = self.ledger.pending_cards(&heard.room_id, id)?;
            sending = pending.into_iter().find(|sending| {
                let card = &sending.draft.content[CARD_KEY];
                card["asked_by"] == agent.as_str()
                    && board_id.is_none_or(|board_id| card["board_id"] == board_id)
            });
        }
        if let Some(sending) = sending.filter(|sending| sending.draft.room_id == heard.room_id) {
            super::posting::sent(
                self.ledger,
                &sending,
                &heard.event_id,
                self.config,
                self.now,
            )?;
        }
        self.ledger
            .mark_visible(&heard.room_id, &heard.event_id, self.now)
    }

    fn redacted(&mut self, heard: &Heard, redacts: &str) -> Result<Vec<Change>, LedgerError> {
        // What could not be read in time will not be read at all.
        self.ledger.drop_undecrypted(&heard.room_id, redacts)?;
        if let Some(mut changes) = self.prompt_redacted(heard, redacts)? {
            // What it said as an answer goes with it.
            if let Some(answered) = self.ledger.answered_by_event(&heard.room_id, redacts)? {
                changes.extend(desk::answer_redacted(&answered, heard, self.now));
            }
            return Ok(changes);
        }
        if let Some(answered) = self.ledger.answered_by_event(&heard.room_id, redacts)? {
            return Ok(desk::answer_redacted(&answered, heard, self.now));
        }
        if let Some(submission) = self.ledger.submission_by_event(&heard.room_id, redacts)? {
            return self.take_back(&submission);
        }
        let mut changes = Vec::new();
        for key in self.ledger.about(&heard.room_id, redacts)? {
            let found = self.ledger.find(&key)?.filter(|elicitation| {
                elicitation.state == State::Open && elicitation.event_id.as_deref() == Some(redacts)
            });
            if let Some(open) = found {
                changes.push(desk::close_without_card(&open, self.now));
            }
        }
        Ok(changes)
    }

    /// The message of an answer that is on its way to a board was redacted: it is not handed in
    /// any more. If it is in hand right now, the board may have it all the same.
    fn take_back(&mut self, submission: &Submission) -> Result<Vec<Change>, LedgerError> {
        self.ledger.end_submission(submission.seq, "redacted")?;
        let mut changes = vec![Change::ForgetText(submission.key.clone())];
        if submission.waited
            && let Some(found) = self.ledger.find(&submission.key)?
        {
            let (answer, room_id) = (&submission.answer, &submission.room_id);
            changes.push(desk::wait_is_over(&found, answer, room_id));
        }
        Ok(changes)
    }

    fn message(
        &mut self,
        heard: &Heard,
        said: &Said,
        batch: &Batch,
    ) -> Result<Vec<Change>, LedgerError> {
        // Without the room's rules nobody may answer; the bot is not in it any more.
        let Some((rules, bot)) = batch.rooms.get(&heard.room_id) else {
            return Ok(Vec::new());
        };
        // What is said to a session is never corrected: what is said instead is said as well.
        if let Some(replaces) = &said.replaces
            && let Some(answered) = self.ledger.answered_by_event(&heard.room_id, replaces)?
            && answered.question.source() != Source::Session
        {
            let changes = desk::answer_edited(&answered, heard, said, rules, bot, self.now);
            return Ok(changes);
        }
        let command = desk::command(said, self.commands, bot);
        if let Some(command) = &command
            && let Some(changes) = self.session_command(heard, said, command, rules, bot, batch)?
        {
            return Ok(changes);
        }
        if command.is_none() {
            if let Some(session) = self.session_of(heard, said)? {
                return self.said_to_session(heard, said, &session, rules, bot);
            }
            if let Some(changes) = self.addressed(heard, said, rules, bot, batch)? {
                return Ok(changes);
            }
        }
        let mut known = self.known(heard, said, command.is_some())?;
        if let Some(command) = command {
            let commands = self.commands;
            return Ok(desk::obey(
                heard, said, &command, &known, rules, bot, commands, self.now,
            ));
        }
        if let Some(came_at) = self.came_locked_at(heard, batch)? {
            // What was not in the room when it came cannot have been meant by it. In doubt, for
            // what came in the same response, it must say what it means.
            for known in &mut known {
                let visible_at = self.ledger.visible_at(known.elicitation.key())?;
                known.elicitation.visible &= visible_at.is_some_and(|at| at < came_at);
            }
        }
        Ok(desk::judge(heard, said, &known, rules, bot, self.now))
    }

    /// When a message came that could not be read then, and is only now.
    fn came_locked_at(
        &mut self,
        heard: &Heard,
        batch: &Batch,
    ) -> Result<Option<Millis>, LedgerError> {
        let is_it =
            |room_id: &str, event_id: &str| room_id == heard.room_id && event_id == heard.event_id;
        if !batch
            .resolved
            .iter()
            .any(|(room, event)| is_it(room, event))
        {
            return Ok(None);
        }
        self.ledger
            .undecrypted_since(&heard.room_id, &heard.event_id)
    }

    /// A message could not be decrypted for a while. Its sender is told once, where a question is
    /// open that it may have answered.
    fn unreadable(&mut self, kept: &Undecrypted) -> Result<(), LedgerError> {
        let mut open = self.ledger.open_in(&kept.room_id)?;
        open.retain(|open| self.manners(&open.question).notices);
        if self.config.carriers.contains_key(&kept.sender) {
            open.clear();
        }
        let meant = open
            .iter()
            .rfind(|open| open.question.created_at <= kept.heard_at);
        if let Some(open) = meant {
            let notice = desk::unreadable(open, &kept.event_id, &kept.sender);
            self.apply(&[notice])?;
        }
        self.ledger
            .mark_told_unreadable(&kept.room_id, &kept.event_id)
    }

    /// A message can be read now, or never will be: a word that it could not is taken back.
    fn readable(&mut self, room_id: &str, event_id: &str) -> Result<(), LedgerError> {
        if self.ledger.undecrypted_since(room_id, event_id)?.is_none() {
            return Ok(());
        }
        let Some(noticed) = self
            .ledger
            .said_about(SendKind::Notice, room_id, event_id)?
        else {
            return Ok(());
        };
        if noticed.untried {
            let why = "the message could be read after all";
            return self.ledger.drop_sending(noticed.seq, why);
        }
        self.apply(&[desk::read_later(&noticed.key, room_id, event_id)])
    }

    /// The bot was removed from a room: what is pending there can reach nobody.
    fn lost(&mut self, room_id: &str) -> Result<(), LedgerError> {
        let reason = "the bot was removed from the room";
        for pending in self.ledger.pending_in(room_id)? {
            let closed = desk::close(&pending, State::Undeliverable, Some(reason), None, self.now);
            self.apply(&[closed])?;
        }
        self.lose_sessions(room_id)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        let has_webhook = |origin: &str| Service::has_webhook(self.config, origin);
        ledger::apply(self.ledger, changes, &has_webhook, self.now)?;
        Ok(())
    }

    /// Whether what is said in a room may be about a question that is in another one now: that took
    /// its place. A carrier's card may stand elsewhere, too, and is answered only where it is read.
    pub(super) fn leads_to(&mut self, room_id: &str, now_in: &str) -> Result<bool, LedgerError> {
        Ok(room_id == now_in || self.ledger.successor(room_id)?.as_deref() == Some(now_in))
    }

    /// The open questions of the room, and those the message points at. Unless `all` are wanted,
    /// those that cannot matter to it are left out.
    pub(super) fn known(
        &mut self,
        heard: &Heard,
        said: &Said,
        all: bool,
    ) -> Result<Vec<Known>, LedgerError> {
        // One that came from an upgraded room is open before its card is in this one.
        let is_here = |found: &Elicitation| found.state != State::Open || found.event_id.is_some();
        let mut pointed: Vec<Elicitation> = Vec::new();
        for event_id in [&said.in_reply_to, &said.thread].into_iter().flatten() {
            for key in self.ledger.about(&heard.room_id, event_id)? {
                if let Some(found) = self.ledger.find(&key)?
                    && self.leads_to(&heard.room_id, &found.question.room_id)?
                {
                    pointed.push(found);
                }
            }
        }
        let mut found: Vec<Elicitation> = Vec::new();
        if all || !is_plain_about(said, &pointed) {
            let unseen = heard.sent_at.saturating_sub(desk::UNSEEN);
            found = self.ledger.open_in(&heard.room_id)?;
            found.retain(is_here);
            found.extend(self.ledger.closed_in(&heard.room_id, unseen)?);
        }
        found.extend(pointed);
        for tag in possible_tags(&said.body) {
            let tagged = self.ledger.tagged(&heard.room_id, &tag)?;
            found.extend(tagged.filter(is_here));
        }
        let mut known: Vec<Known> = Vec::with_capacity(found.len());
        for mut elicitation in found {
            // The thread of a session's question may have begun after it was asked.
            if let Some(session) = elicitation.key().session() {
                let session = self.ledger.session(session)?;
                elicitation.question.thread = session.and_then(|session| session.root);
            }
            // A question that is not in the room yet cannot be meant.
            let listed = known
                .iter()
                .any(|other| other.elicitation.key() == elicitation.key());
            if !listed && elicitation.state != State::Queued {
                let key = elicitation.key();
                let submission = match elicitation.question.source() {
                    Source::Board => self.ledger.submission(key)?,
                    Source::Agent | Source::Carrier | Source::Session => None,
                };
                known.push(Known {
                    own_events: self.ledger.events_about(key)?,
                    submission: submission.map(|submission| submission.answer),
                    manners: self.manners(&elicitation.question),
                    elicitation,
                });
            }
        }
        Ok(known)
    }
}

/// Whether a message is a rich reply to one question, outside of threads. Which others are open does
/// not matter to it then, but for those whose tags it holds.
fn is_plain_about(said: &Said, pointed: &[Elicitation]) -> bool {
    let is_reply = said.in_reply_to.is_some() && !said.falling_back && said.thread.is_none();
    is_reply && matches!(pointed, [one] if one.state != State::Queued)
}

fn unreadable(error: &serde_json::Error) -> LedgerError {
    LedgerError::Unreadable {
        what: "kept event",
        why: error.to_string(),
    }
}
