//! The daemon as an MCP client: it runs the servers of the configuration and offers their tools to agents.

mod call;
pub mod config;
mod connection;
mod incoming;
mod server;
mod session;
mod stderr;
mod tools;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::kernel::home::Home;
use crate::tool::toolset::ToolParts;
use config::McpClient;
use server::Server;
use wire::Means;

/// Starts the servers in the background. They end with the runtime.
pub(crate) fn start(servers: &BTreeMap<Box<str>, McpClient>, parts: &ToolParts, home: &Home, handle: &Handle) {
    let directories = home.mcp_servers_dir();
    let servers = servers.iter().map(|(name, config)| Arc::new(Server::new(name, config, &directories)));
    let servers: Arc<[Arc<Server>]> = servers.collect();
    // Two servers that change at once must not offer an older list last.
    let offering = Arc::new(Mutex::new(()));
    for server in servers.iter() {
        let (all, set, offering) = (Arc::clone(&servers), parts.set.clone(), Arc::clone(&offering));
        let offer = move || {
            let _one_by_one = offering.lock();
            set.bring(tools::all(&all));
        };
        let server = Arc::clone(server);
        let means = Means { commands: parts.commands.clone(), web: parts.web.clone() };
        handle.spawn(async move { server.keep(means, offer).await });
    }
}

#[cfg(test)]
mod tests;
