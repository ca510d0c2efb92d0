//! What comes of slots and turns: counted for each schedule and for the daemon.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::{Past, RunResult, RunStatus, Schedule, Tally};

use crate::kernel::clock::Now;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::kernel::stats::Counters;
use crate::kernel::watch;
use crate::kernel::watch::Note;

/// What came of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It began a turn.
    Fired,
    /// It passed unnoticed.
    Missed,
    /// A turn was open.
    Overlapped,
    /// There was no room.
    Refused,
    /// The agent did not run.
    AgentStopped,
    /// The agent had no budget left.
    OverBudget,
}

impl Outcome {
    fn add(self, tally: &mut Tally, count: u64) {
        *match self {
            Self::Fired => &mut tally.fired,
            Self::Missed => &mut tally.missed,
            Self::Overlapped => &mut tally.overlapped,
            Self::Refused => &mut tally.refused,
            Self::AgentStopped => &mut tally.agent_stopped,
            Self::OverBudget => &mut tally.over_budget,
        } += count;
    }

    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self.status() {
            None => "fired",
            Some(status) => status.as_str(),
        }
    }

    /// How a slot without a turn shows as the last result.
    const fn status(self) -> Option<RunStatus> {
        match self {
            Self::Fired => None,
            Self::Missed => Some(RunStatus::Missed),
            Self::Overlapped => Some(RunStatus::Overlapped),
            Self::Refused => Some(RunStatus::Refused),
            Self::AgentStopped => Some(RunStatus::AgentStopped),
            Self::OverBudget => Some(RunStatus::OverBudget),
        }
    }
}

/// The past of a schedule, made when it has none; marks it.
pub(super) fn past<T>(world: &mut World, entity: Entity, change: impl FnOnce(&mut Past) -> T) -> Option<T> {
    let mut schedule = world.get_mut::<Schedule>(entity)?;
    let changed = change(schedule.past.get_or_insert_default());
    world.mark(entity);
    Some(changed)
}

/// Notes what came of `count` slots of which `last` is the last. `why` is a sentence, for those that began nothing.
pub(super) fn note(world: &mut World, entity: Entity, outcome: Outcome, last: Timestamp, count: u64, why: &str) {
    #[cfg(test)]
    super::simulation::settled(world, entity, outcome, last, count);
    watch::note(world, |world| Note::Slot { schedule: id_of(world, entity), outcome, last, count, why: why.into() });
    let at = world.resource::<Now>().0;
    outcome.add(&mut world.resource_mut::<Counters>().schedule_outcomes, count);
    past(world, entity, |past| {
        outcome.add(&mut past.tally, count);
        if let Some(status) = outcome.status() {
            let slots = if count == 1 { format!("slot {last}") } else { format!("{count} slots up to {last}") };
            past.last_result = Some(RunResult { status, text: kept(&format!("{slots}: {why}")), at });
        }
    });
}

/// The part of an answer that is kept.
pub(super) fn kept(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(limit::SCHEDULE_RESULT_BYTES_MAX)].into()
}
