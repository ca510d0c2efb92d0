//! What the metrics page says of snapshots.

use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_api::snapshot::store::{Reason, Snapshot};

/// Counted since the start.
#[derive(Debug, Default)]
pub(crate) struct SnapshotStats {
    manual: Outcomes,
    auto: Outcomes,
    /// Snapshots on disk.
    kept: AtomicU64,
    /// Bytes of their files.
    kept_bytes: AtomicU64,
}

/// What became of those of one reason.
#[derive(Debug, Default)]
struct Outcomes {
    taken: AtomicU64,
    failed: AtomicU64,
}

impl SnapshotStats {
    /// One was taken, or could not be.
    pub(crate) fn count(&self, reason: Reason, taken: bool) {
        let outcomes = match reason {
            Reason::Manual => &self.manual,
            Reason::Auto => &self.auto,
        };
        let counter = if taken { &outcomes.taken } else { &outcomes.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// These are on disk now.
    pub(crate) fn kept<'s>(&self, snapshots: impl Iterator<Item = &'s Snapshot>) {
        let (count, bytes) = snapshots
            .fold((0, 0_u64), |(count, bytes), snapshot| (count + 1, bytes.saturating_add(snapshot.size_bytes)));
        self.kept.store(count, Ordering::Relaxed);
        self.kept_bytes.store(bytes, Ordering::Relaxed);
    }
}

impl Probe for SnapshotStats {
    fn gather(&self, out: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let name = "agentsvc_snapshots_total";
        out.family(name, "Snapshots of the world, by reason and outcome.", "counter");
        for (reason, outcomes) in [("manual", &self.manual), ("auto", &self.auto)] {
            out.sample(name, &format!("reason=\"{reason}\",outcome=\"taken\""), load(&outcomes.taken));
            out.sample(name, &format!("reason=\"{reason}\",outcome=\"failed\""), load(&outcomes.failed));
        }
        out.gauge("agentsvc_snapshots_kept", "Snapshots on disk.", load(&self.kept));
        out.gauge("agentsvc_snapshots_kept_bytes", "Bytes of snapshots on disk.", load(&self.kept_bytes));
    }
}
