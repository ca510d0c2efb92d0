//! What `GET /api/world` shows of the world's thread: rates over the last seconds, and the world's own numbers, kept at each
//! beat.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use agentsvc_api::world::live_stats::{LiveReading, LiveStats, Rates};
use agentsvc_systems::Engine;
use agentsvc_systems::world::WorldStats;
use parking_lot::Mutex;

use crate::kernel::memory::process_bytes;
use crate::kernel::store::StoreStats;
use crate::kernel::store::writer::CommitQueue;
use crate::kernel::world_loop::LoopStats;

/// Time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Samples that are kept: a minute of them.
const SAMPLES: usize = 61;
/// Rates are those of so many of the newest samples.
const RATE_SAMPLES: usize = 10;

/// Counters at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    beats: u64,
    missed: u64,
    steps: u64,
    commands: u64,
    events: u64,
    fires: u64,
    messages: u64,
}

/// The counters of the last minute, once a second, and the world's own numbers as of the last beat.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    taken: Mutex<VecDeque<Sample>>,
    world: Mutex<WorldStats>,
}

impl Samples {
    /// Looks at the world, and takes a sample when it is time for one. Called at each beat.
    pub(crate) fn note(&self, engine: &Engine, stats: &LoopStats) {
        *self.world.lock() = engine.stats();
        let now = Instant::now();
        if self.taken.lock().back().is_none_or(|last| now.duration_since(last.at) >= SAMPLE_EVERY) {
            self.keep(self.sample(stats, now));
        }
    }

    fn keep(&self, sample: Sample) {
        let mut samples = self.taken.lock();
        if samples.len() == SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    fn sample(&self, stats: &LoopStats, at: Instant) -> Sample {
        let world = *self.world.lock();
        Sample {
            at,
            beats: stats.beats.load(Ordering::Relaxed),
            missed: stats.beats_missed.load(Ordering::Relaxed),
            steps: stats.steps.load(Ordering::Relaxed),
            commands: stats.commands.load(Ordering::Relaxed),
            events: stats.events.load(Ordering::Relaxed),
            fires: world.fires(),
            messages: world.turn_totals.messages,
        }
    }

    /// Rates from the sample of some seconds ago until now, and beats missed since the oldest one.
    fn rates(&self, stats: &LoopStats, now: Instant) -> (Rates, u64) {
        let samples = self.taken.lock();
        let Some(oldest) = samples.front().copied() else { return (Rates::default(), 0) };
        let from = samples[samples.len().saturating_sub(RATE_SAMPLES)];
        drop(samples);
        let current = self.sample(stats, now);
        let secs = now.duration_since(from.at).as_secs_f64();
        let rate = |of: fn(&Sample) -> u64| {
            if secs < 0.05 { 0.0 } else { of(&current).saturating_sub(of(&from)) as f64 / secs }
        };
        let rounded = |rate: f64| (rate * 100.0).round() / 100.0;
        let rates = Rates {
            events_per_second: rounded(rate(|at| at.events)),
            fires_per_second: rounded(rate(|at| at.fires)),
            messages_per_second: rounded(rate(|at| at.messages)),
            commands_per_second: rounded(rate(|at| at.commands)),
            steps_per_second: rounded(rate(|at| at.steps)),
            beats_per_second: rounded(rate(|at| at.beats)),
        };
        (rates, current.missed.saturating_sub(oldest.missed))
    }
}

/// The world's thread, the store and the process, as the API asks for them.
pub(crate) struct Pulse {
    /// Of the world's thread.
    pub(crate) stats: std::sync::Arc<LoopStats>,
    /// Kept at each beat.
    pub(crate) samples: std::sync::Arc<Samples>,
    /// Its beats a second.
    pub(crate) beat_hz: u32,
    /// What the store's writer has done; not the store itself, which must close with its world.
    pub(crate) store: std::sync::Arc<StoreStats>,
    /// Whose backlog.
    pub(crate) commits: CommitQueue,
}

impl LiveStats for Pulse {
    fn read(&self) -> LiveReading {
        let (stats, store) = (&*self.stats, &*self.store);
        let (rates, beats_missed_last_minute) = self.samples.rates(stats, Instant::now());
        LiveReading {
            step: self.step(),
            steps: stats.steps.load(Ordering::Relaxed),
            beat_hz: self.beat_hz,
            beats: stats.beats.load(Ordering::Relaxed),
            beats_missed: stats.beats_missed.load(Ordering::Relaxed),
            beats_missed_last_minute,
            beat_time: stats.beat_window.read(),
            step_time: stats.step_window.read(),
            systems: stats.timings.lock().clone(),
            store_lag: store.lag_window.read(),
            commit_time: store.commit_window.read(),
            backlog_bytes: self.commits.backlog_bytes(),
            commits: store.commits.load(Ordering::Relaxed),
            events: stats.events.load(Ordering::Relaxed),
            rss_bytes: process_bytes("VmRSS:"),
            rates,
            world: *self.samples.world.lock(),
        }
    }

    fn step(&self) -> Option<u64> {
        let number = self.stats.step.load(Ordering::Relaxed);
        (number > 0).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_last_seconds() {
        let (stats, samples) = (LoopStats::default(), Samples::default());
        let start = Instant::now();
        for second in 0..70_u64 {
            stats.beats.store(second * 20, Ordering::Relaxed);
            stats.beats_missed.store(second, Ordering::Relaxed);
            stats.events.store(if second < 50 { second * 1_000 } else { 50_000 + second * 3 }, Ordering::Relaxed);
            samples.keep(samples.sample(&stats, start + Duration::from_secs(second)));
        }
        let (rates, missed) = samples.rates(&stats, start + Duration::from_secs(69));
        assert_eq!((rates.beats_per_second, rates.events_per_second, missed), (20.0, 3.0, 60));
        assert_eq!(Samples::default().rates(&stats, start).0, Rates::default());
    }
}
