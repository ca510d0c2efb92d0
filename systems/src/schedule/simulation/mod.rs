//! Many schedules and cron jobs live through a month of virtual time, with crashes between and within steps, clocks that
//! jump, agents that stop and people who change things. Every slot must have exactly one outcome, by an independent walk
//! of the rules ([`oracle`]).
//!
//! A mark is left for everything that happens to a slot; the marks of a step count when the step is committed, and are
//! lost with it.

mod fixture;
mod oracle;
mod tests;

use bevy_ecs::prelude::{Entity, Resource, World};

use agentsvc_components::{ScheduleId, Timestamp};

use crate::kernel::index::id_of;
use agentsvc_components::schedule::SlotOutcome as Outcome;

/// What happened to a slot.
#[derive(Clone, Copy, Debug)]
enum Mark {
    /// So many slots up to this one have this outcome.
    Settled(ScheduleId, Outcome, i64, u64),
    /// It waits for an open turn.
    Waits(ScheduleId, i64),
    /// It waits no longer: the next outcome is its.
    Taken(ScheduleId, i64),
}

/// The marks of a step; only worlds of the simulation have it.
#[derive(Resource, Default)]
struct Ledger(Vec<Mark>);

fn note(world: &mut World, entity: Entity, mark: impl FnOnce(ScheduleId) -> Mark) {
    if world.contains_resource::<Ledger>() {
        let id = id_of(world, entity);
        world.resource_mut::<Ledger>().0.push(mark(id));
    }
}

/// So many slots up to `last` have their outcome.
pub(super) fn settled(world: &mut World, entity: Entity, outcome: Outcome, last: Timestamp, count: u64) {
    note(world, entity, |id| Mark::Settled(id, outcome, last.0, count));
}

/// A slot waits for an open turn.
pub(super) fn waits(world: &mut World, entity: Entity, slot: Timestamp) {
    note(world, entity, |id| Mark::Waits(id, slot.0));
}

/// A slot that waited gets its outcome now.
pub(super) fn taken(world: &mut World, entity: Entity, slot: Timestamp) {
    note(world, entity, |id| Mark::Taken(id, slot.0));
}

/// A small deterministic generator (SplitMix64), so that a failing run can be repeated from its seed.
struct Rng(u64);

impl Rng {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: i64) -> i64 {
        (self.roll() % bound.max(1).unsigned_abs()).cast_signed()
    }

    /// True `times` times of 100,000.
    fn rare(&mut self, times: i64) -> bool {
        self.below(100_000) < times
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as i64)).unwrap_or(0)]
    }
}
