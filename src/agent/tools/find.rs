//! `agent_find`: agents by name or tag.

use agentsvc_components::AgentId;
use agentsvc_systems::agent::{AgentFilter, ListAgents};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::agent::tools::list::told;
use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "agent_find",
    "Finds agents by part of their name (case-insensitive), by tag, or both. A page can be empty and still have a \
     `next`; continue with `after`.",
    |context, text| on_input(context, text, run),
)
.safe()
.anywhere()
.order(7);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Part of the name.
    name: Option<String>,
    /// Exact tag.
    tag: Option<String>,
    /// `next` of the previous page.
    after: Option<Uuid>,
}

async fn run(context: Context, Input { name, tag, after }: Input) -> Result<Ended, String> {
    if name.is_none() && tag.is_none() {
        return Err("Give a `name` or a `tag`; agent_list lists all agents.".to_owned());
    }
    let filter = AgentFilter { matching: name, tag: tag.map(Box::from), ..AgentFilter::default() };
    let list = ListAgents { filter, after: after.map(AgentId), limit: 50 };
    Ok(told(&context.ask(list).await?))
}
