//! Streams: the rooms whose talk agents read as a digest, and the digest itself.
//!
//! What is said there comes in with everything else, in the transaction of its sync response, and
//! gets its place by the ledger's clock. A digest closes its window by that same clock before it
//! looks, so that what comes later belongs to the next one (`digest.md` 1).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::talk::{kept_form, prepare};
use super::{RoomTrouble, Service};
use crate::accounts::{Account, Accounts};
use crate::clock::{self, Millis};
use crate::config::StreamConfig;
use crate::contract::digest::{AgentDigest, InvalidDigest};
use crate::digest::{self, Digest, Person, Prepared, Standing};
use crate::ledger::{LedgerError, StoredLine};

/// Nothing that was said is kept for longer, in milliseconds (`digest.md` 12).
const MOST_KEPT: Millis = 24 * 60 * 60 * 1000;

/// So much of a localpart begins every handle that is made of it (`digest.md` 11).
const HANDLE_STEM: usize = 23;

/// Digests that were made, by `stream`.
const DIGESTS: &str = "elicit_digests_total";
/// Lines that were left out of them, by `reason`.
const DROPPED: &str = "elicit_digest_dropped_total";

/// Somebody who is or was in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomPerson {
    /// Their user id.
    pub user_id: String,
    /// Their name in the room, as they wrote it.
    pub display_name: Option<String>,
    /// How they stand there, as the room has it.
    pub standing: Standing,
}

/// Why there is no digest.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// There is no such stream.
    #[error("there is no such stream")]
    NotFound,
    /// The window would begin after its end.
    #[error("the window would begin after now")]
    SinceAfterUntil {
        /// Now, by the ledger's clock.
        until: Millis,
    },
    /// Not everything that was said is here, or not everything that decides who may be read. It
    /// may be asked again.
    #[error("{0}")]
    NotCaughtUp(String),
    /// What was made breaks the contract, which is a bug.
    #[error("the digest breaks its contract: {0}")]
    Broken(#[from] InvalidDigest),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl From<RoomTrouble> for DigestError {
    fn from(trouble: RoomTrouble) -> Self {
        Self::NotCaughtUp(trouble.to_string())
    }
}

/// A window as the ledger has it.
struct Talk {
    until: Millis,
    lines: Vec<StoredLine>,
    opted_out: BTreeSet<String>,
    silenced: BTreeSet<String>,
}

impl Service {
    /// What was said in a stream from `since` on, or everything that is kept, until now.
    ///
    /// # Errors
    /// See [`DigestError`].
    pub async fn digest(
        &self,
        stream: &str,
        since: Option<Millis>,
    ) -> Result<AgentDigest, DigestError> {
        let Some(config) = self.config.streams.get(stream) else {
            return Err(DigestError::NotFound);
        };
        if let Some(why) = self.health.behind(clock::now()) {
            return Err(DigestError::NotCaughtUp(why));
        }
        let room = self.rooms.locate(&config.room).await?;
        if !room.joined {
            let why = "the bot is not in the room of this stream";
            return Err(DigestError::NotCaughtUp(why.to_owned()));
        }
        let room_id = room.room_id;
        let until = self.close_window(&room_id, since).await?;
        let talk = self.talk(&room_id, since, until, config).await?;
        let made = if talk.lines.is_empty() {
            Digest::default()
        } else {
            let names: Vec<&str> = room.aliases.iter().map(String::as_str).collect();
            self.made(&room_id, &names, since, talk, config).await?
        };
        metrics::counter!(DIGESTS, "stream" => stream.to_owned()).increment(1);
        let mut left_out = 0;
        for (reason, count) in made.dropped.by_reason() {
            left_out += count;
            metrics::counter!(DROPPED, "reason" => reason).increment(u64::from(count));
        }
        let items = made.items.len();
        tracing::debug!(
            stream.id = stream,
            items,
            left_out,
            truncated = made.truncated,
            "a digest of {stream} has {items} items; {left_out} lines are left out"
        );
        Ok(digest::object(stream, since, until, &made)?)
    }

    /// Deletes what was said in streams and is older than it is kept (`digest.md` 12), and everything
    /// that was said in rooms that are no streams any more. Gives the number of lines.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn forget_talk(&self, now: Millis) -> Result<u64, LedgerError> {
        // First, and whether the homeserver answers or not.
        let before = now.saturating_sub(MOST_KEPT);
        let oldest = self
            .book
            .write(move |ledger| ledger.forget_older(before, now));
        let oldest: u64 = oldest.await?;
        let mut rooms = Vec::with_capacity(self.config.streams.len());
        let mut all = true;
        for stream in self.config.streams.values() {
            match self.rooms.locate(&stream.room).await {
                Ok(room) => rooms.push((room.room_id, clock::millis(stream.keep))),
                // Whose room it is is not known now: what is in it is not given up.
                Err(_) => all = false,
            }
        }
        let forgotten = self.book.write(move |ledger| {
            let mut gone = oldest;
            for (room_id, keep) in &rooms {
                gone += ledger.forget_lines(room_id, now.saturating_sub(*keep))?;
            }
            if all {
                let rooms: Vec<String> = rooms.into_iter().map(|(room_id, _)| room_id).collect();
                gone += ledger.forget_rooms_but(&rooms)?;
            }
            Ok::<_, LedgerError>(gone)
        });
        forgotten.await
    }

    /// The streams, each with the name of its room in the configuration.
    pub fn streams(&self) -> impl Iterator<Item = (&str, &str)> {
        let streams = self.config.streams.iter();
        streams.map(|(id, stream)| (id.as_str(), stream.room.as_str()))
    }

    /// Whether the history of a room was read for how long its people are known.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn ages_read(&self, room_id: &str) -> Result<bool, LedgerError> {
        let room_id = room_id.to_owned();
        self.book
            .read(move |ledger| ledger.ages_read(&room_id))
            .await
    }

    /// Notes since when people are known, as the history of a room says: its word for it is
    /// that of whoever was there.
    ///
    /// # Errors
    /// When the ledger fails; then nothing of it is noted.
    pub async fn note_ages(
        &self,
        room_id: &str,
        ages: Vec<(String, Millis)>,
    ) -> Result<(), LedgerError> {
        let room_id = room_id.to_owned();
        let now = clock::now();
        let noted = self.book.write(move |ledger| {
            for (user_id, at) in &ages {
                // Nobody is known since a time that is still to come.
                ledger.meet(user_id, (*at).min(now))?;
            }
            ledger.note_ages_read(&room_id)
        });
        noted.await
    }

    /// Keeps somebody out of the digests of a stream until a moment, or until it is undone.
    ///
    /// # Errors
    /// When there is no such stream, its room is not known, or the ledger fails.
    pub async fn silence(
        &self,
        stream: &str,
        user_id: &str,
        until: Option<Millis>,
    ) -> Result<(), DigestError> {
        let room_id = self.room_of(stream).await?;
        let user_id = user_id.to_owned();
        let silenced = self
            .book
            .write(move |ledger| ledger.silence(&room_id, &user_id, until));
        Ok(silenced.await?)
    }

    /// Undoes [`Service::silence`]; `false` when there was nothing to undo.
    ///
    /// # Errors
    /// As [`Service::silence`].
    pub async fn unsilence(&self, stream: &str, user_id: &str) -> Result<bool, DigestError> {
        let room_id = self.room_of(stream).await?;
        let user_id = user_id.to_owned();
        let undone = self
            .book
            .write(move |ledger| ledger.unsilence(&room_id, &user_id));
        Ok(undone.await?)
    }

    /// Who is kept out of the digests of a stream, and until when.
    ///
    /// # Errors
    /// As [`Service::silence`].
    pub async fn silenced(
        &self,
        stream: &str,
    ) -> Result<Vec<(String, Option<Millis>)>, DigestError> {
        let room_id = self.room_of(stream).await?;
        let now = clock::now();
        let silenced = self.book.read(move |ledger| ledger.silenced(&room_id, now));
        Ok(silenced.await?)
    }

    async fn room_of(&self, stream: &str) -> Result<String, DigestError> {
        let config = self.config.streams.get(stream);
        let config = config.ok_or(DigestError::NotFound)?;
        Ok(self.rooms.locate(&config.room).await?.room_id)
    }

    /// Ends a window of a room, once everything in it is here.
    async fn close_window(
        &self,
        room_id: &str,
        since: Option<Millis>,
    ) -> Result<Millis, DigestError> {
        let room_id = room_id.to_owned();
        let now = clock::now();
        let closed = self.book.write(move |ledger| {
            if ledger.gaps()?.iter().any(|gap| gap.room_id == room_id) {
                let why = "what was said while the bot was away is still being read";
                return Ok(Err(DigestError::NotCaughtUp(why.to_owned())));
            }
            if !ledger.ages_read(&room_id)? {
                let why = "since when the people of the room are known is still being read";
                return Ok(Err(DigestError::NotCaughtUp(why.to_owned())));
            }
            let until = ledger.stamp(now)?;
            Ok::<_, LedgerError>(match since {
                Some(since) if since > until => Err(DigestError::SinceAfterUntil { until }),
                _ => Ok(until),
            })
        });
        closed.await?
    }

    async fn talk(
        &self,
        room_id: &str,
        since: Option<Millis>,
        until: Millis,
        config: &StreamConfig,
    ) -> Result<Talk, DigestError> {
        let room_id = room_id.to_owned();
        // What is kept for longer, until it is swept away, is not read any more.
        let kept_since = until.saturating_sub(clock::millis(config.keep));
        let since = since.map_or(kept_since, |since| since.max(kept_since));
        let talk = self.book.read(move |ledger| {
            Ok::<_, LedgerError>(Talk {
                until,
                lines: ledger.lines(&room_id, Some(since), until)?,
                opted_out: ledger.opted_out()?,
                silenced: ledger
                    .silenced(&room_id, until)?
                    .into_iter()
                    .map(|(user_id, _)| user_id)
                    .collect(),
            })
        });
        Ok(talk.await?)
    }

    /// The digest of what was said, by whoever may be read.
    async fn made(
        &self,
        room_id: &str,
        names: &[&str],
        since: Option<Millis>,
        mut talk: Talk,
        config: &StreamConfig,
    ) -> Result<Digest, DigestError> {
        let rules = self.config.answers_for(room_id, names);
        let agents = self.never_read();
        let mut people = self.rooms.people(room_id, &config.policy_lists).await?;
        // Of a named bot nothing is kept; of one that was named since, nothing is told.
        people.retain(|person| !rules.is_bot(&person.user_id) && !agents.contains(&person.user_id));
        let accounts = match &self.accounts {
            Some(accounts) => {
                let lines = self.prepared(room_id, talk.lines).await?;
                Some(self.accounts_of(accounts, &people, &lines).await?)
            }
            None => None,
        };
        // Others were asked meanwhile. What was taken back by then, or is not to be read any more, is
        // unsent, and stays so (`digest.md` 12); the window has nothing new.
        talk = self.talk(room_id, since, talk.until, config).await?;
        let lines = self.prepared(room_id, talk.lines).await?;
        let people = self
            .introduced(people, accounts.as_ref(), &talk.opted_out, &talk.silenced)
            .await?;
        let settings = digest::Settings {
            agents,
            min_age: clock::millis(config.min_age),
        };
        let until = talk.until;
        let made = tokio::task::spawn_blocking(move || {
            let lines = lines.iter().filter_map(|(stored, prepared)| {
                let line = &stored.line;
                Some(digest::Line {
                    event_id: &line.event_id,
                    sender: &line.sender,
                    stamp: line.stamp,
                    sent_at: Some(line.sent_at),
                    prepared: prepared.as_ref()?,
                    replied_to: line.replied_to.as_deref(),
                    mentions: &line.mentions,
                    votes: &stored.votes,
                })
            });
            let window = digest::Window {
                since,
                until,
                people: &people,
                lines: lines.collect(),
            };
            digest::digest(&window, &settings)
        });
        made.await.map_err(|error| {
            // A panic in pure code is a bug; the log has it, and the caller may ask again.
            DigestError::NotCaughtUp(format!("the digest could not be made: {error}"))
        })
    }

    /// Who is in no digest whatever they say: the bot, and the agents.
    fn never_read(&self) -> Vec<String> {
        let agents = self.config.agents.values();
        let agents = agents.filter_map(|agent| agent.matrix_user.clone());
        let carriers = self.config.carriers.keys().cloned();
        agents
            .chain(carriers)
            .chain([self.rooms.bot().to_owned()])
            .collect()
    }

    /// The lines with what is prepared of them. What an older program prepared is prepared anew.
    async fn prepared(
        &self,
        room_id: &str,
        lines: Vec<StoredLine>,
    ) -> Result<Vec<(StoredLine, Option<Prepared>)>, DigestError> {
        let prefix = self.config.matrix.prefix.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut anew = Vec::new();
            let lines = lines.into_iter().map(|stored| {
                let text = &stored.line.text;
                let kept = text.prepared.as_deref();
                let kept = kept.map(serde_json::from_str::<Prepared>);
                let prepared = match kept {
                    None => None,
                    Some(Ok(prepared)) if prepared.is_current() => Some(prepared),
                    Some(_) => {
                        let prepared = prepare(&stored.line, &prefix);
                        anew.push((text.event_id.clone(), prepared.clone()));
                        prepared
                    }
                };
                (stored, prepared)
            });
            (lines.collect::<Vec<_>>(), anew)
        });
        let (lines, anew) = read
            .await
            .map_err(|error| DigestError::NotCaughtUp(error.to_string()))?;
        if !anew.is_empty() {
            let room_id = room_id.to_owned();
            let noted = self.book.write(move |ledger| {
                for (event_id, prepared) in &anew {
                    let (kept, key) = kept_form(prepared.as_ref())?;
                    ledger.set_prepared(&room_id, event_id, kept.as_deref(), key.as_deref())?;
                }
                Ok::<_, LedgerError>(())
            });
            noted.await?;
        }
        Ok(lines)
    }

    /// What the admin API says of the accounts of its server that a window is about.
    async fn accounts_of(
        &self,
        accounts: &Accounts,
        people: &[RoomPerson],
        lines: &[(StoredLine, Option<Prepared>)],
    ) -> Result<Accounted, DigestError> {
        let mut wanted: HashSet<&str> = HashSet::new();
        let mut named: HashSet<String> = HashSet::new();
        for (stored, prepared) in lines {
            wanted.insert(&stored.line.sender);
            wanted.extend(stored.votes.iter().map(String::as_str));
            wanted.extend(stored.line.mentions.iter().map(String::as_str));
            let names = prepared.iter().flat_map(Prepared::named_by);
            named.extend(names.map(str::to_lowercase));
        }
        // Who is only named is shown or not as they stand, too.
        let is_named = |user: &str| {
            let local = localpart_of(user).to_lowercase();
            let stem: String = local.chars().take(HANDLE_STEM).collect();
            named.iter().any(|name| name.starts_with(&stem))
        };
        // Nobody else is asked for: a name in a text may be anything.
        let server = server_of(self.rooms.bot());
        let asked: Vec<&str> = people
            .iter()
            .map(|person| person.user_id.as_str())
            .filter(|user| server_of(user) == server)
            .filter(|user| wanted.contains(user) || is_named(user))
            .collect();
        let known = accounts.of(&asked).await;
        let known = known.map_err(|untold| DigestError::NotCaughtUp(untold.to_string()))?;
        Ok(Accounted {
            asked: asked.into_iter().map(str::to_owned).collect(),
            known,
        })
    }

    /// The people of a room as a digest wants them: with their ages, handles and standing.
    async fn introduced(
        &self,
        people: Vec<RoomPerson>,
        accounts: Option<&Accounted>,
        opted_out: &BTreeSet<String>,
        silenced: &BTreeSet<String>,
    ) -> Result<Vec<Person>, DigestError> {
        let users: Vec<String> = people.iter().map(|person| person.user_id.clone()).collect();
        let asked = users.clone();
        let met = self.book.read(move |ledger| {
            let users: Vec<&str> = asked.iter().map(String::as_str).collect();
            ledger.met(&users)
        });
        let met: BTreeMap<String, Millis> = met.await?;
        let mut introduced: Vec<Person> = people
            .into_iter()
            .map(|person| {
                let user = person.user_id;
                let mut standing = person.standing;
                let mut first_seen = met.get(&user).copied();
                if let Some(accounts) = accounts.filter(|it| it.asked.contains(&user)) {
                    let account = accounts.known.get(&user);
                    first_seen = account.map(|account| account.created_at);
                    if account.is_some_and(|account| account.muted) {
                        standing = muted(standing);
                    }
                }
                if silenced.contains(&user) {
                    standing = muted(standing);
                }
                if opted_out.contains(&user) {
                    standing = Standing::OptedOut;
                }
                Person {
                    user,
                    display_name: person.display_name,
                    first_seen,
                    handle: String::new(),
                    standing,
                }
            })
            .collect();
        // Handles are given by age and then by id, those of unknown age last.
        introduced.sort_by(|one, other| {
            let age = |person: &Person| person.first_seen.unwrap_or(Millis::MAX);
            (age(one), &one.user).cmp(&(age(other), &other.user))
        });
        let users: Vec<String> = introduced
            .iter()
            .map(|person| person.user.clone())
            .collect();
        let handles = self.book.write(move |ledger| {
            ledger.give_handles(&users, &mut |user, taken| {
                digest::handle(user, |handle| taken(handle))
            })
        });
        let mut handles: BTreeMap<String, String> = handles.await?;
        for person in &mut introduced {
            person.handle = handles.remove(&person.user).unwrap_or_default();
        }
        Ok(introduced)
    }
}

/// What the admin API said.
struct Accounted {
    /// Who it was asked about.
    asked: HashSet<String>,
    /// What it knows of them.
    known: HashMap<String, Account>,
}

/// Muted, unless something worse is so.
fn muted(standing: Standing) -> Standing {
    match standing {
        Standing::In => Standing::Muted,
        standing => standing,
    }
}

fn localpart_of(user_id: &str) -> &str {
    let local = user_id.split_once(':').map_or(user_id, |(local, _)| local);
    local.strip_prefix('@').unwrap_or(local)
}

fn server_of(user_id: &str) -> &str {
    user_id.split_once(':').map_or("", |(_, server)| server)
}
