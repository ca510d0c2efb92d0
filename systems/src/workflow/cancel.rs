//! A run is cancelled.

use crate::workflow::audit_kinds;
use crate::workflow::error_codes;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::workflow::{RunState, WorkflowRun};
use agentsvc_components::{Refusal, RunId};
use serde_json::json;

use super::reach::knows_steps;
use super::{Workflows, end};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};

/// Cancels a run: its turns are stopped, and what has not begun does not. Refused with `run_ended` when it has ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CancelRun(pub RunId);

command!(write "cancel_run" CancelRun => (), Root, |CancelRun(it), world| Answer::stored(cancel(world, it)));

fn cancel(world: &mut World, id: RunId) -> Result<(), Refusal> {
    let missing = || Refusal::not_found("workflow run", id);
    let entity = world.resource::<Workflows>().run(id).ok_or_else(missing)?;
    let run = world.get::<WorkflowRun>(entity).filter(|run| knows_steps(world, &run.steps));
    let state = run.map(|run| run.state).ok_or_else(missing)?;
    if !state.is_open() {
        let text = format!("the run has already ended (state {})", state.as_str());
        return Err(Refusal::of(error_codes::RUN_ENDED, text));
    }
    end::end(world, entity, RunState::Cancelled, Some("cancelled on request".to_owned()));
    world.audit(audit_kinds::WORKFLOW_RUN_CANCELLED, None, json!({ "run": id }));
    Ok(())
}
