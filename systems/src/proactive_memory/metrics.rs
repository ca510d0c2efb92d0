//! Metrics of memory entries.

use crate::kernel::metric::{Metric, totals};

pub(super) const ALL: &[Metric] = &[Metric::counter(
    "agentsvc_memory_facts_total",
    "Facts found in turns, by what they did to memory entries.",
    |world, out| {
        let totals = totals(world);
        out.labelled(("action", "added"), totals.memory_facts_added);
        out.labelled(("action", "updated"), totals.memory_facts_updated);
        out.labelled(("action", "deleted"), totals.memory_facts_deleted);
        out.labelled(("action", "noop"), totals.memory_facts_unchanged);
    },
)];
