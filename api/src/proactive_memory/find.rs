//! The routes that search.

use std::collections::HashMap;
use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_systems::proactive_memory::limits::{ENTRY_HITS_MAX, ENTRY_QUERY_BYTES_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::{ContentError, Error};
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::proactive_memory::change::{self, of_agent};
use crate::proactive_memory::entries::{now, read_of};
use crate::proactive_memory::search::{Found, Hit, MemorySearch, SearchMode, SearchScope};
use crate::proactive_memory::shape::{MemoryEntry, level};
use crate::proactive_memory::store::{EntryRow, EntryStore};

/// Results when the query does not say.
const LIMIT_DEFAULT: usize = 10;
/// Writes at once of what was found. More: it is not counted.
const COUNTING_MAX: usize = 16;

const FOUND: &[Reply] = &[Reply::json::<SearchResult>(200, "the entries, the best first")];

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/memory/search", "Search memory entries", |call| Box::pin(search_all(call)))
        .large()
        .query::<SearchQuery>()
        .replies(FOUND),
    Route::get("/api/memory/agents/{id}/search", "Search the memory entries of an agent", |call| {
        Box::pin(search_agent(call))
    })
    .reaching(Reach::Agent)
    .large()
    .query::<SearchQuery>()
    .replies(FOUND),
];

/// What to search for.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SearchQuery {
    /// Words to search for. Required.
    q: Option<String>,
    /// Only entries of this agent.
    agent_id: Option<Uuid>,
    /// Only entries about this user.
    user_id: Option<String>,
    /// Only entries of this level: `user`, `session` or `agent`.
    level: Option<String>,
    /// Maximum number of results, 1 to 100. Default: 10.
    limit: Option<usize>,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
struct SearchResult {
    memories: Vec<MemoryEntry>,
    total: usize,
    query: String,
    /// How the entries were ranked: `lexical` (by words) or `hybrid` (by words and vectors).
    mode: &'static str,
}

async fn search_all(call: Call) -> Result<Response, Error> {
    search(&call, None).await
}

async fn search_agent(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    of_agent(&call, agent)?.usage().await?;
    search(&call, Some(agent)).await
}

async fn search(call: &Call, agent: Option<AgentId>) -> Result<Response, Error> {
    let asked: SearchQuery = call.query()?;
    let query = asked.q.filter(|query| !query.trim().is_empty());
    let query = query.ok_or_else(|| Error::bad_field("q", "q: missing; send the words to search for"))?;
    if query.len() > ENTRY_QUERY_BYTES_MAX {
        return Err(Error::bad_field("q", format!("q: longer than {ENTRY_QUERY_BYTES_MAX} bytes")));
    }
    let limit = asked.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=ENTRY_HITS_MAX).contains(&limit) {
        return Err(Error::bad_field("limit", format!("limit: must be 1 to {ENTRY_HITS_MAX}")));
    }
    let scope = SearchScope {
        agent: agent.or(asked.agent_id.map(AgentId)),
        user: asked.user_id.map(String::into_boxed_str),
        level: asked.level.as_deref().map(level).transpose()?,
        turn: None,
    };
    let (index, store) = (call.api.service::<dyn MemorySearch>()?, call.api.service::<dyn EntryStore>()?);
    let words = query.clone();
    let (mode, found) = read_of(move || rows_of(&*index, &*store, &scope, (&words, limit))).await?;
    count(call, &found);
    let memories: Vec<_> = found.into_iter().map(|(row, score)| MemoryEntry::found(row, score)).collect();
    reply::ok(&SearchResult { total: memories.len(), memories, query, mode: mode.as_str() })
}

/// The rows of what the index finds. Those that are of no use any more, or of another scope, are left out.
fn rows_of(
    index: &dyn MemorySearch,
    store: &dyn EntryStore,
    scope: &SearchScope,
    (query, limit): (&str, usize),
) -> Result<(SearchMode, Vec<(EntryRow, f32)>), ContentError> {
    // Some of them may have expired.
    let Found { mode, hits } = index.search(scope, query, limit + limit.min(16))?;
    let (mut found, now) = (Vec::with_capacity(limit), now());
    for Hit { id, agent, score } in hits {
        let Some(record) = store.entry(agent, id)?.filter(|record| record.is_live(now)) else { continue };
        let fits = scope.agent.is_none_or(|only| only == agent)
            && scope.user.as_ref().is_none_or(|user| record.user.as_ref() == Some(user))
            && scope.level.is_none_or(|level| record.level == level);
        if fits && found.len() < limit {
            found.push((EntryRow { agent, id, record }, score));
        }
    }
    Ok((mode, found))
}

/// Bounds the writes of what was found.
struct Counting(Arc<Semaphore>);

impl Default for Counting {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(COUNTING_MAX)))
    }
}

/// Counts that entries were found, behind the answer.
fn count(call: &Call, found: &[(EntryRow, f32)]) {
    let mut by_agent: HashMap<AgentId, Vec<MemoryEntryId>> = HashMap::new();
    found.iter().for_each(|(row, _)| by_agent.entry(row.agent).or_default().push(row.id));
    for (agent, ids) in by_agent {
        let counting = call.api.services.state::<Counting>();
        let (Ok(permit), Ok(entries)) = (Arc::clone(&counting.0).try_acquire_owned(), of_agent(call, agent)) else {
            return;
        };
        tokio::spawn(async move {
            change::found(&entries, ids).await;
            drop(permit);
        });
    }
}
