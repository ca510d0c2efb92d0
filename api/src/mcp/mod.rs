//! The daemon as a server of the Model Context Protocol (spec 3, MCP HTTP transport), and the servers of others that it
//! runs.

pub(crate) mod agents;
pub(crate) mod anonymous;
pub mod error_codes;
pub(crate) mod message;
pub(crate) mod methods;
pub mod public_tools;
pub(crate) mod routes;
pub mod servers;
pub(crate) mod tools;
pub mod version;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("mcp")
    .admin_changes()
    .uses(&["agent", "audit", "manifest", "tool", "turn", "upload"])
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES, servers::routes::ROUTES, servers::auth::ROUTES]);
