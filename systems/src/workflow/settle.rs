//! A step comes to an end, or an attempt of it does.

use std::sync::Arc;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::kernel::limit;
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::workflow::record::{RunPart, RunTextRecord};
use agentsvc_components::workflow::{ErrorMode, StepMode, StepState, WorkflowRun};
use agentsvc_components::{RunId, Timestamp, TurnId};

use super::machine::change;
use super::{Workflows, flow, rows};
use crate::kernel::clock::Now;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::turn::Ended;

/// The turn of a step has ended.
pub(crate) fn turn_ended(world: &mut World, run: RunId, step: u16, ended: Ended) {
    let Some(entity) = awaiting(world, run, step, ended.turn) else { return };
    let (step, taint) = (usize::from(step), ended.taint);
    change(world, entity, |run| run.taint = run.taint.with(taint));
    match ended.end {
        TurnEnd::Done => give(world, entity, step, &ended.text),
        TurnEnd::Failed => fault(world, entity, step, ended.text.into()),
        TurnEnd::Stopped => fault(world, entity, step, "its turn was stopped".to_owned()),
        TurnEnd::Interrupted => fault(world, entity, step, "its turn was interrupted".to_owned()),
    }
    world.resource_mut::<Workflows>().ready.insert(run);
}

/// A step came back without its turn. The end of the turn was told by now, if there was one to tell.
pub(super) fn lost(world: &mut World, run: RunId, step: u16, turn: TurnId) {
    if let Some(entity) = awaiting(world, run, step, turn).filter(|_| index::turn(world, turn).is_none()) {
        fault(world, entity, usize::from(step), "its turn no longer exists".to_owned());
        world.resource_mut::<Workflows>().ready.insert(run);
    }
}

/// The run, if this step of it waits for this turn.
fn awaiting(world: &World, run: RunId, step: u16, turn: TurnId) -> Option<Entity> {
    let entity = world.resource::<Workflows>().run(run)?;
    let progress = world.get::<WorkflowRun>(entity)?.progress.get(usize::from(step))?;
    (progress.turn == Some(turn)).then_some(entity)
}

/// A step gives an output: it is completed, or its loop goes on.
pub(super) fn give(world: &mut World, entity: Entity, step: usize, text: &str) {
    set_due(world, entity, step, None);
    let Some(run) = world.get::<WorkflowRun>(entity) else { return };
    let input = flow::input(run, step);
    let at = &run.steps[step];
    let goes_on = at.mode == StepMode::Loop && run.progress[step].iterations + 1 < at.max_iterations;
    let asks = |until: &str| until.to_ascii_lowercase().contains("input");
    let given = (goes_on && at.until.as_deref().is_some_and(asks)).then_some(input);
    let long = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
    let before = long(&run.outputs[step]) + long(&run.given);
    let output = flow::cut(text, limit::WORKFLOW_OUTPUT_BYTES_MAX);
    let (id, now) = (id_of::<RunId>(world, entity), flow::bytes(run) - before + output.len() + long(&given));
    // What a condition has read since may have been given up without being counted out.
    let longer = now.saturating_sub(world.resource::<Workflows>().bytes_of(id));
    if !world.resource::<Workflows>().may_grow(id, longer) {
        return fault(world, entity, step, "the workflow runs in progress have no room for its output".to_owned());
    }
    world.op(rows::put_text(id, RunPart::Step(step as u16), &RunTextRecord { text: output.clone() }));
    world.resource_mut::<Workflows>().grow(id, longer);
    set_given(world, entity, given);
    change(world, entity, |run| {
        run.outputs[step] = Some(output);
        let progress = &mut run.progress[step];
        (progress.turn, progress.error, progress.failures) = (None, None, 0);
        progress.iterations += 1;
        progress.state = StepState::Pending;
    });
    if !goes_on {
        complete(world, entity, step);
    }
}

/// Sets what the last iteration of a loop was given.
pub(super) fn set_given(world: &mut World, entity: Entity, given: Option<Arc<str>>) {
    let id = id_of::<RunId>(world, entity);
    let had = world.get::<WorkflowRun>(entity).is_some_and(|run| run.given.is_some());
    match &given {
        Some(text) => world.op(rows::put_text(id, RunPart::Given, &RunTextRecord { text: text.clone() })),
        None if had => world.op(rows::remove_part(id, RunPart::Given)),
        None => return,
    }
    change(world, entity, |run| run.given = given);
}

/// A step is completed with what it gave.
pub(super) fn complete(world: &mut World, entity: Entity, step: usize) {
    let now = world.resource::<Now>().0;
    change(world, entity, |run| {
        let progress = &mut run.progress[step];
        (progress.state, progress.ended_at) = (StepState::Completed, Some(now));
        progress.started_at.get_or_insert(now);
    });
}

/// A step fails, whatever its error mode says: its condition cannot be told.
pub(super) fn fail(world: &mut World, entity: Entity, step: usize, why: &str) {
    let now = world.resource::<Now>().0;
    change(world, entity, |run| {
        let progress = &mut run.progress[step];
        (progress.state, progress.ended_at, progress.error) = (StepState::Failed, Some(now), Some(why.into()));
    });
}

/// A step does not run.
pub(super) fn leave_out(world: &mut World, entity: Entity, step: usize) {
    let now = world.resource::<Now>().0;
    change(world, entity, |run| {
        let progress = &mut run.progress[step];
        (progress.state, progress.ended_at) = (StepState::Skipped, Some(now));
    });
}

/// An attempt of a step failed: its error mode says what follows.
pub(super) fn fault(world: &mut World, entity: Entity, step: usize, why: String) {
    let now = world.resource::<Now>().0;
    set_due(world, entity, step, None);
    let mut again = None;
    change(world, entity, |run| {
        let (at, progress) = (&run.steps[step], &mut run.progress[step]);
        (progress.turn, progress.error) = (None, Some(flow::cut(&why, limit::EVENT_TEXT_BYTES_MAX).as_ref().into()));
        progress.failures += 1;
        progress.state = match at.error_mode {
            ErrorMode::Retry if progress.failures <= at.max_retries => {
                again = Some(now.plus_ms(backoff_ms(progress.failures)));
                StepState::Retrying
            }
            // A loop that gave something is left with that.
            ErrorMode::Skip if progress.iterations > 0 => StepState::Completed,
            ErrorMode::Skip => StepState::Skipped,
            ErrorMode::Fail | ErrorMode::Retry => StepState::Failed,
        };
        progress.ended_at = again.is_none().then_some(now);
    });
    set_due(world, entity, step, again);
}

/// The pause after so many failures: 1, 2, 4 seconds and so on.
fn backoff_ms(failures: u32) -> i64 {
    let secs = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    i64::from(secs.min(limit::WORKFLOW_BACKOFF_SECS_MAX)) * 1_000
}

/// Sets when a step has run out of time, or is to be tried again.
pub(super) fn set_due(world: &mut World, entity: Entity, step: usize, due: Option<Timestamp>) {
    let id = id_of::<RunId>(world, entity);
    let mut before = None;
    change(world, entity, |run| before = std::mem::replace(&mut run.progress[step].due, due));
    let mut workflows = world.resource_mut::<Workflows>();
    if let Some(before) = before {
        workflows.due.remove(&(before, id, step as u16));
    }
    if let Some(due) = due {
        workflows.due.insert((due, id, step as u16));
    }
}

#[cfg(test)]
mod tests {
    use super::backoff_ms;

    #[test]
    fn pauses_double_up_to_their_bound() {
        let pauses: Vec<i64> = (1..=8).map(|failures| backoff_ms(failures) / 1_000).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(backoff_ms(100), 30_000);
    }
}
