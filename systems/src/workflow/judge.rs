//! Conditions of steps are told: when a conditional step runs, and when a loop has done enough. That takes time of the world, so
//! each condition, each run and each step of the world has so much of it ([`Meter`]). Runs whose condition has to wait do so in
//! the order of whose they are, and each user or family has its turn.

use std::ops::Bound::{Excluded, Unbounded};

use agentsvc_components::RunId;
use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::{StepMode, StepState, WorkflowRun};
use bevy_ecs::prelude::{Entity, Resource, World};
use uuid::Uuid;

use super::condition::{Condition, Values};
use super::machine::{attempt, change, go_on};
use super::{Workflows, flow, settle};
use crate::kernel::expr::{Meter, Spent};
use crate::kernel::fires::Fires;

/// Units for each byte of a condition, which is read anew each time.
const READ_UNITS: usize = 32;

/// What the conditions of this step of the world have cost.
#[derive(Resource, Default)]
pub(super) struct Told(pub(super) usize);

/// The condition that a step waits for before it goes on.
pub(super) fn question(run: &WorkflowRun, step: usize) -> Option<&str> {
    let (at, progress) = (&run.steps[step], &run.progress[step]);
    match at.mode {
        _ if progress.state != StepState::Pending => None,
        StepMode::Conditional if progress.attempts == 0 => at.condition.as_deref(),
        StepMode::Loop if progress.iterations > 0 => at.until.as_deref(),
        _ => None,
    }
}

/// Has this step time for a condition? The one that passes the bound is its last.
pub(super) fn has_time(world: &World) -> bool {
    world.resource::<Told>().0 < limit::WORKFLOW_WORK_PER_STEP_MAX
}

/// Tells the conditions that are waited for, as many as this step has time for, and takes their runs on.
// &mut World: a step of a run begins turns.
pub(super) fn judge_waiting(world: &mut World) {
    while judge_one(world) {}
}

/// Tells the condition that is next; false where none is, or there is no time.
pub(super) fn judge_one(world: &mut World) -> bool {
    if !has_time(world) || !world.resource::<Fires>().workflows_may() {
        return false;
    }
    let Some(run) = next(&mut world.resource_mut::<Workflows>()) else { return false };
    if let Some(entity) = world.resource::<Workflows>().run(run) {
        judge(world, entity);
        go_on(world, entity);
    }
    true
}

/// The next run, of the holder behind the one that had its turn.
fn next(workflows: &mut Workflows) -> Option<RunId> {
    let behind = workflows.told_last.map(|(holder, _)| (holder, RunId(Uuid::max())));
    let mut after = workflows.undecided.range((behind.map_or(Unbounded, Excluded), Unbounded));
    let next = *after.next().or_else(|| workflows.undecided.first())?;
    workflows.undecided.remove(&next);
    workflows.told_last = Some(next);
    Some(next.1)
}

/// Tells the condition of the step that a run is at.
fn judge(world: &mut World, entity: Entity) {
    let Some(run) = world.get::<WorkflowRun>(entity).filter(|run| run.state.is_open()) else { return };
    let step = usize::from(run.at);
    if step >= run.steps.len() || question(run, step).is_none() {
        return;
    }
    let is_loop = run.steps[step].mode == StepMode::Loop;
    let left = (limit::WORKFLOW_RUN_WORK_MAX as u64).saturating_sub(run.judged) as usize;
    let mut meter = Meter::new(left.min(limit::WORKFLOW_CONDITION_WORK_MAX));
    let answer = holds(run, step, &mut meter);
    world.resource_mut::<Told>().0 += meter.spent();
    change(world, entity, |run| run.judged += meter.spent() as u64);
    if is_loop {
        settle::set_given(world, entity, None);
    }
    match answer {
        Ok(true) if is_loop => settle::complete(world, entity, step),
        Ok(false) if !is_loop => settle::leave_out(world, entity, step),
        Ok(_) => attempt(world, entity, step),
        Err(why) => settle::fail(world, entity, step, &why),
    }
}

/// Does the condition that a step waits for hold? Conditions were read when the workflow was made.
fn holds(run: &WorkflowRun, step: usize, meter: &mut Meter) -> Result<bool, String> {
    let (Some(text), before) = (question(run, step), flow::input(run, step)) else { return Ok(true) };
    let of_loop = run.steps[step].mode == StepMode::Loop;
    let input = if of_loop { flow::given(run) } else { before.clone() };
    let spent = |_: Spent| too_long(run);
    meter.take(text.len() * READ_UNITS + before.len()).map_err(spent)?;
    let condition = Condition::parse(text, &|_| true).map_err(|error| format!("its condition: {error}"))?;
    let variable = |name: &str| flow::variable(run, step, name);
    condition.holds(&Values { output: &before, input: &input, variable: &variable }, meter).map_err(spent)
}

fn too_long(run: &WorkflowRun) -> String {
    let most = limit::WORKFLOW_CONDITION_WORK_MAX;
    let of_run = limit::WORKFLOW_RUN_WORK_MAX;
    if run.judged.saturating_add(most as u64) > of_run as u64 {
        return format!(
            "the conditions of the run take too long: they have read more than {of_run} bytes in all, those of regular \
            expressions counted many times (WORKFLOW_RUN_WORK_MAX)"
        );
    }
    format!(
        "its condition takes too long: it would read more than {most} bytes, those of regular expressions counted many \
        times (WORKFLOW_CONDITION_WORK_MAX)"
    )
}
