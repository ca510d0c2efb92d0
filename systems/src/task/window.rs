//! How many tasks ended lately: counted in buckets of time, so that neither counting nor reading looks at a task.

use agentsvc_components::Timestamp;
use agentsvc_components::task::TaskState;
use bevy_ecs::prelude::Resource;

/// Buckets of one window.
const BUCKETS: i64 = 60;
/// Milliseconds of a bucket of the window of a minute.
const SECOND_MS: i64 = 1_000;
/// Milliseconds of a bucket of the window of an hour.
const MINUTE_MS: i64 = 60_000;

/// How many tasks ended in the last minute and the last hour.
#[derive(Resource, Debug)]
pub(crate) struct Throughput {
    completed: [Window; 2],
    failed: [Window; 2],
}

impl Default for Throughput {
    fn default() -> Self {
        let windows = || [Window::new(SECOND_MS), Window::new(MINUTE_MS)];
        Self { completed: windows(), failed: windows() }
    }
}

impl Throughput {
    /// A task came to this state at `at`.
    pub(super) fn note(&mut self, state: TaskState, at: Timestamp) {
        let windows = match state {
            TaskState::Completed => &mut self.completed,
            TaskState::Failed => &mut self.failed,
            TaskState::Pending | TaskState::Running | TaskState::Cancelled => return,
        };
        windows.iter_mut().for_each(|window| window.note(at));
    }

    /// Tasks completed in the last minute and the last hour.
    pub(super) fn completed(&self, now: Timestamp) -> [u64; 2] {
        [self.completed[0].count(now), self.completed[1].count(now)]
    }

    /// Tasks failed in the last minute and the last hour.
    pub(super) fn failed(&self, now: Timestamp) -> [u64; 2] {
        [self.failed[0].count(now), self.failed[1].count(now)]
    }
}

/// Counts over the last [`BUCKETS`] buckets of time, the one that now is in included.
#[derive(Debug)]
struct Window {
    bucket_ms: i64,
    /// The count of the bucket with the number `n` stands at `n` modulo their number.
    counts: [u64; BUCKETS as usize],
    /// The number of the newest bucket that was counted in.
    newest: i64,
}

impl Window {
    const fn new(bucket_ms: i64) -> Self {
        Self { bucket_ms, counts: [0; BUCKETS as usize], newest: 0 }
    }

    const fn place(bucket: i64) -> usize {
        bucket.rem_euclid(BUCKETS) as usize
    }

    fn note(&mut self, at: Timestamp) {
        let bucket = at.0.div_euclid(self.bucket_ms);
        if bucket <= self.newest - BUCKETS {
            return;
        }
        for passed in (self.newest + 1).max(bucket - BUCKETS + 1)..=bucket {
            self.counts[Self::place(passed)] = 0;
        }
        self.newest = self.newest.max(bucket);
        self.counts[Self::place(bucket)] += 1;
    }

    fn count(&self, now: Timestamp) -> u64 {
        let bucket = now.0.div_euclid(self.bucket_ms);
        let oldest = bucket.max(self.newest) - BUCKETS + 1;
        (oldest..=self.newest).map(|passed| self.counts[Self::place(passed)]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_buckets_count() {
        let mut window = Window::new(SECOND_MS);
        let at = |secs: i64| Timestamp(1_700_000_000_000 + secs * SECOND_MS);
        assert_eq!(window.count(at(0)), 0);
        for secs in 0..100 {
            window.note(at(secs));
        }
        assert_eq!(window.count(at(99)), 60);
        assert_eq!(window.count(at(129)), 30);
        assert_eq!(window.count(at(158)), 1);
        assert_eq!(window.count(at(159)), 0);
        window.note(at(98));
        assert_eq!(window.count(at(99)), 61, "what comes late counts in its own bucket");
        window.note(at(1));
        assert_eq!(window.count(at(99)), 61, "what comes too late does not count");
        window.note(at(10_000));
        assert_eq!(window.count(at(10_000)), 1);
    }
}
