//! One task is read.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::task::Task;
use agentsvc_components::{Refusal, TaskId};

use super::index::find;
use crate::kernel::command::{Answer, Command};
use crate::kernel::index::id_of;

/// What the world knows of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// Its state.
    pub task: Task,
}

impl TaskView {
    pub(super) fn of(world: &World, entity: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, entity), task: world.get::<Task>(entity)?.clone() })
    }
}

/// The view of a task that is there.
pub(super) fn seen(world: &World, entity: Entity, id: TaskId) -> Result<TaskView, Refusal> {
    TaskView::of(world, entity).ok_or_else(|| Refusal::not_found("task", id))
}

/// Reads a task by id.
#[derive(Clone, Copy, Debug)]
pub struct GetTask(pub TaskId);

impl Command for GetTask {
    type Reply = TaskView;
    const NAME: &'static str = "get_task";
    const WRITES: bool = false;
    const QUICK: bool = true;

    fn run(self, world: &mut World) -> Answer<TaskView> {
        Answer::Now(find(world, self.0).and_then(|entity| seen(world, entity, self.0)))
    }
}
