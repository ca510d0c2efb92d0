//! `hooks`: the programs that run when something happens.

use clap::Args;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Shown, Table, clean, field, items};
use crate::kernel::cli::{Error, Run};

/// Arguments of `hooks`.
#[derive(Debug, Args)]
pub(crate) struct Hooks {}

impl Run for Hooks {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let answer = context.block_on(client.get("/api/event-hooks", &[]))?;
        context.print(&answer, listed)
    }
}

fn listed(answer: &Value) -> Shown {
    let columns = [("NAME", "/name"), ("EVENTS", "/events"), ("RUNS", "/runs"), ("FAILURES", "/failures")];
    let hint = "Add one to config.toml under `[[event_hooks]]`.";
    let shown = Shown::from(Table::of("event hooks", items(answer, "event_hooks"), &columns).hint(hint));
    let mut text = String::new();
    for hook in items(answer, "event_hooks") {
        let of = |key: &str| clean(&field(hook, key).replace('\n', " ")).into_owned();
        for (label, key) in [("problem", "/problem"), ("last error", "/last_run/error")] {
            let said = of(key);
            if !said.is_empty() {
                text.push_str(&format!("{}: {label}: {said}\n", of("/name")));
            }
        }
    }
    shown.and(text)
}
