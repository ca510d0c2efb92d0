//! The behaviour of agentsvc: everything that changes the world.
//!
//! This crate knows no network, no disk, no clock and no entropy: time ([`clock::Now`]), randomness
//! ([`mint::Mint`]) and the order of arrivals come from outside, so that the same inputs give the same deltas.

pub mod agent;
pub mod approval;
pub mod audit;
pub mod budget;
pub mod compaction;
pub mod config;
pub mod event;
pub mod goal;
pub mod injection;
pub mod kernel;
pub mod manifest;
pub mod memory;
pub mod model;
pub mod prompt;
pub mod query;
pub mod redact;
pub mod rehearsal;
pub mod replay;
pub mod schedule;
pub mod session;
pub mod taint;
pub mod task;
#[cfg(test)]
mod testing;
pub mod trigger;
pub mod turn;
pub mod usage;
pub mod workflow;
pub mod world;

pub use crate::config::Settings;
pub use crate::kernel::command::{Answer, Command, ReplySlot};
pub use crate::kernel::engine::{Commit, Engine, Release};
pub use crate::kernel::restore::{Chunks, ChunksIter, Records};

use kernel::domain::Domain;

/// All domains, from below: a domain uses those before it only.
///
/// The order is also that of effects. In one stage, `schedule` fires before `trigger` (what is due by time has its share
/// before events), and both before `workflow`. When an agent is removed, its sessions and turns have ended before any
/// reaction; then `usage`, `budget`, `approval`, `memory` and `goal` let it go, and at last what fires turns.
pub const DOMAINS: &[Domain] = &[
    rehearsal::DOMAIN,
    redact::DOMAIN,
    injection::DOMAIN,
    audit::DOMAIN,
    config::DOMAIN,
    event::DOMAIN,
    prompt::DOMAIN,
    model::DOMAIN,
    manifest::DOMAIN,
    taint::DOMAIN,
    usage::DOMAIN,
    session::DOMAIN,
    agent::DOMAIN,
    budget::DOMAIN,
    approval::DOMAIN,
    compaction::DOMAIN,
    memory::DOMAIN,
    goal::DOMAIN,
    turn::DOMAIN,
    schedule::DOMAIN,
    trigger::DOMAIN,
    task::DOMAIN,
    workflow::DOMAIN,
    world::DOMAIN,
    query::DOMAIN,
    replay::DOMAIN,
];
