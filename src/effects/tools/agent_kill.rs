//! `agent_kill`: removes an agent that this one spawned.

use agentsvc_systems::agent::KillDescendant;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Ended, Need, Repeat, TIME_MAX, Tool, input, input_schema};

/// The table row.
pub(super) const TOOL: Tool = Tool {
    name: "agent_kill",
    description: "Removes an agent that you created with agent_spawn, or that one of those created. Its sessions go too.",
    schema: input_schema::<Input>,
    repeat: Repeat::Never,
    needs: Need::Spawn,
    time_max: TIME_MAX,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The agent's name or id.
    agent: String,
}

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move {
        let Input { agent } = input(&text)?;
        let (id, name) =
            context.ask(KillDescendant { by: context.run.agent, agent, turn: Some(context.run.attempt.turn) }).await?;
        Ok(Ended::Text(format!("Killed {name} ({id}).")))
    })
}
