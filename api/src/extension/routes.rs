//! The routes of extensions (spec 2, Extensions).

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::error_codes::{EXTENSION_INSTALLED, EXTENSION_TEMPLATE, EXTENSIONS_FULL};
use super::find::{Extension, Extensions, missing};
use super::shape::{
    ExtensionDetail, ExtensionList, ExtensionQuery, InstallBody, Installed, UninstallBody, Uninstalled,
};
use super::templates::{KeepError, Template};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::mcp::servers::body::ServerBody;
use crate::mcp::servers::routes::{blocking, changed, detached, store, take_away};

/// What starting a server costs the client's rate budget.
const COST: u32 = 10;

/// One installation or removal at a time: each looks, and then changes the disk and the world.
static CHANGE: Mutex<()> = Mutex::const_new(());

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/extensions", "List extensions", |call| Box::pin(list(call)))
        .query::<ExtensionQuery>()
        .replies(&[Reply::json::<ExtensionList>(200, "the extensions")]),
    Route::post("/api/extensions/install", "Install an extension", |call| Box::pin(detached(Box::pin(install(call)))))
        .cost(COST)
        .body::<InstallBody>()
        .replies(&[
            Reply::json::<Installed>(
                201,
                "installed, also if it cannot be started; then `connected` is false and `error` says why",
            ),
            Reply::error(404, "neither the catalog nor the path has such a template"),
            Reply::error(409, "it is installed, or a server of this name exists, or its template cannot be used"),
            Reply::error(429, "the limit of extensions or of MCP servers is reached"),
        ]),
    Route::post("/api/extensions/uninstall", "Uninstall an extension", |call| {
        Box::pin(detached(Box::pin(uninstall(call))))
    })
    .body::<UninstallBody>()
    .replies(&[
        Reply::json::<Uninstalled>(200, "uninstalled, with its credentials and its sign-in"),
        Reply::error(404, "no such extension is installed"),
        Reply::error(409, "its server is defined in config.toml, or its template cannot be used"),
    ]),
    Route::get("/api/extensions/{name}", "Get an extension, installed or not", |call| Box::pin(get(call))).replies(&[
        Reply::json::<ExtensionDetail>(200, "the extension"),
        Reply::error(404, "there is no such extension"),
        Reply::error(409, "its template cannot be used"),
    ]),
];

fn unknown(name: &str) -> Error {
    Error::not_found(format!("extension not found: {name}"))
}

async fn list(call: Call) -> Result<Response, Error> {
    let ExtensionQuery { available } = call.query()?;
    let mut extensions = Extensions::of(&call)?.all(&call).await?;
    extensions.retain(|extension| extension.installed || available);
    reply::ok(&ExtensionList { total: extensions.len(), extensions })
}

async fn get(call: Call) -> Result<Response, Error> {
    let (extensions, name) = (Extensions::of(&call)?, call.param("name")?);
    let found = extensions.find(&name).await?.ok_or_else(|| unknown(&name))?;
    reply::ok(&extensions.detail(&call, found).await?)
}

async fn install(call: Call) -> Result<Response, Error> {
    let (extensions, body) = (Extensions::of(&call)?, call.json::<InstallBody>()?);
    let InstallBody { name, source, credentials } = body;
    let source = source.map(PathBuf::from);
    let (name, path) = match (name, source) {
        (Some(name), None) => (Some(name), None),
        (None, Some(source)) if source.is_absolute() => (None, Some(source)),
        (None, Some(source)) => (source.to_str().map(str::to_owned), None),
        (Some(_), Some(_)) => return Err(Error::bad_field("source", "send either name or source, not both")),
        (None, None) => return Err(Error::bad_field("name", "name is missing")),
    };
    let change = CHANGE.lock().await;
    let (item, stored) = match (name, path) {
        (_, Some(path)) => {
            let template = template_at(&extensions, path).await?;
            let item = template.item.clone();
            (item, install_template(&call, &extensions, template, credentials, true).await?)
        }
        (name, None) => {
            let name = name.unwrap_or_default();
            let found = extensions.find(&name).await?.ok_or_else(|| unknown(&name))?;
            refuse_installed(&extensions, &found)?;
            let item = found.item().clone();
            let stored = match found {
                Extension::Entry(_) => {
                    store(&call, &extensions.servers, ServerBody::of_entry(name, credentials)).await?
                }
                Extension::Template(template) => {
                    install_template(&call, &extensions, *template, credentials, false).await?
                }
            };
            (item, stored)
        }
    };
    drop(change);
    let _started = changed(Arc::clone(&extensions.servers), stored.clone(), "added").await?;
    let server = extensions.servers.get(&stored).ok_or_else(|| unknown(&stored))?;
    reply::created(&Installed {
        status: "installed",
        name: item.id.clone(),
        connected: server.connected,
        tool_count: server.tool_count,
        missing: missing(&item, &server),
        error: server.error,
    })
}

fn refuse_installed(extensions: &Extensions, extension: &Extension) -> Result<(), Error> {
    match extensions.server(extension) {
        Some(_) => {
            let text = format!("extension {} is already installed; uninstall it first", extension.item().id);
            Err(Error::of(EXTENSION_INSTALLED, text))
        }
        None => Ok(()),
    }
}

/// The template at a path of the daemon's machine, which is not installed yet and takes no entry's name.
async fn template_at(extensions: &Extensions, path: PathBuf) -> Result<Template, Error> {
    let templates = Arc::clone(&extensions.templates);
    let at = path.clone();
    let template = match blocking(move || templates.read(&at)).await? {
        Ok(Some(template)) => template,
        Ok(None) => return Err(Error::not_found(format!("there is no template at {}", path.display()))),
        Err(why) => return Err(Error::bad_field("source", format!("source: the template cannot be used: {why}"))),
    };
    if template.has_headers {
        let text = "source: a template with `headers` must be in the catalog of the daemon";
        return Err(Error::bad_field("source", text));
    }
    let id = &template.item.id;
    match extensions.find(id).await {
        Ok(Some(Extension::Entry(_))) => {
            let text = format!("the MCP catalog has an extension {id}; install it by its name");
            Err(Error::of(EXTENSION_INSTALLED, text))
        }
        Ok(_) => {
            let extension = Extension::Template(Box::new(template));
            refuse_installed(extensions, &extension)?;
            match extension {
                Extension::Template(template) => Ok(*template),
                Extension::Entry(_) => Err(Error::internal("internal error")),
            }
        }
        // A kept file that is broken is replaced.
        Err(_) => Ok(template),
    }
}

/// Stores the server of a template, which gets no more than what the client could give it itself.
async fn install_template(
    call: &Call,
    extensions: &Extensions,
    template: Template,
    credentials: std::collections::BTreeMap<String, String>,
    is_new: bool,
) -> Result<String, Error> {
    let is_declared = |name: &str| template.item.text.required_env.iter().any(|required| required.name == name);
    if let Some(name) = credentials.keys().find(|name| !is_declared(name)) {
        return Err(Error::bad_field("credentials", format!("the extension declares no variable {name}")));
    }
    let body = ServerBody::of_template(&template.item, template.network, credentials);
    let (templates, id) = (Arc::clone(&extensions.templates), template.item.id.clone());
    if is_new {
        let keeping = Arc::clone(&templates);
        blocking(move || keeping.keep(&template)).await?.map_err(|error| match error {
            KeepError::Full(most) => {
                Error::of(EXTENSIONS_FULL, format!("{most} extensions were installed from paths; uninstall some"))
            }
            KeepError::Failed(why) => Error::of(EXTENSION_TEMPLATE, format!("the template cannot be stored: {why}")),
        })?;
    }
    match store(call, &extensions.servers, body).await {
        Err(error) if is_new => {
            let _kept_below = blocking(move || templates.remove(&id)).await?;
            Err(error)
        }
        stored => stored,
    }
}

async fn uninstall(call: Call) -> Result<Response, Error> {
    let (extensions, body) = (Extensions::of(&call)?, call.json::<UninstallBody>()?);
    let name = body.name.ok_or_else(|| Error::bad_field("name", "name is missing"))?;
    let _one_by_one = CHANGE.lock().await;
    let found = extensions.find(&name).await?.ok_or_else(|| unknown(&name))?;
    let server = extensions.server(&found);
    if let Some(server) = &server {
        take_away(&call, &extensions.servers, &server.name).await?;
    }
    match (found, server) {
        (Extension::Entry(_), None) => Err(Error::not_found(format!("extension {name} is not installed"))),
        (Extension::Entry(_), Some(_)) => reply::ok(&Uninstalled { status: "uninstalled", name }),
        (Extension::Template(template), _) => {
            let (templates, id) = (Arc::clone(&extensions.templates), template.item.id);
            let removed = blocking(move || templates.remove(&id)).await?;
            removed.map_err(|why| Error::of(EXTENSION_TEMPLATE, format!("the template cannot be removed: {why}")))?;
            reply::ok(&Uninstalled { status: "uninstalled", name })
        }
    }
}
