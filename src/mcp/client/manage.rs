//! The servers that run, as the API shows and changes them.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::mcp::servers::service::{ManagedServers, Reconnect, WaitingTools};
use agentsvc_api::mcp::servers::shape::{
    CatalogItem, FlaggedTool, ReviewedTool, ServerHealth, ServerItem, ToolItem, ToolsReview,
};
use agentsvc_systems::mcp::{McpTransport, tool_prefix};
use futures_util::future::{BoxFuture, join_all};
use tokio::sync::watch;
use tokio::time::timeout;

use super::definition::Source;
use super::registry::Registry;
use super::review::{Flag, Judged, Offer};
use super::server::Server;
use crate::mcp::catalog::Entry;

/// How long a change waits for the first attempt of a server.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// How long a reconnect waits.
const RECONNECT_WAIT: Duration = Duration::from_secs(10);
/// Tools of each server in a list of servers.
const LISTED_TOOLS: usize = 100;
/// Bytes of a description in a list of servers, and elsewhere.
const DESCRIPTION_BYTES: [usize; 2] = [300, 4 << 10];

/// What the API shows of a server.
fn shown(server: &Server, is_listed: bool) -> ServerItem {
    let (definition, health) = (server.definition(), server.health());
    let (command, args) = match &definition.transport {
        Some(McpTransport::Stdio { command, args }) => (Some(command.clone()), Some(args.clone())),
        _ => (None, None),
    };
    let most = if is_listed { LISTED_TOOLS } else { usize::MAX };
    let bytes = DESCRIPTION_BYTES[usize::from(!is_listed)];
    let prefix = tool_prefix(server.name());
    let offer = server.offer();
    let tool = |tool: &Arc<Judged>| shown_tool(&prefix, tool, bytes);
    ServerItem {
        id: health.id.clone(),
        name: health.id,
        status: health.status,
        connected: health.status == "connected",
        error: server.fault(),
        transport: definition.shown_transport(),
        command,
        args,
        template_id: definition.template_id.as_deref().map(str::to_owned),
        source: match definition.source {
            Source::Config => "config",
            Source::Api => "api",
        },
        env: definition.env.iter().map(|(name, _)| name.to_string()).collect(),
        missing_env: definition
            .env
            .iter()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name.to_string())
            .collect(),
        headers: definition.headers.iter().map(|(name, _)| name.to_string()).collect(),
        timeout_secs: definition.timeout.as_secs(),
        network: definition.network,
        sampling: definition.asks.sampling_word(),
        has_oauth: definition.oauth.is_some(),
        auth: health.auth,
        tool_count: offer.tools.len(),
        tools: offer.tools.iter().take(most).map(tool).collect(),
        flagged_tools: offer.listing.flagged().take(most).map(|(tool, flag)| shown_flag(&prefix, tool, flag)).collect(),
        tools_review: shown_review(&prefix, &offer, is_listed, [most, bytes]),
    }
}

fn shown_tool(prefix: &str, tool: &Judged, bytes: usize) -> ToolItem {
    let mut description = tool.described.description.clone().unwrap_or_default();
    description.truncate(description.floor_char_boundary(bytes));
    ToolItem { name: format!("{prefix}{}", tool.name), description }
}

fn shown_flag(prefix: &str, tool: &Judged, flag: &Flag) -> FlaggedTool {
    let reasons = flag.reasons.iter().map(ToString::to_string).collect();
    FlaggedTool { name: format!("{prefix}{}", tool.name), action: flag.action.as_str(), reasons }
}

/// What waits for the operator: at most so many tools, with at most so many bytes of their descriptions.
fn shown_review(prefix: &str, offer: &Offer, is_listed: bool, [most, bytes]: [usize; 2]) -> Option<ToolsReview> {
    let changes = offer.review.as_ref()?;
    let find = |name: &String| offer.listing.tools.iter().find(|tool| tool.name == *name);
    let tool = |tool: &Arc<Judged>| ReviewedTool {
        tool: shown_tool(prefix, tool, bytes),
        input_schema: (!is_listed).then(|| serde_json::from_str(tool.schema.get()).unwrap_or_default()),
        annotations: (!is_listed).then(|| tool.described.annotations.clone()),
    };
    let shown = |names: &[String]| names.iter().filter_map(find).take(most).map(tool).collect();
    Some(ToolsReview {
        hash: offer.listing.hash.clone(),
        new: shown(&changes.new),
        changed: shown(&changes.changed),
        removed: changes.removed.iter().take(most).map(|name| format!("{prefix}{name}")).collect(),
    })
}

/// What the API shows of an entry.
pub(crate) fn shown_entry(entry: Entry, installed: &[Box<str>]) -> CatalogItem {
    let transport = serde_json::to_value(&entry.given.transport).unwrap_or_default();
    CatalogItem {
        installed: installed.contains(&entry.id),
        id: entry.id.into(),
        transport: transport.as_object().cloned().unwrap_or_default(),
        text: entry.text,
    }
}

/// Waits for the end of an attempt that is under way.
async fn attempted(server: &Server, mut attempts: watch::Receiver<u64>, wait: Duration) {
    if server.health().status == "connecting" || attempts.has_changed().unwrap_or(false) {
        let _in_time = timeout(wait, attempts.changed()).await;
    }
}

impl ManagedServers for Registry {
    fn list(&self) -> Vec<ServerItem> {
        self.servers().iter().map(|server| shown(server, true)).collect()
    }

    fn get(&self, name: &str) -> Option<ServerItem> {
        self.server(name).map(|server| shown(&server, false))
    }

    fn health(&self) -> Vec<ServerHealth> {
        self.servers().iter().map(|server| server.health()).collect()
    }

    fn log(&self, name: &str) -> Option<String> {
        self.server(name).map(|server| server.log())
    }

    fn catalog(&self) -> Vec<CatalogItem> {
        let installed = self.installed();
        self.catalog.all().into_iter().map(|entry| shown_entry(entry, &installed)).collect()
    }

    fn entry(&self, id: &str) -> Result<Option<CatalogItem>, String> {
        let installed = self.installed();
        Ok(self.catalog.find(id)?.map(|entry| shown_entry(entry, &installed)))
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        self.seal_value(secret)
    }

    fn vet(self: Arc<Self>, url: String) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move {
            let vetted = self.means.web.vet(&url, false).await;
            vetted.map(drop).map_err(|error| error.to_string())
        })
    }

    fn waiting_tools(&self, name: &str) -> Option<Option<WaitingTools>> {
        let offer = self.server(name)?.offer();
        let waits = offer.review.is_some();
        Some(waits.then(|| WaitingTools { hash: offer.listing.hash.clone(), tools: offer.listing.listed() }))
    }

    fn settle(self: Arc<Self>, name: String) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Some(server) = self.server(&name) {
                self.settle_tools_in_time(&server).await;
            }
        })
    }

    fn sync(self: Arc<Self>, of: Option<String>) -> BoxFuture<'static, usize> {
        Box::pin(async move {
            let started = self.resync().await;
            let awaited: Vec<_> =
                started.iter().filter(|server| of.as_deref().is_none_or(|name| name == server.name())).collect();
            join_all(awaited.iter().map(|server| attempted(server, server.attempts(), FIRST_WAIT))).await;
            awaited.iter().filter(|server| server.health().status == "connected").count()
        })
    }

    fn reconnect(self: Arc<Self>, name: String) -> BoxFuture<'static, Option<Reconnect>> {
        Box::pin(async move {
            // A value of the environment or of the catalog may be there by now.
            let started = self.resync().await;
            let server = self.server(&name)?;
            let mut attempts = server.attempts();
            if started.iter().all(|other| !Arc::ptr_eq(other, &server)) {
                server.reconnect();
                let _in_time = timeout(RECONNECT_WAIT, attempts.changed()).await;
            } else {
                attempted(&server, attempts, RECONNECT_WAIT).await;
            }
            let health = server.health();
            Some(match health.status {
                "connected" => Reconnect::Connected(health.tool_count),
                "connecting" => Reconnect::Connecting,
                _ => Reconnect::Failed(server.fault().unwrap_or_default()),
            })
        })
    }
}
