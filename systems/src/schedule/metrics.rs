//! Metrics of schedules and cron jobs.

use super::ScheduleTotals;
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_schedules", "Schedules.", |world, out| out.value(super::counts(world).0)),
    Metric::gauge("agentsvc_cron_jobs", "Cron jobs.", |world, out| out.value(super::counts(world).1)),
    Metric::counter(
        "agentsvc_schedule_outcomes_total",
        "Slots and turns of schedules and cron jobs, by outcome.",
        |world, out| {
            for (outcome, count) in world.resource::<ScheduleTotals>().0.counts() {
                out.labelled(("outcome", outcome), count);
            }
        },
    ),
];
