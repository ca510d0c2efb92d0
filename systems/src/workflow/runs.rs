//! Runs are read.

use agentsvc_components::workflow::{RunState, StepState, Workflow, WorkflowRun};
use agentsvc_components::{Refusal, RunId, Timestamp, WorkflowId};
use bevy_ecs::prelude::World;

use super::Workflows;
use super::reach::knows_steps;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::find;
use crate::kernel::page::Page;

/// A run, with how far each of its steps is.
#[derive(Clone, Debug)]
pub struct RunView {
    /// Which.
    pub id: RunId,
    /// The run itself.
    pub run: WorkflowRun,
}

/// Reads a run.
#[derive(Clone, Copy, Debug)]
pub struct GetRun(pub RunId);

command!(quick "get_run" GetRun => RunView, Root, |GetRun(id), world| Answer::Now(get(world, id)));

fn get(world: &World, id: RunId) -> Result<RunView, Refusal> {
    let found = world.resource::<Workflows>().run(id).and_then(|entity| world.get::<WorkflowRun>(entity));
    let known = found.filter(|run| knows_steps(world, &run.steps));
    known.map(|run| RunView { id, run: run.clone() }).ok_or_else(|| Refusal::not_found("workflow run", id))
}

/// Reads the runs of a workflow in the order of their beginning.
#[derive(Clone, Copy, Debug)]
pub struct ListRuns {
    /// Of which workflow.
    pub workflow: WorkflowId,
    /// From after this one.
    pub after: Option<RunId>,
    /// At most so many.
    pub limit: usize,
}

/// A run in a list (spec 1, Workflow run).
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Which.
    pub id: RunId,
    /// Of which workflow.
    pub workflow: WorkflowId,
    /// The workflow's name when the run began.
    pub name: Box<str>,
    /// Where it is.
    pub state: RunState,
    /// Completed steps.
    pub steps_completed: usize,
    /// When it was taken.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Reason of the failure or cancellation.
    pub error: Option<Box<str>>,
}

impl RunSummary {
    /// The summary of a run.
    #[must_use]
    pub fn of(id: RunId, run: &WorkflowRun) -> Self {
        Self {
            id,
            workflow: run.workflow,
            name: run.name.clone(),
            state: run.state,
            steps_completed: run.progress.iter().filter(|step| step.state == StepState::Completed).count(),
            started_at: run.started_at,
            ended_at: run.ended_at,
            error: run.error.clone(),
        }
    }
}

command!(read "list_runs" ListRuns => Page<RunSummary, RunId, ()>, Root, |it, world| Answer::Now(page(world, it)));

fn page(world: &World, list: ListRuns) -> Result<Page<RunSummary, RunId, ()>, Refusal> {
    find::<Workflow>(world, list.workflow)?;
    let workflows = world.resource::<Workflows>();
    let found = workflows.runs_after(list.workflow, list.after).map(|id| (id, id));
    let known = |at| world.get::<WorkflowRun>(at).filter(|run| knows_steps(world, &run.steps));
    let summary = |id| Some(RunSummary::of(id, known(workflows.run(id)?)?));
    Ok(Page::of(found, list.limit, (), summary))
}
