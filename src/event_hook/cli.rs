//! `hooks`: the programs that run when something happens.

use clap::Args;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{clean, field, items};
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

fn listed(answer: &Value) -> String {
    let mut text = String::new();
    for hook in items(answer, "event_hooks") {
        let of = |key: &str| clean(&field(hook, key).replace('\n', " ")).into_owned();
        let events: Vec<String> = items(hook, "events").filter_map(|it| it.as_str().map(str::to_owned)).collect();
        let events = clean(&events.join(", ")).into_owned();
        text.push_str(&format!("{}  {events}  runs {}  failures {}\n", of("/name"), of("/runs"), of("/failures")));
        for (label, key) in [("problem", "/problem"), ("last error", "/last_run/error")] {
            let said = of(key);
            if !said.is_empty() {
                text.push_str(&format!("    {label}: {said}\n"));
            }
        }
    }
    if text.is_empty() { "No event hooks\n".to_owned() } else { text }
}
