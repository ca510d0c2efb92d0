//! Sessions of all agents (spec 2, Sessions).

use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::session::{CleanupSessions, GetSession, ListSessions, RemoveSession, SetLabel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::transcript::{self, Transcript, TranscriptQuery};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::pages::Shape;
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::{lists, reply};
use crate::session::shape::{SessionCursor, SessionItem, SessionList};

/// Days after which an unused session is old, unless the request says otherwise.
const OLD_DAYS: u32 = 30;
const MS_PER_DAY: i64 = 86_400_000;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/sessions", "List the sessions of all agents", |call| Box::pin(list(call)))
        .reaching(Reach::Filtered)
        .large()
        .query::<SessionsQuery>()
        .replies(&[
            Reply::json::<SessionList>(200, "the sessions, grouped by agent"),
            Reply::error(404, "the agent does not exist"),
        ]),
    Route::post("/api/sessions/cleanup", "Delete old sessions", |call| Box::pin(cleanup(call)))
        .body::<CleanupBody>()
        .replies(&[Reply::json::<CleanedUp>(200, "the number of deleted sessions")]),
    Route::get("/api/sessions/{id}", "Get a session", |call| Box::pin(show(call)))
        .reaching(Reach::Filtered)
        .answer_max(transcript::CHUNK_MEMORY)
        .query::<TranscriptQuery>()
        .replies(&[Reply::json::<Transcript>(200, "the session and its messages, oldest first")]),
    Route::delete("/api/sessions/{id}", "Delete a session", |call| Box::pin(remove(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<Removed>(200, "deleted")]),
    Route::put("/api/sessions/{id}/label", "Label a session", |call| Box::pin(label(call)))
        .reaching(Reach::Filtered)
        .body::<LabelBody>()
        .replies(&[Reply::json::<Labelled>(200, "labelled"), Reply::error(409, "the label is already taken")]),
];

/// Filter for sessions.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SessionsQuery {
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
    /// Only of this agent.
    agent_id: Option<Uuid>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let SessionsQuery { limit, cursor, agent_id } = call.query()?;
    list_of(&call, Which { agent: agent_id.map(AgentId), newest_first: false, limit, cursor }).await
}

/// Which sessions a list shows.
pub(crate) struct Which {
    pub(crate) agent: Option<AgentId>,
    /// The last made first; only of one agent.
    pub(crate) newest_first: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) cursor: Option<String>,
}

/// Answers with a list of sessions.
pub(crate) async fn list_of(call: &Call, which: Which) -> Result<Response, Error> {
    let (limit, after) = (lists::limit(which.limit)?, lists::cursor::<SessionCursor>(which.cursor.as_deref())?);
    let bridge = call.api.bridge.acting_as(call.actor());
    lists::answer(limit, after, Shape::of("sessions"), move |after, limit| {
        let bridge = bridge.clone();
        let after = after.map(|SessionCursor(position)| position);
        let command =
            ListSessions { agent: which.agent, newest_first: which.newest_first, matching: None, after, limit };
        async move {
            let page = bridge.ask(command).await?;
            let items = page.items.into_iter().map(SessionItem).collect();
            Ok(Page { items, next: page.next.map(SessionCursor), total: page.total.map(|total| total as u64) })
        }
    })
    .await
}

async fn show(call: Call) -> Result<Response, Error> {
    let session = call.ask(GetSession::ById(call.id("id")?)).await?;
    transcript::respond(&call.api, &session, call.query()?).await
}

/// The session was deleted.
#[derive(Serialize, JsonSchema)]
struct Removed {
    status: &'static str,
    session_id: Uuid,
    agent_id: Uuid,
    /// The agent's new current session if the deleted one was current.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_session_id: Option<Uuid>,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let removed = call.ask(RemoveSession { session: call.id("id")? }).await?;
    reply::ok(&Removed {
        status: "deleted",
        session_id: removed.session.0,
        agent_id: removed.agent.0,
        new_session_id: removed.replaced_by.map(|session| session.0),
    })
}

/// New label; empty removes it.
#[derive(Deserialize, JsonSchema)]
struct LabelBody {
    /// The label; empty removes it.
    label: String,
}

/// The label was set.
#[derive(Serialize, JsonSchema)]
struct Labelled {
    status: &'static str,
    session_id: Uuid,
    label: Option<String>,
}

async fn label(call: Call) -> Result<Response, Error> {
    let session: SessionId = call.id("id")?;
    let LabelBody { label } = call.json()?;
    let label = call.ask(SetLabel { session, label }).await?;
    reply::ok(&Labelled { status: "updated", session_id: session.0, label })
}

/// Which sessions to delete.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CleanupBody {
    /// Delete sessions unused for this many days. Default: 30. Current, labeled and busy sessions are kept.
    older_than_days: Option<u32>,
}

/// Deleted sessions.
#[derive(Serialize, JsonSchema)]
struct CleanedUp {
    status: &'static str,
    removed: usize,
}

async fn cleanup(call: Call) -> Result<Response, Error> {
    let CleanupBody { older_than_days } = call.json_or_default()?;
    let age_ms = i64::from(older_than_days.unwrap_or(OLD_DAYS)) * MS_PER_DAY;
    let unused_since = crate::http::timestamp::timestamp_now().plus_ms(-age_ms);
    let (mut removed, mut after) = (0, None);
    loop {
        let (went, next) = call.ask(CleanupSessions { unused_since, after }).await?;
        removed += went;
        if next.is_none() {
            return reply::ok(&CleanedUp { status: "cleaned", removed });
        }
        after = next;
    }
}
