//! The log's share of the metrics page.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use agentsvc_api::http::metrics::{MetricsText, Probe};

/// What the log has done.
#[derive(Debug, Default)]
pub struct InputStats {
    /// Entries written.
    pub entries: AtomicU64,
    /// Bytes of them.
    pub bytes: AtomicU64,
    /// Times that inputs were lost.
    pub gaps: AtomicU64,
    /// Inputs that were not written because of that.
    pub lost: AtomicU64,
    /// Epochs begun.
    pub epochs_begun: AtomicU64,
    /// Bytes that wait for the log's thread.
    pub waiting: AtomicU64,
    /// Bytes on disk when it was last looked at.
    pub kept_bytes: AtomicU64,
    /// Epochs on disk when it was last looked at.
    pub kept_epochs: AtomicU64,
    /// The oldest step that can be replayed from.
    pub oldest: AtomicU64,
    /// Inputs are written just now.
    pub whole: AtomicBool,
}

impl Probe for InputStats {
    fn gather(&self, out: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.counter("agentsvc_inputs_entries_total", "Steps written to the input log.", load(&self.entries));
        out.counter("agentsvc_inputs_bytes_total", "Bytes written to the input log.", load(&self.bytes));
        let help = "Interruptions of the input log: the disk failed or the queue was full.";
        out.counter("agentsvc_inputs_gaps_total", help, load(&self.gaps));
        let help = "Steps missing in the input log because of interruptions.";
        out.counter("agentsvc_inputs_lost_total", help, load(&self.lost));
        out.counter("agentsvc_inputs_epochs_total", "Epochs of the input log started.", load(&self.epochs_begun));
        out.gauge("agentsvc_inputs_waiting_bytes", "Inputs waiting to be written.", load(&self.waiting));
        out.gauge("agentsvc_inputs_kept_bytes", "Bytes of the input log on disk.", load(&self.kept_bytes));
        out.gauge("agentsvc_inputs_kept_epochs", "Epochs of the input log on disk.", load(&self.kept_epochs));
        let help = "The oldest step that can be replayed.";
        out.gauge("agentsvc_inputs_oldest_step", help, load(&self.oldest));
        let whole = u64::from(self.whole.load(Ordering::Relaxed));
        out.gauge("agentsvc_inputs_whole", "1 while every step is written to the input log.", whole);
    }
}
