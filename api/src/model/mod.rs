//! The routes of the model catalog.

pub mod audit_kinds;
pub mod catalog;
pub(crate) mod catalog_routes;
pub mod error_codes;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("model")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .uses(&["manifest"])
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES, catalog_routes::ROUTES]);
