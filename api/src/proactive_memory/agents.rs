//! The routes over the entries of one agent.

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::Level;
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::proactive_memory::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::proactive_memory::change::of_agent;
use crate::proactive_memory::list::{self, EntriesQuery, MemoryList, Source};
use crate::proactive_memory::routes::{Stats, level_of, settings};
use crate::proactive_memory::shape::level;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/memory/agents/{id}", "List the memory entries of an agent", |call| Box::pin(list(call)))
        .reaching(Reach::Agent)
        .large()
        .query::<EntriesQuery>()
        .replies(&[Reply::json::<MemoryList>(200, "the entries")]),
    Route::delete("/api/memory/agents/{id}", "Delete all memory entries of an agent", |call| Box::pin(clear(call)))
        .reaching(Reach::Agent)
        .replies(&[Reply::json::<Cleared>(200, "deleted")]),
    Route::get("/api/memory/agents/{id}/stats", "Count the memory entries of an agent", |call| Box::pin(stats(call)))
        .reaching(Reach::Agent)
        .replies(&[Reply::json::<Stats>(200, "the counts")]),
    Route::delete("/api/memory/agents/{id}/level/{level}", "Delete the memory entries of one level", |call| {
        Box::pin(clear_level(call))
    })
    .reaching(Reach::Agent)
    .replies(&[Reply::json::<Cleared>(200, "deleted")]),
    Route::get("/api/memory/agents/{id}/count", "Get the number of an agent's memory entries", |call| {
        Box::pin(count(call))
    })
    .reaching(Reach::Agent)
    .query::<CountQuery>()
    .replies(&[Reply::json::<Count>(200, "the number")]),
];

async fn list(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    of_agent(&call, agent)?.usage().await?;
    list::answer(&call, Source::Agent(agent)).await
}

/// What was deleted.
#[derive(Serialize, JsonSchema)]
struct Cleared {
    /// `deleted`.
    status: &'static str,
    agent_id: Uuid,
    /// Only entries of this level were.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'static str>,
    deleted: usize,
}

async fn clear(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    let deleted = of_agent(&call, agent)?.remove_where(Cause::Asked, |_| true).await?;
    reply::ok(&Cleared { status: "deleted", agent_id: agent.0, level: None, deleted })
}

async fn clear_level(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let entries = of_agent(&call, agent)?;
    entries.usage().await?;
    let level = level_of(&call)?;
    let deleted = entries.remove_where(Cause::Asked, move |record| record.level == level).await?;
    reply::ok(&Cleared { status: "deleted", agent_id: agent.0, level: Some(level.as_str()), deleted })
}

async fn stats(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let usage = of_agent(&call, agent)?.usage_now().await?;
    let own = call.ask(GetAgent(agent)).await?.memory;
    let mut stats = Stats::new(&settings(&call)?.for_agent(&own));
    let categories = usage.counts.categories.into_iter().map(|(name, count)| (name, u64::from(count)));
    stats.add(usage.counts.levels.map(u64::from), categories);
    reply::ok(&stats)
}

/// Which entries to count.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CountQuery {
    /// Only entries of this level: `user`, `session` or `agent`.
    level: Option<String>,
}

/// How many entries an agent has.
#[derive(Serialize, JsonSchema)]
struct Count {
    agent_id: Uuid,
    count: u32,
    /// The level that was counted; null for all.
    level: Option<&'static str>,
}

async fn count(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let CountQuery { level: word } = call.query()?;
    let only: Option<Level> = word.as_deref().map(level).transpose()?;
    let counts = of_agent(&call, agent)?.usage_now().await?.counts;
    let count = only.map_or_else(|| counts.entries(), |level| counts.levels[level as usize]);
    reply::ok(&Count { agent_id: agent.0, count, level: only.map(Level::as_str) })
}
