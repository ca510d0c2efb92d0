//! Metrics of budgets.

use super::Budgets;
use crate::kernel::metric::{Metric, totals};

pub(super) const ALL: &[Metric] = &[
    Metric::counter(
        "agentsvc_budget_refusals_total",
        "Turns and compactions refused because a budget was exhausted.",
        |world, out| out.value(totals(world).budget_refusals),
    ),
    Metric::gauge(
        "agentsvc_budget_waiting",
        "Turns and compactions waiting for budget reserved by other calls.",
        |world, out| out.value(world.resource::<Budgets>().waiting()),
    ),
];
