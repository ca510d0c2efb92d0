//! Which workflows and runs users with a limited role may know of: those whose steps are all for agents of theirs.

use std::sync::Arc;

use agentsvc_components::Refusal;
use agentsvc_components::kernel::id::AgentId;
use agentsvc_components::workflow::{Step, StepAgent, Workflow};
use bevy_ecs::prelude::{Entity, World};

use crate::agent::{agent_named, is_limited, reached};
use crate::kernel::index::id_of;

/// May whoever acts know of a workflow?
pub(super) fn is_known(world: &World, workflow: &Workflow) -> bool {
    knows_steps(world, &workflow.steps)
}

/// May whoever acts know of what has these steps?
pub(super) fn knows_steps(world: &World, steps: &[Step]) -> bool {
    let mut agents = steps.iter().filter_map(|step| step.agent.as_ref()).peekable();
    // Theirs name no agent: the name can be another's by now.
    let is_own = |agent: &StepAgent| matches!(agent, StepAgent::Id(id) if reached(world, *id).is_ok());
    !is_limited(world) || agents.peek().is_some() && agents.all(is_own)
}

/// The same steps; where whoever acts has a limited role, each with the id of its agent, so that no other agent gets the
/// message that bears the name later.
///
/// Refused where a step is for an agent that is not theirs.
pub(super) fn pinned(world: &World, steps: Arc<[Step]>) -> Result<Arc<[Step]>, Refusal> {
    if !is_limited(world) {
        return Ok(steps);
    }
    let pin = |(at, step): (usize, &Step)| {
        let named = |refusal| Refusal { field: Some(format!("steps[{at}].agent_id")), ..refusal };
        let found = step.agent.as_ref().map(|agent| found(world, agent)).transpose().map_err(named)?;
        Ok(Step { agent: found.map(|agent| StepAgent::Id(id_of::<AgentId>(world, agent))), ..step.clone() })
    };
    steps.iter().enumerate().map(pin).collect()
}

fn found(world: &World, agent: &StepAgent) -> Result<Entity, Refusal> {
    match agent {
        StepAgent::Id(id) => reached(world, *id),
        StepAgent::Name(name) => {
            let missing = || Refusal::not_found("agent", name);
            let agent = agent_named(world, name).ok_or_else(missing)?;
            reached(world, id_of(world, agent)).map_err(|_| missing())
        }
    }
}
