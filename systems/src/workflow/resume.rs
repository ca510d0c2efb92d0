//! Workflows and runs come back after a restart.

use std::sync::Arc;

use bevy_ecs::prelude::World;
use hashbrown::HashMap;

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::record::{RunPart, RunPlanRecord, RunRecord, RunTextRecord};
use agentsvc_components::workflow::{StepState, Workflow, WorkflowRun};
use agentsvc_components::{RunId, TurnId};

use super::machine::change;
use super::{Workflows, end, rows, settle, start};
use crate::kernel::clock::Now;
use crate::kernel::entities::state;
use crate::kernel::outbox::Emit;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::kernel::{index, record};

/// Brings runs back, once their definitions and the turns are there. Runs under way go on in the next step.
pub(super) fn restore(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let mut plans: HashMap<RunId, RunPlanRecord> = records.take::<rows::Plan>().into_iter().collect();
    let mut texts: HashMap<RunId, Vec<(RunPart, Arc<str>)>> = HashMap::new();
    for (run, part, RunTextRecord { text }) in records.take::<rows::Text>() {
        texts.entry(run).or_default().push((part, text));
    }
    let mut runs = records.take::<RunRecord>();
    runs.sort_by_key(|record| record.id);
    for record in runs {
        let (id, texts) = (record.id, texts.remove(&record.id).unwrap_or_default());
        let plan = plans.remove(&id);
        let is_known = state::<Workflow>(world, record.workflow).is_some();
        match plan.filter(|plan| is_known && plan.steps.len() == record.progress.len()) {
            Some(plan) => resume_run(world, record, plan, texts),
            None => {
                // A run without its plan or its workflow cannot go on, and nobody can see it.
                world.op(record::remove::<RunRecord>(id));
                world.op(rows::remove_part(id, RunPart::Plan));
                texts.iter().for_each(|(part, _)| world.op(rows::remove_part(id, *part)));
            }
        }
    }
    Ok(())
}

fn resume_run(world: &mut World, record: RunRecord, plan: RunPlanRecord, texts: Vec<(RunPart, Arc<str>)>) {
    let RunRecord { id, workflow, name, caller, above, depth, state, at, started_at, ended_at, .. } = record;
    let (error, progress, judged, taint, user, holder) =
        (record.error, record.progress, record.judged, record.taint, record.user, record.holder);
    let RunPlanRecord { steps, input } = plan;
    let (mut outputs, mut output, mut given) = (vec![None; steps.len()], None, None);
    for (part, text) in texts {
        match part {
            RunPart::Step(step) if usize::from(step) < outputs.len() => outputs[usize::from(step)] = Some(text),
            RunPart::Output => output = Some(text),
            RunPart::Given => given = Some(text),
            RunPart::Step(_) | RunPart::Plan => {}
        }
    }
    let run = WorkflowRun {
        workflow,
        name,
        steps,
        input,
        caller,
        above,
        depth,
        state,
        at,
        started_at,
        ended_at,
        error,
        progress,
        outputs,
        given,
        judged,
        output,
        taint,
        user,
        holder,
    };
    let (is_open, caller) = (run.state.is_open(), run.caller);
    let entity = start::insert(world, id, run);
    if !is_open {
        return;
    }
    if caller.is_some_and(|caller| index::turn(world, caller.turn).is_none()) {
        // Its turn was ended while the world came back, as those of hidden sessions are.
        return end::give_up(world, entity);
    }
    let now = world.resource::<Now>().0;
    let Some(run) = world.get::<WorkflowRun>(entity) else { return };
    let waiting = run.progress.iter().zip(run.steps.iter()).enumerate();
    let waiting: Vec<_> = waiting
        .map(|(step, (progress, at))| (step, progress.state, progress.turn, progress.due, at.timeout_secs))
        .collect();
    for (step, state, turn, due, timeout_secs) in waiting {
        match (state, turn) {
            (StepState::Running, Some(turn)) => {
                // The turn goes on where it was, with its whole time again.
                let due = now.plus_ms(i64::from(timeout_secs) * 1_000);
                settle::set_due(world, entity, step, Some(due));
                expect(world, id, step, turn);
            }
            (StepState::Retrying, _) => {
                // The clock may have been set back meanwhile.
                let latest = now.plus_ms(i64::from(limit::WORKFLOW_BACKOFF_SECS_MAX) * 1_000);
                settle::set_due(world, entity, step, due.map(|due| due.min(latest)));
            }
            _ => change(world, entity, |run| run.progress[step].due = None),
        }
    }
}

/// Sees to it that a step whose turn is gone does not wait for ever. The turn may have ended while the world came back;
/// that is told first.
fn expect(world: &mut World, run: RunId, step: usize, turn: TurnId) {
    if index::turn(world, turn).is_none() {
        world.resource_mut::<Workflows>().orphans.push((run, step as u16, turn));
    }
}
