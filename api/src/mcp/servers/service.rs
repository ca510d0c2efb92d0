//! What runs MCP servers, and keeps their catalog and their secrets.

use std::sync::Arc;

use agentsvc_systems::mcp::ListedTool;
use futures_util::future::BoxFuture;

use super::shape::{CatalogItem, ServerHealth, ServerItem};

/// Runs the servers of the configuration and of the world. The daemon provides it.
pub trait ManagedServers: Send + Sync + 'static {
    /// Every server with its first tools.
    fn list(&self) -> Vec<ServerItem>;

    /// The server of this name with all of its tools.
    fn get(&self, name: &str) -> Option<ServerItem>;

    /// How every server is.
    fn health(&self) -> Vec<ServerHealth>;

    /// The end of the error output of the server of this name.
    fn log(&self, name: &str) -> Option<String>;

    /// The catalog, read anew. Blocks on the disk.
    fn catalog(&self) -> Vec<CatalogItem>;

    /// The entry of this id, read anew. Blocks on the disk.
    ///
    /// # Errors
    /// Why its file cannot be used.
    fn entry(&self, id: &str) -> Result<Option<CatalogItem>, String>;

    /// Seals a secret. Blocks on the disk.
    ///
    /// # Errors
    /// Why the vault cannot be used.
    fn seal(&self, secret: &str) -> Result<String, String>;

    /// May a server that a client adds be at `url`?
    ///
    /// # Errors
    /// Why not, in a sentence.
    fn vet(self: Arc<Self>, url: String) -> BoxFuture<'static, Result<(), String>>;

    /// The tools that wait for the operator, if any. `None` when there is no such server.
    fn waiting_tools(&self, name: &str) -> Option<Option<WaitingTools>>;

    /// Offers the tools of a server that are accepted by now.
    fn settle(self: Arc<Self>, name: String) -> BoxFuture<'static, ()>;

    /// Starts, restarts and stops servers as the configuration, the world and the catalog have them now, and waits some
    /// seconds for the first attempts of what it started: of this server, or of all. Gives how many of them connected.
    fn sync(self: Arc<Self>, of: Option<String>) -> BoxFuture<'static, usize>;

    /// Ends the connection of a server and begins another. `None` when there is no such server.
    fn reconnect(self: Arc<Self>, name: String) -> BoxFuture<'static, Option<Reconnect>>;
}

/// The list of a server with tools that wait for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTools {
    /// The hash of the list.
    pub hash: String,
    /// All tools of the list that can be offered.
    pub tools: Vec<ListedTool>,
}

/// How a reconnect ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconnect {
    /// The server is connected and has so many tools.
    Connected(usize),
    /// It takes longer.
    Connecting,
    /// It is not connected: why.
    Failed(String),
}
