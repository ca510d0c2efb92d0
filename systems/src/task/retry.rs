//! A failed task waits in the queue again.

use crate::task::audit_kinds;
use crate::task::error_codes;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::{Refusal, TaskId};
use serde_json::json;

use super::index::has_room;
use super::post::posted;
use super::{TaskView, Tasks};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find};

/// Puts a failed task in the queue again (spec 2, Task queue), in its old place, and tells so. Refused (409, code
/// `task_not_failed`) in any other state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RetryTask(pub TaskId);

command!(write "retry_task" RetryTask => TaskView, Root, |RetryTask(it), world| Answer::stored(retry(world, it)));

fn retry(world: &mut World, id: TaskId) -> Result<TaskView, Refusal> {
    let entity = find::<Task>(world, id)?;
    let task = world.get::<Task>(entity).ok_or_else(|| Refusal::not_found("task", id))?;
    if task.state != TaskState::Failed {
        let text = format!("the task is {}; only a failed task can be retried", task.state.as_str());
        return Err(Refusal::of(error_codes::TASK_NOT_FAILED, text));
    }
    has_room(world.resource::<Tasks>(), task)?;
    let now = world.resource::<Now>().0;
    change(world, entity, |task: &mut Task| {
        task.state = TaskState::Pending;
        (task.claimed_by, task.claimed_at, task.result, task.ended_at) = (None, None, None, None);
        task.updated_at = now;
    });
    posted(world, entity, None);
    world.audit(audit_kinds::TASK_RETRIED, None, json!({ "task": id }));
    TaskView::seen(world, id)
}
