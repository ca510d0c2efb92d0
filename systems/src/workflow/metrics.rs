//! Metrics of workflows.

use super::{Definitions, Workflows};
use crate::kernel::metric::{Metric, totals};

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_workflows", "Workflow definitions.", |world, out| {
        out.value(world.resource::<Definitions>().len())
    }),
    Metric::gauge("agentsvc_workflow_runs_open", "Open workflow runs.", |world, out| {
        out.value(world.resource::<Workflows>().open())
    }),
    Metric::counter("agentsvc_workflow_runs_total", "Ended workflow runs, by outcome.", |world, out| {
        let totals = totals(world);
        out.labelled(("end", "completed"), totals.workflow_runs_completed);
        out.labelled(("end", "failed"), totals.workflow_runs_failed);
        out.labelled(("end", "cancelled"), totals.workflow_runs_cancelled);
    }),
];
