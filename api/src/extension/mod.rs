//! Extensions: entries of the MCP catalog and templates from elsewhere, installed as MCP servers (spec 2, Extensions).

pub(crate) mod error_codes;
pub(crate) mod find;
pub(crate) mod routes;
pub(crate) mod shape;
pub mod templates;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain =
    HttpDomain::new("extension").admin_changes().uses(&["mcp"]).error_codes(error_codes::ALL).routes(&[routes::ROUTES]);
