//! A session: the work of one agent in one thread of a room, and what was said in it.
//!
//! Its status follows the latest activity: a thought, an action or a person's prompt makes it
//! `active`, an elicitation `awaitingInput`, a response `complete`, an error `error`. A person's stop
//! makes it `stopping` until the agent says its last word, or is silent for too long. Only a session
//! that was stopped, undelegated or deleted is over for good.

mod model;
mod object;

pub use model::{Activity, Author, Connecting, EndReason, Session, Status};

pub use crate::contract::signals::{ActivityType, Signal};
pub use object::{activity, event, object};
