//! Metrics of consolidation runs.

use agentsvc_components::auto_dream::DreamOutcome;
use bevy_ecs::prelude::Resource;

use super::index::Dreams;
use crate::kernel::metric::Metric;

/// Runs since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct DreamTotals {
    /// Runs that began.
    pub(super) started: u64,
    /// Runs that ended, in the order of [`DreamOutcome::ALL`].
    ended: [u64; 4],
}

impl DreamTotals {
    /// A run has ended.
    pub(super) fn count(&mut self, outcome: DreamOutcome) {
        for (of, count) in DreamOutcome::ALL.into_iter().zip(&mut self.ended) {
            *count += u64::from(of == outcome);
        }
    }
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_auto_dream_agents", "Agents whose auto-dream is switched on.", |world, out| {
        out.value(world.resource::<Dreams>().enabled());
    }),
    Metric::gauge("agentsvc_auto_dream_running", "Consolidation runs under way.", |world, out| {
        out.value(world.resource::<Dreams>().running());
    }),
    Metric::counter("agentsvc_auto_dream_started_total", "Consolidation runs that began.", |world, out| {
        out.value(world.resource::<DreamTotals>().started);
    }),
    Metric::counter("agentsvc_auto_dream_ended_total", "Ended consolidation runs, by outcome.", |world, out| {
        let ended = world.resource::<DreamTotals>().ended;
        for (outcome, count) in DreamOutcome::ALL.into_iter().zip(ended) {
            out.labelled(("outcome", outcome.as_str()), count);
        }
    }),
];
