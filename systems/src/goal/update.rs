//! A goal changes.

use crate::goal::audit_kinds;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::goal::{Goal, GoalStatus};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, GoalId, Refusal, RefusalKind, Timestamp};
use serde_json::json;

use super::create::{check_agent, stain};
use super::index::QUOTA;
use super::{GoalView, Goals, checked_title, tree};
use crate::agent::acting_holder;
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find};
use crate::kernel::index;
use crate::kernel::patch::set;
use crate::kernel::text::check_length;
use crate::taint;

/// What to change; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalPatch {
    /// What is to be reached.
    pub title: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// Latest note.
    pub note: Option<String>,
    /// Progress.
    pub status: Option<GoalStatus>,
    /// When it should be reached; `Some(None)` takes the date away.
    #[serde(with = "crate::kernel::patch")]
    pub due_at: Option<Option<Timestamp>>,
    /// Whose goal; `Some(None)` makes it nobody's.
    #[serde(with = "crate::kernel::patch")]
    pub agent: Option<Option<AgentId>>,
    /// The goal that it is a part of; `Some(None)` makes it stand alone.
    #[serde(with = "crate::kernel::patch")]
    pub parent: Option<Option<GoalId>>,
}

/// Changes a goal, all fields or none (spec 1, Goals). Refused with 429 when its texts become longer and there is no room
/// for that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateGoal {
    /// Which.
    pub goal: GoalId,
    /// What.
    pub patch: GoalPatch,
    /// Refuse it (403) unless it is this agent's goal.
    pub only_of: Option<AgentId>,
}

command!(write "update_goal" UpdateGoal => GoalView, Root, |it, world| Answer::stored(update(world, it)));

fn update(world: &mut World, command: UpdateGoal) -> Result<GoalView, Refusal> {
    let UpdateGoal { goal: id, patch, only_of } = command;
    let entity = find::<Goal>(world, id)?;
    let owner = world.get::<Goal>(entity).and_then(|goal| goal.agent);
    if only_of.is_some() && owner != only_of {
        return Err(Refusal::new(RefusalKind::Forbidden, "the goal belongs to another agent"));
    }
    let title = patch.title.as_deref().map(checked_title).transpose()?;
    if let Some(text) = &patch.description {
        check_length("description", text, limit::GOAL_DESCRIPTION_BYTES_MAX)?;
    }
    if let Some(text) = &patch.note {
        check_length("note", text, limit::GOAL_NOTE_BYTES_MAX)?;
    }
    if let Some(agent) = patch.agent {
        check_agent(world, agent)?;
    }
    if let Some(parent) = patch.parent {
        tree::check_parent(world, parent, Some(id))?;
    }
    let holder = check_room(world, entity, title.as_deref(), &patch)?;
    let now = world.resource::<Now>().0;
    change(world, entity, |goal: &mut Goal| {
        apply(goal, title, patch, now);
        goal.holder = holder;
    });
    let goal = world.get::<Goal>(entity).ok_or_else(|| Refusal::not_found("goal", id))?;
    let (agent, status) = (goal.agent, goal.status);
    pass_on(world, owner, agent);
    stain(world, agent);
    world.audit(audit_kinds::GOAL_UPDATED, agent, json!({ "goal": id, "status": status }));
    GoalView::seen(world, id)
}

/// Refuses longer texts where there is no room for them; gives whose share the goal takes then.
fn check_room(world: &World, at: Entity, title: Option<&str>, patch: &GoalPatch) -> Result<Option<Holder>, Refusal> {
    let Some(goal) = world.get::<Goal>(at) else { return Ok(None) };
    let (goals, longer) = (world.resource::<Goals>(), growth(goal, title, patch));
    QUOTA.admit(goals.used, 0, longer)?;
    goals.shares.grown(&QUOTA, (goal.holder, acting_holder(world)), (goal.bytes(), longer))
}

/// A goal that changes hands may hold what its former owner was tainted with.
fn pass_on(world: &mut World, from: Option<AgentId>, to: Option<AgentId>) {
    let of = |agent: Option<AgentId>| agent.and_then(|agent| index::agent(world, agent).ok());
    if let (true, Some(from), Some(to)) = (from != to, of(from), of(to)) {
        taint::stain_with(world, to, taint::of_agent(world, from));
    }
}

/// By how many bytes the texts of a goal become longer.
fn growth(goal: &Goal, title: Option<&str>, patch: &GoalPatch) -> usize {
    let title = title.map_or(goal.title.len(), str::len);
    let description = patch.description.as_deref().map_or(goal.description.len(), str::len);
    let note = patch.note.as_deref().map_or(goal.note.len(), str::len);
    (title + description + note).saturating_sub(goal.bytes())
}

fn apply(goal: &mut Goal, title: Option<Box<str>>, patch: GoalPatch, now: Timestamp) {
    set(&mut goal.title, title);
    set(&mut goal.description, patch.description);
    set(&mut goal.note, patch.note);
    set(&mut goal.due_at, patch.due_at);
    set(&mut goal.agent, patch.agent);
    set(&mut goal.parent, patch.parent);
    if let Some(status) = patch.status {
        let reached = status == GoalStatus::Completed;
        goal.completed_at = if reached { goal.completed_at.or(Some(now)) } else { None };
        goal.status = status;
    }
    goal.updated_at = now;
}
