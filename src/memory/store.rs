//! `memory_store`: puts a value into the agent's memory.

use agentsvc_api::memory::entries::{NewEntry, OnConflict};
use agentsvc_systems::memory::check_value;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::memory::grant::{check, key, own};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "memory_store",
    "Stores a value in your long-term memory under a key; an existing value is replaced. It outlives the \
     conversation; read it with memory_recall. Use short, grouped keys such as user.name.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::MemoryWrite)
.order(18);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The key, at most 256 bytes, such as user.name.
    key: String,
    /// Any JSON: a text, a number, a list or an object; at most 64 KiB.
    #[serde(deserialize_with = "any")]
    value: Value,
}

/// Any JSON that is there; without this a missing value would be a null.
fn any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Value::deserialize(deserializer)
}

async fn run(context: Context, Input { key: asked, value }: Input) -> Result<Ended, String> {
    let key = key(&asked)?;
    check(&context.run.manifest.manifest.capabilities.memory_write, key, "write")?;
    let value: Box<str> = value.to_string().into();
    check_value(&value).map_err(|refusal| format!("The value is not valid: {}.", refusal.message))?;
    let entry = NewEntry { key: key.into(), value, created_at: None, updated_at: None };
    let written = own(&context).put(vec![entry], OnConflict::Overwrite).await;
    let written = written.map_err(|refusal| format!("Refused: {}.", refusal.message))?;
    let what = if written.created > 0 { "Stored" } else { "Replaced" };
    Ok(Ended::Text(format!("{what} {key:?}.")))
}
