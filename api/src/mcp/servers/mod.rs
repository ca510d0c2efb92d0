//! The MCP servers of others that the daemon runs: listed, added, changed, reconnected (spec 3, MCP servers).

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod routes;
pub mod service;
pub mod shape;
pub mod sign_in;
