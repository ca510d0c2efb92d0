//! How long things took in the last minute: percentiles that are exact to 12 %, and the longest of all.

use std::time::{Duration, Instant};

use agentsvc_api::world::vitals::Times;
use parking_lot::Mutex;

/// Seconds of one slot, and how many are kept: what is told is of the last 60 to 70 seconds.
const SLOT_SECS: u64 = 10;
const SLOTS: usize = 7;
/// Buckets of one power of two.
const PER_OCTAVE: u64 = 8;
/// Up to 2^31 microseconds, half an hour; what is longer counts as that.
const BUCKETS: usize = 240;

/// Durations of the last minute. Its lock is held for some nanoseconds.
#[derive(Debug)]
pub struct Window {
    start: Instant,
    slots: Mutex<Box<[Slot; SLOTS]>>,
}

#[derive(Clone, Debug)]
struct Slot {
    /// Which stretch of time this is; a slot is used again for a later one.
    number: u64,
    counts: [u32; BUCKETS],
    max_us: u64,
}

const EMPTY: Slot = Slot { number: 0, counts: [0; BUCKETS], max_us: 0 };

impl Default for Window {
    fn default() -> Self {
        Self { start: Instant::now(), slots: Mutex::new(Box::new([EMPTY; SLOTS])) }
    }
}

impl Window {
    /// Something took so long and ended now.
    pub fn observe(&self, took: Duration) {
        self.observe_at(self.start.elapsed(), took);
    }

    fn observe_at(&self, at: Duration, took: Duration) {
        let number = at.as_secs() / SLOT_SECS + 1;
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut slots = self.slots.lock();
        let slot = &mut slots[number as usize % SLOTS];
        if slot.number != number {
            *slot = Slot { number, ..EMPTY };
        }
        let count = &mut slot.counts[bucket(us)];
        *count = count.saturating_add(1);
        slot.max_us = slot.max_us.max(us);
    }

    /// The last minute.
    #[must_use]
    pub fn read(&self) -> Times {
        self.read_at(self.start.elapsed())
    }

    fn read_at(&self, at: Duration) -> Times {
        let newest = at.as_secs() / SLOT_SECS + 1;
        let (mut counts, mut max_us) = ([0_u64; BUCKETS], 0);
        let slots = self.slots.lock();
        for slot in slots.iter().filter(|slot| slot.number > 0 && slot.number + SLOTS as u64 > newest) {
            max_us = max_us.max(slot.max_us);
            for (sum, count) in counts.iter_mut().zip(&slot.counts) {
                *sum += u64::from(*count);
            }
        }
        drop(slots);
        let count: u64 = counts.iter().sum();
        let percentile = |per_cent: u64| {
            let wanted = (count * per_cent).div_ceil(100);
            let mut seen = 0;
            let at = counts.iter().position(|count| {
                seen += count;
                seen >= wanted && wanted > 0
            });
            at.map_or(0, |at| middle(at).min(max_us))
        };
        Times { p50_us: percentile(50), p99_us: percentile(99), max_us, count }
    }
}

/// The bucket of a duration: one for each microsecond up to 7, then eight for each power of two.
fn bucket(us: u64) -> usize {
    if us < PER_OCTAVE {
        return us as usize;
    }
    let octave = u64::from(us.ilog2()) - 3;
    let within = (us >> octave) - PER_OCTAVE;
    ((octave + 1) * PER_OCTAVE + within).min(BUCKETS as u64 - 1) as usize
}

/// The middle of a bucket, in microseconds.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PER_OCTAVE {
        return bucket;
    }
    let octave = bucket / PER_OCTAVE - 1;
    let low = (PER_OCTAVE + bucket % PER_OCTAVE) << octave;
    low + (1 << octave) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_close_to_what_they_hold() {
        let mut last = 0;
        for us in (0..5_000).chain((13..31).flat_map(|power| [(1_u64 << power) - 1, 1 << power, 3 << (power - 1)])) {
            let at = bucket(us);
            assert!(us >= 5_000 || at >= last, "{us}");
            last = at;
            let error = middle(at).abs_diff(us);
            assert!(error * 8 <= us.max(1), "{us} is taken for {}", middle(at));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_last_minute_is_told_and_what_is_older_forgotten() {
        let window = Window::default();
        let (at, ms) = (Duration::from_secs, Duration::from_millis);
        assert_eq!(window.read_at(at(0)), Times::default());
        for _ in 0..297 {
            window.observe_at(at(5), ms(1));
        }
        window.observe_at(at(30), ms(1_000));
        window.observe_at(at(31), ms(1_000));
        let seen = window.read_at(at(31));
        assert_eq!((seen.count, seen.max_us), (299, 1_000_000));
        assert!((900..=1_100).contains(&seen.p50_us) && seen.p99_us <= 1_100, "{seen:?}");
        assert_eq!(window.read_at(at(80)).count, 2, "the first slot is gone");
        assert_eq!(window.read_at(at(300)), Times::default());
        window.observe_at(at(300), ms(2));
        assert_eq!(window.read_at(at(301)).count, 1, "a slot is used again");
    }
}
