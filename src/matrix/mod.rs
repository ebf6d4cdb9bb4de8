//! The Matrix side: one session, one listener (sync → inbox), one speaker (outbox → room).
//!
//! The listener runs one `sync` after the other and takes each response into the ledger, token
//! included, before it asks for the next. At start the SDK is given the ledger's token, so that
//! what was received but not committed comes again. The speaker sends what the ledger's outbox
//! holds, one row a room at a time, under transaction ids that never change.
//!
//! Invitations and room upgrades are followed by tasks of their own, and the rooms of streams are made
//! ready by another.
//!
//! A restart loses nothing: rows that may have been sent already are looked for in the room
//! before they are sent again.

mod ages;
mod board_rooms;
mod direct_rooms;
mod hear;
mod keys;
mod listen;
mod people;
mod rooms;
mod session;
mod speak;
mod upgrades;

pub(crate) use ages::prepare_streams;
pub use keys::SessionOver;
pub(crate) use keys::{recover, watch_keys, watch_session};
pub use listen::{ListenError, Listener};
pub use rooms::JoinedRooms;
pub(crate) use rooms::{accept_invites, follow_aliases};
pub use session::{SessionError, connect};
pub use speak::Speaker;
pub use upgrades::Upgrades;
