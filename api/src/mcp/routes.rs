//! Streamable HTTP: one message a request, answered as JSON or as server-sent events. There are no sessions, and the server
//! sends nothing by itself, so that `GET` and `DELETE` are 405.

use agentsvc_systems::mcp::limits;
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::json;
use crate::http::reply::{self, Body, Response};
use crate::http::route::{Reply, Route};
use crate::mcp::error_codes;
use crate::mcp::message::{Failure, Message, answer};
use crate::mcp::methods;
use crate::mcp::tools::Caller;
use crate::mcp::version::Version;

/// `content-type` of server-sent events.
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// What one message costs the client's rate budget.
const COST: u32 = 2;

const REPLIES: &[Reply] = &[
    Reply::json::<RpcAnswer>(200, "the answer, as JSON, or as one server-sent event when `Accept` takes no JSON"),
    Reply::empty(202, "a notification was taken"),
    Reply::error(400, "no JSON-RPC message, or an unknown `MCP-Protocol-Version`"),
    Reply::error(403, "the `Origin` is not allowed"),
    Reply::error(406, "`Accept` takes neither JSON nor server-sent events"),
];

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/mcp", "Send a message to the MCP server", |call| Box::pin(post(call)))
        .optional_key()
        .cost(COST)
        .without_room()
        .body::<RpcMessage>()
        .replies(REPLIES),
    Route::post("/api/mcp", "Send a message to the MCP server", |call| Box::pin(post(call)))
        .cost(COST)
        .without_room()
        .body::<RpcMessage>()
        .replies(REPLIES),
];

/// One JSON-RPC 2.0 message. Without `id` it is a notification.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; messages are told apart by what they hold")]
struct RpcMessage {
    /// `2.0`
    jsonrpc: String,
    /// Text or a whole number, repeated in the answer.
    id: Option<Value>,
    /// `initialize`, `server/discover`, `ping`, `tools/list`, `tools/call` or a notification.
    method: Option<String>,
    /// Parameters of the method.
    params: Option<Map<String, Value>>,
}

/// The answer to one request: `result` or `error`.
#[derive(Serialize, JsonSchema)]
struct RpcAnswer {
    /// `2.0`
    jsonrpc: String,
    /// That of the request.
    id: Value,
    result: Option<Map<String, Value>>,
    error: Option<RpcError>,
}

/// Why there is no result.
#[derive(Serialize, JsonSchema)]
struct RpcError {
    /// A code of JSON-RPC or MCP, such as -32601 for an unknown method.
    code: i32,
    message: String,
    /// `status` and `retry_after_secs` as the other routes have them.
    data: Option<Map<String, Value>>,
}

/// How a client takes its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Events,
}

async fn post(call: Call) -> Result<Response, Error> {
    let policy = call.api.access.policy();
    if !policy.is_open() {
        // With a key, too: the protocol has its servers guard themselves against pages that resolve a name to this machine.
        policy.check_page_origin(&call.parts)?;
    }
    json::check_content_type(call.headers())?;
    let (form, version) = (form(&call)?, Version::of(call.headers())?);
    let body: Value = json::read(&call.body, false, None)
        .map_err(|error| Error::of(error_codes::MCP_PARSE, error.message().to_owned()))?;
    let is_batch = body.is_array();
    let messages = messages(body, version)?;
    if is_batch {
        call.charge(COST.saturating_mul(u32::try_from(messages.len()).unwrap_or(u32::MAX)))?;
    }
    let mut caller = None;
    // As text: a page of tools takes many times its bytes as values.
    let mut answers = Vec::new();
    let mut bytes = 0;
    for message in messages {
        let answered = match message {
            Message::Notice => continue,
            Message::Malformed => answer(&Value::Null, Err(Failure::malformed())),
            Message::Request { id, .. } if bytes > limits::MCP_BATCH_ANSWER_BYTES_MAX => answer(
                &id,
                Err(Failure::new(Failure::BUSY, "the answers of the batch are too large; send fewer requests")),
            ),
            Message::Request { id, method, params } => {
                let caller = match caller.take() {
                    Some(known) => caller.insert(known),
                    None => caller.insert(Caller::of(&call).await?),
                };
                let outcome = match params {
                    Ok(params) => methods::run(&call, caller, version, &method, params).await,
                    Err(failure) => Err(failure),
                };
                answer(&id, outcome)
            }
        };
        let answered = answered.to_string();
        bytes += answered.len();
        answers.push(answered);
    }
    Ok(match (is_batch, &*answers) {
        (_, []) => accepted(),
        (false, [only]) => rendered(form, only),
        (_, all) => rendered(form, &format!("[{}]", all.join(","))),
    })
}

/// The messages of a body, at least one.
fn messages(body: Value, version: Version) -> Result<Vec<Message>, Error> {
    let refused = |text: String| Err(Error::of(error_codes::MCP_MESSAGE, text));
    let Value::Array(batch) = body else {
        return match Message::of(body) {
            Message::Malformed => refused("the body is not a JSON-RPC 2.0 message".to_owned()),
            message => Ok(vec![message]),
        };
    };
    let most = limits::MCP_BATCH_MAX;
    match batch.len() {
        _ if !version.has_batches() => refused(format!("MCP {} has no batches", version.as_str())),
        0 => refused("the batch is empty".to_owned()),
        count if count > most => refused(format!("the batch has more than {most} messages")),
        _ => Ok(batch.into_iter().map(Message::of).collect()),
    }
}

/// JSON where the client takes it.
fn form(call: &Call) -> Result<Form, Error> {
    let mut accepted = call.headers().get_all(ACCEPT).iter().peekable();
    if accepted.peek().is_none() {
        return Ok(Form::Json);
    }
    let types: Vec<String> = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or("").trim().to_ascii_lowercase())
        .collect();
    let takes = |names: [&str; 3]| types.iter().any(|range| names.contains(&&**range));
    if takes(["application/json", "application/*", "*/*"]) {
        return Ok(Form::Json);
    }
    if takes(["text/event-stream", "text/*", "*/*"]) {
        return Ok(Form::Events);
    }
    Err(Error::of(error_codes::MCP_ACCEPT, "Accept must take application/json or text/event-stream"))
}

fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

fn rendered(form: Form, answer: &str) -> Response {
    match form {
        Form::Json => reply::bytes(StatusCode::OK, reply::JSON, answer.to_owned()),
        Form::Events => reply::bytes(StatusCode::OK, EVENTS, format!("event: message\ndata: {answer}\n\n")),
    }
}
