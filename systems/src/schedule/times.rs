//! Which schedules there are and when each is to be visited.

use super::error_codes::SCHEDULES_FULL;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bevy_ecs::prelude::{Component, Entity, Resource, World};
use chrono::{TimeZone, Timelike};
use chrono_tz::Tz;
use hashbrown::HashMap;
use uuid::Uuid;

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::QuietHours;
use agentsvc_components::schedule::{Schedule, ScheduleKind};
use agentsvc_components::{ScheduleId, Timestamp};

use super::rule::Rule;
use crate::kernel::index::id_of;
use crate::kernel::quota::{Quota, Used};

/// What schedules and cron jobs may take.
pub(super) const QUOTA: Quota = Quota {
    count: limit::SCHEDULES_MAX,
    bytes: limit::SCHEDULES_BYTES_MAX,
    what: "schedules and cron jobs",
    code: SCHEDULES_FULL,
};

/// What the time index needs of a schedule; made from its definition.
#[derive(Component, Clone, Copy, Debug)]
pub(super) struct Timing {
    /// Its rule, as it was read; `None` when this release cannot read it any more: it never fires.
    pub(super) rule: Option<Rule>,
    /// The zone of a cron expression.
    pub(super) zone: Tz,
    /// Time of the day without slots.
    pub(super) quiet: Option<QuietHours>,
    /// Where it stands in the time index.
    pub(super) visit: Option<Timestamp>,
    /// Turns it began that have not ended.
    pub(super) open: u32,
}

/// Slots in quiet hours that are passed over one after the other; a rule that has more of them never fires.
const QUIET_SLOTS_MAX: usize = 64;
/// Minutes of a day.
const DAY_MINUTES: i64 = 24 * 60;

impl Timing {
    /// The first slot after `after` that is not in quiet hours, where the rule counts from `anchor`.
    pub(super) fn next(&self, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
        let rule = self.rule?;
        let mut slot = rule.next(self.zone, anchor, after)?;
        let Some(quiet) = self.quiet else { return Some(slot) };
        for _ in 0..QUIET_SLOTS_MAX {
            let Some(end) = quiet_end(quiet, self.zone, slot) else { return Some(slot) };
            slot = rule.next(self.zone, anchor, end.plus_ms(-1))?;
        }
        None
    }
}

/// When the quiet hours that `moment` is in are over; `None` when it is in none.
fn quiet_end(quiet: QuietHours, zone: Tz, moment: Timestamp) -> Option<Timestamp> {
    let local = zone.timestamp_millis_opt(moment.0).single()?;
    let minute = i64::from(local.hour() * 60 + local.minute());
    let (from, to) = (i64::from(quiet.from), i64::from(quiet.to));
    let is_quiet = if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to };
    let left = (to - minute).rem_euclid(DAY_MINUTES);
    let whole_minute = moment.0 - moment.0.rem_euclid(60_000);
    is_quiet.then(|| Timestamp(whole_minute + left * 60_000))
}

/// The indexes of schedules and cron jobs.
#[derive(Resource, Default)]
pub(crate) struct Schedules {
    schedules: BTreeMap<ScheduleId, Entity>,
    jobs: BTreeMap<ScheduleId, Entity>,
    by_agent: BTreeSet<(Entity, ScheduleKind, ScheduleId)>,
    /// When each enabled schedule is to be visited.
    times: BTreeSet<(Timestamp, ScheduleId)>,
    /// The world's time when somebody looked last.
    seen: Timestamp,
    /// Visited, but not done: they go on in turn.
    unfinished: VecDeque<ScheduleId>,
    /// Slots that were walked and may still fire. Every unfinished schedule has an entry, if an empty one.
    held: HashMap<ScheduleId, VecDeque<Timestamp>>,
    /// Schedules with waiting slots and no open turn.
    ready: BTreeSet<ScheduleId>,
    /// What they take.
    pub(super) used: Used,
}

impl Schedules {
    fn family(&self, kind: ScheduleKind) -> &BTreeMap<ScheduleId, Entity> {
        match kind {
            ScheduleKind::Schedule => &self.schedules,
            ScheduleKind::Cron => &self.jobs,
        }
    }

    fn family_mut(&mut self, kind: ScheduleKind) -> &mut BTreeMap<ScheduleId, Entity> {
        match kind {
            ScheduleKind::Schedule => &mut self.schedules,
            ScheduleKind::Cron => &mut self.jobs,
        }
    }

    /// How many there are of a kind.
    pub(super) fn count(&self, kind: ScheduleKind) -> usize {
        self.family(kind).len()
    }

    /// The one of this kind and id.
    pub(crate) fn get(&self, kind: ScheduleKind, id: ScheduleId) -> Option<Entity> {
        self.family(kind).get(&id).copied()
    }

    /// The one of this id, of either kind.
    pub(crate) fn any(&self, id: ScheduleId) -> Option<Entity> {
        self.schedules.get(&id).or_else(|| self.jobs.get(&id)).copied()
    }

    /// Those of a kind in order of creation, from after `after` on.
    pub(crate) fn after(&self, kind: ScheduleKind, after: Option<ScheduleId>) -> impl Iterator<Item = ScheduleId> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        self.family(kind).range((after.map_or(Unbounded, Excluded), Unbounded)).map(|(id, _)| *id)
    }

    /// Those of one agent and kind in order of creation, from after `after` on.
    pub(crate) fn of(
        &self,
        agent: Entity,
        kind: ScheduleKind,
        after: Option<ScheduleId>,
    ) -> impl Iterator<Item = ScheduleId> + '_ {
        let from = (agent, kind, after.unwrap_or(ScheduleId(Uuid::nil())));
        let own = move |entry: &&(Entity, ScheduleKind, ScheduleId)| (entry.0, entry.1) == (agent, kind);
        self.by_agent.range(from..).take_while(own).map(|entry| entry.2).filter(move |id| Some(*id) != after)
    }

    /// All of both kinds, in the order of ids within each.
    pub(super) fn all(&self) -> Vec<Entity> {
        self.schedules.values().chain(self.jobs.values()).copied().collect()
    }

    pub(super) fn insert(&mut self, kind: ScheduleKind, agent: Entity, id: ScheduleId, entity: Entity) {
        self.family_mut(kind).insert(id, entity);
        self.by_agent.insert((agent, kind, id));
    }

    pub(super) fn remove(&mut self, kind: ScheduleKind, agent: Entity, id: ScheduleId, visit: Option<Timestamp>) {
        self.family_mut(kind).remove(&id);
        self.by_agent.remove(&(agent, kind, id));
        self.forget(id, visit);
        self.ready.remove(&id);
    }

    /// It belongs to another agent now.
    pub(super) fn give(&mut self, kind: ScheduleKind, from: Entity, to: Entity, id: ScheduleId) {
        self.by_agent.remove(&(from, kind, id));
        self.by_agent.insert((to, kind, id));
    }

    /// Takes it out of the time index and drops what it holds.
    fn forget(&mut self, id: ScheduleId, visit: Option<Timestamp>) {
        if let Some(visit) = visit {
            self.times.remove(&(visit, id));
        }
        // Its place among the unfinished is skipped when its turn comes.
        self.held.remove(&id);
    }

    /// Notes the time, against which what is due is judged.
    pub(super) const fn look(&mut self, now: Timestamp) {
        self.seen = now;
    }

    /// Is anything to be visited, or any waiting slot to be fired?
    pub(super) fn has_due(&self) -> bool {
        self.times.first().is_some_and(|(at, _)| *at <= self.seen)
            || !self.unfinished.is_empty()
            || !self.ready.is_empty()
    }

    /// When the next one is to be visited.
    #[cfg(test)]
    pub(super) fn first_visit(&self) -> Option<Timestamp> {
        self.times.first().map(|(at, _)| *at)
    }

    /// The same, or the distant past while something that was due is not done.
    pub(super) fn next_visit(&self) -> Option<Timestamp> {
        let is_behind = !self.unfinished.is_empty() || !self.ready.is_empty();
        if is_behind { Some(Timestamp(i64::MIN)) } else { self.times.first().map(|(at, _)| *at) }
    }

    /// Those of a kind, with their entities.
    pub(super) fn of_kind(&self, kind: ScheduleKind) -> impl Iterator<Item = (ScheduleId, Entity)> + '_ {
        self.family(kind).iter().map(|(id, entity)| (*id, *entity))
    }

    /// The index by agent.
    pub(super) const fn by_agent(&self) -> &BTreeSet<(Entity, ScheduleKind, ScheduleId)> {
        &self.by_agent
    }

    /// The index by time.
    pub(super) const fn by_time(&self) -> &BTreeSet<(Timestamp, ScheduleId)> {
        &self.times
    }

    /// Was it visited, and goes on in its turn?
    pub(super) fn is_held(&self, id: ScheduleId) -> bool {
        self.held.contains_key(&id)
    }

    /// May its waiting slots fire?
    pub(super) fn is_ready(&self, id: ScheduleId) -> bool {
        self.ready.contains(&id)
    }

    /// Takes out the next one to visit.
    pub(super) fn next_due(&mut self) -> Option<ScheduleId> {
        if self.times.first().is_some_and(|(at, _)| *at <= self.seen) {
            return self.times.pop_first().map(|(_, id)| id);
        }
        while let Some(id) = self.unfinished.pop_front() {
            if self.held.contains_key(&id) {
                return Some(id);
            }
        }
        None
    }

    /// What it holds from an earlier visit.
    pub(super) fn take_held(&mut self, id: ScheduleId) -> VecDeque<Timestamp> {
        self.held.remove(&id).unwrap_or_default()
    }

    /// It goes on later, with these.
    pub(super) fn put_off(&mut self, id: ScheduleId, held: VecDeque<Timestamp>) {
        self.held.insert(id, held);
        self.unfinished.push_back(id);
    }

    /// The next one whose waiting slots may fire.
    pub(super) fn next_ready(&mut self) -> Option<ScheduleId> {
        self.ready.pop_first()
    }

    /// Its waiting slots may fire.
    pub(super) fn set_ready(&mut self, id: ScheduleId) {
        self.ready.insert(id);
    }

    /// No slot of it waits any more.
    pub(super) fn unset_ready(&mut self, id: ScheduleId) {
        self.ready.remove(&id);
    }
}

/// The first slot that has no outcome yet. One that has had its chance to fire before the clock was set back is none.
pub(super) fn next_slot(world: &World, entity: Entity) -> Option<Timestamp> {
    let (schedule, timing) = (world.get::<Schedule>(entity)?, world.get::<Timing>(entity)?);
    let mut slot = timing.next(schedule.anchored_at, schedule.cursor)?;
    while let Some(end) = schedule.past.as_ref().and_then(|past| past.done.end_of(slot)) {
        slot = timing.next(schedule.anchored_at, end)?;
    }
    Some(slot)
}

/// Puts a schedule at its place in the time index, or takes it out when it is disabled or has no slot left. What it held
/// is dropped: it is walked again from its cursor.
pub(super) fn plan(world: &mut World, entity: Entity) {
    let Some(schedule) = world.get::<Schedule>(entity) else { return };
    let next = if schedule.enabled { next_slot(world, entity) } else { None };
    plan_at(world, entity, next);
}

/// As [`plan`], for whom the next slot is known.
pub(super) fn plan_at(world: &mut World, entity: Entity, next: Option<Timestamp>) {
    let id = id_of::<ScheduleId>(world, entity);
    let Some(mut timing) = world.get_mut::<Timing>(entity) else { return };
    let before = std::mem::replace(&mut timing.visit, next);
    let mut schedules = world.resource_mut::<Schedules>();
    schedules.forget(id, before);
    if let Some(next) = next {
        schedules.times.insert((next, id));
    }
}
