//! Tasks are read, and listed in the order of their posting.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::TaskId;
use agentsvc_components::task::{Task, TaskState};

use crate::kernel::command::Place;
use crate::kernel::entities::{List, View};
use crate::kernel::index::id_of;

/// What the world knows of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// Its state.
    pub task: Task,
}

/// Which tasks to list. Empty lists all.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Only with this state.
    pub state: Option<TaskState>,
    /// Only those assigned to exactly this; the empty text means those that are nobody's.
    pub assignee: Option<Box<str>>,
}

/// Reads a page of tasks.
pub type ListTasks = List<TaskView>;

impl View for TaskView {
    type Kind = Task;
    type Filter = TaskFilter;
    const NAMES: [&'static str; 2] = ["get_task", "list_tasks"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, at), task: world.get::<Task>(at)?.clone() })
    }

    fn passes(&self, filter: &TaskFilter) -> bool {
        filter.state.is_none_or(|state| self.task.state == state)
            && filter.assignee.as_deref().is_none_or(|assignee| self.task.owner().unwrap_or_default() == assignee)
    }
}
