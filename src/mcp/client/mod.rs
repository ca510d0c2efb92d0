//! The daemon as an MCP client: it runs the servers of the configuration and those that clients added, and offers their tools
//! to agents.

mod asks;
mod backoff;
mod call;
mod compat;
pub mod config;
mod connection;
mod definition;
pub(crate) mod fuzzing;
mod gather;
mod incoming;
mod link;
pub(crate) mod manage;
mod mirrored;
mod pace;
mod pins;
mod registry;
mod review;
mod server;
mod session;
mod sign_ins;
mod state;
mod stderr;
mod tools;
mod variables;
pub(crate) mod wire;

use std::sync::Arc;

use agentsvc_api::Api;
use agentsvc_api::mcp::servers::service::ManagedServers;
use agentsvc_api::mcp::servers::sign_in::ServerSignIns;
use agentsvc_systems::mcp::TOOL_PREFIX;
use arc_swap::ArcSwap;
use tokio::runtime::Handle;

use crate::kernel::exchange::Exchange;
use crate::kernel::home::Home;
use crate::kernel::vault::Vault;
use crate::mcp::catalog::Catalog;
use crate::model::provider::Providers;
use crate::tool::toolset::ToolParts;
use asks::sampler::Sampler;
use registry::{Parts, Registry};
use wire::Means;

/// Starts the servers in the background, and lets the API show and change them. They end with the runtime.
pub(crate) fn start(
    api: &Arc<Api>,
    (parts, providers): (&ToolParts, &Arc<ArcSwap<Providers>>),
    home: &Home,
    vault: &Vault,
    exchange: &Exchange,
    handle: &Handle,
) {
    // Until it is known which servers there are.
    parts.set.expect("mcp", vec![TOOL_PREFIX.to_owned()]);
    let registry = Registry::new(Parts {
        means: Means { commands: parts.commands.clone(), web: parts.web.clone() },
        catalog: Catalog::new(home.mcp_catalog_dir()),
        vault: vault.clone(),
        api: Arc::clone(api),
        set: parts.set.clone(),
        settings: parts.settings.clone(),
        handle: handle.clone(),
        injection: parts.injection,
        directories: home.mcp_servers_dir(),
        sampler: Sampler::new(Arc::clone(providers), parts.settings.clone()),
    });
    api.services.provide::<dyn ManagedServers>(Arc::clone(&registry) as _);
    api.services.provide::<dyn ServerSignIns>(Arc::clone(&registry) as _);
    handle.spawn(registry.follow(exchange.starts()));
}

#[cfg(test)]
mod keep_tests;
#[cfg(test)]
mod tests;
