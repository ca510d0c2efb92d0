//! What a trigger takes in memory.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::trigger::{Filter, Fire, Trigger, TriggerState};

use crate::kernel::footprint::of;

/// Bytes of texts and boxes.
pub(super) fn heap(world: &World, entity: Entity) -> usize {
    let definition = of(world, entity, |it: &Trigger| {
        let filter = match &it.pattern.filter {
            Filter::Name(text) | Filter::CustomType(text) | Filter::Content(text) => text.len(),
            Filter::None | Filter::Assignee(_) => 0,
        };
        it.prompt_template.len() + filter
    });
    let log = of(world, entity, |it: &TriggerState| {
        it.0.as_ref().map_or(0, |log| size_of_val(&**log) + log.fires.capacity() * size_of::<Fire>())
    });
    definition + log
}
