//! The managed set of MCP servers, and their catalog (spec 3, MCP servers).

use std::sync::Arc;

use agentsvc_components::Refusal;
use agentsvc_components::mcp::SamplingRule;
use agentsvc_systems::mcp::{
    AcceptMcpTools, CreateMcpServer, McpOauth, McpServerFields, McpTransport, RemoveMcpServer, UpdateMcpServer,
    error_codes as codes, tool_prefix,
};
use futures_util::future::BoxFuture;

use super::body::{AcceptBody, Plain, Read, ServerBody};
use super::service::{ManagedServers, Reconnect};
use super::shape::{
    CatalogItem, CatalogList, HealthItem, HealthList, Reconnected, Reloaded, ServerChanged, ServerItem, ServerList,
    ServerLog,
};
use super::sign_in::ServerSignIns;
use crate::http::blocking::{spawn, spawn_blocking};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::error_codes::VAULT_UNAVAILABLE;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::mcp::error_codes::{MCP_SERVER_CONFIGURED, MCP_SERVER_UNREACHABLE, MCP_TEMPLATE, MCP_TOOLS_DIFFER};

/// What starting a server costs the client's rate budget.
const COST: u32 = 10;

const CREATED: &[Reply] = &[
    Reply::json::<ServerChanged>(
        201,
        "added, also if it cannot be started; then `connected` is false and `error` says why",
    ),
    Reply::error(404, "the catalog has no such entry"),
    Reply::error(409, "a server of this name exists"),
    Reply::error(429, "the limit of MCP servers is reached"),
];

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/mcp/servers", "List MCP servers", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<ServerList>(200, "the servers")]),
    Route::post("/api/mcp/servers", "Add an MCP server", |call| Box::pin(detached(Box::pin(create(call)))))
        .cost(COST)
        .body::<ServerBody>()
        .replies(CREATED),
    Route::get("/api/mcp/servers/{id}", "Get an MCP server", |call| Box::pin(get(call))).replies(&[Reply::json::<
        ServerItem,
    >(
        200,
        "the server",
    )]),
    Route::put("/api/mcp/servers/{id}", "Update an MCP server", |call| Box::pin(detached(Box::pin(update(call)))))
        .cost(COST)
        .body::<ServerBody>()
        .replies(&[
            Reply::json::<ServerChanged>(200, "the updated server"),
            Reply::error(409, "the server is defined in config.toml"),
        ]),
    Route::delete("/api/mcp/servers/{id}", "Remove an MCP server", |call| Box::pin(detached(Box::pin(remove(call)))))
        .replies(&[Reply::empty(204, "removed"), Reply::error(409, "the server is defined in config.toml")]),
    Route::post("/api/mcp/servers/{id}/reconnect", "Reconnect an MCP server", |call| Box::pin(reconnect(call)))
        .cost(COST)
        .replies(&[
            Reply::json::<Reconnected>(200, "connected, or still connecting"),
            Reply::error(502, "the server could not be started or reached"),
        ]),
    Route::post("/api/mcp/servers/{id}/accept-tools", "Accept new and changed tools of an MCP server", |call| {
        Box::pin(detached(Box::pin(accept(call))))
    })
    .body::<AcceptBody>()
    .replies(&[
        Reply::json::<ServerItem>(200, "the server, which has these tools now"),
        Reply::error(409, "the tools of the server are not those of the hash"),
    ]),
    Route::get("/api/mcp/servers/{id}/logs", "Get the error output of an MCP server", |call| Box::pin(logs(call)))
        .replies(&[Reply::json::<ServerLog>(200, "the end of its error output")]),
    Route::get("/api/mcp/health", "Get the health of all MCP servers", |call| Box::pin(health(call)))
        .replies(&[Reply::json::<HealthList>(200, "the health")]),
    Route::get("/api/mcp/catalog", "List the MCP catalog", |call| Box::pin(catalog(call))).replies(&[Reply::json::<
        CatalogList,
    >(
        200,
        "the entries",
    )]),
    Route::get("/api/mcp/catalog/{id}", "Get an entry of the MCP catalog", |call| Box::pin(entry(call))).replies(&[
        Reply::json::<CatalogItem>(200, "the entry"),
        Reply::error(409, "the file of the entry cannot be used"),
    ]),
    Route::post("/api/mcp/reload", "Reload the MCP catalog and restart servers that changed", |call| {
        Box::pin(reload(call))
    })
    .cost(COST)
    .replies(&[Reply::json::<Reloaded>(200, "reloaded")]),
];

pub(crate) type Servers = Arc<dyn ManagedServers>;

pub(crate) fn servers(call: &Call) -> Result<Servers, Error> {
    call.api.service::<dyn ManagedServers>()
}

/// Does the work to its end, also when the client goes away: what is stored has to be started, too.
pub(crate) async fn detached(work: BoxFuture<'static, Result<Response, Error>>) -> Result<Response, Error> {
    spawn(work).await.unwrap_or_else(|_| Err(Error::internal("internal error")))
}

/// Does what waits for the disk.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    spawn_blocking(work).await.map_err(|_| Error::internal("internal error"))
}

fn unknown(name: &str) -> Error {
    Error::not_found(format!("MCP server not found: {name}"))
}

async fn list(call: Call) -> Result<Response, Error> {
    let servers = servers(&call)?.list();
    let configured: Vec<_> = servers.iter().map(|server| server.name.clone()).collect();
    let connected: Vec<_> = servers.iter().filter(|it| it.connected).map(|server| server.name.clone()).collect();
    let (total, total_connected) = (servers.len(), connected.len());
    reply::ok(&ServerList { servers, total, configured, connected, total_configured: total, total_connected })
}

async fn get(call: Call) -> Result<Response, Error> {
    let name = call.param("id")?;
    reply::ok(&servers(&call)?.get(&name).ok_or_else(|| unknown(&name))?)
}

async fn logs(call: Call) -> Result<Response, Error> {
    let name = call.param("id")?;
    let log = servers(&call)?.log(&name).ok_or_else(|| unknown(&name))?;
    reply::ok(&ServerLog { id: name.into_owned(), log })
}

async fn health(call: Call) -> Result<Response, Error> {
    let health: Vec<HealthItem> = servers(&call)?.health().into_iter().map(HealthItem::from).collect();
    let count = health.len();
    reply::ok(&HealthList { health, count })
}

async fn catalog(call: Call) -> Result<Response, Error> {
    let servers = servers(&call)?;
    let entries = blocking(move || servers.catalog()).await?;
    let count = entries.len();
    reply::ok(&CatalogList { entries, count })
}

async fn entry(call: Call) -> Result<Response, Error> {
    let id = call.param("id")?.into_owned();
    reply::ok(&found_entry(&servers(&call)?, id).await?)
}

/// The entry of this id.
async fn found_entry(servers: &Servers, id: String) -> Result<CatalogItem, Error> {
    let (servers, of) = (Arc::clone(servers), id.clone());
    match blocking(move || servers.entry(&of)).await? {
        Ok(Some(entry)) => Ok(entry),
        Ok(None) => Err(Error::not_found(format!("MCP catalog entry not found: {id}"))),
        Err(why) => Err(Error::of(MCP_TEMPLATE, format!("MCP catalog entry {id} cannot be used: {why}"))),
    }
}

async fn reload(call: Call) -> Result<Response, Error> {
    let new_connections = servers(&call)?.sync(None).await;
    reply::ok(&Reloaded { status: "reloaded", new_connections })
}

async fn reconnect(call: Call) -> Result<Response, Error> {
    let name = call.param("id")?.into_owned();
    let ended = servers(&call)?.reconnect(name.clone()).await.ok_or_else(|| unknown(&name))?;
    let (status, tool_count) = match ended {
        Reconnect::Connected(tools) => ("connected", tools),
        Reconnect::Connecting => ("connecting", 0),
        Reconnect::Failed(why) => {
            return Err(Error::of(MCP_SERVER_UNREACHABLE, format!("MCP server {name} is not connected: {why}")));
        }
    };
    reply::ok(&Reconnected { id: name, status, tool_count })
}

async fn accept(call: Call) -> Result<Response, Error> {
    let (servers, body) = (servers(&call)?, call.json::<AcceptBody>()?);
    let name = call.param("id")?.into_owned();
    let hash = body.hash.ok_or_else(|| Error::bad_field("hash", "hash is missing"))?;
    let waiting = servers.waiting_tools(&name).ok_or_else(|| unknown(&name))?;
    let Some(waiting) = waiting.filter(|waiting| waiting.hash == hash) else {
        let text = format!("MCP server {name} does not list the tools of this hash; read tools_review again");
        return Err(Error::of(MCP_TOOLS_DIFFER, text));
    };
    call.ask(AcceptMcpTools { server: name.clone(), tools: waiting.tools }).await?;
    Arc::clone(&servers).settle(name.clone()).await;
    reply::ok(&servers.get(&name).ok_or_else(|| unknown(&name))?)
}

/// The fields of a body, with what it holds sealed.
async fn fields(
    servers: &Servers,
    mut body: ServerBody,
    entry: Option<&CatalogItem>,
    known: &[String],
) -> Result<McpServerFields, Error> {
    let (timeout_secs, network) = (body.timeout_secs.take(), body.network.take());
    let sampling = match body.sampling.take().as_deref() {
        None => None,
        Some("off") => Some(SamplingRule::Off),
        Some("approve") => Some(SamplingRule::Approve),
        Some("on") => Some(SamplingRule::On),
        Some(_) => return Err(Error::bad_field("sampling", "sampling must be off, approve or on")),
    };
    let sampling_max_tokens = body.sampling_max_tokens.take();
    let Read { transport, env, headers, oauth } = body.read(entry, known)?;
    for (field, url) in urls(transport.as_ref(), oauth.as_ref().and_then(Option::as_ref)) {
        let vetted = Arc::clone(servers).vet(url).await;
        vetted.map_err(|why| Error::bad_field(field, format!("{field}: {why}")))?;
    }
    let text = |value: serde_json::Result<String>| value.map_err(|_| Error::internal("internal error"));
    let transport = transport.map(|transport| text(serde_json::to_string(&transport))).transpose()?;
    let oauth = match oauth {
        Some(Some(oauth)) => Some(Some(text(serde_json::to_string(&oauth))?)),
        Some(None) => Some(None),
        None => None,
    };
    let sealing = Arc::clone(servers);
    let sealed = blocking(move || Ok((sealed(&*sealing, env)?, sealed(&*sealing, headers)?))).await?;
    let (env, headers) = sealed.map_err(|why: String| Error::of(VAULT_UNAVAILABLE, why))?;
    Ok(McpServerFields { transport, env, headers, timeout_secs, network, oauth, sampling, sampling_max_tokens })
}

/// The addresses that a server is reached and signed in to at, with their fields.
fn urls(transport: Option<&McpTransport>, oauth: Option<&McpOauth>) -> Vec<(&'static str, String)> {
    let mut urls = Vec::new();
    urls.extend(transport.and_then(McpTransport::url).map(|url| ("transport", url.to_owned())));
    for url in oauth.iter().flat_map(|oauth| [&oauth.auth_url, &oauth.token_url]).flatten() {
        urls.push(("oauth", url.clone()));
    }
    urls
}

fn sealed(servers: &dyn ManagedServers, values: Plain) -> Result<Plain, String> {
    let seal =
        |(name, value): (String, Option<String>)| Ok((name, value.map(|value| servers.seal(&value)).transpose()?));
    values.map(|values| values.into_iter().map(seal).collect()).transpose()
}

async fn create(call: Call) -> Result<Response, Error> {
    let (servers, body) = (servers(&call)?, call.json::<ServerBody>()?);
    let name = store(&call, &servers, body).await?;
    reply::created(&changed(servers, name, "added").await?)
}

/// Stores the server of a body and gives its name; [`changed`] starts it.
pub(crate) async fn store(call: &Call, servers: &Servers, body: ServerBody) -> Result<String, Error> {
    let template_id = body.template_id.clone();
    let (name, entry) = match &template_id {
        Some(id) => (id.clone(), Some(found_entry(servers, id.clone()).await?)),
        None => (body.name.clone().ok_or_else(|| Error::bad_field("name", "name is missing"))?, None),
    };
    let like = servers.list().into_iter().find(|other| tool_prefix(&other.name) == tool_prefix(&name));
    if let Some(other) = like {
        let text = format!("MCP server {:?} already exists; choose another name or remove it first", other.name);
        return Err(Error::of(codes::MCP_SERVER_EXISTS, text));
    }
    let fields = fields(servers, body, entry.as_ref(), &[]).await?;
    call.ask(CreateMcpServer { name: name.clone(), template_id, fields }).await?;
    Ok(name)
}

async fn update(call: Call) -> Result<Response, Error> {
    let (servers, body) = (servers(&call)?, call.json::<ServerBody>()?);
    let before = own(&servers, &call.param("id")?)?;
    let name = before.name.clone();
    let same = |given: &Option<String>, is: Option<&str>| given.as_deref().is_none_or(|given| Some(given) == is);
    if !same(&body.name, Some(&name)) {
        return Err(Error::bad_field("name", "name cannot be changed; add another server instead"));
    }
    if !same(&body.template_id, before.template_id.as_deref()) {
        return Err(Error::bad_field("template_id", "template_id cannot be changed; add another server instead"));
    }
    let entry = match &before.template_id {
        Some(id) => Some(found_entry(&servers, id.clone()).await?),
        None => None,
    };
    let fields = fields(&servers, body, entry.as_ref(), &before.env).await?;
    call.ask(UpdateMcpServer { name: name.clone(), fields }).await?;
    reply::ok(&changed(servers, name, "updated").await?)
}

async fn remove(call: Call) -> Result<Response, Error> {
    take_away(&call, &servers(&call)?, &call.param("id")?).await?;
    Ok(reply::no_content())
}

/// Removes the server of this name, and its sign-in.
pub(crate) async fn take_away(call: &Call, servers: &Servers, name: &str) -> Result<(), Error> {
    let server = own(servers, name)?;
    call.ask(RemoveMcpServer(server.name.clone())).await?;
    let sign_ins = call.api.service::<dyn ServerSignIns>();
    // As long as it runs, its authorization server may be on a private host.
    if let Ok(sign_ins) = &sign_ins {
        let _removed_below = Arc::clone(sign_ins).revoke(server.name.clone()).await;
    }
    Arc::clone(servers).sync(Some(server.name.clone())).await;
    // A server that gets this name later must not get its tokens.
    if let Ok(sign_ins) = sign_ins {
        sign_ins.forget(server.name).await?;
    }
    Ok(())
}

/// The server of this name, which clients may change.
fn own(servers: &Servers, name: &str) -> Result<ServerItem, Error> {
    let server = servers.get(name).ok_or_else(|| unknown(name))?;
    if server.source == "config" {
        let text = format!("MCP server {name} is defined in config.toml; change it there");
        return Err(Error::of(MCP_SERVER_CONFIGURED, text));
    }
    Ok(server)
}

/// The server as it is when the change is in effect.
pub(crate) async fn changed(servers: Servers, name: String, status: &'static str) -> Result<ServerChanged, Error> {
    Arc::clone(&servers).sync(Some(name.clone())).await;
    let server = servers.get(&name).ok_or_else(|| {
        Error::from(Refusal::busy(format!("MCP server {name} is stored and starts when the daemon is less busy"), 1))
    })?;
    Ok(ServerChanged { reload: "reloaded", server: ServerItem { status, ..server } })
}
