//! What must hold of schedules and cron jobs: each is visited in its time, and every slot that waits will be served.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::ScheduleId;
use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::{Schedule, ScheduleKind};
use agentsvc_components::turn::{Origin, Turn};

use super::times::{QUOTA, Schedules, Timing, next_slot};
use crate::kernel::check::Faults;
use crate::kernel::quota::Used;

/// Says which index is wrong, and which slot would never be served ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let mut found = world.query::<(Entity, &ScheduleId, &Schedule, &Timing)>();
    let mut turns = world.query::<&Turn>();
    let world = &*world;
    let schedules = world.resource::<Schedules>();
    let mut open: BTreeMap<ScheduleId, u32> = BTreeMap::new();
    for turn in turns.iter(world) {
        if let Origin::Schedule { schedule } = turn.origin {
            *open.entry(schedule).or_default() += 1;
        }
    }
    let (mut by_id, mut by_agent, mut times) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut used = Used::default();
    for (entity, id, schedule, timing) in found.iter(world) {
        used.add(schedule.bytes());
        by_id.insert((schedule.kind, *id, entity));
        by_agent.insert((schedule.agent, schedule.kind, *id));
        faults
            .that(world.get::<Agent>(schedule.agent).is_some(), || format!("schedule {id}: the agent does not exist"));
        let turns = open.get(id).copied().unwrap_or(0);
        faults.that(timing.open == turns, || format!("schedule {id}: {turns} turns are open, {} counted", timing.open));
        let next = next_slot(world, entity).filter(|_| schedule.enabled);
        let is_held = schedules.is_held(*id);
        times.extend(timing.visit.filter(|_| !is_held).map(|at| (at, *id)));
        let is_planned = next.is_none() || is_held || timing.visit == next;
        faults.that(is_planned, || {
            format!("schedule {id}: its next slot is {next:?}, and it is visited at {:?}", timing.visit)
        });
        past(schedules, (*id, schedule), turns, faults);
    }
    faults.same("schedules", &schedules.all_of_both(), &by_id);
    faults.same("room of schedules", &schedules.used, &used);
    QUOTA.check(used, faults);
    faults.same("schedules by agent", schedules.by_agent(), &by_agent);
    faults.same("schedules by time", schedules.by_time(), &times);
}

/// What has become of its slots so far.
fn past(schedules: &Schedules, (id, schedule): (ScheduleId, &Schedule), turns: u32, faults: &mut Faults) {
    let Some(past) = schedule.past.as_deref() else { return };
    let waiting = past.queue.len();
    faults.that(waiting <= limit::SCHEDULE_QUEUE_MAX, || format!("schedule {id}: {waiting} slots wait"));
    let will_fire = waiting == 0 || turns > 0 || schedules.is_ready(id);
    faults.that(will_fire, || format!("schedule {id}: {waiting} slots wait for no turn's end"));
    let ended = past.tally.completed + past.tally.failed + past.tally.stopped;
    faults.that(ended + u64::from(turns) == past.run_count, || {
        format!("schedule {id}: {} turns begun, {ended} ended and {turns} open", past.run_count)
    });
}

impl Schedules {
    fn all_of_both(&self) -> BTreeSet<(ScheduleKind, ScheduleId, Entity)> {
        let of = |kind| self.of_kind(kind).map(move |(id, entity)| (kind, id, entity));
        of(ScheduleKind::Schedule).chain(of(ScheduleKind::Cron)).collect()
    }
}
