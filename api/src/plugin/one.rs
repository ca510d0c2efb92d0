//! One plugin over HTTP.

use std::sync::Arc;

use agentsvc_systems::audit::NoteAction;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::audit_kinds::PLUGIN_CHANGED;
use super::plugins::{
    Dependencies, HookTest, PluginDetail, PluginEnv, PluginHealth, PluginLint, PluginStatus, PluginTraces, Plugins,
    Signed,
};
use super::routes::{
    BLOCKED, FAILED, FULL, INSTALL_COST, InstallBody, Installed, LATE, LIST_COST, MISSING, RUN_COST, UNFIT, blocking,
    place, text,
};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

const GZIP: HeaderValue = HeaderValue::from_static("application/gzip");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/plugins/{name}", "Get a plugin", |call| Box::pin(show(call)))
        .cost(LIST_COST)
        .replies(&[Reply::json::<PluginDetail>(200, "the plugin")]),
    Route::get("/api/plugins/{name}/status", "Get the state of a plugin", |call| Box::pin(status(call)))
        .cost(LIST_COST)
        .replies(&[Reply::json::<PluginStatus>(200, "its state")]),
    Route::get("/api/plugins/{name}/health", "Get the health of the hooks of a plugin", |call| Box::pin(health(call)))
        .replies(&[Reply::json::<PluginHealth>(200, "the counts by hook")]),
    Route::get("/api/plugins/{name}/traces", "List the newest hook runs of a plugin", |call| Box::pin(traces(call)))
        .replies(&[Reply::json::<PluginTraces>(200, "the runs, the newest first")]),
    Route::get("/api/plugins/{name}/env", "Get the environment of a plugin", |call| Box::pin(env(call)))
        .replies(&[Reply::json::<PluginEnv>(200, "the variables, secrets masked")]),
    Route::get("/api/plugins/{name}/export", "Export a plugin as an archive", |call| Box::pin(export(call)))
        .cost(RUN_COST)
        .replies(&[Reply::plain(200, "the archive, a tar.gz", "application/gzip")]),
    Route::get("/api/plugins/{name}/lint", "Check the files of a plugin", |call| Box::pin(lint(call)))
        .cost(RUN_COST)
        .replies(&[Reply::json::<PluginLint>(200, "errors and warnings")]),
    Route::post("/api/plugins/{name}/enable", "Enable a plugin", |call| Box::pin(enable(call, true)))
        .replies(&[Reply::json::<Enabled>(200, "its hooks run if `[context_engine]` names it"), MISSING]),
    Route::post("/api/plugins/{name}/disable", "Disable a plugin", |call| Box::pin(enable(call, false)))
        .replies(&[Reply::json::<Enabled>(200, "its hooks do not run"), MISSING]),
    Route::post("/api/plugins/{name}/reload", "Reload a plugin", |call| Box::pin(reload(call)))
        .cost(RUN_COST)
        .replies(&[Reply::json::<Reloaded>(200, "it is reloaded"), MISSING, UNFIT]),
    Route::post("/api/plugins/{name}/sign", "Sign a plugin", |call| Box::pin(sign(call))).cost(RUN_COST).replies(&[
        Reply::json::<Signed>(200, "it is signed"),
        MISSING,
        UNFIT,
    ]),
    Route::post("/api/plugins/{name}/upgrade", "Upgrade a plugin from its source", |call| Box::pin(upgrade(call)))
        .cost(INSTALL_COST)
        .body::<InstallBody>()
        .replies(&[
            Reply::json::<Installed>(200, "the new version is installed; its private home stayed"),
            BLOCKED,
            MISSING,
            Reply::error(409, "another change is under way"),
            UNFIT,
            FAILED,
            LATE,
            FULL,
        ]),
    Route::post("/api/plugins/{name}/install-deps", "Install the dependencies of a plugin", |call| {
        Box::pin(install_deps(call))
    })
    .cost(INSTALL_COST)
    .replies(&[Reply::json::<Dependencies>(200, "the result of the installation"), MISSING]),
    Route::post("/api/plugins/{name}/test-hook", "Run a hook of a plugin", |call| Box::pin(test_hook(call)))
        .cost(RUN_COST)
        .body::<TestBody>()
        .replies(&[Reply::json::<HookTest>(200, "the answer of the hook, or why it failed"), MISSING]),
];

#[derive(Serialize, JsonSchema)]
struct Enabled {
    name: String,
    enabled: bool,
}

#[derive(Serialize, JsonSchema)]
struct Reloaded {
    /// True.
    reloaded: bool,
    name: String,
}

/// The hook to run.
#[derive(Deserialize, JsonSchema)]
struct TestBody {
    /// Such as `ingest`.
    hook: String,
    /// Its input. Default: an example.
    input: Option<Value>,
    /// The agent that it is run for. Default: `test`.
    agent_id: Option<String>,
}

/// What is asked, and of which plugin.
fn asked(call: &Call) -> Result<(String, Arc<dyn Plugins>), Error> {
    Ok((call.param("name")?.into_owned(), call.api.service::<dyn Plugins>()?))
}

async fn of<T: Serialize + Send + 'static>(
    call: Call,
    read: fn(&dyn Plugins, &str) -> Result<T, Error>,
) -> Result<Response, Error> {
    let (name, plugins) = asked(&call)?;
    reply::ok(&blocking(move || read(&*plugins, &name)).await?)
}

async fn show(call: Call) -> Result<Response, Error> {
    of(call, |plugins, name| plugins.get(name)).await
}

async fn status(call: Call) -> Result<Response, Error> {
    of(call, |plugins, name| plugins.status(name)).await
}

async fn health(call: Call) -> Result<Response, Error> {
    of(call, |plugins, name| plugins.health(name)).await
}

async fn traces(call: Call) -> Result<Response, Error> {
    of(call, |plugins, name| plugins.traces(name)).await
}

async fn env(call: Call) -> Result<Response, Error> {
    of(call, |plugins, name| plugins.env(name)).await
}

async fn lint(call: Call) -> Result<Response, Error> {
    of(call, |plugins, name| plugins.lint(name)).await
}

async fn export(call: Call) -> Result<Response, Error> {
    let (name, plugins) = asked(&call)?;
    let bytes = blocking(move || plugins.export(&name)).await?;
    Ok(reply::bytes(StatusCode::OK, GZIP, bytes))
}

/// Notes a change of a plugin that is there.
async fn note(call: &Call, name: &str, change: &str) -> Result<(), Error> {
    let (plugins, plugin) = (call.api.service::<dyn Plugins>()?, name.to_owned());
    blocking(move || plugins.removable(&plugin)).await?;
    let details = json!({ "plugin": name, "change": change });
    call.ask(NoteAction { kind: PLUGIN_CHANGED, agent: None, details }).await?;
    Ok(())
}

async fn enable(call: Call, is_enabled: bool) -> Result<Response, Error> {
    let (name, plugins) = asked(&call)?;
    note(&call, &name, if is_enabled { "enabled" } else { "disabled" }).await?;
    let plugin = name.clone();
    blocking(move || plugins.enable(&plugin, is_enabled)).await?;
    reply::ok(&Enabled { name, enabled: is_enabled })
}

async fn reload(call: Call) -> Result<Response, Error> {
    let (name, plugins) = asked(&call)?;
    let plugin = name.clone();
    blocking(move || plugins.reload(&plugin)).await?;
    reply::ok(&Reloaded { reloaded: true, name })
}

async fn sign(call: Call) -> Result<Response, Error> {
    let (name, plugins) = asked(&call)?;
    note(&call, &name, "signed").await?;
    reply::ok(&blocking(move || plugins.sign(&name)).await?)
}

async fn upgrade(call: Call) -> Result<Response, Error> {
    let body: InstallBody = call.json_or_default()?;
    let (name, plugins) = asked(&call)?;
    let network = body.allow_network;
    let source = if body.is_empty() { None } else { Some(body.source()?) };
    let prepared = plugins.upgrade(name.clone(), source, network).await?;
    note(&call, &name, "upgraded").await?;
    reply::ok(&place(&call, prepared).await?)
}

async fn install_deps(call: Call) -> Result<Response, Error> {
    let (name, plugins) = asked(&call)?;
    note(&call, &name, "dependencies installed").await?;
    reply::ok(&plugins.install_deps(name).await?)
}

async fn test_hook(call: Call) -> Result<Response, Error> {
    let TestBody { hook, input, agent_id } = call.json()?;
    let (name, plugins) = asked(&call)?;
    let (hook, agent) = (text("hook", &hook)?, agent_id.unwrap_or_else(|| "test".to_owned()));
    if input.as_ref().is_some_and(|input| !input.is_object()) {
        return Err(Error::bad_field("input", "input: must be an object"));
    }
    reply::ok(&plugins.test_hook(name, hook, input, text("agent_id", &agent)?).await?)
}
