//! The tool, skill and MCP server lists of an agent, read and replaced (spec 1, Agents).

use agentsvc_components::AgentId;
use agentsvc_systems::agent::{AgentPatch, AgentView, GetAgent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::change::{apply, words};
use crate::agent::shape::Words;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/agents/{id}/tools", "Get the tool lists of an agent", |call| Box::pin(tools(call)))
        .replies(&[Reply::json::<Tools<'_>>(200, "the granted, allowed and blocked tools")]),
    Route::put("/api/agents/{id}/tools", "Replace the tool lists of an agent", |call| Box::pin(set_tools(call)))
        .body::<ToolsBody>()
        .replies(&[Reply::json::<Tools<'_>>(200, "the updated lists")]),
    Route::get("/api/agents/{id}/skills", "Get the skills of an agent", |call| Box::pin(skills(call)))
        .replies(&[Reply::json::<Skills<'_>>(200, "the skills")]),
    Route::put("/api/agents/{id}/skills", "Replace the skills of an agent", |call| Box::pin(set_skills(call)))
        .body::<SkillsBody>()
        .replies(&[
            Reply::json::<Skills<'_>>(200, "the updated list"),
            Reply::error(409, "the agent's mode is Stable"),
        ]),
    Route::get("/api/agents/{id}/mcp_servers", "Get the MCP servers of an agent", |call| Box::pin(servers(call)))
        .replies(&[Reply::json::<Servers<'_>>(200, "the server names")]),
    Route::put("/api/agents/{id}/mcp_servers", "Set the MCP servers of an agent", |call| Box::pin(set_servers(call)))
        .reaching(Reach::All)
        .body::<ServersBody>()
        .replies(&[Reply::json::<Servers<'_>>(200, "the updated list")]),
];

/// The tool lists.
#[derive(Serialize, JsonSchema)]
struct Tools<'a> {
    /// Granted tools, by name or glob; `*` grants all.
    tools: Words<'a>,
    /// If not empty, only these tools.
    tool_allowlist: Words<'a>,
    /// Blocked tools.
    tool_blocklist: Words<'a>,
}

impl<'a> Tools<'a> {
    fn of(view: &'a AgentView) -> Self {
        let manifest = &view.manifest.manifest;
        Self {
            tools: &manifest.capabilities.tools,
            tool_allowlist: &manifest.tool_allowlist,
            tool_blocklist: &manifest.tool_blocklist,
        }
    }
}

async fn tools(call: Call) -> Result<Response, Error> {
    let view = call.ask(GetAgent(call.id("id")?)).await?;
    reply::ok(&Tools::of(&view))
}

/// The new tool lists: an object, or the bare array of granted tools. Omitted lists are unchanged.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolsBody {
    /// Tools that the agent has: names, or globs such as `file_*`.
    tools: Option<Vec<String>>,
    /// Only these of its tools; empty for all of them.
    tool_allowlist: Option<Vec<String>>,
    /// Tools that the agent never gets.
    tool_blocklist: Option<Vec<String>>,
}

async fn set_tools(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let body = if call.is_array() {
        ToolsBody { tools: Some(call.json_array()?), ..ToolsBody::default() }
    } else {
        call.json()?
    };
    if body.tools.is_none() && body.tool_allowlist.is_none() && body.tool_blocklist.is_none() {
        return Err(Error::bad_field("tools", "tools: missing; expected a list of tool names"));
    }
    let patch = AgentPatch {
        tools: words("tools", body.tools)?,
        tool_allowlist: words("tool_allowlist", body.tool_allowlist)?,
        tool_blocklist: words("tool_blocklist", body.tool_blocklist)?,
        ..AgentPatch::default()
    };
    reply::ok(&Tools::of(&apply(&call, agent, patch).await?))
}

/// The skill list.
#[derive(Serialize, JsonSchema)]
struct Skills<'a> {
    skills: Words<'a>,
}

async fn skills(call: Call) -> Result<Response, Error> {
    let view = call.ask(GetAgent(call.id("id")?)).await?;
    reply::ok(&Skills { skills: &view.manifest.manifest.skills })
}

/// The new skill list: an object, or the bare array.
#[derive(Deserialize, JsonSchema)]
struct SkillsBody {
    /// Skills that the agent may use; empty for all.
    skills: Vec<String>,
}

async fn set_skills(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let skills = if call.is_array() { call.json_array()? } else { call.json::<SkillsBody>()?.skills };
    let patch = AgentPatch { skills: words("skills", Some(skills))?, ..AgentPatch::default() };
    let view = apply(&call, agent, patch).await?;
    reply::ok(&Skills { skills: &view.manifest.manifest.skills })
}

/// The attached MCP servers.
#[derive(Serialize, JsonSchema)]
struct Servers<'a> {
    mcp_servers: Words<'a>,
}

async fn servers(call: Call) -> Result<Response, Error> {
    let view = call.ask(GetAgent(call.id("id")?)).await?;
    reply::ok(&Servers { mcp_servers: &view.manifest.manifest.mcp_servers })
}

/// The new MCP servers: an object, or the bare array.
#[derive(Deserialize, JsonSchema)]
struct ServersBody {
    /// MCP servers whose tools the agent may use; `*` for all.
    mcp_servers: Vec<String>,
}

async fn set_servers(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let names = if call.is_array() { call.json_array()? } else { call.json::<ServersBody>()?.mcp_servers };
    let patch = AgentPatch { mcp_servers: words("mcp_servers", Some(names))?, ..AgentPatch::default() };
    let view = apply(&call, agent, patch).await?;
    reply::ok(&Servers { mcp_servers: &view.manifest.manifest.mcp_servers })
}
