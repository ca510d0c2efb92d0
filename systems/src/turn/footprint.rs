//! What a turn takes in memory.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::turn::{PendingTool, Turn};

use crate::kernel::footprint::of;

/// Bytes of texts and boxes.
pub(super) fn heap(world: &World, entity: Entity) -> usize {
    of(world, entity, |it: &Turn| {
        let call = |input: usize| size_of::<PendingTool>() + input;
        let pending: usize = it.pending.iter().map(|tool| call(tool.call.input.len())).sum();
        let journal = it.journal.as_ref().map_or(0, |journal| {
            let texts: usize = journal.notices.iter().map(|text| text.len() + 16).sum();
            size_of_val(&**journal)
                + size_of_val(&*journal.steps)
                + size_of_val(&*journal.guard)
                + journal.said.len()
                + texts
        });
        let request = it
            .request
            .as_ref()
            .map_or(0, |request| size_of_val(&**request) + request.system.as_ref().map_or(0, String::len));
        pending + journal + request + it.link.as_ref().map_or(0, |link| size_of_val(&**link))
    })
}
