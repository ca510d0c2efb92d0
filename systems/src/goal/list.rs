//! Goals are read, and listed in the order of creation.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::goal::{Goal, GoalStatus};
use agentsvc_components::{AgentId, GoalId, Refusal};

use super::Goals;
use crate::agent::is_limited;
use crate::kernel::command::Place;
use crate::kernel::entities::{List, View, ViewPage, find};
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

/// Which goals to list. Empty lists all.
#[derive(Clone, Debug, Default)]
pub struct GoalFilter {
    /// Only this agent's; `Some(None)` is those of nobody.
    pub agent: Option<Option<AgentId>>,
    /// Only those right below this goal; `Some(None)` is those without a parent.
    pub parent: Option<Option<GoalId>>,
    /// Refuse it (404) unless that parent exists.
    pub parent_must_exist: bool,
    /// Only goals with this status.
    pub status: Option<GoalStatus>,
}

/// Reads a page of goals.
pub type ListGoals = List<GoalView>;

impl View for GoalView {
    type Kind = Goal;
    type Filter = GoalFilter;
    const NAMES: [&'static str; 2] = ["get_goal", "list_goals"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let goal = world.get::<Goal>(at)?.clone();
        let id = id_of(world, at);
        let has_children = world.resource::<Goals>().below(Some(id), None).next().is_some();
        Some(Self { id, goal, has_children })
    }

    fn passes(&self, filter: &GoalFilter) -> bool {
        filter.agent.is_none_or(|agent| self.goal.agent == agent)
            && filter.parent.is_none_or(|parent| self.goal.parent == parent)
            && filter.status.is_none_or(|status| self.goal.status == status)
    }

    fn page(world: &World, list: &ListGoals) -> Result<ViewPage<Self>, Refusal> {
        let (filter, after, goals) = (&list.filter, list.after, world.resource::<Goals>());
        if let (true, Some(Some(parent))) = (filter.parent_must_exist, filter.parent) {
            find::<Goal>(world, parent)?;
        }
        let first = after.is_none() && !is_limited(world);
        let with_entities = |id| Some((id, goals.get(id)?));
        Ok(match (filter.parent, filter.agent) {
            (Some(parent), _) => {
                let total = first.then(|| goals.below(parent, None).count());
                list.filled(world, total, goals.below(parent, after).filter_map(with_entities))
            }
            (None, Some(agent)) => {
                let total = first.then(|| goals.of_agent(agent, None).count());
                list.filled(world, total, goals.of_agent(agent, after).filter_map(with_entities))
            }
            (None, None) => list.filled(world, Some(goals.len()), goals.after(after)),
        })
    }
}
