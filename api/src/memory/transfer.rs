//! An agent's memory as a whole, out and in (spec 1, Other agent routes): keys, memory entries and the knowledge graph.

use std::collections::HashSet;
use std::sync::Arc;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit::{self, PAGE_ITEMS_MAX};
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::memory::{check_key, check_value};
use chrono::DateTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists::TextCursor;
use crate::http::pages::{Section, sections};
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::knowledge::batch::Batch;
use crate::knowledge::graph::AgentGraph;
use crate::knowledge::shape::{EntityBody, EntityView, MatchBody, MatchView};
use crate::knowledge::transfer as graph;
use crate::memory::entries::{NewEntry, OnConflict};
use crate::memory::routes::{Entry, any, memory, page};
use crate::proactive_memory::change::of_agent;
use crate::proactive_memory::imports::NewEntry as NewMemory;
use crate::proactive_memory::routes::settings;
use crate::proactive_memory::shape::{ImportedEntry, MemoryEntry};
use crate::proactive_memory::transfer as memories;

/// The version of the export's form.
const VERSION: u32 = 1;
/// Bytes of an import: the most keys and values, memory entries and knowledge, and what stands around them.
const IMPORT_BYTES_MAX: usize = limit::MEMORY_BYTES_MAX as usize + memories::IMPORT_BYTES_MAX + (32 << 20);
/// Bytes that a page of an export takes while it is made: of what the export holds, pages of memory entries take most.
const PAGE_MEMORY: usize = 4 << 20;
/// What an export or import costs the client's rate budget.
const COST: u32 = 20;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/agents/{id}/memory/export", "Export the memory of an agent", |call| Box::pin(export(call)))
        .cost(COST)
        .answer_max(PAGE_MEMORY)
        .replies(&[Reply::json::<Export>(200, "keys sorted by name, memory entries, and the knowledge graph")]),
    Route::post("/api/agents/{id}/memory/import", "Import the memory of an agent", |call| Box::pin(import(call)))
        .cost(COST)
        .body_max(IMPORT_BYTES_MAX)
        .body::<ImportBody>()
        .replies(&[
            Reply::json::<Imported>(200, "imported"),
            Reply::error(409, "the memory is full, or a key already exists"),
        ]),
];

/// The whole memory of an agent, in the format of `POST .../memory/import`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Export {
    /// Keys and values.
    entries: Vec<Entry>,
    /// Memory entries.
    memories: Vec<MemoryEntry>,
    /// Entities of the knowledge graph.
    entities: Vec<EntityView>,
    /// Relations of the knowledge graph.
    matches: Vec<MatchView>,
    agent_id: uuid::Uuid,
    agent_name: String,
    exported_at: String,
    /// Format version.
    version: u32,
    /// Number of `entries`.
    total: u64,
}

fn graph_of(call: &Call) -> Result<AgentGraph, Error> {
    let (bridge, store) = (call.api.bridge.clone(), call.api.service()?);
    Ok(AgentGraph { bridge, store, agent: call.id("id")?, by: None })
}

async fn export(call: Call) -> Result<Response, Error> {
    let memory = memory(&call)?;
    let agent = call.ask(GetAgent(memory.agent)).await?;
    let total = memory.usage().await?.entries;
    let (own, graph_of_agent) = (of_agent(&call, memory.agent)?, graph_of(&call)?);
    // Entries that have expired go first.
    own.usage_now().await?;
    let now = crate::http::timestamp::timestamp_now();
    let around = [
        ("agent_id", json!(agent.id.0)),
        ("agent_name", json!(agent.name)),
        ("exported_at", json!(now.to_string())),
        ("version", json!(VERSION)),
        ("total", json!(total)),
    ];
    let after = around.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<String, Value>>();
    let keys = Section::new("entries", move |after: Option<TextCursor>| {
        let memory = memory.clone();
        async move { page(&memory, Box::default(), after, PAGE_ITEMS_MAX).await }
    });
    let entries = Section::new("memories", move |after| {
        let own = own.clone();
        async move { memories::export_page(&own, after).await }
    });
    let (graph_of_entities, graph_of_matches) = (graph_of_agent.clone(), graph_of_agent);
    let entities = Section::new("entities", move |after| graph::entities_page(graph_of_entities.clone(), after));
    let matches = Section::new("matches", move |after| graph::matches_page(graph_of_matches.clone(), after));
    Ok(sections(vec![keys, entries, entities, matches], &after))
}

/// What to import: the body of an export, or its `entries` alone. What is there already in the same form is not changed.
#[derive(Deserialize, JsonSchema)]
struct ImportBody {
    /// Keys and values.
    entries: Vec<ImportEntry>,
    /// Memory entries, at most 100,000. An entry that exists is replaced only if `updated_at` is newer.
    #[serde(default)]
    memories: Vec<ImportedEntry>,
    /// Entities of the knowledge graph, at most 10,000.
    #[serde(default)]
    entities: Vec<EntityBody>,
    /// Relations of the knowledge graph, at most 50,000.
    #[serde(default)]
    matches: Vec<MatchBody>,
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

/// Result of an import.
#[derive(Serialize, JsonSchema)]
struct Imported {
    status: &'static str,
    /// Keys stored.
    imported: usize,
    created: usize,
    updated: usize,
    skipped: usize,
    /// Memory entries that are new or were changed.
    memories_imported: usize,
    /// Entities that are new or were changed.
    entities_imported: usize,
    /// Relations that are new or were changed.
    relations_imported: usize,
}

/// An import that was checked as a whole.
struct Checked {
    keys: Vec<NewEntry>,
    rule: OnConflict,
    memories: Vec<NewMemory>,
    batches: Vec<Batch>,
}

/// Reads an import and checks all of it, before any is stored. Many megabytes of JSON: not for an async thread.
fn read(call: &Call) -> Result<Checked, Error> {
    let ImportBody { entries, memories: of_file, entities, matches, on_conflict, version, .. } = call.json()?;
    if version.is_some_and(|version| version != VERSION) {
        return Err(Error::bad_field(
            "version",
            format!("version: unsupported; this release imports version {VERSION}"),
        ));
    }
    let rule = match on_conflict {
        ConflictRule::Overwrite => OnConflict::Overwrite,
        ConflictRule::Skip => OnConflict::Skip,
        ConflictRule::Fail => OnConflict::Fail,
    };
    Ok(Checked {
        keys: new_entries(entries)?,
        rule,
        memories: memories::new_entries(call.id("id")?, of_file, &settings(call)?)?,
        batches: graph::batches(entities, matches)?,
    })
}

/// Stores an import: the keys all or none, then the memory entries and the graph in parts. One that is interrupted can be sent
/// again.
async fn import(call: Call) -> Result<Response, Error> {
    let memory = memory(&call)?;
    // An import without entries still needs an agent that lives.
    memory.usage().await?;
    let (own, graph_of_agent) = (of_agent(&call, memory.agent)?, graph_of(&call)?);
    let api = Arc::clone(&call.api);
    let checked = spawn_blocking(move || read(&call)).await;
    let Checked { keys, rule, memories: new, batches } =
        checked.map_err(|_| Error::internal("the import could not be read"))??;
    let written = memory.put(keys, rule).await?;
    let memories_imported = if new.is_empty() { 0 } else { memories::import_now(&api, own, new).await? };
    let graph = graph::import(&graph_of_agent, batches).await?;
    reply::ok(&Imported {
        status: "imported",
        imported: written.created + written.updated,
        created: written.created,
        updated: written.updated,
        skipped: written.skipped,
        memories_imported,
        entities_imported: graph.entities_created + graph.entities_updated,
        relations_imported: graph.relations_created + graph.relations_updated,
    })
}

/// Checks every entry before any is stored.
fn new_entries(entries: Vec<ImportEntry>) -> Result<Vec<NewEntry>, Error> {
    if entries.len() > limit::MEMORY_ENTRIES_MAX as usize {
        let most = limit::MEMORY_ENTRIES_MAX;
        return Err(Error::bad_field("entries", format!("entries: more than {most}")));
    }
    let mut known = HashSet::with_capacity(entries.len());
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
