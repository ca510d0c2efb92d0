//! The agents of this daemon as tools: a call is a message, its result the answer (facts 4.3). Offered to those with the key
//! who do not act for an agent themselves.

use agentsvc_components::turn::{TurnEnd, TurnRequest};
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::agent::{AgentFilter, AgentSummary, FindAgent, GetAgent, ListAgents};
use agentsvc_systems::mcp::limits;
use agentsvc_systems::turn::{NewMessage, SendMessage};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::upload::attachments;

/// What the names of these tools begin with, and another spelling that calls may use.
const PREFIXES: [&str; 2] = ["agentsvc_agent_", "librefang_agent_"];

/// Bytes of an agent's name up to which its tool has it. Names of tools have at most 64.
const NAME_BYTES_MAX: usize = 48;

/// One page of these tools, behind `after`, and the cursor of the next.
pub(super) async fn list(call: &Call, after: Option<AgentId>) -> Result<(Vec<Value>, Option<AgentId>), Error> {
    let (filter, limit) = (AgentFilter::default(), limits::MCP_AGENTS_PAGE_MAX);
    let page = call.ask(ListAgents { filter, after, limit }).await?;
    Ok((page.items.iter().map(described).collect(), page.next))
}

fn described(agent: &AgentSummary) -> Value {
    json!({
        "name": format!("{}{}", PREFIXES[0], suffix(agent)),
        "description": format!("Sends a message to the agent {:?} and gives its answer.", agent.name),
        "inputSchema": {
            "type": "object",
            "properties": {
                "message": { "type": "string", "description": "The message." },
                "session_id": {
                    "type": "string",
                    "format": "uuid",
                    "description": "The session to continue; an unknown id begins one. Default: the agent's current session.",
                },
            },
            "required": ["message"],
            "additionalProperties": false,
        },
        "annotations": { "idempotentHint": false },
    })
}

/// The agent's name where all clients take it in the name of a tool, else its id.
fn suffix(agent: &AgentSummary) -> String {
    let name = &*agent.name;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let fits = name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain) && Uuid::try_parse(name).is_err();
    if fits { name.to_owned() } else { agent.id.to_string() }
}

/// The agent that a tool of this name is; `None` where there is none.
pub(super) async fn find(call: &Call, tool: &str) -> Result<Option<AgentId>, Error> {
    let Some(suffix) = PREFIXES.iter().find_map(|prefix| tool.strip_prefix(prefix)) else { return Ok(None) };
    let found = match suffix.parse::<AgentId>() {
        Ok(id) => call.ask(GetAgent(id)).await,
        Err(_) => call.ask(FindAgent(suffix.into())).await,
    };
    match found {
        Ok(agent) => Ok(Some(agent.id)),
        Err(error) if error.status().as_u16() == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends the message of `input` and waits for the answer. When the client goes, the turn goes on.
///
/// # Errors
/// As those of `POST /api/agents/{id}/message`.
pub(super) async fn send(call: &Call, agent: AgentId, input: &Map<String, Value>) -> Result<Map<String, Value>, Error> {
    let wrong = |field: &str, text: &str| Error::bad_field(field, format!("`{field}` must be {text}"));
    let message = input.get("message").and_then(Value::as_str).ok_or_else(|| wrong("message", "a string"))?;
    let session = match input.get("session_id") {
        None | Some(Value::Null) => None,
        Some(id) => {
            let id = id.as_str().and_then(|id| Uuid::try_parse(id).ok());
            Some(SessionId(id.ok_or_else(|| wrong("session_id", "a UUID"))?))
        }
    };
    let permits = call.api.permits_of(&call.principal);
    let blocks = attachments::blocks(&call.api, &permits, agent, message.to_owned(), &[]).await?.blocks;
    let request =
        call.trace.map(|trace| TurnRequest { trace: Some(trace.to_string().into()), ..TurnRequest::default() });
    let message = NewMessage { blocks, request: request.map(Box::new), ..NewMessage::default() };
    let answer = call.ask(SendMessage { agent, session, message }).await?;
    let text = |text: &str| json!({ "type": "text", "text": text });
    let content: Vec<Value> =
        std::iter::once(text(&answer.response)).chain(answer.notices.iter().map(|notice| text(notice))).collect();
    let is_error = matches!(answer.end, TurnEnd::Stopped | TurnEnd::Interrupted);
    let meta = json!({ "agentsvc/session_id": answer.session.0, "agentsvc/turn_id": answer.turn.0 });
    Ok(super::methods::fields(json!({ "content": content, "isError": is_error, "_meta": meta })))
}
