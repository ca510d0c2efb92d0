//! Definitions are read.

use std::sync::Arc;

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::{Step, Workflow};
use agentsvc_components::{Refusal, Timestamp, WorkflowId};
use bevy_ecs::prelude::World;

use super::Workflows;
use crate::kernel::command::{Answer, Command};
use crate::kernel::page::Page;

/// A definition.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowView {
    /// Which.
    pub id: WorkflowId,
    /// Its name.
    pub name: Box<str>,
    /// What it is for.
    pub description: Box<str>,
    /// Its steps.
    pub steps: Arc<[Step]>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

impl WorkflowView {
    pub(super) fn of(id: WorkflowId, workflow: &Workflow) -> Self {
        let Workflow { name, description, steps, created_at, updated_at } = workflow.clone();
        Self { id, name, description, steps, created_at, updated_at }
    }
}

/// Reads a definition.
#[derive(Clone, Copy, Debug)]
pub struct GetWorkflow(pub WorkflowId);

impl Command for GetWorkflow {
    type Reply = WorkflowView;
    const NAME: &'static str = "get_workflow";
    const WRITES: bool = false;
    const QUICK: bool = true;

    fn run(self, world: &mut World) -> Answer<WorkflowView> {
        let missing = || Refusal::not_found("workflow", self.0);
        let found = world.resource::<Workflows>().definition(self.0);
        let view = |workflow| WorkflowView::of(self.0, workflow);
        Answer::Now(found.and_then(|entity| world.get::<Workflow>(entity).map(view).ok_or_else(missing)))
    }
}

/// Reads definitions in the order of their making.
#[derive(Clone, Copy, Debug)]
pub struct ListWorkflows {
    /// From after this one.
    pub after: Option<WorkflowId>,
    /// At most so many.
    pub limit: usize,
}

/// A definition in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowSummary {
    /// Which.
    pub id: WorkflowId,
    /// Its name.
    pub name: Box<str>,
    /// What it is for.
    pub description: Box<str>,
    /// Number of steps.
    pub steps: usize,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Command for ListWorkflows {
    type Reply = Page<WorkflowSummary, WorkflowId>;
    const NAME: &'static str = "list_workflows";
    const WRITES: bool = false;

    fn run(self, world: &mut World) -> Answer<Page<WorkflowSummary, WorkflowId>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let limit = self.limit.min(limit::PAGE_ITEMS_MAX);
        let workflows = world.resource::<Workflows>();
        let from = self.after.map_or(Unbounded, Excluded);
        let found = workflows.definitions.range((from, Unbounded)).take(limit);
        let items: Vec<WorkflowSummary> = found
            .filter_map(|(id, entity)| {
                let Workflow { name, description, steps, created_at, .. } = world.get::<Workflow>(*entity)?.clone();
                Some(WorkflowSummary { id: *id, name, description, steps: steps.len(), created_at })
            })
            .collect();
        let next = items.last().map(|item| item.id).filter(|_| items.len() == limit);
        Answer::read(Page { items, next, total: workflows.len() })
    }
}
