//! Metrics of the audit log.

use super::AuditChain;
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] = &[Metric::gauge("agentsvc_audit_entries", "Audit log entries.", |world, out| {
    out.value(world.resource::<AuditChain>().head().kept())
})];
