//! A turn that a schedule began has ended.

use bevy_ecs::prelude::{Entity, World};
use serde_json::json;

use agentsvc_components::schedule::{RunResult, RunStatus, Schedule, Tally};
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::{AgentId, ScheduleId};

use super::fire::ready_behind;
use super::times::{Schedules, Timing, plan};
use super::update::drop_waiting;
use super::{ScheduleTotals, audit_kinds, outcome};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::turn::Ended;

/// Notes the result, and lets the next waiting slot fire.
pub(crate) fn turn_ended(world: &mut World, schedule: ScheduleId, ended: &Ended) {
    // The schedule may be gone: its turns go on without it.
    let Some(entity) = world.resource::<Schedules>().any(schedule) else { return };
    let at = world.resource::<Now>().0;
    if let Some(mut timing) = world.get_mut::<Timing>(entity) {
        timing.open = timing.open.saturating_sub(1);
    }
    let status = match ended.end {
        TurnEnd::Done => RunStatus::Completed,
        TurnEnd::Failed if ended.is_over_budget() => RunStatus::OverBudget,
        TurnEnd::Failed => RunStatus::Failed,
        TurnEnd::Stopped | TurnEnd::Interrupted => RunStatus::Stopped,
    };
    count(&mut world.resource_mut::<ScheduleTotals>().0, status);
    outcome::past(world, entity, |past| {
        count(&mut past.tally, status);
        past.last_result = Some(RunResult { status, text: outcome::kept(&ended.text), at });
        match status {
            RunStatus::Failed => past.failed_in_a_row = past.failed_in_a_row.saturating_add(1),
            RunStatus::Completed => past.failed_in_a_row = 0,
            _ => {}
        }
    });
    if fails_on(world, entity) {
        give_up(world, entity, schedule);
    }
    ready_behind(world, entity, schedule);
}

/// Have more turns failed one after the other than may?
fn fails_on(world: &World, entity: Entity) -> bool {
    let Some(schedule) = world.get::<Schedule>(entity).filter(|schedule| schedule.enabled) else { return false };
    let failed = schedule.past.as_ref().map_or(0, |past| past.failed_in_a_row);
    schedule.wake.as_ref().and_then(|wake| wake.failures_max).is_some_and(|most| failed > most)
}

/// Disables a schedule whose turns fail.
fn give_up(world: &mut World, entity: Entity, id: ScheduleId) {
    let Some(mut schedule) = world.get_mut::<Schedule>(entity) else { return };
    schedule.enabled = false;
    let (agent, kind) = (schedule.agent, schedule.kind);
    world.mark(entity);
    drop_waiting(world, entity, id);
    plan(world, entity);
    let (agent, reason) = (id_of::<AgentId>(world, agent), "too many turns failed one after the other");
    let details = json!({ "id": id, "kind": kind.noun(), "enabled": false, "reason": reason });
    world.audit(audit_kinds::SCHEDULE_UPDATED, agent, details);
}

const fn count(tally: &mut Tally, status: RunStatus) {
    match status {
        RunStatus::Completed => tally.completed += 1,
        // That of the tally is for slots that began nothing.
        RunStatus::Failed | RunStatus::OverBudget => tally.failed += 1,
        RunStatus::Stopped => tally.stopped += 1,
        RunStatus::Missed | RunStatus::Overlapped | RunStatus::Refused | RunStatus::AgentStopped => {}
    }
}
