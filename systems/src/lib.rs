//! The behaviour of agentsvc: everything that changes the world.
//!
//! This room knows no network, no disk, no clock and no entropy: time ([`clock::Now`]), randomness
//! ([`mint::Mint`]) and the order of arrivals come from outside, so that the same inputs give the same deltas.

pub mod agent;
pub mod alias;
pub mod approval;
pub mod audit;
mod automation;
pub mod budget;
pub mod check;
pub mod clock;
pub mod command;
pub mod compaction;
pub mod engine;
pub mod event;
pub mod footprint;
pub mod glob;
pub mod goal;
pub mod index;
pub mod injection;
mod interner;
pub mod laps;
pub mod manifest;
pub mod memory;
pub mod mint;
mod outbox;
mod persist;
pub mod prompt;
pub mod query;
pub mod record;
pub mod redact;
pub mod replay;
mod restore;
mod room;
pub mod schedule;
pub mod session;
pub mod settings;
pub mod stage;
pub mod stats;
pub mod stored;
pub mod taint;
pub mod task;
#[cfg(test)]
mod testing;
pub mod tool_result;
pub mod trigger;
pub mod turn;
pub mod usage;
pub mod watch;
pub mod workflow;

pub use command::{Answer, Command, ReplySlot};
pub use engine::{Commit, Engine, Release};
pub use restore::{Chunks, ChunksIter, Records};
pub use settings::Settings;
