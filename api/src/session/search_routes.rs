//! Search over sessions: labels, agent names and what was said (spec 2, Sessions). A request reads a bounded number of
//! rows and says with `truncated` and `next_cursor` when there is more to read.

use agentsvc_components::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::{lists, reply};
use crate::session::content::Content;
use crate::session::search::{SearchCursor, SearchFor, search};
use crate::session::shape::SessionShape;

/// Hits of one answer, unless the request says otherwise.
const HITS_DEFAULT: usize = 50;
/// What a search costs the client's rate budget: it reads much.
const COST: u32 = 10;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/sessions/search", "Search labels, agent names and messages", |call| Box::pin(find(call)))
        .cost(COST)
        .query::<SearchQuery>()
        .replies(&[Reply::json::<Found<'_>>(200, "the sessions found"), Reply::error(404, "no such agent")])];

/// What to look for. All that is given must hold.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SearchQuery {
    /// A part of the label, the agent's name or a message, ignoring case.
    #[serde(alias = "query")]
    q: Option<String>,
    /// Only this agent's sessions.
    agent_id: Option<Uuid>,
    /// A part of the label, ignoring case.
    label: Option<String>,
    /// At most so many sessions; 50 when left out.
    limit: Option<usize>,
    /// Go on here: the `next_cursor` of an earlier answer.
    cursor: Option<String>,
}

/// The sessions found.
#[derive(Serialize, JsonSchema)]
struct Found<'a> {
    sessions: Vec<HitShape<'a>>,
    /// Sessions in this answer.
    total: usize,
    /// The search stopped before it had looked at everything.
    truncated: bool,
    /// Where to go on.
    next_cursor: Option<String>,
}

/// A session and why it was found.
#[derive(Serialize, JsonSchema)]
struct HitShape<'a> {
    #[serde(flatten)]
    session: SessionShape<'a>,
    /// `label`, `agent_name` or `message`; null without `q`.
    matched: Option<&'static str>,
    /// The place in the message.
    excerpt: Option<&'a str>,
}

async fn find(call: Call) -> Result<Response, Error> {
    let query: SearchQuery = call.query()?;
    let limit = lists::limit(query.limit)?.unwrap_or(HITS_DEFAULT);
    let cursor: Option<SearchCursor> = lists::cursor(query.cursor.as_deref())?;
    let wanted = SearchFor { text: query.q, label: query.label, agent: query.agent_id.map(AgentId), limit };
    let search = search(&call.api.bridge, call.api.service::<dyn Content>()?, wanted, cursor).await?;
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
