//! Where tasks are found: by id, the waiting ones by who is to do them, the claims by age, the ended ones by their end.

use crate::task::error_codes;
use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, Resource, World};
use bevy_ecs::world::DeferredWorld;

use agentsvc_components::kernel::limit;
use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::{AgentId, Refusal, TaskId, Timestamp};

use super::window::Throughput;
use crate::kernel::check::Faults;
use crate::kernel::index::id_of;
use crate::kernel::outbox::inherits;
use crate::kernel::outbox::{Emit, Outbox};
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{self, Error};
use crate::kernel::restore::Records;
use crate::taint;
use agentsvc_components::event::Event;

/// Every task, by all that the queue asks for. Kept by the hooks of [`TaskId`] and by [`change`].
#[derive(Resource, Default)]
pub(crate) struct Tasks {
    by_id: BTreeMap<TaskId, Entity>,
    /// Those that wait, oldest first.
    waiting: BTreeSet<TaskId>,
    /// The same, by who is to do them (see [`owner_key`]).
    waiting_for: BTreeSet<(Box<str>, TaskId)>,
    /// Those that are claimed, the oldest claim first.
    claims: BTreeSet<(Timestamp, TaskId)>,
    /// The same, by who has them.
    claims_of: BTreeSet<(AgentId, TaskId)>,
    /// Those that ended, the oldest end first.
    ended: BTreeSet<(Timestamp, TaskId)>,
    /// How many there are in each state, in the order of [`TaskState::ALL`].
    counts: [usize; TaskState::ALL.len()],
    /// Bytes of all texts.
    bytes: usize,
    /// How many ended lately.
    pub(super) throughput: Throughput,
}

/// The first of all ids.
const FIRST: TaskId = TaskId(uuid::Uuid::nil());

/// Under which key a waiting task stands: the agent's id in its one spelling, or the name as given; empty for those that
/// whoever comes first may take.
fn owner_key(task: &Task) -> Box<str> {
    let owner = task.owner().unwrap_or_default();
    owner.parse::<AgentId>().map_or_else(|_| owner.into(), |id| id.to_string().into())
}

impl Tasks {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How many are in this state.
    pub(crate) const fn count(&self, state: TaskState) -> usize {
        self.counts[state as usize]
    }

    /// The task `id`.
    pub(crate) fn get(&self, id: TaskId) -> Option<Entity> {
        self.by_id.get(&id).copied()
    }

    /// All tasks in order of their posting, from after `after` on.
    pub(crate) fn all(&self, after: Option<TaskId>) -> impl Iterator<Item = (TaskId, Entity)> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.by_id.range((from, Unbounded)).map(|(id, entity)| (*id, *entity))
    }

    /// The waiting task that was posted before all others.
    pub(super) fn oldest_waiting(&self) -> Option<TaskId> {
        self.waiting.first().copied()
    }

    /// The oldest task that waits for the agent `id` called `name`, or else for whoever comes first.
    pub(super) fn next_for(&self, id: AgentId, name: &str) -> Option<TaskId> {
        let own = [self.oldest_for(&id.to_string()), self.oldest_for(name)];
        own.into_iter().flatten().min().or_else(|| self.oldest_for(""))
    }

    fn oldest_for(&self, key: &str) -> Option<TaskId> {
        let (owner, id) = self.waiting_for.range((Box::from(key), FIRST)..).next()?;
        (&**owner == key).then_some(*id)
    }

    /// The oldest claim, when it was made at `until` or before.
    pub(super) fn claim_until(&self, until: Timestamp) -> Option<TaskId> {
        self.claims.first().filter(|(at, _)| *at <= until).map(|(_, id)| *id)
    }

    /// The tasks that were claimed after `moment`.
    pub(super) fn claims_after(&self, moment: Timestamp) -> Vec<Entity> {
        let later = self.claims.iter().rev().take_while(|(at, _)| *at > moment);
        later.filter_map(|(_, id)| self.get(*id)).collect()
    }

    /// When the oldest claim was made.
    pub(super) fn first_claim(&self) -> Option<Timestamp> {
        self.claims.first().map(|(at, _)| *at)
    }

    /// The tasks that `agent` has claimed.
    pub(super) fn claims_of(&self, agent: AgentId) -> impl Iterator<Item = TaskId> + '_ {
        self.claims_of.range((agent, FIRST)..).take_while(move |(owner, _)| *owner == agent).map(|(_, id)| *id)
    }

    /// The ended task to forget, when more than [`limit::TASKS_ENDED_MAX`] are kept.
    pub(super) fn ended_over(&self) -> Option<TaskId> {
        let oldest = self.ended.first().filter(|_| self.ended.len() > limit::TASKS_ENDED_MAX)?;
        Some(oldest.1)
    }

    /// Is there room for one more open task, of `more` bytes?
    pub(super) fn has_room(&self, more: usize) -> Result<(), Refusal> {
        let full = |what: String| {
            Err(Refusal::full(
                format!(
                    "the task queue is full: {what} are open; complete or \
            delete some first"
                ),
                error_codes::TASKS_FULL,
            ))
        };
        if self.count(TaskState::Pending) + self.count(TaskState::Running) >= limit::TASKS_OPEN_MAX {
            return full(format!("{} tasks", limit::TASKS_OPEN_MAX));
        }
        if self.bytes + more > limit::TASKS_BYTES_MAX {
            return full(format!("{} bytes", limit::TASKS_BYTES_MAX));
        }
        Ok(())
    }

    /// Goes on as if there were tasks of so many bytes more, for tests of what a full house says.
    #[cfg(test)]
    pub(super) const fn pretend(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    fn insert(&mut self, id: TaskId, entity: Entity, task: &Task) {
        self.by_id.insert(id, entity);
        self.counts[task.state as usize] += 1;
        self.bytes += task.bytes();
        match task.state {
            TaskState::Pending => {
                self.waiting.insert(id);
                self.waiting_for.insert((owner_key(task), id));
            }
            TaskState::Running => {
                self.claims.insert((task.claimed_at.unwrap_or_default(), id));
                self.claims_of.extend(task.claimed_by.map(|agent| (agent, id)));
            }
            TaskState::Completed | TaskState::Failed | TaskState::Cancelled => {
                self.ended.insert((task.ended_at.unwrap_or_default(), id));
            }
        }
    }

    fn remove(&mut self, id: TaskId, task: &Task) {
        self.by_id.remove(&id);
        self.counts[task.state as usize] -= 1;
        self.bytes -= task.bytes();
        match task.state {
            TaskState::Pending => {
                self.waiting.remove(&id);
                self.waiting_for.remove(&(owner_key(task), id));
            }
            TaskState::Running => {
                self.claims.remove(&(task.claimed_at.unwrap_or_default(), id));
                if let Some(agent) = task.claimed_by {
                    self.claims_of.remove(&(agent, id));
                }
            }
            TaskState::Completed | TaskState::Failed | TaskState::Cancelled => {
                self.ended.remove(&(task.ended_at.unwrap_or_default(), id));
            }
        }
    }
}

/// Prepares a new world for tasks.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Tasks>();
    world.register_component_hooks::<TaskId>().on_insert(inserted).on_remove(removed);
    on(world, |world, gone: &Removed<AgentId>| super::agent_removed(world, gone.id));
    inherits(world, |world, event, _, inherited| {
        if let Event::TaskPosted { task, .. } | Event::TaskCompleted { task, .. } | Event::TaskFailed { task, .. } =
            event
            && let Some(entity) = world.resource::<Tasks>().get(*task)
            && let Some(task) = world.get::<Task>(entity)
        {
            inherited.taint = inherited.taint.with(taint::tracked(world, task.taint));
        }
    });
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<TaskId>(at.entity).copied() else { return };
    let Some(task) = world.get::<Task>(at.entity).cloned() else { return };
    world.resource_mut::<Tasks>().insert(id, at.entity, &task);
}

/// The entity goes: its record goes with it.
fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<TaskId>(at.entity).copied() else { return };
    let Some(task) = world.get::<Task>(at.entity).cloned() else { return };
    world.resource_mut::<Tasks>().remove(id, &task);
    world.resource_mut::<Outbox>().ops.push(record::remove_component::<Task>(id));
}

/// The task `id`, or a refusal that names it.
pub(super) fn find(world: &World, id: TaskId) -> Result<Entity, Refusal> {
    world.resource::<Tasks>().get(id).ok_or_else(|| Refusal::not_found("task", id))
}

/// Changes a task in its component and in every index, and marks it. Nothing happens when there is none.
pub(super) fn change(world: &mut World, entity: Entity, change: impl FnOnce(&mut Task)) {
    let Some(before) = world.get::<Task>(entity).cloned() else { return };
    let id = id_of::<TaskId>(world, entity);
    let mut after = before.clone();
    change(&mut after);
    let mut tasks = world.resource_mut::<Tasks>();
    tasks.remove(id, &before);
    tasks.insert(id, entity, &after);
    if let Some(mut task) = world.get_mut::<Task>(entity) {
        *task = after;
    }
    world.mark(entity);
}

/// Behind the tasks that are restored: those that ended give the throughput of the last hour.
pub(crate) fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let tasks = world.resource::<Tasks>();
    let state = |id: &TaskId| tasks.get(*id).and_then(|entity| world.get::<Task>(entity)).map(|task| task.state);
    let ended: Vec<_> = tasks.ended.iter().filter_map(|(at, id)| Some((*at, state(id)?))).collect();
    let mut tasks = world.resource_mut::<Tasks>();
    for (at, state) in ended {
        tasks.throughput.note(state, at);
    }
    // The clock may have been set back meanwhile.
    super::clock_set_back(world);
    Ok(())
}

/// Says which index is wrong ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let mut found = world.query::<(Entity, &TaskId, &Task)>();
    let world = &*world;
    let (mut scan, tasks) = (Tasks::default(), world.resource::<Tasks>());
    for (entity, id, task) in found.iter(world) {
        scan.insert(*id, entity, task);
    }
    faults.same("tasks", &tasks.by_id, &scan.by_id);
    faults.same("waiting tasks", &tasks.waiting, &scan.waiting);
    faults.same("waiting tasks by owner", &tasks.waiting_for, &scan.waiting_for);
    faults.same("claims", &tasks.claims, &scan.claims);
    faults.same("claims by agent", &tasks.claims_of, &scan.claims_of);
    faults.same("ended tasks", &tasks.ended, &scan.ended);
    faults.same("tasks counted", &tasks.counts, &scan.counts);
    faults.same("bytes of tasks", &tasks.bytes, &scan.bytes);
    faults.that(tasks.ended.len() <= limit::TASKS_ENDED_MAX, || format!("{} ended tasks are kept", tasks.ended.len()));
}
