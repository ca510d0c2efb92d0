//! Open turns by their ids and agents.

use std::collections::BTreeSet;

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, World};
use bevy_ecs::world::DeferredWorld;

use agentsvc_components::TurnId;
use agentsvc_components::turn::Turn;
use agentsvc_components::turn::record::TurnRecord;

use super::share::OpenTurns;
use crate::kernel::check::Faults;
use crate::kernel::index::Index;
use crate::kernel::outbox::Outbox;
use crate::kernel::record;

/// Registers the hooks that keep the index and write the tombstones.
pub(super) fn install(world: &mut World) {
    world.init_resource::<OpenTurns>();
    world.register_component_hooks::<TurnId>().on_insert(inserted).on_remove(removed);
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<TurnId>(at.entity).copied() else { return };
    let holder = world.get::<Turn>(at.entity).map(|turn| turn.holder);
    world.resource_mut::<Index>().turns.insert(id, at.entity);
    world.resource_mut::<OpenTurns>().0.add(holder, 1, 0);
}

fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<TurnId>(at.entity).copied() else { return };
    let holder = world.get::<Turn>(at.entity).map(|turn| turn.holder);
    world.resource_mut::<Index>().turns.remove(&id);
    world.resource_mut::<OpenTurns>().0.remove(holder, 1, 0);
    world.resource_mut::<Outbox>().ops.push(record::remove::<TurnRecord>(id));
}

/// Says where the index does not hold what a full scan finds.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut turns = world.query::<(Entity, &TurnId, &Turn)>();
    let world = &*world;
    let index = world.resource::<Index>();
    let scan: BTreeSet<(TurnId, Entity)> = turns.iter(world).map(|(entity, id, _)| (*id, entity)).collect();
    faults.same("turns", &index.turns.iter().map(|(id, entity)| (*id, *entity)).collect(), &scan);
    let scan = turns.iter(world).map(|(entity, _, turn)| (turn.agent, entity)).collect();
    faults.same("turns by agent", &index.turns_by_agent, &scan);
}
