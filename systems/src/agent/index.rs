//! Agents by their ids and names.

use std::collections::BTreeSet;

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, World};
use bevy_ecs::world::DeferredWorld;

use agentsvc_components::AgentId;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::agent::{Agent, AgentState};

use crate::kernel::check::Faults;
use crate::kernel::index::Index;
use crate::kernel::outbox::Outbox;
use crate::kernel::record;

/// Registers the hooks that keep the index and write the tombstones.
pub(super) fn install(world: &mut World) {
    world.register_component_hooks::<AgentId>().on_insert(inserted).on_remove(removed);
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    if world.resource::<Index>().loading {
        return;
    }
    let Some(id) = world.get::<AgentId>(at.entity).copied() else { return };
    world.resource_mut::<Index>().agents.insert(id, at.entity);
}

fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<AgentId>(at.entity).copied() else { return };
    world.resource_mut::<Index>().agents.remove(id);
    world.resource_mut::<Outbox>().ops.push(record::remove::<AgentRecord>(id));
}

/// The live agent called `name`.
#[must_use]
pub fn agent_named(world: &World, name: &str) -> Option<Entity> {
    let index = world.resource::<Index>();
    index.names.find(index.keys().name(name), |e| world.get::<Agent>(e).is_some_and(|a| &*a.name == name))
}

/// Says where the index does not hold what a full scan finds.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut agents = world.query::<(Entity, &AgentId, &Agent)>();
    let world = &*world;
    let index = world.resource::<Index>();
    // Nobody finds one whose last turns end.
    let living: Vec<_> = agents.iter(world).filter(|(.., agent)| agent.state != AgentState::Terminated).collect();
    let scan: BTreeSet<(AgentId, Entity)> = living.iter().map(|(entity, id, _)| (**id, *entity)).collect();
    faults.same("agents", &index.agents.after(None).collect(), &scan);
    faults.same("agents counted", &index.agents.len(), &scan.len());
    faults.same("the first agent", &index.first_agent(), &scan.first().map(|(_, entity)| *entity));
    for (entity, _, agent) in living {
        let found = agent_named(world, &agent.name);
        faults.that(found == Some(entity), || format!("agent {:?}: its name maps to {found:?}", agent.name));
    }
    faults.same("names", &index.names.len(), &scan.len());
}
