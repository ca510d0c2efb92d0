//! Metrics of sessions.

use crate::kernel::index::Index;
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_sessions", "Sessions.", |world, out| out.value(world.resource::<Index>().session_count())),
    Metric::gauge("agentsvc_sessions_hidden", "Sessions created for a single request, not listed.", |world, out| {
        out.value(world.resource::<Index>().hidden_count())
    }),
];
