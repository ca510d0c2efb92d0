//! The behaviour of agentsvc: everything that changes the world.
//!
//! This crate knows no network, no disk, no clock and no entropy: time ([`clock::Now`]), randomness
//! ([`id_generator::IdGenerator`]) and the order of arrivals come from outside, so that the same inputs give the same deltas.

pub mod a2a;
pub mod agent;
pub mod approval;
pub mod audit;
pub mod auto_dream;
pub mod browser;
pub mod budget;
pub mod channel;
pub mod comms;
pub mod compaction;
pub mod config;
pub mod delivery;
pub mod event;
pub mod goal;
pub mod hand;
pub mod history;
pub mod hook;
pub mod injection;
pub mod kernel;
pub mod knowledge;
pub mod manifest;
pub mod mcp;
pub mod media;
pub mod memory;
pub mod model;
pub mod pairing;
pub mod peer;
pub mod people;
pub mod plugin;
pub mod proactive_memory;
pub mod prompt;
pub mod query;
pub mod redact;
pub mod rehearsal;
pub mod replay;
pub mod schedule;
pub mod session;
pub mod sign_in;
pub mod skill;
pub mod skill_evolution;
pub mod taint;
pub mod task;
#[cfg(test)]
mod testing;
pub mod trigger;
pub mod turn;
pub mod usage;
pub mod wasm;
pub mod webhook;
pub mod widget;
pub mod workflow;
pub mod world;

pub use crate::config::Settings;
pub use crate::kernel::command::{Answer, Command, Place, ReplySlot, Room};
pub use crate::kernel::engine::{Commit, Engine, Release};
pub use crate::kernel::restore::{Chunks, ChunksIter, Records};

use agentsvc_components::kernel::record::Space;
use bevy_ecs::world::World;
use kernel::domain::{self, Domain};
use kernel::inputs::entry::{Entry, read_entry};
use kernel::inputs::wire::Malformed;
use kernel::record::{self, Error};
use kernel::timings::{self, Override};

/// All domains, from below: a domain uses those before it only.
///
/// The order is also that of effects. In one stage, `schedule` fires before `trigger` (what is due by time has its share
/// before events), and both before `workflow`. When an agent is removed, its sessions and turns have ended before any
/// reaction; then `usage`, `budget`, `approval`, `memory`, `knowledge` and `goal` let it go, and at last what fires turns.
pub const DOMAINS: &[Domain] = &[
    kernel::job::DOMAIN,
    rehearsal::DOMAIN,
    redact::DOMAIN,
    injection::DOMAIN,
    audit::DOMAIN,
    people::DOMAIN,
    config::DOMAIN,
    event::DOMAIN,
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
    knowledge::DOMAIN,
    proactive_memory::DOMAIN,
    goal::DOMAIN,
    prompt::DOMAIN,
    turn::DOMAIN,
    plugin::DOMAIN,
    schedule::DOMAIN,
    trigger::DOMAIN,
    task::DOMAIN,
    workflow::DOMAIN,
    hand::DOMAIN,
    webhook::DOMAIN,
    hook::DOMAIN,
    wasm::DOMAIN,
    browser::DOMAIN,
    comms::DOMAIN,
    peer::DOMAIN,
    mcp::DOMAIN,
    a2a::DOMAIN,
    channel::DOMAIN,
    delivery::DOMAIN,
    widget::DOMAIN,
    auto_dream::DOMAIN,
    media::DOMAIN,
    sign_in::DOMAIN,
    pairing::DOMAIN,
    skill::DOMAIN,
    skill_evolution::DOMAIN,
    history::DOMAIN,
    world::DOMAIN,
    query::DOMAIN,
    replay::DOMAIN,
];

/// Hands the list of domains to the kernel; once is enough. Whoever makes an engine, or reads what one has stored, comes
/// through here.
fn hand_over() {
    domain::hand_over(DOMAINS);
}

impl Engine {
    /// An empty world. `seed` is all the randomness it will ever have.
    #[must_use]
    pub fn new(settings: Settings, seed: [u8; 32]) -> Self {
        Self::with_systems(settings, seed, &mut timings::unchanged)
    }

    /// The same with the systems that `replace` chooses. For replays that ask what another system would do.
    #[must_use]
    pub fn with_systems(settings: Settings, seed: [u8; 32], replace: &mut Override<'_>) -> Self {
        hand_over();
        Self::build(|world: &mut World| world.insert_resource(settings), seed, replace)
    }
}

impl Records {
    /// Reads one row of the world space.
    ///
    /// # Errors
    /// [`Error`]: the row is of no known kind, of a newer release, or damaged.
    pub fn read(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        hand_over();
        record::read(self, key, value)
    }

    /// Can this row be read by this release?
    ///
    /// # Errors
    /// [`Error`] naming the key.
    pub fn check(space: Space, key: &[u8], value: &[u8]) -> Result<(), Error> {
        hand_over();
        match space {
            Space::World => record::read(&mut Self::only_checking(), key, value),
            Space::Content => record::check_content(key, value),
        }
    }
}

impl<'a> Entry<'a> {
    /// Reads an entry of the log.
    ///
    /// # Errors
    /// [`Malformed`]: it is not what was written, or a later release wrote it.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        hand_over();
        read_entry(bytes)
    }
}
