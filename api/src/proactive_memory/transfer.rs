//! Entries of an agent as a whole, out and in.

use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::proactive_memory::check_entry;
use agentsvc_systems::proactive_memory::limits::ENTRY_IMPORT_MAX;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::http::api::Api;
use crate::http::blocking::{spawn, spawn_blocking};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::pages::{self, Shape};
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::proactive_memory::change::{of_agent, session_expiry};
use crate::proactive_memory::entries::{AgentEntries, PAGE_ROWS, now};
use crate::proactive_memory::imports::{Import, Imports, NewEntry, run};
use crate::proactive_memory::routes::settings;
use crate::proactive_memory::settings::ProactiveMemory;
use crate::proactive_memory::shape::{ImportedEntry, MemoryEntry};

/// Bytes of an import.
pub(crate) const IMPORT_BYTES_MAX: usize = 96 << 20;
/// What an export or import costs the client's rate budget.
const COST: u32 = 20;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/memory/agents/{id}/export", "Export the memory entries of an agent", |call| {
        Box::pin(export(call))
    })
    .reaching(Reach::Agent)
    .large()
    .cost(COST)
    .replies(&[Reply::json::<Export>(200, "all entries, the oldest first")]),
    Route::post("/api/memory/agents/{id}/import", "Import memory entries", |call| Box::pin(import(call)))
        .cost(COST)
        .body_max(IMPORT_BYTES_MAX)
        .body::<ImportBody>()
        .replies(&[
            Reply::json::<Import>(200, "imported"),
            Reply::json::<Import>(202, "started; `import_id` leads to its progress"),
            Reply::error(409, "the agent's memory is full"),
        ]),
    Route::get("/api/memory/imports", "List running and ended imports of memory entries", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<ImportList>(200, "the imports, the oldest first")]),
    Route::get("/api/memory/imports/{import_id}", "Get the progress of an import of memory entries", |call| {
        Box::pin(show(call))
    })
    .replies(&[Reply::json::<Import>(200, "the import")]),
];

/// The entries of an agent, in the format of `POST .../import`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Export {
    memories: Vec<MemoryEntry>,
    agent_id: Uuid,
    count: u64,
}

/// The place behind an entry.
pub(crate) struct Behind(MemoryEntryId);

/// The entries behind one, as an import takes them.
pub(crate) async fn export_page(
    entries: &AgentEntries,
    after: Option<Behind>,
) -> Result<Page<MemoryEntry, Behind, ()>, Error> {
    let rows = entries.read(move |rows| {
        let after = after.map(|Behind(id)| (rows.agent, id));
        rows.store.entries(Some(rows.agent), after, PAGE_ROWS)
    });
    let (page, now) = (rows.await?, now());
    let next = page.next().map(|(_, id)| Behind(id));
    let items = page.rows.into_iter().filter(|row| row.record.is_live(now)).map(MemoryEntry::exported).collect();
    Ok(Page { items, next, total: () })
}

async fn export(call: Call) -> Result<Response, Error> {
    let entries = of_agent(&call, call.id("id")?)?;
    let count = entries.usage_now().await?.counts.entries();
    let after = Map::from_iter([("agent_id".to_owned(), json!(entries.agent.0)), ("count".to_owned(), json!(count))]);
    let first = export_page(&entries, None).await?;
    pages::stream(&Shape::Object { key: "memories", after }, first, move |after| {
        let entries = entries.clone();
        async move { export_page(&entries, Some(after)).await }
    })
}

/// What to import: the body of an export, its `memories` alone, or a bare array of them.
#[derive(Deserialize, JsonSchema)]
struct ImportBody {
    /// At most 100,000.
    memories: Vec<ImportedEntry>,
    /// Answer at once with 202; `GET /api/memory/imports/{import_id}` shows the progress.
    #[serde(default)]
    background: bool,
    /// Ignored: the entries go to the agent in the path.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that an export can be imported unchanged")]
    agent_id: Option<Value>,
    /// Ignored.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that an export can be imported unchanged")]
    count: Option<Value>,
}

async fn import(call: Call) -> Result<Response, Error> {
    let entries = of_agent(&call, call.id("id")?)?;
    entries.usage().await?;
    let settings = settings(&call)?;
    let api = Arc::clone(&call.api);
    let agent = entries.agent;
    // Many megabytes of JSON: not on an async thread.
    let read = spawn_blocking(move || {
        let (memories, background) = if call.is_array() {
            (call.json_array::<ImportedEntry>()?, false)
        } else {
            let body: ImportBody = call.json()?;
            (body.memories, body.background)
        };
        Ok::<_, Error>((new_entries(agent, memories, &settings)?, background))
    });
    let read = read.await.map_err(|_| Error::internal("the import could not be read"))?;
    let (new, background) = read?;
    let state = api.services.state::<Imports>().begin(agent, new.len())?;
    let job = spawn(run(entries, new, Arc::clone(&state)));
    if background {
        return reply::json(StatusCode::ACCEPTED, &state.shown());
    }
    job.await.map_err(|_| Error::internal("the import was interrupted"))??;
    reply::ok(&state.shown())
}

/// Stores entries, and gives the number of those that are new or were changed.
pub(crate) async fn import_now(api: &Api, entries: AgentEntries, new: Vec<NewEntry>) -> Result<usize, Error> {
    let state = api.services.state::<Imports>().begin(entries.agent, new.len())?;
    let job = spawn(run(entries, new, Arc::clone(&state)));
    job.await.map_err(|_| Error::internal("the import was interrupted"))??;
    Ok(state.imported())
}

/// Reads entries for an agent, and checks each of them.
pub(crate) fn new_entries(
    agent: AgentId,
    memories: Vec<ImportedEntry>,
    settings: &ProactiveMemory,
) -> Result<Vec<NewEntry>, Error> {
    let now = now();
    let expiry = session_expiry(settings, now);
    checked(agent, memories, |entry| entry.read(now, expiry))
}

/// Every entry is checked before any is stored.
fn checked(
    agent: AgentId,
    memories: Vec<ImportedEntry>,
    read: impl Fn(ImportedEntry) -> Result<(Option<MemoryEntryId>, MemoryEntryRecord), Error>,
) -> Result<Vec<NewEntry>, Error> {
    if memories.len() > ENTRY_IMPORT_MAX {
        return Err(Error::bad_field("memories", format!("memories: more than {ENTRY_IMPORT_MAX}")));
    }
    let named = |at: usize, error: Error| {
        let field = error.beside("field").and_then(Value::as_str).unwrap_or_default().to_owned();
        Error::bad_field(&format!("memories[{at}].{field}"), format!("memories[{at}].{}", error.message()))
    };
    let mut new = Vec::with_capacity(memories.len());
    for (at, entry) in memories.into_iter().enumerate() {
        let (id, record) = read(entry).map_err(|error| named(at, error))?;
        check_entry(&record).map_err(|refusal| named(at, refusal.into()))?;
        new.push(NewEntry::new(agent, id, record));
    }
    Ok(new)
}

/// Imports of memory entries.
#[derive(Serialize, JsonSchema)]
struct ImportList {
    imports: Vec<Import>,
    total: usize,
}

async fn list(call: Call) -> Result<Response, Error> {
    let imports = call.api.services.state::<Imports>().list();
    reply::ok(&ImportList { total: imports.len(), imports })
}

async fn show(call: Call) -> Result<Response, Error> {
    let id: Uuid = call.id("import_id")?;
    let import = call.api.services.state::<Imports>().list().into_iter().find(|import| import.import_id == id);
    reply::ok(&import.ok_or_else(|| Error::not_found(format!("import not found: {id}")))?)
}
