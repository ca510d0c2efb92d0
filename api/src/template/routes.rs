//! Agent types: manifests to make agents from, stored ones and those of live agents (spec 2, Agent types).

use crate::template::audit_kinds;
use crate::template::error_codes;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::AgentId;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::limit::PAGE_ITEMS_MAX;
use agentsvc_systems::agent::{AgentView, FindAgent, NamedAgent, ScanNames};
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::manifest::{self, Flat};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::agent::routes::manifest_text;
use crate::http::bridge::Bridge;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists::list_schema;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::{lists, reply};
use crate::template::shape::{Place, TemplateDocument, TemplateRow};
use crate::template::store::{TemplateFile, Templates, TemplatesError};

/// Agents that one pass over all of them finds while the whole list is sent.
const LOOK_AHEAD: usize = 8 * PAGE_ITEMS_MAX;

const TOML: HeaderValue = HeaderValue::from_static("application/toml");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/templates", "List agent types and the manifests of live agents", |call| Box::pin(list(call)))
        .reaching(Reach::Shared)
        .large()
        .query::<ListQuery>()
        .replies(&[Reply::json::<TemplateList>(200, "sorted by name")]),
    Route::post("/api/templates", "Create an agent type", |call| Box::pin(create(call))).body::<CreateBody>().replies(
        &[
            Reply::json::<TemplateDocument>(201, "made"),
            Reply::error(409, "an agent type or an agent with this name already exists"),
        ],
    ),
    Route::get("/api/templates/{name}", "Get an agent type", |call| Box::pin(show(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<TemplateDocument>(
            200,
            "the agent type, or the manifest of the agent with this name",
        )]),
    Route::get("/api/templates/{name}/toml", "Get the TOML text of an agent type", |call| Box::pin(raw(call)))
        .reaching(Reach::Shared)
        .query::<SourceQuery>()
        .replies(&[Reply::plain(200, "the TOML text", "application/toml")]),
    Route::put("/api/templates/{name}", "Update an agent type", |call| Box::pin(change(call)))
        .body::<PatchBody>()
        .closed()
        .replies(&[
            Reply::json::<TemplateDocument>(200, "changed"),
            Reply::error(409, "the name belongs to an agent, or the stored text is not a valid manifest"),
            Reply::error(422, "unknown field"),
        ]),
    Route::delete("/api/templates/{name}", "Delete an agent type", |call| Box::pin(remove(call)))
        .replies(&[Reply::json::<Deleted>(200, "deleted"), Reply::error(409, "the name belongs to an agent")]),
];

/// Whose text is meant where an agent type and an agent have the same name.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SourceQuery {
    /// `type`: the agent type; `agent`: the live agent. Default: the agent type, else the live agent.
    source: Option<Source>,
}

/// Where a text comes from.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Source {
    Type,
    Agent,
}

/// Asks the disk on a thread that may wait for it.
async fn ask<T: Send + 'static>(
    call: &Call,
    ask: impl FnOnce(&dyn Templates) -> Result<T, TemplatesError> + Send + 'static,
) -> Result<T, Error> {
    let templates = call.api.service::<dyn Templates>()?;
    let asked = spawn_blocking(move || ask(&*templates)).await;
    Ok(asked.map_err(|_| Error::internal("reading the agent types was interrupted"))??)
}

list_schema! {
    /// A list of agent types.
    TemplateList {
        templates: TemplateRow,
        /// Agent types and agents in all.
        total: u64
    }
}

async fn list(call: Call) -> Result<Response, Error> {
    let query: ListQuery = call.query()?;
    let (limit, after) = (lists::limit(query.limit)?, lists::cursor::<Place>(query.cursor.as_deref())?);
    let files = ask(&call, |templates| templates.list()).await?;
    let stored: Arc<[TemplateRow]> = files.into_iter().map(TemplateRow::of_file).collect();
    let look_ahead = limit.map_or(LOOK_AHEAD, |limit| limit + 1);
    let bridge = call.api.bridge.acting_as(call.actor());
    let agents = Ahead { bridge, look_ahead, rows: VecDeque::new(), is_all: false, total: 0 };
    let agents = Arc::new(Mutex::new(agents));
    let shape = Shape::of("templates");
    lists::answer(limit, after, shape, move |after, limit| page(Arc::clone(&agents), Arc::clone(&stored), after, limit))
        .await
}

/// The rows behind `after`: the stored ones are at hand, those of agents are looked for.
async fn page(
    agents: Arc<Mutex<Ahead>>,
    stored: Arc<[TemplateRow]>,
    after: Option<Place>,
    limit: usize,
) -> Result<Page<TemplateRow, Place, Option<u64>>, Error> {
    let mut agents = agents.lock().await;
    agents.fill(after.as_ref(), limit).await?;
    let is_behind = |row: &&TemplateRow| after.as_ref().is_none_or(|after| row.place() > *after);
    // One more than asked for says whether there are more.
    let mut rows: Vec<TemplateRow> = stored.iter().filter(is_behind).take(limit + 1).cloned().collect();
    rows.extend(agents.rows.iter().take(limit + 1).map(TemplateRow::of_agent));
    rows.sort_by_cached_key(TemplateRow::place);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().map(TemplateRow::place);
    if let Some(last) = &last {
        let served = agents.rows.iter().take_while(|agent| Place::of_agent(agent) <= *last).count();
        agents.rows.drain(..served);
    }
    let total = (agents.total + stored.len()) as u64;
    Ok(Page { items: rows, next: last.filter(|_| has_more), total: Some(total) })
}

/// The agents whose names come next. All agents are looked at for them, so that one such pass serves several pages.
struct Ahead {
    bridge: Bridge,
    /// Agents that one pass finds.
    look_ahead: usize,
    rows: VecDeque<NamedAgent>,
    /// No others come behind them.
    is_all: bool,
    /// Agents in all, as of the last pass.
    total: usize,
}

impl Ahead {
    /// Makes a pass unless there are enough for a page of `limit`, or no more.
    async fn fill(&mut self, after: Option<&Place>, limit: usize) -> Result<(), Error> {
        if self.rows.len() > limit || self.is_all {
            return Ok(());
        }
        let (found, total) = first_agents(&self.bridge, after, self.look_ahead).await?;
        self.is_all = found.len() < self.look_ahead;
        (self.rows, self.total) = (found.into(), total);
        Ok(())
    }
}

/// The agents whose names come first behind `after`, in many short looks, and how many agents there are.
async fn first_agents(
    bridge: &Bridge,
    after: Option<&Place>,
    wanted: usize,
) -> Result<(Vec<NamedAgent>, usize), Error> {
    let mut first = Vec::new();
    // Behind an agent type stands the agent of the same name.
    if let Some(place) = after.filter(|place| !place.is_agent)
        && let Ok(view) = bridge.ask(FindAgent(place.name.as_str().into())).await
    {
        first.push(NamedAgent { name: view.name, id: view.id, manifest: view.manifest });
    }
    let mut from: Option<AgentId> = None;
    loop {
        let behind = after.map(|place| place.name.as_str().into());
        let scan = bridge.ask(ScanNames { behind, after: from, limit: wanted }).await?;
        first.extend(scan.items);
        first.sort_by(|a, b| a.name.cmp(&b.name));
        first.truncate(wanted);
        match scan.next {
            Some(next) => from = Some(next),
            None => return Ok((first, scan.total)),
        }
    }
}

/// The name of the path, or 400.
fn name_of(call: &Call) -> Result<String, Error> {
    let name = call.param("name")?.into_owned();
    check(&name).map(|()| name)
}

fn check(name: &str) -> Result<(), Error> {
    manifest::validate_name(name).map_err(|message| Error::bad_field("name", message))
}

async fn stored(call: &Call, name: &str) -> Result<Option<TemplateFile>, Error> {
    let name = name.to_owned();
    ask(call, move |templates| templates.read(&name)).await
}

/// The live agent of this name.
async fn agent_named(call: &Call, name: &str) -> Result<Option<AgentView>, Error> {
    match call.ask(FindAgent(name.into())).await {
        Ok(view) => Ok(Some(view)),
        Err(error) if error.status() == StatusCode::NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}

fn not_found(name: &str) -> Error {
    Error::of(error_codes::TEMPLATE_NOT_FOUND, format!("agent type not found: {name}"))
}

/// Why an agent type of this name cannot be changed: there is none (404), or it is a live agent's (409).
async fn not_stored(call: &Call, name: &str) -> Error {
    match agent_named(call, name).await {
        Ok(Some(_)) => {
            let text = format!("template_not_editable: {name:?} is an agent; update it through the agent routes");
            Error::of(error_codes::TEMPLATE_NOT_EDITABLE, text)
        }
        Ok(None) => not_found(name),
        Err(error) => error,
    }
}

async fn note(call: &Call, kind: AuditKind, name: &str) -> Result<(), Error> {
    call.ask(NoteAction { kind, agent: None, details: json!({ "name": name }) }).await
}

/// The text of the agent type, else of the live agent, and whether it can be changed.
async fn text_of(call: &Call, name: &str, source: Option<Source>) -> Result<(Result<String, String>, bool), Error> {
    if source != Some(Source::Agent)
        && let Some(file) = stored(call, name).await?
    {
        return Ok((file.text, true));
    }
    let named = if source == Some(Source::Type) { None } else { agent_named(call, name).await? };
    let agent = named.ok_or_else(|| not_found(name))?;
    Ok((Ok(manifest_text(call, agent.id, &agent.name, agent.manifest).await?), false))
}

async fn show(call: Call) -> Result<Response, Error> {
    let name = name_of(&call)?;
    let (text, editable) = text_of(&call, &name, None).await?;
    reply::ok(&TemplateDocument::new(name, text, editable))
}

async fn raw(call: Call) -> Result<Response, Error> {
    let SourceQuery { source } = call.query()?;
    let (text, _) = text_of(&call, &name_of(&call)?, source).await?;
    let text = text.map_err(|error| Error::of(error_codes::TEMPLATE_BROKEN, error))?;
    Ok(reply::bytes(StatusCode::OK, TOML, text))
}

/// A new agent type.
#[derive(Deserialize, JsonSchema)]
struct CreateBody {
    /// Name; must not be in use by an agent type or an agent.
    name: String,
    /// What the agent is for, in a sentence.
    #[serde(default)]
    description: Option<String>,
    /// Instructions that the model gets before every conversation.
    #[serde(default)]
    system_prompt: Option<String>,
    /// Provider of its model, such as `openai`.
    #[serde(default)]
    provider: Option<String>,
    /// Model id or alias.
    #[serde(default)]
    model: Option<String>,
    /// Tools that the agent has: names, or globs such as `file_*`.
    #[serde(default)]
    tools: Option<Vec<String>>,
    /// Skills that the agent may use; empty for all.
    #[serde(default)]
    skills: Option<Vec<String>>,
}

async fn create(call: Call) -> Result<Response, Error> {
    let CreateBody { name, description, system_prompt, provider, model, tools, skills } = call.json()?;
    check(&name)?;
    let exists = || {
        let text = format!("template_exists: agent type {name:?} already exists");
        Error::conflict(text).with("field", "name").code(error_codes::TEMPLATE_EXISTS)
    };
    if stored(&call, &name).await?.is_some() {
        return Err(exists());
    }
    if agent_named(&call, &name).await?.is_some() {
        let text = format!("template_name_taken: an agent named {name:?} already exists");
        return Err(Error::conflict(text).with("field", "name").code(error_codes::TEMPLATE_NAME_TAKEN));
    }
    let flat = Flat { description, system_prompt, provider, model, tools, skills };
    let text = flat.text(&name).map_err(|error| wrong(&error))?;
    note(&call, audit_kinds::TEMPLATE_CREATED, &name).await?;
    let (to, content) = (name.clone(), text.clone());
    if !ask(&call, move |templates| templates.create(&to, &content)).await? {
        return Err(exists());
    }
    reply::created(&TemplateDocument::new(name, Ok(text), true))
}

/// The manifest that would result is none: 400 naming the key.
fn wrong(error: &manifest::Error) -> Error {
    match &error.key {
        Some(key) => Error::bad_field(key, error.to_string()),
        None => Error::bad_request(error.to_string()),
    }
}

/// Fields to change; omitted fields are unchanged, an empty string clears a field.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PatchBody {
    /// Ignored: the path names the agent type.
    name: Option<Value>,
    /// What the agent is for, in a sentence.
    description: Option<String>,
    /// Instructions that the model gets before every conversation.
    system_prompt: Option<String>,
    /// Provider of its model, such as `openai`.
    provider: Option<String>,
    /// Model id or alias.
    model: Option<String>,
    /// Tools that the agent has: names, or globs such as `file_*`.
    tools: Option<Vec<String>>,
    /// Skills that the agent may use; empty for all.
    skills: Option<Vec<String>>,
}

async fn change(call: Call) -> Result<Response, Error> {
    let name = name_of(&call)?;
    let PatchBody { name: _, description, system_prompt, provider, model, tools, skills } = call.json()?;
    let flat = Flat { description, system_prompt, provider, model, tools, skills };
    let Some(file) = stored(&call, &name).await? else { return Err(not_stored(&call, &name).await) };
    merged(flat.clone(), file.text)?;
    note(&call, audit_kinds::TEMPLATE_UPDATED, &name).await?;
    let of = name.clone();
    let changed = ask(&call, move |templates| {
        let mut result = None;
        let mut merge = |text| {
            let merged = merged(flat.clone(), text);
            let text = merged.as_ref().ok().cloned();
            result = Some(merged);
            text
        };
        templates.change(&of, &mut merge)?;
        Ok(result)
    });
    // Gone or broken since it was looked at.
    let Some(text) = changed.await? else { return Err(not_found(&name)) };
    reply::ok(&TemplateDocument::new(name, Ok(text?), true))
}

/// The stored text with the change in it.
fn merged(flat: Flat, text: Result<String, String>) -> Result<String, Error> {
    let broken = |why: String| {
        let text = format!("the stored text is not a valid manifest: {why}");
        Error::of(error_codes::TEMPLATE_BROKEN, text)
    };
    let text = text.map_err(broken)?;
    if let Err(error) = manifest::parse(&text) {
        return Err(broken(error.to_string()));
    }
    flat.merge(&text).map_err(|error| wrong(&error))
}

/// The deleted agent type.
#[derive(Serialize, JsonSchema)]
struct Deleted {
    deleted: bool,
    name: String,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let name = name_of(&call)?;
    if stored(&call, &name).await?.is_none() {
        return Err(not_stored(&call, &name).await);
    }
    note(&call, audit_kinds::TEMPLATE_DELETED, &name).await?;
    let of = name.clone();
    if !ask(&call, move |templates| templates.remove(&of)).await? {
        return Err(not_found(&name));
    }
    reply::ok(&Deleted { deleted: true, name })
}
