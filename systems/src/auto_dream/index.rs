//! Where dreaming is found: by when an agent is to be looked at, and by when a run is to be stopped.

use std::collections::BTreeSet;

use agentsvc_components::auto_dream::{Dream, DreamId};
use agentsvc_components::{AgentId, Timestamp};
use bevy_ecs::prelude::World;

use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Indexed, Places};
use crate::kernel::index;
use crate::session;

/// The dreaming of every agent that has any.
pub(crate) type Dreams = Entities<Dream>;

impl Indexed for Dream {
    type Places = DreamPlaces;
    const NOUN: &'static str = "auto-dream";

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

/// Dreaming by time.
#[derive(Debug, Default, PartialEq)]
pub struct DreamPlaces {
    /// Agents that are switched on and do not run, by when they are looked at.
    due: BTreeSet<(Timestamp, DreamId)>,
    /// Runs that nothing has told to stop, by when they are stopped.
    deadlines: BTreeSet<(Timestamp, DreamId)>,
    running: BTreeSet<DreamId>,
    enabled: usize,
}

impl DreamPlaces {
    /// Those that are looked at first.
    pub(super) fn due(&self) -> impl DoubleEndedIterator<Item = (Timestamp, DreamId)> + '_ {
        self.due.iter().copied()
    }

    /// The runs that are stopped first.
    pub(super) fn deadlines(&self) -> impl DoubleEndedIterator<Item = (Timestamp, DreamId)> + '_ {
        self.deadlines.iter().copied()
    }

    /// Those that run.
    pub(super) fn all_running(&self) -> impl Iterator<Item = DreamId> + '_ {
        self.running.iter().copied()
    }

    /// How many runs are under way.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// How many agents are switched on.
    pub(super) const fn enabled(&self) -> usize {
        self.enabled
    }
}

impl Places<Dream> for DreamPlaces {
    fn insert(&mut self, id: DreamId, dream: &Dream) {
        self.enabled += usize::from(dream.enabled);
        match &dream.run {
            Some(run) => {
                self.running.insert(id);
                if run.ending.is_none() {
                    self.deadlines.insert((run.deadline, id));
                }
            }
            None if dream.enabled => {
                self.due.insert((dream.check_at, id));
            }
            None => {}
        }
    }

    fn remove(&mut self, id: DreamId, dream: &Dream) {
        self.enabled -= usize::from(dream.enabled);
        self.due.remove(&(dream.check_at, id));
        self.running.remove(&id);
        if let Some(run) = &dream.run {
            self.deadlines.remove(&(run.deadline, id));
        }
    }
}

/// Says which index is wrong, which dreaming lacks its agent, and which run its turn ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<Dream>(world, faults, |world, id, dream, faults| {
        let agent = AgentId(id.0);
        faults.that(index::agent(world, agent).is_ok(), || format!("auto-dream {id}: the agent does not exist"));
        let Some(run) = &dream.run else { return };
        let has_turn = index::turn(world, run.turn).is_some();
        faults.that(has_turn, || format!("auto-dream {id}: the turn of its run does not exist"));
        let is_hidden = session::existing(world, run.session).is_err();
        faults.that(is_hidden, || format!("auto-dream {id}: the session of its run is shown"));
    });
}
