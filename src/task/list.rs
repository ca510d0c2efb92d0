//! `task_list`: the tasks of the queue, page by page.

use agentsvc_components::TaskId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::task::TaskState;
use agentsvc_systems::task::{ListTasks, TaskFilter};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::task::shape as task_shape;
use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// Tasks of one page at most.
const PAGE_MAX: usize = 50;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "task_list",
    "Lists the tasks of the shared queue, oldest first, including recently ended ones. Long lists are paged.",
    |context, text| on_input(context, text, run),
)
.safe()
.anywhere()
.order(32);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Only tasks in this status. Default: all.
    status: Option<Status>,
    /// Only tasks assigned to this id or name; empty for unassigned tasks.
    assignee: Option<String>,
    /// Maximum number, 1 to 50. Default: 20.
    limit: Option<usize>,
    /// `next` of the previous page.
    after: Option<Uuid>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    Running,
    Completed,
    Failed,
}

impl From<Status> for TaskState {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Running => Self::Running,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
        }
    }
}

async fn run(context: Context, Input { status, assignee, limit, after }: Input) -> Result<Ended, String> {
    let filter = TaskFilter { state: status.map(Into::into), assignee: assignee.map(Into::into) };
    let limit = limit.unwrap_or(20).clamp(1, PAGE_MAX);
    let page = context.ask(ListTasks { filter, after: after.map(TaskId), limit }).await?;
    let tasks: Vec<Value> = page.items.iter().map(task_shape::shape).collect();
    let taint = page.items.iter().fold(Taint::NONE, |taint, view| taint.with(view.task.taint));
    let text = json!({ "tasks": tasks, "next": page.next, "total": page.total }).to_string();
    Ok(Ended::Read { text, taint })
}
