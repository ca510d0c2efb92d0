//! What is known of the runs of hooks: how many failed, how long they took, the newest ones, and whether a hook is left alone.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use agentsvc_components::Timestamp;
use parking_lot::Mutex;

use super::manifest::Breaker;

/// Runs of a plugin that are remembered.
const TRACES_MAX: usize = 100;
/// Characters of an error that are remembered.
const ERROR_CHARS_MAX: usize = 500;

/// Counts of one hook since it was loaded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    /// Answers that were remembered.
    pub(crate) cached: u64,
    pub(crate) elapsed: Duration,
    pub(crate) last_error: Option<String>,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) at: Timestamp,
    pub(crate) hook: &'static str,
    pub(crate) agent: String,
    pub(crate) took: Duration,
    pub(crate) tries: u32,
    pub(crate) is_cached: bool,
    /// The code of the fault, and its sentence.
    pub(crate) error: Option<(&'static str, String)>,
}

/// The newest runs.
#[derive(Default)]
pub(crate) struct Traces(Mutex<VecDeque<Trace>>);

impl Traces {
    pub(super) fn note(&self, mut trace: Trace) {
        if let Some((_, text)) = &mut trace.error {
            *text = cut(text);
        }
        let mut kept = self.0.lock();
        if kept.len() == TRACES_MAX {
            kept.pop_front();
        }
        kept.push_back(trace);
    }

    /// The newest first.
    pub(crate) fn list(&self) -> Vec<Trace> {
        self.0.lock().iter().rev().cloned().collect()
    }
}

impl Counts {
    pub(super) fn note(&mut self, took: Duration, error: Option<&str>) {
        self.calls += 1;
        self.elapsed += took;
        if let Some(error) = error {
            self.errors += 1;
            self.last_error = Some(cut(error));
        }
    }

    /// Percent of the calls that failed.
    pub(crate) fn error_rate_pct(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { (self.errors as f64 * 1_000.0 / self.calls as f64).round() / 10.0 }
    }

    /// Milliseconds of a call, on average.
    pub(crate) fn avg_elapsed_ms(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { (self.elapsed.as_secs_f64() * 10_000.0 / self.calls as f64).round() / 10.0 }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(ERROR_CHARS_MAX).collect()
}

/// How often a hook failed, one time after the other, and until when it is left alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Breakdown {
    failures: u32,
    until: Option<Instant>,
}

impl Breakdown {
    /// Seconds that it is still left alone; `None`: it may be tried. After that time one call tries it, and others wait for
    /// what comes of that.
    pub(super) fn rests(&mut self, now: Instant, breaker: Breaker) -> Option<u64> {
        let until = self.until?;
        if until > now {
            return Some((until - now).as_secs() + 1);
        }
        self.until = Some(now + Duration::from_secs(breaker.reset_secs));
        None
    }

    pub(super) fn note(&mut self, now: Instant, is_failure: bool, breaker: Breaker) {
        if !is_failure {
            *self = Self::default();
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= breaker.failures_max {
            self.until = Some(now + Duration::from_secs(breaker.reset_secs));
        }
    }

    /// Is it left alone?
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_fails_is_left_alone_and_tried_again() {
        let (breaker, start) = (Breaker { failures_max: 2, reset_secs: 10 }, Instant::now());
        let after = |secs| start + Duration::from_secs(secs);
        let mut state = Breakdown::default();
        state.note(start, true, breaker);
        assert_eq!(state.rests(start, breaker), None);
        state.note(start, true, breaker);
        assert!(state.is_open(start));
        assert_eq!(state.rests(after(4), breaker), Some(7));
        // One tries, the next one waits.
        assert_eq!(state.rests(after(10), breaker), None);
        assert!(state.rests(after(10), breaker).is_some());
        state.note(after(11), true, breaker);
        assert!(state.is_open(after(20)) && !state.is_open(after(21)));
        assert_eq!(state.rests(after(21), breaker), None);
        state.note(after(21), false, breaker);
        assert_eq!(state.rests(after(21), breaker), None);
    }

    #[test]
    fn the_newest_runs_are_remembered() {
        let traces = Traces::default();
        for n in 0..150_u32 {
            let error = Some(("exited", "x".repeat(1_000)));
            let (hook, agent) = ("ingest", String::new());
            let (at, took) = (Timestamp(0), Duration::ZERO);
            traces.note(Trace { at, hook, agent, took, tries: n, is_cached: false, error });
        }
        let list = traces.list();
        assert_eq!((list.len(), list[0].tries, list[99].tries), (TRACES_MAX, 149, 50));
        assert_eq!(list[0].error.as_ref().unwrap().1.len(), ERROR_CHARS_MAX);
    }

    #[test]
    fn rates_are_rounded() {
        let mut counts = Counts::default();
        assert_eq!((counts.error_rate_pct(), counts.avg_elapsed_ms()), (0.0, 0.0));
        counts.note(Duration::from_millis(3), None);
        counts.note(Duration::from_millis(4), Some("x"));
        counts.note(Duration::from_millis(3), None);
        assert_eq!((counts.error_rate_pct(), counts.avg_elapsed_ms()), (33.3, 3.3));
    }
}
