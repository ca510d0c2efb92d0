//! Goals go, with all below them; and what becomes of the goals of an agent that goes.

use crate::goal::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::goal::Goal;
use agentsvc_components::{AgentId, GoalId, Refusal};
use serde_json::json;

use super::{Goals, tree};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{change, find};

/// Removes a goal and all goals below it, in one step (spec 1, Goals).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RemoveGoal(pub GoalId);

command! {
    /// Number of deleted goals, including this one.
    write "remove_goal" RemoveGoal => usize, Root, |RemoveGoal(it), world| Answer::stored(remove(world, it))
}

fn remove(world: &mut World, id: GoalId) -> Result<usize, Refusal> {
    let entity = find::<Goal>(world, id)?;
    let agent = world.get::<Goal>(entity).and_then(|goal| goal.agent);
    let doomed = tree::subtree(world, id);
    for id in doomed.iter().rev() {
        if let Some(entity) = world.resource::<Goals>().get(*id) {
            world.despawn(entity);
        }
    }
    world.audit(audit_kinds::GOAL_DELETED, agent, json!({ "goal": id, "goals": doomed.len() }));
    Ok(doomed.len())
}

/// The agent is gone: its goals stay, without an agent. What else they hold, their time of change included, stays too.
pub(crate) fn agent_removed(world: &mut World, agent: AgentId) {
    let goals = world.resource::<Goals>();
    let left: Vec<_> = goals.of_agent(Some(agent), None).filter_map(|id| goals.get(id)).collect();
    for entity in left {
        change(world, entity, |goal: &mut Goal| goal.agent = None);
    }
}
