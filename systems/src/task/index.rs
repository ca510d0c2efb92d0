//! Where tasks are found: the waiting ones by who is to do them, the claims by age, the ended ones by their end.

use crate::task::error_codes;
use std::collections::BTreeSet;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::Agent;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::{AgentId, Refusal, TaskId, Timestamp};

use super::post::assignee_of;
use super::window::Throughput;
use crate::agent::{acting_limit, check_reach, is_limited, own_agents, reaches_of};
use crate::event::told::inherits;
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Own, Places, indexed, state};
use crate::kernel::index::id_of;
use crate::kernel::kept::Kept;
use crate::kernel::page::merged;
use crate::kernel::quota::Quota;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::kernel::share::Shares;
use crate::taint;

/// Every task.
pub(crate) type Tasks = Entities<Task>;

indexed!(Task: TaskPlaces, "task", is_limited => is_known, own_tasks);

/// A user with a limited role, and agents of theirs, know of the tasks that they posted, and of those for their agents.
fn is_known(world: &World, task: &Task) -> bool {
    let Some(user) = acting_limit(world) else { return true };
    let of_agent = |agent: &Option<AgentId>| agent.is_some() && reaches_of(world, *agent);
    let for_agent = || assignee_of(world, task);
    match task.user {
        Some(of) => of == user,
        None => {
            of_agent(&task.posted_by)
                || of_agent(&task.claimed_by)
                || for_agent().is_some_and(|agent| check_reach(world, agent).is_ok())
        }
    }
}

/// The tasks that a user with a limited role posted, those that agents of theirs posted or claimed, and those for these agents.
fn own_tasks(world: &World, after: Option<TaskId>) -> Option<Own<'_, TaskId>> {
    let user = acting_limit(world)?;
    let tasks = world.resource::<Tasks>();
    let named = |at: &Entity| world.get::<Agent>(*at).map(|agent| Knower::Name(agent.name.clone()));
    let agents = own_agents(world)?;
    let names = agents.iter().filter_map(named);
    let ids = agents.iter().map(|at| Knower::Agent(id_of(world, *at)));
    let knowers: Vec<_> = names.chain(ids).chain([Knower::User(user)]).collect();
    Some(Box::new(merged(knowers.into_iter().map(move |knower| tasks.known_to(knower, after)))))
}

/// Who may know of a task, beside those who know of all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Knower {
    User(UserId),
    /// The user of this agent.
    Agent(AgentId),
    /// The user of the agent that has this name.
    Name(Box<str>),
}

/// Whoever [`is_known`] may let know of a task.
fn knowers(task: &Task) -> Vec<Knower> {
    if let Some(user) = task.user {
        return vec![Knower::User(user)];
    }
    let named = |owner: &str| owner.parse::<AgentId>().map_or_else(|_| Knower::Name(owner.into()), Knower::Agent);
    let agents = [task.posted_by, task.claimed_by].into_iter().flatten().map(Knower::Agent);
    agents.chain(task.owner().map(named)).collect()
}

/// Tasks by all that the queue asks for.
#[derive(Debug, Default, PartialEq)]
pub struct TaskPlaces {
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
    /// The same, by whose share they take.
    ended_of: Kept<TaskId>,
    /// All of them, by who may know of each.
    known_to: BTreeSet<(Knower, TaskId)>,
    /// What each holder takes of the queue: the open tasks, and their bytes.
    pub(super) shares: Shares,
    /// The bytes of all tasks of each holder, those that ended included.
    pub(super) kept: Shares,
    /// How many there are in each state, in the order of [`TaskState::ALL`].
    counts: [usize; TaskState::ALL.len()],
}

/// The first of all ids.
const FIRST: TaskId = TaskId(uuid::Uuid::nil());

/// Under which key a waiting task stands: the agent's id in its one spelling, or the name as given; for those that
/// whoever comes first may take, [`open_key`].
fn owner_key(task: &Task) -> Box<str> {
    let Some(owner) = task.owner() else { return open_key(task.user) };
    owner.parse::<AgentId>().map_or_else(|_| owner.into(), |id| id.to_string().into())
}

/// Under which key tasks stand that any agent may take, or any agent of a user: no name has a NUL.
fn open_key(user: Option<UserId>) -> Box<str> {
    user.map_or_else(Box::default, |user| format!("\0{user}").into())
}

/// Adds to a set, or takes out of it.
fn put<T: Ord>(set: &mut BTreeSet<T>, is_in: bool, one: T) {
    if is_in {
        set.insert(one);
    } else {
        set.remove(&one);
    }
}

impl TaskPlaces {
    /// How many are in this state.
    pub(crate) const fn count(&self, state: TaskState) -> usize {
        self.counts[state as usize]
    }

    /// The waiting task that was posted before all others.
    pub(super) fn oldest_waiting(&self) -> Option<TaskId> {
        self.waiting.first().copied()
    }

    /// The oldest task that waits for the agent `id` called `name` and `is_for` it, or else for any agent, or any of `user`.
    pub(super) fn next_for(
        &self,
        id: AgentId,
        name: &str,
        user: Option<UserId>,
        is_for: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        let first = |key: &str| self.waiting_as(key).find(|id| is_for(*id));
        let own = [first(&id.to_string()), first(name)];
        own.into_iter().flatten().min().or_else(|| self.waiting_as(&open_key(user)).next())
    }

    fn waiting_as<'a>(&'a self, key: &'a str) -> impl Iterator<Item = TaskId> + 'a {
        let from = self.waiting_for.range((Box::from(key), FIRST)..);
        from.take_while(move |(owner, _)| **owner == *key).map(|(_, id)| *id)
    }

    /// The oldest claim, when it was made at `until` or before.
    pub(super) fn claim_until(&self, until: Timestamp) -> Option<TaskId> {
        self.claims.first().filter(|(at, _)| *at <= until).map(|(_, id)| *id)
    }

    /// The tasks that were claimed after `moment`.
    pub(super) fn claims_after(&self, moment: Timestamp) -> Vec<TaskId> {
        let later = self.claims.iter().rev().take_while(|(at, _)| *at > moment);
        later.map(|(_, id)| *id).collect()
    }

    /// When the oldest claim was made.
    pub(super) fn first_claim(&self) -> Option<Timestamp> {
        self.claims.first().map(|(at, _)| *at)
    }

    /// The tasks that `agent` has claimed.
    pub(super) fn claims_of(&self, agent: AgentId) -> impl Iterator<Item = TaskId> + '_ {
        self.claims_of.range((agent, FIRST)..).take_while(move |(owner, _)| *owner == agent).map(|(_, id)| *id)
    }

    /// The ended task to forget, when more than [`limit::TASKS_ENDED_MAX`] are kept: the oldest of whoever keeps most.
    pub(super) fn ended_over(&self) -> Option<TaskId> {
        self.ended_of.by_count().next().filter(|_| self.ended.len() > limit::TASKS_ENDED_MAX)
    }

    /// The ended task to forget because all tasks of whoever's it is take more bytes than their share; others' stay.
    pub(super) fn ended_over_of(&self, holder: Holder) -> Option<TaskId> {
        if !self.kept.is_over(&QUOTA, holder) {
            return None;
        }
        self.ended_of.oldest_of(holder)
    }

    /// The tasks of which `knower` may know, from after `after` on.
    fn known_to(&self, knower: Knower, after: Option<TaskId>) -> impl Iterator<Item = TaskId> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = (knower.clone(), after.unwrap_or(FIRST));
        let found = self.known_to.range((Excluded(from), Unbounded));
        found.take_while(move |(of, _)| *of == knower).map(|(_, id)| *id)
    }

    fn place(&mut self, id: TaskId, task: &Task, is_in: bool) {
        for knower in knowers(task) {
            put(&mut self.known_to, is_in, (knower, id));
        }
        match task.state {
            TaskState::Pending => {
                put(&mut self.waiting, is_in, id);
                put(&mut self.waiting_for, is_in, (owner_key(task), id));
            }
            TaskState::Running => {
                put(&mut self.claims, is_in, (task.claimed_at.unwrap_or_default(), id));
                if let Some(agent) = task.claimed_by {
                    put(&mut self.claims_of, is_in, (agent, id));
                }
            }
            TaskState::Completed | TaskState::Failed | TaskState::Cancelled => {
                let at = task.ended_at.unwrap_or_default();
                put(&mut self.ended, is_in, (at, id));
                match is_in {
                    true => self.ended_of.insert(task.holder, at, id, task.bytes()),
                    false => self.ended_of.remove(task.holder, at, id, task.bytes()),
                }
            }
        }
    }
}

impl Places<Task> for TaskPlaces {
    fn insert(&mut self, id: TaskId, task: &Task) {
        self.counts[task.state as usize] += 1;
        if task.state.is_open() {
            self.shares.add(task.holder, 1, task.bytes());
        }
        self.kept.add(task.holder, 0, task.bytes());
        self.place(id, task, true);
    }

    fn remove(&mut self, id: TaskId, task: &Task) {
        self.counts[task.state as usize] -= 1;
        if task.state.is_open() {
            self.shares.remove(task.holder, 1, task.bytes());
        }
        self.kept.remove(task.holder, 0, task.bytes());
        self.place(id, task, false);
    }
}

/// What tasks may take: so many open ones, and the bytes of all. A share of it bounds the open ones and their bytes; what ended
/// makes room (see [`forget_ended`](super::remove::forget_ended)).
const QUOTA: Quota = Quota {
    count: limit::TASKS_OPEN_MAX,
    bytes: limit::TASKS_BYTES_MAX,
    what: "open tasks",
    code: error_codes::TASKS_FULL,
};

/// Is there room for this task among the open ones? One that ended is among all tasks already.
pub(super) fn has_room(tasks: &Tasks, task: &Task) -> Result<(), Refusal> {
    let more = if task.state.is_open() { task.bytes() } else { 0 };
    let full = |what: String| {
        let text = format!("the task queue is full: {what}; complete or delete some first");
        Err(Refusal::full(text, error_codes::TASKS_FULL))
    };
    if tasks.count(TaskState::Pending) + tasks.count(TaskState::Running) >= limit::TASKS_OPEN_MAX {
        return full(format!("{} tasks are open", limit::TASKS_OPEN_MAX));
    }
    if tasks.used.bytes + more > limit::TASKS_BYTES_MAX {
        return full(format!("tasks may take {} bytes", limit::TASKS_BYTES_MAX));
    }
    tasks.shares.admit(&QUOTA, task.holder, 1, task.bytes())
}

/// Prepares a new world for tasks.
pub(crate) fn install(world: &mut World) {
    entities::install::<Task>(world);
    world.init_resource::<Throughput>();
    on(world, |world, gone: &Removed<AgentId>| super::agent_removed(world, gone.id));
    inherits(world, |world, event, _, inherited| {
        if let Event::TaskPosted { task, .. } | Event::TaskCompleted { task, .. } | Event::TaskFailed { task, .. } =
            event
            && let Some(task) = state::<Task>(world, *task)
        {
            inherited.taint = inherited.taint.with(taint::tracked(world, task.taint));
        }
    });
}

/// Behind the tasks that are restored: those that ended give the throughput of the last hour.
pub(crate) fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let ended = world.resource::<Tasks>().ended.iter();
    let ended: Vec<_> = ended.filter_map(|(at, id)| Some((*at, state::<Task>(world, *id)?.state))).collect();
    let mut throughput = world.resource_mut::<Throughput>();
    for (at, state) in ended {
        throughput.note(state, at);
    }
    // The clock may have been set back meanwhile.
    super::clock_set_back(world);
    Ok(())
}

/// Says which index is wrong ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<Task>(world, faults, |_, _, _, _| {});
    let kept = world.resource::<Tasks>().ended.len();
    faults.that(kept <= limit::TASKS_ENDED_MAX, || format!("{kept} ended tasks are kept"));
}
