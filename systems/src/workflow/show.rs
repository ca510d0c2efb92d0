//! Definitions are found, read, and listed in the order of their making.

use std::collections::BTreeSet;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::{StepAgent, Workflow};
use agentsvc_components::{AgentId, Timestamp, WorkflowId};

use super::error_codes;
use super::reach::is_known;
use crate::agent::{is_limited, own_agent_ids};
use crate::kernel::command::Place;
use crate::kernel::entities::{Entities, List, Mirrored, Own, Put, View, indexed};
use crate::kernel::index::id_of;
use crate::kernel::page::merged;
use crate::kernel::quota::Quota;
use crate::kernel::share::Shares;

/// Every definition.
pub(crate) type Definitions = Entities<Workflow>;

indexed!(Workflow: DefinitionPlaces, "workflow", is_limited => is_known, own_workflows);

/// The workflows whose first agent is one of a user with a limited role: all agents of those that the user knows are.
fn own_workflows(world: &World, after: Option<WorkflowId>) -> Option<Own<'_, WorkflowId>> {
    let (agents, all) = (own_agent_ids(world)?, world.resource::<Definitions>());
    Some(Box::new(merged(agents.into_iter().map(move |agent| all.beginning_with(agent, after)))))
}

/// The first agent that a workflow names, if it names it by its id.
fn first_agent(workflow: &Workflow) -> Option<AgentId> {
    match workflow.steps.iter().find_map(|step| step.agent.as_ref())? {
        StepAgent::Id(agent) => Some(*agent),
        StepAgent::Name(_) => None,
    }
}

/// What definitions may take.
pub(super) const QUOTA: Quota = Quota {
    count: limit::WORKFLOWS_MAX,
    bytes: limit::WORKFLOWS_BYTES_MAX,
    what: "workflows",
    code: error_codes::WORKFLOWS_FULL,
};

/// Definitions by their names and first agents.
#[derive(Debug, Default, PartialEq)]
pub struct DefinitionPlaces {
    named: BTreeSet<(Box<str>, WorkflowId)>,
    beginning_with: BTreeSet<(AgentId, WorkflowId)>,
    /// What each holder takes.
    pub(super) shares: Shares,
}

impl DefinitionPlaces {
    /// Those of this name.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = WorkflowId> {
        let from = (name.into(), WorkflowId(uuid::Uuid::nil()));
        self.named.range(from..).take_while(move |(of, _)| **of == *name).map(|(_, id)| *id)
    }

    /// Those whose first agent this is, from after `after` on.
    fn beginning_with(&self, agent: AgentId, after: Option<WorkflowId>) -> impl Iterator<Item = WorkflowId> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = Excluded((agent, after.unwrap_or(WorkflowId(uuid::Uuid::nil()))));
        let found = self.beginning_with.range((from, Unbounded));
        found.take_while(move |(of, _)| *of == agent).map(|(_, id)| *id)
    }
}

impl Mirrored<Workflow> for DefinitionPlaces {
    fn place(&mut self, id: WorkflowId, workflow: &Workflow, is_in: bool) {
        self.named.put((workflow.name.clone(), id), is_in);
        if let Some(agent) = first_agent(workflow) {
            self.beginning_with.put((agent, id), is_in);
        }
        self.shares.put(workflow.holder, 1, workflow.bytes(), is_in);
    }
}

/// A definition.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowView {
    /// Which.
    pub id: WorkflowId,
    /// All of it.
    pub workflow: Workflow,
}

/// A definition in a list: without its steps, which may be long.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowSummary {
    /// Which.
    pub id: WorkflowId,
    /// Its name.
    pub name: Box<str>,
    /// What it is for.
    pub description: Box<str>,
    /// How many steps it has.
    pub steps: usize,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Lists definitions.
pub type ListWorkflows = List<WorkflowSummary>;

impl View for WorkflowSummary {
    type Kind = Workflow;
    type Filter = ();
    const NAMES: [&'static str; 2] = ["get_workflow_summary", "list_workflows"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let Workflow { name, description, steps, created_at, .. } = world.get(at)?;
        let (name, description) = (name.clone(), description.clone());
        Some(Self { id: id_of(world, at), name, description, steps: steps.len(), created_at: *created_at })
    }
}

impl View for WorkflowView {
    type Kind = Workflow;
    type Filter = ();
    const NAMES: [&'static str; 2] = ["get_workflow", "list_workflow_definitions"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, at), workflow: world.get::<Workflow>(at)?.clone() })
    }
}
