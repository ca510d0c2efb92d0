//! `agent_kill`: removes an agent that this one spawned.

use agentsvc_systems::agent::KillDescendant;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::toolset::{Context, Ended, Need, Tool, input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "agent_kill",
    "Deletes an agent that you or one of your descendants created with agent_spawn, and its sessions.",
    run,
)
.needs(Need::Spawn)
.order(9);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The agent's name or id.
    agent: String,
}

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move {
        let Input { agent } = input(&text)?;
        let kill = KillDescendant { by: context.run.agent, agent: agent.clone(), turn: context.turn() };
        let (id, _) = context.ask(kill).await?;
        // As the call named it: a stored name would have to carry its taint.
        Ok(Ended::Text(format!("Killed {agent} ({id}).")))
    })
}
