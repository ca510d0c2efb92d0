//! Metrics of events.

use bevy_ecs::prelude::Resource;

use crate::kernel::metric::Metric;

/// Events since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct EventTotals {
    /// Custom events published.
    pub(super) custom: u64,
}

pub(super) const ALL: &[Metric] =
    &[Metric::counter("agentsvc_events_custom_total", "Custom events published.", |world, out| {
        out.value(world.resource::<EventTotals>().custom)
    })];
