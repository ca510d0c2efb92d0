//! Metrics of A2A tasks.

use bevy_ecs::prelude::Resource;

use super::index::Tasks;
use super::outbound::{ExternalAgents, SentTasks, SentTotals};
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
        out.value(spending::spent_by_all(world).usd())
    }),
    Metric::gauge("agentsvc_a2a_external_agents", "External A2A agents that are known.", |world, out| {
        out.value(world.resource::<ExternalAgents>().len())
    }),
    Metric::gauge("agentsvc_a2a_sent_tasks", "Tasks of external A2A agents that are kept, by state.", |world, out| {
        let tasks = world.resource::<SentTasks>();
        out.labelled(("state", "open"), tasks.open_count());
        out.labelled(("state", "ended"), tasks.len() - tasks.open_count());
    }),
    Metric::counter(
        "agentsvc_a2a_sent_tasks_total",
        "Ended tasks of external A2A agents, by outcome.",
        |world, out| {
            let totals = world.resource::<SentTotals>();
            out.labelled(("end", "completed"), totals.completed);
            out.labelled(("end", "failed"), totals.failed);
            out.labelled(("end", "unknown"), totals.unknown);
            out.labelled(("end", "other"), totals.other);
        },
    ),
    Metric::counter(
        "agentsvc_a2a_sent_refused_total",
        "Messages to external A2A agents refused because of the rate.",
        |world, out| out.value(world.resource::<SentTotals>().over_rate),
    ),
];
