//! Metrics of compactions.

use bevy_ecs::prelude::Resource;

use super::Compactions;
use crate::kernel::metric::Metric;

/// Compactions since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub struct CompactionTotals {
    /// Those that ended in a summary.
    pub completed: u64,
    /// Those that ended without one.
    pub failed: u64,
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_compactions_open", "Sessions being compacted.", |world, out| {
        out.value(world.resource::<Compactions>().len())
    }),
    Metric::counter("agentsvc_compactions_total", "Ended compactions, by outcome.", |world, out| {
        let totals = world.resource::<CompactionTotals>();
        out.labelled(("end", "completed"), totals.completed);
        out.labelled(("end", "failed"), totals.failed);
    }),
];
