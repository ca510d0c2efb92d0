//! The graph of agents, the recent comms events, messages between agents and tasks (spec 3, Comms).

use agentsvc_components::kernel::scope::Scope;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::comms::limits::COMMS_EVENTS_LISTED_MAX;
use agentsvc_systems::comms::{Edge, GetTopology, ListCommsEvents, Node, Noted, SendBetween};
use agentsvc_systems::task::PostTask;
use agentsvc_systems::turn::NewMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::upload::attachments::{self, Attached, Attachment};

/// What a message costs the client's rate budget.
const COST: u32 = 10;
/// Events of one answer, unless the request says otherwise.
const EVENTS_DEFAULT: usize = 100;
/// What the address of an agent begins with.
const AGENT: &str = "agent:";

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/comms/topology", "Get the graph of agents", |call| Box::pin(topology(call)))
        .replies(&[Reply::json::<TopologyBody>(200, "agents and their relations")]),
    Route::get("/api/comms/events", "List recent comms events", |call| Box::pin(events(call)))
        .large()
        .query::<EventsQuery>()
        .replies(&[Reply::json::<EventsBody>(200, "the events, newest first")]),
    Route::post("/api/comms/send", "Send a message in the name of an agent", |call| Box::pin(send(call)))
        .scoped(Scope::Chat)
        .cost(COST)
        .body::<SendBody>()
        .replies(&[
            Reply::json::<Sent>(200, "the response of the receiving agent"),
            Reply::error(403, "the session belongs to another agent"),
            Reply::error(404, "one of the agents does not exist"),
            Reply::error(409, "the receiving agent is not running"),
        ]),
    Route::post("/api/comms/task", "Post a task for an agent", |call| Box::pin(task(call)))
        .runs_agents()
        .body::<TaskBody>()
        .replies(&[Reply::json::<Posted>(201, "the task"), Reply::error(429, "the task queue is full")]),
];

shape! {
    /// A comms event.
    pub(crate) struct CommsEventItem from noted: Noted {
        let (id, event) = noted;
        let text = |agent: Option<AgentId>| agent.map(|agent| agent.to_string()).unwrap_or_default();
    } {
        /// Order: later events have greater ids.
        id: Uuid = id.0,
        timestamp: Moment = Moment(event.at),
        /// `agent_message`, `agent_spawned`, `agent_terminated`, `task_posted`, `task_claimed` or `task_completed`.
        kind: &'static str = event.kind.as_str(),
        /// The agent that sent, came, went, posted or claimed; empty for a client.
        source_id: String = text(event.source),
        /// Its name at that time.
        source_name: Box<str> = event.source_name,
        /// The receiver, the assignee, or the agent that spawned or deleted the source; empty if there is none.
        target_id: String = text(event.target),
        /// Its name at that time.
        target_name: Box<str> = event.target_name,
        /// The beginning of the message, or the title of the task.
        detail: Box<str> = event.detail,
    }
}

shape! {
    /// An agent of the graph.
    struct TopologyNode from node: Node {} {
        id: Uuid = node.id.0,
        name: Box<str> = node.name,
        /// Lifecycle state, such as `Running`.
        state: &'static str = node.state.as_str(),
        /// Model as `provider/model`.
        model: Box<str> = node.model,
        /// Where messages to it go: `to` of `POST /api/comms/send`.
        address: String = format!("{AGENT}{}", node.id),
    }
}

shape! {
    /// A relation of two agents.
    struct TopologyEdge from edge: Edge {} {
        /// The parent or the sender.
        from: Uuid = edge.from.0,
        /// The child or the receiver.
        to: Uuid = edge.to.0,
        /// `parent_child`: the first spawned the second. `peer`: the first has sent messages to the second, as far as the kept
        /// events say.
        kind: &'static str = edge.kind.as_str(),
    }
}

/// The graph of agents.
#[derive(Serialize, JsonSchema)]
struct TopologyBody {
    /// Agents, at most 1000; those that exchange messages first.
    nodes: Vec<TopologyNode>,
    edges: Vec<TopologyEdge>,
    /// Number of live agents.
    total: usize,
    /// Whether some agents are not in `nodes`.
    truncated: bool,
}

async fn topology(call: Call) -> Result<Response, Error> {
    let found = call.ask(GetTopology).await?;
    reply::ok(&TopologyBody {
        truncated: found.nodes.len() < found.total,
        nodes: found.nodes.into_iter().map(TopologyNode::from).collect(),
        edges: found.edges.into_iter().map(TopologyEdge::from).collect(),
        total: found.total,
    })
}

/// Which events to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct EventsQuery {
    /// Maximum number of events. Default: 100. More than 500 counts as 500.
    limit: Option<usize>,
}

/// Comms events.
#[derive(Serialize, JsonSchema)]
struct EventsBody {
    /// Newest first.
    events: Vec<CommsEventItem>,
    /// Number of kept events.
    total: usize,
}

async fn events(call: Call) -> Result<Response, Error> {
    let EventsQuery { limit } = call.query()?;
    let limit = lists::limit(limit)?.unwrap_or(EVENTS_DEFAULT).min(COMMS_EVENTS_LISTED_MAX);
    let found = call.ask(ListCommsEvents { after: None, limit }).await?;
    let events = found.events.into_iter().map(CommsEventItem::from).collect();
    reply::ok(&EventsBody { events, total: found.total })
}

/// A message in the name of an agent. Use `from`, `to` and `content`, or `from_agent_id`, `to_agent_id` and `message`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SendBody {
    /// Sender: `agent:<id>` or the id.
    from: Option<String>,
    /// Receiver: `agent:<id>` or the id.
    to: Option<String>,
    /// Text; optional with attachments.
    content: Option<String>,
    /// The same as `from`.
    from_agent_id: Option<String>,
    /// The same as `to`.
    to_agent_id: Option<String>,
    /// The same as `content`.
    message: Option<String>,
    /// Session of the receiver. Default: its current session. An unknown id creates a session with that id.
    thread_id: Option<Uuid>,
    /// Uploads of the receiver, at most 32.
    attachments: Option<Vec<Attachment>>,
}

/// The response of the receiving agent.
#[derive(Serialize, JsonSchema)]
struct Sent {
    ok: bool,
    response: String,
    input_tokens: u64,
    output_tokens: u64,
    session_id: Uuid,
    turn_id: Uuid,
}

/// A field that has two names: the one that was used, and its value.
fn either(
    first: (&'static str, Option<String>),
    second: (&'static str, Option<String>),
) -> (&'static str, Option<String>) {
    if first.1.is_none() && second.1.is_some() { second } else { first }
}

/// The agent that an address means.
fn agent_at((field, value): (&'static str, Option<String>)) -> Result<AgentId, Error> {
    let value = value.ok_or_else(|| Error::bad_field(field, format!("{field}: missing")))?;
    let id = value.strip_prefix(AGENT).unwrap_or(&value);
    id.parse().map_err(|_| Error::bad_field(field, format!("{field} must be agent:<uuid>")))
}

async fn send(call: Call) -> Result<Response, Error> {
    let body: SendBody = call.json()?;
    let from = either(("from", body.from), ("from_agent_id", body.from_agent_id));
    let to = either(("to", body.to), ("to_agent_id", body.to_agent_id));
    let (field, text) = either(("content", body.content), ("message", body.message));
    let names = [("from", from.0), ("to", to.0), ("message", field)];
    let named = |error: Error| {
        let as_sent = names.iter().find(|(ours, _)| error.beside("field").is_some_and(|field| field == ours));
        match as_sent {
            Some((_, theirs)) => error.with("field", *theirs),
            None => error,
        }
    };
    let (from, to) = (agent_at(from)?, agent_at(to)?);
    let files = body.attachments.unwrap_or_default();
    if text.is_none() && files.is_empty() {
        return Err(Error::bad_field(field, format!("{field}: missing")));
    }
    let (permits, text) = (call.api.permits_of(&call.principal), text.unwrap_or_default());
    let attached = attachments::blocks(&call.api, &permits, to, text, &files).await.map_err(named)?;
    let Attached { blocks, taint, found, room } = attached;
    let message = NewMessage { blocks, taint, found, ..NewMessage::default() };
    let session = body.thread_id.map(SessionId);
    let asked = call.api.bridge.ask_holding(SendBetween { from, to, session, message }, Some(room)).await;
    let answer = asked.map_err(|refusal| named(refusal.into()))?;
    reply::ok(&Sent {
        ok: true,
        response: answer.response,
        input_tokens: answer.usage.input_tokens,
        output_tokens: answer.usage.output_tokens,
        session_id: answer.session.0,
        turn_id: answer.turn.0,
    })
}

/// A task to post.
#[derive(Deserialize, JsonSchema)]
struct TaskBody {
    /// Title: one line of at most 256 bytes.
    title: String,
    /// Description, at most 8 KiB.
    #[serde(default)]
    description: Option<String>,
    /// Assignee: an agent's name, id or `agent:<id>`. Omitted, null or empty means any agent.
    #[serde(default)]
    assigned_to: Option<String>,
}

/// The task was posted.
#[derive(Serialize, JsonSchema)]
struct Posted {
    ok: bool,
    task_id: Uuid,
}

async fn task(call: Call) -> Result<Response, Error> {
    let TaskBody { title, description, assigned_to } = call.json()?;
    let assignee = assigned_to.map(|to| to.strip_prefix(AGENT).map(ToOwned::to_owned).unwrap_or(to));
    let command = PostTask { title, description: description.unwrap_or_default(), assignee, ..PostTask::default() };
    let named = |error: Error| {
        let is_assignee = error.beside("field").is_some_and(|field| field == "assignee");
        if is_assignee { error.with("field", "assigned_to") } else { error }
    };
    let view = call.ask(command).await.map_err(named)?;
    reply::created(&Posted { ok: true, task_id: view.id.0 })
}
