//! How long things took in the last minute: percentiles that are exact to 4 %, and the longest of all.

use std::time::{Duration, Instant};

use agentsvc_api::http::metrics::Times;
use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// Seconds of one slot, and how many are kept: what is told is of the last 60 to 70 seconds.
const SLOT_SECS: u64 = 10;
const SLOTS: usize = 7;
/// Half an hour in microseconds; what is longer counts as that.
const US_MAX: u64 = 1 << 31;
/// Significant digits of a histogram; with one it takes 2 kB.
const DIGITS: u8 = 1;

/// Durations of the last minute. Its lock is held for some nanoseconds.
#[derive(Debug)]
pub struct LatencyHistogram {
    start: Instant,
    slots: Mutex<[Slot; SLOTS]>,
}

#[derive(Debug)]
struct Slot {
    /// Which stretch of time this is; a slot is used again for a later one.
    number: u64,
    times: Histogram<u32>,
    /// The longest; the histogram rounds it.
    max_us: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        let slot = |_| Slot { number: 0, times: empty(), max_us: 0 };
        Self { start: Instant::now(), slots: Mutex::new(std::array::from_fn(slot)) }
    }
}

fn empty() -> Histogram<u32> {
    Histogram::new_with_bounds(1, US_MAX, DIGITS).expect("the bounds are in order")
}

impl LatencyHistogram {
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
            (slot.number, slot.max_us) = (number, 0);
            slot.times.clear();
        }
        slot.times.saturating_record(us);
        slot.max_us = slot.max_us.max(us);
    }

    /// The last minute.
    pub fn read(&self) -> Times {
        self.read_at(self.start.elapsed())
    }

    fn read_at(&self, at: Duration) -> Times {
        let newest = at.as_secs() / SLOT_SECS + 1;
        let (mut times, mut max_us) = (empty(), 0);
        let slots = self.slots.lock();
        for slot in slots.iter().filter(|slot| slot.number > 0 && slot.number + SLOTS as u64 > newest) {
            max_us = max_us.max(slot.max_us);
            times += &slot.times;
        }
        drop(slots);
        let percentile = |percent| times.median_equivalent(times.value_at_percentile(percent)).min(max_us);
        Times { p50_us: percentile(50.0), p99_us: percentile(99.0), max_us, count: times.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_close_to_what_was_observed() {
        for us in (0..5_000).chain((13..31).flat_map(|power| [(1_u64 << power) - 1, 1 << power, 3 << (power - 1)])) {
            let window = LatencyHistogram::default();
            for took in [us, us, US_MAX] {
                window.observe_at(Duration::ZERO, Duration::from_micros(took));
            }
            let seen = window.read_at(Duration::ZERO);
            assert!(seen.p50_us.abs_diff(us) * 25 <= us, "{us} is taken for {}", seen.p50_us);
        }
        let window = LatencyHistogram::default();
        window.observe_at(Duration::ZERO, Duration::MAX);
        let seen = window.read_at(Duration::ZERO);
        assert_eq!((seen.max_us, seen.count), (u64::MAX, 1));
        assert!(seen.p99_us >= US_MAX, "{seen:?}");
    }

    #[test]
    fn the_last_minute_is_told_and_what_is_older_forgotten() {
        let window = LatencyHistogram::default();
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
