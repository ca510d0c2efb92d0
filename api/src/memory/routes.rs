//! An agent's memory as a whole, out and in (spec 1, Other agent routes), and entry by entry (spec 2, Memory).

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::memory::{check_key, check_value};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists::{TextCursor, list_schema};
use crate::http::pages::Shape;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::timestamp::Moment;
use crate::http::{lists, pages, reply};
use crate::memory::entries::{AgentMemory, NewEntry, OnConflict};
use crate::memory::store::{MemoryRange, MemoryRow};

/// The version of the export's form.
const VERSION: u32 = 1;
/// Bytes of an import: a full memory and what stands around its entries.
const IMPORT_BYTES_MAX: usize = limit::MEMORY_BYTES_MAX as usize + (8 << 20);
/// What an export or import costs the client's rate budget.
const COST: u32 = 10;
/// Entries that are read from the disk at once.
const PAGE_ENTRIES: usize = 256;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/agents/{id}/memory/export", "Export the memory of an agent", |call| Box::pin(export(call)))
        .cost(COST)
        .replies(&[Reply::json::<Export>(200, "all entries, sorted by key")]),
    Route::post("/api/agents/{id}/memory/import", "Import memory entries, all or none", |call| Box::pin(import(call)))
        .cost(COST)
        .body_max(IMPORT_BYTES_MAX)
        .body::<ImportBody>()
        .replies(&[
            Reply::json::<Imported>(200, "imported"),
            Reply::error(409, "the memory is full, or a key already exists"),
        ]),
    Route::get("/api/memory/agents/{id}/kv", "List the memory of an agent", |call| Box::pin(list(call)))
        .query::<KvQuery>()
        .replies(&[Reply::json::<KvList>(200, "keys and values, sorted by key")]),
    Route::get("/api/memory/agents/{id}/kv/{key}", "Get a memory value", |call| Box::pin(read(call)))
        .replies(&[Reply::json::<Entry>(200, "the value")]),
    Route::put("/api/memory/agents/{id}/kv/{key}", "Store a memory value", |call| Box::pin(store(call)))
        .body::<ValueBody>()
        .replies(&[Reply::json::<Done>(200, "stored"), Reply::error(409, "the memory is full")]),
    Route::delete("/api/memory/agents/{id}/kv/{key}", "Delete a memory value", |call| Box::pin(remove(call)))
        .replies(&[Reply::json::<Done>(200, "deleted")]),
];

/// The whole memory of an agent, in the format of `POST .../memory/import`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Export {
    entries: Vec<Entry>,
    agent_id: uuid::Uuid,
    agent_name: String,
    exported_at: String,
    /// Format version.
    version: u32,
    total: u64,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
struct Entry {
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

fn memory(call: &Call) -> Result<AgentMemory, Error> {
    let (bridge, store) = (call.api.bridge.clone(), call.api.service()?);
    Ok(AgentMemory { bridge, store, agent: call.id("id")?, by: None })
}

/// Entries after a key, and where the next ones begin.
async fn page(memory: &AgentMemory, range: MemoryRange) -> Result<Page<Entry, TextCursor, ()>, Error> {
    let limit = range.limit;
    let rows = memory.page(range).await?;
    let next = (rows.len() == limit).then(|| rows.last().map(|row| TextCursor(row.key.clone()))).flatten();
    Ok(Page { items: rows.into_iter().map(Entry::from).collect(), next, total: () })
}

async fn export(call: Call) -> Result<Response, Error> {
    let memory = memory(&call)?;
    let agent = call.ask(GetAgent(memory.agent)).await?;
    let total = memory.usage().await?.entries;
    let now = Timestamp(Utc::now().timestamp_millis());
    let around = [
        ("agent_id", json!(agent.id.0)),
        ("agent_name", json!(agent.name)),
        ("exported_at", json!(now.to_string())),
        ("version", json!(VERSION)),
        ("total", json!(total)),
    ];
    let after = around.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<String, Value>>();
    let range = |after| MemoryRange { prefix: Box::default(), after, limit: PAGE_ENTRIES };
    let first = page(&memory, range(None)).await?;
    pages::stream(&Shape::Object { key: "entries", after }, first, move |TextCursor(after)| {
        let memory = memory.clone();
        async move { page(&memory, range(Some(after))).await }
    })
}

/// What to import: the body of an export, or its `entries` alone.
#[derive(Deserialize, JsonSchema)]
struct ImportBody {
    entries: Vec<ImportEntry>,
    /// What to do with existing keys.
    #[serde(default)]
    on_conflict: ConflictRule,
    /// Format version: 1.
    #[serde(default)]
    version: Option<u32>,
    /// Ignored: source of the export.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that an export can be imported unchanged")]
    agent_id: Option<Value>,
    /// Ignored.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that an export can be imported unchanged")]
    agent_name: Option<Value>,
    /// Ignored.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that an export can be imported unchanged")]
    exported_at: Option<Value>,
    /// Ignored.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that an export can be imported unchanged")]
    total: Option<Value>,
}

/// What to do with existing keys.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ConflictRule {
    /// Replace the value.
    #[default]
    Overwrite,
    /// Keep the existing value.
    Skip,
    /// Fail with 409 and import nothing.
    Fail,
}

/// One entry of an import.
#[derive(Deserialize, JsonSchema)]
struct ImportEntry {
    key: String,
    /// Any JSON, null too.
    #[serde(deserialize_with = "any")]
    value: Value,
    /// RFC 3339. Default: now.
    #[serde(default)]
    created_at: Option<String>,
    /// RFC 3339. Default: now.
    #[serde(default)]
    updated_at: Option<String>,
}

/// Any JSON that is there; without this a missing key would be a null.
fn any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Value::deserialize(deserializer)
}

/// Result of an import.
#[derive(Serialize, JsonSchema)]
struct Imported {
    status: &'static str,
    /// Entries stored.
    imported: usize,
    created: usize,
    updated: usize,
    skipped: usize,
}

async fn import(call: Call) -> Result<Response, Error> {
    let memory = memory(&call)?;
    let ImportBody { entries, on_conflict, version, .. } = call.json()?;
    if version.is_some_and(|version| version != VERSION) {
        return Err(Error::bad_field(
            "version",
            format!("version: unsupported; this release imports version {VERSION}"),
        ));
    }
    let entries = new_entries(entries)?;
    let rule = match on_conflict {
        ConflictRule::Overwrite => OnConflict::Overwrite,
        ConflictRule::Skip => OnConflict::Skip,
        ConflictRule::Fail => OnConflict::Fail,
    };
    // An import without entries still needs an agent that lives.
    memory.usage().await?;
    let written = memory.put(entries, rule).await?;
    reply::ok(&Imported {
        status: "imported",
        imported: written.created + written.updated,
        created: written.created,
        updated: written.updated,
        skipped: written.skipped,
    })
}

/// Checks every entry before any is stored.
fn new_entries(entries: Vec<ImportEntry>) -> Result<Vec<NewEntry>, Error> {
    if entries.len() > limit::MEMORY_ENTRIES_MAX as usize {
        let most = limit::MEMORY_ENTRIES_MAX;
        return Err(Error::bad_field("entries", format!("entries: more than {most}")));
    }
    let mut known = std::collections::HashSet::with_capacity(entries.len());
    let mut checked = Vec::with_capacity(entries.len());
    for (at, ImportEntry { key, value, created_at, updated_at }) in entries.into_iter().enumerate() {
        let value: Box<str> = value.to_string().into();
        let bad = |field: &str, text: &str| {
            let field = format!("entries[{at}].{field}");
            Error::bad_field(&field, format!("{field}: {text}"))
        };
        check_key(&key).map_err(|refusal| bad("key", &refusal.message))?;
        check_value(&value).map_err(|refusal| bad("value", &refusal.message))?;
        let moment = |field: &str, text: Option<String>| {
            let parsed = text.map(|text| DateTime::parse_from_rfc3339(&text)).transpose();
            let parsed = parsed.map_err(|_| {
                bad(
                    field,
                    "invalid timestamp; expected RFC 3339, for example \
                2026-11-21T10:55:00Z",
                )
            })?;
            Ok::<_, Error>(parsed.map(|moment| Timestamp(moment.timestamp_millis())))
        };
        let (created_at, updated_at) = (moment("created_at", created_at)?, moment("updated_at", updated_at)?);
        let key: Box<str> = key.into();
        if !known.insert(key.clone()) {
            return Err(bad("key", "duplicate key"));
        }
        checked.push(NewEntry { key, value, created_at, updated_at });
    }
    Ok(checked)
}

/// Which entries to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct KvQuery {
    /// Only keys with this prefix.
    prefix: Option<String>,
    /// Maximum number of entries. `next_cursor` of the response leads to the next page.
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
    lists::answer(limit, after, Shape::of("kv_pairs"), move |after, limit| {
        let after = after.map(|TextCursor(key)| key);
        let (memory, prefix) = (memory.clone(), prefix.clone());
        async move {
            let page = page(&memory, MemoryRange { prefix, after, limit: limit.min(PAGE_ENTRIES) }).await?;
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
