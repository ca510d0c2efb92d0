//! `tool_load`: brings tools into the prompt. What is loaded stands in the conversation itself: [`loaded`] reads it
//! from the calls that were made, so that it holds as long as they are remembered and needs no other state.

use agentsvc_components::session::message::Block;
use agentsvc_components::session::message_record::MessageRecord;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::toolset::{Context, Ended, Tool, input, on_input};

/// The tool's name.
pub(super) const NAME: &str = "tool_load";

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    NAME,
    "Loads tools by name so that you can call them in your next step. Find names with tool_search.",
    |context, text| on_input(context, text, run),
)
.safe()
.in_turn()
.order(1);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The tools' names.
    names: Vec<String>,
}

async fn run(context: Context, Input { names }: Input) -> Result<Ended, String> {
    let granted = context.parts.set.get().granted(&context.run.manifest.manifest);
    let (known, unknown): (Vec<_>, Vec<_>) =
        names.iter().partition(|name| granted.iter().any(|tool| tool.name == name.as_str()));
    let list = |names: &[&String]| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    match (known.is_empty(), unknown.is_empty()) {
        (true, _) => Err(format!("None of these tools is available to you: {}.", list(&unknown))),
        (false, true) => Ok(Ended::Text(format!("Loaded: {}.", list(&known)))),
        (false, false) => Ok(Ended::Text(format!("Loaded: {}. Not found: {}.", list(&known), list(&unknown)))),
    }
}

/// The names that the calls in a conversation loaded, oldest first.
pub(crate) fn loaded(records: &[MessageRecord]) -> Vec<String> {
    let blocks = records.iter().flat_map(|record| &record.blocks);
    let calls = blocks.filter_map(|block| match block {
        Block::ToolCall(call) if call.name == NAME => input::<Input>(&call.input).ok(),
        _ => None,
    });
    calls.flat_map(|input| input.names).collect()
}
