//! A run ends, and old runs go.

use std::sync::Arc;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::workflow::record::{RunPart, RunPlanRecord, RunRecord, RunTextRecord};
use agentsvc_components::workflow::{Caller, RunState, Step, StepState, WorkflowRun};
use agentsvc_components::{RunId, TurnId, WorkflowId};

use super::{RunWaiters, Workflows, flow, rows};
use crate::event::event_text;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::{Emit, Outbox};
use crate::kernel::reaction::react;
use crate::kernel::record;
use crate::turn::stop_turn;
use crate::workflow::metrics::RunTotals;

/// How a run ended, for who waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Which run.
    pub run: RunId,
    /// Completed, failed or cancelled.
    pub state: RunState,
    /// What it gave; empty unless it is completed.
    pub output: Arc<str>,
    /// Why it failed or was cancelled, a sentence.
    pub error: Option<Box<str>>,
    /// Untrusted content that stands in what it gave.
    pub taint: Taint,
}

impl RunEnd {
    /// The end of a run; `None` while it is under way.
    pub(super) fn of(id: RunId, run: &WorkflowRun) -> Option<Self> {
        let output = run.output.clone().unwrap_or_default();
        (!run.state.is_open()).then(|| Self {
            run: id,
            state: run.state,
            output,
            error: run.error.clone(),
            taint: run.taint,
        })
    }
}

/// A run has given what it was to give; what wants it reacts.
pub(crate) struct RunCompleted {
    /// Of which workflow.
    pub(crate) workflow: WorkflowId,
    /// Which run.
    pub(crate) run: RunId,
    /// What it gave.
    pub(crate) output: Arc<str>,
    /// Untrusted content behind it.
    pub(crate) taint: Taint,
}

/// Ends a run. What of it is still out is stopped; its long texts are cut, and whoever waits is answered when that is on
/// disk.
pub(super) fn end(world: &mut World, entity: Entity, state: RunState, error: Option<String>) {
    let Some(run) = world.get::<WorkflowRun>(entity).filter(|run| run.state.is_open()) else { return };
    let id = id_of::<RunId>(world, entity);
    let turns: Vec<TurnId> = run.progress.iter().filter_map(|step| step.turn).collect();
    let before = run.clone();
    let after = ended(world, run, state, error);
    world.resource_mut::<Workflows>().remove_run(id, &before);
    write(world, id, &before, &after);
    world.resource_mut::<Workflows>().insert_run(id, entity, &after);
    tell(world, id, &after);
    let workflow = after.workflow;
    if let Some(mut run) = world.get_mut::<WorkflowRun>(entity) {
        *run = after;
    }
    world.mark(entity);
    for turn in turns {
        stop_turn(world, turn);
    }
    trim(world, workflow);
}

/// The run as it is kept.
fn ended(world: &World, run: &WorkflowRun, state: RunState, error: Option<String>) -> WorkflowRun {
    let now = world.resource::<Now>().0;
    let short = |text: &Arc<str>| flow::cut(text, limit::WORKFLOW_OUTPUT_KEPT_BYTES_MAX);
    let without_prompt =
        |step: &Step| Step { name: step.name.clone(), agent: step.agent.clone(), mode: step.mode, ..Step::default() };
    let mut after = WorkflowRun {
        steps: run.steps.iter().map(without_prompt).collect(),
        input: short(&run.input),
        state,
        ended_at: Some(now),
        error: error.map(Into::into),
        outputs: run.outputs.iter().map(|output| output.as_ref().map(short)).collect(),
        given: None,
        output: (state == RunState::Completed).then(|| flow::before(run, run.steps.len())),
        ..run.clone()
    };
    for step in after.progress.iter_mut().filter(|step| !step.state.is_settled()) {
        (step.state, step.turn, step.due) = (StepState::Cancelled, None, None);
        step.ended_at = step.started_at.map(|_| now);
    }
    after
}

/// Writes the texts that changed.
fn write(world: &mut World, id: RunId, before: &WorkflowRun, after: &WorkflowRun) {
    let plan = RunPlanRecord { steps: after.steps.clone(), input: after.input.clone() };
    world.op(rows::put_plan(id, &plan));
    for (step, (old, new)) in (0..).zip(before.outputs.iter().zip(&after.outputs)) {
        if let Some(text) = new.clone().filter(|_| old != new) {
            world.op(rows::put_text(id, RunPart::Step(step), &RunTextRecord { text }));
        }
    }
    if before.given.is_some() {
        world.op(rows::remove_part(id, RunPart::Given));
    }
    if let Some(text) = after.output.clone() {
        world.op(rows::put_text(id, RunPart::Output, &RunTextRecord { text }));
    }
}

/// Tells the world and those who wait.
fn tell(world: &mut World, id: RunId, run: &WorkflowRun) {
    let (workflow, name) = (run.workflow, run.name.to_string());
    let (by, error) = (run.caller.map(|caller| caller.turn), run.error.as_deref().unwrap_or_default().to_owned());
    let mut counters = world.resource_mut::<RunTotals>();
    match run.state {
        RunState::Completed => {
            counters.completed += 1;
            let output = event_text(run.output.as_deref().unwrap_or_default());
            world.event(Event::WorkflowCompleted { workflow, run: id, name, output, by });
            let output = run.output.clone().unwrap_or_default();
            react(world, &RunCompleted { workflow, run: id, output, taint: run.taint });
        }
        RunState::Cancelled => {
            counters.cancelled += 1;
            world.event(Event::WorkflowFailed { workflow, run: id, name, error, by });
        }
        RunState::Failed | RunState::Pending | RunState::Running => {
            counters.failed += 1;
            world.event(Event::WorkflowFailed { workflow, run: id, name, error, by });
        }
    }
    let waiters = world.resource_mut::<RunWaiters>().0.get().remove(&id).unwrap_or_default();
    let Some(end) = RunEnd::of(id, run) else { return };
    for slot in waiters {
        world.resource_mut::<Outbox>().reply(slot, Ok(end.clone()));
    }
}

/// Lets the oldest ended runs go until no more are kept than may be: of the workflow, and then of the holder that keeps most.
fn trim(world: &mut World, workflow: WorkflowId) {
    let workflows = world.resource::<Workflows>();
    let from = (workflow, agentsvc_components::Timestamp(i64::MIN), RunId(uuid::Uuid::nil()));
    let of_workflow: Vec<RunId> =
        workflows.ended_of.range(from..).take_while(|(of, ..)| *of == workflow).map(|(.., run)| *run).collect();
    let over = of_workflow.len().saturating_sub(limit::WORKFLOW_RUNS_KEPT_MAX);
    let old: Vec<RunId> = of_workflow.into_iter().filter(|run| !is_awaited(world, *run)).take(over).collect();
    for run in old {
        forget(world, run);
    }
    while world.resource::<Workflows>().kept_bytes > limit::WORKFLOW_RUNS_KEPT_BYTES_MAX {
        let workflows = world.resource::<Workflows>();
        let newest = workflows.ended.last().map(|(_, run)| *run);
        let may_go = |run: &RunId| newest != Some(*run) && !is_awaited(world, *run);
        let found = workflows.kept.by_bytes().find(may_go);
        let Some(run) = found else { return };
        forget(world, run);
    }
}

/// May a tool call still ask for this run, after a crash?
fn is_awaited(world: &World, run: RunId) -> bool {
    let entity = world.resource::<Workflows>().run(run);
    let caller = entity.and_then(|entity| world.get::<WorkflowRun>(entity)).and_then(|run| run.caller);
    caller.is_some_and(|caller| index::turn(world, caller.turn).is_some())
}

/// Takes a run out of the world, with its records.
pub(super) fn forget(world: &mut World, id: RunId) {
    let Some(entity) = world.resource::<Workflows>().run(id) else { return };
    let Some(run) = world.get::<WorkflowRun>(entity).cloned() else { return };
    world.resource_mut::<Workflows>().remove_run(id, &run);
    world.op(record::remove::<RunRecord>(id));
    world.op(rows::remove_part(id, RunPart::Plan));
    if run.output.is_some() {
        world.op(rows::remove_part(id, RunPart::Output));
    }
    for (step, output) in (0..).zip(&run.outputs) {
        if output.is_some() {
            world.op(rows::remove_part(id, RunPart::Step(step)));
        }
    }
    world.despawn(entity);
}

/// A turn has ended: runs that its tool calls waited for are not wanted any more.
pub(super) fn caller_ended(world: &mut World, turn: TurnId) {
    let from = Caller { turn, index: 0 }..=Caller { turn, index: u32::MAX };
    let runs: Vec<RunId> = world.resource::<Workflows>().callers.range(from).map(|(_, run)| *run).collect();
    for run in runs {
        if let Some(entity) = world.resource::<Workflows>().run(run) {
            give_up(world, entity);
        }
    }
}

/// Cancels a run that no turn waits for any more.
pub(super) fn give_up(world: &mut World, entity: Entity) {
    let why = "cancelled: the turn that waited for it has ended".to_owned();
    end(world, entity, RunState::Cancelled, Some(why));
}
