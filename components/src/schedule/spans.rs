//! Spans of time whose slots have had their chance to fire.

use serde::{Deserialize, Serialize};

use crate::kernel::limit;
use crate::kernel::time::Timestamp;

/// Spans of time, the earliest first: each is of the slots after its first moment and up to its second one. There are at most
/// [`SCHEDULE_SPANS_MAX`](limit::SCHEDULE_SPANS_MAX), and between any two lies more than
/// [`CLOCK_FAULT_MS`](limit::CLOCK_FAULT_MS): nearer ones become one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spans(Vec<(Timestamp, Timestamp)>);

impl Spans {
    /// Adds a span; an empty one is none.
    pub fn add(&mut self, after: Timestamp, upto: Timestamp) {
        if after >= upto {
            return;
        }
        let place = self.0.partition_point(|(other, _)| *other < after);
        self.0.insert(place, (after, upto));
        loop {
            let gaps = self.0.windows(2).map(|pair| pair[1].0.0.saturating_sub(pair[0].1.0));
            let Some((place, gap)) = gaps.enumerate().min_by_key(|(_, gap)| *gap) else { return };
            if gap > limit::CLOCK_FAULT_MS && self.0.len() <= limit::SCHEDULE_SPANS_MAX {
                return;
            }
            let (_, upto) = self.0.remove(place + 1);
            self.0[place].1 = self.0[place].1.max(upto);
        }
    }

    /// The first span that ends after `moment`.
    #[must_use]
    pub fn after(&self, moment: Timestamp) -> Option<(Timestamp, Timestamp)> {
        self.0.iter().find(|(_, upto)| *upto > moment).copied()
    }

    /// The end of the span that a slot is in.
    #[must_use]
    pub fn end_of(&self, slot: Timestamp) -> Option<Timestamp> {
        self.0.iter().find(|(after, upto)| *after < slot && slot <= *upto).map(|(_, upto)| *upto)
    }

    /// Bytes on the heap.
    #[must_use]
    pub const fn heap(&self) -> usize {
        self.0.capacity() * size_of::<(Timestamp, Timestamp)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = limit::CLOCK_FAULT_MS;

    fn spans(of: &[(i64, i64)]) -> Spans {
        let mut spans = Spans::default();
        of.iter().for_each(|(after, upto)| spans.add(Timestamp(after * DAY), Timestamp(upto * DAY)));
        spans
    }

    #[test]
    fn near_spans_become_one_and_there_are_few() {
        assert_eq!(spans(&[(5, 5), (7, 6)]), Spans::default(), "empty");
        assert_eq!(spans(&[(10, 20), (0, 5), (21, 22), (3, 9)]), spans(&[(0, 22)]));
        assert_eq!(spans(&[(0, 100), (10, 20)]), spans(&[(0, 100)]), "one within another");
        let many = spans(&[(0, 1), (10, 11), (13, 14), (30, 31), (10_000, 10_001)]);
        assert_eq!(many, spans(&[(0, 1), (10, 14), (30, 31), (10_000, 10_001)]), "the nearest two");
        assert_eq!(many.after(Timestamp(20 * DAY)), Some((Timestamp(30 * DAY), Timestamp(31 * DAY))));
        assert_eq!((many.end_of(Timestamp(12 * DAY)), many.end_of(Timestamp(0))), (Some(Timestamp(14 * DAY)), None));
        assert_eq!(many.end_of(Timestamp(14 * DAY)), Some(Timestamp(14 * DAY)), "its last moment is of it");
    }
}
