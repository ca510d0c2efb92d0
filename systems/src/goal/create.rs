//! A goal is set.

use crate::goal::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::goal::{Goal, GoalStatus};
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::{AgentId, GoalId, Refusal, RefusalKind, Timestamp};
use serde_json::json;

use super::index::QUOTA;
use super::{GoalView, Goals, checked_title, tree};
use crate::agent::{acting_holder, is_limited, reached};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, state};
use crate::kernel::id_generator::mint;
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::kernel::text::check_length;
use crate::taint;

/// Sets a goal (spec 1, Goals).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CreateGoal {
    /// What is to be reached, on one line.
    pub title: String,
    /// More about it; may be empty.
    pub description: String,
    /// Whose goal; it lives.
    pub agent: Option<AgentId>,
    /// Parent goal.
    pub parent: Option<GoalId>,
    /// How far it is already.
    pub status: GoalStatus,
    /// When it should be reached.
    pub due_at: Option<Timestamp>,
    /// The first word of whoever works on it; may be empty.
    pub note: String,
    /// Refuse it (403) unless the parent is a goal of the same agent.
    pub only_below_own: bool,
}

command!(write "create_goal" CreateGoal => GoalView, Root, |it, world| Answer::stored(create(world, it)));

fn create(world: &mut World, command: CreateGoal) -> Result<GoalView, Refusal> {
    let CreateGoal { title, description, agent, parent, status, due_at, note, only_below_own } = command;
    let title = checked_title(&title)?;
    check_length("description", &description, limit::GOAL_DESCRIPTION_BYTES_MAX)?;
    check_length("note", &note, limit::GOAL_NOTE_BYTES_MAX)?;
    check_agent(world, agent)?;
    tree::check_parent(world, parent, None)?;
    if only_below_own && parent.is_some_and(|parent| owner_of(world, parent) != agent) {
        return Err(Refusal::new(RefusalKind::Forbidden, "the parent goal belongs to another agent"));
    }
    let now = world.resource::<Now>().0;
    let goal = Goal {
        title,
        description: description.into(),
        note: note.into(),
        agent,
        parent,
        status,
        due_at,
        created_at: now,
        updated_at: now,
        completed_at: (status == GoalStatus::Completed).then_some(now),
        holder: acting_holder(world),
    };
    let goals = world.resource::<Goals>();
    QUOTA.admit(goals.used, 1, goal.bytes())?;
    goals.shares.admit(&QUOTA, goal.holder, 1, goal.bytes())?;
    let id: GoalId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, goal)).id();
    world.mark(entity);
    stain(world, agent);
    world.audit(audit_kinds::GOAL_CREATED, agent, json!({ "goal": id }));
    GoalView::seen(world, id)
}

/// Goals stand in the instructions of their agent: what the turn has read that writes one stands there too.
pub(super) fn stain(world: &mut World, agent: Option<AgentId>) {
    if let Some(Ok(agent)) = agent.map(|agent| index::agent(world, agent)) {
        taint::stain(world, agent);
        taint::carry(world, taint::of_agent(world, agent));
    }
}

/// Refuses an agent that does not live or is not for whoever acts. A user with a limited role has goals of agents only.
pub(super) fn check_agent(world: &World, agent: Option<AgentId>) -> Result<(), Refusal> {
    let Some(agent) = agent else {
        let is_limited = is_limited(world);
        let text = "agent_id is missing: give the goal to one of your agents";
        return if is_limited { Err(Refusal::bad_field("agent_id", text)) } else { Ok(()) };
    };
    let named = |refusal| Refusal { field: Some("agent_id".to_owned()), ..refusal };
    reached(world, agent).map(drop).map_err(named)
}

/// Whose goal `id` is; `None` when it is nobody's or not there.
fn owner_of(world: &World, id: GoalId) -> Option<AgentId> {
    state::<Goal>(world, id)?.agent
}
