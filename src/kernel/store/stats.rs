//! Counters of the store and the world loop: plain atomics, read by the metrics page at any moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::kernel::latency_histogram::LatencyHistogram;

/// Upper bounds of the histogram buckets in microseconds; one more bucket holds everything above.
pub const BOUNDS_US: [u64; 15] =
    [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 5_000_000];

/// How long something took, in buckets.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Observations per bucket, not cumulative.
    counts: [AtomicU64; BOUNDS_US.len() + 1],
    /// The sum of all observations in microseconds.
    sum_us: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// Pairs of upper bound in microseconds and observations at or below it.
    pub buckets: Vec<(u64, u64)>,
    /// All observations.
    pub count: u64,
    /// The sum of all observations in microseconds.
    pub sum_us: u64,
}

impl Histogram {
    /// Counts one observation.
    pub fn observe(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// The state now; buckets are cumulative, as Prometheus wants them.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let mut count = 0;
        let mut buckets = Vec::with_capacity(BOUNDS_US.len());
        for (bound, bucket) in BOUNDS_US.iter().zip(&self.counts) {
            count += bucket.load(Ordering::Relaxed);
            buckets.push((*bound, count));
        }
        count += self.counts[BOUNDS_US.len()].load(Ordering::Relaxed);
        HistogramSnapshot { buckets, count, sum_us: self.sum_us.load(Ordering::Relaxed) }
    }
}

/// What the store writer has done since the start.
#[derive(Debug, Default)]
pub struct StoreStats {
    /// Commits of the world made durable, those without records included.
    pub commits: AtomicU64,
    /// Batches written; `commits / batches` tells how well commits join.
    pub batches: AtomicU64,
    /// Records written or removed.
    pub ops: AtomicU64,
    /// Bytes of keys and values written.
    pub bytes: AtomicU64,
    /// Rows of deleted logs erased.
    pub rows_erased: AtomicU64,
    /// Time of one durable batch: journal write, fsync and apply.
    pub commit_time: Histogram,
    /// The same of the last minute.
    pub commit_window: LatencyHistogram,
    /// Time from the end of a step with records to its being durable, of the last minute.
    pub lag_window: LatencyHistogram,
    /// The same since the start.
    pub lag_time: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_bounds_inclusive() {
        let histogram = Histogram::default();
        for us in [50, 51, 7_000_000] {
            histogram.observe(Duration::from_micros(us));
        }
        let seen = histogram.snapshot();
        assert_eq!(seen.buckets[0], (50, 1));
        assert_eq!(seen.buckets[1], (100, 2));
        assert_eq!(seen.buckets.last(), Some(&(5_000_000, 2)));
        assert_eq!((seen.count, seen.sum_us), (3, 7_000_101));
    }
}
