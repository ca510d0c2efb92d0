//! Metrics of A2A tasks.

use bevy_ecs::prelude::Resource;

use super::index::Tasks;
use super::spending;
use crate::kernel::metric::Metric;

/// Tasks since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct A2aTotals {
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    pub(super) repeated: u64,
    pub(super) over_budget: u64,
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_a2a_tasks", "A2A tasks that are kept, by state.", |world, out| {
        let tasks = world.resource::<Tasks>();
        out.labelled(("state", "open"), tasks.open_count());
        out.labelled(("state", "ended"), tasks.len() - tasks.open_count());
    }),
    Metric::counter("agentsvc_a2a_tasks_total", "Ended A2A tasks, by outcome.", |world, out| {
        let totals = world.resource::<A2aTotals>();
        out.labelled(("end", "completed"), totals.completed);
        out.labelled(("end", "failed"), totals.failed);
        out.labelled(("end", "cancelled"), totals.cancelled);
    }),
    Metric::counter(
        "agentsvc_a2a_tasks_repeated_total",
        "A2A tasks that were sent again under the same id.",
        |world, out| out.value(world.resource::<A2aTotals>().repeated),
    ),
    Metric::counter(
        "agentsvc_a2a_over_budget_total",
        "A2A tasks refused because the daily limit was used up.",
        |world, out| out.value(world.resource::<A2aTotals>().over_budget),
    ),
    Metric::gauge("agentsvc_a2a_spent_usd", "What A2A tasks have cost today, in dollars.", |world, out| {
        out.value(spending::spent(world).usd())
    }),
];
