//! Search over sessions: labels, agent names and what was said (spec 2, Sessions). A request reads a bounded number of
//! rows and says with `truncated` and `next_cursor` when there is more to read.

use agentsvc_components::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::{lists, reply};
use crate::session::content::Content;
use crate::session::search::{SearchCursor, SearchFor, search};
use crate::session::shape::SessionShape;

/// Hits of one answer, unless the request says otherwise.
const HITS_DEFAULT: usize = 50;
/// What a search costs the client's rate budget: it reads much.
const COST: u32 = 10;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/sessions/search", "Search sessions by label, agent name and message", |call| {
        Box::pin(find(call))
    })
    .reaching(Reach::Filtered)
    .large()
    .cost(COST)
    .query::<SearchQuery>()
    .replies(&[Reply::json::<Found<'_>>(200, "the matching sessions"), Reply::error(404, "the agent does not exist")])];

/// Search criteria. All given criteria must match.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SearchQuery {
    /// Part of the label, agent name or a message, case-insensitive.
    #[serde(alias = "query")]
    q: Option<String>,
    /// Only sessions of this agent.
    agent_id: Option<Uuid>,
    /// Part of the label, case-insensitive.
    label: Option<String>,
    /// Maximum number of sessions. Default: 50.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// The sessions found.
#[derive(Serialize, JsonSchema)]
struct Found<'a> {
    sessions: Vec<HitShape<'a>>,
    /// Number of sessions in this response.
    total: usize,
    /// Whether the search stopped before it was complete.
    truncated: bool,
    /// Cursor to continue the search.
    next_cursor: Option<String>,
}

/// A matching session.
#[derive(Serialize, JsonSchema)]
struct HitShape<'a> {
    #[serde(flatten)]
    session: SessionShape<'a>,
    /// `label`, `agent_name` or `message`; null without `q`.
    matched: Option<&'static str>,
    /// Position in the message.
    excerpt: Option<&'a str>,
}

async fn find(call: Call) -> Result<Response, Error> {
    let query: SearchQuery = call.query()?;
    let limit = lists::limit(query.limit)?.unwrap_or(HITS_DEFAULT);
    let cursor: Option<SearchCursor> = lists::cursor(query.cursor.as_deref())?;
    let wanted =
        SearchFor { text: query.q, label: query.label, agent: query.agent_id.map(AgentId), session: None, limit };
    let search = search(&call.api.bridge, (call.api.service::<dyn Content>()?, call.asker()), wanted, cursor).await?;
    let sessions = search.hits.iter().map(|hit| HitShape {
        session: SessionShape::of(&hit.session),
        matched: hit.matched,
        excerpt: hit.excerpt.as_deref(),
    });
    let sessions: Vec<_> = sessions.collect();
    reply::ok(&Found {
        total: sessions.len(),
        sessions,
        truncated: search.next.is_some(),
        next_cursor: search.next.map(|cursor| cursor.to_string()),
    })
}
