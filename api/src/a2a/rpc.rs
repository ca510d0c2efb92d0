//! JSON-RPC: one request a body, answered as JSON or as server-sent events. Both the present names of methods and the older
//! ones are known; the name says which dialect the client speaks.

use std::sync::Arc;

use agentsvc_components::a2a::PushTarget;
use agentsvc_systems::a2a::error_codes::A2A_TASK_ENDED;
use agentsvc_systems::a2a::{A2aTaskView, CancelA2aTask, DeleteA2aPush, SetA2aPush, limits};
use hyper::StatusCode;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::error_codes::{A2A_CONTENT_TYPE, A2A_TASK_CLOSED};
use super::gate;
use super::host::{A2aHost, Policy};
use super::message::{self, Incoming};
use super::render::Dialect;
use super::{push, rest, stream};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::json as bodies;
use crate::http::reply::{self, Body, Response};
use crate::http::route::{Reply, Route};
use crate::mcp::message::{Failure, Message, Params, answer};

/// What a request costs the client's rate budget; a task costs more.
const COST: u32 = 2;
const TASK_COST: u32 = 8;

/// Names the version that a client speaks.
const VERSION_HEADER: &str = "a2a-version";

const PARSE: i32 = -32_700;
const TASK_NOT_FOUND: i32 = -32_001;
const NOT_CANCELABLE: i32 = -32_002;
pub(super) const UNSUPPORTED: i32 = -32_004;
const CONTENT_TYPE: i32 = -32_005;
const NO_EXTENDED_CARD: i32 = -32_007;
const VERSION: i32 = -32_009;

const REPLIES: &[Reply] = &[
    Reply::plain(200, "the JSON-RPC answer, or server-sent events of a streaming method", "application/json"),
    Reply::empty(202, "a notification was taken"),
    Reply::error(403, "the `Origin` is not allowed"),
    Reply::error(404, "A2A is off"),
];

pub(crate) const ROUTES: &[Route] = &[at("/a2a"), at("/")];

const fn at(path: &'static str) -> Route {
    Route::post(path, "Send a JSON-RPC request to the A2A server", |call| Box::pin(post(call)))
        .public()
        .cost(COST)
        .without_room()
        .body_max(limits::A2A_BODY_BYTES_MAX)
        .body::<A2aRequest>()
        .replies(REPLIES)
}

/// One JSON-RPC 2.0 request.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; messages are told apart by what they hold")]
struct A2aRequest {
    /// `2.0`
    jsonrpc: String,
    /// Text of at most 256 bytes or a whole number, repeated in the answer.
    id: Option<Value>,
    /// Such as `message/send` or `SendMessage`.
    method: String,
    /// Parameters of the method.
    params: Option<Map<String, Value>>,
}

/// A request on its way.
pub(super) struct Request<'a> {
    pub(super) call: &'a Call,
    pub(super) host: &'a Arc<dyn A2aHost>,
    pub(super) policy: &'a Policy,
    pub(super) dialect: Dialect,
    pub(super) params: Params,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Send,
    Stream,
    /// `tasks/send` of older clients, which name the task themselves.
    SendTask,
    Get,
    Cancel,
    Resubscribe,
    PushSet,
    PushGet,
    PushList,
    PushDelete,
    List,
    ExtendedCard,
}

/// The methods by their names, and the dialect of each.
const METHODS: &[(&str, Dialect, Method)] = &[
    ("tasks/send", Dialect::V0, Method::SendTask),
    ("tasks/sendSubscribe", Dialect::V0, Method::Stream),
    ("message/send", Dialect::V0, Method::Send),
    ("message/stream", Dialect::V0, Method::Stream),
    ("tasks/get", Dialect::V0, Method::Get),
    ("tasks/cancel", Dialect::V0, Method::Cancel),
    ("tasks/resubscribe", Dialect::V0, Method::Resubscribe),
    ("tasks/pushNotificationConfig/set", Dialect::V0, Method::PushSet),
    ("tasks/pushNotificationConfig/get", Dialect::V0, Method::PushGet),
    ("tasks/pushNotificationConfig/list", Dialect::V0, Method::PushList),
    ("tasks/pushNotificationConfig/delete", Dialect::V0, Method::PushDelete),
    ("agent/getAuthenticatedExtendedCard", Dialect::V0, Method::ExtendedCard),
    ("SendMessage", Dialect::V1, Method::Send),
    ("SendStreamingMessage", Dialect::V1, Method::Stream),
    ("GetTask", Dialect::V1, Method::Get),
    ("ListTasks", Dialect::V1, Method::List),
    ("CancelTask", Dialect::V1, Method::Cancel),
    ("SubscribeToTask", Dialect::V1, Method::Resubscribe),
    ("CreateTaskPushNotificationConfig", Dialect::V1, Method::PushSet),
    ("GetTaskPushNotificationConfig", Dialect::V1, Method::PushGet),
    ("ListTaskPushNotificationConfigs", Dialect::V1, Method::PushList),
    ("DeleteTaskPushNotificationConfig", Dialect::V1, Method::PushDelete),
    ("GetExtendedAgentCard", Dialect::V1, Method::ExtendedCard),
];

async fn post(call: Call) -> Result<Response, Error> {
    let (host, policy) = gate::open(&call)?;
    gate::check_origin(&call)?;
    bodies::check_content_type(call.headers())?;
    let body: Value = match bodies::read(&call.body, false, None) {
        Ok(body) => body,
        Err(error) => return Ok(failed(&Value::Null, Failure::new(PARSE, error.message().to_owned()))),
    };
    let (id, method, params) = match Message::of(body) {
        Message::Notice => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            return Ok(response);
        }
        Message::Malformed => return Ok(failed(&Value::Null, Failure::malformed())),
        Message::Request { id, method, params } => (id, method, params),
    };
    let outcome = match (check_version(&call), METHODS.iter().find(|(name, ..)| *name == method), params) {
        (Err(failure), ..) | (_, _, Err(failure)) => Err(failure),
        (_, None, _) => Err(Failure::method(&method)),
        (Ok(()), Some((_, dialect, method)), Ok(params)) => {
            let request = Request { call: &call, host: &host, policy: &policy, dialect: *dialect, params };
            run(request, *method, &id).await
        }
    };
    match outcome {
        Ok(Answered::Json(result)) => rendered(&json!({ "jsonrpc": "2.0", "id": id, "result": result })),
        Ok(Answered::Stream(response)) => Ok(response),
        Err(failure) => Ok(failed(&id, failure)),
    }
}

/// What a request is answered with.
pub(super) enum Answered {
    /// One result.
    Json(Value),
    /// Events.
    Stream(Response),
}

fn rendered(answer: &Value) -> Result<Response, Error> {
    reply::ok(answer)
}

fn failed(id: &Value, failure: Failure) -> Response {
    reply::bytes(StatusCode::OK, reply::JSON, answer(id, Err(failure)).to_string())
}

/// Clients that name no version are taken as they come.
fn check_version(call: &Call) -> Result<(), Failure> {
    let Some(version) = call.headers().get(VERSION_HEADER) else { return Ok(()) };
    let version = version.to_str().unwrap_or("").trim();
    let is_known =
        |known: &str| version == known || version.strip_prefix(known).is_some_and(|rest| rest.starts_with('.'));
    if version.is_empty() || ["1.0", "0.3", "0.2"].into_iter().any(is_known) {
        return Ok(());
    }
    Err(Failure::new(VERSION, "this A2A version is not supported; 1.0 and 0.3 are"))
}

async fn run(request: Request<'_>, method: Method, id: &Value) -> Result<Answered, Failure> {
    let call = request.call;
    match method {
        Method::Send | Method::SendTask => send(&request, method).await.map(Answered::Json),
        Method::Stream => stream::send(&request, id).await.map(Answered::Stream),
        Method::Resubscribe => stream::resume(&request, id).await.map(Answered::Stream),
        Method::Get => {
            let view = request.task().await?;
            Ok(Answered::Json(request.dialect.task(&view, request.history())))
        }
        Method::Cancel => {
            let view = request.task().await?;
            let view = call.ask(CancelA2aTask(view.id)).await.map_err(|error| failure(&error))?;
            Ok(Answered::Json(request.dialect.task(&view, None)))
        }
        Method::PushSet => push_set(&request).await.map(Answered::Json),
        Method::PushGet => push_get(&request).await.map(Answered::Json),
        Method::PushList => push_list(&request).await.map(Answered::Json),
        Method::PushDelete => push_delete(&request).await.map(Answered::Json),
        Method::List => Err(Failure::new(UNSUPPORTED, "tasks are not listed; ask for a task by its id")),
        Method::ExtendedCard => Err(Failure::new(NO_EXTENDED_CARD, "there is no extended agent card")),
    }
}

impl Request<'_> {
    /// Messages of the history that the client wants.
    fn history(&self) -> Option<u64> {
        let of = self.params.get("configuration").and_then(|of| of.get("historyLength"));
        of.or_else(|| self.params.get("historyLength")).and_then(Value::as_u64)
    }

    /// The task that the parameters name. `tasks/{id}` is a name of early 1.0 clients.
    pub(super) async fn task(&self) -> Result<A2aTaskView, Failure> {
        let named = ["id", "taskId", "task_id", "name"].iter().find_map(|key| self.params.get(*key)?.as_str());
        self.find(named.unwrap_or_default()).await
    }

    /// The task of a push notification configuration, whose own id is `id`.
    async fn task_of_push(&self) -> Result<A2aTaskView, Failure> {
        match self.params.get("taskId").or_else(|| self.params.get("task_id")).and_then(Value::as_str) {
            Some(id) => self.find(id).await,
            None => self.task().await,
        }
    }

    async fn find(&self, id: &str) -> Result<A2aTaskView, Failure> {
        let id = id.strip_prefix("tasks/").unwrap_or(id);
        if id.is_empty() || id.len() > limits::A2A_ID_BYTES_MAX {
            return Err(Failure::params("`id` must name a task"));
        }
        rest::find(self.call, id).await.map_err(|error| match error.status() {
            StatusCode::NOT_FOUND => Failure::new(TASK_NOT_FOUND, "Task not found"),
            _ => failure(&error),
        })
    }

    /// The message of the request, counted at the rates. One for a task that exists is refused: each message is a task.
    pub(super) async fn incoming(&self, names_task: bool) -> Result<Incoming, Failure> {
        let incoming = message::read(&self.params).map_err(|error| failure(&error))?;
        self.call.charge(TASK_COST).map_err(|error| failure(&error))?;
        gate::take(self.call, self.policy).map_err(|error| failure(&error))?;
        if let Some(task) = incoming.task.as_deref().filter(|_| !names_task) {
            self.find(task).await?;
            let text = "the task takes no further message; send it with the context id of the task alone";
            return Err(failure(&Error::of(A2A_TASK_CLOSED, text)));
        }
        Ok(incoming)
    }

    /// The push notification configuration that comes with a message.
    pub(super) async fn push(&self) -> Result<Option<PushTarget>, Failure> {
        let configuration = self.params.get("configuration");
        let keys = ["pushNotificationConfig", "taskPushNotificationConfig"];
        let given =
            keys.iter().find_map(|key| configuration?.get(*key)).or_else(|| self.params.get("pushNotification"));
        match given.filter(|given| given.get("url").is_some_and(|url| *url != "")) {
            None => Ok(None),
            Some(given) => {
                let target = push::read(self.host, self.dialect, given).await;
                target.map(Some).map_err(|error| failure(&error))
            }
        }
    }
}

async fn send(request: &Request<'_>, method: Method) -> Result<Value, Failure> {
    let incoming = request.incoming(method == Method::SendTask).await?;
    let (push, opened) = (request.push().await?, (request.host, request.policy));
    let view = rest::submit(request.call, opened, incoming, push).await.map_err(|error| failure(&error))?;
    let task = request.dialect.task(&view, request.history());
    Ok(if request.dialect == Dialect::V1 { json!({ "task": task }) } else { task })
}

async fn push_set(request: &Request<'_>) -> Result<Value, Failure> {
    let view = request.task_of_push().await?;
    let whole = Value::Object(request.params.clone());
    let given = request.params.get("pushNotificationConfig").unwrap_or(&whole);
    let target = push::read(request.host, request.dialect, given).await.map_err(|error| failure(&error))?;
    let name = target.id.clone();
    let set = SetA2aPush { task: view.id, target };
    let view = request.call.ask(set).await.map_err(|error| failure(&error))?;
    shown(request.dialect, &view, &name)
}

fn shown(dialect: Dialect, view: &A2aTaskView, name: &str) -> Result<Value, Failure> {
    let target = view.task.push.iter().find(|target| *target.id == *name);
    let missing = || Failure::params("the task has no push notification configuration of this id");
    target.map(|target| push::shown(dialect, view, target)).ok_or_else(missing)
}

/// The id of a configuration in the parameters; the first one where there is none.
fn name_of(request: &Request<'_>, view: &A2aTaskView) -> String {
    let keys = ["pushNotificationConfigId", "push_notification_config_id"];
    let named = keys.iter().find_map(|key| request.params.get(*key)?.as_str());
    let own = request.params.get("id").and_then(Value::as_str).filter(|_| request.params.contains_key("taskId"));
    let first = view.task.push.first().map(|target| &*target.id);
    named.or(own).or(first).unwrap_or_default().to_owned()
}

async fn push_get(request: &Request<'_>) -> Result<Value, Failure> {
    let view = request.task_of_push().await?;
    shown(request.dialect, &view, &name_of(request, &view))
}

async fn push_list(request: &Request<'_>) -> Result<Value, Failure> {
    let view = request.task_of_push().await?;
    let all: Vec<Value> = view.task.push.iter().map(|target| push::shown(request.dialect, &view, target)).collect();
    Ok(if request.dialect == Dialect::V1 { json!({ "configs": all }) } else { json!(all) })
}

async fn push_delete(request: &Request<'_>) -> Result<Value, Failure> {
    let view = request.task_of_push().await?;
    let target = name_of(request, &view);
    shown(request.dialect, &view, &target)?;
    let deleted = request.call.ask(DeleteA2aPush { task: view.id, target }).await;
    deleted.map_err(|error| failure(&error))?;
    Ok(if request.dialect == Dialect::V1 { json!({}) } else { Value::Null })
}

/// An error of the API as one of the protocol.
pub(super) fn failure(error: &Error) -> Failure {
    let code = error.beside("code").and_then(Value::as_str).unwrap_or_default();
    let is = |other: agentsvc_components::ErrorCode| code == other.as_str();
    let number = match error.status().as_u16() {
        _ if is(A2A_TASK_ENDED) => NOT_CANCELABLE,
        _ if is(A2A_CONTENT_TYPE) => CONTENT_TYPE,
        _ if is(A2A_TASK_CLOSED) => UNSUPPORTED,
        _ if error.retry_after_secs().is_some() => Failure::BUSY,
        500.. => Failure::INTERNAL,
        _ => return Failure::params(error.message()).with(data(error)),
    };
    Failure::new(number, error.message()).with(data(error))
}

fn data(error: &Error) -> Value {
    json!({
        "status": error.status().as_u16(), "code": error.beside("code"), "field": error.beside("field"),
        "retry_after_secs": error.retry_after_secs(),
    })
}
