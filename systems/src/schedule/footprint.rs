//! What a schedule or cron job takes in memory.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::schedule::Schedule;

use crate::kernel::footprint::of;

/// Bytes of texts and boxes.
pub(super) fn heap(world: &World, entity: Entity) -> usize {
    of(world, entity, |it: &Schedule| {
        let past = it.past.as_ref().map_or(0, |past| {
            size_of_val(&**past) + past.last_result.as_ref().map_or(0, |last| last.text.len()) + past.done.heap()
        });
        let wake = it.wake.as_ref().map_or(0, |wake| size_of_val(&**wake));
        it.name.as_ref().map_or(0, |name| name.len())
            + it.rule.len()
            + it.timezone.len()
            + it.prompt.len()
            + past
            + wake
    })
}
