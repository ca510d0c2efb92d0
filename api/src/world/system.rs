//! Health, status, versions, metrics and shutdown (spec 2, System).

use std::time::Duration;

use crate::world::audit_kinds;
use agentsvc_components::AgentId;
use agentsvc_systems::agent::{AgentFilter, AgentSummary, ListAgents};
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::world::GetStats;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::audit::trail::AuditLog;
use crate::http::api::STORE_RETRY_SECS;
use crate::http::call::Call;
use crate::http::elsewhere::Site;
use crate::http::error::Error;
use crate::http::error_codes::MOVING;
use crate::http::pages::Shape;
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::shape::shape;
use crate::http::{lists, openapi, pages, reply};
use crate::model::catalog::DefaultModel;
use crate::world::installation::{FileWarnings, Installation, Sandbox};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/health", "Check the health of the daemon", |call| Box::pin(health(call)))
        .public()
        .here()
        .replies(&[Reply::json::<HealthBody>(200, "the health")]),
    Route::get("/api/health/detail", "Check the health of the daemon in detail", |call| Box::pin(health_detail(call)))
        .here()
        .replies(&[Reply::json::<HealthDetailBody>(200, "the health")]),
    Route::get("/api/ready", "Check whether the daemon is ready for requests", |call| Box::pin(ready(call)))
        .public()
        .here()
        .replies(&[
            Reply::json::<ReadyBody>(200, "ready"),
            Reply::error(
                503,
                "loading, restoring, read-only because the disk is full, unable to write the store, or without a node of the \
                 cluster that owns the world",
            ),
        ]),
    Route::get("/api/status", "Get the status of the daemon and its agents", |call| Box::pin(status(call)))
        .query::<StatusQuery>()
        .replies(&[Reply::json::<StatusBody>(200, "the status of the daemon and its agents")]),
    Route::get("/api/version", "Get the version and build details", |call| Box::pin(version(call)))
        .reaching(Reach::Shared)
        .while_loading()
        .replies(&[Reply::json::<VersionBody>(200, "version and build details")]),
    Route::get("/api/versions", "List API versions and their stability", |call| Box::pin(versions(call)))
        .reaching(Reach::Shared)
        .while_loading()
        .replies(&[Reply::json::<VersionsBody>(200, "the versions")]),
    Route::get("/api/openapi.json", "Get this OpenAPI document", |call| Box::pin(openapi_document(call)))
        .while_loading()
        .replies(&[Reply::plain(200, "an OpenAPI 3.0 document", "application/json")]),
    Route::get("/api/metrics", "Get metrics in the Prometheus text format", |call| Box::pin(metrics(call)))
        .here()
        .replies(&[Reply::plain(200, "the metrics", "text/plain")]),
    Route::post("/api/shutdown", "Stop the daemon gracefully", |call| Box::pin(shutdown(call)))
        .here()
        .without_room()
        .replies(&[Reply::json::<ShutdownBody>(200, "the daemon is stopping")]),
];

/// How long a stop waits for its entry on the trail.
const SHUTDOWN_ENTRY_WAIT: Duration = Duration::from_secs(5);

/// Public health.
#[derive(Serialize, JsonSchema)]
struct HealthBody {
    /// `ok`, or `degraded` if the store cannot be written, or the audit log is not what was signed, so that the store may have
    /// lost its newest records.
    status: &'static str,
    /// True while changes are refused because the disk is full.
    read_only: bool,
    uptime_seconds: u64,
    panic_count: u64,
    restart_count: u64,
}

/// Answers without asking the world, so that it works while the world is loading.
async fn health(call: Call) -> Result<Response, Error> {
    reply::ok(&health_body(&call))
}

fn health_body(call: &Call) -> HealthBody {
    let health = &call.api.health;
    let is_contradicted = call.api.services.get::<dyn AuditLog>().is_some_and(|log| log.is_contradicted());
    let is_well = health.store_is_up() && !health.is_read_only() && !is_contradicted;
    HealthBody {
        status: if is_well { "ok" } else { "degraded" },
        read_only: health.is_read_only(),
        uptime_seconds: health.uptime_seconds(),
        panic_count: health.panics(),
        restart_count: health.restarts(),
    }
}

/// The public answer of a daemon of which nothing is known, to look at its keys.
pub(crate) fn health_keys() -> Value {
    let body = HealthBody { status: "ok", read_only: false, uptime_seconds: 0, panic_count: 0, restart_count: 0 };
    serde_json::to_value(body).unwrap_or_default()
}

/// Readiness.
#[derive(Serialize, JsonSchema)]
struct ReadyBody {
    /// `ready`.
    status: &'static str,
}

/// For load balancers and scripts that start the daemon: 200 while any request would be taken. A daemon that only answers reads
/// is not ready: most requests change something, and a load balancer that went on sending them would see nothing but 503. A
/// standby that knows the owner is: it passes them on.
async fn ready(call: Call) -> Result<Response, Error> {
    match call.api.elsewhere.site() {
        Site::Here => {}
        // What it passes on is for the other node to judge.
        Site::There(_) => return reply::ok(&ReadyBody { status: "ready" }),
        Site::Nowhere => return Err(Error::of(MOVING, "no node owns the world at the moment").retry_after(1)),
    }
    if !call.api.health.store_is_up() {
        return Err(Error::unavailable("the store cannot be written", STORE_RETRY_SECS));
    }
    call.api.bridge.check_open()?;
    call.api.health.check_room()?;
    reply::ok(&ReadyBody { status: "ready" })
}

/// Detailed health.
#[derive(Serialize, JsonSchema)]
struct HealthDetailBody {
    #[serde(flatten)]
    health: HealthBody,
    /// Absent while the world is loading.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_count: Option<usize>,
    /// `connected`, `loading` or `unreachable`.
    database: &'static str,
    config_warnings: Vec<String>,
    /// Workspaces that cannot be used because their owner is not known, and how to repair them.
    workspace_warnings: Vec<String>,
    sandbox: Sandbox,
}

async fn health_detail(call: Call) -> Result<Response, Error> {
    let stats = call.ask(GetStats).await.ok();
    let database = match (call.api.health.store_is_up(), call.api.bridge.is_open()) {
        (false, _) => "unreachable",
        (true, false) => "loading",
        (true, true) => "connected",
    };
    let installation = call.api.state::<Installation>();
    reply::ok(&HealthDetailBody {
        health: health_body(&call),
        agent_count: stats.map(|stats| stats.agents),
        database,
        config_warnings: installation.config_warnings.clone(),
        workspace_warnings: call.api.services.get::<dyn FileWarnings>().map_or_else(Vec::new, |files| files.warnings()),
        sandbox: installation.sandbox.get(),
    })
}

/// The daemon and its agents.
#[derive(Serialize, JsonSchema)]
#[allow(dead_code, reason = "only its shape is used; the body is streamed")]
struct StatusBody {
    status: &'static str,
    agent_count: usize,
    data_dir: String,
    default_provider: String,
    default_model: String,
    uptime_seconds: u64,
    agents: Vec<AgentItem>,
}

shape! {
    /// Summary of an agent.
    struct AgentItem from agent: AgentSummary {
        id: Uuid = agent.id.0,
        name: Box<str> = agent.name,
        state: &'static str = agent.state.as_str(),
        created_at: String = agent.created_at.to_string(),
        model_provider: Box<str> = agent.provider,
        model_name: Box<str> = agent.model,
    }
}

/// Options of the status.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct StatusQuery {
    /// Maximum number of agents, 1 to 1000. Default: all. `agent_count` is the total.
    limit: Option<usize>,
}

async fn status(call: Call) -> Result<Response, Error> {
    let limit = lists::limit(call.query::<StatusQuery>()?.limit)?;
    let mut first = agents_after(&call, None, limit.unwrap_or(usize::MAX)).await?;
    if limit.is_some() {
        first.next = None;
    }
    let default_model = call.api.state::<DefaultModel>();
    let values = [
        ("status", json!("running")),
        ("agent_count", json!(first.total)),
        ("data_dir", json!(call.api.state::<Installation>().data_dir)),
        ("default_provider", json!(default_model.provider)),
        ("default_model", json!(default_model.model)),
        ("uptime_seconds", json!(call.api.health.uptime_seconds())),
    ];
    let after = values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<String, Value>>();
    let call = std::sync::Arc::new(call);
    pages::stream(&Shape::Object { key: "agents", after }, items_of(first), move |cursor| {
        let call = call.clone();
        async move { Ok(items_of(agents_after(&call, Some(cursor), usize::MAX).await?)) }
    })
}

async fn agents_after(call: &Call, after: Option<AgentId>, limit: usize) -> Result<Page<AgentSummary, AgentId>, Error> {
    call.ask(ListAgents { filter: AgentFilter::default(), after, limit }).await
}

fn items_of(page: Page<AgentSummary, AgentId>) -> Page<AgentItem, AgentId> {
    Page { items: page.items.into_iter().map(AgentItem::from).collect(), next: page.next, total: page.total }
}

/// Version and build details.
#[derive(Serialize, JsonSchema)]
struct VersionBody {
    name: &'static str,
    version: &'static str,
    build_date: &'static str,
    git_sha: &'static str,
    rust_version: &'static str,
    platform: &'static str,
    arch: &'static str,
}

async fn version(call: Call) -> Result<Response, Error> {
    let build = &call.api.settings.build;
    reply::ok(&VersionBody {
        name: "agentsvc",
        version: build.version,
        build_date: build.build_date,
        git_sha: build.git_sha,
        rust_version: build.rust_version,
        platform: std::env::consts::OS,
        arch: std::env::consts::ARCH,
    })
}

/// All API versions.
#[derive(Serialize, JsonSchema)]
struct VersionsBody {
    versions: Vec<ApiVersion>,
    /// Version recommended for new clients.
    current: &'static str,
}

/// An API version.
#[derive(Serialize, JsonSchema)]
struct ApiVersion {
    version: &'static str,
    prefix: &'static str,
    /// `stable`, `beta` or `deprecated`.
    status: &'static str,
}

async fn versions(_call: Call) -> Result<Response, Error> {
    let versions = vec![
        ApiVersion { version: "v1", prefix: "/api", status: "stable" },
        ApiVersion { version: "openai-v1", prefix: "/v1", status: "stable" },
    ];
    reply::ok(&VersionsBody { versions, current: "v1" })
}

async fn openapi_document(call: Call) -> Result<Response, Error> {
    let make = || Bytes::from(openapi::document(call.api.table.routes(), &call.api.settings.build).to_string());
    Ok(reply::bytes(StatusCode::OK, reply::JSON, call.api.openapi.get_or_init(make).clone()))
}

async fn metrics(call: Call) -> Result<Response, Error> {
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(reply::bytes(StatusCode::OK, content_type, call.api.render_metrics()))
}

#[derive(Serialize, JsonSchema)]
struct ShutdownBody {
    status: &'static str,
}

/// The answer is still sent: a stop waits for what is being answered.
async fn shutdown(call: Call) -> Result<Response, Error> {
    tracing::info!(request = %call.request_id, "a client requested a shutdown");
    // While the world loads there is no trail yet, and a full disk may take no entry: a stop must not wait for either.
    let entry = NoteAction { kind: audit_kinds::SHUTDOWN_REQUESTED, agent: None, details: json!({}) };
    let _not_ready = tokio::time::timeout(SHUTDOWN_ENTRY_WAIT, call.ask(entry)).await;
    call.api.shutdown.trigger();
    reply::ok(&ShutdownBody { status: "shutting_down" })
}
