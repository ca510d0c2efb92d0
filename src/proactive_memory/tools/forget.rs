//! `memory_forget`: removes an entry from the agent's memory.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{entry_id, may_write, own, reader, told};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "memory_forget",
    "Removes one of your memory entries that is of no use any more, or that another entry says as well (`merged_into`). After \
     you have read untrusted content, you can only remove entries that were made from such content in this conversation.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::MemoryWrite)
.order(45);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The id of the entry, from memory_search.
    id: String,
    /// The id of the entry that says the same, about the same user.
    merged_into: Option<String>,
}

async fn run(context: Context, Input { id, merged_into }: Input) -> Result<Ended, String> {
    may_write(&context)?;
    let id = entry_id("id", &id)?;
    let kept = merged_into.filter(|kept| !kept.is_empty()).map(|kept| entry_id("merged_into", &kept)).transpose()?;
    let done = own(&context).forget(id, kept, reader(&context)).await;
    told(id, "removed", done.map_err(|refusal| format!("Refused: {}.", refusal.message))?)
}
