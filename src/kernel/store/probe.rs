//! The store's and the world loop's share of the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_api::http::metrics::{MetricsText, Probe};

use super::Store;
use super::stats::Histogram;
use super::writer::CommitQueue;

/// Tells the metrics page about the store and its writer.
pub struct StoreProbe {
    /// Whose counters.
    pub store: Store,
    /// Whose backlog.
    pub commits: CommitQueue,
}

impl Probe for StoreProbe {
    fn gather(&self, out: &mut MetricsText) {
        let stats = self.store.stats();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.counter("agentsvc_store_commits_total", "Durable steps.", load(&stats.commits));
        out.counter("agentsvc_store_batches_total", "Batches written, one fsync each.", load(&stats.batches));
        out.counter("agentsvc_store_records_total", "Records written or removed.", load(&stats.ops));
        out.counter("agentsvc_store_bytes_total", "Bytes of keys and values written.", load(&stats.bytes));
        out.counter("agentsvc_store_rows_erased_total", "Rows of deleted logs erased.", load(&stats.rows_erased));
        out.gauge("agentsvc_store_backlog_bytes", "Bytes not yet durable.", self.commits.backlog_bytes());
        let help = "1 while changes are refused because the disk is full.";
        out.gauge("agentsvc_store_read_only", help, u8::from(self.commits.is_read_only()));
        let help = "Bytes in memtables that are not yet flushed.";
        out.gauge("agentsvc_memory_memtable_bytes", help, self.store.database.write_buffer_size());
        let help = "Bytes of the store's block cache.";
        out.gauge("agentsvc_memory_cache_bytes", help, self.store.database.cache_size());
        let help = "Duration of a batch: journal, fsync and apply.";
        stats.commit_time.gather("agentsvc_store_commit_duration_seconds", help, out);
        let help = "Time from the end of a step until it is durable.";
        stats.lag_time.gather("agentsvc_store_lag_seconds", help, out);
    }
}

impl Histogram {
    /// Writes the histogram as the family `name`, in seconds.
    pub fn gather(&self, name: &str, help: &str, out: &mut MetricsText) {
        let seen = self.snapshot();
        out.family(name, help, "histogram");
        let bucket = format!("{name}_bucket");
        for (bound_us, count) in seen.buckets {
            out.sample(&bucket, &format!("le=\"{}\"", seconds(bound_us)), count);
        }
        out.sample(&bucket, "le=\"+Inf\"", seen.count);
        out.sample(&format!("{name}_sum"), "", seconds(seen.sum_us));
        out.sample(&format!("{name}_count"), "", seen.count);
    }
}

/// Microseconds as seconds.
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_histogram_is_written_in_seconds_with_cumulative_buckets() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_micros(150));
        histogram.observe(Duration::from_secs(9));
        let mut out = MetricsText::default();
        histogram.gather("x_seconds", "X.", &mut out);
        for line in [
            "# TYPE x_seconds histogram",
            "x_seconds_bucket{le=\"0.0001\"} 0",
            "x_seconds_bucket{le=\"0.0002\"} 1",
            "x_seconds_bucket{le=\"5\"} 1",
            "x_seconds_bucket{le=\"+Inf\"} 2",
            "x_seconds_sum 9.00015",
            "x_seconds_count 2",
        ] {
            assert!(out.as_str().lines().any(|l| l == line), "{line}\n{}", out.as_str());
        }
    }
}
