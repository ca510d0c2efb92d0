//! Histories of lists, and what is wrong with them. A list only grows: each value is appended to it once, and it is read whole.
//! So what one read shows of the order holds for every other one, and nothing has to be guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// What a client knows of an append when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was acknowledged.
    Done,
    /// It was refused, and nothing of it may ever be seen.
    Refused,
    /// No answer came, or one that leaves it open.
    Unknown,
}

/// One append. Times are since the history began.
#[derive(Clone, Debug)]
pub(crate) struct Append {
    pub(crate) list: usize,
    pub(crate) value: u64,
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
    pub(crate) outcome: Outcome,
}

/// One read of a whole list.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) list: usize,
    pub(crate) values: Vec<u64>,
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
}

/// What happened, as the clients saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) appends: Vec<Append>,
    pub(crate) reads: Vec<Read>,
    /// How old what a read shows may be.
    pub(crate) staleness: Duration,
}

/// What must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Anomaly {
    /// It was acknowledged, and a read that began long enough afterwards lacks it.
    Lost { list: usize, value: u64 },
    /// It is in the list more than once.
    Doubled { list: usize, value: u64 },
    /// Nobody appended it, or it was refused.
    Phantom { list: usize, value: u64 },
    /// Two reads show these in different orders, or one of them lacks what the other has in between.
    Reordered { list: usize, first: u64, second: u64 },
    /// A read showed it, and one that began long enough afterwards does not.
    Vanished { list: usize, value: u64 },
    /// The first was acknowledged before the second began, and stands behind it.
    Overtaken { list: usize, first: u64, second: u64 },
    /// A read that was over before it began shows it.
    Early { list: usize, value: u64 },
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl History {
    /// Everything that is wrong with it, sorted; nothing when it could have happened on one machine that never fails.
    pub(crate) fn anomalies(&self) -> Vec<Anomaly> {
        let mut found = BTreeSet::new();
        let appends: BTreeMap<(usize, u64), &Append> =
            self.appends.iter().map(|append| ((append.list, append.value), append)).collect();
        let mut reads: BTreeMap<usize, Vec<&Read>> = BTreeMap::new();
        for read in &self.reads {
            reads.entry(read.list).or_default().push(read);
        }
        for (list, reads) in &mut reads {
            reads.sort_by_key(|read| read.values.len());
            reads.iter().for_each(|read| values(read, &appends, &mut found));
            self.orders(*list, reads, &mut found);
            // The longest one shows the order of all others.
            if let Some(longest) = reads.last() {
                real_time(longest, &appends, &mut found);
            }
            let own = self.appends.iter().filter(|append| append.list == *list);
            own.for_each(|append| self.lost(append, reads, &mut found));
        }
        found.into_iter().collect()
    }

    /// Each read is the beginning of the next longer one, and later ones lack nothing.
    fn orders(&self, list: usize, reads: &[&Read], found: &mut BTreeSet<Anomaly>) {
        for pair in reads.windows(2) {
            let differing = pair[0].values.iter().zip(&pair[1].values).find(|(shorter, longer)| shorter != longer);
            if let Some((first, second)) = differing {
                found.insert(Anomaly::Reordered { list, first: *first, second: *second });
            }
        }
        // When each value was first seen.
        let mut seen: BTreeMap<u64, Duration> = BTreeMap::new();
        for read in reads {
            for value in &read.values {
                let at = seen.entry(*value).or_insert(read.ended);
                *at = (*at).min(read.ended);
            }
        }
        for read in reads {
            let there: BTreeSet<u64> = read.values.iter().copied().collect();
            let missing =
                seen.iter().filter(|(value, at)| **at + self.staleness < read.began && !there.contains(value));
            found.extend(missing.map(|(value, _)| Anomaly::Vanished { list, value: *value }));
        }
    }

    /// What was acknowledged is in every read that began long enough afterwards.
    fn lost(&self, append: &Append, reads: &[&Read], found: &mut BTreeSet<Anomaly>) {
        let must_show = |read: &&&Read| append.ended + self.staleness < read.began;
        let is_lost = append.outcome == Outcome::Done
            && reads.iter().filter(must_show).any(|read| !read.values.contains(&append.value));
        if is_lost {
            found.insert(Anomaly::Lost { list: append.list, value: append.value });
        }
    }
}

/// Each value of a read was appended, and once.
fn values(read: &Read, appends: &BTreeMap<(usize, u64), &Append>, found: &mut BTreeSet<Anomaly>) {
    let (list, mut there) = (read.list, BTreeSet::new());
    for value in read.values.iter().copied() {
        if !there.insert(value) {
            found.insert(Anomaly::Doubled { list, value });
        }
        found.extend(match appends.get(&(list, value)) {
            None => Some(Anomaly::Phantom { list, value }),
            Some(append) if append.outcome == Outcome::Refused => Some(Anomaly::Phantom { list, value }),
            Some(append) if append.began > read.ended => Some(Anomaly::Early { list, value }),
            Some(_) => None,
        });
    }
}

/// What was acknowledged before another one began stands before it.
fn real_time(read: &Read, appends: &BTreeMap<(usize, u64), &Append>, found: &mut BTreeSet<Anomaly>) {
    let list = read.list;
    // The latest beginning of all that stand before, and whose it is.
    let mut latest: Option<(Duration, u64)> = None;
    let mut seen = BTreeSet::new();
    for value in read.values.iter().filter(|value| seen.insert(**value)) {
        let Some(append) = appends.get(&(list, *value)) else { continue };
        if let Some((began, second)) = latest
            && append.outcome == Outcome::Done
            && append.ended < began
        {
            found.insert(Anomaly::Overtaken { list, first: *value, second });
        }
        latest = latest.max(Some((append.began, *value)));
    }
}

mod tests {
    use super::*;

    fn at(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// Values 1, 2, 3 appended one after the other, each in its hundred milliseconds, and read at the end.
    fn good() -> History {
        let append = |value: u64| Append {
            list: 0,
            value,
            began: at(value * 100),
            ended: at(value * 100 + 50),
            outcome: Outcome::Done,
        };
        let read =
            |values: &[u64], time: u64| Read { list: 0, values: values.into(), began: at(time), ended: at(time + 5) };
        let reads = vec![read(&[1], 160), read(&[1, 2], 260), read(&[1, 2, 3], 1_000), read(&[1, 2, 3], 2_000)];
        History { appends: (1..=3).map(append).collect(), reads, staleness: at(20) }
    }

    #[test]
    fn a_history_of_one_machine_is_good() {
        assert_eq!(good().anomalies(), []);
        let mut history = good();
        // One that overlaps others may stand anywhere, one without an answer may be there or not, and so may a late one.
        history.appends[1].outcome = Outcome::Unknown;
        assert_eq!(history.anomalies(), []);
        history.reads.iter_mut().for_each(|read| read.values.retain(|value| *value != 2));
        assert_eq!(history.anomalies(), []);
        let mut history = good();
        history.reads[1].values.pop();
        assert_eq!(history.anomalies(), [], "it was acknowledged only ten milliseconds before");
        let mut history = good();
        (history.appends[2].began, history.appends[1].ended) = (at(120), at(400));
        history.reads.truncate(1);
        history.reads.push(Read { list: 0, values: vec![1, 3, 2], began: at(1_000), ended: at(1_001) });
        assert_eq!(history.anomalies(), [], "they overlap");
    }

    #[test]
    fn what_was_acknowledged_and_is_not_there_is_lost() {
        let mut history = good();
        history.reads[3].values.pop();
        history.reads.remove(2);
        assert_eq!(history.anomalies(), [Anomaly::Lost { list: 0, value: 3 }]);
        let mut history = good();
        history.reads[3].values.pop();
        assert_eq!(history.anomalies(), [Anomaly::Lost { list: 0, value: 3 }, Anomaly::Vanished { list: 0, value: 3 }]);
        let mut history = good();
        history.reads.iter_mut().for_each(|read| read.values.clear());
        assert_eq!(history.anomalies().len(), 3);
    }

    #[test]
    fn what_is_there_twice_or_from_nobody_is_found() {
        let mut history = good();
        history.reads[3].values.push(2);
        assert_eq!(history.anomalies(), [Anomaly::Doubled { list: 0, value: 2 }]);
        let mut history = good();
        history.reads[3].values.push(9);
        assert_eq!(history.anomalies(), [Anomaly::Phantom { list: 0, value: 9 }]);
        let mut history = good();
        history.appends[2].outcome = Outcome::Refused;
        assert_eq!(history.anomalies(), [Anomaly::Phantom { list: 0, value: 3 }]);
        let mut history = good();
        history.reads[0].values.extend([2, 3]);
        let early = [Anomaly::Vanished { list: 0, value: 3 }];
        let expected = [early.to_vec(), [2, 3].map(|value| Anomaly::Early { list: 0, value }).to_vec()].concat();
        assert_eq!(history.anomalies(), expected);
    }

    #[test]
    fn another_order_is_found() {
        let mut history = good();
        history.reads[2].values.swap(1, 2);
        let found = history.anomalies();
        assert!(found.iter().any(|anomaly| matches!(anomaly, Anomaly::Reordered { .. })), "{found:?}");
        // All readers agree, and time does not.
        let mut history = good();
        history.reads.drain(..2);
        history.reads.iter_mut().for_each(|read| read.values.swap(1, 2));
        assert_eq!(history.anomalies(), [Anomaly::Overtaken { list: 0, first: 2, second: 3 }]);
    }

    #[test]
    fn what_was_read_and_is_gone_is_found_though_nobody_acknowledged_it() {
        let mut history = good();
        history.appends[2].outcome = Outcome::Unknown;
        history.reads[3].values.pop();
        assert_eq!(history.anomalies(), [Anomaly::Vanished { list: 0, value: 3 }]);
    }

    #[test]
    fn lists_are_apart() {
        let mut history = good();
        history.appends.push(Append { list: 1, ..history.appends[2].clone() });
        history.reads.push(Read { list: 1, values: vec![3], began: at(3_000), ended: at(3_001) });
        assert_eq!(history.anomalies(), []);
        history.reads.push(Read { list: 1, values: vec![], began: at(4_000), ended: at(4_001) });
        let expected = [Anomaly::Lost { list: 1, value: 3 }, Anomaly::Vanished { list: 1, value: 3 }];
        assert_eq!(history.anomalies(), expected);
    }
}
