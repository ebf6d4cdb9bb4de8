//! The decisions: given the state and one input, what changes and what is to be sent.
//!
//! Pure: no clock, no I/O, no await. Time and identifiers come in as arguments.

mod ask;
mod board;
mod carried;
mod change;
mod command;
mod corrections;
mod hear;
mod judge;
mod rules;
mod session;
mod submit;
mod watch;

pub use ask::{Ask, Asker, Fault, is_user_id};
pub use board::{from_board, is_newer};
pub use carried::{Carried, from_carrier, gone, revised};
pub use change::{
    Change, EventDraft, SendDraft, SendKind, announcement, card, close, close_without_card,
    move_to, read_later, unreadable,
};
pub use command::{agents, command, obey};
pub use corrections::{answer_edited, answer_redacted};
pub use hear::{Chat, Heard, Said, Sender, Trust, What};
pub use judge::{Bot, Known, Manners, UNSEEN, judge, message_id, place, untrusted};
pub use rules::{Rules, may_answer};
pub use session::{
    ActivityRefusal, Beginning, Prompt, QuestionPlace, acted, begin, begun, deleted, prompt_of,
    prompted, said_to_session, session_due, session_moved, session_tick, stopped, untitled,
};
pub use submit::{handed_in, settled, wait_for_board, wait_is_over};
pub use watch::{Interest, Watch, possible_tags};
