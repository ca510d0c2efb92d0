//! `providers list`: every provider.

use clap::Args;
use serde_json::Value;

use crate::kernel::cli::Error;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Table, items};

/// Options of `providers list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only providers that are ready to use
    #[arg(long)]
    usable: bool,
}

impl List {
    /// Prints one row per provider.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let mut answer = context.block_on(client.get("/api/providers", &[]))?;
        if self.usable
            && let Some(providers) = answer["providers"].as_array_mut()
        {
            providers.retain(|provider| provider["auth_status"] != "not_configured");
        }
        context.print(&answer, render)
    }
}

fn render(answer: &Value) -> Table {
    let columns = [
        ("NAME", "/name"),
        ("STATUS", "/auth_status"),
        ("KEY FROM", "/key_source"),
        ("VARIABLE", "/env_var"),
        ("MODELS", "/model_count"),
        ("URL", "/base_url"),
    ];
    Table::of("providers", items(answer, "providers"), &columns)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn a_row_per_provider() {
        let text = render(&json!({"providers": [
            {"name": "p", "auth_status": "configured", "key_source": "vault", "env_var": "K", "model_count": 3, "base_url": "u"},
        ]})).render();
        assert_eq!(
            text,
            "NAME  STATUS      KEY FROM  VARIABLE  MODELS  URL\np     configured  vault     K              3  u\n"
        );
    }
}
