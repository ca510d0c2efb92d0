//! The task queue (spec 2, Task queue; decisions, Automation).

use agentsvc_components::AgentId;
use agentsvc_components::task::{Task, TaskState};
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::task::{
    ClaimTask, EndTask, GetQueueStatus, ListTasks, PostTask, RetryTask, TaskFilter, TaskView,
};
use agentsvc_systems::world::GetStats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::crud::{self, shown};
use crate::http::error::Error;
use crate::http::lists::list_schema;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};

const LIST: &[Reply] = &[Reply::json::<TaskList>(200, "the tasks in order of creation")];

pub(crate) const ROUTES: &[Route] =
    &[
        Route::get("/api/tasks", "List tasks", |call| Box::pin(list(call)))
            .reaching(Reach::Filtered)
            .large()
            .query::<TasksQuery>()
            .replies(LIST),
        Route::post("/api/tasks", "Post a task", |call| Box::pin(post(call)))
            .runs_agents()
            .reaching(Reach::Filtered)
            .body::<PostBody>()
            .replies(&[Reply::json::<TaskItem>(201, "the task"), Reply::error(429, "the task queue is full")]),
        Route::get("/api/tasks/list", "List queued and recently ended tasks", |call| Box::pin(list(call)))
            .reaching(Reach::Filtered)
            .large()
            .query::<TasksQuery>()
            .replies(LIST),
        Route::get("/api/tasks/status", "Count tasks by state", |call| Box::pin(status(call)))
            .replies(&[Reply::json::<StatusSummary>(200, "the counts")]),
        crud::get::<TaskItem>("/api/tasks/{id}", "Get a task").reaching(Reach::Filtered),
        Route::delete("/api/tasks/{id}", "Delete a task", |call| Box::pin(remove(call)))
            .reaching(Reach::Filtered)
            .replies(&[Reply::json::<Removed>(200, "removed")]),
        Route::post("/api/tasks/{id}/claim", "Claim a pending task for an agent", |call| Box::pin(claim(call)))
            .reaching(Reach::Filtered)
            .body::<ClaimBody>()
            .replies(&[
                Reply::json::<TaskItem>(200, "the updated task"),
                Reply::error(409, "the task is not pending or is assigned to another agent"),
            ]),
        Route::post("/api/tasks/{id}/complete", "Complete a claimed task", |call| Box::pin(complete(call)))
            .reaching(Reach::Filtered)
            .body::<CompleteBody>()
            .replies(ENDED),
        Route::post("/api/tasks/{id}/fail", "Fail a claimed task", |call| Box::pin(fail(call)))
            .reaching(Reach::Filtered)
            .body::<FailBody>()
            .replies(ENDED),
        Route::post("/api/tasks/{id}/retry", "Retry a failed task", |call| Box::pin(retry(call)))
            .runs_agents()
            .reaching(Reach::Filtered)
            .replies(&[Reply::json::<TaskItem>(200, "the updated task"), Reply::error(409, "the task has not failed")]),
        Route::get("/api/queue/status", "Get the depth and throughput of the task queue", |call| Box::pin(queue(call)))
            .replies(&[Reply::json::<QueueSummary>(200, "depth and throughput")]),
    ];

const ENDED: &[Reply] = &[
    Reply::json::<TaskItem>(200, "the updated task"),
    Reply::error(409, "the task is not claimed or is claimed by another agent"),
];

shape! {
    /// A task.
    struct TaskItem from view: TaskView {
        let (id, task) = (view.id.0, view.task);
        let failed = task.state == TaskState::Failed;
        let (result, error) = if failed { (None, task.result) } else { (task.result, None) };
    } {
        id: Uuid = id,
        /// The same.
        task_id: Uuid = id,
        title: Box<str> = task.title,
        description: Box<str> = task.description,
        /// Assignee as given.
        assignee: Option<Box<str>> = task.assignee,
        /// `pending`, `running`, `completed` or `failed`.
        status: &'static str = task.state.as_str(),
        /// The agent that posted it.
        posted_by: Option<Uuid> = task.posted_by.map(|agent| agent.0),
        /// Agent that claimed it.
        claimed_by: Option<Uuid> = task.claimed_by.map(|agent| agent.0),
        claimed_at: Option<Moment> = task.claimed_at.map(Moment),
        /// Number of claims.
        attempts: u32 = task.attempts,
        /// Result.
        result: Option<Box<str>> = result,
        /// Why it failed.
        error: Option<Box<str>> = error,
        created_at: Moment = Moment(task.created_at),
        updated_at: Moment = Moment(task.updated_at),
        /// End time.
        ended_at: Option<Moment> = task.ended_at.map(Moment),
    }
}

list_schema! {
    /// A list of tasks.
    TaskList {
        tasks: TaskItem,
        /// Tasks in all; null for those who see some only.
        total: Option<u64>
    }
}

/// Filter for tasks.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TasksQuery {
    /// Only with this state.
    status: Option<String>,
    /// Only tasks with exactly this assignee; empty for unassigned tasks.
    assignee: Option<String>,
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let TasksQuery { status, assignee, limit, cursor } = call.query()?;
    let filter = TaskFilter { state: state_of(status)?, assignee: assignee.map(Into::into) };
    let command = move |after, limit| ListTasks { filter: filter.clone(), after, limit };
    lists::of_world(&call, ListQuery { limit, cursor }, Shape::of("tasks"), command, TaskItem::from).await
}

fn state_of(word: Option<String>) -> Result<Option<TaskState>, Error> {
    let Some(word) = word else { return Ok(None) };
    let wrong = || Error::bad_field("status", "status must be pending, running, completed, failed or cancelled");
    TaskState::parse(&word).map(Some).ok_or_else(wrong)
}

/// A task to create.
#[derive(Deserialize, JsonSchema)]
struct PostBody {
    /// Title: one line of at most 256 bytes.
    title: String,
    /// Description, at most 8 KiB.
    #[serde(default)]
    description: Option<String>,
    /// Assignee: an agent's id or name. Omitted, null or empty means any agent.
    #[serde(default)]
    assignee: Option<String>,
}

async fn post(call: Call) -> Result<Response, Error> {
    let PostBody { title, description, assignee } = call.json()?;
    let command = PostTask { title, description: description.unwrap_or_default(), assignee, ..PostTask::default() };
    reply::created(&TaskItem::from(call.ask(command).await?))
}

shown!(TaskItem: TaskView, "the task");

/// The task was deleted.
#[derive(Serialize, JsonSchema)]
struct Removed {
    /// `cancelled` if it was open, `removed` otherwise.
    status: &'static str,
    task_id: Uuid,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let removed = call.ask(Remove::<Task>(call.id("id")?)).await?;
    let cancelled = removed.task.state == TaskState::Cancelled;
    reply::ok(&Removed { status: if cancelled { "cancelled" } else { "removed" }, task_id: removed.id.0 })
}

/// The claiming agent.
#[derive(Deserialize, JsonSchema)]
struct ClaimBody {
    /// Agent that claims the task.
    agent_id: Uuid,
}

async fn claim(call: Call) -> Result<Response, Error> {
    let task = call.id("id")?;
    let ClaimBody { agent_id } = call.json()?;
    let view = call.ask(ClaimTask { task, agent: AgentId(agent_id), by: None }).await?;
    reply::ok(&TaskItem::from(view))
}

/// Result.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CompleteBody {
    /// At most 8 KiB.
    result: Option<String>,
    /// Only if this agent has claimed the task.
    agent_id: Option<Uuid>,
}

async fn complete(call: Call) -> Result<Response, Error> {
    let task = call.id("id")?;
    let CompleteBody { result, agent_id } = call.json_or_default()?;
    end(&call, EndTask { task, failed: false, result, only_of: agent_id.map(AgentId), by: None }).await
}

/// Reason of the failure.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct FailBody {
    /// At most 8 KiB.
    error: Option<String>,
    /// Only if this agent has claimed the task.
    agent_id: Option<Uuid>,
}

async fn fail(call: Call) -> Result<Response, Error> {
    let task = call.id("id")?;
    let FailBody { error, agent_id } = call.json_or_default()?;
    end(&call, EndTask { task, failed: true, result: error, only_of: agent_id.map(AgentId), by: None }).await
}

async fn end(call: &Call, command: EndTask) -> Result<Response, Error> {
    reply::ok(&TaskItem::from(call.ask(command).await?))
}

async fn retry(call: Call) -> Result<Response, Error> {
    let view = call.ask(RetryTask(call.id("id")?)).await?;
    reply::ok(&TaskItem::from(view))
}

/// Number of tasks by state.
#[derive(Serialize, JsonSchema)]
struct StatusSummary {
    pending: usize,
    running: usize,
    /// Ended tasks that are still stored.
    completed: usize,
    /// Ended tasks that are still stored.
    failed: usize,
    /// Since the daemon started.
    cancelled: u64,
    /// All stored tasks.
    total: usize,
}

async fn status(call: Call) -> Result<Response, Error> {
    let queue = call.ask(GetQueueStatus).await?;
    reply::ok(&StatusSummary {
        pending: queue.pending,
        running: queue.running,
        completed: queue.completed,
        failed: queue.failed,
        cancelled: queue.cancelled,
        total: queue.pending + queue.running + queue.completed + queue.failed,
    })
}

/// Depth and throughput of the queue.
#[derive(Serialize, JsonSchema)]
struct QueueSummary {
    /// Pending tasks.
    depth: usize,
    /// The same.
    pending: usize,
    running: usize,
    completed: usize,
    failed: usize,
    /// Creation time of the oldest pending task.
    oldest_pending_at: Option<Moment>,
    throughput: ThroughputSummary,
    /// Claims expired since the daemon started.
    claims_expired: u64,
    turns: TurnsSummary,
}

/// Recently ended tasks.
#[derive(Serialize, JsonSchema)]
struct ThroughputSummary {
    completed_last_minute: u64,
    completed_last_hour: u64,
    failed_last_minute: u64,
    failed_last_hour: u64,
}

/// Turns of all agents.
#[derive(Serialize, JsonSchema)]
struct TurnsSummary {
    /// Open turns.
    open: usize,
    /// Open turns waiting for a slot of their provider.
    waiting: usize,
}

async fn queue(call: Call) -> Result<Response, Error> {
    let queue = call.ask(GetQueueStatus).await?;
    let world = call.ask(GetStats).await?;
    reply::ok(&QueueSummary {
        depth: queue.pending,
        pending: queue.pending,
        running: queue.running,
        completed: queue.completed,
        failed: queue.failed,
        oldest_pending_at: queue.oldest_pending_at.map(Moment),
        throughput: ThroughputSummary {
            completed_last_minute: queue.completed_last_minute,
            completed_last_hour: queue.completed_last_hour,
            failed_last_minute: queue.failed_last_minute,
            failed_last_hour: queue.failed_last_hour,
        },
        claims_expired: queue.claims_expired,
        turns: TurnsSummary { open: world.turns_open, waiting: world.turns_waiting },
    })
}
