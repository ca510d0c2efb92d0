//! An agent's key-value memory, entry by entry (spec 2, Memory).

use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::memory::{check_key, check_value};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists::{TextCursor, list_schema};
use crate::http::pages::Shape;
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};
use crate::memory::entries::{AgentMemory, NewEntry, OnConflict};
use crate::memory::store::{MemoryRange, MemoryRow};

/// Bytes of the values that are read from the disk at once, up to the entry with which they have so many.
const PAGE_BYTES: usize = 512 << 10;
/// Bytes that a page takes while it is made: the entries, their JSON, and what it grows by.
pub(super) const PAGE_MEMORY: usize = 4 * PAGE_BYTES;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/memory/agents/{id}/kv", "List the memory of an agent", |call| Box::pin(list(call)))
        .reaching(Reach::Agent)
        .query::<KvQuery>()
        .answer_max(PAGE_MEMORY)
        .replies(&[Reply::json::<KvList>(200, "keys and values, sorted by key")]),
    Route::get("/api/memory/agents/{id}/kv/{key}", "Get a memory value", |call| Box::pin(read(call)))
        .reaching(Reach::Agent)
        .replies(&[Reply::json::<Entry>(200, "the value")]),
    Route::put("/api/memory/agents/{id}/kv/{key}", "Store a memory value", |call| Box::pin(store(call)))
        .reaching(Reach::Agent)
        .body::<ValueBody>()
        .replies(&[Reply::json::<Done>(200, "stored"), Reply::error(409, "the memory is full")]),
    Route::delete("/api/memory/agents/{id}/kv/{key}", "Delete a memory value", |call| Box::pin(remove(call)))
        .reaching(Reach::Agent)
        .replies(&[Reply::json::<Done>(200, "deleted")]),
];

/// One entry.
#[derive(Serialize, JsonSchema)]
pub(super) struct Entry {
    key: Box<str>,
    /// Any JSON.
    #[schemars(with = "Value")]
    value: Box<RawValue>,
    created_at: Moment,
    updated_at: Moment,
}

impl Entry {
    fn of(key: Box<str>, record: MemoryRecord) -> Self {
        let MemoryRecord { value, created_at, updated_at, .. } = record;
        // What is stored was written by us as JSON.
        let value = RawValue::from_string(value.into()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { key, value, created_at: Moment(created_at), updated_at: Moment(updated_at) }
    }
}

impl From<MemoryRow> for Entry {
    fn from(row: MemoryRow) -> Self {
        Self::of(row.key, row.record)
    }
}

pub(super) fn memory(call: &Call) -> Result<AgentMemory, Error> {
    let (bridge, store) = (call.api.bridge.clone(), call.api.service()?);
    Ok(AgentMemory { bridge, store, agent: call.id("id")?, by: None })
}

/// Entries whose keys begin with `prefix` after a key, at most `limit` of them, and where the next ones begin.
pub(super) async fn page(
    memory: &AgentMemory,
    prefix: Box<str>,
    after: Option<TextCursor>,
    limit: usize,
) -> Result<Page<Entry, TextCursor, ()>, Error> {
    let after = after.map(|TextCursor(key)| key);
    let rows = memory.page(MemoryRange { prefix, after, limit, bytes: PAGE_BYTES }).await?;
    let bytes: usize = rows.iter().map(|row| row.record.value.len()).sum();
    let is_cut = rows.len() == limit || bytes >= PAGE_BYTES;
    let next = rows.last().filter(|_| is_cut).map(|row| TextCursor(row.key.clone()));
    Ok(Page { items: rows.into_iter().map(Entry::from).collect(), next, total: () })
}

/// Which entries to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct KvQuery {
    /// Only keys with this prefix.
    prefix: Option<String>,
    /// Maximum number of entries. A page also ends when its values have 512 KiB. `next_cursor` of the response leads to the
    /// next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

list_schema! {
    /// A list of entries.
    KvList {
        kv_pairs: Entry,
        /// Entries in all.
        total: u64
    }
}

async fn list(call: Call) -> Result<Response, Error> {
    let memory = memory(&call)?;
    let KvQuery { prefix, limit, cursor } = call.query()?;
    let (limit, after) = (lists::limit(limit)?, lists::cursor::<TextCursor>(cursor.as_deref())?);
    let total = u64::from(memory.usage().await?.entries);
    let prefix: Box<str> = prefix.unwrap_or_default().into();
    lists::answer_short(limit, after, Shape::of("kv_pairs"), move |after, limit| {
        let (memory, prefix) = (memory.clone(), prefix.clone());
        async move {
            let page = page(&memory, prefix, after, limit).await?;
            Ok(Page { items: page.items, next: page.next, total: Some(total) })
        }
    })
    .await
}

async fn read(call: Call) -> Result<Response, Error> {
    let memory = memory(&call)?;
    let key = call.param("key")?;
    call.ask(GetAgent(memory.agent)).await?;
    let record = memory.get(&key).await?.ok_or_else(|| missing(&key))?;
    reply::ok(&Entry::of(key.into(), record))
}

fn missing(key: &str) -> Error {
    Error::not_found(format!("memory key not found: {key}"))
}

/// Any JSON that is there; without this a missing key would be a null.
pub(super) fn any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Value::deserialize(deserializer)
}

/// The value to store.
#[derive(Deserialize, JsonSchema)]
struct ValueBody {
    /// Any JSON, null too.
    #[serde(deserialize_with = "any")]
    value: Value,
}

/// It is done.
#[derive(Serialize, JsonSchema)]
struct Done {
    status: &'static str,
    key: String,
}

async fn store(call: Call) -> Result<Response, Error> {
    let memory = memory(&call)?;
    let key = call.param("key")?.into_owned();
    let ValueBody { value } = call.json()?;
    let entry =
        NewEntry { key: key.as_str().into(), value: value.to_string().into(), created_at: None, updated_at: None };
    check_key(&entry.key)?;
    check_value(&entry.value)?;
    memory.put(vec![entry], OnConflict::Overwrite).await?;
    reply::ok(&Done { status: "stored", key })
}

async fn remove(call: Call) -> Result<Response, Error> {
    let memory = memory(&call)?;
    let key = call.param("key")?.into_owned();
    if !memory.delete(&key).await? {
        return Err(missing(&key));
    }
    reply::ok(&Done { status: "deleted", key })
}
