//! What the metrics page says of exchanges of the world.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_api::http::metrics::{MetricsText, Probe};

/// Counted since the start.
#[derive(Debug)]
pub(crate) struct ExchangeStats {
    /// Another world came to life.
    done: AtomicU64,
    /// The old world was ended and came back.
    brought_back: AtomicU64,
    /// Microseconds in which no world took commands, in both cases.
    pause_us: AtomicU64,
    /// Restores that were refused, by what they restore: no world was ended for them.
    refused: Vec<(&'static str, AtomicU64)>,
}

impl ExchangeStats {
    /// Nothing has happened; worlds are restored from `sources`.
    pub(crate) fn new(sources: &[&'static str]) -> Self {
        let refused = sources.iter().map(|source| (*source, AtomicU64::new(0))).collect();
        let zero = || AtomicU64::new(0);
        Self { done: zero(), brought_back: zero(), pause_us: zero(), refused }
    }

    /// A world takes commands again after `pause`: the other one, if it is `done`.
    pub(crate) fn count(&self, done: bool, pause: Duration) {
        let counter = if done { &self.done } else { &self.brought_back };
        counter.fetch_add(1, Ordering::Relaxed);
        self.pause_us.fetch_add(u64::try_from(pause.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// A restore was refused, and the world went on all along.
    pub(crate) fn refuse(&self, source: &str) {
        if let Some((_, counter)) = self.refused.iter().find(|(name, _)| *name == source) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often the old world has come back so far.
    pub(crate) fn brought_back(&self) -> u64 {
        self.brought_back.load(Ordering::Relaxed)
    }
}

impl Probe for ExchangeStats {
    fn gather(&self, out: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let help = "Restores that replaced the running world, by outcome.";
        out.family("agentsvc_world_exchanges_total", help, "counter");
        out.sample("agentsvc_world_exchanges_total", "outcome=\"done\"", load(&self.done));
        out.sample("agentsvc_world_exchanges_total", "outcome=\"brought_back\"", load(&self.brought_back));
        let help = "Time without a running world because of restores.";
        out.counter("agentsvc_world_exchange_pause_seconds_total", help, load(&self.pause_us) as f64 / 1e6);
        let name = "agentsvc_restores_refused_total";
        let help = "Refused restores, by source.";
        out.family(name, help, "counter");
        for (source, refused) in &self.refused {
            out.sample(name, &format!("source=\"{source}\""), load(refused));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_are_counted_by_what_became_of_them() {
        let stats = ExchangeStats::new(&["snapshot", "backup"]);
        stats.count(true, Duration::from_millis(1_500));
        stats.count(false, Duration::from_millis(250));
        stats.count(false, Duration::from_millis(250));
        stats.refuse("backup");
        let mut out = MetricsText::default();
        stats.gather(&mut out);
        for line in [
            "agentsvc_world_exchanges_total{outcome=\"done\"} 1",
            "agentsvc_world_exchanges_total{outcome=\"brought_back\"} 2",
            "agentsvc_world_exchange_pause_seconds_total 2",
            "agentsvc_restores_refused_total{source=\"snapshot\"} 0",
            "agentsvc_restores_refused_total{source=\"backup\"} 1",
        ] {
            assert!(out.as_str().lines().any(|l| l == line), "{line}\n{}", out.as_str());
        }
    }
}
