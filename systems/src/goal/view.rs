//! One goal is read.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::goal::Goal;
use agentsvc_components::{GoalId, Refusal};

use super::Goals;
use super::index::find;
use crate::kernel::command::{Answer, Command};
use crate::kernel::index::id_of;

/// What the world knows of a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalView {
    /// Its id.
    pub id: GoalId,
    /// Its state.
    pub goal: Goal,
    /// Is any goal below it?
    pub has_children: bool,
}

impl GoalView {
    pub(super) fn of(world: &World, entity: Entity) -> Option<Self> {
        let goal = world.get::<Goal>(entity)?.clone();
        let id = id_of(world, entity);
        let has_children = world.resource::<Goals>().below(Some(id), None).next().is_some();
        Some(Self { id, goal, has_children })
    }
}

/// The view of a goal that is there.
pub(super) fn seen(world: &World, entity: Entity, id: GoalId) -> Result<GoalView, Refusal> {
    GoalView::of(world, entity).ok_or_else(|| Refusal::not_found("goal", id))
}

/// Reads a goal by id.
#[derive(Clone, Copy, Debug)]
pub struct GetGoal(pub GoalId);

impl Command for GetGoal {
    type Reply = GoalView;
    const NAME: &'static str = "get_goal";
    const WRITES: bool = false;
    const QUICK: bool = true;

    fn run(self, world: &mut World) -> Answer<GoalView> {
        Answer::Now(find(world, self.0).and_then(|entity| seen(world, entity, self.0)))
    }
}
