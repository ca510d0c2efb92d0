//! How long ended media tasks are kept.

use agentsvc_components::Timestamp;
use agentsvc_components::media::{MediaTask, MediaTaskId};
use bevy_ecs::prelude::World;

use super::index::MediaTasks;
use super::limits;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find};
use crate::kernel::record::Error;
use crate::kernel::restore::Records;

/// Lets the tasks that ended first go while there are more, or more bytes of them, than may be.
pub(super) fn trim(world: &mut World) {
    loop {
        let tasks = world.resource::<MediaTasks>();
        let is_over = tasks.used.count > limits::MEDIA_TASKS_MAX || tasks.used.bytes > limits::MEDIA_TASKS_BYTES_MAX;
        let Some((_, id)) = tasks.ended().next().filter(|_| is_over) else { return };
        forget(world, id);
    }
}

pub(super) fn forget(world: &mut World, id: MediaTaskId) {
    if let Some(entity) = world.resource::<MediaTasks>().get(id) {
        world.despawn(entity);
    }
}

/// When a task has been kept for long enough.
pub(super) fn next_due(world: &World) -> Option<Timestamp> {
    world.resource::<MediaTasks>().ended().next().map(|(at, _)| at.plus_ms(limits::MEDIA_KEPT_MS))
}

/// Lets tasks go that have ended long ago; a bounded number.
// &mut World: tasks go through the hooks of their kind.
pub(super) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limits::MEDIA_SWEPT_MAX {
        let old = world.resource::<MediaTasks>().ended().next();
        match old.filter(|(at, _)| at.plus_ms(limits::MEDIA_KEPT_MS) <= now) {
            Some((_, id)) => forget(world, id),
            None => return,
        }
    }
}

/// Behind the tasks that are restored: while the daemon was down the clock may have been set back, too.
pub(super) fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    clock_set_back(world);
    Ok(())
}

/// The clock was set back: what ended in a time that it has left counts from now.
// &mut World: changes entities by their ids, through the hooks of their kind.
pub(super) fn clock_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let tasks = world.resource::<MediaTasks>();
    let ahead: Vec<MediaTaskId> = tasks.ended().rev().take_while(|(at, _)| *at > now).map(|(_, id)| id).collect();
    for id in ahead {
        let Ok(entity) = find::<MediaTask>(world, id) else { continue };
        change(world, entity, |task: &mut MediaTask| task.ended_at = task.ended_at.map(|at| at.min(now)));
    }
}
