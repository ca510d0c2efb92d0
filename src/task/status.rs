//! `task_status`: how one task, or the whole queue, does.

use agentsvc_components::TaskId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::kernel::entities::Get;
use agentsvc_systems::task::{GetQueueStatus, TaskView};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::task::shape as task_shape;
use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "task_status",
    "Shows one task of the shared queue with its result, or, without `task_id`, how many tasks are pending, running \
     or ended.",
    |context, text| on_input(context, text, run),
)
.safe()
.anywhere()
.order(34);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The task. Default: the whole queue.
    task_id: Option<Uuid>,
}

async fn run(context: Context, Input { task_id }: Input) -> Result<Ended, String> {
    if let Some(task) = task_id {
        let view = context.ask(Get::<TaskView>(TaskId(task))).await?;
        return Ok(Ended::Read { text: task_shape::told(&view), taint: view.task.taint });
    }
    let queue = context.ask(GetQueueStatus).await?;
    let told = json!({
        "pending": queue.pending,
        "running": queue.running,
        "completed": queue.completed,
        "failed": queue.failed,
        "completed_last_hour": queue.completed_last_hour,
    });
    Ok(Ended::Read { text: told.to_string(), taint: Taint::NONE })
}
