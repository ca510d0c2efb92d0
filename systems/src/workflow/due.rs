//! On the beat: attempts that ran out of time, and pauses that are over. Only what is due is looked at,
//! at most [`limit::WORKFLOW_STEPS_DUE_MAX`] steps a beat.

use bevy_ecs::prelude::World;

use agentsvc_components::workflow::{StepState, WorkflowRun};
use agentsvc_components::{Timestamp, limit};

use super::{Workflows, settle};
use crate::clock::Now;
use crate::turn::stop_turn;

/// When the next step runs out of time or is to be tried again.
pub(crate) fn next_due(world: &World) -> Option<Timestamp> {
    world.resource::<Workflows>().due.first().map(|(at, ..)| *at)
}

/// Sees which steps have run out of time and which are to be tried again.
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
        settle::fault(world, entity, step, format!("it took more than {secs} seconds"));
        // Its end is not waited for any more.
        if let Some(turn) = turn {
            stop_turn(world, turn);
        }
    }
}
