//! The WebSocket chat, its commands and bindings.

pub(crate) mod agent_command;
pub mod agent_feed;
pub mod audit_kinds;
pub(crate) mod binding_routes;
pub mod bindings;
pub(crate) mod command;
pub(crate) mod commands;
pub mod error_codes;
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod routes;
pub(crate) mod socket;
#[cfg(test)]
mod tests;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("chat")
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .uses(&["agent", "audit", "compaction", "model", "provider", "session", "skill", "turn", "upload", "event"])
    .routes(&[routes::ROUTES, binding_routes::ROUTES, commands::ROUTES, agent_command::ROUTES])
    .metrics(agent_feed::gather)
    .queues(agent_feed::queues);
