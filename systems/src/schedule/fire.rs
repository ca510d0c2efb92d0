//! Due schedules are visited, and their slots get their outcomes.

use crate::agent::error_codes::AGENT_NOT_RUNNING;
use std::collections::VecDeque;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, Schedule, ScheduleKind};
use agentsvc_components::turn::Origin;
use agentsvc_components::{Refusal, ScheduleId, Timestamp, TurnId};

use super::outcome::{self, Outcome};
use super::rule::Rule;
use super::times::{Schedules, Timing, next_slot, plan_at};
use crate::budget;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::fires::{Fires, events_wait};
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::rehearsal::{self, Note};
use crate::turn::{Fired, Place, Said, begin_fired};

/// Fires what is due, as far as the step's budget goes, and the schedules' share of it while matches of triggers wait.
pub(crate) fn fire(world: &mut World) {
    let now = world.resource::<Now>().0;
    world.resource_mut::<Schedules>().look(now);
    while world.resource::<Schedules>().has_due() {
        if !take(world) {
            return;
        }
        let mut schedules = world.resource_mut::<Schedules>();
        if let Some(id) = schedules.next_ready() {
            if let Some(entity) = schedules.any(id) {
                fire_waiting(world, entity, id);
            }
        } else if let Some(id) = schedules.next_due()
            && let Some(entity) = schedules.any(id)
        {
            visit(world, entity, id, now);
        }
    }
}

/// Takes one fire for a slot.
fn take(world: &mut World) -> bool {
    let events_wait = events_wait(world);
    world.resource_mut::<Fires>().take_timed(events_wait)
}

/// Fires the oldest slot that waits.
fn fire_waiting(world: &mut World, entity: Entity, id: ScheduleId) {
    let first = outcome::past(world, entity, |past| (!past.queue.is_empty()).then(|| past.queue.remove(0)));
    let Some(slot) = first.flatten() else { return };
    #[cfg(test)]
    super::simulation::taken(world, entity, slot);
    let is_beside = open(world, entity) > 0;
    begin_slot(world, entity, slot, is_beside);
    ready_when_idle(world, entity, id);
}

/// A turn of a schedule has ended. Where runs overlap, a waiting slot takes its place, for there may be no moment without one;
/// else the waiting slots fire when no turn is open.
pub(super) fn ready_behind(world: &mut World, entity: Entity, id: ScheduleId) {
    let overlaps = world.get::<Schedule>(entity).is_some_and(|schedule| schedule.overlap == OverlapPolicy::Parallel);
    if overlaps && waits(world, entity) > 0 {
        world.resource_mut::<Schedules>().set_ready(id);
    } else {
        ready_when_idle(world, entity, id);
    }
}

/// Lets the waiting slots of a schedule without open turns fire.
pub(super) fn ready_when_idle(world: &mut World, entity: Entity, id: ScheduleId) {
    if open(world, entity) == 0 && waits(world, entity) > 0 {
        world.resource_mut::<Schedules>().set_ready(id);
    }
}

/// How many turns of a schedule are open.
fn open(world: &World, entity: Entity) -> u32 {
    world.get::<Timing>(entity).map_or(0, |timing| timing.open)
}

fn waits(world: &World, entity: Entity) -> usize {
    world.get::<Schedule>(entity).and_then(|schedule| schedule.past.as_ref()).map_or(0, |past| past.queue.len())
}

/// How many walked slots may be held: what exceeds them is missed.
const fn held_max(policy: MissedPolicy) -> usize {
    match policy {
        MissedPolicy::One => 1,
        MissedPolicy::All => limit::SCHEDULE_MISSED_MAX,
        // Those of the last minute; there is one a second at most.
        MissedPolicy::Skip => (limit::SCHEDULE_LATE_MS / 1_000) as usize + 1,
    }
}

/// What a walk over the slots of one schedule came to.
struct Walk {
    /// Slots that may still fire, oldest first.
    held: VecDeque<Timestamp>,
    /// Slots that do not fire any more, and the last of them.
    missed: u64,
    last_missed: Timestamp,
    /// It has reached the present.
    done: bool,
}

/// Walks the slots behind the held ones up to `now`, at most [`limit::SCHEDULE_SLOTS_PER_VISIT`] of them.
fn walk(schedule: &Schedule, rule: &Rule, timing: &Timing, held: VecDeque<Timestamp>, now: Timestamp) -> Walk {
    let most = held_max(schedule.missed);
    let mut walk = Walk { held, missed: 0, last_missed: schedule.cursor, done: false };
    let mut at = walk.held.back().copied().unwrap_or(schedule.cursor);
    let mut left = limit::SCHEDULE_SLOTS_PER_VISIT;
    while left > 0 && !walk.done {
        // Slots up to the next span that is done.
        let span = schedule.past.as_ref().and_then(|past| past.done.after(at));
        let upto = span.map_or(now, |(after, _)| after.min(now));
        // Slots in quiet hours are none, so that those of a rule with some cannot be counted at once.
        let leap = if timing.quiet.is_none() { rule.leap(schedule.anchored_at, at, upto, most as u64) } else { None };
        if let Some((count, last)) = leap {
            walk.missed += walk.held.len() as u64 + count;
            walk.held.clear();
            (walk.last_missed, at) = (last, last);
        }
        while let Some(slot) = timing.next(schedule.anchored_at, at).filter(|slot| *slot <= upto && left > 0) {
            (at, left) = (slot, left - 1);
            walk.held.push_back(slot);
            if walk.held.len() > most {
                walk.miss_first();
            }
        }
        match span.filter(|(_, end)| *end < now) {
            _ if left == 0 => {}
            Some((_, end)) => at = end,
            None => walk.done = true,
        }
    }
    if schedule.missed == MissedPolicy::Skip {
        while walk.held.front().is_some_and(|slot| slot.plus_ms(limit::SCHEDULE_LATE_MS) < now) {
            walk.miss_first();
        }
    }
    walk
}

impl Walk {
    fn miss_first(&mut self) {
        if let Some(slot) = self.held.pop_front() {
            self.missed += 1;
            self.last_missed = slot;
        }
    }
}

/// Walks the slots that have come due and fires what the missed policy lets fire.
fn visit(world: &mut World, entity: Entity, id: ScheduleId, now: Timestamp) {
    let held = world.resource_mut::<Schedules>().take_held(id);
    let Some(mut timing) = world.get_mut::<Timing>(entity) else { return };
    timing.visit = None;
    let timing = *timing;
    let (Some(schedule), Some(rule)) = (world.get::<Schedule>(entity), timing.rule) else { return };
    if !schedule.enabled {
        return;
    }
    let (anchor, cursor) = (schedule.anchored_at, schedule.cursor);
    let walk = walk(schedule, &rule, &timing, held, now);
    let Walk { mut held, missed, last_missed, done } = walk;
    if missed > 0 {
        outcome::past(world, entity, |past| past.leave(anchor, cursor, last_missed));
        settle_to(world, entity, last_missed);
        outcome::note(world, entity, Outcome::Missed, last_missed, missed, "the daemon was not running at that time");
    }
    if !done {
        return world.resource_mut::<Schedules>().put_off(id, held);
    }
    let mut paid = true;
    while let Some(slot) = held.pop_front() {
        if !paid && !take(world) {
            held.push_front(slot);
            return world.resource_mut::<Schedules>().put_off(id, held);
        }
        paid = false;
        settle_to(world, entity, slot);
        meet(world, entity, slot);
    }
    let next = next_slot(world, entity);
    plan_at(world, entity, next);
    if next.is_none()
        && let Some(mut schedule) = world.get_mut::<Schedule>(entity)
    {
        // `in`, `at`: there will be no other.
        schedule.enabled = false;
        world.mark(entity);
    }
}

/// Slots up to this one have their outcome, in the same delta.
fn settle_to(world: &mut World, entity: Entity, slot: Timestamp) {
    if let Some(mut schedule) = world.get_mut::<Schedule>(entity) {
        schedule.cursor = slot;
        world.mark(entity);
    }
}

/// A slot meets the turns of its schedule that are open, by the overlap policy.
fn meet(world: &mut World, entity: Entity, slot: Timestamp) {
    let Some(schedule) = world.get::<Schedule>(entity) else { return };
    let open = open(world, entity);
    let waiting = waits(world, entity);
    let running = world.get::<Agent>(schedule.agent).is_some_and(|agent| agent.state == AgentState::Running);
    if !running || (open == 0 && waiting == 0) {
        return begin_slot(world, entity, slot, false);
    }
    // Slots that are caught up fire one after another, those of runs that overlap as runs end.
    let is_late = slot.plus_ms(limit::SCHEDULE_LATE_MS) < world.resource::<Now>().0;
    match schedule.overlap {
        OverlapPolicy::Parallel if !is_late => begin_slot(world, entity, slot, open > 0),
        OverlapPolicy::Skip => {
            outcome::note(world, entity, Outcome::Overlapped, slot, 1, "the previous run had not ended");
        }
        _ if waiting < limit::SCHEDULE_QUEUE_MAX => {
            #[cfg(test)]
            super::simulation::waits(world, entity, slot);
            outcome::past(world, entity, |past| past.queue.push(slot));
            rehearsal::note(world, |world| Note::SlotWaits { schedule: id_of(world, entity), slot });
        }
        _ => {
            let why = format!("{} slots are waiting for the previous run to end", limit::SCHEDULE_QUEUE_MAX);
            outcome::note(world, entity, Outcome::Refused, slot, 1, &why);
        }
    }
}

/// Begins the turn of a slot, or notes why there is none.
fn begin_slot(world: &mut World, entity: Entity, slot: Timestamp, apart: bool) {
    match begin(world, entity, Some(slot), apart) {
        Ok(_) => outcome::note(world, entity, Outcome::Fired, slot, 1, ""),
        Err(refusal) => {
            let outcome = match refusal.code {
                Some(code) if code == AGENT_NOT_RUNNING => Outcome::AgentStopped,
                code if budget::is_exceeded(code) => Outcome::OverBudget,
                _ => Outcome::Refused,
            };
            outcome::note(world, entity, outcome, slot, 1, &refusal.message);
        }
    }
}

/// Begins a turn; `slot` is `None` for a run by hand. `apart`: in a session of its own whatever the session mode is.
pub(super) fn begin(
    world: &mut World,
    entity: Entity,
    slot: Option<Timestamp>,
    apart: bool,
) -> Result<TurnId, Refusal> {
    let id = id_of::<ScheduleId>(world, entity);
    let schedule = world.get::<Schedule>(entity).ok_or_else(|| Refusal::not_found("schedule", id))?;
    let (agent, text) = (schedule.agent, schedule.prompt.to_string());
    let manifest = world.get::<Agent>(agent).and_then(|agent| agent.manifest.manifest.session_mode);
    let new = apart || schedule.session_mode.or(manifest) == Some(SessionMode::New);
    let place = if new { Place::New } else { Place::Current };
    let origin = Origin::Schedule { schedule: id };
    let (kind, name, taint) = (schedule.kind, schedule.name.clone(), schedule.taint);
    let user = schedule.user.clone();
    let said = Said::new(world, text);
    let fired = Fired { agent, place, said, origin, depth: 0, taint, began_in: None, user, profile: None };
    let turn = begin_fired(world, fired)?.1.turn;
    let now = world.resource::<Now>().0;
    if let Some(mut timing) = world.get_mut::<Timing>(entity) {
        timing.open += 1;
    }
    outcome::past(world, entity, |past| {
        past.run_count += 1;
        past.last_run = Some(slot.unwrap_or(now));
    });
    let (agent, slot) = (id_of(world, agent), slot.map(|slot| slot.to_string().into()));
    world.event(match kind {
        ScheduleKind::Schedule => Event::ScheduleFired { schedule: id, agent, slot, turn },
        ScheduleKind::Cron => Event::CronFired { job: id, name: name.unwrap_or_default().into(), agent, slot, turn },
    });
    Ok(turn)
}
