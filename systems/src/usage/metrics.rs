//! Metrics of usage.

use bevy_ecs::prelude::Resource;

use crate::kernel::metric::Metric;

/// What model calls used since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub struct CallTotals {
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// What they cost, in micro-dollars.
    pub cost_micros: u64,
    /// Calls interrupted by a crash; the reserved amount counts as their cost.
    pub unknown: u64,
    /// Calls of models whose price is not known.
    pub unpriced: u64,
    /// Calls whose provider reported more usage than they can have had.
    pub clipped: u64,
}

pub(super) const ALL: &[Metric] = &[
    Metric::counter("agentsvc_cost_usd_total", "Cost of model calls in US dollars.", |world, out| {
        out.value(world.resource::<CallTotals>().cost_micros as f64 / 1e6)
    }),
    Metric::counter(
        "agentsvc_model_calls_unknown_total",
        "Model calls interrupted by a crash; the reserved amount counts as their cost.",
        |world, out| out.value(world.resource::<CallTotals>().unknown),
    ),
    Metric::counter("agentsvc_model_calls_unpriced_total", "Model calls of models without a price.", |world, out| {
        out.value(world.resource::<CallTotals>().unpriced)
    }),
    Metric::counter(
        "agentsvc_usage_clipped_total",
        "Model calls whose provider reported more usage than they can have had.",
        |world, out| out.value(world.resource::<CallTotals>().clipped),
    ),
];
