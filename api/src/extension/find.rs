//! Extensions as they are: what can be installed, and the MCP servers that were made from it.

use std::collections::HashMap;
use std::sync::Arc;

use agentsvc_components::Timestamp;
use agentsvc_systems::kernel::entities::List;
use agentsvc_systems::mcp::McpServerView;
use agentsvc_systems::mcp::limits::MCP_SERVERS_MAX;

use super::error_codes::EXTENSION_TEMPLATE;
use super::shape::{ExtensionDetail, ExtensionItem, ExtensionVariable};
use super::templates::{ExtensionTemplates, Template};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::mcp::error_codes::MCP_TEMPLATE;
use crate::mcp::servers::routes::{Servers, blocking, servers};
use crate::mcp::servers::shape::{CatalogItem, HealthItem, RequiredEnv, ServerItem};

/// What can be installed.
#[derive(Clone, Debug)]
pub(super) enum Extension {
    /// An entry of the operator's catalog.
    Entry(Box<CatalogItem>),
    /// A template that a client brought.
    Template(Box<Template>),
}

impl Extension {
    pub(super) const fn item(&self) -> &CatalogItem {
        match self {
            Self::Entry(item) => item,
            Self::Template(template) => &template.item,
        }
    }
}

/// Everything that is asked about extensions.
pub(super) struct Extensions {
    pub(super) servers: Servers,
    pub(super) templates: Arc<dyn ExtensionTemplates>,
}

impl Extensions {
    pub(super) fn of(call: &Call) -> Result<Self, Error> {
        Ok(Self { servers: servers(call)?, templates: call.api.service::<dyn ExtensionTemplates>()? })
    }

    /// The extension of this name, installed or not.
    pub(super) async fn find(&self, name: &str) -> Result<Option<Extension>, Error> {
        let (servers, templates, id) = (Arc::clone(&self.servers), Arc::clone(&self.templates), name.to_owned());
        let found = blocking(move || match servers.entry(&id) {
            Ok(Some(entry)) => Ok(Some(Extension::Entry(Box::new(entry)))),
            Err(why) => Err((MCP_TEMPLATE, why)),
            Ok(None) => match templates.find(&id) {
                Ok(found) => Ok(found.map(|template| Extension::Template(Box::new(template)))),
                Err(why) => Err((EXTENSION_TEMPLATE, why)),
            },
        });
        found.await?.map_err(|(code, why)| Error::of(code, format!("extension {name} cannot be used: {why}")))
    }

    /// Every extension with its server, in the order of their names.
    pub(super) async fn all(&self, call: &Call) -> Result<Vec<ExtensionItem>, Error> {
        let (servers, templates) = (Arc::clone(&self.servers), Arc::clone(&self.templates));
        let (entries, kept, running) = blocking(move || (servers.catalog(), templates.all(), servers.list())).await?;
        let since = installed_at(call).await?;
        let is_entry = |id: &str| entries.iter().any(|entry| entry.id == id);
        let mut items: Vec<ExtensionItem> =
            kept.iter().filter(|item| !is_entry(&item.id)).map(|item| shown(item, false, &running, &since)).collect();
        items.extend(entries.iter().map(|item| shown(item, true, &running, &since)));
        items.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(items)
    }

    /// The server of an extension.
    pub(super) fn server(&self, extension: &Extension) -> Option<ServerItem> {
        let is_entry = matches!(extension, Extension::Entry(_));
        let id = &extension.item().id;
        let server = self.servers.list().into_iter().find(|server| is_of(server, id, is_entry))?;
        self.servers.get(&server.name)
    }

    /// All that there is to know of an extension.
    pub(super) async fn detail(&self, call: &Call, extension: Extension) -> Result<ExtensionDetail, Error> {
        let server = self.server(&extension);
        let since = installed_at(call).await?;
        let is_entry = matches!(extension, Extension::Entry(_));
        let running: Vec<_> = server.iter().cloned().collect();
        let item = extension.item();
        let health = |name: &str| self.servers.health().into_iter().find(|health| health.id == name);
        let variable = |required: &RequiredEnv| {
            let RequiredEnv { name, label, help, is_secret, get_url } = required.clone();
            let is_set = server.as_ref().is_some_and(|server| is_set(server, &name));
            ExtensionVariable { name, label, help, is_secret, get_url, is_set }
        };
        Ok(ExtensionDetail {
            item: shown(item, is_entry, &running, &since),
            required_env: item.text.required_env.iter().map(variable).collect(),
            has_oauth: item.text.oauth.is_some(),
            setup_instructions: item.text.setup_instructions.clone(),
            transport: item.transport.clone(),
            health: server.as_ref().and_then(|server| health(&server.name)).map(HealthItem::from),
            tools: server.as_ref().map(|server| server.tools.clone()).unwrap_or_default(),
            server: server.map(|server| server.name),
        })
    }
}

/// Was this server made from the extension?
fn is_of(server: &ServerItem, id: &str, is_entry: bool) -> bool {
    match (&server.template_id, is_entry) {
        (Some(template), true) => template == id,
        (None, false) => server.source == "api" && server.name == id,
        _ => false,
    }
}

fn is_set(server: &ServerItem, name: &str) -> bool {
    let has = |names: &[String]| names.iter().any(|known| known == name);
    has(&server.env) && !has(&server.missing_env)
}

/// The variables without a value.
pub(super) fn missing(item: &CatalogItem, server: &ServerItem) -> Vec<String> {
    let names = item.text.required_env.iter().map(|required| &required.name);
    names.filter(|name| !is_set(server, name)).cloned().collect()
}

/// When the servers that clients added were added.
async fn installed_at(call: &Call) -> Result<HashMap<Box<str>, Timestamp>, Error> {
    let stored = call.ask(List::<McpServerView> { filter: (), after: None, limit: MCP_SERVERS_MAX }).await?;
    Ok(stored.items.into_iter().map(|view| (view.server.name, view.server.created_at)).collect())
}

fn shown(
    item: &CatalogItem,
    is_entry: bool,
    running: &[ServerItem],
    since: &HashMap<Box<str>, Timestamp>,
) -> ExtensionItem {
    let server = running.iter().find(|server| is_of(server, &item.id, is_entry));
    let added = server.filter(|server| server.source == "api").and_then(|server| since.get(&*server.name));
    ExtensionItem {
        name: item.id.clone(),
        display_name: item.text.name.clone(),
        description: item.text.description.clone(),
        icon: item.text.icon.clone(),
        category: item.text.category.clone(),
        status: server.map_or("available", |server| status(item, server)),
        tags: item.text.tags.clone(),
        installed: server.is_some(),
        tool_count: server.map_or(0, |server| server.tool_count),
        installed_at: added.map(|at| crate::http::timestamp::Moment(*at)),
        source: if is_entry { "catalog" } else { "path" },
        error: server.and_then(|server| server.error.clone()),
    }
}

fn status(item: &CatalogItem, server: &ServerItem) -> &'static str {
    let needs_user = matches!(server.auth.state, "needs_auth" | "pending_auth" | "expired");
    match server.status {
        "connected" => "ready",
        _ if needs_user || !missing(item, server).is_empty() => "setup",
        "connecting" => "connecting",
        _ => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_what_is_to_be_done() {
        let mut item = CatalogItem { id: "notes".to_owned(), ..CatalogItem::default() };
        let mut server = ServerItem { status: "disconnected", ..ServerItem::default() };
        assert_eq!(status(&item, &server), "error");
        item.text.required_env = vec![RequiredEnv { name: "TOKEN".to_owned(), ..RequiredEnv::default() }];
        assert_eq!((status(&item, &server), missing(&item, &server)), ("setup", vec!["TOKEN".to_owned()]));
        // Known, but without a value.
        server.env = vec!["TOKEN".to_owned()];
        server.missing_env = server.env.clone();
        assert_eq!(status(&item, &server), "setup");
        server.missing_env.clear();
        assert_eq!((status(&item, &server), missing(&item, &server)), ("error", vec![]));
        server.auth.state = "needs_auth";
        assert_eq!(status(&item, &server), "setup");
        server.auth.state = "authorized";
        server.status = "connecting";
        assert_eq!(status(&item, &server), "connecting");
        server.status = "connected";
        assert_eq!(status(&item, &server), "ready");
    }

    #[test]
    fn a_server_belongs_to_what_it_was_made_from() {
        let server = |template: Option<&str>, source| ServerItem {
            name: "notes".to_owned(),
            template_id: template.map(str::to_owned),
            source,
            ..ServerItem::default()
        };
        assert!(is_of(&server(Some("notes"), "api"), "notes", true));
        assert!(is_of(&server(Some("notes"), "config"), "notes", true));
        assert!(!is_of(&server(None, "api"), "notes", true));
        assert!(is_of(&server(None, "api"), "notes", false));
        assert!(!is_of(&server(None, "config"), "notes", false));
        assert!(!is_of(&server(Some("other"), "api"), "notes", false));
    }
}
