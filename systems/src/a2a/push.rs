//! Push notifications: who is told of a task's end, by durable jobs.

use std::sync::Arc;

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::Refusal;
use agentsvc_components::a2a::{A2aTask, A2aTaskId, PushTarget};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;

use super::list::{A2aTaskView, not_found};
use super::{end, error_codes, limits};
use crate::agent::holder_of;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, state};
use crate::kernel::index;
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};

/// The name of the kind of jobs.
pub const PUSH: &str = "a2a_push";
/// What a try may take beyond the receiver's time.
const TIMEOUT_MARGIN_MS: u32 = 5_000;

/// Notifications. One that was under way when the daemon ended is sent again: it says how the task is, whenever it comes.
pub(super) const NOTIFICATION: JobKind = JobKind {
    name: PUSH,
    repeatable: true,
    tries_max: limits::A2A_PUSH_TRIES_MAX,
    backoff_ms: limits::A2A_PUSH_BACKOFF_MS,
    backoff_ms_max: limits::A2A_PUSH_BACKOFF_MS_MAX,
    deadline_ms: limits::A2A_PUSH_DEADLINE_MS,
    timeout_ms: limits::A2A_PUSH_TIMEOUT_MS + TIMEOUT_MARGIN_MS,
    lane: limits::A2A_PUSHES_OUT_MAX,
    subject_lane: limits::A2A_TASK_PUSH_MAX,
    is_shared: false,
    is_ordered: false,
    count_max: limits::A2A_PUSHES_OPEN_MAX,
    subject_count_max: limits::A2A_TASK_PUSH_MAX,
    subject_bytes_max: limits::A2A_TASK_PUSH_MAX * limits::A2A_ID_BYTES_MAX,
    input_bytes_max: limits::A2A_ID_BYTES_MAX,
    bytes_max: limits::A2A_PUSHES_OPEN_MAX * limits::A2A_ID_BYTES_MAX,
    settle,
};

/// How often notifications fail is in the metrics of jobs; the task has its result all the same.
fn settle(_: &mut World, _: JobId, _: &Job, _: JobEvent) {}

/// A task has ended: its targets are told.
pub(super) fn task_ended(world: &mut World, id: A2aTaskId) {
    let Some(task) = state::<A2aTask>(world, id) else { return };
    for target in task.push.clone() {
        tell(world, id, &target.id);
    }
}

/// Where there is no room, the notification is lost, which the metrics of jobs count.
fn tell(world: &mut World, id: A2aTaskId, target: &str) {
    let agent = state::<A2aTask>(world, id).and_then(|task| index::agent(world, task.agent).ok());
    let holder = agent.map(|agent| holder_of(world, agent));
    let _ = job::add(world, PUSH, NewJob { subject: id.0, owner: None, holder, input: Arc::from(target) });
}

/// The task goes.
pub(super) fn forget(world: &mut World, id: A2aTaskId) {
    job::cancel_all(world, PUSH, id.0);
}

/// Sets who is told of a task's end, in the place of a target of the same id. Of a task that has ended it is told at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetA2aPush {
    /// Of which task.
    pub task: A2aTaskId,
    /// Who.
    pub target: PushTarget,
}

command! {
    write "set_a2a_push" SetA2aPush => A2aTaskView, Id(|it| it.task.0), |it, world| Answer::stored(set(world, it))
}

fn set(world: &mut World, SetA2aPush { task: id, target }: SetA2aPush) -> Result<A2aTaskView, Refusal> {
    let (targets, is_open) = match state::<A2aTask>(world, id) {
        Some(task) => (&task.push, task.state.is_open()),
        None => return Err(not_found()),
    };
    let is_known = targets.iter().any(|known| known.id == target.id);
    if !is_known && targets.len() >= limits::A2A_TASK_PUSH_MAX {
        let text = format!("a task has at most {} push notification configurations", limits::A2A_TASK_PUSH_MAX);
        return Err(Refusal::full(text, error_codes::A2A_PUSH_FULL));
    }
    let name = target.id.clone();
    change_task(world, id, |task| {
        task.push.retain(|known| known.id != target.id);
        task.push.push(target);
    });
    if !is_open && !is_known {
        tell(world, id, &name);
    }
    let view = A2aTaskView::seen(world, id);
    // A target takes of the bytes that all tasks may take.
    end::trim(world);
    view
}

/// Takes a target away from a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeleteA2aPush {
    /// From which task.
    pub task: A2aTaskId,
    /// Which.
    pub target: String,
}

command! {
    write "delete_a2a_push" DeleteA2aPush => (), Id(|it| it.task.0), |it, world| Answer::stored(delete(world, &it))
}

fn delete(world: &mut World, it: &DeleteA2aPush) -> Result<(), Refusal> {
    let is_there = match state::<A2aTask>(world, it.task) {
        Some(task) => task.push.iter().any(|known| *known.id == *it.target),
        None => return Err(not_found()),
    };
    if !is_there {
        return Err(Refusal::not_found("push notification configuration", "of this id"));
    }
    change_task(world, it.task, |task| task.push.retain(|known| *known.id != *it.target));
    Ok(())
}

fn change_task(world: &mut World, id: A2aTaskId, to: impl FnOnce(&mut A2aTask)) {
    if let Some(entity) = world.resource::<super::index::Tasks>().get(id) {
        change(world, entity, to);
    }
}
