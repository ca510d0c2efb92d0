//! Where external agents are found: by URL and by name; and sent tasks: by what a repetition is known by, the open ones, and
//! the ended ones by their end.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::World;

use agentsvc_components::Timestamp;
use agentsvc_components::a2a::outbound::{A2aAgent, A2aAgentId, A2aSent, A2aSentId};
use uuid::Uuid;

use crate::a2a::{error_codes, limits};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Places, indexed};
use crate::kernel::kept::Kept;
use crate::kernel::quota::Quota;
use crate::kernel::share::Shares;

/// Every external agent.
pub(in crate::a2a) type ExternalAgents = Entities<A2aAgent>;
/// Every task that was sent.
pub(in crate::a2a) type SentTasks = Entities<A2aSent>;

/// What external agents may take.
pub(super) const QUOTA: Quota = Quota {
    count: limits::A2A_EXTERNAL_AGENTS_MAX,
    bytes: limits::A2A_EXTERNAL_AGENTS_BYTES_MAX,
    what: "external A2A agents",
    code: error_codes::A2A_EXTERNAL_AGENTS_FULL,
};

indexed!(A2aAgent: AgentPlaces, "external A2A agent");

/// External agents by what people call them.
#[derive(Debug, Default, PartialEq)]
pub struct AgentPlaces {
    by_url: BTreeMap<Box<str>, A2aAgentId>,
    by_name: BTreeMap<Box<str>, A2aAgentId>,
}

impl AgentPlaces {
    /// The one that was discovered at this URL.
    pub(super) fn by_url(&self, url: &str) -> Option<A2aAgentId> {
        self.by_url.get(url).copied()
    }

    /// The one of this name.
    pub(super) fn by_name(&self, name: &str) -> Option<A2aAgentId> {
        self.by_name.get(name).copied()
    }
}

impl Places<A2aAgent> for AgentPlaces {
    fn insert(&mut self, id: A2aAgentId, agent: &A2aAgent) {
        self.by_url.insert(agent.url.clone(), id);
        self.by_name.insert(agent.name.clone(), id);
    }

    fn remove(&mut self, _: A2aAgentId, agent: &A2aAgent) {
        self.by_url.remove(&agent.url);
        self.by_name.remove(&agent.name);
    }
}

indexed!(A2aSent: SentPlaces, "sent A2A task");

/// Sent tasks by all that is asked of them.
#[derive(Debug, Default, PartialEq)]
pub struct SentPlaces {
    by_key: BTreeMap<Box<str>, A2aSentId>,
    /// The open ones, by external agent.
    open: BTreeSet<(A2aAgentId, A2aSentId)>,
    /// The ended ones, the oldest end first.
    ended: BTreeSet<(Timestamp, A2aSentId)>,
    /// How many open ones each holder has.
    pub(super) shares: Shares,
    /// The ended ones, by whose share they take.
    pub(super) kept: Kept<A2aSentId>,
    /// All of them, the oldest first.
    by_age: BTreeSet<(Timestamp, A2aSentId)>,
}

impl SentPlaces {
    /// The task that this key names.
    pub(super) fn by_key(&self, key: &str) -> Option<A2aSentId> {
        self.by_key.get(key).copied()
    }

    /// How many are open.
    pub(in crate::a2a) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The open ones of an external agent.
    pub(super) fn open_of(&self, agent: A2aAgentId) -> Vec<A2aSentId> {
        let all = (agent, A2aSentId(Uuid::nil()))..=(agent, A2aSentId(Uuid::max()));
        self.open.range(all).map(|(_, id)| *id).collect()
    }

    /// When those were added that were added between two moments, the oldest first.
    pub(super) fn since(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let all = (from, A2aSentId(Uuid::nil()))..=(to, A2aSentId(Uuid::max()));
        self.by_age.range(all).map(|(at, _)| *at)
    }

    /// The ended ones, the oldest end first.
    pub(super) fn ended(&self) -> impl DoubleEndedIterator<Item = (Timestamp, A2aSentId)> + '_ {
        self.ended.iter().copied()
    }
}

impl Places<A2aSent> for SentPlaces {
    fn insert(&mut self, id: A2aSentId, task: &A2aSent) {
        if !task.key.is_empty() {
            self.by_key.insert(task.key.clone(), id);
        }
        self.by_age.insert((task.created_at, id));
        match task.ended_at {
            None => {
                self.open.insert((task.to, id));
                self.shares.add(task.holder, 1, 0);
            }
            Some(at) => {
                self.ended.insert((at, id));
                self.kept.insert(task.holder, at, id, task.bytes());
            }
        }
    }

    fn remove(&mut self, id: A2aSentId, task: &A2aSent) {
        self.by_key.remove(&task.key);
        self.by_age.remove(&(task.created_at, id));
        match task.ended_at {
            None => {
                self.open.remove(&(task.to, id));
                self.shares.remove(task.holder, 1, 0);
            }
            Some(at) => {
                self.ended.remove(&(at, id));
                self.kept.remove(task.holder, at, id, task.bytes());
            }
        }
    }
}

/// Says which index is wrong, and which open task has no job, or no external agent.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<A2aAgent>(world, faults, |_, _, _, _| {});
    QUOTA.check(world.resource::<ExternalAgents>().used, faults);
    let mut with_jobs = super::settle::with_jobs(world);
    entities::check::<A2aSent>(world, faults, |world, id, task, faults| {
        let is_open = task.state.is_open();
        faults.that(task.ended_at.is_none() == is_open, || format!("sent A2A task {id}: {:?}", task.state));
        let jobs = with_jobs.get(&id).copied().unwrap_or_default();
        faults.that(jobs == usize::from(is_open), || format!("sent A2A task {id}: {:?}, {jobs} jobs", task.state));
        let has_agent = entities::state::<A2aAgent>(world, task.to).is_some();
        faults.that(!is_open || has_agent, || format!("sent A2A task {id}: its external agent does not exist"));
    });
    let tasks = world.resource::<SentTasks>();
    with_jobs.retain(|id, _| tasks.get(*id).is_none());
    faults.that(with_jobs.is_empty(), || format!("{} jobs of A2A tasks that do not exist", with_jobs.len()));
    let (count, bytes) = (tasks.used.count, tasks.used.bytes);
    faults.that(count <= limits::A2A_SENT_MAX, || format!("there are {count} sent A2A tasks"));
    faults.that(bytes <= limits::A2A_SENT_BYTES_MAX, || format!("sent A2A tasks take {bytes} bytes"));
}
