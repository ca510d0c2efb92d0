//! The MCP servers of others that the daemon runs: listed, added, changed, reconnected (spec 3, MCP servers).

pub(crate) mod body;
pub(crate) mod routes;
pub mod service;
pub mod shape;
