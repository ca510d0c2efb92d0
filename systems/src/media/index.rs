//! Where media tasks are found: by what a repetition is known by, by agent, and the ended ones by their end.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::media::{MediaTask, MediaTaskId};
use agentsvc_components::{AgentId, Timestamp};
use bevy_ecs::prelude::World;
use uuid::Uuid;

use super::{limits, settle};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Places, indexed};
use crate::kernel::index;
use crate::kernel::kept::Kept;
use crate::kernel::share::Shares;

/// Every media task.
pub(super) type MediaTasks = Entities<MediaTask>;

indexed!(MediaTask: MediaPlaces, "media task");

/// Media tasks by all that is asked of them.
#[derive(Debug, Default, PartialEq)]
pub struct MediaPlaces {
    by_key: BTreeMap<Box<str>, MediaTaskId>,
    /// Those of agents.
    of: BTreeSet<(AgentId, MediaTaskId)>,
    /// How many are open, by agent; clients of the API have the nil id.
    open: BTreeMap<AgentId, usize>,
    /// The ended ones, the oldest end first.
    ended: BTreeSet<(Timestamp, MediaTaskId)>,
    /// How many open ones each holder has.
    pub(super) shares: Shares,
    /// The ended ones, by whose share they take.
    pub(super) kept: Kept<MediaTaskId>,
}

impl MediaPlaces {
    /// The task that this key names.
    pub(super) fn by_key(&self, key: &str) -> Option<MediaTaskId> {
        self.by_key.get(key).copied()
    }

    /// Those of an agent.
    pub(super) fn of(&self, agent: AgentId) -> Vec<MediaTaskId> {
        let all = (agent, MediaTaskId(Uuid::nil()))..=(agent, MediaTaskId(Uuid::max()));
        self.of.range(all).map(|(_, id)| *id).collect()
    }

    /// How many are open.
    pub(super) fn open_count(&self) -> usize {
        self.open.values().sum()
    }

    /// How many of an agent are open, or of clients of the API.
    pub(super) fn open_of(&self, agent: Option<AgentId>) -> usize {
        self.open.get(&owner(agent)).copied().unwrap_or_default()
    }

    /// The ended ones, the oldest end first.
    pub(super) fn ended(&self) -> impl DoubleEndedIterator<Item = (Timestamp, MediaTaskId)> + '_ {
        self.ended.iter().copied()
    }
}

/// The agent, or what stands for clients of the API.
pub(super) fn owner(agent: Option<AgentId>) -> AgentId {
    agent.unwrap_or(AgentId(Uuid::nil()))
}

impl Places<MediaTask> for MediaPlaces {
    fn insert(&mut self, id: MediaTaskId, task: &MediaTask) {
        if !task.key.is_empty() {
            self.by_key.insert(task.key.clone(), id);
        }
        self.of.extend(task.agent.map(|agent| (agent, id)));
        match task.ended_at {
            None => {
                *self.open.entry(owner(task.agent)).or_default() += 1;
                self.shares.add(task.holder, 1, 0);
            }
            Some(at) => {
                self.ended.insert((at, id));
                self.kept.insert(task.holder, at, id, task.bytes());
            }
        }
    }

    fn remove(&mut self, id: MediaTaskId, task: &MediaTask) {
        self.by_key.remove(&task.key);
        if let Some(agent) = task.agent {
            self.of.remove(&(agent, id));
        }
        match task.ended_at {
            None => {
                if let Some(count) = self.open.get_mut(&owner(task.agent)) {
                    *count -= 1;
                }
                self.open.retain(|_, count| *count > 0);
                self.shares.remove(task.holder, 1, 0);
            }
            Some(at) => {
                self.ended.remove(&(at, id));
                self.kept.remove(task.holder, at, id, task.bytes());
            }
        }
    }
}

/// Says which index is wrong, and which open task has no job or no agent.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut with_jobs = settle::with_jobs(world);
    entities::check::<MediaTask>(world, faults, |world, id, task, faults| {
        let is_open = task.state.is_open();
        faults.that(task.ended_at.is_none() == is_open, || format!("media task {id}: {:?}", task.state));
        let jobs = with_jobs.get(&id).copied().unwrap_or_default();
        faults.that(jobs == usize::from(is_open), || format!("media task {id}: {:?}, {jobs} jobs", task.state));
        let has_agent = task.agent.is_none_or(|agent| index::agent(world, agent).is_ok());
        faults.that(has_agent, || format!("media task {id}: its agent does not exist"));
        faults.that(is_open || task.grant.is_none(), || format!("media task {id}: ended, and a call is out"));
    });
    let tasks = world.resource::<MediaTasks>();
    with_jobs.retain(|id, _| tasks.get(*id).is_none());
    faults.that(with_jobs.is_empty(), || format!("{} jobs of media tasks that do not exist", with_jobs.len()));
    let (count, open) = (tasks.used.count, tasks.open_count());
    faults.that(count <= limits::MEDIA_TASKS_MAX, || format!("there are {count} media tasks"));
    faults.that(open <= limits::MEDIA_OPEN_MAX, || format!("{open} media tasks are open"));
}
