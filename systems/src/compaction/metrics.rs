//! Metrics of compactions.

use super::Compactions;
use crate::kernel::metric::{Metric, totals};

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_compactions_open", "Sessions being compacted.", |world, out| {
        out.value(world.resource::<Compactions>().len())
    }),
    Metric::counter("agentsvc_compactions_total", "Ended compactions, by outcome.", |world, out| {
        let totals = totals(world);
        out.labelled(("end", "completed"), totals.compactions_completed);
        out.labelled(("end", "failed"), totals.compactions_failed);
    }),
];
