//! The audit trail (spec 3, Audit and security).

use agentsvc_components::kernel::error_codes;
use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::audit::record::AuditEntry;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, Refusal};
use agentsvc_systems::audit::GetAuditHead;
use agentsvc_systems::kernel::record::hex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::audit::trail::{AuditLog, Searches, Verdict, Verifications, Wanted};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

/// Entries of an answer when the query does not say (spec 3, Limits).
const RECENT_DEFAULT: usize = 50;
/// Characters of the text that is looked for.
const TEXT_CHARS_MAX: usize = 200;
/// What a walk over the trail costs the client's rate budget.
const COST: u32 = 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/audit/recent", "List the newest audit log entries", |call| Box::pin(recent(call)))
        .large()
        .query::<RecentQuery>()
        .replies(&[Reply::json::<Recent>(200, "the entries, newest first")]),
    Route::get("/api/audit/verify", "Verify the audit log", |call| Box::pin(verify(call)))
        .cost(COST)
        .replies(&[Reply::json::<Verified>(200, "`valid`, or `broken` with the first broken entry")]),
];

/// Options of the list.
#[derive(Deserialize, JsonSchema)]
struct RecentQuery {
    /// Maximum number of entries, up to 500. Default: 50.
    limit: Option<u64>,
    /// Only entries before this number: `next_before` of the page before.
    before: Option<u64>,
    /// Only entries of this type, such as `tool_called`.
    event_type: Option<String>,
    /// Only entries about this agent or by it.
    agent_id: Option<Uuid>,
    /// Only entries with this text in their type, actor or details, in any case; at most 200 characters.
    q: Option<String>,
}

/// The newest entries.
#[derive(Serialize, JsonSchema)]
struct Recent {
    entries: Vec<Entry>,
    /// Total number of stored entries.
    total: u64,
    /// `before` of the next page; null at the end. With a filter, a page can have few entries or none and yet not be the last:
    /// a request looks at 20,000 entries.
    next_before: Option<u64>,
}

shape! {
    /// An audit log entry.
    struct Entry from entry: AuditEntry {
        let AuditEntry { id, at, event_type, agent, actor, details, prev_hash, hash } = entry;
    } {
        /// Sequence number from 1, without gaps.
        id: u64 = id,
        timestamp: Moment = Moment(at),
        /// Event type, such as `agent_spawned`.
        event_type: Box<str> = event_type,
        /// Agent that it is about; null if none.
        agent_id: Option<Uuid> = agent.map(|agent| agent.0),
        /// Actor: `api`, `key:<id>`, `user:<id>/key:<id>`, `agent:<id>/turn:<id>` or `system`.
        actor: Box<str> = actor,
        /// Details: a JSON object as text.
        details: Box<str> = details,
        /// SHA-256 of the entry, in hex.
        hash: String = hex(&hash),
        /// Hash of the previous entry; zeros in the first.
        prev_hash: String = hex(&prev_hash),
    }
}

fn trail(call: &Call) -> Result<Arc<dyn AuditLog>, Error> {
    call.api.services.get::<dyn AuditLog>().ok_or_else(|| {
        Refusal::busy("the daemon is loading; try again in a moment", 1).with_code(error_codes::LOADING).into()
    })
}

fn failed() -> Error {
    Error::internal("the audit log could not be read")
}

async fn recent(call: Call) -> Result<Response, Error> {
    let RecentQuery { limit: asked, before, event_type, agent_id, q } = call.query()?;
    if asked == Some(0) {
        return Err(Error::bad_field("limit", "query parameter 'limit' must be at least 1"));
    }
    let asked = asked.map_or(RECENT_DEFAULT, |asked| usize::try_from(asked).unwrap_or(usize::MAX));
    if q.as_ref().is_some_and(|q| q.chars().count() > TEXT_CHARS_MAX) {
        let text = format!("query parameter 'q' must have at most {TEXT_CHARS_MAX} characters");
        return Err(Error::bad_field("q", text));
    }
    let wanted = Wanted {
        before,
        limit: asked.min(limit::AUDIT_RECENT_MAX),
        event_type: event_type.filter(|kind| !kind.is_empty()).map(Into::into),
        agent: agent_id.map(AgentId),
        text: q.map(|q| q.trim().to_lowercase()).filter(|q| !q.is_empty()).map(Into::into),
    };
    let trail = trail(&call)?;
    let head = call.ask(GetAuditHead).await?;
    // The place is held until the work has ended, whether the client still waits for it or not.
    let searching = if wanted.is_filter() { Some(call.api.state::<Searches>().enter().await?) } else { None };
    let read = spawn_blocking(move || {
        let found = trail.recent(head, &wanted);
        drop(searching);
        found
    });
    let found = read.await.map_err(|_| failed())?.map_err(|_| failed())?;
    let entries = found.entries.into_iter().map(Entry::from).collect();
    reply::ok(&Recent { entries, total: head.kept(), next_before: found.next })
}

/// Result of a verification.
#[derive(Default, Serialize, JsonSchema)]
struct Verified {
    /// `valid` or `broken`.
    status: &'static str,
    /// Number of entries found, or expected if the log is broken.
    chain_length: u64,
    /// Time of the oldest entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_entry: Option<Moment>,
    /// Time of the newest entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_entry: Option<Moment>,
    /// Number of verified checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoints: Option<u64>,
    /// Newest signed entry; 0 if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_up_to: Option<u64>,
    /// First broken entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken_at: Option<u64>,
    /// Reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The Ed25519 key that checkpoints are signed with, in hex.
    public_key: String,
    /// Newest entry signed in `audit.heads_file`, which the log was compared with; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared_with: Option<u64>,
}

impl From<Verdict> for Verified {
    fn from(Verdict { head, walked, public_key, compared_with }: Verdict) -> Self {
        match walked {
            Ok(walked) => Self {
                status: "valid",
                chain_length: walked.entries,
                first_entry: walked.first_at.map(Moment),
                last_entry: walked.last_at.map(Moment),
                checkpoints: Some(walked.checkpoints),
                signed_up_to: Some(walked.signed),
                public_key,
                compared_with,
                ..Self::default()
            },
            Err(broken) => Self {
                status: "broken",
                chain_length: head.kept(),
                broken_at: Some(broken.at),
                reason: Some(broken.reason),
                public_key,
                compared_with,
                ..Self::default()
            },
        }
    }
}

async fn verify(call: Call) -> Result<Response, Error> {
    let trail = trail(&call)?;
    let walking = call.api.state::<Verifications>().enter().await?;
    let (bridge, handle) = (call.api.bridge.clone(), Handle::current());
    let walk = move || {
        let verdict = trail.verify(&|| handle.block_on(bridge.ask(GetAuditHead)));
        drop(walking);
        verdict
    };
    let verdict = spawn_blocking(walk).await.map_err(|_| failed())??;
    reply::ok(&Verified::from(verdict))
}
