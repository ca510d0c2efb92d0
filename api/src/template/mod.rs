//! The routes of agent types.

pub mod audit_kinds;
pub mod error_codes;
pub(crate) mod routes;
pub(crate) mod shape;
pub mod store;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("template")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .uses(&["agent", "audit", "manifest"])
    .routes(&[routes::ROUTES]);
