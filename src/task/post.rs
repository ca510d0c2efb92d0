//! `task_post`: puts a task in the queue.

use agentsvc_systems::task::PostTask;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::kernel::toolset::{Context, Ended, Tool, input};
use crate::task::shape as task_shape;

/// The table row. Safe to repeat: the world posts the task and settles the call in one step.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "task_post",
    "Puts a task in the shared queue, for one agent or for whoever comes first. It does not wait: the task \
        is done when an agent claims and completes it, which task_status shows. Gives the task's id.",
    run,
)
.safe()
.anywhere()
.order(33);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What is to be done, in a line of at most 256 bytes.
    title: String,
    /// All that whoever does it has to know; at most 8 KiB.
    #[serde(default)]
    description: String,
    /// The id or name of the agent that is to do it; whoever comes first when left out.
    assignee: Option<String>,
}

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move {
        let Input { title, description, assignee } = input(&text)?;
        let (posted_by, by) = (context.agent(), context.turn());
        context.settle(PostTask { title, description, assignee, posted_by, by }, task_shape::told).await
    })
}
