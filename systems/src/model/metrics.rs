//! Metrics of model calls.

use bevy_ecs::prelude::Resource;

use super::admission::Admission;
use crate::kernel::metric::Metric;

/// Model calls since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct ModelTotals {
    /// Model calls that came back, however they ended.
    pub(crate) calls: u64,
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_turns_waiting", "Turns waiting for a slot of their provider.", |world, out| {
        out.value(world.resource::<Admission>().waiting())
    }),
    Metric::gauge("agentsvc_model_calls_out", "Active model calls.", |world, out| {
        out.value(world.resource::<Admission>().out())
    }),
];
