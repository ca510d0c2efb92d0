//! Agents. One file per command or group of commands that share their core.

mod by_name;
mod changes;
mod clone;
mod family;
pub(crate) mod fast_decode;
mod import;
mod list;
pub(crate) mod manifests;
mod mode;
pub(crate) mod query;
mod remove;
mod resolve;
pub(crate) mod rows;
mod show;
mod spawn;
mod summaries;
mod update;

pub use by_name::{NameScan, NamedAgent, ScanNames};
pub use clone::CloneAgent;
pub(crate) use family::{Family, check};
pub use family::{KillDescendant, SpawnChild};
pub use import::{FindImported, ImportAgent, Imported};
pub use list::{AgentFilter, AgentPage, AgentSummary, ListAgents};
pub use mode::{SetMode, StartAgents, StopAgents};
pub use remove::RemoveAgents;
pub use resolve::ResolveAgent;
pub use show::{AgentView, FindAgent, GetAgent};
pub use spawn::{SpawnAgent, SpawnAgents, Spawned};
pub use summaries::SummariseAgents;
pub use update::{AgentPatch, UpdateAgent};

pub(crate) use show::named;

use bevy_ecs::prelude::World;

use crate::kernel::check::Faults;
use crate::kernel::domain::Domain;
use crate::kernel::domain::Phase;
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::record::Kind;
use crate::kernel::record::is_text;
use agentsvc_components::agent::Agent;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::kernel::record::Record;
use agentsvc_components::{AgentId, Refusal};
use manifests::Manifests;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &[],
    content: &[(b'x', is_text)],
    kinds: &[
        Kind::new(rows::MANIFESTS, rows::read_manifest),
        Kind::new(AgentRecord::KEY, rows::read).with_entities::<Agent>(rows::row),
        Kind::new(rows::SWEEPS, rows::read_sweep).not_compared(),
    ],
    restore: &[
        (Phase::Shared, rows::restore_manifests),
        (Phase::Owners, crate::session::population::restore),
        (Phase::Owners, rows::restore_rest),
    ],
    rows: rows::manifests,
    install,
    check: check_all,
    commands: &[
        CommandDef::of::<CloneAgent>(),
        CommandDef::of::<ImportAgent>(),
        CommandDef::of::<KillDescendant>(),
        CommandDef::of::<RemoveAgents>(),
        CommandDef::of::<SetMode>(),
        CommandDef::of::<SpawnAgent>(),
        CommandDef::of::<SpawnAgents>(),
        CommandDef::of::<SpawnChild>(),
        CommandDef::of::<StartAgents>(),
        CommandDef::of::<StopAgents>(),
        CommandDef::of::<UpdateAgent>(),
    ],
    ..Domain::named("agent")
};

/// What became of one item of a bulk command.
pub type ItemResult<T> = (AgentId, Result<T, Refusal>);

/// Prepares a new world for agents.
fn install(world: &mut World) {
    world.init_resource::<Manifests>();
    world.init_resource::<Family>();
}

/// Says where manifests and families are not counted right.
fn check_all(world: &mut World, faults: &mut Faults) {
    manifests::check(world, faults);
    check(world, faults);
}

#[cfg(test)]
mod tests;
