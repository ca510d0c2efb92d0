//! Metrics of agents.

use super::manifests::Manifests;
use crate::kernel::index::Index;
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_agents", "Live agents.", |world, out| out.value(world.resource::<Index>().agent_count())),
    Metric::gauge("agentsvc_manifests", "Distinct manifests.", |world, out| {
        out.value(world.resource::<Manifests>().len())
    }),
];
