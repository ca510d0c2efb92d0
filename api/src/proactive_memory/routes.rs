//! The routes over the entries of all agents, of users, and over single entries.

use std::collections::BTreeMap;

use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::{AgentId, Refusal, RefusalKind};
use agentsvc_systems::proactive_memory::extract::extract_all;
use agentsvc_systems::proactive_memory::limits::{
    ENTRY_BULK_MAX, ENTRY_CHANGES_MAX, ENTRY_STATS_NAMES_MAX, EXTRACT_MESSAGES_MAX,
};
use agentsvc_systems::proactive_memory::{Cause, Counted, EntryRemove, EntryTotals, GetEntryTotals, check_user};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::proactive_memory::change::{
    self, Action, learn, new_record, not_found, of_agent, replace_content, set_expiry,
};
use crate::proactive_memory::entries::{Plan, Rows, now, read_of};
use crate::proactive_memory::list::{self, EntriesQuery, MemoryList, Source};
use crate::proactive_memory::search::{Embeddings, MemorySearch};
use crate::proactive_memory::settings::{ProactiveMemory, ProactiveMemorySettings};
use crate::proactive_memory::shape::{MemoryEntry, Version, described, level};
use crate::proactive_memory::store::{EntryRow, EntryStore};

const PAGE: &[Reply] = &[Reply::json::<MemoryList>(200, "the entries")];
const FULL: Reply = Reply::error(409, "the agent's memory is full");
/// Where the body names the agent.
pub(super) const NO_AGENT: Reply = Reply::error(404, "the agent does not exist");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/memory", "List memory entries", |call| Box::pin(list_all(call)))
        .large()
        .query::<EntriesQuery>()
        .replies(PAGE),
    Route::post("/api/memory", "Add a memory entry, or those that messages state", |call| Box::pin(add(call)))
        .cost(5)
        .body::<AddBody>()
        .replies(&[Reply::json::<Added>(201, "the entry, or those that were extracted"), FULL, NO_AGENT]),
    Route::get("/api/memory/stats", "Count memory entries", |call| Box::pin(stats(call))).replies(&[Reply::json::<
        Stats,
    >(
        200,
        "the counts",
    )]),
    Route::post("/api/memory/bulk-delete", "Delete memory entries by their ids", |call| Box::pin(bulk_delete(call)))
        .cost(10)
        .body::<BulkBody>()
        .replies(&[Reply::json::<BulkDeleted>(200, "the number of deleted entries")]),
    Route::get("/api/memory/items/{memory_id}", "Get a memory entry", |call| Box::pin(show(call)))
        .replies(&[Reply::json::<MemoryEntry>(200, "the entry with its earlier contents")]),
    Route::put("/api/memory/items/{memory_id}", "Update a memory entry", |call| Box::pin(update(call)))
        .body::<UpdateBody>()
        .replies(&[Reply::json::<MemoryEntry>(200, "the entry"), FULL]),
    Route::delete("/api/memory/items/{memory_id}", "Delete a memory entry", |call| Box::pin(remove(call)))
        .replies(&[Reply::json::<Deleted>(200, "deleted")]),
    Route::get("/api/memory/items/{memory_id}/history", "Get the earlier contents of a memory entry", |call| {
        Box::pin(history(call))
    })
    .large()
    .replies(&[Reply::json::<History>(200, "the contents, the oldest first")]),
    Route::get("/api/memory/user/{user_id}", "List the memory entries about a user", |call| Box::pin(of_user(call)))
        .large()
        .query::<EntriesQuery>()
        .replies(PAGE),
];

/// What the configuration says.
pub(crate) fn settings(call: &Call) -> Result<ProactiveMemory, Error> {
    Ok(call.api.service::<dyn ProactiveMemorySettings>()?.now())
}

/// Whose an entry is.
async fn owner(call: &Call, id: MemoryEntryId) -> Result<AgentId, Error> {
    let store = call.api.service::<dyn EntryStore>()?;
    let owner = read_of(move || store.owner(id)).await?;
    Ok(owner.ok_or_else(|| not_found(id))?)
}

async fn list_all(call: Call) -> Result<Response, Error> {
    list::answer(&call, Source::All).await
}

async fn of_user(call: Call) -> Result<Response, Error> {
    let user = call.param("user_id")?.into_owned();
    check_user(&user)?;
    list::answer(&call, Source::User(user.into())).await
}

described! {
/// A new entry: its content, or messages of which entries are extracted.
struct AddBody {
    /// The agent that keeps it.
    agent_id: Uuid,
    /// The fact, at most 16 KiB. Exactly one entry is stored.
    content: Option<Box<str>>,
    /// Messages, in place of `content`; the facts that the user states in them are extracted by rules.
    messages: Option<Vec<SaidMessage>>,
}
}

/// One message.
#[derive(Deserialize, JsonSchema)]
struct SaidMessage {
    /// Facts are extracted of messages whose role is `user`.
    role: Box<str>,
    content: Box<str>,
}

/// What was stored.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Added {
    /// Of a content.
    One(Box<Stored>),
    /// Of messages.
    Many {
        /// Entries added or updated.
        added: usize,
        memories: Vec<Stored>,
    },
}

/// One entry that was stored.
#[derive(Serialize, JsonSchema)]
struct Stored {
    id: Uuid,
    /// `added`, `updated`, or `noop` when an entry says so already.
    action: &'static str,
    memory: MemoryEntry,
}

async fn add(call: Call) -> Result<Response, Error> {
    let mut body: AddBody = call.json()?;
    let described = body.take_described();
    let AddBody { agent_id, content, messages, .. } = body;
    let (entries, settings, now) = (of_agent(&call, AgentId(agent_id))?, settings(&call)?, now());
    let stored = |action: Action, row: EntryRow| Stored { id: row.id.0, action: action.as_str(), memory: row.into() };
    match (content, messages) {
        (Some(content), None) => {
            let mut record = new_record(content, "api");
            described.apply(&mut record)?;
            set_expiry(&mut record, &settings, now);
            let row = change::add(&entries, record).await?;
            reply::created(&Added::One(Box::new(stored(Action::Added, row))))
        }
        (None, Some(messages)) => {
            if messages.len() > EXTRACT_MESSAGES_MAX {
                return Err(Error::bad_field("messages", format!("messages: more than {EXTRACT_MESSAGES_MAX}")));
            }
            entries.usage().await?;
            let mut memories = Vec::new();
            let wanted = settings.extract_categories.clone();
            let facts = spawn_blocking(move || {
                let of_user = messages.iter().filter(|message| &*message.role == "user");
                extract_all(of_user.map(|message| &*message.content), &wanted)
            });
            for fact in facts.await.map_err(|_| Error::internal("the messages could not be read"))? {
                let mut record = new_record(fact.content.into(), "rules");
                described.apply(&mut record)?;
                record.category = fact.category.into();
                if !described.has_level() {
                    record.level = fact.level;
                }
                set_expiry(&mut record, &settings, now);
                let (action, row) = learn(&entries, record, &settings).await?;
                memories.push(stored(action, row));
            }
            let added = memories.iter().filter(|stored| stored.action != Action::Noop.as_str()).count();
            reply::created(&Added::Many { added, memories })
        }
        (None, None) => Err(Error::bad_field("content", "content: missing; send it, or `messages`")),
        (Some(_), Some(_)) => Err(Error::bad_field("messages", "messages: send either `content` or `messages`")),
    }
}

/// How many entries there are.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Stats {
    total: u64,
    user_count: u64,
    session_count: u64,
    agent_count: u64,
    /// Entries by category; of all agents only the 1,000 categories with most entries.
    categories: BTreeMap<Box<str>, u64>,
    /// `[proactive_memory] enabled`; of one agent, as its manifest overrides it. So are the next three.
    enabled: bool,
    /// Turns make entries.
    auto_memorize_enabled: bool,
    auto_retrieve_enabled: bool,
    /// A model extracts entries of turns; without one, rules do.
    llm_extraction: bool,
    /// Entries by agent, of those that have most; of all agents only.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_agent: Option<BTreeMap<Uuid, u64>>,
    /// What makes vectors for the search, and how far it has come; of all agents only, and where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    embeddings: Option<Embeddings>,
}

impl Stats {
    /// No entries yet.
    pub(crate) fn new(settings: &ProactiveMemory) -> Self {
        Self {
            total: 0,
            user_count: 0,
            session_count: 0,
            agent_count: 0,
            categories: BTreeMap::new(),
            enabled: settings.enabled,
            auto_memorize_enabled: settings.enabled && settings.auto_memorize,
            auto_retrieve_enabled: settings.enabled && settings.auto_retrieve,
            llm_extraction: settings.enabled && settings.auto_memorize && settings.has_extraction_model,
            by_agent: None,
            embeddings: None,
        }
    }

    /// Adds entries by level and category.
    pub(crate) fn add(
        &mut self,
        [user, session, agent]: [u64; 3],
        categories: impl IntoIterator<Item = (Box<str>, u64)>,
    ) {
        self.total += user + session + agent;
        self.user_count += user;
        self.session_count += session;
        self.agent_count += agent;
        for (name, count) in categories {
            let name = if name.is_empty() { "uncategorized".into() } else { name };
            *self.categories.entry(name).or_default() += count;
        }
    }
}

async fn stats(call: Call) -> Result<Response, Error> {
    let mut stats = Stats::new(&settings(&call)?);
    let EntryTotals { levels, categories, agents } = call.ask(GetEntryTotals { named: ENTRY_STATS_NAMES_MAX }).await?;
    stats.add(levels, categories);
    stats.by_agent = Some(agents.into_iter().map(|(id, count)| (id.0, count)).collect());
    stats.embeddings = call.api.service::<dyn MemorySearch>().ok().and_then(|index| index.embeddings());
    reply::ok(&stats)
}

/// The entries to delete.
#[derive(Deserialize, JsonSchema)]
struct BulkBody {
    /// At most 10,000.
    ids: Vec<Box<str>>,
}

/// What was deleted.
#[derive(Serialize, JsonSchema)]
struct BulkDeleted {
    deleted: usize,
    /// Ids that are no entry's.
    failed: usize,
    total: usize,
}

async fn bulk_delete(call: Call) -> Result<Response, Error> {
    let BulkBody { ids } = call.json()?;
    if ids.len() > ENTRY_BULK_MAX {
        return Err(Error::bad_field("ids", format!("ids: more than {ENTRY_BULK_MAX}")));
    }
    let total = ids.len();
    let store = call.api.service::<dyn EntryStore>()?;
    let by_agent = read_of(move || {
        let mut by_agent: BTreeMap<AgentId, Vec<MemoryEntryId>> = BTreeMap::new();
        for id in ids.iter().filter_map(|id| id.parse().ok()) {
            if let Some(agent) = store.owner(id)? {
                by_agent.entry(agent).or_default().push(id);
            }
        }
        Ok(by_agent)
    });
    let mut deleted = 0;
    for (agent, mut ids) in by_agent.await? {
        ids.sort_unstable();
        ids.dedup();
        let entries = of_agent(&call, agent)?;
        for ids in ids.chunks(ENTRY_CHANGES_MAX) {
            deleted += match delete(&entries, ids.to_vec()).await {
                // The agent was deleted, and its entries are being erased.
                Err(gone) if gone.kind == RefusalKind::NotFound => 0,
                result => result?,
            };
        }
    }
    reply::ok(&BulkDeleted { deleted, failed: total - deleted, total })
}

/// Deletes entries of an agent, and gives the number of those that there were.
async fn delete(
    entries: &crate::proactive_memory::entries::AgentEntries,
    ids: Vec<MemoryEntryId>,
) -> Result<usize, Refusal> {
    let plan = move |_: &_, rows: &Rows<'_>| {
        let mut removes = Vec::new();
        for id in &ids {
            if let Some(record) = rows.get(*id)? {
                removes.push(EntryRemove { id: *id, old: Counted::from(&record) });
            }
        }
        let told = removes.len();
        Ok(Plan { puts: Vec::new(), removes, due: None, told })
    };
    Ok(entries.change(Cause::Asked, plan).await?.0)
}

described! {
/// What to change of an entry; what is left out stays.
struct UpdateBody {
    /// The new content. The old one is kept in the history.
    content: Option<Box<str>>,
}
}

async fn update(call: Call) -> Result<Response, Error> {
    let id: MemoryEntryId = call.id("memory_id")?;
    let mut body: UpdateBody = call.json()?;
    let (described, content) = (body.take_described(), body.content);
    // What is wrong is said before anything is looked up twice.
    described.apply(&mut new_record("x".into(), "api"))?;
    let settings = settings(&call)?;
    let entries = of_agent(&call, owner(&call, id).await?)?;
    let row = change::update(&entries, id, move |record, now| {
        if let Some(content) = &content {
            replace_content(record, content.clone(), now);
        }
        let level = record.level;
        if described.apply(record).is_ok() && record.level != level {
            set_expiry(record, &settings, now);
        }
    });
    reply::ok(&MemoryEntry::from(row.await?))
}

/// It is done.
#[derive(Serialize, JsonSchema)]
struct Deleted {
    /// `deleted`.
    status: &'static str,
    id: Uuid,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let id: MemoryEntryId = call.id("memory_id")?;
    let entries = of_agent(&call, owner(&call, id).await?)?;
    if delete(&entries, vec![id]).await? == 0 {
        return Err(not_found(id).into());
    }
    reply::ok(&Deleted { status: "deleted", id: id.0 })
}

/// The earlier contents of an entry.
#[derive(Serialize, JsonSchema)]
struct History {
    memory_id: Uuid,
    /// The content now.
    content: Box<str>,
    /// At most 10, the oldest first.
    versions: Vec<Version>,
    version_count: usize,
}

/// The entry in the path, with the agent that keeps it.
async fn read_entry(call: &Call) -> Result<EntryRow, Error> {
    let id: MemoryEntryId = call.id("memory_id")?;
    let entries = of_agent(call, owner(call, id).await?)?;
    // Rows of a deleted agent are there until they are erased.
    entries.usage().await?;
    let record = entries.read(move |rows| rows.get(id)).await?.ok_or_else(|| not_found(id))?;
    Ok(EntryRow { agent: entries.agent, id, record })
}

async fn show(call: Call) -> Result<Response, Error> {
    reply::ok(&MemoryEntry::exported(read_entry(&call).await?))
}

async fn history(call: Call) -> Result<Response, Error> {
    let EntryRow { id, record, .. } = read_entry(&call).await?;
    let versions: Vec<Version> = record.versions.into_iter().map(Version::from).collect();
    reply::ok(&History { memory_id: id.0, content: record.content, version_count: versions.len(), versions })
}

/// The level in the path.
pub(crate) fn level_of(call: &Call) -> Result<agentsvc_components::proactive_memory::Level, Error> {
    level(&call.param("level")?)
}
