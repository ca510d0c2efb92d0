//! What the metrics page says of rehearsals.

use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_api::http::metrics::{MetricsText, Probe};

/// Counted since the start. Nobody who asks for metrics waits for the list of rehearsals, which is locked while one begins.
#[derive(Debug, Default)]
pub(super) struct RehearsalStats {
    /// Running now.
    running: AtomicU64,
    /// Ran to their end.
    completed: AtomicU64,
    /// Broke off.
    failed: AtomicU64,
    /// Were cancelled.
    cancelled: AtomicU64,
}

impl RehearsalStats {
    /// One begins.
    pub(super) fn begun(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// One has ended in `state`, as [`Done`](super::run::Done) says it.
    pub(super) fn ended(&self, state: &str) {
        let counter = match state {
            "completed" => &self.completed,
            "cancelled" => &self.cancelled,
            _ => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Probe for RehearsalStats {
    fn gather(&self, out: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.gauge("agentsvc_rehearsals_running", "Running rehearsals.", load(&self.running));
        out.family("agentsvc_rehearsals_total", "Ended rehearsals, by outcome.", "counter");
        let ends = [("completed", &self.completed), ("failed", &self.failed), ("cancelled", &self.cancelled)];
        for (word, counter) in ends {
            out.sample("agentsvc_rehearsals_total", &format!("outcome=\"{word}\""), load(counter));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rehearsals_are_counted_while_they_run_and_by_their_end() {
        let stats = RehearsalStats::default();
        let told = |line: &str| {
            let mut out = MetricsText::default();
            stats.gather(&mut out);
            assert!(out.as_str().lines().any(|l| l == line), "{line}\n{}", out.as_str());
        };
        stats.begun();
        told("agentsvc_rehearsals_running 1");
        stats.ended("completed");
        told("agentsvc_rehearsals_running 0");
        for state in ["failed", "cancelled", "failed"] {
            stats.begun();
            stats.ended(state);
        }
        told("agentsvc_rehearsals_total{outcome=\"completed\"} 1");
        told("agentsvc_rehearsals_total{outcome=\"failed\"} 2");
        told("agentsvc_rehearsals_total{outcome=\"cancelled\"} 1");
    }
}
