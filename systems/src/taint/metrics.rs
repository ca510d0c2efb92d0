//! Metrics of content from outside.

use crate::kernel::metric::{Metric, totals};

pub(super) const ALL: &[Metric] = &[
    Metric::counter(
        "agentsvc_injections_found_total",
        "Untrusted texts that looked like prompt injections.",
        |world, out| out.value(totals(world).injections_found),
    ),
    Metric::counter(
        "agentsvc_injections_withheld_total",
        "Untrusted texts withheld as prompt injections.",
        |world, out| out.value(totals(world).injections_withheld),
    ),
    Metric::counter(
        "agentsvc_tainted_calls_total",
        "Sensitive tool calls of turns that had read untrusted content, by decision.",
        |world, out| {
            let totals = totals(world);
            out.labelled(("decision", "noted"), totals.tainted_calls_noted);
            out.labelled(("decision", "approval"), totals.tainted_calls_gated);
            out.labelled(("decision", "refused"), totals.tainted_calls_refused);
        },
    ),
];
