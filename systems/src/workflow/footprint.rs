//! What a workflow and a run take in memory.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::workflow::{Workflow, WorkflowRun};

use crate::kernel::footprint::of;

/// Bytes of texts and boxes.
pub(super) fn definition(world: &World, entity: Entity) -> usize {
    of(world, entity, |it: &Workflow| {
        let steps: usize = it.steps.iter().map(|step| size_of_val(step) + step.name.len() + step.prompt.len()).sum();
        2 * it.name.len() + it.description.len() + steps
    })
}

/// The same of a run.
pub(super) fn run(world: &World, entity: Entity) -> usize {
    of(world, entity, |it: &WorkflowRun| {
        let outputs: usize = it.outputs.iter().chain([&it.given]).flatten().map(|output| output.len()).sum();
        let progress = size_of_val(&*it.progress) + size_of_val(&*it.outputs);
        it.name.len() + it.input.len() + outputs + progress + it.output.as_ref().map_or(0, |output| output.len())
    })
}
