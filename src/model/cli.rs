//! `models`: the models of the catalog.

use clap::Args;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Table, items};
use crate::kernel::cli::{Error, Run};

/// Options of `models`.
#[derive(Debug, Args)]
pub(crate) struct Models {
    /// `models list` is understood, as of other commands
    #[arg(hide = true, value_parser = ["list", "ls"])]
    _verb: Option<String>,
    /// Only models of this provider
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
}

impl Run for Models {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let query: Vec<(&str, &str)> = self.provider.iter().map(|name| ("provider", name.as_str())).collect();
        let models = context.block_on(client.get("/api/models", &query))?;
        context.print(&models, render)
    }
}

fn render(models: &Value) -> Table {
    let columns = [
        ("PROVIDER", "/provider"),
        ("ID", "/id"),
        ("TIER", "/tier"),
        ("CONTEXT", "/context_window"),
        ("IN $/M", "/input_cost_per_m"),
        ("OUT $/M", "/output_cost_per_m"),
        ("PICTURES", "/vision_support"),
        ("ALIASES", "/aliases"),
    ];
    let known = |model: &Value| {
        let mut model = model.clone();
        if model["price_known"] == false {
            (model["input_cost_per_m"], model["output_cost_per_m"]) = (Value::Null, Value::Null);
        }
        model
    };
    let models: Vec<Value> = items(models, "models").map(known).collect();
    Table::of("models", &models, &columns)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn a_row_per_model_and_nothing_for_what_is_not_known() {
        let model = json!({
            "provider": "p", "id": "m", "tier": "fast", "context_window": 8000, "input_cost_per_m": 0.0,
            "output_cost_per_m": 0.0, "price_known": false, "vision_support": "unknown", "aliases": ["a", "b"],
        });
        let text = render(&json!({ "models": [model], "total": 1 })).render();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["p", "m", "fast", "8000", "unknown", "a,", "b"]);
    }
}
