//! Metrics of approvals.

use super::Approvals;
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] = &[Metric::gauge("agentsvc_approvals_pending", "Pending approvals.", |world, out| {
    out.value(world.resource::<Approvals>().pending())
})];
