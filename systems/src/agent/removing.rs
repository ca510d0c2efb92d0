//! Agents that are gone and whose turns still end: so many in each step, however many there are, so that no agent holds up the
//! others when it goes.
//!
//! Nobody finds such an agent any more, its name is free and nothing new begins in it. Its record says `Terminated` until the
//! last of its turns has ended, so that a start goes on with it.

use std::collections::{BTreeSet, VecDeque};

use agentsvc_components::AgentId;
use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_components::agent::{Agent, AgentState, ImportedFrom};
use bevy_ecs::prelude::{Entity, Resource, World};

use super::manifests as interner;
use crate::kernel::check::Faults;
use crate::kernel::fires::{Fires, ends_at_once};
use crate::kernel::index::{Index, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::{Removed, react};
use crate::kernel::record::{self, Error};
use crate::kernel::restore::Records;
use crate::session;

/// Why their turns end, for people.
pub(crate) const REMOVED: &str = "the agent was removed";

/// Those agents, the first to go first. Each has a record that says so.
#[derive(Resource, Default)]
pub(super) struct Removals(VecDeque<Entity>);

/// Can all turns and sessions of an agent end in this step? Then they are counted in it. The session that every agent has is free.
pub(super) fn fits(world: &mut World, agent: Entity) -> bool {
    let (left, index) = (ends_at_once(world), world.resource::<Index>());
    let sessions = index.sessions_of(agent, None).chain(index.hidden_of(agent)).take(left + 2).count();
    let work = index.turns_of(agent).take(left + 1).count() + sessions.saturating_sub(1);
    if work <= left {
        world.resource_mut::<Fires>().end(work);
    }
    work <= left
}

/// Stops an agent for good: its turns end in this step and those that follow.
pub(super) fn begin(world: &mut World, entity: Entity) {
    world.entity_mut(entity).remove::<ImportedFrom>();
    if let Some(mut agent) = world.get_mut::<Agent>(entity) {
        agent.state = AgentState::Terminated;
    }
    world.mark(entity);
    world.resource_mut::<Removals>().0.push_back(entity);
}

/// Takes such an agent out of its family and from its user, once all who count what those have heard that it goes. Nobody finds it
/// any more.
pub(super) fn hide_one(world: &mut World, entity: Entity, id: AgentId) {
    session::leave_kin(world, entity);
    world.mark(entity);
    world.resource_mut::<Index>().agents.remove(id);
}

/// Ends turns of agents that are gone, as many as a step may.
// &mut World: turns and sessions end with all that reacts to it.
pub(super) fn go_on(world: &mut World) {
    while let Some(entity) = next(world) {
        let left = world.resource::<Fires>().ends();
        let (ended, is_done) = session::remove_some(world, entity, REMOVED, left);
        world.resource_mut::<Fires>().end(ended);
        if is_done {
            world.resource_mut::<Removals>().0.pop_front();
            end(world, entity);
        }
    }
}

fn next(world: &World) -> Option<Entity> {
    world.resource::<Removals>().0.front().copied().filter(|_| has_work(world))
}

/// Would a further round of this step end any?
pub(super) fn has_work(world: &World) -> bool {
    !world.resource::<Removals>().0.is_empty() && world.resource::<Fires>().ends() > 0
}

/// Have all gone?
pub(super) fn is_quiet(world: &World) -> bool {
    world.resource::<Removals>().0.is_empty()
}

/// An agent without turns leaves the world.
pub(super) fn end(world: &mut World, entity: Entity) {
    session::remove_all(world, entity, REMOVED);
    let (id, manifest) = (id_of::<AgentId>(world, entity), world.get::<Agent>(entity).map(|it| it.manifest.hash));
    world.despawn(entity);
    // Its traces and memory go at leisure; the record goes when they are gone.
    world.op(record::put_agent_sweep(id));
    world.effect(SweepAgent(id));
    if let Some(manifest) = manifest {
        interner::release(world, manifest);
    }
}

/// Goes on with those that a start found. Their sessions and turns are still to find them; their names are free.
pub(super) fn restore(world: &mut World, gone: Vec<Entity>) {
    for entity in &gone {
        if let Some(name) = world.get::<Agent>(*entity).map(|agent| agent.name.clone()) {
            world.resource_mut::<Index>().remove_name(&name, *entity);
        }
    }
    world.resource_mut::<Removals>().0 = gone.into();
}

/// Once all turns are back, nobody finds those agents any more.
pub(super) fn hide(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let gone: Vec<(AgentId, Entity)> =
        world.resource::<Removals>().0.iter().map(|entity| (id_of(world, *entity), *entity)).collect();
    for (id, entity) in gone {
        // What was out of theirs when the daemon ended counted at them until here.
        react(world, &Removed { entity, id });
        world.resource_mut::<Index>().agents.remove(id);
    }
    Ok(())
}

/// Says who should go and does not.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut agents = world.query::<(Entity, &Agent)>();
    let gone = agents.iter(world).filter(|(_, agent)| agent.state == AgentState::Terminated);
    let gone: BTreeSet<Entity> = gone.map(|(entity, _)| entity).collect();
    faults.same("agents that are being removed", &world.resource::<Removals>().0.iter().copied().collect(), &gone);
}
