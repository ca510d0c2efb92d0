//! Agents: list, create, read, remove, clone (spec 1, Agents).

use crate::agent::audit_kinds;
use crate::http::blocking::spawn_blocking;
use agentsvc_components::kernel::scope::Scope;
use agentsvc_components::manifest::{Manifest, SharedManifest};
use agentsvc_components::{AgentId, Refusal};
use agentsvc_systems::agent::{AgentFilter, CloneAgent, GetAgent, ListAgents, RemoveAgents, SpawnAgent, Spawned};
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::manifest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::Api;
use crate::agent::shape::{AgentDetail, State, Summary, SummaryShape};
use crate::agent::signatures::{ManifestSignatures, Signature};
use crate::agent::texts::ManifestTexts;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::{lists, reply};
use crate::provider::catalog::Catalog;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/agents", "List agents", |call| Box::pin(list(call)))
        .reaching(Reach::Filtered)
        .large()
        .query::<AgentsQuery>()
        .replies(&[Reply::json::<Vec<SummaryShape<'_>>>(200, "the agents in order of creation")]),
    Route::post("/api/agents", "Create an agent from a TOML manifest", |call| Box::pin(create(call)))
        .reaching(Reach::Filtered)
        .body::<CreateBody>()
        .replies(&[
            Reply::json::<Created<'_>>(201, "created"),
            Reply::error(403, "the manifest is not signed by a trusted key"),
            Reply::error(409, "the name is already taken"),
        ]),
    Route::get("/api/agents/{id}", "Get an agent", |call| Box::pin(show(call)))
        .replies(&[Reply::json::<AgentDetail<'_>>(200, "the agent")]),
    Route::delete("/api/agents/{id}", "Delete an agent", |call| Box::pin(remove(call)))
        .replies(&[Reply::json::<Killed>(200, "deleted with its sessions and their history")]),
    Route::post("/api/agents/{id}/clone", "Clone an agent with a new session", |call| Box::pin(clone(call)))
        .body::<CloneBody>()
        .replies(&[Reply::json::<Created<'_>>(201, "created"), Reply::error(409, "the name is already taken")]),
];

/// Filter for agents.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct AgentsQuery {
    /// Maximum number of items. The response header `x-next-cursor` leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
    /// Only the agent with exactly this name.
    name: Option<String>,
    /// Part of the name, case-insensitive.
    q: Option<String>,
    /// Only with this state.
    state: Option<State>,
    /// Only with this tag.
    tag: Option<String>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let query: AgentsQuery = call.query()?;
    let filter = AgentFilter {
        name: query.name.map(Into::into),
        matching: query.q.filter(|part| !part.is_empty()),
        state: query.state.map(Into::into),
        tag: query.tag.map(Into::into),
        owner: call.principal.limited_to(),
        is_shared: false,
    };
    let command = move |after, limit| ListAgents { filter: filter.clone(), after, limit };
    let page = ListQuery { limit: query.limit, cursor: query.cursor };
    lists::of_world(&call, page, Shape::array, command, Summary).await
}

/// A new agent.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateBody {
    /// The manifest as TOML text.
    pub(crate) manifest_toml: String,
    /// Ed25519 signature of the text by a trusted key, in hex or base64.
    #[serde(default)]
    pub(crate) manifest_signature: Option<String>,
}

/// The created agent.
#[derive(Serialize, JsonSchema)]
struct Created<'a> {
    agent_id: Uuid,
    name: &'a str,
}

impl<'a> Created<'a> {
    fn of(spawned: &'a Spawned) -> Self {
        Self { agent_id: spawned.agent.0, name: &spawned.name }
    }
}

async fn create(call: Call) -> Result<Response, Error> {
    let body: CreateBody = call.json()?;
    let command = spawn_command(&call.api, body.manifest_toml)?;
    check_runs(call.principal.has(Scope::Chat), &command.manifest)?;
    if let Err(refusal) = check_signature(&call.api, &command.name, &command.text, body.manifest_signature.as_deref()) {
        note_refused(&call, &command.name, &refusal).await;
        return Err(refusal.into());
    }
    let spawned = call.ask(command).await?;
    reply::created(&Created::of(&spawned))
}

/// Refuses an agent that acts by itself where the key may not make agents run.
///
/// # Errors
/// 403.
pub(crate) fn check_runs(may_run: bool, manifest: &Manifest) -> Result<(), Error> {
    if may_run || !manifest.acts_by_itself() {
        return Ok(());
    }
    let text = "the manifest has triggers, a schedule, [autonomous] or auto_dream_enabled, by which the agent runs by itself: \
                your key needs the scope chat for that";
    Err(Error::forbidden(text))
}

/// Checks the signature of a manifest that is to become an agent.
///
/// # Errors
/// As `ManifestSignatures::check`.
pub(crate) fn check_signature(api: &Api, name: &str, text: &str, signature: Option<&str>) -> Result<(), Refusal> {
    let Some(judge) = api.services.get::<dyn ManifestSignatures>() else { return Ok(()) };
    if let Signature::By(key) = judge.check(text, signature)? {
        tracing::info!(%name, %key, "a signed manifest");
    }
    Ok(())
}

/// Puts on record that a manifest was refused because of its signature.
pub(crate) async fn note_refused(call: &Call, name: &str, refusal: &Refusal) {
    let reason = refusal.code.as_deref().unwrap_or("manifest_signature_unreadable");
    tracing::warn!(%name, %reason, "a manifest was refused because of its signature");
    let details = json!({ "name": name, "reason": reason });
    let entry = NoteAction { kind: audit_kinds::MANIFEST_REFUSED, agent: None, details };
    if let Err(error) = call.ask(entry).await {
        tracing::error!(%error, "the refusal of a manifest could not be recorded in the audit log");
    }
}

/// The command that spawns an agent from a manifest's text.
///
/// # Errors
/// 400 naming `manifest_toml`; `line` and `key` stand beside it where they are known.
pub(crate) fn spawn_command(api: &Api, text: String) -> Result<SpawnAgent, Error> {
    let parsed = manifest::parse(&text).map_err(|error| {
        let (position, key) = (error.position, error.key.clone());
        let mut answer = Error::bad_field("manifest_toml", format!("manifest_toml: {error}"));
        if let Some(at) = position {
            answer = answer.with("line", at.line).with("column", at.column);
        }
        if let Some(key) = key {
            answer = answer.with("key", key);
        }
        answer
    })?;
    if let Some(Err(refusal)) = api.services.get::<dyn Catalog>().map(|judge| judge.check_variables(&parsed.manifest)) {
        let answer = Error::bad_field("manifest_toml", format!("manifest_toml: {}", refusal.message));
        return Err(answer.with("key", refusal.field.unwrap_or_default()));
    }
    let hash = manifest::hash(&parsed.manifest);
    Ok(SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text })
}

async fn show(call: Call) -> Result<Response, Error> {
    let view = call.ask(GetAgent(call.id("id")?)).await?;
    reply::ok(&AgentDetail::of(&view))
}

/// The deleted agent.
#[derive(Serialize, JsonSchema)]
struct Killed {
    status: &'static str,
    agent_id: Uuid,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let results = call.ask(RemoveAgents(vec![agent])).await?;
    for (_, result) in results {
        result?;
    }
    reply::ok(&Killed { status: "killed", agent_id: agent.0 })
}

/// Options of the clone.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CloneBody {
    /// Name. Default: `<name>-copy`, `<name>-copy-2` and so on. `new_name` is accepted too.
    #[serde(alias = "new_name")]
    name: Option<String>,
}

async fn clone(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let body: CloneBody = call.json_or_default()?;
    if let Some(name) = &body.name {
        check_name(name)?;
    }
    let original = call.ask(GetAgent(agent)).await?;
    check_runs(call.principal.has(Scope::Chat), &original.manifest.manifest)?;
    let text = manifest_text(&call, agent, &original.name, original.manifest).await?;
    let spawned = call.ask(CloneAgent { agent, name: body.name.map(Into::into), text }).await?;
    reply::created(&Created::of(&spawned))
}

/// The manifest of an agent as it was written, with its later changes; made from the typed form should the text be missing.
pub(crate) async fn manifest_text(
    call: &Call,
    agent: AgentId,
    name: &str,
    typed: SharedManifest,
) -> Result<String, Error> {
    let content = call.api.service::<dyn ManifestTexts>()?;
    let name = name.to_owned();
    let read = spawn_blocking(move || {
        let written = content.manifest_text(agent)?.unwrap_or_default();
        Ok::<_, Error>(manifest::render(&written, &name, &typed.manifest))
    });
    read.await.map_err(|_| Error::internal("reading the manifest was interrupted"))?
}

/// Checks a name that came in by itself.
///
/// # Errors
/// 400 naming `name`.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    manifest::validate_name(name).map_err(|message| Error::bad_field("name", message))
}
