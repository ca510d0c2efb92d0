//! The audit trail (spec 3, Audit and security).

use std::sync::Arc;

use agentsvc_components::Refusal;
use agentsvc_components::audit::record::AuditEntry;
use agentsvc_components::kernel::limit;
use agentsvc_systems::audit::GetAuditHead;
use agentsvc_systems::kernel::record::hex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::audit::trail::{Trail, Verdict, Walks};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::timestamp::Moment;

/// Entries of an answer when the query does not say (spec 3, Limits).
const RECENT_DEFAULT: usize = 50;
/// What a walk over the trail costs the client's rate budget.
const COST: u32 = 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/audit/recent", "The newest entries of the audit trail", |call| Box::pin(recent(call)))
        .query::<RecentQuery>()
        .replies(&[Reply::json::<Recent>(200, "the entries, newest first")]),
    Route::get("/api/audit/verify", "Walk the whole audit trail", |call| Box::pin(verify(call)))
        .cost(COST)
        .replies(&[Reply::json::<Verified>(200, "`valid`, or `broken` with the first entry that is")]),
];

/// What to read.
#[derive(Deserialize, JsonSchema)]
struct RecentQuery {
    /// Entries at most: 50 when left out; more than 500 is cut.
    limit: Option<u64>,
}

/// The newest entries.
#[derive(Serialize, JsonSchema)]
struct Recent {
    entries: Vec<Entry>,
    /// Entries of the whole trail that are kept.
    total: u64,
}

/// One entry (spec 3, Audit entry).
#[derive(Serialize, JsonSchema)]
struct Entry {
    /// Counted from 1, without gaps.
    id: u64,
    timestamp: Moment,
    /// What happened, such as `agent_spawned`.
    event_type: Box<str>,
    /// The agent it is about; null when it is about none.
    agent_id: Option<Uuid>,
    /// Who did it: `api`, `agent:<id>/turn:<id>` or `system`.
    actor: Box<str>,
    /// More about it: a JSON object as text.
    details: Box<str>,
    /// SHA-256 of the entry, in hex.
    hash: String,
    /// That of the entry before; zeros in the first.
    prev_hash: String,
}

impl From<AuditEntry> for Entry {
    fn from(entry: AuditEntry) -> Self {
        let AuditEntry { id, at, event_type, agent, actor, details, prev_hash, hash } = entry;
        Self {
            id,
            timestamp: Moment(at),
            event_type,
            agent_id: agent.map(|agent| agent.0),
            actor,
            details,
            hash: hex(&hash),
            prev_hash: hex(&prev_hash),
        }
    }
}

fn trail(call: &Call) -> Result<Arc<dyn Trail>, Error> {
    call.api
        .services
        .get::<dyn Trail>()
        .ok_or_else(|| Refusal::busy("the world is loading", 1).with_code("loading").into())
}

fn failed() -> Error {
    Error::internal("the audit trail could not be read")
}

async fn recent(call: Call) -> Result<Response, Error> {
    let RecentQuery { limit: asked } = call.query()?;
    if asked == Some(0) {
        return Err(Error::bad_field("limit", "query parameter 'limit' must be at least 1"));
    }
    let asked = asked.map_or(RECENT_DEFAULT, |asked| usize::try_from(asked).unwrap_or(usize::MAX));
    let most = asked.min(limit::AUDIT_RECENT_MAX);
    let trail = trail(&call)?;
    let head = call.ask(GetAuditHead).await?;
    let read = tokio::task::spawn_blocking(move || trail.recent(head, most)).await;
    let entries = read.map_err(|_| failed())?.map_err(|_| failed())?;
    reply::ok(&Recent { entries: entries.into_iter().map(Entry::from).collect(), total: head.kept() })
}

/// What a walk over the trail found.
#[derive(Default, Serialize, JsonSchema)]
struct Verified {
    /// `valid` or `broken`.
    status: &'static str,
    /// Entries that the trail has, or, broken, that it must have.
    chain_length: u64,
    /// When the first kept entry happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_entry: Option<Moment>,
    /// When the newest entry happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_entry: Option<Moment>,
    /// Signed checkpoints that were checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoints: Option<u64>,
    /// Up to which entry the trail is signed; 0 when it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_up_to: Option<u64>,
    /// The first entry that is not as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken_at: Option<u64>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The Ed25519 key that checkpoints are signed with, in hex.
    public_key: String,
}

impl From<Verdict> for Verified {
    fn from(Verdict { head, walked, public_key }: Verdict) -> Self {
        match walked {
            Ok(walked) => Self {
                status: "valid",
                chain_length: walked.entries,
                first_entry: walked.first_at.map(Moment),
                last_entry: walked.last_at.map(Moment),
                checkpoints: Some(walked.checkpoints),
                signed_up_to: Some(walked.signed),
                public_key,
                ..Self::default()
            },
            Err(broken) => Self {
                status: "broken",
                chain_length: head.kept(),
                broken_at: Some(broken.at),
                reason: Some(broken.reason),
                public_key,
                ..Self::default()
            },
        }
    }
}

async fn verify(call: Call) -> Result<Response, Error> {
    let trail = trail(&call)?;
    let walking = call.api.state::<Walks>().enter().await?;
    let (bridge, handle) = (call.api.bridge.clone(), Handle::current());
    let walk = move || {
        let verdict = trail.verify(&|| handle.block_on(bridge.ask(GetAuditHead)));
        drop(walking);
        verdict
    };
    let verdict = tokio::task::spawn_blocking(walk).await.map_err(|_| failed())??;
    reply::ok(&Verified::from(verdict))
}
