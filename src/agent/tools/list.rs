//! `agent_list`: the agents that live here, page by page.

use agentsvc_components::AgentId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::agent::{AgentFilter, AgentSummary, ListAgents};
use agentsvc_systems::kernel::page::Page;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// Agents of one page at most.
const PAGE_MAX: usize = 100;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "agent_list",
    "Lists all agents, oldest first: id, name, state and model. Long lists are paged.",
    |context, text| on_input(context, text, run),
)
.safe()
.anywhere()
.order(6);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Maximum number, 1 to 100. Default: 50.
    limit: Option<usize>,
    /// `next` of the previous page.
    after: Option<Uuid>,
}

async fn run(context: Context, Input { limit, after }: Input) -> Result<Ended, String> {
    let limit = limit.unwrap_or(50).clamp(1, PAGE_MAX);
    let list = ListAgents { filter: AgentFilter::default(), after: after.map(AgentId), limit };
    Ok(told(&context.ask(list).await?))
}

/// A page, for the model. Names carry the taint of those who gave them.
pub(crate) fn told(page: &Page<AgentSummary, AgentId>) -> Ended {
    let agents: Vec<Value> = page.items.iter().map(summary).collect();
    let text = json!({ "agents": agents, "next": page.next, "total": page.total }).to_string();
    Ended::Read { text, taint: page.items.iter().fold(Taint::NONE, |taint, agent| taint.with(agent.taint)) }
}

fn summary(agent: &AgentSummary) -> Value {
    let model = format!("{}/{}", agent.provider, agent.model);
    json!({ "id": agent.id, "name": agent.name, "state": agent.state.as_str(), "model": model })
}
