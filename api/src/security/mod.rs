//! The routes of the security systems.

pub mod audit_kinds;
pub(crate) mod auth_failures;
pub(crate) mod routes;
pub mod systems;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("security")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .uses(&["agent", "audit", "world"])
    .routes(&[routes::ROUTES])
    .on_unauthorized(auth_failures::note)
    .metrics(auth_failures::gather);
