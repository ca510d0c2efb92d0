//! What becomes of the slots of schedules and cron jobs: each one that is due has one outcome, over kills too. The slots
//! are counted here by arithmetic, where the rule allows it, and what the world says of each is held against that.
//!
//! A plan is what must be stored of a schedule. A kill takes it back to what is on the disk: a slot whose outcome is there
//! must not have another one, and the next one is the first that has none.

use std::collections::{BTreeMap, VecDeque};
use std::str::FromStr;

use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::schedule::{Past, Tally};
use agentsvc_components::{ScheduleId, Timestamp};
use agentsvc_systems::Commit;
use agentsvc_systems::Records;
use agentsvc_systems::event::told;
use agentsvc_systems::kernel::record::read_as;
use agentsvc_systems::rehearsal::Note;
use agentsvc_systems::schedule::{Rule, SlotOutcome};
use chrono_tz::Tz;
use uuid::Uuid;

use super::disk::Rows;

/// Cron expressions whose slots are the multiples of so many milliseconds, whatever the zone (all zones here are whole
/// hours from UTC).
const GRIDS: &[(&str, i64)] = &[("* * * * *", 60_000), ("*/3 * * * *", 180_000), ("*/10 * * * *", 600_000)];

/// The slots of a rule.
enum Slots {
    /// The multiples of so many milliseconds.
    Grid(i64),
    /// Every so many milliseconds after the anchor.
    Every(i64),
    /// Any other: found one by one.
    Walk(Rule, Tz),
}

/// A schedule as it must be.
struct Plan {
    rule: Box<str>,
    zone: Box<str>,
    slots: Slots,
    anchor: i64,
    /// Slots up to here have an outcome or wait.
    pos: i64,
    waiting: VecDeque<i64>,
    /// How many slots had which outcome, in the order of [`counts`].
    settled: [u64; 6],
    enabled: bool,
    /// Which spans are done.
    past: Past,
}

/// Every schedule and cron job.
#[derive(Default)]
pub(crate) struct Plans(BTreeMap<ScheduleId, Plan>);

/// What a step writes of schedules: definitions, states, and which are gone.
#[derive(Default)]
struct Written {
    definitions: BTreeMap<ScheduleId, ScheduleRecord>,
    states: BTreeMap<ScheduleId, ScheduleStateRecord>,
    gone: Vec<ScheduleId>,
}

impl Plans {
    /// A start, from what is on the disk.
    pub(crate) fn load(&mut self, rows: &Rows, now: i64) -> Result<(), String> {
        let mut written = Written::default();
        let end = b"f".to_vec();
        for (key, row) in rows.range(b"d".to_vec()..end) {
            written.read(key, Some(row))?;
        }
        self.0.clear();
        for (id, definition) in &written.definitions {
            let state = written.states.get(id).ok_or_else(|| format!("schedule {id} is stored without its state"))?;
            let mut plan = Plan::of(definition)?;
            plan.take(state);
            self.0.insert(*id, plan);
        }
        self.count_anew(now);
        Ok(())
    }

    /// The clock was wrong, and is set back by more than it may be: schedules that counted by it count from now.
    pub(crate) fn count_anew(&mut self, now: i64) {
        for plan in self.0.values_mut().filter(|plan| plan.is_off(now)) {
            plan.past.leave(Timestamp(plan.anchor), Timestamp(plan.pos), Timestamp(now));
            plan.pos = now;
        }
    }

    /// A step: what it writes, and what it says of slots. When it `is_done`, nothing is left over for the next one.
    pub(crate) fn step(&mut self, commit: &Commit, notes: &[Note], now: i64, is_done: bool) -> Result<(), String> {
        fired_are_told(told::events(commit), notes)?;
        let mut written = Written::default();
        for Op { key, value, .. } in commit.ops.iter().filter(|op| op.space == Space::World) {
            written.read(key, value.as_ref())?;
        }
        for (id, definition) in &written.definitions {
            let enables = written.states.get(id).is_some_and(|state| state.enabled);
            match self.0.get_mut(id) {
                Some(plan) => plan.define(definition, enables)?,
                None => drop(self.0.insert(*id, Plan::of(definition)?)),
            }
        }
        // Those whose clock was set back below slots that wait: a slot may be meant twice, and is not told apart.
        let blurred: Vec<ScheduleId> = self.0.iter().filter(|(_, plan)| plan.is_blurred()).map(|(id, _)| *id).collect();
        for note in notes {
            let (Note::Slot { schedule, .. } | Note::SlotWaits { schedule, .. }) = note else { continue };
            if blurred.contains(schedule) {
                continue;
            }
            match self.0.get_mut(schedule) {
                Some(plan) => plan.hear(note).map_err(|wrong| format!("a slot of schedule {schedule}: {wrong}"))?,
                None => return Err(format!("schedule {schedule} has an outcome, and is not there")),
            }
        }
        for (id, state) in &written.states {
            let Some(plan) = self.0.get_mut(id) else { continue };
            if blurred.contains(id) {
                plan.take(state);
            }
            plan.enabled = state.enabled;
            plan.check(state).map_err(|wrong| format!("the slots of schedule {id}: {wrong}"))?;
            plan.past = state.past.as_deref().cloned().unwrap_or_default();
        }
        for id in &written.gone {
            self.0.remove(id);
        }
        if is_done { self.all_settled(now) } else { Ok(()) }
    }

    /// No slot that is due lacks its outcome.
    fn all_settled(&self, now: i64) -> Result<(), String> {
        for (id, plan) in self.0.iter().filter(|(_, plan)| plan.enabled) {
            if let Some(slot) = plan.next_open(plan.pos).filter(|slot| *slot <= now) {
                return Err(format!("a slot of schedule {id}: {slot} is due at {now}, and has no outcome"));
            }
        }
        Ok(())
    }
}

impl Written {
    /// Reads one row, if it is a schedule's; `None` is a row that goes.
    fn read(&mut self, key: &[u8], row: Option<&Vec<u8>>) -> Result<(), String> {
        if !matches!(key.first(), Some(b'd' | b'e')) {
            return Ok(());
        }
        let Some(row) = row else {
            let id = Uuid::from_slice(&key[1..]).map_err(|error| format!("the key of a schedule: {error}"))?;
            self.definitions.remove(&ScheduleId(id));
            self.states.remove(&ScheduleId(id));
            self.gone.push(ScheduleId(id));
            return Ok(());
        };
        Records::check(Space::World, key, row).map_err(|error| format!("a row cannot be read: {error}"))?;
        self.definitions.extend(read_as::<ScheduleRecord>(key, row).map(|definition| (definition.id, definition)));
        self.states.extend(read_as::<ScheduleStateRecord>(key, row).map(|state| (state.id, state)));
        Ok(())
    }
}

impl Plan {
    /// A new one: its slots count from its anchor.
    fn of(definition: &ScheduleRecord) -> Result<Self, String> {
        let ScheduleRecord { rule, timezone, anchored_at, .. } = definition;
        Ok(Self {
            slots: Slots::of(rule, timezone)?,
            rule: rule.clone(),
            zone: timezone.clone(),
            anchor: anchored_at.0,
            pos: anchored_at.0,
            waiting: VecDeque::new(),
            settled: [0; 6],
            enabled: true,
            past: Past::default(),
        })
    }

    /// Its definition was written. Another rule, and one that is enabled again, counts from the new anchor.
    fn define(&mut self, definition: &ScheduleRecord, enables: bool) -> Result<(), String> {
        let ScheduleRecord { rule, timezone, anchored_at, .. } = definition;
        let is_new = self.rule != *rule || self.zone != *timezone;
        if is_new {
            self.slots = Slots::of(rule, timezone)?;
            (self.rule, self.zone) = (rule.clone(), timezone.clone());
        }
        if is_new || self.anchor != anchored_at.0 || (enables && !self.enabled) {
            (self.anchor, self.pos) = (anchored_at.0, anchored_at.0);
        }
        if is_new || (enables && !self.enabled) {
            self.past = Past::default();
        }
        Ok(())
    }

    /// What is stored holds.
    fn take(&mut self, state: &ScheduleStateRecord) {
        let past = state.past.as_deref().cloned().unwrap_or_default();
        self.waiting = past.queue.iter().map(|slot| slot.0).collect();
        (self.pos, self.settled, self.enabled) = (state.cursor.0, counts(&past.tally), state.enabled);
        self.past = past;
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
    fn next(&self, after: i64) -> Option<i64> {
        match &self.slots {
            Slots::Grid(ms) => Some((after.div_euclid(*ms) + 1) * ms),
            Slots::Every(ms) => Some(self.anchor + ((after - self.anchor).max(0) / ms + 1) * ms),
            Slots::Walk(rule, zone) => {
                rule.next(*zone, Timestamp(self.anchor), Timestamp(after)).map(|Timestamp(slot)| slot)
            }
        }
    }

    /// How many slots that are not done there are after `after` and not after `upto`.
    fn count(&self, after: i64, upto: i64) -> u64 {
        match self.past.done.after(Timestamp(after)) {
            Some((begin, end)) if begin.0 < upto => {
                self.count_all(after, begin.0) + if end.0 < upto { self.count(end.0, upto) } else { 0 }
            }
            _ => self.count_all(after, upto),
        }
    }

    /// How many slots there are after `after` and not after `upto`.
    fn count_all(&self, after: i64, upto: i64) -> u64 {
        let passed = match &self.slots {
            Slots::Grid(ms) => upto.div_euclid(*ms) - after.div_euclid(*ms),
            Slots::Every(ms) => (upto - self.anchor).max(0) / ms - (after - self.anchor).max(0) / ms,
            Slots::Walk(..) => {
                let slots = std::iter::successors(self.next(after), |slot| self.next(*slot));
                return slots.take_while(|slot| *slot <= upto).count() as u64;
            }
        };
        u64::try_from(passed).unwrap_or(0)
    }

    /// Does it count by a clock that was far ahead of `now`?
    fn is_off(&self, now: i64) -> bool {
        let far = limit::CLOCK_FAULT_MS;
        self.anchor > now + far || self.next(now).is_some_and(|next| self.pos > next + far)
    }

    /// Do slots wait that come again?
    fn is_blurred(&self) -> bool {
        self.waiting.iter().any(|slot| *slot > self.pos)
    }

    /// Something has become of its slots.
    fn hear(&mut self, note: &Note) -> Result<(), String> {
        match note {
            Note::SlotWaits { slot, .. } => {
                self.reach(slot.0, 1)?;
                self.waiting.push_back(slot.0);
            }
            Note::Slot { outcome, last, count, .. } => {
                if *count == 1 && self.waiting.front() == Some(&last.0) {
                    self.waiting.pop_front();
                } else {
                    self.reach(last.0, *count)?;
                }
                self.settled[place(*outcome)] += count;
            }
            _ => {}
        }
        Ok(())
    }

    /// The next `count` slots end with `last`.
    fn reach(&mut self, last: i64, count: u64) -> Result<(), String> {
        if last <= self.pos {
            return Err(format!("{last} had its outcome: those up to {} have theirs", self.pos));
        }
        let there_are = self.count(self.pos, last);
        if there_are != count {
            return Err(format!("{there_are} lie after {} and up to {last}, {count} have an outcome", self.pos));
        }
        if self.next(last - 1) != Some(last) {
            return Err(format!("{last} is none"));
        }
        self.pos = last;
        Ok(())
    }

    /// Is what is stored what must be?
    fn check(&self, state: &ScheduleStateRecord) -> Result<(), String> {
        let none = Past::default();
        let past = state.past.as_deref().unwrap_or(&none);
        if state.cursor.0 != self.pos {
            return Err(format!("the cursor stands at {}, and must at {}", state.cursor.0, self.pos));
        }
        if !past.queue.iter().map(|slot| slot.0).eq(self.waiting.iter().copied()) {
            return Err(format!("{:?} wait, and {:?} must", past.queue, self.waiting));
        }
        let stored = counts(&past.tally);
        if stored != self.settled {
            return Err(format!("their outcomes are counted {stored:?}, and are {:?}", self.settled));
        }
        Ok(())
    }
}

impl Slots {
    fn of(rule: &str, zone: &str) -> Result<Self, String> {
        if let Some((_, ms)) = GRIDS.iter().find(|(expression, _)| *expression == rule) {
            return Ok(Self::Grid(*ms));
        }
        let read = Rule::parse(rule).map_err(|error| format!("the rule {rule:?}: {error}"))?;
        let zone = Tz::from_str(zone).map_err(|_| format!("the zone {zone:?} is none"))?;
        Ok(match read {
            Rule::Every(ms) => Self::Every(i64::try_from(ms).map_err(|error| error.to_string())?),
            other => Self::Walk(other, zone),
        })
    }
}

/// Slots of a tally by their outcome.
const fn counts(tally: &Tally) -> [u64; 6] {
    [tally.fired, tally.missed, tally.overlapped, tally.refused, tally.agent_stopped, tally.over_budget]
}

/// Where [`counts`] has an outcome.
const fn place(outcome: SlotOutcome) -> usize {
    match outcome {
        SlotOutcome::Fired => 0,
        SlotOutcome::Missed => 1,
        SlotOutcome::Overlapped => 2,
        SlotOutcome::Refused => 3,
        SlotOutcome::AgentStopped => 4,
        SlotOutcome::OverBudget => 5,
    }
}

/// Each slot that fired began one turn, and that is told in the same step.
fn fired_are_told<'a>(events: impl Iterator<Item = &'a EventEnvelope>, notes: &[Note]) -> Result<(), String> {
    let told = events.filter_map(|happened| match &happened.event {
        Event::ScheduleFired { schedule: id, slot: Some(slot), .. }
        | Event::CronFired { job: id, slot: Some(slot), .. } => Some((*id, slot.to_string())),
        _ => None,
    });
    let fired = notes.iter().filter_map(|note| match note {
        Note::Slot { schedule, outcome: SlotOutcome::Fired, last, .. } => Some((*schedule, last.to_string())),
        _ => None,
    });
    let (told, fired): (Vec<_>, Vec<_>) = (told.collect(), fired.collect());
    if told == fired { Ok(()) } else { Err(format!("slots that fired are {fired:?}, and told are {told:?}")) }
}
