//! All plugins over HTTP (spec 2, Plugins).

use std::collections::BTreeMap;

use agentsvc_systems::audit::NoteAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::audit_kinds::{PLUGIN_INSTALLED, PLUGIN_UNINSTALLED};
use super::plugins::{
    PluginDescription, PluginDoctor, PluginList, PluginRegistry, PluginSource, Plugins, PreparedPlugin, Scaffold,
    Warmed,
};
use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What an installation costs the client's rate budget.
pub(super) const INSTALL_COST: u32 = 50;
/// What a list costs: it looks at files.
pub(super) const LIST_COST: u32 = 5;
/// What costs as much as a run of a program.
pub(super) const RUN_COST: u32 = 10;
/// Bytes of a name, path or URL.
const TEXT_BYTES_MAX: usize = 4_096;
/// Names of a request.
const NAMES_MAX: usize = 64;

pub(super) const MISSING: Reply = Reply::error(404, "no plugin has this name");
pub(super) const UNFIT: Reply =
    Reply::error(422, "the plugin is not valid, a checksum does not match, or it is too large");
pub(super) const BLOCKED: Reply = Reply::error(403, "the scan refuses the plugin; `findings` says why");
const EXISTS: Reply = Reply::error(409, "a plugin of this name is installed, or another change is under way");
pub(super) const FAILED: Reply = Reply::error(502, "the source failed");
pub(super) const LATE: Reply = Reply::error(504, "the source did not answer in time");
pub(super) const FULL: Reply = Reply::error(507, "no space left for the plugin");

pub(crate) const ROUTES: &[Route] =
    &[
        Route::get("/api/plugins", "List plugins", |call| Box::pin(list(call)))
            .cost(LIST_COST)
            .replies(&[Reply::json::<PluginList>(200, "the plugins, by name")]),
        Route::get("/api/plugins/registries", "List plugin registries", |call| Box::pin(registries(call)))
            .cost(RUN_COST)
            .replies(&[Reply::json::<Registries>(200, "the registries, each with its plugins or an error")]),
        Route::get("/api/plugins/doctor", "Check the runtimes of plugins", |call| Box::pin(doctor(call)))
            .cost(RUN_COST)
            .replies(&[Reply::json::<PluginDoctor>(200, "each runtime and each plugin")]),
        Route::post("/api/plugins/install", "Install a plugin from the registry, a path or Git", |call| {
            Box::pin(install(call))
        })
        .cost(INSTALL_COST)
        .body::<InstallBody>()
        .replies(&[
            Reply::json::<Installed>(201, "the plugin is installed; name it in `[context_engine]` to activate it"),
            BLOCKED,
            Reply::error(404, "the registry or the path has no such plugin"),
            EXISTS,
            UNFIT,
            FAILED,
            LATE,
            FULL,
        ]),
        Route::post("/api/plugins/uninstall", "Uninstall a plugin", |call| Box::pin(uninstall(call)))
            .without_room()
            .cost(LIST_COST)
            .body::<NameBody>()
            .replies(&[Reply::json::<Removed>(200, "the plugin and its private home are deleted"), MISSING]),
        Route::post("/api/plugins/scaffold", "Create a plugin from a template", |call| Box::pin(scaffold(call)))
            .cost(LIST_COST)
            .body::<ScaffoldBody>()
            .replies(&[Reply::json::<Scaffolded>(201, "the plugin is created"), EXISTS, UNFIT, FULL]),
        Route::post("/api/plugins/prewarm", "Start the processes of plugins", |call| Box::pin(prewarm(call)))
            .cost(RUN_COST)
            .body::<PrewarmBody>()
            .replies(&[Reply::json::<Prewarmed>(200, "the result for each plugin")]),
    ];

/// The registries.
#[derive(Serialize, JsonSchema)]
struct Registries {
    registries: Vec<PluginRegistry>,
}

/// Where to install from. `source` is `registry` (with `name`), `local` (with `path`) or `git` (with `url`); or it is itself a name
/// of the registry, an absolute path or an https URL.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct InstallBody {
    /// `registry`, `local`, `git`, or a name, path or URL.
    source: Option<String>,
    /// Name in the registry.
    name: Option<String>,
    /// Absolute path of a folder or an archive; of a repository, the folder in it.
    path: Option<String>,
    /// https URL of a Git repository.
    url: Option<String>,
    /// Branch of the repository.
    branch: Option<String>,
    /// Whether its hooks may use the network if it asks for that. Default: no; of an upgrade, as before.
    pub(super) allow_network: Option<bool>,
}

/// An installed plugin.
#[derive(Serialize, JsonSchema)]
pub(super) struct Installed {
    /// True.
    pub(super) installed: bool,
    pub(super) name: String,
    pub(super) version: String,
    /// Its folder.
    pub(super) path: String,
    /// False: a reload of the configuration activates it.
    pub(super) restart_required: bool,
    /// Whether its hooks may use the network.
    pub(super) network: bool,
    /// Warnings.
    pub(super) warnings: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct NameBody {
    /// Name of an installed plugin.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Removed {
    /// True.
    removed: bool,
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct ScaffoldBody {
    /// Name of the new plugin.
    name: String,
    /// What it does. Default: empty.
    #[serde(default)]
    description: String,
    /// `python`, `native`, `v`, `node`, `deno`, `go`, `ruby`, `bash`, `bun`, `php` or `lua`. Default: `python`.
    runtime: Option<String>,
    /// Its hooks. Default: `ingest` and `after_turn`.
    hooks: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct Scaffolded {
    /// True.
    scaffolded: bool,
    name: String,
    /// Its folder.
    path: String,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PrewarmBody {
    /// Names of plugins. Default: all that run in turns.
    plugins: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct Prewarmed {
    /// By plugin.
    results: BTreeMap<String, Warmed>,
}

impl InstallBody {
    /// Is nothing asked for?
    pub(super) const fn is_empty(&self) -> bool {
        self.source.is_none() && self.name.is_none() && self.path.is_none() && self.url.is_none()
    }

    /// What is asked for.
    pub(super) fn source(self) -> Result<PluginSource, Error> {
        let need = |field: &'static str, value: Option<String>| {
            let value = value.ok_or_else(|| Error::bad_field(field, format!("{field}: missing")))?;
            text(field, &value)
        };
        let Self { source, name, path, url, branch, .. } = self;
        let branch = branch.map(|branch| text("branch", &branch)).transpose()?;
        if branch.as_deref().is_some_and(|branch| branch.starts_with('-')) {
            return Err(Error::bad_field("branch", "branch: must not begin with a dash"));
        }
        match source.as_deref() {
            Some("registry") => Ok(PluginSource::Registry(need("name", name)?)),
            Some("local") => local("path", need("path", path)?),
            Some("git") => git(need("url", url)?, branch, path),
            Some(other) => bare("source", text("source", other)?, (branch, path)),
            None => match (name, path, url) {
                (_, path, Some(url)) => git(text("url", &url)?, branch, path),
                (_, Some(path), _) => local("path", text("path", &path)?),
                (Some(name), ..) => Ok(PluginSource::Registry(text("name", &name)?)),
                _ => Err(Error::bad_field("source", "source: missing; give a name in the registry, a path or a URL")),
            },
        }
    }
}

fn local(field: &'static str, path: String) -> Result<PluginSource, Error> {
    if path.starts_with('/') {
        return Ok(PluginSource::Local(path));
    }
    Err(Error::bad_field(field, format!("{field}: must be an absolute path")))
}

fn git(url: String, branch: Option<String>, path: Option<String>) -> Result<PluginSource, Error> {
    let path = path.map(|path| text("path", &path)).transpose()?;
    Ok(PluginSource::Git { url, branch, path })
}

/// A text that is itself the source; of a repository, with a branch and a folder in it.
fn bare(
    field: &'static str,
    source: String,
    (branch, path): (Option<String>, Option<String>),
) -> Result<PluginSource, Error> {
    if source.contains("://") {
        return git(source, branch, path);
    }
    if source.contains('/') { local(field, source) } else { Ok(PluginSource::Registry(source)) }
}

/// A text of the body that is not empty, and not too long.
pub(super) fn text(field: &'static str, text: &str) -> Result<String, Error> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
        let what = format!("{field}: must be 1 to {TEXT_BYTES_MAX} bytes without control characters");
        return Err(Error::bad_field(field, what));
    }
    Ok(text.to_owned())
}

async fn list(call: Call) -> Result<Response, Error> {
    let plugins = call.api.service::<dyn Plugins>()?;
    reply::ok(&blocking(move || Ok(plugins.list())).await?)
}

async fn registries(call: Call) -> Result<Response, Error> {
    reply::ok(&Registries { registries: call.api.service::<dyn Plugins>()?.registries().await })
}

async fn doctor(call: Call) -> Result<Response, Error> {
    reply::ok(&call.api.service::<dyn Plugins>()?.doctor().await)
}

async fn install(call: Call) -> Result<Response, Error> {
    let body: InstallBody = match call.json::<Value>()? {
        Value::String(source) => InstallBody { source: Some(source), ..InstallBody::default() },
        _ => call.json()?,
    };
    let network = body.allow_network.unwrap_or(false);
    let prepared = call.api.service::<dyn Plugins>()?.prepare(body.source()?, network).await?;
    reply::created(&place(&call, prepared).await?)
}

/// Notes that a plugin is installed, and installs it.
pub(super) async fn place(call: &Call, prepared: Box<dyn PreparedPlugin>) -> Result<Installed, Error> {
    let PluginDescription { name, version, source, network, warnings } = prepared.description();
    let details = json!({ "plugin": name, "version": version, "source": source, "network": network });
    // Before it is done: an installation that then fails leaves an entry, one that is done never leaves none.
    call.ask(NoteAction { kind: PLUGIN_INSTALLED, agent: None, details }).await?;
    let path = blocking(move || prepared.put()).await?;
    Ok(Installed { installed: true, name, version, path, restart_required: false, network, warnings })
}

async fn uninstall(call: Call) -> Result<Response, Error> {
    let NameBody { name } = call.json()?;
    let (name, plugins) = (text("name", &name)?, call.api.service::<dyn Plugins>()?);
    let (asked, plugin) = (plugins.clone(), name.clone());
    blocking(move || asked.removable(&plugin)).await?;
    call.ask(NoteAction { kind: PLUGIN_UNINSTALLED, agent: None, details: json!({ "plugin": name }) }).await?;
    let plugin = name.clone();
    blocking(move || plugins.remove(&plugin)).await?;
    reply::ok(&Removed { removed: true, name })
}

async fn scaffold(call: Call) -> Result<Response, Error> {
    let ScaffoldBody { name, description, runtime, hooks } = call.json()?;
    let name = text("name", &name)?;
    let description = if description.is_empty() { description } else { text("description", &description)? };
    let runtime = runtime.unwrap_or_else(|| "python".to_owned());
    let hooks = hooks.unwrap_or_else(|| vec!["ingest".to_owned(), "after_turn".to_owned()]);
    if hooks.is_empty() || hooks.len() > NAMES_MAX {
        return Err(Error::bad_field("hooks", format!("hooks: must be 1 to {NAMES_MAX}")));
    }
    let plugins = call.api.service::<dyn Plugins>()?;
    let prepared = blocking(move || plugins.scaffold(Scaffold { name, description, runtime, hooks })).await?;
    let Installed { name, path, .. } = place(&call, prepared).await?;
    reply::created(&Scaffolded { scaffolded: true, name, path })
}

async fn prewarm(call: Call) -> Result<Response, Error> {
    let PrewarmBody { plugins } = call.json_or_default()?;
    if plugins.as_ref().is_some_and(|names| names.len() > NAMES_MAX) {
        return Err(Error::bad_field("plugins", format!("plugins: must be at most {NAMES_MAX}")));
    }
    reply::ok(&Prewarmed { results: call.api.service::<dyn Plugins>()?.prewarm(plugins).await })
}

/// Work that waits for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "work on a plugin was interrupted");
        Err(Error::internal("work on the plugin was interrupted; see the daemon's log"))
    })
}
