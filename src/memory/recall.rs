//! `memory_recall`: reads the agent's memory, by key or by what stands in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentsvc_api::memory::entries::AgentMemory;
use agentsvc_api::memory::store::{MemoryRange, MemoryRow};
use agentsvc_components::kernel::taint::Taint;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::memory::grant::{check, grants, key, own};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// Entries that a query finds at most.
const HITS_MAX: usize = 20;
/// Words of a query.
const WORDS_MAX: usize = 32;
/// Bytes of one of them.
const WORD_BYTES_MAX: usize = 256;
/// Entries that are read from the disk at once.
const PAGE_ENTRIES: usize = 256;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "memory_recall",
    "Reads your long-term memory: the value of a `key`, or up to 20 entries whose key or value contains all words of \
     a `query`, case-insensitively. memory_list lists the keys.",
    |context, text| on_input(context, text, run),
)
.safe()
.heavy()
.needs(Need::MemoryRead)
.order(19);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Exact key.
    key: Option<String>,
    /// Words to search for.
    query: Option<String>,
}

async fn run(context: Context, input: Input) -> Result<Ended, String> {
    let readable = &context.run.manifest.manifest.capabilities.memory_read;
    let memory = own(&context);
    let (text, taint) = match input {
        Input { key: Some(asked), query: None } => {
            let key = key(&asked)?;
            check(readable, key, "read")?;
            match memory.get(key).await.map_err(|refusal| format!("Failed: {}.", refusal.message))? {
                Some(record) => {
                    let taint = record.taint;
                    (told(&MemoryRow { key: key.into(), record }).to_string(), taint)
                }
                None => (format!("The key {key:?} does not exist."), Taint::NONE),
            }
        }
        Input { key: None, query: Some(query) } => find(&memory, readable, &query).await?,
        Input { .. } => return Ok(Ended::own_failure("Give either a `key` or a `query`.")),
    };
    Ok(Ended::Read { text, taint })
}

/// The entries that may be read and hold every word.
async fn find(memory: &AgentMemory, readable: &[Box<str>], query: &str) -> Result<(String, Taint), String> {
    let words = words(query)?;
    let (mut hits, mut after, mut taint) = (Vec::new(), None, Taint::NONE);
    loop {
        let range = MemoryRange { prefix: Box::default(), after: after.take(), limit: PAGE_ENTRIES, bytes: 0 };
        let rows = memory.page(range).await.map_err(|refusal| format!("Failed: {}.", refusal.message))?;
        let whole = rows.len() < PAGE_ENTRIES;
        after = rows.last().map(|row| row.key.clone());
        let granted = rows.into_iter().filter(|row| grants(readable, &row.key)).collect();
        for row in holding(granted, Arc::clone(&words)).await? {
            hits.push(told(&row));
            taint = taint.with(row.record.taint);
            if hits.len() == HITS_MAX {
                let told = json!({ "entries": hits, "more": "there may be more; use more words" });
                return Ok((told.to_string(), taint));
            }
        }
        if whole {
            return Ok((json!({ "entries": hits }).to_string(), taint));
        }
    }
}

/// The words of a query in lower case, each once.
fn words(query: &str) -> Result<Arc<BTreeSet<String>>, String> {
    let words: BTreeSet<String> = query.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Err("The `query` has no words.".to_owned());
    }
    if words.len() > WORDS_MAX || words.iter().any(|word| word.len() > WORD_BYTES_MAX) {
        return Err(format!("The `query` may have {WORDS_MAX} words of at most {WORD_BYTES_MAX} bytes."));
    }
    Ok(Arc::new(words))
}

/// The rows that hold every word. They may be long, so that no thread waits for it that serves others.
async fn holding(rows: Vec<MemoryRow>, words: Arc<BTreeSet<String>>) -> Result<Vec<MemoryRow>, String> {
    let holds = move |row: &MemoryRow| {
        let held = format!("{} {}", row.key, row.record.value).to_lowercase();
        words.iter().all(|word| held.contains(word.as_str()))
    };
    let found = tokio::task::spawn_blocking(move || rows.into_iter().filter(holds).collect()).await;
    found.map_err(|_| "The search failed with an internal error.".to_owned())
}

fn told(row: &MemoryRow) -> Value {
    // What is stored was written by us as JSON.
    let value = serde_json::from_str::<&RawValue>(&row.record.value).map_or(Value::Null, |raw| json!(raw));
    json!({ "key": row.key, "value": value, "updated_at": row.record.updated_at.to_string() })
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_few_and_short() {
        let of = |count: usize| (0..count).map(|n| format!("w{n} W{n} ")).collect::<String>();
        assert_eq!(words(&of(32)).unwrap().len(), 32, "equal ones are one");
        assert!(words(&of(33)).unwrap_err().contains("32 words"));
        assert!(words(&"x".repeat(257)).is_err() && words("  ").is_err());
    }
}
