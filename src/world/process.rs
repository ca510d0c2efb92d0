//! What the whole process has in memory, as the system counts it.

use agentsvc_api::http::metrics::{MetricsText, Probe};

use crate::kernel::memory::process_bytes;

/// Tells the metrics page about it; nothing where the system does not say.
pub(crate) struct MemoryProbe;

impl Probe for MemoryProbe {
    fn gather(&self, out: &mut MetricsText) {
        let families = [
            ("agentsvc_memory_resident_bytes", "VmRSS:", "Resident memory in bytes."),
            ("agentsvc_memory_anonymous_bytes", "RssAnon:", "Anonymous resident memory in bytes."),
        ];
        for (name, field, help) in families {
            if let Some(bytes) = process_bytes(field) {
                out.gauge(name, help, bytes);
            }
        }
    }
}
