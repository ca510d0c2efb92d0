//! Goals go, with all below them; and what becomes of the goals of an agent that goes.

use crate::goal::audit_kinds;
use bevy_ecs::prelude::World;

use agentsvc_components::goal::Goal;
use agentsvc_components::{AgentId, GoalId};
use serde_json::json;

use super::{Goals, tree};
use crate::audit::Audit;
use crate::kernel::command::Place;
use crate::kernel::entities::{Removable, Remove, change};

impl Removable for Goal {
    const REMOVE: &'static str = "remove_goal";
    const PLACE: Place<Remove<Self>> = Place::Root;
    /// Number of deleted goals, including this one.
    type Reply = usize;

    /// All goals below it go in the same step (spec 1, Goals).
    fn removed(self, world: &mut World, id: GoalId) -> usize {
        let doomed = tree::subtree(world, id);
        for below in doomed.iter().rev().filter(|below| **below != id) {
            if let Some(entity) = world.resource::<Goals>().get(*below) {
                world.despawn(entity);
            }
        }
        world.audit(audit_kinds::GOAL_DELETED, self.agent, json!({ "goal": id, "goals": doomed.len() }));
        doomed.len()
    }
}

/// The agent is gone: its goals stay, without an agent. What else they hold, their time of change included, stays too.
pub(crate) fn agent_removed(world: &mut World, agent: AgentId) {
    let goals = world.resource::<Goals>();
    let left: Vec<_> = goals.of_agent(Some(agent), None).filter_map(|id| goals.get(id)).collect();
    for entity in left {
        change(world, entity, |goal: &mut Goal| goal.agent = None);
    }
}
