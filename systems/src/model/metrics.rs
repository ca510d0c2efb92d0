//! Metrics of model calls.

use super::admission::Admission;
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_turns_waiting", "Turns waiting for a slot of their provider.", |world, out| {
        out.value(world.resource::<Admission>().waiting())
    }),
    Metric::gauge("agentsvc_model_calls_out", "Active model calls.", |world, out| {
        out.value(world.resource::<Admission>().out())
    }),
];
