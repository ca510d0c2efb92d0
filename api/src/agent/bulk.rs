//! Many agents at once: every item stands or falls alone (spec 1, Agents, bulk routes).

use agentsvc_components::ErrorCode;
use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::kernel::limit::{BULK_ITEMS_MAX, SNAPSHOT_BEFORE_DELETING};
use agentsvc_components::kernel::scope::Scope;
use agentsvc_components::{AgentId, Refusal};
use agentsvc_systems::agent::{RemoveAgents, SpawnAgent, SpawnAgents, StartAgents, StopAgents};
use agentsvc_systems::{Command, agent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::Api;
use crate::agent::routes::{CreateBody, check_runs, check_signature, spawn_command};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::snapshot::routes::take_before;
use crate::snapshot::store::Before;

/// Bytes of a body that creates agents: manifests are text.
const CREATE_BODY_MAX: usize = 16 << 20;
/// Items that go into one step of the world, so that others are not kept waiting.
const STEP_ITEMS_MAX: usize = 256;
/// What a bulk request costs the client's rate budget.
const COST: u32 = 10;

const DONE: Reply = Reply::json::<Results>(200, "the result of each item, in order");
const RESULTS: &[Reply] = &[DONE];

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/agents/bulk", "Create several agents", |call| Box::pin(create(call)))
        .cost(COST)
        .body_max(CREATE_BODY_MAX)
        .body::<CreateMany>()
        .replies(RESULTS),
    Route::delete("/api/agents/bulk", "Delete several agents", |call| Box::pin(remove(call)))
        .cost(COST)
        .body::<IdsBody>()
        .replies(&[
            DONE,
            Reply::error(409, "the automatic snapshot cannot be created now; nothing was changed"),
            Reply::error(507, "not enough disk space for the automatic snapshot; nothing was changed"),
        ]),
    Route::post("/api/agents/bulk/start", "Start several stopped agents", |call| Box::pin(start(call)))
        .runs_agents()
        .cost(COST)
        .body::<IdsBody>()
        .replies(RESULTS),
    Route::post("/api/agents/bulk/stop", "Stop several running agents", |call| Box::pin(stop(call)))
        .cost(COST)
        .without_room()
        .body::<IdsBody>()
        .replies(RESULTS),
];

/// The agents to create: an object, or the bare array.
#[derive(Deserialize, JsonSchema)]
struct CreateMany {
    /// Objects with `manifest_toml`. An invalid item does not affect the others.
    #[schemars(with = "Vec<CreateBody>")]
    agents: Vec<Value>,
}

/// The agents: an object, or the bare array. An invalid id does not affect the others.
#[derive(Deserialize, JsonSchema)]
struct IdsBody {
    /// Ids of the agents.
    #[serde(alias = "ids")]
    agent_ids: Vec<String>,
}

/// Result of each item.
#[derive(Serialize, JsonSchema)]
struct Results {
    results: Vec<ItemResult>,
    total: usize,
    succeeded: usize,
    failed: usize,
}

/// Result of one item: `status` or `error`.
#[derive(Default, Serialize, JsonSchema)]
struct ItemResult {
    /// Index of the item in the request.
    index: usize,
    /// Agent id, or the invalid value.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    /// The same as in agent lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

impl ItemResult {
    fn refused(index: usize, agent_id: Option<String>, refusal: Refusal) -> Self {
        let (error, field, code) = (Some(refusal.message), refusal.field, refusal.code.map(ErrorCode::as_str));
        Self { index, agent_id, error, field, code, ..Self::default() }
    }

    fn wrong(index: usize, error: &Error) -> Self {
        let field = Some("manifest_toml".to_owned());
        Self { index, error: Some(error.message().to_owned()), field, ..Self::default() }
    }
}

fn respond(mut results: Vec<ItemResult>) -> Result<Response, Error> {
    results.sort_by_key(|result| result.index);
    results.iter_mut().for_each(|result| result.id.clone_from(&result.agent_id));
    let (total, failed) = (results.len(), results.iter().filter(|result| result.error.is_some()).count());
    reply::ok(&Results { results, total, succeeded: total - failed, failed })
}

fn check_count(field: &str, count: usize) -> Result<(), Error> {
    if count <= BULK_ITEMS_MAX {
        return Ok(());
    }
    Err(Error::bad_field(field, format!("{field} has {count} items; the limit is {BULK_ITEMS_MAX}")))
}

async fn create(call: Call) -> Result<Response, Error> {
    let items: Vec<Value> = if call.is_array() { call.json_array()? } else { call.json::<CreateMany>()?.agents };
    check_count("agents", items.len())?;
    // Thousands of manifests take longer to parse than a worker thread may be held.
    let (api, may_run) = (Arc::clone(&call.api), call.principal.has(Scope::Chat));
    let parse = move || items.into_iter().map(|item| parse_item(&api, item, may_run)).collect::<Vec<_>>();
    let parsed = spawn_blocking(parse).await;
    let parsed = parsed.map_err(|_| Error::internal("reading the manifests was interrupted"))?;
    let mut results = Vec::with_capacity(parsed.len());
    let mut good = Vec::new();
    for (index, item) in parsed.into_iter().enumerate() {
        match item {
            Ok(command) => good.push((index, command)),
            Err(error) => results.push(ItemResult::wrong(index, &error)),
        }
    }
    while !good.is_empty() {
        let (places, commands): (Vec<_>, Vec<_>) = good.drain(..good.len().min(STEP_ITEMS_MAX)).unzip();
        let spawned = call.ask(SpawnAgents(commands)).await?;
        results.extend(places.into_iter().zip(spawned).map(|(index, result)| match result {
            Ok(new) => ItemResult {
                index,
                agent_id: Some(new.agent.to_string()),
                name: Some(new.name),
                status: Some("created"),
                ..ItemResult::default()
            },
            Err(refusal) => ItemResult::refused(index, None, refusal),
        }));
    }
    respond(results)
}

fn parse_item(api: &Api, item: Value, may_run: bool) -> Result<SpawnAgent, Error> {
    let (text, signature) = match item {
        Value::Object(mut keys) => (keys.remove("manifest_toml"), keys.remove("manifest_signature")),
        _ => (None, None),
    };
    match text {
        Some(Value::String(text)) => {
            let command = spawn_command(api, text)?;
            check_runs(may_run, &command.manifest)?;
            check_signature(api, &command.name, &command.text, signature.as_ref().and_then(Value::as_str))?;
            Ok(command)
        }
        _ => Err(Error::bad_field("manifest_toml", "manifest_toml: missing, or not a string")),
    }
}

async fn remove(call: Call) -> Result<Response, Error> {
    let named: usize =
        if call.is_array() { call.json_array::<String>()?.len() } else { call.json::<IdsBody>()?.agent_ids.len() };
    check_count("agent_ids", named)?;
    if named >= SNAPSHOT_BEFORE_DELETING {
        take_before(&call, Before::Deletion).await?;
    }
    each(&call, "killed", RemoveAgents).await
}

async fn start(call: Call) -> Result<Response, Error> {
    each(&call, "started", StartAgents).await
}

async fn stop(call: Call) -> Result<Response, Error> {
    each(&call, "stopped", StopAgents).await
}

/// Carries a command out on every agent of the body; `status` is what its success is called.
async fn each<C, T>(call: &Call, status: &'static str, command: fn(Vec<AgentId>) -> C) -> Result<Response, Error>
where
    C: Command<Reply = Vec<agent::ItemResult<T>>>,
{
    let ids: Vec<String> = if call.is_array() { call.json_array()? } else { call.json::<IdsBody>()?.agent_ids };
    check_count("agent_ids", ids.len())?;
    let mut results = Vec::with_capacity(ids.len());
    let mut good = Vec::new();
    for (index, id) in ids.into_iter().enumerate() {
        match Uuid::try_parse(&id) {
            Ok(uuid) => good.push((index, AgentId(uuid))),
            Err(_) => {
                let refusal = Refusal::bad_field(format!("agent_ids[{index}]"), "not a valid UUID");
                results.push(ItemResult::refused(index, Some(id), refusal));
            }
        }
    }
    while !good.is_empty() {
        let (places, agents): (Vec<_>, Vec<_>) = good.drain(..good.len().min(STEP_ITEMS_MAX)).unzip();
        let done = call.ask(command(agents)).await?;
        results.extend(places.into_iter().zip(done).map(|(index, (id, result))| match result {
            Ok(_) => {
                let agent_id = Some(id.to_string());
                ItemResult { index, agent_id, status: Some(status), ..ItemResult::default() }
            }
            Err(refusal) => ItemResult::refused(index, Some(id.to_string()), refusal),
        }));
    }
    respond(results)
}
