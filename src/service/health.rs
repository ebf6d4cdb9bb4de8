//! Whether the bot can hear and can speak, and nothing else: one dead webhook or one patient
//! person makes nobody unready.

use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use crate::clock::{self, Millis};

/// A sync older than this means that the bot hears nothing: the long poll takes 30 s.
pub const SYNC_DEADLINE: Duration = Duration::from_secs(90);
/// By then a long poll has come back, unless it is lost: what is said meanwhile is not heard.
pub const HEARD_WITHIN: Duration = Duration::from_secs(45);
/// A message that could not be sent for this long means that the bot cannot speak.
pub const SEND_DEADLINE: Millis = 120_000;

/// No time: it has not happened.
const NEVER: Millis = i64::MIN;

/// The vital signs of the process.
#[derive(Debug)]
pub struct Health {
    synced_at: AtomicI64,
    heard_until: AtomicI64,
    stuck_since: AtomicI64,
    /// Whether the last try to sync failed.
    deaf: AtomicBool,
    hopeless: RwLock<Option<String>>,
}

/// Whether the bot can hear and speak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// Whether it can.
    pub ready: bool,
    /// Why not, in plain words.
    pub reasons: Vec<String>,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// The health of a process that has just started.
    pub fn new() -> Self {
        Self {
            synced_at: AtomicI64::new(NEVER),
            heard_until: AtomicI64::new(NEVER),
            stuck_since: AtomicI64::new(NEVER),
            deaf: AtomicBool::new(false),
            hopeless: RwLock::new(None),
        }
    }

    /// Notes a sync that was committed.
    pub fn synced(&self, now: Millis) {
        self.synced_at.store(now, Ordering::Relaxed);
        self.deaf.store(false, Ordering::Relaxed);
    }

    /// Notes that a sync failed: what is said from now on is not heard until one succeeds.
    pub fn sync_failed(&self) {
        self.deaf.store(true, Ordering::Relaxed);
    }

    /// Why what was said in the rooms until `now` may not be here, if that is so. Stricter than
    /// [`Health::readiness`]: whoever is told that nobody said anything will not ask again.
    pub fn behind(&self, now: Millis) -> Option<String> {
        let heard_within = clock::millis(clock::patience(HEARD_WITHIN));
        let hopeless = self
            .hopeless
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(why) = hopeless.as_ref() {
            return Some(why.clone());
        }
        match self.synced_at() {
            None => Some("no sync with the homeserver yet".to_owned()),
            Some(_) if self.deaf.load(Ordering::Relaxed) => {
                Some("the homeserver does not answer".to_owned())
            }
            Some(at) if now.saturating_sub(at) > heard_within => {
                let seconds = now.saturating_sub(at) / 1000;
                Some(format!("no sync with the homeserver for {seconds} s"))
            }
            Some(_) => None,
        }
    }

    /// Notes that everything is heard that the homeserver had at this moment.
    pub fn heard_until(&self, at: Millis) {
        self.heard_until.store(at, Ordering::Relaxed);
    }

    /// Up to when everything is heard.
    pub fn all_heard_until(&self) -> Option<Millis> {
        Some(self.heard_until.load(Ordering::Relaxed)).filter(|&at| at != NEVER)
    }

    /// When the last sync was committed.
    pub fn synced_at(&self) -> Option<Millis> {
        Some(self.synced_at.load(Ordering::Relaxed)).filter(|&at| at != NEVER)
    }

    /// Notes since when the oldest unsent message fails; `None` when none does.
    pub fn stuck(&self, since: Option<Millis>) {
        self.stuck_since
            .store(since.unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// Notes that this process cannot recover by itself.
    pub fn give_up(&self, why: &str) {
        *self
            .hopeless
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(why.to_owned());
    }

    /// Whether the bot can hear and speak at `now`.
    pub fn readiness(&self, now: Millis) -> Readiness {
        let mut reasons = Vec::new();
        match self.synced_at() {
            None => reasons.push("no sync with the homeserver yet".to_owned()),
            Some(at) if now.saturating_sub(at) > clock::millis(clock::patience(SYNC_DEADLINE)) => {
                let seconds = now.saturating_sub(at) / 1000;
                reasons.push(format!("no sync with the homeserver for {seconds} s"));
            }
            Some(_) => {}
        }
        let stuck = self.stuck_since.load(Ordering::Relaxed);
        if stuck != NEVER && now.saturating_sub(stuck) > SEND_DEADLINE {
            let seconds = now.saturating_sub(stuck) / 1000;
            reasons.push(format!("a message could not be sent for {seconds} s"));
        }
        let hopeless = self
            .hopeless
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        reasons.extend(hopeless.clone());
        Readiness {
            ready: reasons.is_empty(),
            reasons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pain: hang.
    #[test]
    fn it_is_ready_from_the_first_sync_until_the_deadline() {
        let health = Health::new();
        assert_eq!(
            health.readiness(1).reasons,
            ["no sync with the homeserver yet"]
        );
        health.synced(10);
        let deadline = clock::millis(SYNC_DEADLINE);
        assert!(health.readiness(10 + deadline).ready);
        assert_eq!(
            health.readiness(11 + deadline).reasons,
            ["no sync with the homeserver for 90 s"]
        );
    }

    #[test]
    fn it_is_behind_until_the_first_sync_when_one_fails_and_when_one_does_not_come_back() {
        let health = Health::new();
        let behind = |now| health.behind(now);
        assert_eq!(behind(1).unwrap(), "no sync with the homeserver yet");
        health.synced(0);
        let within = clock::millis(HEARD_WITHIN);
        assert_eq!(behind(within), None);
        assert_eq!(
            behind(within + 1).unwrap(),
            "no sync with the homeserver for 45 s"
        );
        health.synced(within);
        assert_eq!(behind(within + 1), None);
        health.sync_failed();
        assert_eq!(
            behind(within + 1).unwrap(),
            "the homeserver does not answer"
        );
        health.synced(within + 2);
        assert_eq!(behind(within + 2), None);
        health.give_up("the access token is no longer valid");
        assert_eq!(
            behind(within + 2).unwrap(),
            "the access token is no longer valid"
        );
    }

    #[test]
    fn a_stuck_message_makes_it_unready_until_it_is_sent() {
        let health = Health::new();
        health.synced(SEND_DEADLINE);
        health.stuck(Some(0));
        assert!(health.readiness(SEND_DEADLINE).ready);
        assert_eq!(
            health.readiness(SEND_DEADLINE + 1).reasons,
            ["a message could not be sent for 120 s"]
        );
        health.stuck(None);
        assert!(health.readiness(SEND_DEADLINE + 1).ready);
    }

    /// Pain: deaf.
    #[test]
    fn a_hopeless_process_says_why() {
        let health = Health::new();
        health.synced(0);
        health.give_up("the access token is no longer valid");
        assert_eq!(
            health.readiness(1).reasons,
            ["the access token is no longer valid"]
        );
    }
}
