//! `event_publish`: tells the world that something happened, for triggers to react to.

use agentsvc_systems::event::PublishEvent;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row. Safe to repeat: the world publishes the event and settles the call in one step.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "event_publish",
    "Publishes a custom event. It fires the triggers for its type, such as report.ready.",
    |context, text| on_input(context, text, run),
)
.safe()
.anywhere()
.order(25);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Event type: a to z, digits, '_', '.' and '-'.
    event_type: String,
    /// Payload: any JSON, at most 16 KiB.
    #[serde(default)]
    payload: Value,
}

async fn run(context: Context, Input { event_type, payload }: Input) -> Result<Ended, String> {
    let (agent, by) = (context.agent(), context.turn());
    let publish = PublishEvent { event_type, payload: payload.to_string().into(), agent, by };
    context.settle(publish, |()| "Published.".to_owned()).await
}
