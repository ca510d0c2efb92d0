//! Tasks go; and what becomes of the claims of an agent that goes.

use crate::task::audit_kinds;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::{AgentId, Refusal, TaskId};
use serde_json::json;

use super::{TaskView, Tasks};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::counters::Counters;
use crate::kernel::entities::{View, change, find};

/// Cancels a task and removes it, wherever it is (spec 2, Task queue). Whoever has claimed it is told when it ends it:
/// there is no such task any more.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RemoveTask(pub TaskId);

command! {
    /// The task as it was; `cancelled` when it was still open.
    write "remove_task" RemoveTask => TaskView, Root, |RemoveTask(it), world| Answer::stored(remove(world, it))
}

fn remove(world: &mut World, id: TaskId) -> Result<TaskView, Refusal> {
    let entity = find::<Task>(world, id)?;
    let mut view = TaskView::seen(world, id)?;
    if view.task.state.is_open() {
        view.task.state = TaskState::Cancelled;
        world.resource_mut::<Counters>().tasks_cancelled += 1;
    }
    world.despawn(entity);
    world.audit(
        audit_kinds::TASK_DELETED,
        view.task.claimed_by,
        json!({ "task": id, "state": view.task.state.as_str() }),
    );
    Ok(view)
}

/// Removes the tasks that ended first while more than
/// [`TASKS_ENDED_MAX`](agentsvc_components::kernel::limit::TASKS_ENDED_MAX) are kept.
pub(super) fn forget_ended(world: &mut World) {
    while let Some(entity) = oldest_ended_over(world) {
        world.despawn(entity);
    }
}

fn oldest_ended_over(world: &World) -> Option<Entity> {
    let tasks = world.resource::<Tasks>();
    tasks.get(tasks.ended_over()?)
}

/// The agent is gone: what it had claimed waits again, which is no event (spec 1, Triggers, rule 5). Tasks that name it
/// keep its name.
pub(crate) fn agent_removed(world: &mut World, agent: AgentId) {
    let claimed: Vec<TaskId> = world.resource::<Tasks>().claims_of(agent).collect();
    for id in claimed {
        release(world, id);
    }
}

/// A claimed task waits again, without an event.
pub(super) fn release(world: &mut World, id: TaskId) {
    let now = world.resource::<Now>().0;
    let Some(entity) = world.resource::<Tasks>().get(id) else { return };
    change(world, entity, |task: &mut Task| {
        task.state = TaskState::Pending;
        (task.claimed_by, task.claimed_at) = (None, None);
        task.updated_at = now;
    });
}
