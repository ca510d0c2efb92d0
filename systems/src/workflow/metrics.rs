//! Metrics of workflows.

use bevy_ecs::prelude::Resource;

use super::{Definitions, Workflows};
use crate::kernel::metric::Metric;

/// Workflow runs since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct RunTotals {
    /// Runs that came to their end.
    pub(super) completed: u64,
    /// Runs that failed.
    pub(super) failed: u64,
    /// Runs that were cancelled.
    pub(super) cancelled: u64,
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_workflows", "Workflow definitions.", |world, out| {
        out.value(world.resource::<Definitions>().len())
    }),
    Metric::gauge("agentsvc_workflow_runs_open", "Open workflow runs.", |world, out| {
        out.value(world.resource::<Workflows>().open())
    }),
    Metric::counter("agentsvc_workflow_runs_total", "Ended workflow runs, by outcome.", |world, out| {
        let totals = world.resource::<RunTotals>();
        out.labelled(("end", "completed"), totals.completed);
        out.labelled(("end", "failed"), totals.failed);
        out.labelled(("end", "cancelled"), totals.cancelled);
    }),
];
