//! Dirty entities become records, once per step.

use std::sync::LazyLock;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::kernel::record::Op;

use super::outbox::Outbox;
use super::record::{Entities, Kind};

/// The kinds that entities have rows of.
fn kinds() -> impl Iterator<Item = &'static Entities> {
    static KINDS: LazyLock<Vec<&Entities>> = LazyLock::new(|| {
        let kinds = crate::kernel::domain::all().iter().flat_map(|domain| domain.kinds);
        kinds.filter_map(|kind: &Kind| kind.entities.as_ref()).collect()
    });
    KINDS.iter().copied()
}

/// Writes the record of every dirty entity that still lives. Tombstones of the others are there already: the
/// remove hooks wrote them.
// &mut World: reads the components of any kind that is stored.
pub(crate) fn record_dirty(world: &mut World) {
    let dirty = world.resource_mut::<Outbox>().take_dirty();
    if dirty.is_empty() {
        return;
    }
    let row = |entity: Entity| {
        let mut own = kinds().filter(|kind| !(kind.is_elsewhere)(world, entity));
        own.find_map(|kind| (kind.row)(world, entity))
    };
    let ops: Vec<Op> = dirty.into_iter().filter_map(row).collect();
    world.resource_mut::<Outbox>().ops.extend(ops);
}

/// The entities that changed in this step.
#[cfg(test)]
pub(crate) fn changed(world: &mut World) -> Vec<Entity> {
    kinds().flat_map(|kind| (kind.changed)(world)).collect()
}

/// What the records of these entities must be once the step is stored, whatever other rows they stand in.
#[cfg(test)]
pub(crate) fn expected(world: &World, entities: &[Entity]) -> Vec<Op> {
    entities.iter().filter_map(|entity| kinds().find_map(|kind| (kind.row)(world, *entity))).collect()
}
