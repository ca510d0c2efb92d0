//! `agent delete`: deletes agents.

use clap::Args;

use crate::kernel::cli::Error;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;

/// Options of `agent delete`.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Names or ids
    #[arg(required = true)]
    agents: Vec<String>,
}

impl Delete {
    /// Deletes the agents in turn; the first that cannot be deleted ends it.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        context.block_on(async {
            for agent in &self.agents {
                let id = client.agent_id(agent).await?;
                let answer = client.delete(&format!("/api/agents/{id}")).await?;
                if context.json() {
                    output::line(&answer.to_string())?;
                } else {
                    output::line(&format!("deleted {}", output::clean(agent)))?;
                }
            }
            Ok(())
        })
    }
}
