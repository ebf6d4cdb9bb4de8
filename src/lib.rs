//! **matrix-elicit**: an agent asks, people in a Matrix room answer by typing, the agent gets the
//! answer. Exactly once, whatever crashes in between.
//!
//! ```text
//!  agents ── http ──┐                                    ┌── delivery ──▶ waiters, webhooks
//!                   ├──▶ desk ──▶ ledger ──▶ outbox ──▶ matrix ──▶ room
//!                   │     ▲         ▲                      │
//!                   └─────┴── reply ◀── inbox ◀────────────┘
//! ```
//!
//! Arrows between the modules point one way; `ARCHITECTURE.md` walks one question through them.
//!
//! | module | holds |
//! | --- | --- |
//! | [`contract`] | the wire: the card, its reader, its schema; what boards say |
//! | [`reply`] | how a typed reply becomes a choice. Pure |
//! | [`elicitation`] | what was asked, where it stands, what was answered |
//! | [`prose`] | every sentence a person reads in a room |
//! | [`desk`] | the decisions. Pure |
//! | [`digest`] | what a room said to an agent, in ten items. Pure |
//! | [`ledger`] | the durable record, and the only truth |
//! | [`service`] | what the program does for its users, one transaction a wish |
//! | [`matrix`] | the session, listening, speaking |
//! | [`delivery`] | outcomes on their way to agents |
//! | [`board`] | what we say to boards, and as whom |
//! | [`accounts`] | what the homeserver's admin API says of accounts |
//! | [`http`] | the agents' API |
//! | [`config`], [`secret`], [`span`], [`clock`], [`calls`], [`crash`] | the configuration and the small things everything uses |
//! | [`bot`] | everything wired together |
//! | [`sandbox`] | a throwaway homeserver, for the demo and the tests |
//! | [`cli`] | one file a command |

pub mod accounts;
pub mod board;
pub mod bot;
pub mod calls;
pub mod cli;
pub mod clock;
pub mod config;
pub mod contract;
pub mod crash;
pub mod delivery;
pub mod desk;
pub mod digest;
pub mod elicitation;
#[cfg(test)]
mod fuzzed;
pub mod http;
pub mod ledger;
pub mod matrix;
pub mod prose;
pub mod reply;
pub mod sandbox;
pub mod secret;
pub mod service;
pub mod session;
pub mod span;
