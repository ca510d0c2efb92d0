//! Metrics of jobs, and of outcomes.

use super::{JobCounts, jobs};
use crate::kernel::counters::StaleOutcomes;
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_jobs", "Jobs, by kind and state.", |world, out| {
        for (kind, JobCounts { waiting, out: tried, .. }) in jobs(world).counts() {
            out.push([("kind", kind), ("state", "waiting")], waiting);
            out.push([("kind", kind), ("state", "out")], tried);
        }
    }),
    Metric::counter("agentsvc_jobs_total", "Ended jobs, by kind and outcome.", |world, out| {
        for (kind, JobCounts { done, failed, unknown, .. }) in jobs(world).counts() {
            for (end, count) in [("done", done), ("failed", failed), ("unknown", unknown)] {
                out.push([("kind", kind), ("end", end)], count);
            }
        }
    }),
    Metric::counter(
        "agentsvc_jobs_retried_total",
        "Failed tries of jobs that were tried again, by kind.",
        |world, out| {
            for (kind, JobCounts { retried, .. }) in jobs(world).counts() {
                out.labelled(("kind", kind), retried);
            }
        },
    ),
    Metric::counter(
        "agentsvc_jobs_refused_total",
        "Jobs not added because a limit was reached, by kind.",
        |world, out| {
            for (kind, JobCounts { refused, .. }) in jobs(world).counts() {
                out.labelled(("kind", kind), refused);
            }
        },
    ),
    Metric::counter("agentsvc_outcomes_stale_total", "Outcomes dropped because they came too late.", |world, out| {
        out.value(world.resource::<StaleOutcomes>().0)
    }),
];
