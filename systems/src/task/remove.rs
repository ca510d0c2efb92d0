//! Tasks go; and what becomes of the claims of an agent that goes.

use crate::task::audit_kinds;
use crate::task::metrics::TaskTotals;
use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::{AgentId, TaskId};
use serde_json::json;

use super::{TaskView, Tasks};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::Place;
use crate::kernel::entities::{Removable, Remove, change};

/// It is removed wherever it is (spec 2, Task queue). An agent that has claimed it learns of that when it ends it.
impl Removable for Task {
    const REMOVE: &'static str = "remove_task";
    const PLACE: Place<Remove<Self>> = Place::Root;
    /// The task as it was; `cancelled` when it was still open.
    type Reply = TaskView;

    fn removed(mut self, world: &mut World, id: TaskId) -> TaskView {
        if self.state.is_open() {
            self.state = TaskState::Cancelled;
            world.resource_mut::<TaskTotals>().cancelled += 1;
        }
        let details = json!({ "task": id, "state": self.state.as_str() });
        world.audit(audit_kinds::TASK_DELETED, self.claimed_by, details);
        TaskView { id, task: self }
    }
}

/// Removes the tasks that ended first while more than
/// [`TASKS_ENDED_MAX`](agentsvc_components::kernel::limit::TASKS_ENDED_MAX) are kept, and those of the holder while all its tasks
/// take more bytes than its share: results need no room, and what ended keeps nobody from posting.
pub(super) fn forget_ended(world: &mut World, holder: Option<Holder>) {
    while let Some(entity) = oldest_ended_over(world, holder) {
        world.despawn(entity);
    }
}

fn oldest_ended_over(world: &World, holder: Option<Holder>) -> Option<Entity> {
    let tasks = world.resource::<Tasks>();
    tasks.get(tasks.ended_over().or_else(|| tasks.ended_over_of(holder?))?)
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
