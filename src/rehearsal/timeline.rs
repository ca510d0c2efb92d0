//! Fires and cost over time, in equal parts.

use agentsvc_api::rehearsal::runs::{Timeline, TimelineBucket};
use agentsvc_components::Timestamp;

/// Parts that are aimed at, at most.
const BUCKETS_MAX: i64 = 400;
/// Lengths of a part that people read well, in seconds.
const WIDTHS: [i64; 12] = [60, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800];

/// One part while it is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// Turns started.
    pub(super) fires: u64,
    /// What began none.
    pub(super) skips: u64,
    /// Turns that ended.
    pub(super) turns: u64,
    /// Micro-dollars of calls.
    pub(super) cost: u64,
}

/// The parts of a time.
#[derive(Debug)]
pub(super) struct Parts {
    from: Timestamp,
    width_ms: i64,
    parts: Vec<Part>,
}

impl Parts {
    /// Parts from `from` to `until`: the shortest of the good lengths of which no more than 400 are needed.
    pub(super) fn new(from: Timestamp, until: Timestamp) -> Self {
        let span_ms = until.0.saturating_sub(from.0).max(1);
        let fits = |width: &&i64| span_ms.div_euclid(**width * 1_000) < BUCKETS_MAX;
        let width_ms = WIDTHS.iter().find(fits).copied().unwrap_or(WIDTHS[WIDTHS.len() - 1]) * 1_000;
        let count = usize::try_from((span_ms + width_ms - 1) / width_ms).unwrap_or(1);
        Self { from, width_ms, parts: vec![Part::default(); count] }
    }

    /// The part that `at` is in.
    pub(super) fn at(&mut self, at: Timestamp) -> &mut Part {
        let place = usize::try_from(at.0.saturating_sub(self.from.0).max(0) / self.width_ms).unwrap_or_default();
        let last = self.parts.len() - 1;
        &mut self.parts[place.min(last)]
    }

    /// The same as JSON.
    pub(super) fn shape(&self) -> Timeline {
        let starts = (0..).map(|n: i64| self.from.plus_ms(n * self.width_ms));
        let buckets = self.parts.iter().zip(starts).map(|(part, at)| TimelineBucket {
            at: at.to_string(),
            fires: part.fires,
            skips: part.skips,
            turns: part.turns,
            cost_usd: agentsvc_components::Micros(part.cost).usd(),
        });
        Timeline { bucket_secs: self.width_ms.unsigned_abs() / 1_000, buckets: buckets.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_few_and_cover_the_time() {
        for (days, width, count) in [(7, 1_800, 336), (1, 300, 288), (366, 86_400, 366)] {
            let parts = Parts::new(Timestamp(0), Timestamp(days * 86_400_000));
            let shape = parts.shape();
            assert_eq!((shape.bucket_secs, shape.buckets.len()), (width, count), "{days} days");
        }
        assert_eq!(Parts::new(Timestamp(5), Timestamp(5)).shape().buckets.len(), 1);
    }

    #[test]
    fn a_moment_is_in_its_part() {
        let mut parts = Parts::new(Timestamp(1_000), Timestamp(121_000));
        parts.at(Timestamp(1_000)).fires += 1;
        parts.at(Timestamp(60_999)).fires += 1;
        parts.at(Timestamp(61_000)).fires += 1;
        parts.at(Timestamp(999_000)).fires += 1;
        let fires: Vec<u64> = parts.shape().buckets.iter().map(|bucket| bucket.fires).collect();
        assert_eq!(fires, [2, 2]);
    }
}
