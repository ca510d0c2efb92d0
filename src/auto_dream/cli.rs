//! `dream`: the consolidation of memory, shown, started and stopped.

use clap::Subcommand;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Shown, Table};
use crate::kernel::cli::{Error, Run};

/// Subcommands of `dream`.
#[derive(Debug, Subcommand)]
pub(crate) enum Dream {
    /// List the agents that consolidate their memory
    Status,
    /// Consolidate the memory of an agent now
    Run {
        /// The agent's name or id
        agent: String,
    },
    /// Stop the consolidation run of an agent
    Abort {
        /// The agent's name or id
        agent: String,
    },
}

impl Run for Dream {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let act = async |agent: &str, what: &str| {
            let id = client.agent_id(agent).await?;
            client.post(&format!("/api/auto-dream/agents/{id}/{what}"), None).await
        };
        let answer = match &self {
            Self::Status => context.block_on(client.get("/api/auto-dream/status", &[("limit", "1000")]))?,
            Self::Run { agent } => context.block_on(act(agent, "trigger"))?,
            Self::Abort { agent } => context.block_on(act(agent, "abort"))?,
        };
        context.print(&answer, |answer| match self {
            Self::Status => render(answer),
            Self::Run { agent } => format!("started a run for {agent}\n").into(),
            Self::Abort { agent } => format!("stopping the run of {agent}\n").into(),
        })
    }
}

fn render(answer: &Value) -> Shown {
    let columns = [
        ("AGENT", "/agent_name"),
        ("ENABLED", "/auto_dream_enabled"),
        ("SESSIONS", "/sessions_since_last"),
        ("NEEDED", "/effective_min_sessions"),
        ("RUN", "/progress/state"),
        ("LAST", "/last_run/outcome"),
    ];
    let shown = Shown::from(Table::of("agents", output::items(answer, "agents"), &columns));
    if answer["enabled"] == false {
        let hint = "Auto-dream is off; turn it on with `agentsvc config set auto_dream.enabled true`.\n";
        return shown.and(hint.to_owned());
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn a_row_per_agent_and_whether_it_is_on() {
        let agent = json!({ "agent_name": "scout", "auto_dream_enabled": true, "sessions_since_last": 3,
            "effective_min_sessions": 5, "progress": null, "last_run": { "outcome": "completed" } });
        let text = render(&json!({ "enabled": false, "agents": [agent] })).text;
        assert!(text.contains("scout") && text.contains("completed") && text.contains("is off"), "{text}");
        assert!(render(&json!({ "enabled": true, "agents": [] })).text.is_empty());
    }
}
