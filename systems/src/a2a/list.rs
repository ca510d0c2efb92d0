//! Tasks are read by those who know their ids.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::Refusal;
use agentsvc_components::a2a::{A2aTask, A2aTaskId};
use agentsvc_components::turn::{Turn, TurnState};

use super::index::Tasks;
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{Indexed, List, View};
use crate::kernel::index::{self, id_of};

/// What the world knows of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aTaskView {
    /// Its id.
    pub id: A2aTaskId,
    /// Its state.
    pub task: A2aTask,
    /// It is open, and its turn has not begun.
    pub is_waiting: bool,
}

impl A2aTaskView {
    /// The id as the client knows it.
    #[must_use]
    pub fn shown_id(&self) -> String {
        self.task.client_id.as_deref().map_or_else(|| self.id.to_string(), str::to_owned)
    }
}

impl View for A2aTaskView {
    type Kind = A2aTask;
    type Filter = ();
    const NAMES: [&'static str; 2] = ["get_a2a_task", "list_a2a_tasks"];
    const PLACE: Place<List<Self>> = Place::All;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let task = world.get::<A2aTask>(at)?.clone();
        let turn = index::turn(world, task.turn).and_then(|turn| world.get::<Turn>(turn));
        let waits = |turn: &Turn| matches!(turn.state, TurnState::Queued | TurnState::Reserving) && turn.iteration == 0;
        let is_waiting = task.state.is_open() && turn.is_some_and(waits);
        Some(Self { id: id_of(world, at), task, is_waiting })
    }

    fn passes(&self, (): &()) -> bool {
        true
    }
}

/// Finds a task by the id that a client knows: the daemon's, or what its own id is known by.
#[derive(Clone, Debug)]
pub struct FindA2aTask {
    /// The id, where it is a UUID.
    pub id: Option<A2aTaskId>,
    /// What an id of the client's own is known by.
    pub key: String,
}

command! {
    quick "find_a2a_task" FindA2aTask => A2aTaskView, All, |it, world| Answer::Now(found(world, &it))
}

fn found(world: &World, it: &FindA2aTask) -> Result<A2aTaskView, Refusal> {
    let tasks = world.resource::<Tasks>();
    let id = it.id.filter(|id| {
        // A client that gave a task an id of its own knows no other.
        tasks.get(*id).and_then(|at| world.get::<A2aTask>(at)).is_some_and(|task| task.client_id.is_none())
    });
    let id = id.or_else(|| tasks.by_key(&it.key)).ok_or_else(not_found)?;
    A2aTaskView::seen(world, id)
}

/// The refusal of an id that no task has. It does not repeat the id.
pub(super) fn not_found() -> Refusal {
    Refusal::new(agentsvc_components::RefusalKind::NotFound, format!("{} not found", A2aTask::NOUN))
}
