//! `agent list`: the live agents.

use clap::Args;
use serde_json::Value;

use crate::kernel::cli::Error;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::Table;

/// Options of `agent list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Maximum number of agents
    #[arg(long, value_name = "COUNT")]
    limit: Option<u32>,
}

impl List {
    /// Prints one row per agent.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let limit = self.limit.map(|limit| limit.to_string());
        let query: Vec<(&str, &str)> = limit.iter().map(|limit| ("limit", limit.as_str())).collect();
        let agents = context.block_on(client.get("/api/agents", &query))?;
        context.print(&agents, render)
    }
}

fn render(agents: &Value) -> String {
    let columns = [
        ("NAME", "/name"),
        ("ID", "/id"),
        ("STATE", "/state"),
        ("PROVIDER", "/model_provider"),
        ("MODEL", "/model_name"),
        ("CREATED", "/created_at"),
    ];
    let table = Table::of(agents.as_array().into_iter().flatten(), &columns);
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn a_row_per_agent() {
        let text =
            render(&json!([{"id": "i", "name": "n", "state": "Running", "model_provider": "p", "model_name": "m"}]));
        assert_eq!(text, "NAME  ID  STATE    PROVIDER  MODEL  CREATED\nn     i   Running  p         m\n");
    }
}
