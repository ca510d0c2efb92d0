//! The routes of A2A tasks that are no JSON-RPC (spec 3, A2A).

use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::a2a::PushTarget;
use agentsvc_systems::a2a::{A2aTaskView, AwaitA2aTask, CancelA2aTask, limits};
use agentsvc_systems::kernel::entities::Get;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::gate::{self, Sender, Waiting};
use super::host::{A2aHost, Policy};
use super::message::{self, Incoming};
use super::render;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::json;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What a task costs the client's rate budget.
const COST: u32 = 10;

const OFF: Reply = Reply::error(404, "A2A is off, or there is no such task or agent");

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/a2a/tasks/send", "Send a task to an agent and wait for the result", |call| Box::pin(send(call)))
        .public()
        .cost(COST)
        .body_max(limits::A2A_BODY_BYTES_MAX)
        .body::<A2aTaskBody>()
        .replies(&[
            Reply::json::<A2aTaskItem>(200, "the task, ended or after 10 minutes as it is; in the bare form of older clients for a body with `params`"),
            OFF,
            Reply::error(409, "the id is taken by a task with another message"),
        ]),
    Route::get("/a2a/tasks/{id}", "Get a task", |call| Box::pin(get(call))).large()
        .public()
        .replies(&[Reply::json::<A2aTaskItem>(200, "the task"), OFF]),
    Route::post("/a2a/tasks/{id}/cancel", "Cancel a task", |call| Box::pin(cancel(call))).public().replies(&[
        Reply::json::<A2aTaskItem>(200, "the cancelled task"),
        OFF,
        Reply::error(409, "the task has completed or failed"),
    ]),
];

/// A task. Older clients put `message`, `agentId` and `sessionId` into `params`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; the dialects are told apart by what they hold")]
struct A2aTaskBody {
    /// Id or name of an offered agent. Default: `[a2a] default_agent`, else the only one.
    agent_id: Option<String>,
    /// What the agent is told.
    message: Option<A2aMessage>,
    /// An id of your own, so that sending the task again does not begin another one.
    task_id: Option<String>,
    /// Conversation. Default: a new one, whose id is in the answer.
    context_id: Option<String>,
    /// Default: true. False answers at once.
    blocking: Option<bool>,
    /// The same in the form of older clients.
    params: Option<Map<String, Value>>,
}

/// A message.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct A2aMessage {
    /// `user`
    role: Option<String>,
    /// Text and data.
    parts: Vec<A2aPart>,
}

/// A part of a message: text, or data that the agent reads as JSON.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct A2aPart {
    text: Option<String>,
    data: Option<Value>,
}

/// A task.
#[derive(Serialize, JsonSchema)]
struct A2aTaskItem {
    task_id: String,
    /// `submitted`, `working`, `completed`, `failed` or `cancelled`.
    status: String,
    /// The answer, or why there is none: `role` and `parts`. Null while the task is open.
    result: Option<Map<String, Value>>,
    context_id: String,
    agent_id: String,
    created_at: String,
    updated_at: String,
}

/// The body, an object.
fn body(call: &Call) -> Result<Map<String, Value>, Error> {
    json::check_content_type(call.headers())?;
    json::read_object(&call.body, false, None)
}

async fn send(call: Call) -> Result<Response, Error> {
    let opened = gate::open(&call)?;
    gate::check_origin(&call)?;
    let mut body = body(&call)?;
    let params = match body.remove("params") {
        Some(Value::Object(params)) => Some(params),
        Some(Value::Null) | None => None,
        Some(_) => return Err(Error::bad_field("params", "`params` must be an object")),
    };
    let is_bare = params.is_some();
    let incoming = message::read(params.as_ref().unwrap_or(&body))?;
    let (_, policy) = &opened;
    gate::take(&call, policy)?;
    let view = submit(&call, (&opened.0, policy), incoming, None).await?;
    reply::json(StatusCode::OK, &if is_bare { render::bare(&view) } else { render::plain(&view) })
}

/// Sends a task, and waits for its end where the client does.
///
/// # Errors
/// Those of [`message::command`] and of the world; 429 where too many wait.
pub(super) async fn submit(
    call: &Call,
    opened: (&Arc<dyn A2aHost>, &Policy),
    incoming: Incoming,
    push: Option<PushTarget>,
) -> Result<A2aTaskView, Error> {
    let waiting = if incoming.blocking { Some(gate::enter(call)?) } else { None };
    let command = message::command(call, opened, incoming, push).await?;
    let view = call.ask(command).await?;
    match waiting {
        Some(waiting) => ended(call, view, waiting).await,
        None => Ok(view),
    }
}

/// The task when it has ended; as it is after a while.
pub(super) async fn ended(call: &Call, view: A2aTaskView, waiting: Waiting) -> Result<A2aTaskView, Error> {
    if !view.task.state.is_open() {
        return Ok(view);
    }
    let most = Duration::from_secs(limits::A2A_WAIT_SECS_MAX);
    let ended = tokio::time::timeout(most, call.ask(AwaitA2aTask(view.id))).await;
    drop(waiting);
    match ended {
        Ok(ended) => ended,
        Err(_) => call.ask(Get::<A2aTaskView>(view.id)).await,
    }
}

/// The task that the client knows by this id.
pub(super) async fn find(call: &Call, id: &str) -> Result<A2aTaskView, Error> {
    call.ask(message::finds(id, &Sender::of(call))).await
}

async fn get(call: Call) -> Result<Response, Error> {
    gate::open(&call)?;
    let view = find(&call, &call.param("id")?).await?;
    reply::ok(&render::union(&view))
}

async fn cancel(call: Call) -> Result<Response, Error> {
    gate::open(&call)?;
    gate::check_origin(&call)?;
    let view = find(&call, &call.param("id")?).await?;
    let view = call.ask(CancelA2aTask(view.id)).await?;
    let mut shown = render::union(&view);
    // A cancelled task has no answer.
    shown["result"] = json!(null);
    reply::ok(&shown)
}
