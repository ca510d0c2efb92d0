//! Runs are read.

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::{RunState, StepState, WorkflowRun};
use agentsvc_components::{Refusal, RunId, Timestamp, WorkflowId};
use bevy_ecs::prelude::World;

use super::Workflows;
use crate::kernel::command::{Answer, Command};
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

impl Command for GetRun {
    type Reply = RunView;
    const NAME: &'static str = "get_run";
    const WRITES: bool = false;
    const QUICK: bool = true;

    fn run(self, world: &mut World) -> Answer<RunView> {
        let found = world.resource::<Workflows>().run(self.0).and_then(|entity| world.get::<WorkflowRun>(entity));
        let view = found.map(|run| RunView { id: self.0, run: run.clone() });
        Answer::Now(view.ok_or_else(|| Refusal::not_found("workflow run", self.0)))
    }
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

impl Command for ListRuns {
    type Reply = Page<RunSummary, RunId, ()>;
    const NAME: &'static str = "list_runs";
    const WRITES: bool = false;

    fn run(self, world: &mut World) -> Answer<Page<RunSummary, RunId, ()>> {
        let workflows = world.resource::<Workflows>();
        if let Err(refusal) = workflows.definition(self.workflow) {
            return Answer::Now(Err(refusal));
        }
        let limit = self.limit.min(limit::PAGE_ITEMS_MAX);
        let summary = |id| Some(RunSummary::of(id, world.get::<WorkflowRun>(workflows.run(id)?)?));
        let found = workflows.runs_after(self.workflow, self.after).take(limit);
        let items: Vec<RunSummary> = found.filter_map(summary).collect();
        let next = items.last().map(|item| item.id).filter(|_| items.len() == limit);
        Answer::read(Page { items, next, total: () })
    }
}
