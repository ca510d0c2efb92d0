//! A failed task waits in the queue again.

use crate::task::error_codes;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::audit::AuditKind;
use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::{Refusal, TaskId};
use serde_json::json;

use super::index::{change, find};
use super::post::posted;
use super::view::seen;
use super::{TaskView, Tasks};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Command};

/// Puts a failed task in the queue again (spec 2, Task queue), in its old place, and tells so. Refused (409, code
/// `task_not_failed`) in any other state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RetryTask(pub TaskId);

impl Command for RetryTask {
    type Reply = TaskView;
    const NAME: &'static str = "retry_task";
    const WRITES: bool = true;

    fn run(self, world: &mut World) -> Answer<TaskView> {
        Answer::stored(retry(world, self.0))
    }
}

fn retry(world: &mut World, id: TaskId) -> Result<TaskView, Refusal> {
    let entity = find(world, id)?;
    let state = world.get::<Task>(entity).map(|task| task.state).unwrap_or_default();
    if state != TaskState::Failed {
        let text = format!("the task is {}; only a failed task can be retried", state.as_str());
        return Err(Refusal::of(error_codes::TASK_NOT_FAILED, text));
    }
    world.resource::<Tasks>().has_room(0)?;
    let now = world.resource::<Now>().0;
    change(world, entity, |task| {
        task.state = TaskState::Pending;
        (task.claimed_by, task.claimed_at, task.result, task.ended_at) = (None, None, None, None);
        task.updated_at = now;
    });
    posted(world, entity, None);
    world.audit(AuditKind::TaskRetried, None, json!({ "task": id }));
    seen(world, entity, id)
}
