//! Metrics of goals.

use super::Goals;
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] =
    &[Metric::gauge("agentsvc_goals", "Goals.", |world, out| out.value(world.resource::<Goals>().len()))];
