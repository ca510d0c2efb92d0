//! `memory_list`: which keys the agent's memory has.

use agentsvc_api::memory::store::{MemoryRange, MemoryRow};
use agentsvc_components::kernel::taint::Taint;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::memory::grant::{grants, own};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// Keys of one answer.
const KEYS_MAX: usize = 200;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "memory_list",
    "Lists the keys of your long-term memory in order, 200 at a time, with the size of each value in bytes. If the \
     answer has a `next`, continue with it as `after`.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::MemoryRead)
.order(20);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Only keys with this prefix.
    prefix: Option<String>,
    /// `next` of the previous result.
    after: Option<String>,
}

async fn run(context: Context, Input { prefix, after }: Input) -> Result<Ended, String> {
    let bare = |text: &str| Box::from(text.strip_prefix("self.").unwrap_or(text));
    let prefix = prefix.as_deref().map(bare).unwrap_or_default();
    let range = MemoryRange { prefix, after: after.as_deref().map(bare), limit: KEYS_MAX, bytes: 0 };
    let rows = own(&context).page(range).await.map_err(|refusal| format!("Failed: {}.", refusal.message))?;
    let next = (rows.len() == KEYS_MAX).then(|| rows.last().map(|row| row.key.clone())).flatten();
    let readable = &context.run.manifest.manifest.capabilities.memory_read;
    let is_shown = |row: &&MemoryRow| grants(readable, &row.key) || next.as_ref() == Some(&row.key);
    let taint = rows.iter().filter(is_shown).fold(Taint::NONE, |taint, row| taint.with(row.record.taint));
    let keys = rows.iter().filter(|row| grants(readable, &row.key)).map(|row| {
        json!({ "key": row.key, "bytes": row.record.value.len(), "updated_at": row.record.updated_at.to_string() })
    });
    let mut told = json!({ "keys": keys.collect::<Vec<_>>() });
    if let Some(next) = next {
        told["next"] = json!(next);
    }
    Ok(Ended::Read { text: told.to_string(), taint })
}
