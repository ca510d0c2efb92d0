//! A step that takes longer than a beat is logged with the systems that took the time: not every one, for a slow disk or
//! a crowded machine would fill the log.

use std::fmt::Write;
use std::time::{Duration, Instant};

use agentsvc_systems::kernel::engine::Engine;

/// Time between two such lines; steps in between are counted.
const EVERY: Duration = Duration::from_secs(10);
/// Systems that a line names.
const NAMED: usize = 4;
/// Steps that are shorter are never slow, however fast the beat is.
const SHORTEST: Duration = Duration::from_millis(20);

/// When a step is slow, and when that was said last.
#[derive(Debug)]
pub(super) struct SlowSteps {
    threshold: Duration,
    said: Option<Instant>,
    unsaid: u64,
}

impl SlowSteps {
    /// A step is slow when it takes longer than the time between two beats.
    pub(super) fn new(tick_hz: u32) -> Self {
        let period = Duration::from_secs(1) / tick_hz.max(1);
        Self { threshold: period.max(SHORTEST), said: None, unsaid: 0 }
    }

    /// A step took so long. Says so when it was slow and nothing was said lately.
    pub(super) fn note(&mut self, engine: &Engine, took: Duration, arrivals: usize) {
        if took < self.threshold {
            return;
        }
        let now = Instant::now();
        if self.said.is_some_and(|said| now.duration_since(said) < EVERY) {
            self.unsaid += 1;
            return;
        }
        self.said = Some(now);
        let systems = systems(&engine.timings_of_step());
        let (took_ms, slow_before) = (took.as_millis() as u64, std::mem::take(&mut self.unsaid));
        tracing::warn!(took_ms, arrivals, %systems, slow_before, "a step of the world took longer than a tick");
    }
}

/// `trigger_deliver 61 ms, record_dirty 12 ms`: those that took most.
fn systems(timings: &[(&'static str, Duration)]) -> String {
    let mut text = String::new();
    for (name, took) in timings.iter().take(NAMED).filter(|(_, took)| took.as_micros() >= 100) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{}{name} {:.1} ms", if text.is_empty() { "" } else { ", " }, took.as_secs_f64() * 1e3);
    }
    text
}

#[cfg(test)]
mod tests {
    use agentsvc_systems::Settings;

    use super::*;

    #[test]
    fn slow_steps_are_said_now_and_then_and_counted_in_between() {
        let engine = Engine::new(Settings::default(), [1; 32]);
        let mut slow = SlowSteps::new(20);
        slow.note(&engine, Duration::from_millis(49), 0);
        assert!(slow.said.is_none());
        slow.note(&engine, Duration::from_millis(51), 0);
        assert!(slow.said.is_some() && slow.unsaid == 0);
        slow.note(&engine, Duration::from_millis(51), 0);
        assert_eq!(slow.unsaid, 1);
        assert_eq!(SlowSteps::new(1_000).threshold, SHORTEST);
    }

    #[test]
    fn the_systems_that_took_most_are_named() {
        let us = Duration::from_micros;
        let timings = [("a", us(61_000)), ("b", us(12_340)), ("c", us(99)), ("d", us(50))];
        assert_eq!(systems(&timings), "a 61.0 ms, b 12.3 ms");
    }
}
