//! The sessions of one agent (spec 1, Agents; States and transitions, Session).

use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::compaction::CompactSession;
use agentsvc_systems::session::{ClearHistory, CreateSession, FindByLabel, GetSession, ResetSession, SwitchSession};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::transcript::{self, Transcript, TranscriptQuery};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::session::routes::{self, Which};
use crate::session::shape::SessionList;

const SESSION: &[Reply] = &[Reply::json::<Transcript>(200, "the session and its messages, oldest first")];

/// What a compaction costs the client's rate budget: it asks a model.
const COMPACT_COST: u32 = 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/agents/{id}/session", "Get the current session of an agent", |call| Box::pin(current(call)))
        .answer_max(transcript::CHUNK_MEMORY)
        .query::<TranscriptQuery>()
        .replies(SESSION),
    Route::post("/api/agents/{id}/session/reset", "Reset the current session", |call| Box::pin(reset(call)))
        .replies(&[Reply::json::<Reset>(200, "reset")]),
    Route::post("/api/agents/{id}/session/compact", "Compact a session", |call| Box::pin(compact(call)))
        .cost(COMPACT_COST)
        .body::<CompactBody>()
        .replies(&[
            Reply::json::<Compacted>(200, "compacted, or nothing to compact"),
            Reply::error(403, "the session belongs to another agent"),
            Reply::error(409, "the history was cleared in the meantime"),
            Reply::error(500, "no summary could be created; nothing was changed"),
        ]),
    Route::delete("/api/agents/{id}/history", "Clear the history of all sessions of an agent", |call| {
        Box::pin(clear(call))
    })
    .replies(&[Reply::json::<Cleared>(200, "cleared; the sessions are kept")]),
    Route::get("/api/agents/{id}/sessions", "List the sessions of an agent", |call| Box::pin(list(call)))
        .large()
        .query::<PageQuery>()
        .replies(&[Reply::json::<SessionList>(200, "the sessions in order of creation")]),
    Route::post("/api/agents/{id}/sessions", "Create a session", |call| Box::pin(create(call)))
        .body::<CreateBody>()
        .replies(&[Reply::json::<Created>(201, "created"), Reply::error(409, "the label is already taken")]),
    Route::post("/api/agents/{id}/sessions/{session_id}/switch", "Switch to a session", |call| Box::pin(switch(call)))
        .replies(&[
            Reply::json::<Switched>(200, "switched"),
            Reply::error(403, "the session belongs to another agent"),
        ]),
    Route::get("/api/agents/{id}/sessions/by-label/{label}", "Get a session by label", |call| Box::pin(by_label(call)))
        .answer_max(transcript::CHUNK_MEMORY)
        .query::<TranscriptQuery>()
        .replies(SESSION),
];

async fn current(call: Call) -> Result<Response, Error> {
    let session = call.ask(GetSession::Current(call.id("id")?)).await?;
    transcript::respond(&call.api, &session, call.query()?).await
}

async fn by_label(call: Call) -> Result<Response, Error> {
    let label = call.param("label")?.trim().to_owned();
    let session = call.ask(FindByLabel { agent: call.id("id")?, label }).await?;
    transcript::respond(&call.api, &session, call.query()?).await
}

/// The session was reset.
#[derive(Serialize, JsonSchema)]
struct Reset {
    status: &'static str,
    agent_id: Uuid,
    new_session_id: Uuid,
}

async fn reset(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let fresh = call.ask(ResetSession { agent }).await?;
    reply::ok(&Reset { status: "reset", agent_id: agent.0, new_session_id: fresh.0 })
}

/// What to compact.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CompactBody {
    /// A session of the agent. Default: the current session.
    session_id: Option<Uuid>,
}

/// The session was compacted.
#[derive(Serialize, JsonSchema)]
struct Compacted {
    status: &'static str,
    /// A sentence with the counts.
    message: String,
    agent_id: Uuid,
    session_id: Uuid,
    messages_before: u32,
    /// The summary counts as one.
    messages_after: u32,
    /// Messages replaced by the summary; 0 if there was nothing to compact.
    messages_summarised: u32,
}

async fn compact(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let session = call.json_or_default::<CompactBody>()?.session_id.map(SessionId);
    // When the client goes, nobody waits any more; the compaction goes on.
    let done = call.ask(CompactSession { agent, session }).await?;
    reply::ok(&Compacted {
        status: "compacted",
        message: done.sentence(),
        agent_id: agent.0,
        session_id: done.session.0,
        messages_before: done.messages_before,
        messages_after: done.messages_after,
        messages_summarised: done.messages_summarised,
    })
}

/// The history was cleared.
#[derive(Serialize, JsonSchema)]
struct Cleared {
    status: &'static str,
    agent_id: Uuid,
    messages_removed: u64,
}

async fn clear(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let messages_removed = call.ask(ClearHistory { agent }).await?;
    reply::ok(&Cleared { status: "cleared", agent_id: agent.0, messages_removed })
}

/// Options of the list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PageQuery {
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
    /// `newest`: newest first. Default: in order of creation.
    order: Option<String>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let PageQuery { limit, cursor, order } = call.query()?;
    let newest_first = match order.as_deref() {
        None | Some("oldest") => false,
        Some("newest") => true,
        Some(_) => return Err(Error::bad_field("order", "query parameter 'order': expected oldest or newest")),
    };
    routes::list_of(&call, Which { agent: Some(agent), newest_first, limit, cursor }).await
}

/// A new session.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CreateBody {
    /// Label, unique within the agent.
    label: Option<String>,
}

/// The session was created.
#[derive(Serialize, JsonSchema)]
struct Created {
    session_id: Uuid,
    agent_id: Uuid,
    label: Option<String>,
}

async fn create(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let CreateBody { label } = call.json_or_default()?;
    let kept = label.as_deref().map(str::trim).filter(|label| !label.is_empty()).map(str::to_owned);
    let session = call.ask(CreateSession { agent, label }).await?;
    reply::created(&Created { session_id: session.0, agent_id: agent.0, label: kept })
}

/// Another session is current.
#[derive(Serialize, JsonSchema)]
struct Switched {
    status: &'static str,
    agent_id: Uuid,
    session_id: Uuid,
}

async fn switch(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let session: SessionId = call.id("session_id")?;
    let session = call.ask(SwitchSession { agent, session }).await?;
    reply::ok(&Switched { status: "switched", agent_id: agent.0, session_id: session.0 })
}
