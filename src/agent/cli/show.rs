//! `agent show`: one agent in detail.

use clap::Args;
use serde_json::Value;

use crate::kernel::cli::Error;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::Table;
use crate::kernel::cli::screen::Screen;
use crate::kernel::cli::words::said;

/// Options of `agent show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The agent's name or id
    agent: String,
}

impl Show {
    /// Prints a line per property.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let agent = context.block_on(async {
            let id = client.agent_id(&self.agent).await?;
            client.get(&format!("/api/agents/{id}"), &[]).await
        })?;
        context.print(&agent, render)
    }
}

fn render(agent: &Value) -> Table {
    let rows = [
        ("name", "/name"),
        ("id", "/id"),
        ("state", "/state"),
        ("mode", "/mode"),
        ("description", "/description"),
        ("provider", "/model/provider"),
        ("model", "/model/model"),
        ("tools", "/capabilities/tools"),
        ("network", "/capabilities/network"),
        ("tags", "/tags"),
        ("session", "/session_id"),
        ("created", "/created_at"),
    ];
    let mut table = Table::pairs();
    let now = Screen::of_stdout().now;
    for (name, pointer) in rows {
        let text = said(agent, pointer, now);
        if !text.is_empty() {
            table.row([name, &text]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn what_is_empty_is_left_out() {
        let text =
            render(&json!({"name": "n", "description": "", "tags": ["a", "b"], "model": {"provider": "p"}})).render();
        assert_eq!(text, "name      n\nprovider  p\ntags      a, b\n");
    }
}
