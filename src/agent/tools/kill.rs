//! `agent_kill`: removes an agent that this one spawned.

use agentsvc_systems::agent::KillDescendant;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "agent_kill",
    "Deletes an agent that you or one of your descendants created with agent_spawn, and its sessions.",
    |context, text| on_input(context, text, run),
)
.needs(Need::Spawn)
.order(9);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The agent's name or id.
    agent: String,
}

async fn run(context: Context, Input { agent }: Input) -> Result<Ended, String> {
    let kill = KillDescendant { by: context.run.agent, agent: agent.clone(), turn: context.turn() };
    let (id, _) = context.ask(kill).await?;
    // As the call named it: a stored name would have to carry its taint.
    Ok(Ended::Text(format!("Killed {agent} ({id}).")))
}
