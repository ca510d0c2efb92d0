//! Stored schedules come to life, and what happens when the clock was wrong.

use std::str::FromStr;

use bevy_ecs::prelude::{Entity, World};
use chrono_tz::Tz;
use hashbrown::HashMap;

use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::Schedule;
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::turn::Origin;
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::{ScheduleId, Timestamp};

use super::fire::ready_when_idle;
use super::rule::Rule;
use super::times::{Schedules, Timing, next_slot, plan};
use super::view::definition;
use crate::kernel::clock::Now;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::record::{self, Error};
use crate::kernel::restore::Records;

/// Brings stored schedules back. Of the turns that were open those that schedules began are counted.
pub(crate) fn load(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let mut definitions = records.take::<ScheduleRecord>();
    let mut states = records.take::<ScheduleStateRecord>();
    definitions.sort_by_key(|record| record.id);
    states.sort_by_key(|record| record.id);
    let open = open_turns(records.iter());
    let mut bundles = Vec::with_capacity(definitions.len());
    let mut states = states.into_iter().peekable();
    // Many schedules have the same rule.
    let mut rules: HashMap<String, Option<Rule>> = HashMap::new();
    for record in definitions {
        let dangling = |what| Error::Dangling { key: record.id.to_string(), what };
        let agent = index::agent(world, record.agent).map_err(|_| dangling("agent"))?;
        while states.next_if(|state| state.id < record.id).is_some() {}
        let state = states.next_if(|state| state.id == record.id).ok_or_else(|| dangling("state"))?;
        let zone = Tz::from_str(&record.timezone);
        let rule = *rules.entry_ref(&*record.rule).or_insert_with(|| Rule::parse(&record.rule).ok());
        let rule = rule.filter(|_| zone.is_ok());
        let zone = zone.unwrap_or(Tz::UTC);
        let quiet = record.wake.as_ref().and_then(|wake| wake.quiet);
        let open = open.get(&record.id).copied().unwrap_or(0);
        let timing = Timing { rule, zone, quiet, visit: None, open };
        bundles.push((record.id, component(agent, record, state), timing));
    }
    let entities: Vec<Entity> = world.spawn_batch(bundles).collect();
    let now = world.resource::<Now>().0;
    for entity in entities {
        anchor(world, entity, now);
        plan(world, entity);
        let id = id_of::<ScheduleId>(world, entity);
        ready_when_idle(world, entity, id);
    }
    Ok(())
}

fn open_turns<'a>(turns: impl Iterator<Item = &'a TurnRecord>) -> HashMap<ScheduleId, u32> {
    let mut open = HashMap::new();
    for turn in turns {
        if let Origin::Schedule { schedule } = turn.origin {
            *open.entry(schedule).or_default() += 1;
        }
    }
    open
}

fn component(agent: Entity, record: ScheduleRecord, state: ScheduleStateRecord) -> Schedule {
    Schedule {
        agent,
        kind: record.kind,
        name: record.name,
        rule: record.rule,
        timezone: record.timezone,
        prompt: record.prompt,
        missed: record.missed,
        overlap: record.overlap,
        session_mode: record.session_mode,
        created_at: record.created_at,
        updated_at: record.updated_at,
        anchored_at: record.anchored_at,
        enabled: state.enabled,
        cursor: state.cursor,
        past: state.past,
        taint: record.taint,
        user: record.user,
        wake: record.wake,
    }
}

/// The clock was wrong by more than [`limit::CLOCK_FAULT_MS`] and was set back: what was counted by the wrong time
/// counts anew. Slots that have had their chance to fire do not fire again.
// &mut World: plans schedules by their entities, which moves them in the index.
pub(crate) fn reanchor(world: &mut World) {
    let now = world.resource::<Now>().0;
    for entity in world.resource::<Schedules>().all() {
        if anchor(world, entity, now) {
            plan(world, entity);
        }
    }
}

/// Lets a schedule count from now when its cursor, or what its intervals are counted from, lies in a future that the
/// clock has left: more than [`limit::CLOCK_FAULT_MS`] ahead of where it would be by now.
fn anchor(world: &mut World, entity: Entity, now: Timestamp) -> bool {
    let (Some(schedule), Some(timing)) = (world.get::<Schedule>(entity), world.get::<Timing>(entity)) else {
        return false;
    };
    let is_far = |moment: Timestamp, from: Timestamp| moment > from.plus_ms(limit::CLOCK_FAULT_MS);
    let anchor_is_off = is_far(schedule.anchored_at, now);
    let next = timing.next(schedule.anchored_at, now);
    if !anchor_is_off && !next.is_some_and(|next| is_far(schedule.cursor, next)) {
        return false;
    }
    if let Some(mut schedule) = world.get_mut::<Schedule>(entity) {
        let (anchor, cursor) = (schedule.anchored_at, schedule.cursor);
        schedule.past.get_or_insert_default().leave(anchor, cursor, now);
        schedule.cursor = now;
        if anchor_is_off {
            schedule.anchored_at = now;
        }
    }
    world.mark(entity);
    if anchor_is_off && let Some(record) = definition(world, entity) {
        world.op(record::put(&record));
    }
    debug_assert!(next_slot(world, entity).is_none_or(|next| next > now));
    true
}
