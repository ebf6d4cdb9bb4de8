//! The pure modules under test, compiled in by path: with the whole program and its homeserver
//! client instrumented, a build would take an hour and a run would be no better.

#![allow(dead_code, reason = "the targets use some of what the modules offer")]

/// What the modules know of the clock.
pub mod clock {
    /// Milliseconds since the epoch.
    pub type Millis = i64;
}

#[path = "../src/contract/mod.rs"]
pub mod contract;
#[path = "../src/reply/mod.rs"]
pub mod reply;

#[path = "checks/card.rs"]
pub mod card;
#[path = "checks/fallback.rs"]
pub mod fallback;
#[path = "checks/named.rs"]
mod named;
#[path = "checks/reply.rs"]
pub mod reading;
