//! Tools: what there is, and one called without an agent's turn (spec 2, System and Direct tool invocation).

use crate::tool::error_codes;
use std::borrow::Cow;
use std::sync::Arc;

use agentsvc_components::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::tool::direct;
use crate::tool::toolbox::{Denied, Invoked, Scope, Toolbox};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/tools", "List the tools", |call| Box::pin(list(call)))
        .reaching(Reach::Shared)
        .large()
        .replies(&[Reply::json::<ToolNames>(200, "the tools")]),
    Route::get("/api/tools/{name}", "Get a tool", |call| Box::pin(show(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<ToolShape>(200, "the tool with its input schema")]),
    Route::post("/api/tools/{name}/invoke", "Call a tool directly", |call| Box::pin(invoke(call)))
        .cost(direct::COST)
        .body::<Map<String, Value>>()
        .query::<InvokeQuery>()
        .replies(&[
            Reply::json::<ToolResult>(200, "the result of the tool"),
            Reply::error(403, "not enabled, not in the allowlist, not granted to the agent, or not approved"),
            Reply::error(409, "the agent is not running"),
        ]),
];

fn toolbox(call: &Call) -> Result<Arc<dyn Toolbox>, Error> {
    call.api.service::<dyn Toolbox>()
}

/// The names of all tools, and what each does.
#[derive(Serialize, JsonSchema)]
struct ToolNames {
    tools: Vec<Cow<'static, str>>,
    /// The same tools with what a person needs to choose among them.
    details: Vec<ToolSummary>,
    total: usize,
}

/// One tool of the list.
#[derive(Serialize, JsonSchema)]
struct ToolSummary {
    name: Cow<'static, str>,
    /// Description given to models.
    description: Cow<'static, str>,
    /// Whether the configuration requires approval of each call.
    requires_approval: bool,
}

async fn list(call: Call) -> Result<Response, Error> {
    let toolbox = toolbox(&call)?;
    let tools = toolbox.names();
    let details = tools.iter().filter_map(|name| toolbox.tool(name)).map(|tool| ToolSummary {
        name: tool.name,
        description: tool.description,
        requires_approval: tool.requires_approval,
    });
    reply::ok(&ToolNames { total: tools.len(), details: details.collect(), tools })
}

/// One tool.
#[derive(Serialize, JsonSchema)]
struct ToolShape {
    name: Cow<'static, str>,
    /// Description given to models.
    description: Cow<'static, str>,
    /// The JSON schema of its input.
    #[schemars(with = "Map<String, Value>")]
    input_schema: Arc<RawValue>,
    /// Whether the configuration requires approval of each call. A manifest can require it as well.
    requires_approval: bool,
    /// After a crash: `safe` runs again; `never` is reported as unknown.
    repeat: &'static str,
    /// Manifest keys that grant it.
    grants: Vec<String>,
    /// Direct calls.
    invoke: InvokeShape,
}

/// Direct calls of a tool.
#[derive(Serialize, JsonSchema)]
struct InvokeShape {
    /// Whether the configuration allows it.
    allowed: bool,
    /// Scope: `anywhere`; `agent`, which requires `agent_id`; or `turn`, which clients cannot call.
    scope: Scope,
}

fn unknown(name: &str) -> Error {
    let shown: String = name.chars().take(64).collect();
    Error::of(error_codes::TOOL_NOT_FOUND, format!("tool not found: {shown}"))
}

async fn show(call: Call) -> Result<Response, Error> {
    let (toolbox, name) = (toolbox(&call)?, call.param("name")?);
    let tool = toolbox.tool(&name).ok_or_else(|| unknown(&name))?;
    let needs = tool.needs.map(|key| format!("capabilities.{key}"));
    reply::ok(&ToolShape {
        invoke: InvokeShape { allowed: toolbox.permit(&tool.name).is_ok(), scope: tool.scope },
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema,
        requires_approval: tool.requires_approval,
        repeat: if tool.is_repeatable { "safe" } else { "never" },
        grants: std::iter::once("capabilities.tools".to_owned()).chain(needs).collect(),
    })
}

/// Options of a direct call.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct InvokeQuery {
    /// Agent whose workspace, memory and grants the call uses. Required for most tools and for all that need approval.
    agent_id: Option<String>,
}

/// Result of a direct call.
#[derive(Serialize, JsonSchema)]
struct ToolResult {
    tool: Cow<'static, str>,
    /// Result or error, as given to a model.
    content: String,
    /// Whether the tool failed.
    is_error: bool,
    /// Number of bytes truncated from the content, which has at most 1 MiB.
    cut_bytes: usize,
}

/// The rules are checked in the order of the specification, so that a daemon that does not allow direct calls says
/// nothing else.
async fn invoke(call: Call) -> Result<Response, Error> {
    let (toolbox, name) = (toolbox(&call)?, call.param("name")?.into_owned());
    toolbox.permit(&name).map_err(|denied| refuse(denied, &name))?;
    let tool = toolbox.tool(&name).ok_or_else(|| unknown(&name))?;
    let query: InvokeQuery = call.query()?;
    let agent = query.agent_id.as_deref().map(str::parse::<AgentId>).transpose();
    let agent = agent.map_err(|_| Error::bad_field("agent_id", "query parameter 'agent_id' is not a valid UUID"))?;
    let input = Value::Object(call.json_or_default::<Map<String, Value>>()?);
    let Invoked { content, is_error, cut_bytes } = direct::call(&call.api, &*toolbox, &tool, agent, input).await?;
    reply::ok(&ToolResult { tool: tool.name, content, is_error, cut_bytes })
}

fn refuse(denied: Denied, name: &str) -> Error {
    match denied {
        Denied::Disabled => {
            let text = "direct tool calls are disabled; set `enabled = true` in [tool_invoke] of config.toml";
            Error::of(error_codes::TOOL_INVOKE_DISABLED, text)
        }
        Denied::NotListed => {
            let shown: String = name.chars().take(64).collect();
            let text = format!("the tool {shown:?} is not in `allowlist` of [tool_invoke] in config.toml");
            Error::of(error_codes::TOOL_NOT_ALLOWED, text)
        }
    }
}
