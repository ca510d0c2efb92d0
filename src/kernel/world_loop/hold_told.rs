//! That work is held is logged when it begins and when it ends: not every time, for a slow disk would fill the log.

use std::time::{Duration, Instant};

use agentsvc_systems::kernel::fires::HoldWork;

/// Time between two times of which that is said; those in between are counted.
const EVERY: Duration = Duration::from_secs(60);

/// Whether work is held, and when that was said last.
#[derive(Debug, Default)]
pub(super) struct HoldTold {
    said: Option<Instant>,
    unsaid: u64,
    is_held: bool,
    /// Since when, where it was said.
    since: Option<Instant>,
}

impl HoldTold {
    /// From now on this is held; so many bytes wait to be stored.
    pub(super) fn note(&mut self, hold: HoldWork, backlog_bytes: usize, now: Instant) {
        let is_held = hold != HoldWork::default();
        if std::mem::replace(&mut self.is_held, is_held) == is_held {
            return;
        }
        if !is_held {
            if let Some(since) = self.since.take() {
                let held_ms = now.duration_since(since).as_millis() as u64;
                tracing::info!(held_ms, "the store has caught up: what begins of itself goes on");
            }
            return;
        }
        if self.said.is_some_and(|said| now.duration_since(said) < EVERY) {
            self.unsaid += 1;
            return;
        }
        (self.said, self.since) = (Some(now), Some(now));
        let held_before = std::mem::take(&mut self.unsaid);
        tracing::warn!(
            backlog_bytes,
            held_before,
            "the store is behind: triggers, schedules and workflows wait until it has caught up"
        );
    }
}
