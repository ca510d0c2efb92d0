//! `memory_update`: corrects an entry of the agent's memory.

use agentsvc_api::proactive_memory::own::Correction;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{entry_id, may_write, own, reader, told};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "memory_update",
    "Corrects one of your memory entries: its content, its category or its confidence. The content that it had is kept in its \
     history. After you have read untrusted content, you can only correct entries that were made from such content in this \
     conversation.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::MemoryWrite)
.order(44);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The id of the entry, from memory_search.
    id: String,
    /// The new content, at most 16 KiB.
    content: Option<String>,
    /// The new category, one word; empty for none.
    category: Option<String>,
    /// How sure it is, 0 to 1.
    confidence: Option<f32>,
}

async fn run(context: Context, Input { id, content, category, confidence }: Input) -> Result<Ended, String> {
    may_write(&context)?;
    let id = entry_id("id", &id)?;
    let correction = Correction { content: content.map(Into::into), category: category.map(Into::into), confidence };
    if correction == Correction::default() {
        return Err("Nothing to change: send `content`, `category` or `confidence`.".to_owned());
    }
    let done = own(&context).correct(id, correction, reader(&context)).await;
    told(id, "updated", done.map_err(|refusal| format!("Refused: {}.", refusal.message))?)
}
