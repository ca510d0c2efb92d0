//! The routes of hands and their instances (spec 2, Hands).

pub(crate) mod agents;
pub mod audit_kinds;
pub mod error_codes;
pub mod hands;
pub(crate) mod instances;
pub(crate) mod routes;
pub(crate) mod settings;
pub(crate) mod shape;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("hand")
    .admin_changes()
    .uses(&["audit", "browser", "mcp", "memory"])
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES, settings::ROUTES, instances::ROUTES]);
