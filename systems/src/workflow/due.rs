//! On the beat: attempts that ran out of time, and pauses that are over. Only what is due is looked at,
//! at most [`limit::WORKFLOW_STEPS_DUE_MAX`] steps a beat.

use bevy_ecs::prelude::World;

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::{StepState, WorkflowRun};
use agentsvc_components::{RunId, Timestamp};

use super::{Workflows, settle};
use crate::kernel::clock::Now;
use crate::turn::stop_turn;

/// When the next step runs out of time or is to be tried again.
pub(crate) fn next_due(world: &World) -> Option<Timestamp> {
    world.resource::<Workflows>().due.first().map(|(at, ..)| *at)
}

/// Sees which steps have run out of time and which are to be tried again.
// &mut World: reads runs by their entities and fails their steps, which may begin turns.
pub(crate) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limit::WORKFLOW_STEPS_DUE_MAX {
        let first = world.resource::<Workflows>().due.first().copied();
        let Some((due, run, step)) = first.filter(|(due, ..)| *due <= now) else { return };
        let mut workflows = world.resource_mut::<Workflows>();
        workflows.due.remove(&(due, run, step));
        workflows.ready.insert(run);
        let Some(entity) = workflows.run(run) else { continue };
        let step = usize::from(step);
        let Some(found) = world.get::<WorkflowRun>(entity) else { continue };
        if found.progress[step].state != StepState::Running {
            continue;
        }
        let (turn, secs) = (found.progress[step].turn, found.steps[step].timeout_secs);
        settle::fault(world, entity, step, format!("timed out after {secs} seconds"));
        // Its end is not waited for any more.
        if let Some(turn) = turn {
            stop_turn(world, turn);
        }
    }
}

/// The clock was set back: no pause and no time limit may last longer than it would by the clock as it is now.
// &mut World: reads runs by their entities and moves them in the index.
pub(crate) fn clock_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let all: Vec<(Timestamp, RunId, u16)> = world.resource::<Workflows>().due.iter().copied().collect();
    for (due, run, step) in all {
        let (entity, step) = (world.resource::<Workflows>().run(run), usize::from(step));
        let Some((entity, found)) = entity.and_then(|entity| Some((entity, world.get::<WorkflowRun>(entity)?))) else {
            continue;
        };
        let secs = match found.progress[step].state {
            StepState::Running => found.steps[step].timeout_secs,
            _ => limit::WORKFLOW_BACKOFF_SECS_MAX,
        };
        let latest = now.plus_ms(i64::from(secs) * 1_000);
        if due > latest {
            settle::set_due(world, entity, step, Some(latest));
        }
    }
}
