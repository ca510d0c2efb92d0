//! Where tasks are found: by what a repetition is known by, the open ones by age, the ended ones by their end, and how many
//! there are of each conversation.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::World;

use agentsvc_components::a2a::{A2aDay, A2aTask, A2aTaskId, is_stranger};
use agentsvc_components::{SessionId, Timestamp};

use super::limits;
use super::restart::Lost;
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Indexed, Places, indexed};
use crate::kernel::index;

/// Every task.
pub(super) type Tasks = Entities<A2aTask>;
/// What tasks cost on the newest day.
pub(super) type Days = Entities<A2aDay>;

indexed!(A2aTask: TaskPlaces, "A2A task");

/// Tasks by all that is asked of them.
#[derive(Debug, Default, PartialEq)]
pub struct TaskPlaces {
    /// By what a repetition is known by.
    by_key: BTreeMap<Box<str>, A2aTaskId>,
    /// Those that are open, the oldest first.
    open: BTreeSet<(Timestamp, A2aTaskId)>,
    /// Those that have ended, the oldest end first.
    ended: BTreeSet<(Timestamp, A2aTaskId)>,
    /// How many there are of each conversation.
    of_session: BTreeMap<SessionId, usize>,
    /// The same of those whose client showed a key, by client.
    known: BTreeMap<(SessionId, Box<str>), usize>,
    /// How many are open of each client, and of all without a key.
    open_of: BTreeMap<Box<str>, usize>,
    open_of_strangers: usize,
    /// What each client keeps; all without a key under the empty name.
    kept: BTreeMap<Box<str>, Kept>,
}

/// The tasks of one client.
#[derive(Debug, Default, PartialEq)]
struct Kept {
    count: usize,
    bytes: usize,
    /// Those that have ended, the oldest end first.
    ended: BTreeSet<(Timestamp, A2aTaskId)>,
}

/// Adds to a count; one that is nothing has no entry.
fn count<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K, is_more: bool) {
    let sum = counts.remove(&key).unwrap_or(0);
    let sum = if is_more { sum + 1 } else { sum.saturating_sub(1) };
    if sum > 0 {
        counts.insert(key, sum);
    }
}

impl TaskPlaces {
    /// The task that this key names.
    pub(super) fn by_key(&self, key: &str) -> Option<A2aTaskId> {
        self.by_key.get(key).copied()
    }

    /// How many are open.
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// How many are open of a client, and of all that showed a key or of all that showed none.
    pub(super) fn open_beside(&self, client: &str) -> (usize, usize) {
        let strangers = self.open_of_strangers;
        let together = if is_stranger(client) { strangers } else { self.open.len() - strangers };
        (self.open_of.get(client).copied().unwrap_or(0), together)
    }

    /// The client with a key whose conversation this is.
    pub(super) fn known_client(&self, session: SessionId) -> Option<&str> {
        let mut of = self.known.range((session, Box::from(""))..);
        of.next().filter(|((of, _), _)| *of == session).map(|((_, client), _)| &**client)
    }

    /// The task that goes first where there are too many, or too many bytes: the one that ended first of the client that has
    /// the most of them.
    pub(super) fn dispensable(&self, by_bytes: bool) -> Option<A2aTaskId> {
        let size = |kept: &&Kept| if by_bytes { kept.bytes } else { kept.count };
        let most = self.kept.values().filter(|kept| !kept.ended.is_empty()).max_by_key(size)?;
        most.ended.first().map(|(_, id)| *id)
    }

    /// Counts a task that comes, or one that goes.
    fn count(&mut self, id: A2aTaskId, task: &A2aTask, is_more: bool) {
        let is_stranger = task.is_of_stranger();
        if !is_stranger {
            count(&mut self.known, (task.session, task.client.clone()), is_more);
        }
        if task.ended_at.is_none() {
            count(&mut self.open_of, task.client.clone(), is_more);
            let (strangers, one) = (self.open_of_strangers, usize::from(is_stranger));
            self.open_of_strangers = if is_more { strangers + one } else { strangers.saturating_sub(one) };
        }
        let name = if is_stranger { Box::default() } else { task.client.clone() };
        let kept = self.kept.entry(name.clone()).or_default();
        if is_more {
            (kept.count, kept.bytes) = (kept.count + 1, kept.bytes + task.bytes());
            kept.ended.extend(task.ended_at.map(|at| (at, id)));
            return;
        }
        (kept.count, kept.bytes) = (kept.count.saturating_sub(1), kept.bytes.saturating_sub(task.bytes()));
        if let Some(at) = task.ended_at {
            kept.ended.remove(&(at, id));
        }
        if kept.count == 0 {
            self.kept.remove(&name);
        }
    }

    /// The open ones, the oldest first.
    pub(super) fn open(&self) -> impl Iterator<Item = (Timestamp, A2aTaskId)> + '_ {
        self.open.iter().copied()
    }

    /// The ended ones, the oldest end first.
    pub(super) fn ended(&self) -> impl DoubleEndedIterator<Item = (Timestamp, A2aTaskId)> + '_ {
        self.ended.iter().copied()
    }

    /// Is there a task of this conversation?
    pub(super) fn knows(&self, session: SessionId) -> bool {
        self.of_session.contains_key(&session)
    }
}

impl Places<A2aTask> for TaskPlaces {
    fn insert(&mut self, id: A2aTaskId, task: &A2aTask) {
        if !task.key.is_empty() {
            self.by_key.insert(task.key.clone(), id);
        }
        match task.ended_at {
            None => self.open.insert((task.created_at, id)),
            Some(at) => self.ended.insert((at, id)),
        };
        *self.of_session.entry(task.session).or_default() += 1;
        self.count(id, task, true);
    }

    fn remove(&mut self, id: A2aTaskId, task: &A2aTask) {
        self.count(id, task, false);
        self.by_key.remove(&task.key);
        match task.ended_at {
            None => self.open.remove(&(task.created_at, id)),
            Some(at) => self.ended.remove(&(at, id)),
        };
        if let Some(count) = self.of_session.get_mut(&task.session) {
            *count -= 1;
            if *count == 0 {
                self.of_session.remove(&task.session);
            }
        }
    }
}

impl Indexed for A2aDay {
    type Places = ();
    const NOUN: &'static str = "day of A2A tasks";

    fn bytes(&self) -> usize {
        self.known.keys().map(|client| client.len() + size_of::<Self>()).sum()
    }
}

/// Says which index is wrong, and which task lacks its turn ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<A2aTask>(world, faults, |world, id, task, faults| {
        let is_open = task.state.is_open();
        faults.that(task.ended_at.is_none() == is_open, || format!("A2A task {id}: {:?}", task.state));
        let has_turn = index::turn(world, task.turn).is_some() || world.resource::<Lost>().has(id);
        faults.that(!is_open || has_turn, || format!("A2A task {id}: it is open and has no turn"));
    });
    let tasks = world.resource::<Tasks>();
    let (count, bytes) = (tasks.used.count, tasks.used.bytes);
    faults.that(count <= limits::A2A_TASKS_MAX, || format!("there are {count} A2A tasks"));
    faults.that(bytes <= limits::A2A_TASKS_BYTES_MAX, || format!("A2A tasks take {bytes} bytes"));
    entities::check::<A2aDay>(world, faults, |_, _, _, _| {});
    let days = world.resource::<Days>().len();
    faults.that(days <= 1, || format!("there are {days} days of A2A tasks"));
}
