//! Metrics of usage.

use crate::kernel::metric::{Metric, totals};

pub(super) const ALL: &[Metric] = &[
    Metric::counter("agentsvc_cost_usd_total", "Cost of model calls in US dollars.", |world, out| {
        out.value(totals(world).cost_micros as f64 / 1e6)
    }),
    Metric::counter(
        "agentsvc_model_calls_unknown_total",
        "Model calls interrupted by a crash; the reserved amount counts as their cost.",
        |world, out| out.value(totals(world).model_calls_unknown),
    ),
    Metric::counter("agentsvc_model_calls_unpriced_total", "Model calls of models without a price.", |world, out| {
        out.value(totals(world).model_calls_unpriced)
    }),
    Metric::counter(
        "agentsvc_usage_clipped_total",
        "Model calls whose provider reported more usage than they can have had.",
        |world, out| out.value(totals(world).usage_clipped),
    ),
];
