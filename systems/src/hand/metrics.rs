//! Metrics of hands.

use super::index::Instances;
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] =
    &[Metric::gauge("agentsvc_hand_instances", "Instances of hands by state.", |world, out| {
        let all = world.resource::<Instances>();
        out.labelled(("state", "running"), all.len() - all.paused);
        out.labelled(("state", "paused"), all.paused);
    })];
