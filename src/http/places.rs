//! How many connections there are places for, and who gives theirs up when all are taken.
//!
//! A connection is *idle* when no request is in hand: before its first, and between two. A new
//! connection that finds no place takes that of the one that has been idle the longest, so that
//! whoever connects and says nothing keeps nobody out. Long polls and event streams are never
//! idle; there are fewer places for them than there are for connections (see [`Limits`]), so that
//! somebody who only wants a quick answer always gets through.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The time for the header of a request, counted from the end of the one before.
const HEADER: Duration = Duration::from_secs(30);
/// What is held besides connections: the stores, the sync, webhooks, the log.
const OTHER_FILES: u64 = 160;
/// More connections than this are not held however many files there may be: each takes memory.
const MOST_CONNECTIONS: u64 = 65_536;
/// More files than this are not asked for.
const MOST_FILES: u64 = MOST_CONNECTIONS + 4 * OTHER_FILES;

/// What callers may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// The time for the header of a request, counted from the end of the one before.
    pub header: Duration,
    /// Connections held at the same time.
    pub connections: usize,
    /// Long polls and event streams at the same time.
    pub waiters: usize,
}

impl Limits {
    /// As much as this process may have files open, after raising that to what the system allows.
    pub fn of_this_process() -> Self {
        let files = rlimit::increase_nofile_limit(MOST_FILES).unwrap_or_else(|error| {
            tracing::warn!("how many files may be open cannot be told: {error}");
            // What every system allows.
            256
        });
        Self::within(files)
    }

    /// As much as fits into this many open files.
    fn within(files: u64) -> Self {
        // With very few files, half of them: there is no right division.
        let connections = files
            .saturating_sub(OTHER_FILES)
            .max(files / 2)
            .min(MOST_CONNECTIONS);
        let kept_free = (connections / 8).clamp(1, 256);
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
        Self {
            header: HEADER,
            connections: count(connections),
            waiters: count(connections - kept_free.min(connections)),
        }
    }
}

/// The places of all connections; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    idle: Arc<Mutex<Idle>>,
}

/// Who is idle, in the order in which they became so, and how they are told to go.
#[derive(Debug, Default)]
struct Idle {
    next: u64,
    waiting: BTreeMap<u64, Arc<Notify>>,
    /// Somebody needs a place: the next to become idle goes.
    wanted: bool,
}

impl Idle {
    /// Sends the one away that has been idle the longest; `false` if nobody is.
    fn send_one_away(&mut self) -> bool {
        let oldest = self.waiting.pop_first();
        oldest.is_some_and(|(_, tell)| {
            tell.notify_one();
            true
        })
    }
}

/// One connection's place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    idle: Arc<Mutex<Idle>>,
    /// Its number among the idle.
    number: Mutex<Option<u64>>,
    told: Arc<Notify>,
    /// None only when the process is about to end.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub fn new(connections: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(connections)),
            idle: Arc::default(),
        }
    }

    /// A place: a free one, else that of whoever has been idle the longest, else, when all are
    /// busy, that of the first to become idle or to go.
    pub async fn take(&self) -> Place {
        if self.free.available_permits() == 0 {
            self.make_room();
        }
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        locked(&self.idle).wanted = false;
        Place {
            idle: Arc::clone(&self.idle),
            number: Mutex::default(),
            told: Arc::default(),
            _permit: permit,
        }
    }

    /// Sends the connection away that has been idle the longest, or the next to become so.
    pub fn make_room(&self) {
        let mut idle = locked(&self.idle);
        idle.wanted = !idle.send_one_away();
    }
}

impl Place {
    /// The connection has no request in hand from now on.
    pub fn idle(&self) {
        let mut idle = locked(&self.idle);
        let number = idle.next;
        idle.next += 1;
        idle.waiting.insert(number, Arc::clone(&self.told));
        *locked(&self.number) = Some(number);
        if idle.wanted {
            idle.wanted = !idle.send_one_away();
        }
    }

    /// It has one. `false` if it was sent away at the same moment.
    pub fn busy(&self) -> bool {
        let mut idle = locked(&self.idle);
        let number = locked(&self.number).take();
        number.is_none_or(|number| idle.waiting.remove(&number).is_some())
    }

    /// Returns when the connection is to go, which it never is while it is busy.
    pub async fn sent_away(&self) {
        self.told.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.busy();
    }
}

/// Each change is one call: a poisoned lock guards something whole.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_files_allow_and_some_are_kept_from_waiters() {
        let places = |files| {
            let limits = Limits::within(files);
            (limits.connections, limits.waiters)
        };
        assert_eq!(places(0), (1, 1));
        assert_eq!(places(64), (32, 28));
        assert_eq!(places(256), (128, 112));
        assert_eq!(places(1024), (864, 756));
        assert_eq!(places(20_000), (19_840, 19_584));
        assert_eq!(places(u64::MAX), (65_536, 65_280));
    }

    /// Whether a connection has been told to go.
    fn gone(place: &Place) -> bool {
        let mut told = std::pin::pin!(place.sent_away());
        futures_util::FutureExt::now_or_never(told.as_mut()).is_some()
    }

    #[tokio::test]
    async fn the_longest_idle_gives_up_its_place() {
        let places = Places::new(3);
        let (first, second, third) = (
            places.take().await,
            places.take().await,
            places.take().await,
        );
        first.idle();
        second.idle();
        third.idle();
        assert!(first.busy());
        let next = places.take();
        let mut next = std::pin::pin!(next);
        let early = futures_util::FutureExt::now_or_never(next.as_mut());
        assert!(early.is_none());
        assert_eq!(
            [gone(&first), gone(&second), gone(&third)],
            [false, true, false]
        );
        // A request that came at that moment is not taken up.
        assert!(!second.busy());
        drop(second);
        next.await.idle();
    }

    #[tokio::test]
    async fn where_all_are_busy_the_first_to_become_idle_goes() {
        let places = Places::new(2);
        let (first, second) = (places.take().await, places.take().await);
        let mut next = std::pin::pin!(places.take());
        assert!(futures_util::FutureExt::now_or_never(next.as_mut()).is_none());
        second.idle();
        assert_eq!([gone(&first), gone(&second)], [false, true]);
        drop(second);
        let third = next.await;
        // Nobody needs a place any more.
        third.idle();
        first.idle();
        assert_eq!([gone(&first), gone(&third)], [false, false]);
    }

    #[tokio::test]
    async fn who_hung_up_is_not_asked_to_go() {
        let places = Places::new(2);
        let (first, second) = (places.take().await, places.take().await);
        first.idle();
        second.idle();
        drop(first);
        let _third = places.take().await;
        places.make_room();
        assert!(gone(&second));
    }
}
