//! `task_complete`: ends a task that the agent has claimed, done or not.

use agentsvc_components::TaskId;
use agentsvc_systems::task::EndTask;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::task::shape as task_shape;
use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row. Safe to repeat: the world ends the task and settles the call in one step.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "task_complete",
    "Ends a task that you have claimed: with `result` when it is done, or with `error` when it cannot be done. Its \
     owner can retry a failed task.",
    |context, text| on_input(context, text, run),
)
.safe()
.order(31);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The task.
    task_id: Uuid,
    /// Result; at most 8 KiB.
    result: Option<String>,
    /// Reason of the failure; at most 8 KiB.
    error: Option<String>,
}

async fn run(context: Context, Input { task_id, result, error }: Input) -> Result<Ended, String> {
    if result.is_some() && error.is_some() {
        return Ok(Ended::own_failure("Give `result` or `error`, not both."));
    }
    let (only_of, by) = (Some(context.run.agent), context.turn());
    let failed = error.is_some();
    let end = EndTask { task: TaskId(task_id), failed, result: result.or(error), only_of, by };
    context.settle(end, task_shape::told).await
}
