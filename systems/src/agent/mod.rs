//! Agents. One file per command or group of commands that share their core.

pub mod audit_kinds;
mod by_name;
mod changes;
mod clone;
pub mod error_codes;
mod family;
mod import;
mod index;
pub mod limits;
mod list;
pub(crate) mod manifests;
mod metrics;
mod mode;
pub(crate) mod owner;
#[cfg(test)]
mod owner_tests;
mod owners;
mod population;
pub(crate) mod query;
#[cfg(test)]
mod reach_tests;
mod remove;
mod removing;
mod resolve;
pub(crate) mod rows;
pub(crate) mod session_table;
mod show;
mod spawn;
mod summaries;
mod update;

pub(crate) use crate::people::{family_of, holder_of};
pub(crate) use crate::people::{holder as acting_holder, limit as acting_limit, limit_of, reaches_of};
pub use by_name::{NameScan, NamedAgent, ScanNames};
pub use clone::CloneAgent;
pub(crate) use family::{Family, check, members};
pub use family::{KillDescendant, SpawnChild};
pub use import::{FindImported, ImportAgent, Imported};
pub use index::agent_named;
pub use list::{AgentFilter, AgentSummary, ListAgents};
pub use mode::{SetMode, StartAgents, StopAgents};
pub use owner::{OwnerChange, OwnsAgent, SetOwner};
pub(crate) use owner::{OwnerChanged, check_reach, check_shared, denied_tool, is_limited, reached};
pub(crate) use owners::{kin, own_agents};
pub use remove::RemoveAgents;
pub(crate) use remove::remove;
pub(crate) use removing::REMOVED;
pub use resolve::ResolveAgent;
pub use rows::SweptLog;
pub use show::{AgentView, FindAgent, FindSharedAgent, GetAgent};
pub use spawn::{SpawnAgent, SpawnAgents, Spawned};
pub(crate) use spawn::{check_together, spawn_all};
pub use summaries::SummariseAgents;
pub use update::{AgentPatch, UpdateAgent};
pub(crate) use update::{set_manifest, set_system_prompt};

pub(crate) use show::{is_shared, named, reached_as, shared_agent_named};

use bevy_ecs::prelude::{Entity, World};

use crate::event::Publishing;
use crate::event::told::inherits;
use crate::kernel::check::Faults;
use crate::kernel::domain::{Domain, Ends, Phase};
use crate::kernel::footprint::{Measure, of};
use crate::kernel::inputs::table::{CommandDef, OutcomeDef};
use crate::kernel::reaction::{on, rule};
use crate::kernel::record::{Kind, is_text};
use crate::manifest::ManifestWake;
use crate::people::UserGone;
use agentsvc_components::agent::Agent;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::agent::sweep::AgentSwept;
use agentsvc_components::kernel::record::Record;
use agentsvc_components::manifest::ManifestTrigger;
use agentsvc_components::{AgentId, Refusal};
use manifests::Manifests;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit", "config", "manifest", "people", "session", "taint", "usage", "event"],
    content: &[(b'x', is_text)],
    kinds: &[
        Kind::new(rows::MANIFESTS, rows::read_manifest),
        Kind::new(AgentRecord::KEY, rows::read).with_entities::<Agent>(rows::row),
        Kind::new(rows::SWEEPS, rows::read_sweep).not_compared(),
    ],
    restore: &[
        (Phase::Shared, rows::restore_manifests),
        (Phase::Owners, population::restore),
        (Phase::Owners, rows::restore_rest),
        (Phase::Joined, removing::hide),
    ],
    ends: &[Ends { waits: removing::has_work, go_on: removing::go_on }],
    has_work: removing::has_work,
    is_quiet: |world| removing::is_quiet(world),
    outcomes: &[OutcomeDef::of::<AgentSwept>()],
    rows: rows::manifests,
    measures: &[Measure::of::<AgentId>("agents", |world, at| of(world, at, |it: &Agent| it.name.len()), 24 + 12)],
    shared_footprint: manifests::footprint,
    install,
    check: check_all,
    commands: &[
        CommandDef::of::<CloneAgent>(),
        CommandDef::of::<ImportAgent>(),
        CommandDef::of::<KillDescendant>(),
        CommandDef::of::<RemoveAgents>(),
        CommandDef::of::<SetMode>(),
        CommandDef::of::<SetOwner>(),
        CommandDef::of::<SpawnAgent>(),
        CommandDef::of::<SpawnAgents>(),
        CommandDef::of::<SpawnChild>(),
        CommandDef::of::<StartAgents>(),
        CommandDef::of::<StopAgents>(),
        CommandDef::of::<UpdateAgent>(),
    ],
    limits: limits::ALL,
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    metrics: metrics::ALL,
    ..Domain::named("agent")
};

/// An agent is about to be spawned. Whoever cannot take it in refuses.
pub(crate) struct Spawning {
    /// The triggers of its manifest.
    pub(crate) triggers: Vec<ManifestTrigger>,
    /// The schedules of its manifest.
    pub(crate) wakes: Vec<ManifestWake>,
}

/// An agent is to belong to a user.
pub(crate) struct Owning {
    /// Which.
    pub(crate) agent: Entity,
}

/// An agent was spawned.
pub(crate) struct AgentSpawned {
    /// Which.
    pub(crate) agent: Entity,
    /// The triggers of its manifest.
    pub(crate) triggers: Vec<ManifestTrigger>,
    /// The schedules of its manifest.
    pub(crate) wakes: Vec<ManifestWake>,
}

/// An agent that ran was stopped.
pub(crate) struct AgentStopped {
    /// Which.
    pub(crate) agent: Entity,
}

/// An agent that was stopped runs again.
pub(crate) struct AgentStarted {
    /// Which.
    pub(crate) agent: Entity,
}

/// What became of one item of a bulk command.
pub type ItemResult<T> = (AgentId, Result<T, Refusal>);

/// Prepares a new world for agents.
fn install(world: &mut World) {
    // It would wake agents of others.
    rule(world, |world, _: &Publishing| check_shared(world, "events"));
    world.init_resource::<Manifests>();
    world.init_resource::<Family>();
    world.init_resource::<removing::Removals>();
    index::install(world);
    owners::install(world);
    import::install(world);
    on(world, |world, gone: &UserGone| mode::stop_agents_of(world, gone.0));
    inherits(world, |world, event, _, inherited| {
        let agent = event.agent().and_then(|agent| crate::kernel::index::agent(world, agent).ok());
        inherited.holder = agent.map(|agent| holder_of(world, agent)).or_else(|| acting_holder(world));
    });
}

/// Says where manifests and families are not counted right.
fn check_all(world: &mut World, faults: &mut Faults) {
    index::check(world, faults);
    owners::check(world, faults);
    import::check(world, faults);
    removing::check(world, faults);
    manifests::check(world, faults);
    check(world, faults);
}

#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod removing_tests;
#[cfg(test)]
mod tests;
