//! What comes of slots and turns: counted for each schedule and for the daemon.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
pub(super) use agentsvc_components::schedule::SlotOutcome as Outcome;
use agentsvc_components::schedule::{Past, RunResult, Schedule};

use super::ScheduleTotals;
use crate::kernel::clock::Now;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::rehearsal::{self, Note};

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
    rehearsal::note(world, |world| Note::Slot {
        schedule: id_of(world, entity),
        outcome,
        last,
        count,
        why: why.into(),
    });
    let at = world.resource::<Now>().0;
    outcome.add(&mut world.resource_mut::<ScheduleTotals>().0, count);
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
