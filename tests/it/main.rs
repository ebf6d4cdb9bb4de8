//! Everything that needs a real homeserver, in one binary so that all share one.

mod demo;
mod sandbox;
mod support;
