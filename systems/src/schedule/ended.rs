//! A turn that a schedule began has ended.

use bevy_ecs::prelude::World;

use agentsvc_components::ScheduleId;
use agentsvc_components::schedule::{RunResult, RunStatus, Tally};
use agentsvc_components::turn::TurnEnd;

use super::fire::ready_behind;
use super::times::{Schedules, Timing};
use super::{ScheduleTotals, outcome};
use crate::kernel::clock::Now;
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
    });
    ready_behind(world, entity, schedule);
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
