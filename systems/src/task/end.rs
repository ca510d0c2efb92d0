//! A task comes to its end: done, or given up.

use crate::task::audit_kinds;
use crate::task::error_codes;
use crate::task::metrics::TaskTotals;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::event::Event;
use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::{AgentId, Refusal, TaskId, TurnId};
use serde_json::json;

use super::post::check_text;
use super::window::Throughput;
use super::{TaskView, remove};
use crate::audit::Audit;
use crate::event::event_text;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find};
use crate::taint;

/// Ends a claimed task. Refused (409) when it is not claimed (code `task_not_running`) or another agent has it (code
/// `task_not_yours`).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndTask {
    /// Which.
    pub task: TaskId,
    /// It was not done.
    pub failed: bool,
    /// What came out, or why it failed.
    pub result: Option<String>,
    /// Only when this agent has it.
    pub only_of: Option<AgentId>,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

command!(write "end_task" EndTask => TaskView, Root, |it, world| Answer::stored(end(world, it)));

fn end(world: &mut World, command: EndTask) -> Result<TaskView, Refusal> {
    let EndTask { task: id, failed, result, only_of, by } = command;
    let entity = find::<Task>(world, id)?;
    check_text(if failed { "error" } else { "result" }, result.as_deref().unwrap_or_default())?;
    let task = world.get::<Task>(entity).ok_or_else(|| Refusal::not_found("task", id))?;
    if task.state != TaskState::Running {
        let text = format!("the task is {}; only a claimed task can be completed or failed", task.state.as_str());
        return Err(Refusal::of(error_codes::TASK_NOT_RUNNING, text));
    }
    if only_of.is_some() && task.claimed_by != only_of {
        let text = "another agent has claimed the task";
        return Err(Refusal::of(error_codes::TASK_NOT_YOURS, text));
    }
    let (title, agent, read, holder) = (task.title.to_string(), task.claimed_by, task.taint, task.holder);
    taint::carry(world, read);
    let told = event_text(result.as_deref().unwrap_or_default());
    let now = world.resource::<Now>().0;
    let taint = taint::handed_on(world);
    let state = if failed { TaskState::Failed } else { TaskState::Completed };
    change(world, entity, |task: &mut Task| {
        task.state = state;
        task.result = result.map(Into::into);
        task.taint = task.taint.with(taint);
        (task.updated_at, task.ended_at) = (now, Some(now));
    });
    world.resource_mut::<Throughput>().note(state, now);
    let mut counters = world.resource_mut::<TaskTotals>();
    let kind = if failed { audit_kinds::TASK_FAILED } else { audit_kinds::TASK_COMPLETED };
    let event = if failed {
        counters.failed += 1;
        Event::TaskFailed { task: id, title, agent, error: told, by }
    } else {
        counters.completed += 1;
        Event::TaskCompleted { task: id, title, agent, result: told, by }
    };
    world.event(event);
    world.audit(kind, agent, json!({ "task": id }));
    let ended = TaskView::seen(world, id);
    remove::forget_ended(world, holder);
    ended
}
