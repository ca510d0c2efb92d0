//! Metrics of content from outside.

use bevy_ecs::prelude::Resource;

use crate::kernel::metric::Metric;

/// Content from outside since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct TaintTotals {
    /// Untrusted texts that looked like prompt injections.
    pub(super) injections_found: u64,
    /// Untrusted texts withheld as prompt injections.
    pub(super) injections_withheld: u64,
    /// Sensitive tool calls of turns that had read untrusted content, which ran and went on record.
    pub(super) calls_noted: u64,
    /// Such calls that waited for a person.
    pub(super) calls_gated: u64,
    /// Such calls that were refused.
    pub(super) calls_refused: u64,
}

pub(super) const ALL: &[Metric] = &[
    Metric::counter(
        "agentsvc_injections_found_total",
        "Untrusted texts that looked like prompt injections.",
        |world, out| out.value(world.resource::<TaintTotals>().injections_found),
    ),
    Metric::counter(
        "agentsvc_injections_withheld_total",
        "Untrusted texts withheld as prompt injections.",
        |world, out| out.value(world.resource::<TaintTotals>().injections_withheld),
    ),
    Metric::counter(
        "agentsvc_tainted_calls_total",
        "Sensitive tool calls of turns that had read untrusted content, by decision.",
        |world, out| {
            let totals = world.resource::<TaintTotals>();
            out.labelled(("decision", "noted"), totals.calls_noted);
            out.labelled(("decision", "approval"), totals.calls_gated);
            out.labelled(("decision", "refused"), totals.calls_refused);
        },
    ),
];
