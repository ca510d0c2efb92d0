//! The WebSocket chat, its commands and bindings.

pub(crate) mod agent_command;
pub(crate) mod agent_feed;
pub(crate) mod binding_routes;
pub mod bindings;
pub(crate) mod command;
pub(crate) mod commands;
pub(crate) mod routes;
pub(crate) mod socket;

#[cfg(test)]
mod tests;
