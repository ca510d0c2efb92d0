//! Metrics of memory entries.

use bevy_ecs::prelude::Resource;

use crate::kernel::metric::Metric;

/// Facts of turns since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct FactTotals {
    /// Facts that became memory entries.
    pub(super) added: u64,
    /// Facts that took the place of what a memory entry said.
    pub(super) updated: u64,
    /// Memory entries that a turn contradicted, and that were deleted.
    pub(super) deleted: u64,
    /// Facts that a memory entry said already.
    pub(super) unchanged: u64,
}

pub(super) const ALL: &[Metric] = &[Metric::counter(
    "agentsvc_memory_facts_total",
    "Facts found in turns, by what they did to memory entries.",
    |world, out| {
        let totals = world.resource::<FactTotals>();
        out.labelled(("action", "added"), totals.added);
        out.labelled(("action", "updated"), totals.updated);
        out.labelled(("action", "deleted"), totals.deleted);
        out.labelled(("action", "noop"), totals.unchanged);
    },
)];
