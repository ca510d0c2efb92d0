//! Where tasks are found: by what a repetition is known by, the open ones by age, the ended ones by their end, and how many
//! there are of each conversation.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::World;

use agentsvc_components::a2a::{A2aDay, A2aTask, A2aTaskId};
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
    }

    fn remove(&mut self, id: A2aTaskId, task: &A2aTask) {
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
        0
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
