//! `workflow_run`: runs a workflow and waits for its end.

use agentsvc_components::workflow::RunState;
use agentsvc_systems::workflow::{RunWorkflow, WorkflowChoice};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row. Safe to repeat: a call is answered by one run, which it finds again after a crash. Its time is bounded
/// by the steps of the workflow.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "workflow_run",
    "Runs a workflow, a pipeline of steps that other agents perform, waits for it and returns its output.",
    |context, text| on_input(context, text, run),
)
.safe()
.untimed()
.anywhere()
.order(35);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The workflow's name or id.
    workflow: String,
    /// Input of the first step.
    #[serde(default)]
    input: String,
}

async fn run(context: Context, Input { workflow, input }: Input) -> Result<Ended, String> {
    let caller = context.turn().map(|_| (context.run.attempt, context.run.index));
    let end = context.ask(RunWorkflow { workflow: WorkflowChoice::Named(workflow), input, caller }).await?;
    if end.state == RunState::Completed {
        return Ok(Ended::Read { text: end.output.to_string(), taint: end.taint });
    }
    let why = end.error.unwrap_or_default();
    let text = format!("The workflow's run {} ended with the state {}: {why}.", end.run, end.state.as_str());
    Ok(Ended::Failure { text, taint: end.taint })
}
