//! Everything that needs a real homeserver, in one binary so that all share one.

mod agent_refused;
mod agent_side;
mod among_bots;
mod board_double;
mod board_log;
mod boards;
mod carriers;
mod crashes;
mod deliveries;
mod demo;
mod encrypted_room;
mod endings;
mod faults;
mod hostile;
mod keys;
mod kills;
mod not_yet;
mod pains;
mod plain_room;
mod play;
mod poison;
mod relay;
mod sandbox;
mod scene;
#[path = "../scripted/mod.rs"]
mod scripted;
mod session;
mod sessions;
mod stage;
mod starting;
mod streams;
mod support;
mod talk;
mod upgrades;
mod who_answers;
