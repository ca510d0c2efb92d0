//! Counters of the world loop.

use std::sync::atomic::AtomicU64;

use agentsvc_systems::kernel::metric::Samples as Metrics;
use agentsvc_systems::kernel::timings::Timing;
use parking_lot::Mutex;

use crate::kernel::latency_histogram::LatencyHistogram;
use crate::kernel::store::stats::Histogram;

/// What the world loop has done since the start; read by the metrics page at any moment.
#[derive(Debug, Default)]
pub struct LoopStats {
    /// Steps run.
    pub steps: AtomicU64,
    /// Commands run or refused.
    pub commands: AtomicU64,
    /// Writes refused because the store backlog was full.
    pub writes_refused: AtomicU64,
    /// What waits for the store: 0 nothing, 1 what triggers, schedules and workflows begin, 2 calls as well.
    pub held: AtomicU64,
    /// Outcomes taken in.
    pub outcomes: AtomicU64,
    /// Beats run.
    pub beats: AtomicU64,
    /// Beats skipped because the world was busy when they were due.
    pub beats_missed: AtomicU64,
    /// Time of one step, from the first arrival taken to the commit handed over, beat included.
    pub step_time: Histogram,
    /// Time of the time-driven systems of one beat.
    pub beat_time: Histogram,
    /// The same two, of the last minute.
    pub step_window: LatencyHistogram,
    /// See there.
    pub beat_window: LatencyHistogram,
    /// The number of the newest step that stored something; 0 when steps have no numbers.
    pub step: AtomicU64,
    /// Durable events.
    pub events: AtomicU64,
    /// What each system took so far, as of the last beat.
    pub timings: Mutex<Vec<Timing>>,
    /// The metrics of the world as of the last beat.
    pub metrics: Mutex<Metrics>,
}

impl LoopStats {
    /// Copies what the systems took.
    pub(super) fn read_timings(&self, timings: &[Timing]) {
        let mut kept = self.timings.lock();
        kept.clear();
        kept.extend_from_slice(timings);
    }
}
