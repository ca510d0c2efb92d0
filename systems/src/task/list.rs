//! Tasks are listed in bounded pages, in the order of their posting.

use agentsvc_components::TaskId;
use agentsvc_components::kernel::limit;
use agentsvc_components::task::TaskState;
use bevy_ecs::prelude::World;

use super::{TaskView, Tasks};
use crate::kernel::command::{Answer, Command};
use crate::kernel::page::Page;

/// Which tasks to list. Empty lists all.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Only with this state.
    pub state: Option<TaskState>,
    /// Only those assigned to exactly this; the empty text means those that are nobody's.
    pub assignee: Option<Box<str>>,
}

/// Reads a page of tasks.
#[derive(Clone, Debug, Default)]
pub struct ListTasks {
    /// Which.
    pub filter: TaskFilter,
    /// Go on after this task; it need not exist any more.
    pub after: Option<TaskId>,
    /// At most this many; cut to [`limit::PAGE_ITEMS_MAX`].
    pub limit: usize,
}

impl Command for ListTasks {
    type Reply = Page<TaskView, TaskId>;
    const NAME: &'static str = "list_tasks";
    const WRITES: bool = false;

    fn run(self, world: &mut World) -> Answer<Page<TaskView, TaskId>> {
        Answer::read(page(world, &self))
    }
}

fn page(world: &World, command: &ListTasks) -> Page<TaskView, TaskId> {
    let (tasks, most) = (world.resource::<Tasks>(), command.limit.clamp(1, limit::PAGE_ITEMS_MAX));
    let mut page = Page { items: Vec::new(), next: None, total: tasks.len() };
    for (looked, (id, entity)) in tasks.all(command.after).enumerate() {
        if page.items.len() == most || looked == limit::PAGE_SCAN_MAX {
            return page;
        }
        page.next = Some(id);
        let view = TaskView::of(world, entity);
        page.items.extend(view.filter(|view| matches(view, &command.filter)));
    }
    page.next = None;
    page
}

fn matches(view: &TaskView, filter: &TaskFilter) -> bool {
    filter.state.is_none_or(|state| view.task.state == state)
        && filter.assignee.as_deref().is_none_or(|assignee| view.task.owner().unwrap_or_default() == assignee)
}
