//! An agent takes a task.

use crate::task::audit_kinds;
use crate::task::error_codes;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, OwnedBy};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::{AgentId, Refusal, TaskId, TurnId};
use serde_json::json;

use super::post::{check_agent, is_assigned};
use super::{TaskView, Tasks};
use crate::agent::limit_of;
use crate::audit::Audit;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find, state};
use crate::taint;

/// Claims one task for an agent. Refused (409) when it does not wait (code `task_not_pending`) or is another's (code
/// `task_assigned`).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClaimTask {
    /// Which.
    pub task: TaskId,
    /// For whom; it lives.
    pub agent: AgentId,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

command!(write "claim_task" ClaimTask => TaskView, Root, |it, world| Answer::stored(claim(world, it)));

/// Claims the oldest task that waits for an agent, or else the oldest that waits for whoever comes first.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClaimNextTask {
    /// For whom; it lives.
    pub agent: AgentId,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

command! {
    /// `None` when no task waits for it.
    write "claim_next_task" ClaimNextTask => Option<TaskView>, Root, |it, world| Answer::stored(claim_next(world, it))
}

fn claim_next(world: &mut World, command: ClaimNextTask) -> Result<Option<TaskView>, Refusal> {
    let ClaimNextTask { agent, by } = command;
    let owner = check_agent(world, agent)?;
    let name = world.get::<Agent>(owner).map(|owner| owner.name.clone()).unwrap_or_default();
    let is_for = |id| state::<Task>(world, id).is_some_and(|task| is_for(world, task, owner));
    let next = world.resource::<Tasks>().next_for(agent, &name, limit_of(world, owner), is_for);
    let Some(task) = next else {
        taint::carry(world, Taint::NONE);
        return Ok(None);
    };
    claim(world, ClaimTask { task, agent, by }).map(Some)
}

fn claim(world: &mut World, command: ClaimTask) -> Result<TaskView, Refusal> {
    let ClaimTask { task: id, agent, by } = command;
    let entity = find::<Task>(world, id)?;
    let owner = check_agent(world, agent)?;
    let task = world.get::<Task>(entity).ok_or_else(|| Refusal::not_found("task", id))?;
    if task.state != TaskState::Pending {
        let text = format!("the task is {}; only a pending task can be claimed", task.state.as_str());
        return Err(Refusal::of(error_codes::TASK_NOT_PENDING, text));
    }
    if !is_for(world, task, owner) {
        let text = "the task is assigned to another agent";
        return Err(Refusal::of(error_codes::TASK_ASSIGNED, text));
    }
    let (title, taint) = (task.title.to_string(), task.taint);
    taint::carry(world, taint);
    let now = world.resource::<Now>().0;
    change(world, entity, |task: &mut Task| {
        task.state = TaskState::Running;
        (task.claimed_by, task.claimed_at) = (Some(agent), Some(now));
        task.attempts = task.attempts.saturating_add(1);
        task.updated_at = now;
    });
    world.audit(audit_kinds::TASK_CLAIMED, agent, json!({ "task": id }));
    world.event(Event::TaskClaimed { task: id, title, agent, by });
    TaskView::seen(world, id)
}

/// May the agent take the task? It may when the task names it, by id or by name, or names nobody. A task of a user with a
/// limited role is for agents of that user, and agents of such a user take no open tasks of others.
fn is_for(world: &World, task: &Task, entity: Entity) -> bool {
    let is_of = |user| world.get::<OwnedBy>(entity) == Some(&OwnedBy(user));
    if task.user.is_some_and(|user| !is_of(user)) {
        return false;
    }
    match task.owner() {
        Some(_) => is_assigned(world, task, entity),
        None => task.user.is_some() || limit_of(world, entity).is_none(),
    }
}
