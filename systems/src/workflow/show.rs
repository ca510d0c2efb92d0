//! Definitions are found, read, and listed in the order of their making.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::{Step, StepAgent, Workflow};
use agentsvc_components::{AgentId, Refusal, Timestamp, WorkflowId};

use super::error_codes;
use super::reach::is_known;
use crate::agent::{is_limited, own_agents};
use crate::kernel::command::Place;
use crate::kernel::entities::{Entities, List, Places, View, indexed};
use crate::kernel::index::id_of;
use crate::kernel::quota::{Quota, Used};

/// Every definition.
pub(crate) type Definitions = Entities<Workflow>;

indexed!(Workflow: DefinitionPlaces, "workflow", is_limited => is_known);

/// What definitions may take.
pub(super) const QUOTA: Quota = Quota {
    count: limit::WORKFLOWS_MAX,
    bytes: limit::WORKFLOWS_BYTES_MAX,
    what: "workflows",
    code: error_codes::WORKFLOWS_FULL,
};

/// Definitions by their names.
#[derive(Debug, Default, PartialEq)]
pub struct DefinitionPlaces {
    named: BTreeSet<(Box<str>, WorkflowId)>,
    /// What those take whose first agent is given by its id, as all of users with a limited role are. No entry is empty.
    of: BTreeMap<AgentId, Used>,
}

/// The first agent that steps name by its id.
pub(super) fn first_agent(steps: &[Step]) -> Option<AgentId> {
    let first = steps.iter().find_map(|step| step.agent.as_ref());
    if let Some(StepAgent::Id(id)) = first { Some(*id) } else { None }
}

/// Refuses so many further definitions, with so many bytes more, where there is no room for them: for all, or for the user who
/// acts.
pub(super) fn admit(world: &World, more: usize, bytes: usize) -> Result<(), Refusal> {
    let definitions = world.resource::<Definitions>();
    QUOTA.admit(definitions.used, more, bytes)?;
    let Some(own) = own_agents(world) else { return Ok(()) };
    let (count, most) = (limit::WORKFLOWS_OF_USER_MAX, limit::WORKFLOWS_OF_USER_BYTES_MAX);
    let used = own.into_iter().filter_map(|agent| definitions.of.get(&id_of::<AgentId>(world, agent)));
    let used =
        used.fold(Used::default(), |sum, own| Used { count: sum.count + own.count, bytes: sum.bytes + own.bytes });
    Quota { count, bytes: most, what: "workflows of one user", code: error_codes::WORKFLOWS_FULL }
        .admit(used, more, bytes)
}

impl DefinitionPlaces {
    /// Those of this name.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = WorkflowId> {
        let from = (name.into(), WorkflowId(uuid::Uuid::nil()));
        self.named.range(from..).take_while(move |(of, _)| **of == *name).map(|(_, id)| *id)
    }
}

impl Places<Workflow> for DefinitionPlaces {
    fn insert(&mut self, id: WorkflowId, workflow: &Workflow) {
        self.named.insert((workflow.name.clone(), id));
        if let Some(agent) = first_agent(&workflow.steps) {
            self.of.entry(agent).or_default().add(workflow.bytes());
        }
    }

    fn remove(&mut self, id: WorkflowId, workflow: &Workflow) {
        self.named.remove(&(workflow.name.clone(), id));
        let Some(agent) = first_agent(&workflow.steps) else { return };
        if let Some(used) = self.of.get_mut(&agent) {
            used.remove(workflow.bytes());
            if used.count == 0 {
                self.of.remove(&agent);
            }
        }
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

    fn passes(&self, (): &()) -> bool {
        true
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

    fn passes(&self, (): &()) -> bool {
        true
    }
}
