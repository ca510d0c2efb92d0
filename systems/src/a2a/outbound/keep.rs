//! How long ended tasks are kept.

use bevy_ecs::prelude::World;

use agentsvc_components::Timestamp;
use agentsvc_components::a2a::outbound::{A2aSent, A2aSentId};

use super::index::SentTasks;
use crate::a2a::limits;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find};

/// Lets tasks go that have ended while there are more, or more bytes of them, than may be: of the holder that keeps most, the ones
/// that ended first.
pub(super) fn trim(world: &mut World) {
    loop {
        let tasks = world.resource::<SentTasks>();
        let next = if tasks.used.count > limits::A2A_SENT_MAX {
            tasks.kept.by_count().next()
        } else if tasks.used.bytes > limits::A2A_SENT_BYTES_MAX {
            tasks.kept.by_bytes().next()
        } else {
            return;
        };
        let Some(id) = next else { return };
        forget(world, id);
    }
}

fn forget(world: &mut World, id: A2aSentId) {
    if let Some(entity) = world.resource::<SentTasks>().get(id) {
        world.despawn(entity);
    }
}

/// When a task has been kept for long enough.
pub(in crate::a2a) fn next_due(world: &World) -> Option<Timestamp> {
    world.resource::<SentTasks>().ended().next().map(|(at, _)| at.plus_ms(limits::A2A_SENT_KEPT_MS))
}

/// Lets tasks go that have ended long ago; a bounded number.
// &mut World: tasks go through the hooks of their kind.
pub(in crate::a2a) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limits::A2A_TASKS_SWEPT_MAX {
        let old = world.resource::<SentTasks>().ended().next();
        match old.filter(|(at, _)| at.plus_ms(limits::A2A_SENT_KEPT_MS) <= now) {
            Some((_, id)) => forget(world, id),
            None => return,
        }
    }
}

/// The clock was set back: what ended in a time that it has left counts from now.
// &mut World: changes entities by their ids, through the hooks of their kind.
pub(in crate::a2a) fn clock_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let tasks = world.resource::<SentTasks>();
    let ahead: Vec<A2aSentId> = tasks.ended().rev().take_while(|(at, _)| *at > now).map(|(_, id)| id).collect();
    for id in ahead {
        let Ok(entity) = find::<A2aSent>(world, id) else { continue };
        change(world, entity, |task: &mut A2aSent| task.ended_at = task.ended_at.map(|at| at.min(now)));
    }
}
