//! The independent walk: what the slots of a rule are, by croner and by arithmetic, and what has become of each.

use std::collections::{BTreeSet, VecDeque};
use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::record::ScheduleStateRecord;
use agentsvc_components::schedule::{Past, Tally};

use super::super::tests::{DAY, HOUR, MINUTE, MONDAY};
use super::Rng;
use agentsvc_components::schedule::SlotOutcome as Outcome;

/// Slots are listed up to here.
pub(super) const HORIZON: i64 = MONDAY + 120 * DAY;

const ZONES: &[Tz] = &[Tz::America__New_York, Tz::Europe__Berlin, Tz::Africa__Casablanca, Tz::Asia__Kolkata];

/// The slots of a rule.
enum Slots {
    /// Of a cron expression.
    Listed(Vec<i64>),
    /// Every so many milliseconds after the anchor.
    Every(i64),
    /// Once, so many milliseconds after the anchor.
    In(i64),
    /// Once.
    At(i64),
}

/// One schedule as it must be.
pub(super) struct Oracle {
    slots: Slots,
    anchor: i64,
    /// Slots up to here have an outcome or wait.
    pos: i64,
    waiting: VecDeque<i64>,
    taken: Option<i64>,
    tally: Tally,
    /// Which spans are done, as stored.
    past: Past,
    /// Slots that have fired since the rule counts from its anchor: none does twice.
    fired: BTreeSet<i64>,
}

/// A random rule, its zone, and its slots.
pub(super) fn rule(rng: &mut Rng) -> (String, Tz, Oracle) {
    let (minute, hour) = (rng.below(60), rng.below(24));
    let days = ["MON", "TUE,THU", "0,3,6", "FRI-SUN"];
    let mut zone = Tz::UTC;
    let text = match rng.below(100) {
        0..35 => format!("{minute} {hour} * * *"),
        35..45 => format!("{minute} {hour} * * {}", rng.pick(&days)),
        45..50 => format!("{} {minute} {hour} {} * MON", rng.below(60), rng.below(28) + 1),
        50..60 => format!("{minute} */{} * * *", rng.pick(&[3, 4, 6, 8])),
        60..75 => {
            zone = rng.pick(ZONES);
            let hours = rng.pick(&["2", "1", "0", "2,3", "*/4", "*/6", "3"]);
            format!("{} {hours} * * *", rng.pick(&["0", "15", "30", "45"]))
        }
        75..90 => return every(rng.below(47 * HOUR / 1_000) + 3_600),
        90..91 => return every(rng.below(3_000) + 300),
        91..96 => {
            let secs = rng.below(20 * DAY / 1_000) + 1;
            return (format!("in {secs}s"), zone, Oracle::new(Slots::In(secs * 1_000)));
        }
        _ => {
            let at = MONDAY + DAY + rng.below(25 * DAY / 1_000) * 1_000;
            let text = DateTime::from_timestamp_millis(at).unwrap().to_rfc3339();
            return (format!("at {text}"), zone, Oracle::new(Slots::At(at)));
        }
    };
    let slots = listed(&text, zone);
    (text, zone, Oracle::new(Slots::Listed(slots)))
}

fn every(secs: i64) -> (String, Tz, Oracle) {
    (format!("every {secs}s"), Tz::UTC, Oracle::new(Slots::Every(secs * 1_000)))
}

/// The slots of a cron expression, by croner: in UTC as it finds them, elsewhere every quarter of an hour is looked at.
fn listed(text: &str, zone: Tz) -> Vec<i64> {
    let cron = croner::Cron::from_str(text).expect("croner reads it");
    if zone == Tz::UTC {
        let begin = Utc.timestamp_millis_opt(MONDAY).unwrap();
        let next = |at: &DateTime<Utc>| cron.find_next_occurrence(at, false).ok();
        let slots = std::iter::successors(next(&begin), next);
        return slots.map(|slot| slot.timestamp_millis()).take_while(|slot| *slot < HORIZON).collect();
    }
    let fits = |time: NaiveDateTime| cron.is_time_matching(&time.and_utc()).expect("croner can tell");
    let quarters = (0..(HORIZON - MONDAY) / (15 * MINUTE)).map(|n| MONDAY + (n + 1) * 15 * MINUTE);
    if text.contains('/') {
        let local = |at: &i64| DateTime::from_timestamp_millis(*at).unwrap().with_timezone(&zone).naive_local();
        return quarters.filter(|at| fits(local(at))).collect();
    }
    let begin = Utc.timestamp_millis_opt(MONDAY - DAY).unwrap().naive_utc();
    let times = (0..(HORIZON - MONDAY + 2 * DAY) / (15 * MINUTE)).map(|n| begin + TimeDelta::minutes(15 * n));
    let slots = times.filter(|time| fits(*time)).map(|time| wall(zone, time)).filter(|slot| *slot > MONDAY);
    let slots: std::collections::BTreeSet<i64> = slots.collect();
    slots.into_iter().collect()
}

/// The first moment at which the zone's clock shows a time, or the first one after the gap that it falls into.
fn wall(zone: Tz, time: NaiveDateTime) -> i64 {
    let mut quarters = (0..).map(|n| time + TimeDelta::minutes(15 * n));
    let found = quarters.find_map(|time| zone.from_local_datetime(&time).earliest());
    found.expect("no gap is endless").timestamp_millis()
}

impl Oracle {
    fn new(slots: Slots) -> Self {
        let (waiting, fired) = (VecDeque::new(), BTreeSet::new());
        Self { slots, anchor: 0, pos: 0, waiting, taken: None, tally: Tally::default(), past: Past::default(), fired }
    }

    /// The first slot after `after` that is not done.
    fn next_open(&self, after: i64) -> Option<i64> {
        let mut slot = self.next(after)?;
        while let Some(end) = self.past.done.end_of(Timestamp(slot)) {
            slot = self.next(end.0)?;
        }
        Some(slot)
    }

    /// The first slot after `after`.
    pub(super) fn next(&self, after: i64) -> Option<i64> {
        let slot = match &self.slots {
            Slots::Listed(slots) => return slots.get(slots.partition_point(|slot| *slot <= after)).copied(),
            Slots::Every(ms) => return Some(self.anchor + ((after - self.anchor).max(0) / ms + 1) * ms),
            Slots::In(ms) => self.anchor + ms,
            Slots::At(slot) => *slot,
        };
        (slot > after).then_some(slot)
    }

    /// Slots after `after` and not after `upto`.
    fn count(&self, after: i64, upto: i64) -> u64 {
        let mut slots = std::iter::successors(self.next_open(after), |slot| self.next_open(*slot));
        slots.by_ref().take_while(|slot| *slot <= upto).count() as u64
    }

    /// Its rule counts from `anchor`.
    pub(super) fn anchored(&mut self, anchor: i64) {
        if self.anchor != anchor {
            (self.anchor, self.pos) = (anchor, anchor);
            self.fired.clear();
        }
    }

    /// The clock was set back to `now` from far ahead: must it count anew?
    pub(super) fn is_off(&self, now: i64) -> bool {
        let far = limit::CLOCK_FAULT_MS;
        self.anchor > now + far || self.next(now).is_some_and(|next| self.pos > next + far)
    }

    /// It counts anew.
    pub(super) fn count_anew(&mut self, now: i64) {
        self.past.leave(Timestamp(self.anchor), Timestamp(self.pos), Timestamp(now));
        self.pos = now;
    }

    /// A slot waits.
    pub(super) fn waits(&mut self, slot: i64) {
        assert_eq!(self.next_open(self.pos), Some(slot), "the next slot is the one that waits");
        self.pos = slot;
        self.waiting.push_back(slot);
    }

    /// A slot waits no longer.
    pub(super) fn take(&mut self, slot: i64) {
        assert_eq!(self.waiting.pop_front(), Some(slot), "slots wait in their order");
        self.taken = Some(slot);
    }

    /// Slots have their outcome.
    pub(super) fn settle(&mut self, outcome: Outcome, last: i64, count: u64) {
        if let Some(taken) = self.taken.take() {
            assert_eq!((taken, 1), (last, count), "the outcome is that of the slot that waited");
        } else {
            assert!(last > self.pos, "the slot {last} had its outcome");
            assert_eq!(self.count(self.pos, last), count, "no slot is left out before {last}");
            assert_eq!(self.next(last - 1), Some(last), "{last} is a slot");
            self.pos = last;
        }
        assert!(outcome != Outcome::Fired || self.fired.insert(last), "the slot {last} fires twice");
        *match outcome {
            Outcome::Fired => &mut self.tally.fired,
            Outcome::Missed => &mut self.tally.missed,
            Outcome::Overlapped => &mut self.tally.overlapped,
            Outcome::Refused => &mut self.tally.refused,
            Outcome::AgentStopped => &mut self.tally.agent_stopped,
            Outcome::OverBudget => &mut self.tally.over_budget,
        } += count;
    }

    /// Is what was stored what must be?
    pub(super) fn check(&mut self, stored: &ScheduleStateRecord) {
        let past = stored.past.as_deref().cloned().unwrap_or_default();
        assert_eq!(stored.cursor.0, self.pos, "the cursor stands at the last slot with an outcome");
        assert!(past.queue.iter().map(|slot| slot.0).eq(self.waiting.iter().copied()), "what waits is stored");
        let Tally { completed, failed, stopped, .. } = past.tally;
        assert_eq!(past.tally, Tally { completed, failed, stopped, ..self.tally });
        assert!(completed + failed + stopped <= past.run_count, "no turn ends twice");
        self.past = past;
    }

    /// At the end: nothing waits, and no slot up to `now` is without an outcome.
    pub(super) fn check_end(&mut self, stored: &ScheduleStateRecord, now: i64) -> u64 {
        self.check(stored);
        assert!(self.waiting.is_empty() && self.taken.is_none(), "nothing waits at the end");
        if stored.enabled {
            assert!(self.next_open(self.pos).is_none_or(|next| next > now), "every slot has its outcome");
        }
        let past = stored.past.as_deref().cloned().unwrap_or_default();
        let Tally { completed, failed, stopped, .. } = past.tally;
        assert_eq!(completed + failed + stopped, past.run_count, "every turn has its end");
        let Tally { fired, missed, overlapped, refused, agent_stopped, .. } = self.tally;
        fired + missed + overlapped + refused + agent_stopped
    }

    /// Slots that fired.
    pub(super) const fn fired(&self) -> u64 {
        self.tally.fired
    }
}
