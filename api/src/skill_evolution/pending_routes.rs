//! Changes of skills that agents proposed, over HTTP.

use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::skill_evolution::limits::SKILL_CHANGELOG_BYTES_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::audit_kinds::{SKILL_CHANGE_APPROVED, SKILL_CHANGE_REJECTED};
use super::evolution::{Candidate, SkillEvolution};
use super::routes::{BLOCKED, CONFLICT, COST, ChangedShape, FULL, TOO_LARGE};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::skill_source::routes::blocking;

/// What a list costs: it reads a file for each row.
const LIST_COST: u32 = 5;

const UNKNOWN: Reply = Reply::error(404, "no such change waits");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/skills/pending", "List proposed changes of skills", |call| Box::pin(list(call)))
        .large()
        .cost(LIST_COST)
        .query::<PendingQuery>()
        .replies(&[Reply::json::<PendingList>(
            200,
            "changes that wait for a decision, oldest first, without their texts",
        )]),
    Route::get("/api/skills/pending/{id}", "Get a proposed change of a skill", |call| Box::pin(get(call)))
        .replies(&[Reply::json::<PendingShape>(200, "the change with its texts"), UNKNOWN]),
    Route::post("/api/skills/pending/{id}/approve", "Approve a proposed change of a skill", |call| {
        Box::pin(approve(call))
    })
    .cost(COST)
    .body::<DecisionBody>()
    .replies(&[
        Reply::json::<ChangedShape>(200, "the change was made and is in use"),
        BLOCKED,
        Reply::error(404, "no such change waits, or the skill is gone"),
        CONFLICT,
        TOO_LARGE,
        FULL,
    ]),
    Route::post("/api/skills/pending/{id}/reject", "Reject a proposed change of a skill", |call| {
        Box::pin(reject(call))
    })
    .without_room()
    .body::<DecisionBody>()
    .replies(&[Reply::json::<Rejected>(200, "the change is gone"), UNKNOWN]),
];

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PendingQuery {
    /// Only those of this agent.
    agent: Option<Uuid>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DecisionBody {
    /// Why, for the audit log; at most 1,024 bytes.
    reason: String,
}

#[derive(Serialize, JsonSchema)]
struct PendingList {
    candidates: Vec<Candidate>,
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct PendingShape {
    candidate: Candidate,
}

#[derive(Serialize, JsonSchema)]
struct Rejected {
    /// `rejected`.
    status: &'static str,
    id: Uuid,
}

async fn list(call: Call) -> Result<Response, Error> {
    let PendingQuery { agent } = call.query()?;
    let evolution = call.api.service::<dyn SkillEvolution>()?;
    let candidates = blocking(move || evolution.pending(agent)).await?;
    reply::ok(&PendingList { total: candidates.len(), candidates })
}

async fn get(call: Call) -> Result<Response, Error> {
    reply::ok(&PendingShape { candidate: candidate(&call).await? })
}

async fn candidate(call: &Call) -> Result<Candidate, Error> {
    let id: Uuid = call.id("id")?;
    let evolution = call.api.service::<dyn SkillEvolution>()?;
    Ok(blocking(move || evolution.candidate(id)).await?)
}

async fn approve(call: Call) -> Result<Response, Error> {
    let (found, evolution) = decided(&call, SKILL_CHANGE_APPROVED).await?;
    let (id, verb) = (found.id, found.action);
    let changed = blocking(move || evolution.approve(id)).await?;
    reply::ok(&ChangedShape::of(verb, changed))
}

async fn reject(call: Call) -> Result<Response, Error> {
    let (found, evolution) = decided(&call, SKILL_CHANGE_REJECTED).await?;
    let id = found.id;
    blocking(move || evolution.reject(id)).await?;
    reply::ok(&Rejected { status: "rejected", id })
}

/// The change that a decision is about. The decision is on the audit log before it takes effect.
async fn decided(call: &Call, kind: AuditKind) -> Result<(Candidate, Arc<dyn SkillEvolution>), Error> {
    let DecisionBody { reason } = call.json_or_default()?;
    if reason.len() > SKILL_CHANGELOG_BYTES_MAX {
        return Err(Error::bad_field("reason", format!("reason: longer than {SKILL_CHANGELOG_BYTES_MAX} bytes")));
    }
    let found = candidate(call).await?;
    let Candidate { id, skill_name, action, .. } = &found;
    let details = json!({ "id": id, "skill": skill_name, "action": action, "reason": reason });
    call.ask(NoteAction { kind, agent: Some(AgentId(found.agent_id)), details }).await?;
    Ok((found, call.api.service::<dyn SkillEvolution>()?))
}
