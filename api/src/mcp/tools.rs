//! The tools of this daemon as a client may list and call them.
//!
//! Without the key: those that the operator made public. With it: also those that `[tool_invoke]` lets clients call, as the
//! routes of tools do, and each agent as a tool. The tools that act for an agent take the agent that the request names.

use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_components::manifest::Manifest;
use agentsvc_systems::agent::GetAgent;
use serde_json::{Map, Value, json};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::mcp::message::{Failure, Params, shown};
use crate::mcp::methods::fields;
use crate::mcp::public_tools::PublicTools;
use crate::mcp::{agents, anonymous};
use crate::tool::direct;
use crate::tool::toolbox::{Invoked, Scope, ToolDetail, Toolbox};

/// Names the agent on whose behalf tools are called; the first that is there counts.
const AGENT_HEADERS: [&str; 2] = ["x-agentsvc-agent-id", "x-librefang-agent-id"];

/// Who asks, and what it is offered.
pub(crate) struct Caller {
    toolbox: Arc<dyn Toolbox>,
    public: Arc<dyn PublicTools>,
    is_keyed: bool,
    agent: Option<(AgentId, Arc<Manifest>)>,
}

impl Caller {
    /// The caller of a request.
    ///
    /// # Errors
    /// 400 for a malformed agent id, 401 for one without the key, 404 for one that nobody has; 503 while the daemon is loading.
    pub(crate) async fn of(call: &Call) -> Result<Self, Error> {
        let (toolbox, public) = (call.api.service::<dyn Toolbox>()?, call.api.service::<dyn PublicTools>()?);
        let named = AGENT_HEADERS.iter().find_map(|name| Some((*name, call.headers().get(*name)?)));
        let agent = match named {
            None => None,
            Some(_) if !call.is_keyed => return Err(Error::unauthorized()),
            Some((header, value)) => {
                let id = value.to_str().ok().and_then(|text| text.trim().parse::<AgentId>().ok());
                let id = id.ok_or_else(|| Error::bad_field(header, format!("{header} must be the id of an agent")))?;
                Some((id, Arc::new(call.ask(GetAgent(id)).await?.manifest.manifest.clone())))
            }
        };
        Ok(Self { toolbox, public, is_keyed: call.is_keyed, agent })
    }

    /// May it send messages to agents? Not those who act for one: an agent writes to others by a tool of its own.
    const fn offers_agents(&self) -> bool {
        self.is_keyed && self.agent.is_none()
    }

    /// May it call the tool? One that it may not call does not exist for it.
    fn offers(&self, tool: &ToolDetail) -> bool {
        let may_call = self.public.is_public(&tool.name) || self.is_keyed && self.toolbox.permit(&tool.name).is_ok();
        may_call
            && match (&self.agent, tool.scope) {
                (_, Scope::Turn) | (None, Scope::Agent) => false,
                (None, Scope::Anywhere) => true,
                (Some((_, manifest)), _) => self.toolbox.grants(manifest, &tool.name),
            }
    }
}

/// `tools/list`: the tools and the first agents, then the other agents.
pub(super) async fn list(call: &Call, caller: &Caller, params: &Params) -> Result<Map<String, Value>, Failure> {
    let after = match params.get("cursor") {
        None | Some(Value::Null) => None,
        Some(cursor) => {
            let after = cursor.as_str().and_then(|cursor| cursor.parse::<AgentId>().ok());
            Some(after.filter(|_| caller.offers_agents()).ok_or_else(|| Failure::params("unknown `cursor`"))?)
        }
    };
    let mut listed: Vec<Value> = Vec::new();
    if after.is_none() {
        let names = caller.toolbox.names();
        let tools = names.iter().filter_map(|name| caller.toolbox.tool(name)).filter(|tool| caller.offers(tool));
        listed.extend(tools.map(|tool| described(&tool)));
    }
    let mut next = None;
    if caller.offers_agents() {
        let agents;
        (agents, next) = agents::list(call, after).await.map_err(|error| failure(&error))?;
        listed.extend(agents);
    }
    let mut result = fields(json!({ "tools": listed }));
    if let Some(next) = next {
        result.insert("nextCursor".to_owned(), json!(next.to_string()));
    }
    Ok(result)
}

fn described(tool: &ToolDetail) -> Value {
    // It was built from JSON.
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_else(|_| json!({ "type": "object" }));
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": schema,
        "annotations": { "idempotentHint": tool.is_repeatable },
    })
}

/// `tools/call`: what the tool gave. What a model can mend, such as a wrong input, is a result too.
pub(super) async fn call(call: &Call, caller: &Caller, mut params: Params) -> Result<Map<String, Value>, Failure> {
    let Some(Value::String(name)) = params.remove("name") else {
        return Err(Failure::params("`name` must be a string"));
    };
    let input = match params.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(input)) => input,
        Some(_) => return Err(Failure::params("`arguments` must be an object")),
    };
    let unknown = || Failure::params(format!("unknown tool: {}", shown(&name)));
    let Some(tool) = caller.toolbox.tool(&name).filter(|tool| caller.offers(tool)) else {
        let agent = if caller.offers_agents() { agents::find(call, &name).await } else { Ok(None) };
        let agent = agent.map_err(|error| failure(&error))?.ok_or_else(unknown)?;
        call.charge(direct::COST).map_err(|error| failure(&error))?;
        return agents::send(call, agent, &input).await.or_else(told);
    };
    call.charge(direct::COST).map_err(|error| failure(&error))?;
    let agent = caller.agent.as_ref().map(|(id, _)| *id);
    let (api, input) = (&call.api, Value::Object(input));
    let called = if caller.is_keyed {
        direct::call(api, &*caller.toolbox, &tool, agent, input).await
    } else {
        let note = anonymous::note(api, call.peer, &tool.name);
        direct::call_for_anyone(api, &*caller.toolbox, &tool, input, note).await
    };
    match called {
        Ok(Invoked { content, is_error, cut_bytes: 0 }) => Ok(result(&content, is_error)),
        Ok(Invoked { content, is_error, cut_bytes }) => {
            Ok(result(&format!("{content}\n[{cut_bytes} more bytes were cut off]"), is_error))
        }
        Err(error) => told(error),
    }
}

/// An error as the model sees it, where it is one of its own.
fn told(error: Error) -> Result<Map<String, Value>, Failure> {
    let is_models = error.status().is_client_error() && error.retry_after_secs().is_none();
    if is_models { Ok(result(error.message(), true)) } else { Err(failure(&error)) }
}

fn result(text: &str, is_error: bool) -> Map<String, Value> {
    fields(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
}

/// An error that is none of the model's.
fn failure(error: &Error) -> Failure {
    let data = json!({ "status": error.status().as_u16(), "retry_after_secs": error.retry_after_secs() });
    let code = if error.retry_after_secs().is_some() { Failure::BUSY } else { Failure::INTERNAL };
    Failure::new(code, error.message()).with(data)
}
