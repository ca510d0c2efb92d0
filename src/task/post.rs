//! `task_post`: puts a task in the queue.

use agentsvc_systems::task::PostTask;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::task::shape as task_shape;
use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row. Safe to repeat: the world posts the task and settles the call in one step.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "task_post",
    "Posts a task to the shared queue, for one agent or for any agent. It does not wait for the result; use \
     task_status to follow it. Returns the task's id.",
    |context, text| on_input(context, text, run),
)
.safe()
.anywhere()
.order(33);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Title: one line of at most 256 bytes.
    title: String,
    /// Everything needed to do the task; at most 8 KiB.
    #[serde(default)]
    description: String,
    /// Id or name of the assigned agent. Default: any agent.
    assignee: Option<String>,
}

async fn run(context: Context, Input { title, description, assignee }: Input) -> Result<Ended, String> {
    let (posted_by, by) = (context.agent(), context.turn());
    context.settle(PostTask { title, description, assignee, posted_by, by }, task_shape::told).await
}
