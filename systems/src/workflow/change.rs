//! Definitions are made, changed and removed.

use crate::workflow::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::workflow::{RunState, Workflow};
use agentsvc_components::{Refusal, RunId, WorkflowId};
use serde_json::json;

use super::definition::{self, NewStep, NewWorkflow};
use super::reach::pinned;
use super::show::{Definitions, QUOTA, WorkflowView};
use super::{Workflows, end};
use crate::agent::acting_holder;
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{Removable, Remove, View, change, find};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;
use crate::taint;

/// Keeps a new workflow (spec 1, POST /api/workflows). Refused with the key at fault, and with 429 when there is no room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateWorkflow(pub NewWorkflow);

command! {
    write "create_workflow" CreateWorkflow => WorkflowView, Root, |CreateWorkflow(it), world|
        Answer::stored(create(world, it))
}

fn create(world: &mut World, new: NewWorkflow) -> Result<WorkflowView, Refusal> {
    taint::check_lasting(world)?;
    let now = world.resource::<Now>().0;
    let workflow = Workflow {
        name: definition::name(&new.name)?,
        description: definition::description(&new.description)?,
        steps: pinned(world, definition::steps(new.steps)?)?,
        created_at: now,
        updated_at: now,
        holder: acting_holder(world),
    };
    let definitions = world.resource::<Definitions>();
    QUOTA.admit(definitions.used, 1, workflow.bytes())?;
    definitions.shares.admit(&QUOTA, workflow.holder, 1, workflow.bytes())?;
    let id: WorkflowId = mint(world, Slot::ROOT);
    world.audit(audit_kinds::WORKFLOW_CREATED, None, json!({ "workflow": id, "name": workflow.name }));
    let entity = world.spawn((id, workflow)).id();
    world.mark(entity);
    WorkflowView::seen(world, id)
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

command!(write "update_workflow" UpdateWorkflow => WorkflowView, Root, |it, world| Answer::stored(update(world, it)));

fn update(world: &mut World, command: UpdateWorkflow) -> Result<WorkflowView, Refusal> {
    let UpdateWorkflow { workflow: id, patch } = command;
    let entity = find::<Workflow>(world, id)?;
    let name = patch.name.as_deref().map(definition::name).transpose()?;
    let description = patch.description.as_deref().map(definition::description).transpose()?;
    let steps = patch.steps.map(definition::steps).transpose()?;
    let steps = steps.map(|steps| pinned(world, steps)).transpose()?;
    let now = world.resource::<Now>().0;
    let Some(old) = world.get::<Workflow>(entity).cloned() else { return Err(Refusal::not_found("workflow", id)) };
    let was = old.bytes();
    let mut new = Workflow {
        name: name.unwrap_or(old.name),
        description: description.unwrap_or(old.description),
        steps: steps.unwrap_or(old.steps),
        created_at: old.created_at,
        updated_at: now,
        holder: old.holder,
    };
    let (longer, definitions) = (new.bytes().saturating_sub(was), world.resource::<Definitions>());
    QUOTA.admit(definitions.used, 0, longer)?;
    new.holder = definitions.shares.grown(&QUOTA, (old.holder, acting_holder(world)), (was, longer))?;
    world.audit(audit_kinds::WORKFLOW_UPDATED, None, json!({ "workflow": id, "name": new.name }));
    change(world, entity, |workflow: &mut Workflow| *workflow = new);
    WorkflowView::seen(world, id)
}

/// A workflow leaves the world; what belongs to it goes too.
pub(crate) struct WorkflowRemoved(pub(crate) WorkflowId);

impl Removable for Workflow {
    const REMOVE: &'static str = "remove_workflow";
    const PLACE: Place<Remove<Self>> = Place::Root;
    /// How many runs were cancelled.
    type Reply = usize;

    /// Its runs go with it. Those under way are cancelled, so that nothing goes on out of sight.
    fn removed(self, world: &mut World, id: WorkflowId) -> usize {
        react(world, &WorkflowRemoved(id));
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
        world.audit(audit_kinds::WORKFLOW_DELETED, None, json!({ "workflow": id, "cancelled": cancelled }));
        cancelled
    }
}
