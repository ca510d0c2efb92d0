//! `task_claim`: takes a task from the queue.

use agentsvc_components::TaskId;
use agentsvc_systems::task::{ClaimNextTask, ClaimTask, TaskView};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::task::shape as task_shape;
use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row. Safe to repeat: the world claims the task and settles the call in one step.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "task_claim",
    "Claims a task of the shared queue for you: the one of `task_id`, or the oldest assigned to you, or else the \
     oldest unassigned one. No other agent can claim it then. Do it and end it with task_complete; unfinished claims \
     expire after a while.",
    |context, text| on_input(context, text, run),
)
.safe()
.order(30);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The task. Default: the next one for you.
    task_id: Option<Uuid>,
}

async fn run(context: Context, Input { task_id }: Input) -> Result<Ended, String> {
    let (agent, by) = (context.run.agent, context.turn());
    match task_id {
        Some(task) => context.settle(ClaimTask { task: TaskId(task), agent, by }, task_shape::told).await,
        None => context.settle(ClaimNextTask { agent, by }, told_next).await,
    }
}

fn told_next(view: &Option<TaskView>) -> String {
    view.as_ref().map_or_else(|| "No task is available.".to_owned(), task_shape::told)
}
