//! Metrics of events.

use crate::kernel::metric::{Metric, totals};

pub(super) const ALL: &[Metric] =
    &[Metric::counter("agentsvc_events_custom_total", "Custom events published.", |world, out| {
        out.value(totals(world).events_custom)
    })];
