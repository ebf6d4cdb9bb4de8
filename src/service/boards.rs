//! Boards: their questions, whether pushed or found by a look at what is pending, and what became
//! of the answers that were handed in to them.
//!
//! The board decides. A reply is kept as a submission, one a question at a time; it is an answer
//! when the board has taken it. A question that the board no longer asks is closed here.

use std::collections::{BTreeMap, HashSet};
use std::sync::{PoisonError, RwLock};

use serde_json::Value;
use tokio::sync::{Mutex, Notify};

use super::asking::Asking;
use super::{RoomTrouble, Service};
use crate::clock::{self, Millis};
use crate::config::{BoardConfig, Config};
use crate::contract::board::{Pending, id_of};
use crate::crash;
use crate::desk::{self, Change};
use crate::elicitation::{Elicitation, Key, Outcome, State};
use crate::ledger::{self, Ledger, LedgerError, Submission};

/// What became of a question that a board asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is stored, and goes to its room.
    New,
    /// It was here already.
    Known,
    /// It is not to be put up here.
    Ignored(&'static str),
}

/// Why a board's question could not be stored now. It will be asked again.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// There is no room for it yet.
    #[error("{0}")]
    NoRoom(String),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// What a look at a board's pending questions changed here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Questions that were unknown here.
    pub posted: usize,
    /// Questions that the board no longer asks.
    pub settled: usize,
    /// Entries that are no questions.
    pub malformed: usize,
    /// Why questions that are pending there could not be put up.
    pub not_posted: Option<String>,
}

/// The room that is to be made for a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardRoom {
    /// The board's id.
    pub board: String,
    /// Its name, if it is known.
    pub name: Option<String>,
    /// Who is to be invited.
    pub invite: Vec<String>,
    /// Whether it is to be encrypted.
    pub encrypted: bool,
}

/// What is remembered of one board while the process lives.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// Told when its pending questions are to be looked at at once.
    look: Notify,
    /// What it called itself last.
    name: RwLock<Option<String>>,
    /// Held by whoever makes its room.
    making: Mutex<()>,
    /// Its room, once it is known.
    room: RwLock<Option<String>>,
}

pub(super) fn boards_of(config: &Config) -> BTreeMap<String, Board> {
    let ids = config.boards.keys();
    ids.map(|id| (id.clone(), Board::default())).collect()
}

impl Service {
    /// Takes a question that a board has pushed. When this returns, it is on the disk.
    ///
    /// # Errors
    /// See [`BoardError`]; nothing was stored then, and the board is to push again.
    pub async fn take_pushed(&self, board: &str, pending: Pending) -> Result<Taken, BoardError> {
        self.take_question(board, pending, true).await
    }

    async fn take_question(
        &self,
        board: &str,
        pending: Pending,
        pushed: bool,
    ) -> Result<Taken, BoardError> {
        let Some(config) = self.config.boards.get(board) else {
            return Err(BoardError::NoRoom(format!("there is no board {board}")));
        };
        crash::point("push.received");
        self.note_name(board, pending.board_name.as_deref());
        // What is here already needs no room.
        let (key, id) = (
            Key::of_board(board, pending.elicitation_id.as_str()),
            pending.elicitation_id.clone(),
        );
        let found = self.book.read(move |ledger| here(ledger, &key, &id));
        if let Some(taken) = found.await? {
            return Ok(taken);
        }
        let mut room_id = self.board_room(board, config).await?;
        let mut asking = Asking::begin(self.watch.clone(), &room_id);
        let (config, watch, board) = (self.config.clone(), self.watch.clone(), board.to_owned());
        let free_text = self.config.boards[&board].free_text;
        let now = clock::now();
        let store = move |ledger: &mut dyn Ledger, asking: &mut Asking| {
            let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
            let key = Key::of_board(&board, pending.elicitation_id.as_str());
            if let Some(taken) = here(ledger, &key, &pending.elicitation_id)? {
                return Ok(taken);
            }
            ledger.bury(&key)?;
            if pushed && !supersede(ledger, &key, &pending, now)? {
                return Ok(Taken::Ignored("a newer question about its card is here"));
            }
            if let Some(successor) = ledger.successor(&room_id)? {
                *asking = Asking::begin(watch, &successor);
                room_id = successor;
            }
            let others_open = ledger.any_pending_in(&room_id)?;
            let tag = ledger.next_tag(&room_id)?;
            let elicitation = desk::from_board(&board, pending, free_text, room_id, tag, now);
            let card = desk::card(&elicitation, others_open);
            if !ledger.insert(&elicitation, "", None)? {
                return Ok(Taken::Known);
            }
            ledger::apply(ledger, &[Change::Send(card)], &has_webhook, now)?;
            Ok::<_, LedgerError>(Taken::New)
        };
        // The guard comes back with the answer, after the commit, also when nobody waits for it.
        let (taken, _asking) = self
            .book
            .write(move |ledger| store(ledger, &mut asking).map(|taken| (taken, asking)))
            .await?;
        crash::point("push.stored");
        Ok(taken)
    }

    /// Brings what is here into line with what a board says is pending, as it was read at
    /// `read_at`: what is unknown here is put up, and what is open here and not among it is closed.
    /// An entry that names no question leaves everything open: it may be any of them.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn reconcile(
        &self,
        board: &str,
        listed: &[Value],
        read_at: Millis,
    ) -> Result<Reconciled, LedgerError> {
        let mut done = Reconciled::default();
        let mut asked: HashSet<String> = HashSet::new();
        let mut nameless = false;
        for entry in listed {
            match id_of(entry) {
                Some(id) => drop(asked.insert(id.to_owned())),
                None => nameless = true,
            }
            let pending = match Pending::read(entry) {
                Ok(pending) if pending.board_id == board => pending,
                Ok(_) => {
                    done.malformed += 1;
                    continue;
                }
                Err(fault) => {
                    tracing::debug!(board.id = board, "a pending question of {board}: {fault}");
                    done.malformed += 1;
                    continue;
                }
            };
            match self.take_question(board, pending, false).await {
                Ok(Taken::New) => done.posted += 1,
                Ok(_) => {}
                Err(BoardError::NoRoom(why)) => done.not_posted = Some(why),
                Err(BoardError::Ledger(error)) => return Err(error),
            }
        }
        if nameless {
            return Ok(done);
        }
        let (config, board) = (self.config.clone(), board.to_owned());
        let now = clock::now();
        done.settled = self
            .book
            .write(move |ledger| {
                let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
                let mut settled = 0;
                for open in ledger.pending_of(&Key::of_board(&board, "").origin)? {
                    // What came since may not have been asked yet when the board was read.
                    let over =
                        !asked.contains(&open.key().id) && open.question.created_at < read_at;
                    if over && let Some(changes) = settle(ledger, &open, now)? {
                        ledger::apply(ledger, &changes, &has_webhook, now)?;
                        settled += 1;
                    }
                }
                Ok::<_, LedgerError>(settled)
            })
            .await?;
        Ok(done)
    }

    /// The answers that are to be handed in to a board now, and when the next one is due.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn submissions_due(
        &self,
        board: &str,
        limit: usize,
    ) -> Result<(Vec<Submission>, Option<Millis>), LedgerError> {
        let origin = Key::of_board(board, "").origin;
        let now = clock::now();
        let due = move |ledger: &mut dyn Ledger| ledger.submissions_due(&origin, now, limit);
        self.book.read(due).await
    }

    /// Notes that an answer is handed in now. `false` when it is not to be any more.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn hand_in(&self, seq: i64) -> Result<bool, LedgerError> {
        let write = move |ledger: &mut dyn Ledger| ledger.mark_in_hand(seq);
        self.book.write(write).await
    }

    /// Shows the room that an answer is kept and takes its time, once.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn show_waiting(&self, submission: &Submission) -> Result<(), LedgerError> {
        let submission = submission.clone();
        let now = clock::now();
        self.book
            .write(move |ledger| show_waiting(ledger, &submission, now))
            .await
    }

    /// Puts an answer off that could not be handed in; the room is shown that it takes its time.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn put_off(
        &self,
        submission: &Submission,
        until: Millis,
        why: String,
    ) -> Result<(), LedgerError> {
        let submission = submission.clone();
        let now = clock::now();
        self.book
            .write(move |ledger| {
                show_waiting(ledger, &submission, now)?;
                ledger.postpone_submission(submission.seq, until, &why)
            })
            .await
    }

    /// A board can be reached again: what was put off is handed in now.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn board_is_back(&self, board: &str) -> Result<(), LedgerError> {
        let origin = Key::of_board(board, "").origin;
        let now = clock::now();
        self.book
            .write(move |ledger| ledger.hurry_submissions(&origin, now))
            .await
    }

    /// Notes how handing an answer in ended, and lets the room know.
    ///
    /// # Errors
    /// When the ledger fails; it is then handed in again.
    pub async fn handed_in(
        &self,
        submission: Submission,
        outcome: Outcome,
    ) -> Result<(), LedgerError> {
        let config = self.config.clone();
        let now = clock::now();
        self.book
            .write(move |ledger| {
                let Some(found) = ledger.find(&submission.key)? else {
                    return Ok(());
                };
                let current = ledger.submission(&submission.key)?;
                let current = current.filter(|current| current.seq == submission.seq);
                let changes = if let Some(current) = current {
                    ledger.end_submission(current.seq, outcome.word())?;
                    let (room, waited) = (&current.room_id, current.waited);
                    desk::handed_in(&found, &current.answer, room, &outcome, waited, now)
                } else if outcome == Outcome::Taken && !found.state.is_closed() {
                    // Its message was redacted while it was in hand: the board has it all the same.
                    let (mut answer, room) = (submission.answer, &submission.room_id);
                    answer.text = None;
                    desk::handed_in(&found, &answer, room, &outcome, false, now)
                } else {
                    Vec::new()
                };
                let has_webhook = |origin: &str| Self::has_webhook(&config, origin);
                ledger::apply(ledger, &changes, &has_webhook, now)?;
                Ok(())
            })
            .await
    }

    /// Waits until a board's pending questions are to be looked at at once.
    pub async fn asked_to_look(&self, board: &str) {
        match self.boards.get(board) {
            Some(board) => board.look.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Somebody has come into a room: where it is a board's, what is pending there is looked at.
    pub fn somebody_joined(&self, room_id: &str) {
        for board in self.boards.values() {
            let room = board.room.read().unwrap_or_else(PoisonError::into_inner);
            // A room that is not known yet may be this one.
            if room.as_deref().is_none_or(|room| room == room_id) {
                board.look.notify_one();
            }
        }
    }

    fn note_name(&self, board: &str, name: Option<&str>) {
        let (Some(board), Some(name)) = (self.boards.get(board), name) else {
            return;
        };
        let mut known = board.name.write().unwrap_or_else(PoisonError::into_inner);
        if known.as_deref() != Some(name) {
            *known = Some(name.to_owned());
            board.look.notify_one();
        }
    }

    fn name_of(&self, board: &str) -> Option<String> {
        let board = self.boards.get(board)?;
        let name = board.name.read().unwrap_or_else(PoisonError::into_inner);
        name.clone()
    }

    /// The room in which a board's questions are asked, made if it has to be.
    async fn board_room(&self, board: &str, config: &BoardConfig) -> Result<String, BoardError> {
        let room_id = match &config.room {
            Some(room) => self.ready_room(room).await?,
            None => match self.made_room(board).await? {
                Some(room_id) => self.ready_room(&room_id).await?,
                None => self.make_room(board, config).await?,
            },
        };
        if let Some(board) = self.boards.get(board) {
            let mut known = board.room.write().unwrap_or_else(PoisonError::into_inner);
            *known = Some(room_id.clone());
        }
        Ok(room_id)
    }

    /// The room that was made for a board earlier.
    async fn made_room(&self, board: &str) -> Result<Option<String>, LedgerError> {
        let board = board.to_owned();
        let made = move |ledger: &mut dyn Ledger| ledger.board_room(&board);
        Ok(self.book.read(made).await?.map(|(room_id, _)| room_id))
    }

    /// A room by id or alias, once the bot can speak there.
    async fn ready_room(&self, room: &str) -> Result<String, BoardError> {
        let facts = match self.rooms.locate(room).await {
            Ok(facts) => facts,
            Err(trouble @ (RoomTrouble::Unknown(_) | RoomTrouble::Away(_))) => {
                return Err(BoardError::NoRoom(trouble.to_string()));
            }
        };
        let bot = self.rooms.bot();
        if !facts.joined {
            let why = format!("the bot is not in {room}: invite {bot}");
            return Err(BoardError::NoRoom(why));
        }
        if !facts.may_send {
            let why = format!("the bot may not send messages in {room}: give {bot} the power to");
            return Err(BoardError::NoRoom(why));
        }
        Ok(facts.room_id)
    }

    /// Makes the room of a board, once however many want it at the same time.
    async fn make_room(&self, board: &str, config: &BoardConfig) -> Result<String, BoardError> {
        let Some(known) = self.boards.get(board) else {
            return Err(BoardError::NoRoom(format!("there is no board {board}")));
        };
        let _making = known.making.lock().await;
        if let Some(room_id) = self.made_room(board).await? {
            return Ok(room_id);
        }
        let wanted = BoardRoom {
            board: board.to_owned(),
            name: self.name_of(board),
            invite: config.invite.clone(),
            encrypted: config.encrypted,
        };
        let made = self.rooms.make_board_room(&wanted).await;
        let room_id = made.map_err(|trouble| BoardError::NoRoom(trouble.to_string()))?;
        let (board, made, name) = (board.to_owned(), room_id.clone(), wanted.name);
        self.book
            .write(move |ledger| ledger.set_board_room(&board, &made, name.as_deref()))
            .await?;
        Ok(room_id)
    }

    /// Gives the room that was made for a board the name that the board has now, unless somebody
    /// else has named it.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn name_board_room(&self, board: &str) -> Result<(), LedgerError> {
        let Some(name) = self.name_of(board) else {
            return Ok(());
        };
        let id = board.to_owned();
        let made = self.book.read(move |ledger| ledger.board_room(&id)).await?;
        let Some((room_id, named)) = made.filter(|(_, named)| named.as_ref() != Some(&name)) else {
            return Ok(());
        };
        match self
            .rooms
            .name_room(&room_id, &name, named.as_deref())
            .await
        {
            Ok(()) => {
                let board = board.to_owned();
                let noted = move |ledger: &mut dyn Ledger| {
                    ledger.set_board_room(&board, &room_id, Some(&name))
                };
                self.book.write(noted).await
            }
            Err(trouble) => {
                tracing::warn!(
                    board.id = board, room.id = %room_id, error = %trouble,
                    "{room_id} could not be named after {board}: {trouble}"
                );
                Ok(())
            }
        }
    }
}

/// Whether a board's question needs nothing to be done: it is here, or another carrier has it. One
/// that could not be put before anybody is asked anew.
fn here(ledger: &mut dyn Ledger, key: &Key, id: &str) -> Result<Option<Taken>, LedgerError> {
    match ledger.find(key)? {
        Some(found) if found.state != State::Undeliverable => return Ok(Some(Taken::Known)),
        _ => {}
    }
    let carried = !ledger.carried_as(id)?.is_empty();
    Ok(carried.then_some(Taken::Ignored("another carrier has put it up")))
}

/// Closes what a new question about the same card supersedes. `false` when it is the new one that
/// is older. An answer that is being handed in is left to the board.
fn supersede(
    ledger: &mut dyn Ledger,
    key: &Key,
    pending: &Pending,
    now: Millis,
) -> Result<bool, LedgerError> {
    let older =
        ledger.pending_about_card(&key.origin, Some(&pending.board_id), &pending.card_id)?;
    if older.iter().any(|old| !desk::is_newer(pending, old)) {
        return Ok(false);
    }
    for old in older {
        if ledger.submission(old.key())?.is_none() {
            let reason = format!("asked again as {}", key.id);
            let change = desk::close(&old, State::Superseded, Some(&reason), None, now);
            ledger::apply(ledger, &[change], &|_| false, now)?;
        }
    }
    Ok(true)
}

/// What follows when the board no longer asks a question; `None` while an answer is in hand, whose
/// outcome says more.
fn settle(
    ledger: &mut dyn Ledger,
    open: &Elicitation,
    now: Millis,
) -> Result<Option<Vec<Change>>, LedgerError> {
    let Some(submission) = ledger.submission(open.key())? else {
        return Ok(Some(vec![desk::settled(open, now)]));
    };
    if submission.in_hand {
        return Ok(None);
    }
    let outcome = Outcome::Settled {
        uncertain: submission.tried,
    };
    ledger.end_submission(submission.seq, outcome.word())?;
    let (room, waited) = (&submission.room_id, submission.waited);
    let changes = desk::handed_in(open, &submission.answer, room, &outcome, waited, now);
    Ok(Some(changes))
}

fn show_waiting(
    ledger: &mut dyn Ledger,
    submission: &Submission,
    now: Millis,
) -> Result<(), LedgerError> {
    if let Some(found) = ledger.find(&submission.key)?
        && ledger.mark_waited(submission.seq)?
    {
        let change = desk::wait_for_board(&found, &submission.answer, &submission.room_id);
        ledger::apply(ledger, &[change], &|_| false, now)?;
    }
    Ok(())
}
