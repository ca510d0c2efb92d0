//! How long ended media tasks are kept.

use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;
use agentsvc_components::media::{MediaTask, MediaTaskId};
use agentsvc_components::{Refusal, Timestamp};
use bevy_ecs::prelude::World;
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::index::MediaTasks;
use super::list::MediaTaskView;
use super::settle::{FETCH, MAKE, POLL, drop_recording, fits, lose, task_of};
use super::{audit_kinds, error_codes, limits};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find, state};
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::kernel::{index, job};

/// Lets tasks go that have ended while there are more, or more bytes of them, than may be: of the holder that keeps most, the ones
/// that ended first.
pub(super) fn trim(world: &mut World) {
    loop {
        let tasks = world.resource::<MediaTasks>();
        let next = if tasks.used.count > limits::MEDIA_TASKS_MAX {
            tasks.kept.by_count().next()
        } else if tasks.used.bytes > limits::MEDIA_TASKS_BYTES_MAX {
            tasks.kept.by_bytes().next()
        } else {
            return;
        };
        let Some(id) = next else { return };
        forget(world, id);
    }
}

pub(super) fn forget(world: &mut World, id: MediaTaskId) {
    if let Some(entity) = world.resource::<MediaTasks>().get(id) {
        world.despawn(entity);
    }
}

/// When a task has been kept for long enough.
pub(super) fn next_due(world: &World) -> Option<Timestamp> {
    world.resource::<MediaTasks>().ended().next().map(|(at, _)| at.plus_ms(limits::MEDIA_KEPT_MS))
}

/// Lets tasks go that have ended long ago; a bounded number.
// &mut World: tasks go through the hooks of their kind.
pub(super) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limits::MEDIA_SWEPT_MAX {
        let old = world.resource::<MediaTasks>().ended().next();
        match old.filter(|(at, _)| at.plus_ms(limits::MEDIA_KEPT_MS) <= now) {
            Some((_, id)) => forget(world, id),
            None => return,
        }
    }
}

/// Behind the tasks and jobs that are restored, of which a part may come from a backup. Tasks of agents that do not exist go, jobs
/// that their tasks do not wait for end, and open tasks without a job fail: their provider may have been paid since. While the
/// daemon was down the clock may have been set back, too.
pub(super) fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let all: Vec<MediaTaskId> = world.resource::<MediaTasks>().after(None).map(|(id, _)| id).collect();
    for id in &all {
        let agent = state::<MediaTask>(world, *id).and_then(|task| task.agent);
        if agent.is_some_and(|agent| index::agent(world, agent).is_err()) {
            forget(world, *id);
        }
    }
    let mut jobs = world.query::<(&JobId, &Job)>();
    let its = jobs.iter(world).filter(|(_, job)| [MAKE, POLL, FETCH].contains(&&*job.kind));
    let mut its: Vec<(JobId, Job)> = its.map(|(id, job)| (*id, job.clone())).collect();
    its.sort_unstable_by_key(|(id, _)| *id);
    let mut awaited = HashSet::new();
    for (id, job) in its {
        let task = task_of(&job).filter(|id| state::<MediaTask>(world, *id).is_some_and(|task| fits(&job, task)));
        if !task.is_some_and(|task| awaited.insert(task)) {
            drop_recording(world, &job);
            job::cancel(world, id);
        }
    }
    for id in all {
        if state::<MediaTask>(world, id).is_some_and(|task| task.state.is_open()) && !awaited.contains(&id) {
            let why = "the backup that was restored does not have the request";
            lose(world, id, why.to_owned());
        }
    }
    clock_set_back(world);
    Ok(())
}

/// Removes a task that has ended. Whoever asks for it has removed its files.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RemoveMedia(pub MediaTaskId);

command! {
    write "remove_media" RemoveMedia => (), Id(|it| it.0.0), |it, world| Answer::stored(remove(world, it.0))
}

fn remove(world: &mut World, id: MediaTaskId) -> Result<(), Refusal> {
    let entity = find::<MediaTask>(world, id)?;
    let task = MediaTaskView::seen(world, id)?.task;
    if task.state.is_open() {
        let text = format!("media task {id} is still open; wait for its end");
        return Err(Refusal::of(error_codes::MEDIA_TASK_OPEN, text));
    }
    let details = json!({ "task": id, "kind": task.kind.as_str(), "files": task.files.len() });
    world.audit(audit_kinds::MEDIA_DELETED, task.agent, details);
    world.despawn(entity);
    Ok(())
}

/// The clock was set back: what ended in a time that it has left counts from now.
// &mut World: changes entities by their ids, through the hooks of their kind.
pub(super) fn clock_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let tasks = world.resource::<MediaTasks>();
    let ahead: Vec<MediaTaskId> = tasks.ended().rev().take_while(|(at, _)| *at > now).map(|(_, id)| id).collect();
    for id in ahead {
        let Ok(entity) = find::<MediaTask>(world, id) else { continue };
        change(world, entity, |task: &mut MediaTask| task.ended_at = task.ended_at.map(|at| at.min(now)));
    }
}
