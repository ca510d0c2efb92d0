//! Definitions are made, changed and removed.

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::audit::AuditKind;
use agentsvc_components::workflow::{RunState, Workflow};
use agentsvc_components::{Refusal, RunId, WorkflowId};
use serde_json::json;

use super::definition::{self, NewStep, NewWorkflow};
use super::show::WorkflowView;
use super::{Workflows, end};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Command};
use crate::kernel::mint::Mint;
use crate::kernel::outbox::Emit;
use crate::kernel::record;

/// Keeps a new workflow (spec 1, POST /api/workflows). Refused with the key at fault, and with 429 when there is no room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateWorkflow(pub NewWorkflow);

impl Command for CreateWorkflow {
    type Reply = WorkflowView;
    const NAME: &'static str = "create_workflow";
    const WRITES: bool = true;

    fn run(self, world: &mut World) -> Answer<WorkflowView> {
        Answer::stored(create(world, self.0))
    }
}

fn create(world: &mut World, new: NewWorkflow) -> Result<WorkflowView, Refusal> {
    let now = world.resource::<Now>().0;
    let workflow = Workflow {
        name: definition::name(&new.name)?,
        description: definition::description(&new.description)?,
        steps: definition::steps(new.steps)?,
        created_at: now,
        updated_at: now,
    };
    world.resource::<Workflows>().has_room(workflow.bytes())?;
    let id = WorkflowId(world.resource_mut::<Mint>().uuid(now));
    let view = WorkflowView::of(id, &workflow);
    let entity = load(world, id, workflow);
    world.mark(entity);
    world.audit(AuditKind::WorkflowCreated, None, json!({ "workflow": id, "name": view.name }));
    Ok(view)
}

/// Puts a definition into the world.
pub(super) fn load(world: &mut World, id: WorkflowId, workflow: Workflow) -> Entity {
    let (name, bytes) = (workflow.name.clone(), workflow.bytes());
    let entity = world.spawn((id, workflow)).id();
    let mut workflows = world.resource_mut::<Workflows>();
    workflows.definitions.insert(id, entity);
    workflows.names.insert((name, id));
    workflows.bytes += bytes;
    entity
}

/// What to change of a definition; `None` stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorkflowPatch {
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// All of its steps.
    pub steps: Option<Vec<NewStep>>,
}

/// Changes a definition. Runs under way go on with the steps that they began with. Refused with 429 when its texts become
/// longer and there is no room for that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateWorkflow {
    /// Which.
    pub workflow: WorkflowId,
    /// What.
    pub patch: WorkflowPatch,
}

impl Command for UpdateWorkflow {
    type Reply = WorkflowView;
    const NAME: &'static str = "update_workflow";
    const WRITES: bool = true;

    fn run(self, world: &mut World) -> Answer<WorkflowView> {
        Answer::stored(update(world, self))
    }
}

fn update(world: &mut World, command: UpdateWorkflow) -> Result<WorkflowView, Refusal> {
    let UpdateWorkflow { workflow: id, patch } = command;
    let entity = world.resource::<Workflows>().definition(id)?;
    let name = patch.name.as_deref().map(definition::name).transpose()?;
    let description = patch.description.as_deref().map(definition::description).transpose()?;
    let steps = patch.steps.map(definition::steps).transpose()?;
    let now = world.resource::<Now>().0;
    let Some(old) = world.get::<Workflow>(entity).cloned() else { return Err(Refusal::not_found("workflow", id)) };
    let (was, before) = (old.bytes(), old.name.clone());
    let new = Workflow {
        name: name.unwrap_or(old.name),
        description: description.unwrap_or(old.description),
        steps: steps.unwrap_or(old.steps),
        created_at: old.created_at,
        updated_at: now,
    };
    let bytes = new.bytes();
    world.resource::<Workflows>().has_room_for(bytes.saturating_sub(was))?;
    let view = WorkflowView::of(id, &new);
    let mut workflows = world.resource_mut::<Workflows>();
    workflows.names.remove(&(before, id));
    workflows.names.insert((new.name.clone(), id));
    workflows.bytes = workflows.bytes - was + bytes;
    if let Some(mut workflow) = world.get_mut::<Workflow>(entity) {
        *workflow = new;
    }
    world.mark(entity);
    world.audit(AuditKind::WorkflowUpdated, None, json!({ "workflow": id, "name": view.name }));
    Ok(view)
}

/// Removes a definition and its runs. Those under way are cancelled, so that nothing goes on that nobody can see.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RemoveWorkflow(pub WorkflowId);

impl Command for RemoveWorkflow {
    /// How many runs were cancelled.
    type Reply = usize;
    const NAME: &'static str = "remove_workflow";
    const WRITES: bool = true;

    fn run(self, world: &mut World) -> Answer<usize> {
        Answer::stored(remove(world, self.0))
    }
}

fn remove(world: &mut World, id: WorkflowId) -> Result<usize, Refusal> {
    let entity = world.resource::<Workflows>().definition(id)?;
    let runs: Vec<RunId> = world.resource::<Workflows>().runs_after(id, None).collect();
    let open = world.resource::<Workflows>().open();
    for run in &runs {
        if let Some(run) = world.resource::<Workflows>().run(*run) {
            let why = "cancelled: its workflow was deleted".to_owned();
            end::end(world, run, RunState::Cancelled, Some(why));
        }
    }
    let cancelled = open - world.resource::<Workflows>().open();
    for run in runs {
        end::forget(world, run);
    }
    let known = world.get::<Workflow>(entity).map(|workflow| (workflow.name.clone(), workflow.bytes()));
    let mut workflows = world.resource_mut::<Workflows>();
    workflows.definitions.remove(&id);
    if let Some((name, bytes)) = known {
        workflows.names.remove(&(name, id));
        workflows.bytes -= bytes;
    }
    world.op(record::remove_component::<Workflow>(id));
    world.despawn(entity);
    world.audit(AuditKind::WorkflowDeleted, None, json!({ "workflow": id, "cancelled": cancelled }));
    Ok(cancelled)
}
