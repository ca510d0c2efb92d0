//! Tasks whose turns did not come back with a restart, and tasks that take too long or were kept long enough.

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::Timestamp;
use agentsvc_components::a2a::{A2aState, A2aTask, A2aTaskId};

use super::end::{forget, settle};
use super::index::Tasks;
use super::limits;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find, state};
use crate::kernel::index;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::turn::stop_turn;

/// Open tasks without a turn after a restart. The end of a turn that ended while the world came back is told first.
#[derive(Resource, Default)]
pub(super) struct Lost(Vec<A2aTaskId>);

impl Lost {
    pub(super) fn has(&self, id: A2aTaskId) -> bool {
        self.0.contains(&id)
    }
}

/// Once every turn is back: finds the tasks that have none.
pub(super) fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let is_lost =
        |id: &A2aTaskId| state::<A2aTask>(world, *id).is_some_and(|task| index::turn(world, task.turn).is_none());
    let lost: Vec<A2aTaskId> = world.resource::<Tasks>().open().map(|(_, id)| id).filter(is_lost).collect();
    world.resource_mut::<Lost>().0 = lost;
    // The clock may have been set back meanwhile.
    clock_set_back(world);
    super::outbound::clock_set_back(world);
    Ok(())
}

/// Are there tasks that wait for turns that are gone?
pub(super) fn has_work(world: &World) -> bool {
    !world.resource::<Lost>().0.is_empty()
}

/// They fail.
// &mut World: settling ends tasks through the hooks of their kind.
pub(super) fn settle_lost(world: &mut World) {
    for id in std::mem::take(&mut world.resource_mut::<Lost>().0) {
        settle(world, id, A2aState::Failed, "the turn of the task no longer exists".to_owned());
    }
}

/// When a task has been open, or kept, for too long.
pub(super) fn next_due(world: &World) -> Option<Timestamp> {
    let tasks = world.resource::<Tasks>();
    let open = tasks.open().next().map(|(at, _)| at.plus_ms(limits::A2A_TASK_OPEN_MS_MAX));
    let ended = tasks.ended().next().map(|(at, _)| at.plus_ms(limits::A2A_TASK_KEPT_MS));
    open.into_iter().chain(ended).min()
}

/// Ends tasks that have been open for too long, and lets those go that have ended long ago; a bounded number.
// &mut World: tasks end and go through the hooks of their kind.
pub(super) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limits::A2A_TASKS_SWEPT_MAX {
        let tasks = world.resource::<Tasks>();
        let late = tasks.open().next().filter(|(at, _)| at.plus_ms(limits::A2A_TASK_OPEN_MS_MAX) <= now);
        let old = tasks.ended().next().filter(|(at, _)| at.plus_ms(limits::A2A_TASK_KEPT_MS) <= now);
        match (late, old) {
            (Some((_, id)), _) => {
                let turn = state::<A2aTask>(world, id).map(|task| task.turn);
                settle(world, id, A2aState::Failed, "the task took too long".to_owned());
                turn.into_iter().for_each(|turn| stop_turn(world, turn));
            }
            (None, Some((_, id))) => forget(world, id),
            (None, None) => return,
        }
    }
}

/// The clock was set back: what came or ended in a time that it has left counts from now.
// &mut World: changes entities by their ids, through the hooks of their kind.
pub(super) fn clock_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let tasks = world.resource::<Tasks>();
    let open = tasks.open().filter(|(at, _)| *at > now).map(|(_, id)| id);
    let ended = tasks.ended().rev().take_while(|(at, _)| *at > now).map(|(_, id)| id);
    let ahead: Vec<A2aTaskId> = open.chain(ended).collect();
    for id in ahead {
        let Ok(entity) = find::<A2aTask>(world, id) else { continue };
        change(world, entity, |task: &mut A2aTask| {
            task.created_at = task.created_at.min(now);
            task.ended_at = task.ended_at.map(|at| at.min(now));
        });
    }
}
