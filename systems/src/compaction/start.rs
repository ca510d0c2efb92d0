//! A compaction gets its slot: the summary is asked for.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::CompactionId;
use agentsvc_components::agent::Agent;
use agentsvc_components::compaction::call::SummaryCall;
use agentsvc_components::compaction::{Compaction, CompactionState};
use agentsvc_components::kernel::attempt::Attempt;

use crate::agent;
use crate::config::Settings;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;

/// The attempt of a compaction, for the outside.
pub(super) fn attempt_of(world: &World, entity: Entity) -> Option<Attempt> {
    let number = world.get::<Compaction>(entity)?.attempt;
    Some(Attempt::of(id_of::<CompactionId>(world, entity), number))
}

/// Sends the request for a summary out. `None` when `entity` is no compaction that waits for it. A stopped agent takes
/// no messages; what it was told before is summarised all the same.
pub(crate) fn call(world: &mut World, entity: Entity, calls_max: Option<u32>) -> Option<Attempt> {
    let mut job = world.get_mut::<Compaction>(entity)?;
    if job.state != CompactionState::Reserving {
        return None;
    }
    job.state = CompactionState::Calling;
    job.attempt += 1;
    let Compaction { agent, session, log, from, upto, .. } = *job;
    let attempt = attempt_of(world, entity)?;
    let owner = world.get::<Agent>(agent)?;
    let call = SummaryCall {
        attempt,
        agent: id_of(world, agent),
        holder: agent::holder_of(world, agent),
        agent_name: owner.name.clone(),
        session: id_of(world, session),
        log,
        from,
        upto,
        manifest: owner.manifest.clone(),
        model: world.resource::<Settings>().resolve(&owner.manifest.manifest.model),
        calls_max,
    };
    world.mark(entity);
    world.effect(call);
    Some(attempt)
}
