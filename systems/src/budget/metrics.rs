//! Metrics of budgets.

use bevy_ecs::prelude::Resource;

use super::Budgets;
use crate::kernel::metric::Metric;

/// Budgets since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct BudgetTotals {
    /// Turns and compactions refused because a budget was exhausted.
    pub(super) refusals: u64,
}

pub(super) const ALL: &[Metric] = &[
    Metric::counter(
        "agentsvc_budget_refusals_total",
        "Turns and compactions refused because a budget was exhausted.",
        |world, out| out.value(world.resource::<BudgetTotals>().refusals),
    ),
    Metric::gauge(
        "agentsvc_budget_waiting",
        "Turns and compactions waiting for budget reserved by other calls.",
        |world, out| out.value(world.resource::<Budgets>().waiting()),
    ),
];
